//! How wide the columns of a table become where text is all there is.

use unicode_width::UnicodeWidthStr;

use crate::document::{Align, Cell, hides_address, words};

/// Columns that would have to be narrower than this are not columns any more.
const NARROWEST: usize = 8;

/// A title longer than this is not repeated before every value.
const LONGEST_LABEL: usize = 40;

/// How wide each column would like to be, from the widths of the cells of each row.
pub(crate) fn natural<R>(columns: usize, rows: impl Iterator<Item = R>) -> Vec<usize>
where
    R: Iterator<Item = usize>,
{
    let mut widest = vec![0; columns];
    for row in rows {
        for (column, width) in std::iter::zip(&mut widest, row) {
            *column = width.max(*column);
        }
    }
    widest
}

/// The width of each column so that all of them, with `gap` between them, fit into `available`; wide
/// columns give way first. `None` when there are too many columns for that.
pub(crate) fn fit(natural: &[usize], gap: usize, available: usize) -> Option<Vec<usize>> {
    let gaps = gap.saturating_mul(natural.len().saturating_sub(1));
    let room = available.checked_sub(gaps)?;
    let total = |widest: usize| natural.iter().map(|width| (*width).min(widest)).sum::<usize>();
    if natural.iter().sum::<usize>() <= room {
        return Some(natural.to_vec());
    }
    let widest = (NARROWEST..=room).rev().find(|widest| total(*widest) <= room)?;
    Some(natural.iter().map(|width| (*width).min(widest)).collect())
}

/// How many blanks stand on either side of a text in its column.
pub(crate) fn padding(align: Align, text: usize, column: usize) -> (usize, usize) {
    let blank = column.saturating_sub(text);
    match align {
        Align::Left => (0, blank),
        Align::Center => (blank / 2, blank - blank / 2),
        Align::Right => (blank, 0),
    }
}

/// The titles as labels for single values, unless repeating them would drown the values, one of them has
/// no value that it could stand beside, or one is a link, which a label is not.
pub(crate) fn labels(head: &[Cell], rows: &[Vec<Cell>]) -> Option<Vec<String>> {
    if head.iter().any(|cell| hides_address(cell)) {
        return None;
    }
    let labels: Vec<String> = head.iter().map(|cell| words(cell)).collect();
    let has_value =
        |column: usize| rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_empty()));
    let is_label = |(column, label): (usize, &String)| {
        label.width() <= LONGEST_LABEL && (label.is_empty() || has_value(column))
    };
    labels.iter().enumerate().all(is_label).then_some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_columns_give_way_first() {
        assert_eq!(fit(&[4, 10], 2, 20), Some(vec![4, 10]));
        assert_eq!(fit(&[4, 100], 2, 20), Some(vec![4, 14]));
        assert_eq!(fit(&[30, 100], 2, 22), Some(vec![10, 10]));
        assert_eq!(fit(&[30, 30, 30], 2, 20), None);
        assert_eq!(fit(&[1; 50], 2, 20), None);
        assert_eq!(fit(&[], 2, 20), Some(vec![]));
    }
}
