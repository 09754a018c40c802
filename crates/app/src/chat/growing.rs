//! An answer that grows: which of it is finished and which may still change.
//!
//! In Markdown a block can change until the first line of the next one is there: a line of dashes
//! makes a heading of a paragraph, another item makes a tight list loose. So an answer is printed
//! block by block, and only its last block is live.

use talaria_model::OutboundId;
use talaria_render::{Block, Colour, Style, ansi, parse};

/// Cuts that are looked at before we wait for more text.
const CUTS: usize = 8;

/// An answer that is being written.
#[derive(Debug)]
pub(super) struct Growing {
    id: OutboundId,
    style: Style,
    /// The source of what is printed for good.
    printed: String,
}

/// An answer as it is to be shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Grown {
    /// Lines to print for good.
    pub(super) finished: Vec<String>,
    /// Lines that may still change.
    pub(super) live: Vec<String>,
}

impl Growing {
    pub(super) fn begin(id: OutboundId, style: Style) -> Self {
        Self { id, style, printed: String::new() }
    }

    /// Whether this is the delivery that grows.
    pub(super) fn is(&self, id: &OutboundId) -> bool {
        self.id.session == id.session && self.id.delivery == id.delivery
    }

    /// The answer so far.
    pub(super) fn grow(&mut self, text: &str) -> Grown {
        if self.printed.starts_with(text) {
            // It is being written again and has not come further than before.
            return Grown::default();
        }
        let mut finished = self.catch_up(text);
        let rest = &text[self.printed.len()..];
        let cut = finished_part(rest);
        if cut > 0 {
            finished.extend(self.lines(&rest[..cut]));
            finished.push(String::new());
            self.printed.push_str(&rest[..cut]);
        }
        Grown { finished, live: self.lines(&rest[cut..]) }
    }

    /// The whole answer: what is still to be printed.
    pub(super) fn finish(&mut self, text: &str) -> Vec<String> {
        if text.trim_end() == self.printed.trim_end() {
            return Vec::new();
        }
        let mut finished = self.catch_up(text);
        finished.extend(self.lines(&text[self.printed.len()..]));
        finished
    }

    /// What is printed stays printed: if the text does not begin like that any more, it is printed
    /// again from its beginning.
    fn catch_up(&mut self, text: &str) -> Vec<String> {
        if text.starts_with(&self.printed) {
            return Vec::new();
        }
        self.printed.clear();
        let mut lines = self.lines("---\n\n*The answer begins again:*");
        lines.push(String::new());
        lines
    }

    fn lines(&self, text: &str) -> Vec<String> {
        rendered(text, self.style)
    }
}

/// Markdown as lines for a terminal.
pub(super) fn rendered(text: &str, style: Style) -> Vec<String> {
    let text = ansi(&parse(text), style);
    if text.is_empty() { Vec::new() } else { text.lines().map(str::to_owned).collect() }
}

/// How much of the beginning cannot change any more, whatever follows. Zero, or the position behind
/// an empty line.
fn finished_part(text: &str) -> usize {
    let cuts = text.rmatch_indices("\n\n").map(|(at, gap)| at + gap.len());
    // The first line of the next block has to be complete: `2` may become `2.` and go on a list.
    let cuts = cuts.filter(|cut| text[*cut..].trim_start().contains('\n')).take(CUTS);
    // With a word behind it, a fence that is still open shows: it swallows the word. Otherwise a cut
    // through a code block could look right for a moment.
    let with_word = |text: &str| parse(&format!("{text}\n\nword"));
    let mut whole = None;
    for cut in cuts {
        let (before, after) = (with_word(&text[..cut]), with_word(&text[cut..]));
        let Some((Block::Paragraph(_), before)) = before.blocks().split_last() else { continue };
        let whole = whole.get_or_insert_with(|| with_word(text));
        let split = before.iter().chain(after.blocks());
        if !before.is_empty() && split.eq(whole.blocks().iter()) {
            return cut;
        }
    }
    0
}

