//! The known name that somebody most likely meant.

/// The closest of the candidates, if it is close enough to be worth suggesting.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // One slip in three letters; a two-letter word has no near neighbours worth naming.
    let tolerance = name.chars().count() / 3;
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let fold = |text: &str| -> Vec<char> {
        text.chars().take(LONGEST).flat_map(char::to_lowercase).map(same).collect()
    };
    let (a, b) = (fold(a), fold(b));
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let above = &rows[i - 1];
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Longer than any name we know, so that a hostile key costs nothing.
const LONGEST: usize = 128;

/// People mix these up without noticing.
fn same(c: char) -> char {
    if c == '-' { '_' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["turn_limit", "question_limit", "listen", "log"];
        let check = |name, expect| assert_eq!(nearest(name, known), expect, "{name}");
        check("turn_limt", Some("turn_limit"));
        check("turn-limit", Some("turn_limit"));
        check("TurnLimit", Some("turn_limit"));
        check("lisetn", Some("listen"));
        check("lgo", Some("log"));
        check("weather", None);
        check("x", None);
        check("", None);
    }
}
