//! The dialect that everything is written in: a document as CommonMark with tables, strikethrough and
//! task lists. Read again, it is the same document.
//!
//! What is text in the document is text in the source, whatever it looks like: characters that could
//! be marks are escaped, and where the rules for marks want a space or punctuation beside them, the
//! letter that stands there is written as a character reference.

use std::borrow::Cow;

use crate::autolink::addresses;
use crate::chat::{Link, Pen, Shown, Sign, blocks, page, running_text};
use crate::document::{Align, Block, Cell, Inline, Marker, Spacing, Task};
use crate::page::{GAP, Page};
use crate::parse::starts_with_scheme;
use crate::runs::{Form, Forms, Piece, Run, runs};
use crate::table::Table;

/// Longer numbers are no numbers of items.
const LARGEST_NUMBER: u64 = 999_999_999;

/// The document as CommonMark.
pub(crate) fn commonmark(document: &[Block]) -> String {
    let mut text = page(&mut CommonMark::default(), document).into_text();
    // Something to do that says nothing is only seen as such if a blank follows.
    if text.ends_with("[ ]") || text.ends_with("[x]") {
        text.push(' ');
    }
    text
}

#[derive(Debug, Default)]
struct CommonMark {
    /// Marks that are written as soon as it is known what follows them.
    pending: Vec<Form>,
    /// The marks of the forms that are open.
    open: Vec<&'static str>,
    behind: Behind,
    place: Place,
    /// The lists that are open.
    lists: Vec<(Marker, Twin)>,
    /// The list that ended last.
    ended: Twin,
}

/// What a mark that was just closed wants to stand behind it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Behind {
    #[default]
    Anything,
    NoLetter,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Text,
    Heading,
    Cell,
}

/// Which signs a list has: with the same signs, two lists behind each other are one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Twin {
    #[default]
    First,
    Second,
}

impl CommonMark {
    /// Writes the marks that wait for what follows them.
    fn open_marks(&mut self, page: &mut Page, next: char) {
        if self.pending.is_empty() {
            return;
        }
        let follows_mark = self.pending.len() > 1 || !next.is_alphanumeric();
        if follows_mark && page.last().is_some_and(may_be_letter) {
            let letter = page.pop().expect("there is a letter");
            page.push(&reference(letter));
        }
        for form in std::mem::take(&mut self.pending) {
            let is_beside_star = page.last() == Some('*');
            let mark = match (form, is_beside_star) {
                (Form::Spoiler, _) if self.place == Place::Cell => "\\|\\|",
                (Form::Spoiler, _) => "||",
                (Form::Strike, _) => "~~",
                (Form::Strong, false) => "**",
                (Form::Strong, true) => "__",
                (Form::Emphasis, false) => "*",
                (Form::Emphasis, true) => "_",
            };
            page.push(mark);
            self.open.push(mark);
        }
        self.behind = Behind::Anything;
    }

    /// Writes something that begins with punctuation and needs no escape.
    fn raw(&mut self, page: &mut Page, text: &str) {
        let Some(first) = text.chars().next() else { return };
        self.open_marks(page, first);
        self.behind = Behind::Anything;
        match self.place {
            Place::Cell => page.push(&text.replace('|', "\\|")),
            Place::Text | Place::Heading => page.push(text),
        }
    }

    fn inline(&mut self, page: &mut Page, text: &[Inline], place: Place) {
        let outer = std::mem::replace(&mut self.place, place);
        running_text(self, page, &runs(text));
        self.behind = Behind::Anything;
        self.place = outer;
    }

    fn row(&mut self, page: &mut Page, cells: &[Cell]) {
        page.push("|");
        for cell in cells {
            page.push(" ");
            self.inline(page, cell, Place::Cell);
            page.push(" |");
        }
        if cells.is_empty() {
            page.push(" |");
        }
    }
}

impl Pen for CommonMark {
    const WIDEST_TABLE: usize = usize::MAX;
    // With dashes or stars, an item that begins with a line across would be a line across.
    const RULE: &'static str = "___";

    fn open(&mut self, _: &mut Page, form: Form) {
        self.pending.push(form);
    }

    fn close(&mut self, page: &mut Page, _: Form) {
        let Some(mark) = self.open.pop() else { return };
        let last = page.last();
        if let Some(blank) = last.filter(|c| c.is_whitespace()) {
            page.pop();
            page.push(&reference(blank));
        }
        page.push(mark);
        let is_letter = last.is_some_and(char::is_alphanumeric) && self.behind == Behind::Anything;
        self.behind = match mark {
            "_" | "__" => Behind::NoLetter,
            _ if is_letter => Behind::Anything,
            _ => Behind::NoLetter,
        };
    }

