//! Styled text, broken into lines.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// How a piece of text looks: a set of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look(u8);

impl Look {
    pub(crate) const PLAIN: Self = Self(0);
    pub(crate) const BOLD: Self = Self(1);
    pub(crate) const DIM: Self = Self(1 << 1);
    pub(crate) const ITALIC: Self = Self(1 << 2);
    pub(crate) const UNDERLINE: Self = Self(1 << 3);
    pub(crate) const STRIKE: Self = Self(1 << 4);
    pub(crate) const CYAN: Self = Self(1 << 5);

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The parameters of "select graphic rendition", the sequence that sets this look.
    pub(crate) fn parameters(self) -> String {
        let codes = ["1", "2", "3", "4", "9", "36"];
        let set = (0..codes.len()).filter(|bit| self.0 & (1 << bit) != 0).map(|bit| codes[bit]);
        set.collect::<Vec<_>>().join(";")
    }
}

/// Text of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) look: Look,
}

/// Text on one line. Neighbours never look the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
    pub(crate) width: usize,
}

impl Line {
    pub(crate) fn of(text: &str, look: Look) -> Self {
        let mut line = Self::default();
        line.push(text, look);
        line
    }

    pub(crate) fn push(&mut self, text: &str, look: Look) {
        if text.is_empty() {
            return;
        }
        self.width += text.width();
        match self.spans.last_mut() {
            Some(last) if last.look == look => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), look }),
        }
    }

    pub(crate) fn push_blanks(&mut self, count: usize) {
        self.push(&" ".repeat(count), Look::PLAIN);
    }

    pub(crate) fn append(&mut self, other: Line) {
        for span in other.spans {
            self.push(&span.text, span.look);
        }
    }
}

/// Breaks text into lines of at most `width` columns: at spaces where there are any, else between
/// grapheme clusters. A line break in the text is a line break.
pub(crate) fn wrap(text: &[Span], width: usize) -> Vec<Line> {
    let mut wrapping = Wrapping { width: width.max(1), ..Wrapping::default() };
    for span in text {
        for cluster in span.text.graphemes(true) {
            wrapping.push(cluster, span.look);
        }
    }
    wrapping.end_word();
    wrapping.lines.push(wrapping.line);
    wrapping.lines
}

/// Breaks text into lines of at most `width` columns wherever a line is full, so that every space
/// stays.
pub(crate) fn cut(text: &Span, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    for cluster in text.text.graphemes(true) {
        let is_full = line.width > 0 && line.width + cluster.width() > width;
        if cluster == "\n" || is_full {
            lines.push(std::mem::take(&mut line));
        }
        if cluster != "\n" {
            line.push(cluster, text.look);
        }
    }
    lines.push(line);
    lines
}

#[derive(Default)]
struct Wrapping {
    width: usize,
    lines: Vec<Line>,
    line: Line,
    /// What stands between the line and the word.
    blanks: Line,
    word: Line,
}

impl Wrapping {
    fn push(&mut self, cluster: &str, look: Look) {
        match cluster {
            "\n" => {
                self.end_word();
                self.end_line();
            }
            " " => {
                self.end_word();
                self.blanks.push(cluster, look);
            }
            _ => {
                if self.word.width + cluster.width() > self.width {
                    self.end_word();
                }
                self.word.push(cluster, look);
            }
        }
    }

    fn end_word(&mut self) {
        if self.word.spans.is_empty() {
            return;
        }
        if self.line.width + self.blanks.width + self.word.width > self.width {
            self.blanks = Line::default();
            if self.line.width > 0 {
                self.end_line();
            }
        }
        self.line.append(std::mem::take(&mut self.blanks));
        self.line.append(std::mem::take(&mut self.word));
    }

    fn end_line(&mut self) {
        self.blanks = Line::default();
        self.lines.push(std::mem::take(&mut self.line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, expect: &[&str]) {
        let span = Span { text: text.to_owned(), look: Look::PLAIN };
        let lines: Vec<String> = wrap(&[span], width)
            .into_iter()
            .map(|line| line.spans.into_iter().map(|span| span.text).collect())
            .collect();
        assert_eq!(lines, expect, "{text:?} at {width}");
    }

    #[test]
    fn code_is_cut_where_the_line_is_full() {
        let code = Span { text: "a  b  c\n\n  d".to_owned(), look: Look::PLAIN };
        let lines: Vec<String> = cut(&code, 4)
            .into_iter()
            .map(|line| line.spans.into_iter().map(|span| span.text).collect())
            .collect();
        assert_eq!(lines, ["a  b", "  c", "", "  d"]);
    }

    #[test]
    fn text_breaks_at_spaces_and_long_words_between_clusters() {
        check("", 10, &[""]);
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 3, &["one", "two", "thr", "ee"]);
        check("a\nb", 10, &["a", "b"]);
        check("a  b", 10, &["a  b"]);
        check("日本語", 4, &["日本", "語"]);
        check("日本語", 1, &["日", "本", "語"]);
        check("e\u{301}e\u{301}e\u{301}", 2, &["e\u{301}e\u{301}", "e\u{301}"]);
        check("x abcdefgh", 4, &["x", "abcd", "efgh"]);
    }
}
