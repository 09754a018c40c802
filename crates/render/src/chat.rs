//! What the dialects of chats have in common: blocks below each other on lines, running text as runs.
//! A dialect is a [`Pen`] and says only how its own marks are written.

use unicode_width::UnicodeWidthStr;

use crate::document::{Block, Inline, Item, Marker, Spacing, Task, hides_address};
use crate::page::Page;
use crate::runs::{Form, Forms, Piece, Run, runs};
use crate::table::{self, Table};

/// Writes one dialect.
pub(crate) trait Pen: Sized {
    /// The widest table that is shown in columns.
    const WIDEST_TABLE: usize;

    /// A line across.
    const RULE: &'static str = "———";

    /// Says what the running text that follows consists of.
    fn begin_text(&mut self, _runs: &[Run<'_>]) {}

    /// Begins a form.
    fn open(&mut self, page: &mut Page, form: Form);

    /// Ends the form that was begun last.
    fn close(&mut self, page: &mut Page, form: Form);

    /// Writes text, in which nothing may become a mark. It has no line breaks, and no blanks around it.
    fn text(&mut self, page: &mut Page, text: &str);

    /// Writes a line of a formula.
    fn formula(&mut self, page: &mut Page, line: &str) {
        self.text(page, line);
    }

    /// Writes the blanks between two words.
    fn blanks(&mut self, page: &mut Page, blanks: &str) {
        page.push(blanks);
    }

    /// Ends a line within running text.
    fn end_line(&mut self, page: &mut Page) {
        page.end_line();
    }

    /// Writes code within a line.
    fn code(&mut self, page: &mut Page, text: &str);

    /// Writes a link that stands in some forms. `next` is what follows it on its line.
    fn link(&mut self, page: &mut Page, link: Link<'_>);

    /// Which of the forms of a piece can be shown.
    fn shown(&self, forms: Forms, piece: &Piece<'_>) -> Forms;

    /// Writes a title.
    fn heading(&mut self, page: &mut Page, level: u8, text: &[Inline]);

    /// Writes a block of code.
    fn block_of_code(&mut self, page: &mut Page, language: Option<&str>, text: &str);

    /// Writes what somebody else said, with [`blocks`].
    fn quote(&mut self, page: &mut Page, inner: &[Block]);

    /// Writes a table, if it can be shown as one; otherwise it becomes a list.
    fn table(&mut self, page: &mut Page, table: &Table<'_>) -> Shown;

    /// Whether two blocks of a tight list have an empty line between them all the same.
    fn keeps_apart(&self, _before: &Block, _after: &Block) -> bool {
        false
    }

    /// Says that a list begins, and what stands before it.
    fn begin_list(&mut self, _marker: Marker, _before: Option<&Block>) {}

    /// Says that the list that began last ends.
    fn end_list(&mut self) {}

    /// What stands before an item.
    fn sign(&self, marker: Marker, index: usize, task: Option<Task>) -> Sign {
        let text = plain_sign(marker, index, task);
        Sign { width: text.width(), text }
    }
}

/// Whether something was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    No,
}

/// What stands before an item, and how far its other lines are moved to the right.
#[derive(Debug)]
pub(crate) struct Sign {
    pub(crate) text: String,
    pub(crate) width: usize,
}

/// A link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) to: &'a str,
    pub(crate) text: &'a [Inline],
    /// What it stands in.
    pub(crate) forms: Forms,
    /// What stands behind it without a blank between them.
    pub(crate) glued: &'a str,
}

pub(crate) fn plain_sign(marker: Marker, index: usize, task: Option<Task>) -> String {
    match (task, marker) {
        (Some(Task::Open), _) => "☐ ".to_owned(),
        (Some(Task::Done), _) => "☑ ".to_owned(),
        (None, Marker::Bullet) => "• ".to_owned(),
        (None, Marker::Number(first)) => format!("{}. ", first.saturating_add(index as u64)),
    }
}

/// A whole document on a page.
pub(crate) fn page<P: Pen>(pen: &mut P, document: &[Block]) -> Page {
    let mut page = Page::default();
    blocks(pen, &mut page, document, Spacing::Loose);
    page.finish();
    page
}

/// Blocks below each other.
pub(crate) fn blocks<P: Pen>(pen: &mut P, page: &mut Page, blocks: &[Block], spacing: Spacing) {
    let mut before: Option<&Block> = None;
    for one in blocks {
        if let Some(before) = before {
            page.end_line();
            if spacing == Spacing::Loose || pen.keeps_apart(before, one) {
                page.end_line();
            }
        }
        block(pen, page, one, before);
        before = Some(one);
    }
}

fn block<P: Pen>(pen: &mut P, page: &mut Page, block: &Block, before: Option<&Block>) {
    match block {
        Block::Paragraph(text) => running_text(pen, page, &runs(text)),
        Block::Heading { level, text } => pen.heading(page, *level, text),
        Block::List { marker, spacing, items } => {
            pen.begin_list(*marker, before);
            list(pen, page, *marker, *spacing, items);
            pen.end_list();
        }
        Block::Quote(inner) => pen.quote(page, inner),
        Block::Code { language, text } => pen.block_of_code(page, language.as_deref(), text),
        Block::Table { columns, head, rows } => {
            let table = Table { columns, head, rows };
            if pen.table(page, &table) == Shown::No {
                list(pen, page, Marker::Bullet, Spacing::Tight, &table::records(&table));
            }
        }
        Block::Rule => page.push(P::RULE),
    }
}

fn list<P: Pen>(pen: &mut P, page: &mut Page, marker: Marker, spacing: Spacing, items: &[Item]) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            page.end_line();
            if spacing == Spacing::Loose {
                page.end_line();
            }
        }
        let sign = pen.sign(marker, index, item.task);
        let margin = page.hang(&sign.text, sign.width);
        let is_text = |block: &Block| matches!(block, Block::Paragraph(_));
        if item.task.is_some() && item.blocks.first().is_some_and(|first| !is_text(first)) {
            page.end_line();
        }
        blocks(pen, page, &item.blocks, spacing);
        page.finish();
        page.restore(margin);
    }
}