    fn text(&mut self, page: &mut Page, text: &str) {
        let mut characters = text.chars();
        let Some(first) = characters.next() else { return };
        let opens = !self.pending.is_empty();
        self.open_marks(page, first);
        let is_glued = self.behind == Behind::NoLetter && page.last().is_some_and(|c| c != ' ');
        self.behind = Behind::Anything;
        let wants_reference =
            (is_glued && may_be_letter(first)) || (opens && first.is_whitespace());
        let rest = if wants_reference {
            page.push(&reference(first));
            characters.as_str()
        } else {
            text
        };
        page.push(&escaped(rest, page.is_at_line_start(), self.place));
    }

    fn formula(&mut self, page: &mut Page, line: &str) {
        self.open_marks(page, line.chars().next().unwrap_or('$'));
        self.behind = Behind::Anything;
        page.push(line);
    }

    fn blanks(&mut self, page: &mut Page, blanks: &str) {
        self.behind = Behind::Anything;
        match page.is_at_line_start() {
            // At the start of a line they would mean nothing, or code.
            true => page.push(&format!("&#32;{}", &blanks[1..])),
            false => page.push(blanks),
        }
    }

    fn end_line(&mut self, page: &mut Page) {
        self.behind = Behind::Anything;
        match self.place {
            Place::Cell => page.push("<br>"),
            Place::Text | Place::Heading => page.end_line(),
        }
    }

    fn code(&mut self, page: &mut Page, text: &str) {
        let ticks = "`".repeat(longest_run(text, '`') + 1);
        let is_padded = text.starts_with('`')
            || text.ends_with('`')
            || (text.starts_with(' ') && text.ends_with(' ') && !text.trim().is_empty());
        let space = if is_padded { " " } else { "" };
        let follows_code = page.last() == Some('`') && !page.text().ends_with("\\`");
        if follows_code && self.pending.is_empty() {
            page.push_char(GAP);
        }
        self.raw(page, &format!("{ticks}{space}{text}{space}{ticks}"));
    }

    fn link(&mut self, page: &mut Page, link: Link<'_>) {
        let Link { to, text, forms, glued } = link;
        let is_web = ["http://", "https://"].iter().any(|scheme| starts_with_scheme(to, scheme));
        let is_word = !to.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>'));
        if let [Inline::Text(shown)] = text
            && shown == to
            && is_web
            && is_word
        {
            let has_marks =
                to.contains(['*', '_', '&', '~', '\\', '[', ']', '$', '|', '`', '!', '(']);
            let stands_free = page.last().is_none_or(|c| c == ' ')
                && glued.is_empty()
                && self.pending.is_empty()
                && self.open.is_empty();
            let is_found = || addresses(to).first() == Some(&(0..to.len()));
            if forms.has(Form::Spoiler) {
                // What is hidden is one text, in which addresses are found when it is read.
                self.text(page, to);
            } else if stands_free && !has_marks && is_found() {
                page.push(to);
            } else {
                self.raw(page, &format!("<{to}>"));
            }
            return;
        }
        self.raw(page, "[");
        let without = |forms: Forms, outer: Forms| {
            let outer = Form::ALL.into_iter().filter(|form| outer.has(*form));
            outer.fold(forms, Forms::without)
        };
        let label: Vec<Run<'_>> = runs(text)
            .into_iter()
            .map(|run| Run { forms: without(run.forms, forms), ..run })
            .collect();
        let open = std::mem::take(&mut self.open);
        running_text(self, page, &label);
        self.open = open;
        self.raw(page, &format!("]({})", destination(to)));
    }

    fn shown(&self, forms: Forms, _: &Piece<'_>) -> Forms {
        forms
    }

    fn heading(&mut self, page: &mut Page, level: u8, text: &[Inline]) {
        page.push(&"#".repeat(level.clamp(1, 6).into()));
        if !text.is_empty() {
            page.push(" ");
            self.inline(page, text, Place::Heading);
        }
    }

    fn block_of_code(&mut self, page: &mut Page, language: Option<&str>, text: &str) {
        let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
        page.push(&fence);
        page.push(language.unwrap_or_default());
        page.end_line();
        if !text.is_empty() {
            for line in text.split('\n') {
                page.push(line);
                page.end_line();
            }
        }
        page.push(&fence);
    }

    fn quote(&mut self, page: &mut Page, inner: &[Block]) {
        let margin = page.deepen("> ");
        if inner.is_empty() {
            page.begin_line();
        }
        blocks(self, page, inner, Spacing::Loose);
        page.restore(margin);
    }

    fn table(&mut self, page: &mut Page, table: &Table<'_>) -> Shown {
        self.row(page, table.head);
        page.end_line();
        page.push("|");
        for column in table.columns {
            page.push(match column {
                Align::Left => " --- |",
                Align::Center => " :-: |",
                Align::Right => " --: |",
            });
        }
        for row in table.rows {
            page.end_line();
            self.row(page, row);
        }
        Shown::Yes
    }

