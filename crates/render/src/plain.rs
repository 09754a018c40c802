//! The dialect of platforms that show characters and nothing else: readable text without marks.

use crate::chat::{Link, Pen, Shown, blocks, page, running_text};
use crate::document::{Block, Document, Inline, Spacing, shows_address};
use crate::page::Page;
use crate::runs::{Form, Forms, Piece, runs};
use crate::table::{Table, columns};

/// The document as text. Code is kept as it is, a link becomes `text (address)`.
pub fn plain(document: &Document) -> String {
    plain_blocks(document.blocks())
}

pub(crate) fn plain_blocks(blocks: &[Block]) -> String {
    page(&mut Plain, blocks).into_text()
}

struct Plain;

impl Pen for Plain {
    // Wider tables would be broken by a telephone.
    const WIDEST_TABLE: usize = 48;

    fn open(&mut self, page: &mut Page, form: Form) {
        if form == Form::Spoiler {
            page.push("||");
        }
    }

    fn close(&mut self, page: &mut Page, form: Form) {
        if form == Form::Spoiler {
            page.push("||");
        }
    }

    fn text(&mut self, page: &mut Page, text: &str) {
        page.push(text);
    }

    fn code(&mut self, page: &mut Page, text: &str) {
        page.push(text);
    }

    fn link(&mut self, page: &mut Page, link: Link<'_>) {
        running_text(self, page, &runs(link.text));
        if !shows_address(link.text, link.to) {
            page.push(" (");
            page.push(link.to);
            page.push(")");
        }
    }

    fn shown(&self, forms: Forms, _: &Piece<'_>) -> Forms {
        forms
    }

    fn heading(&mut self, page: &mut Page, _: u8, text: &[Inline]) {
        running_text(self, page, &runs(text));
    }

    fn block_of_code(&mut self, page: &mut Page, _: Option<&str>, text: &str) {
        lines(page, text.split('\n'));
    }

    fn quote(&mut self, page: &mut Page, inner: &[Block]) {
        let margin = page.deepen("> ");
        blocks(self, page, inner, Spacing::Loose);
        page.restore(margin);
    }

    fn table(&mut self, page: &mut Page, table: &Table<'_>) -> Shown {
        let Some(columns) = columns(table, Self::WIDEST_TABLE) else { return Shown::No };
        lines(page, columns.iter().map(String::as_str));
        Shown::Yes
    }
}

/// Lines as they are, behind the margin.
pub(crate) fn lines<'a>(page: &mut Page, lines: impl Iterator<Item = &'a str>) {
    for (index, line) in lines.enumerate() {
        if index > 0 {
            page.end_line();
        }
        page.push(line);
    }
}
