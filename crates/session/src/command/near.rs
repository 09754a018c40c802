//! Which name somebody may have meant.

/// The names that are one slip of the finger from what was typed, or two where it is long. What is too
/// short to slip in has none.
pub(super) fn nearest(typed: &str, names: &[&str]) -> Vec<String> {
    let far = match typed.len() {
        0..3 => 0,
        3..5 => 1,
        _ => 2,
    };
    let mut found: Vec<(usize, &str)> = names
        .iter()
        .map(|&name| (distance(typed, name), name))
        .filter(|(distance, _)| *distance <= far)
        .collect();
    found.sort_unstable();
    found.truncate(3);
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// How many letters have to be put in, taken out, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, l) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, r) in right.iter().enumerate() {
            let changed = above[column] + usize::from(l != r);
            let mut best = changed.min(above[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *l == right[column - 1] && left[row - 1] == *r;
            if swapped {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (left, right, expected) in [
            ("help", "help", 0),
            ("hlep", "help", 1),
            ("hel", "help", 1),
            ("helpp", "help", 1),
            ("hilp", "help", 1),
            ("", "help", 4),
            ("stop", "status", 4),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }
}