/// The lines of a table that fits into columns, and loses nothing by it: neither an address nor a form
/// without which its words mean something else.
pub(crate) fn columns<P: Pen>(table: &Table<'_>) -> Option<Vec<String>> {
    let lasts = |run: &Run<'_>| run.forms.has(Form::Strike) || run.forms.has(Form::Spoiler);
    if table.cells().any(|cell| hides_address(cell) || runs(cell).iter().any(lasts)) {
        return None;
    }
    table::columns(table, P::WIDEST_TABLE)
}

/// Writes runs. Forms end at the end of a line and begin again on the next, and neither begin nor end
/// beside a space: hardly any dialect sees marks there.
pub(crate) fn running_text<P: Pen>(pen: &mut P, page: &mut Page, runs: &[Run<'_>]) {
    pen.begin_text(runs);
    label(pen, page, runs);
}

/// Writes runs that are a part of other running text.
pub(crate) fn label<P: Pen>(pen: &mut P, page: &mut Page, runs: &[Run<'_>]) {
    let mut writer = Writer { open: Vec::new(), blanks: String::new() };
    for (index, run) in runs.iter().enumerate() {
        match &run.piece {
            Piece::Break => writer.end_line(pen, page),
            Piece::Text(text) => writer.text(pen, page, run, text),
            Piece::Math(text) => {
                for (index, line) in text.split('\n').enumerate() {
                    if index > 0 {
                        writer.end_line(pen, page);
                    }
                    writer.change(pen, page, pen.shown(run.forms, &run.piece));
                    pen.formula(page, line);
                }
            }
            Piece::Code(text) => {
                writer.change(pen, page, pen.shown(run.forms, &run.piece));
                pen.code(page, text);
            }
            Piece::Link { to, text } => {
                let forms = pen.shown(run.forms, &run.piece);
                writer.change(pen, page, forms);
                let glued = glued(&runs[index + 1..]);
                pen.link(page, Link { to, text, forms, glued: &glued });
            }
        }
    }
    writer.close(pen, page);
}

/// What stands behind a link without a blank between them.
fn glued(runs: &[Run<'_>]) -> String {
    let mut word = String::new();
    for run in runs {
        let text = match &run.piece {
            Piece::Text(text) => text,
            Piece::Math(text) => *text,
            Piece::Code(_) => "` ",
            Piece::Link { .. } => "[ ",
            Piece::Break => break,
        };
        let beginning = text.split(char::is_whitespace).next().unwrap_or_default();
        word.push_str(beginning);
        if beginning.len() < text.len() {
            break;
        }
    }
    word
}

struct Writer {
    open: Vec<Form>,
    /// What stands between the last word and the next.
    blanks: String,
}

impl Writer {
    fn text<P: Pen>(&mut self, pen: &mut P, page: &mut Page, run: &Run<'_>, text: &str) {
        let words = text.trim_start_matches(' ');
        self.blanks.push_str(&text[..text.len() - words.len()]);
        let words = words.trim_end_matches(' ');
        if words.is_empty() {
            return;
        }
        self.change(pen, page, pen.shown(run.forms, &run.piece));
        pen.text(page, words);
        self.blanks.push_str(&text[text.trim_end_matches(' ').len()..]);
    }

    /// Ends the forms that end here and begins those that begin here.
    fn change<P: Pen>(&mut self, pen: &mut P, page: &mut Page, forms: Forms) {
        while self.open.iter().any(|form| !forms.has(*form)) {
            let form = self.open.pop().expect("one of them is open");
            pen.close(page, form);
        }
        if !self.blanks.is_empty() {
            pen.blanks(page, &std::mem::take(&mut self.blanks));
        }
        for form in Form::ALL {
            if forms.has(form) && !self.open.contains(&form) {
                pen.open(page, form);
                self.open.push(form);
            }
        }
    }

    fn end_line<P: Pen>(&mut self, pen: &mut P, page: &mut Page) {
        self.close(pen, page);
        pen.end_line(page);
    }

    fn close<P: Pen>(&mut self, pen: &mut P, page: &mut Page) {
        while let Some(form) = self.open.pop() {
            pen.close(page, form);
        }
        self.blanks.clear();
    }
}
