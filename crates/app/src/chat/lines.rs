//! Takes a stream of bytes apart into lines, however it was cut on the way.

use std::mem;

/// Collects bytes until a line is whole. A line longer than the limit is skipped, so that memory
/// stays bounded whatever the other end sends.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    begun: Vec<u8>,
    skipping: bool,
}

impl Lines {
    pub(super) fn up_to(limit: usize) -> Self {
        Self { limit, begun: Vec::new(), skipping: false }
    }

    /// Takes in more bytes and hands out the lines that they complete, without their line breaks.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut whole = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            if self.begun.len() + text.len() > self.limit {
                self.begun = Vec::new();
                self.skipping = true;
            } else if !self.skipping {
                self.begun.extend_from_slice(text);
            }
            if ends {
                let line = mem::take(&mut self.begun);
                if !mem::take(&mut self.skipping) {
                    whole.push(line);
                }
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(limit: usize, pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::up_to(limit);
        pieces
            .iter()
            .flat_map(|piece| lines.push(piece.as_bytes()))
            .map(|line| String::from_utf8(line).unwrap())
            .collect()
    }

    #[test]
    fn a_line_is_handed_out_once_it_is_whole() {
        assert_eq!(lines(99, &["a", "b\nc", "\n", "\nd"]), ["ab", "c", ""]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_not() {
        assert_eq!(lines(3, &["abcd\nef\n"]), ["ef"]);
        assert_eq!(lines(3, &["ab", "cd", "ef", "\ngh\n"]), ["gh"]);
        assert_eq!(lines(3, &["abc\n"]), ["abc"]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_stream_is_cut(
            text in "[a-c\n]{0,40}",
            cuts in proptest::collection::vec(0usize..40, 0..6),
            limit in 1usize..6,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            prop_assert_eq!(lines(limit, &pieces), lines(limit, &[&text]));
        }
    }
}