/// The style for a screen this wide. Lines are kept short enough to read, and one column is left
/// free, where terminals disagree about wrapping.
pub(super) fn style(columns: usize, colour: Colour) -> Style {
    const WIDEST: usize = 100;
    Style { width: columns.saturating_sub(1).min(WIDEST), colour }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::live::tests::Emulator;
    use crate::chat::live::{Live, Size};
    use proptest::prelude::*;
    use talaria_model::SessionId;

    fn growing(size: Size) -> Growing {
        let id = OutboundId { session: SessionId::literal("s"), delivery: 1, part: 0 };
        Growing::begin(id, style(size.columns, Colour::On))
    }

    /// The screen after the answer grew to each of these lengths.
    fn grown(text: &str, lengths: &[usize], size: Size) -> Vec<String> {
        let (mut answer, mut live, mut terminal) =
            (growing(size), Live::on(size), Emulator::of(size));
        for length in lengths {
            let so_far = &text[..text.floor_char_boundary(*length)];
            let Grown { finished, live: lines } = answer.grow(so_far);
            terminal.write(&live.draw(&finished, &lines));
        }
        terminal.write(&live.draw(&answer.finish(text), &[]));
        terminal.text()
    }

    fn at_once(text: &str, size: Size) -> Vec<String> {
        let mut terminal = Emulator::of(size);
        terminal.write(&Live::on(size).draw(&rendered(text, style(size.columns, Colour::On)), &[]));
        terminal.text()
    }

    const EVERYTHING: &str = "\
# A title\n\nSome *running* text that is long enough to be wrapped at the end of a line.\n\n\
- one\n- two\n  - nested\n\n1. first\n\n2. second\n\n3. third\n\nA title below\n===\n\n\
```rust\nfn main() {\n\n    println!(\"日本\");\n}\n```\n\n> a quote\n>\n> of two\n\n\
| a | b |\n|---|---|\n| 1 | a longer cell |\n| 2 | x |\n\nThe end. [a link](https://example.org)";

    #[test]
    fn an_answer_that_grew_looks_like_one_that_came_at_once() {
        for (columns, rows) in [(80, 24), (30, 10), (22, 4)] {
            let size = Size { columns, rows };
            for step in [1, 3, 17, 1000] {
                let lengths: Vec<usize> = (0..EVERYTHING.len()).step_by(step).collect();
                let grown = grown(EVERYTHING, &lengths, size);
                assert_eq!(grown, at_once(EVERYTHING, size), "{columns}×{rows}, by {step}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_it_grew(
            blocks in proptest::collection::vec(
                prop_oneof![
                    "[a-z ]{1,60}".boxed(),
                    "# [a-z]{1,10}".boxed(),
                    "(- [a-z]{1,9}\n){1,4}".boxed(),
                    "1\\. [a-z]{1,9}\n\n2\\. [a-z]{1,9}".boxed(),
                    "```\n[a-z]{0,30}\n\n[a-z]{0,9}\n```".boxed(),
                    "- ```\n  [a-z]{0,30}\n\n  [a-z]{0,9}\n  ```".boxed(),
                    "> [a-z]{1,9}\n> [a-z]{1,9}".boxed(),
                    "\\| [a-z] \\| b \\|\n\\|---\\|---\\|\n\\| 1 \\| 2 \\|".boxed(),
                    Just("---".to_owned()).boxed(),
                ],
                1..8,
            ),
            gaps in proptest::collection::vec("\n{2,3}", 8),
            mut lengths in proptest::collection::vec(0usize..400, 0..12),
            columns in 22usize..60,
            rows in 2usize..12,
        ) {
            let text: String =
                blocks.iter().zip(&gaps).flat_map(|(block, gap)| [block.as_str(), gap]).collect();
            lengths.sort_unstable();
            let size = Size { columns, rows };
            prop_assert_eq!(grown(&text, &lengths, size), at_once(&text, size));
        }
    }

    #[test]
    fn a_block_is_printed_once_the_next_one_has_begun() {
        let mut answer = growing(Size { columns: 80, rows: 24 });
        let grown = |finished: &[&str], live: &[&str]| Grown {
            finished: finished.iter().map(|line| (*line).to_owned()).collect(),
            live: live.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(answer.grow("One"), grown(&[], &["One"]));
        assert_eq!(answer.grow("One\n\nTwo"), grown(&[], &["One", "", "Two"]));
        assert_eq!(answer.grow("One\n\nTwo\nis"), grown(&["One", ""], &["Two", "is"]));
        assert_eq!(answer.grow("One\n\nTwo\nis two"), grown(&[], &["Two", "is two"]));
        assert_eq!(answer.finish("One\n\nTwo\nis two."), ["Two", "is two."]);
    }

    #[test]
    fn a_code_block_is_not_cut_although_both_halves_look_like_one() {
        for text in [
            "a\n\n```\nb\n\n\n```\n\n\n```\n\n\n\n```",
            "a\n\n- ```\n  b\n\n  \n  ```\n\n```\n\n\n\n```",
        ] {
            let size = Size { columns: 22, rows: 4 };
            for length in 0..text.len() {
                assert_eq!(grown(text, &[length], size), at_once(text, size), "{length}");
            }
        }
    }

    #[test]
    fn what_the_agent_is_doing_is_not_taken_for_a_next_block() {
        let mut answer = growing(Size { columns: 80, rows: 24 });
        let plain = Style { colour: Colour::Off, ..answer.style };
        answer.style = plain;
        assert_eq!(answer.grow("Let me\n\n*searching…*").finished, Vec::<String>::new());
        assert_eq!(answer.grow("Let me see.").live, ["Let me see."]);
    }

    #[test]
    fn an_answer_that_begins_again_is_printed_from_where_it_differs() {
        let mut answer = growing(Size { columns: 80, rows: 24 });
        answer.style.colour = Colour::Off;
        assert_eq!(answer.grow("One\n\nTwo\nmore").finished, ["One", ""]);
        assert_eq!(answer.grow("On"), Grown::default());
        assert_eq!(answer.grow("One\n\nTwo").live, ["Two"]);
        assert_eq!(answer.grow("Once").live, ["Once"]);
        assert_eq!(answer.finish("Once more"), ["Once more"]);
    }

    #[test]
    fn nothing_is_left_to_print_of_an_answer_that_is_printed() {
        let mut answer = growing(Size { columns: 80, rows: 24 });
        answer.grow("One\n\nTwo\nmore");
        assert_eq!(answer.finish("One\n"), Vec::<String>::new());
    }
}