    fn keeps_apart(&self, before: &Block, after: &Block) -> bool {
        match (before, after) {
            (Block::Code { .. } | Block::Heading { .. } | Block::Rule, _) => false,
            (_, Block::List { marker: Marker::Number(first), .. }) => *first != 1,
            (Block::Paragraph(_), Block::Table { .. }) => false,
            (_, Block::Paragraph(_) | Block::Table { .. }) => true,
            (Block::Quote(_), Block::Quote(_)) => true,
            (_, _) => false,
        }
    }

    fn begin_list(&mut self, marker: Marker, before: Option<&Block>) {
        let is_same =
            |other: &Marker| std::mem::discriminant(other) == std::mem::discriminant(&marker);
        let follows_twin = matches!(before, Some(Block::List { marker, .. }) if is_same(marker));
        // Three signs on one line would be a line across.
        let other = match (follows_twin, before) {
            (true, _) => Some(self.ended),
            (false, None) => {
                self.lists.last().filter(|(outer, _)| is_same(outer)).map(|(_, it)| *it)
            }
            (false, Some(_)) => None,
        };
        let twin = match other {
            Some(Twin::First) => Twin::Second,
            Some(Twin::Second) | None => Twin::First,
        };
        self.lists.push((marker, twin));
    }

    fn end_list(&mut self) {
        self.ended = self.lists.pop().map(|(_, twin)| twin).unwrap_or_default();
    }

    fn sign(&self, marker: Marker, index: usize, task: Option<Task>) -> Sign {
        let twin = self.lists.last().map(|(_, twin)| *twin).unwrap_or_default();
        let sign = match (marker, twin) {
            (Marker::Bullet, Twin::First) => "- ".to_owned(),
            (Marker::Bullet, Twin::Second) => "* ".to_owned(),
            (Marker::Number(first), twin) => {
                let number = first.saturating_add(index as u64).min(LARGEST_NUMBER);
                format!("{number}{} ", if twin == Twin::First { '.' } else { ')' })
            }
        };
        let width = sign.len();
        let text = match task {
            None => sign,
            Some(Task::Open) => sign + "[ ] ",
            Some(Task::Done) => sign + "[x] ",
        };
        Sign { text, width }
    }
}

/// Whether the rules for marks may take a character for a letter.
fn may_be_letter(c: char) -> bool {
    !c.is_whitespace() && !c.is_ascii_punctuation()
}

fn reference(character: char) -> String {
    format!("&#{};", character as u32)
}

fn longest_run(text: &str, character: char) -> usize {
    text.split(|c| c != character).map(str::len).max().unwrap_or(0)
}

/// Text that shows itself.
fn escaped(text: &str, at_line_start: bool, place: Place) -> Cow<'_, str> {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b" ,.-;:'\"?/%@{}^".contains(&byte) || byte >= 0x80
    };
    let first_word = text.bytes().next().is_none_or(|byte| byte.is_ascii_alphabetic());
    if (first_word || !at_line_start) && text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        let after = rest.peek().map(|(_, next)| *next);
        let is_first = at_line_start && at == 0;
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_mark = match character {
            '\\' | '`' | '*' | '[' | ']' | '~' | '|' | '$' => true,
            // Behind an escaped backslash they would begin or end a formula.
            '(' | ')' if before == Some('\\') => true,
            '_' => !(is_letter(before) && is_letter(after)),
            '&' => after.is_some_and(|c| c == '#' || c.is_ascii_alphabetic()),
            '<' => after.is_none_or(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            '#' => is_first || place == Place::Heading,
            '>' | '-' | '+' | '=' => is_first,
            // Before a link it would make an image of it.
            '!' => after.is_none(),
            '.' | ')' => at_line_start && digits > 0 && at == digits,
            _ => false,
        };
        match (is_mark, character) {
            // Behind a backslash it would begin a formula.
            (true, '[') => out.push_str("&#91;"),
            (true, _) => out.extend(['\\', character]),
            (false, _) => out.push(character),
        }
        before = Some(character);
    }
    Cow::Owned(out)
}

/// An address as it may stand behind the text of a link.
fn destination(to: &str) -> String {
    let is_word = !to.contains(|c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '(' | ')' | '<' | '>')
    });
    let mut out = String::with_capacity(to.len() + 2);
    let mut rest = to.chars().peekable();
    while let Some(character) = rest.next() {
        let is_mark = match character {
            '\\' | '<' | '>' | '`' | '$' => true,
            '&' => rest.peek().is_some_and(|c| *c == '#' || c.is_ascii_alphabetic()),
            _ => false,
        };
        if is_mark {
            out.push('\\');
        }
        out.push(character);
    }
    if is_word && !to.is_empty() { out } else { format!("<{out}>") }
}
