//! A text that grows line by line, with what stands before each line.

/// Shown as nothing; it keeps two characters apart that would mean something together.
pub(crate) const GAP: char = '\u{200b}';

/// The text. A line that has nothing but its margin has no blanks at its end.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    /// What every line begins with.
    margin: String,
    /// What the next line begins with instead.
    sign: Option<String>,
    line: Line,
}

/// What the last line has so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Not even its margin.
    #[default]
    Nothing,
    /// Blanks behind its margin.
    Blanks,
    Words,
}

/// The margin as it was; see [`Page::deepen`].
#[must_use]
pub(crate) struct Margin(usize);

impl Page {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Whether no word was written on this line yet.
    pub(crate) fn is_at_line_start(&self) -> bool {
        self.line != Line::Words
    }

    /// The last character of this line.
    pub(crate) fn last(&self) -> Option<char> {
        if self.line == Line::Words { self.text.chars().next_back() } else { None }
    }

    /// Writes what has no line break in it.
    pub(crate) fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.begin_line();
        self.text.push_str(text);
        if self.line == Line::Blanks && !text.bytes().all(|byte| byte == b' ') {
            self.line = Line::Words;
        }
    }

    pub(crate) fn push_char(&mut self, character: char) {
        self.push(character.encode_utf8(&mut [0; 4]));
    }

    /// Takes the last character of the line back.
    pub(crate) fn pop(&mut self) -> Option<char> {
        if self.line == Line::Words { self.text.pop() } else { None }
    }

    /// Where the next word will stand: writes the margin, if that has not happened yet.
    pub(crate) fn begin_line(&mut self) {
        if self.line == Line::Nothing {
            let sign = self.sign.take();
            self.text.push_str(sign.as_deref().unwrap_or(&self.margin));
            self.line = Line::Blanks;
        }
    }

    pub(crate) fn end_line(&mut self) {
        self.finish_line();
        self.text.push('\n');
        self.line = Line::Nothing;
    }

    /// Writes the sign of a line that got no words.
    pub(crate) fn finish(&mut self) {
        if self.sign.is_some() {
            self.finish_line();
        }
    }

    fn finish_line(&mut self) {
        if self.line == Line::Nothing {
            self.begin_line();
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
    }

    /// Puts something before every line that is not begun yet.
    pub(crate) fn deepen(&mut self, by: &str) -> Margin {
        let before = Margin(self.margin.len());
        if let Some(sign) = &mut self.sign {
            sign.push_str(by);
        }
        self.margin.push_str(by);
        before
    }

    /// Puts a sign before the next line, and as many blanks before the others.
    pub(crate) fn hang(&mut self, sign: &str, width: usize) -> Margin {
        let before = Margin(self.margin.len());
        let line = self.sign.get_or_insert_with(|| self.margin.clone());
        line.push_str(sign);
        self.margin.extend(std::iter::repeat_n(' ', width));
        before
    }

    pub(crate) fn restore(&mut self, margin: Margin) {
        self.margin.truncate(margin.0);
    }

    /// Writes lines that begin at the left edge, whatever they stand in: what has to be copied as it is
    /// has no margin.
    pub(crate) fn at_the_edge(&mut self, lines: impl FnOnce(&mut Self)) {
        if self.line != Line::Nothing || self.sign.is_some() {
            self.end_line();
        }
        let margin = std::mem::take(&mut self.margin);
        lines(self);
        self.margin = margin;
    }
}
