//! Takes a document apart into parts that each fit into one message, measured in the dialect that the
//! message will be in.

mod cut;
mod flat;
mod ruler;

use std::collections::VecDeque;

use talaria_model::TextLimit;

use crate::commonmark::commonmark;
use crate::dialect::Dialect;
use crate::document::{Block, Inline, Item, Marker, Spacing};
use crate::length::Limit;
use crate::parse::parse;
use crate::table::{self, Table};

use cut::Cutter;
use ruler::{Ruler, Size, says_something};

/// All the [`parts_in`] a dialect.
pub fn split_in(markdown: &str, limit: TextLimit, dialect: Dialect) -> Vec<String> {
    parts_in(markdown, limit, dialect).collect()
}

/// Takes Markdown apart, lazily, so that each part rendered in the dialect fits the limit; where the
/// dialect is Markdown, each part as it is.
///
/// The parts are Markdown; whoever sends one parses and renders it. Each is a document by itself: a code
/// block goes on in a code block of the same language, a quote in a quote, a list with the number that
/// is due, a table under the same titles, bold text in bold. Links, formulas and code within a line are
/// cut only when they are too long for any message. Parts end between blocks where that leaves them at
/// least half full, else between items, lines, sentences and words, in this order; between grapheme
/// clusters only where a word is too long for any message. A code block or a table that fits into one
/// message is not cut, and no title ends a part unless titles fill half of it. No part shows nothing.
///
/// A text that fits is its only part, untouched. A text that shows nothing has no parts. In a limit too
/// small for the signs of lists and quotes and the fences of code, these are given up, and limits too
/// small for one character count as what it takes.
pub fn parts_in(markdown: &str, limit: TextLimit, dialect: Dialect) -> PartsIn {
    let limit = Limit::of(limit);
    let ruler = Ruler::new(dialect, limit);
    let document = parse(markdown);
    if !says_something(document.blocks()) {
        PartsIn { ruler, whole: None, rest: VecDeque::new() }
    } else if ruler.fits(markdown, document.blocks()) {
        PartsIn { ruler, whole: Some(markdown.to_owned()), rest: VecDeque::new() }
    } else {
        PartsIn { ruler, whole: None, rest: document.blocks.into() }
    }
}

/// The parts of a text; see [`parts_in`].
#[derive(Debug)]
pub struct PartsIn {
    ruler: Ruler,
    /// The text, if it is its only part.
    whole: Option<String>,
    /// What is not in any part yet.
    rest: VecDeque<Block>,
}

impl Iterator for PartsIn {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if let Some(whole) = self.whole.take() {
            return Some(whole);
        }
        let mut room = self.ruler.room();
        loop {
            let blocks = self.fill(room);
            if blocks.is_empty() {
                return None;
            }
            if !says_something(&blocks) {
                continue;
            }
            let part = commonmark(&blocks);
            let excess = self.ruler.excess(&part);
            if excess == 0 || room.length == 1 {
                return Some(part);
            }
            room.length = room.length.saturating_sub(excess.max(room.length / 8)).max(1);
            blocks.into_iter().rev().for_each(|block| self.rest.push_front(block));
        }
    }
}

impl PartsIn {
    /// As many blocks as there is room for, at least something of the first one.
    fn fill(&mut self, room: Size) -> Vec<Block> {
        let mut filled: Vec<Block> = Vec::new();
        let mut used = Size::default();
        while let Some(block) = self.rest.pop_front() {
            let before = if filled.is_empty() { used } else { used + self.ruler.gap() };
            let size = self.ruler.size(std::slice::from_ref(&block));
            if let Some(size) = size.filter(|size| (before + *size).fits(room)) {
                used = before + size;
                filled.push(block);
                continue;
            }
            let could_be_whole = size.is_some_and(|size| size.fits(room));
            match self.divide(block, before, room, &filled, could_be_whole) {
                Ok((first, others)) => {
                    filled.push(first);
                    others.into_iter().rev().for_each(|block| self.rest.push_front(block));
                    return filled;
                }
                Err(block) if filled.is_empty() => {
                    loosened(block).into_iter().rev().for_each(|block| self.rest.push_front(block));
                }
                Err(block) => {
                    self.rest.push_front(block);
                    self.keep_together(&mut filled, room);
                    return filled;
                }
            }
        }
        filled
    }

    /// Divides a block that does not fit behind what is filled in already, unless it is better whole.
    fn divide(
        &self,
        block: Block,
        used: Size,
        room: Size,
        filled: &[Block],
        could_be_whole: bool,
    ) -> Result<(Block, Vec<Block>), Block> {
        let says_something = filled.iter().any(|block| !matches!(block, Block::Heading { .. }));
        let is_one_thing = matches!(
            block,
            Block::Code { .. } | Block::Table { .. } | Block::Heading { .. } | Block::Rule
        );
        if says_something && could_be_whole && (is_one_thing || used.is_late(room)) {
            return Err(block);
        }
        Cutter::new(&self.ruler, used, room, filled.is_empty()).divide(block)
    }

    /// Takes the blocks away that mean nothing without what follows them: titles, and a line that ends
    /// in a colon. Where that would leave the part less than half full there is nothing but such blocks,
    /// and the part ends with one of them: else a text of titles would be cut into parts of one each.
    fn keep_together(&mut self, filled: &mut Vec<Block>, room: Size) {
        let size = |block: &Block| self.ruler.size(std::slice::from_ref(block));
        let takes_along = |last: &Block, next: Option<&Block>| match last {
            Block::Heading { .. } => true,
            Block::Paragraph(text) if ends_in_colon(text) => next.is_some_and(|next| {
                matches!([last, next].map(size), [Some(lead), Some(next)]
                    if lead.is_small(room) && (lead + self.ruler.gap() + next).fits(room))
            }),
            _ => false,
        };
        let mut taken = Size::default();
        let mut kept = filled.len();
        let mut next = self.rest.front();
        while kept > 1 && takes_along(&filled[kept - 1], next) {
            kept -= 1;
            next = filled.get(kept);
            taken = taken + size(&filled[kept]).unwrap_or(room) + self.ruler.gap();
            if taken.is_late(room) {
                return;
            }
        }
        filled.drain(kept..).rev().for_each(|block| self.rest.push_front(block));
    }
}

fn ends_in_colon(text: &[Inline]) -> bool {
    matches!(text.last(), Some(Inline::Text(text)) if text.trim_end().ends_with([':', '：']))
        || matches!(text.last(), Some(Inline::Strong(inner)) if ends_in_colon(inner))
}

/// A block of which not even the beginning fits into a part, with less around its text.
fn loosened(block: Block) -> Vec<Block> {
    match block {
        Block::Paragraph(text) | Block::Heading { text, .. } => {
            vec![Block::Paragraph(flat::without_forms(text))]
        }
        Block::Code { text, .. } => vec![Block::Paragraph(flat::lines(&text))],
        Block::Quote(inner) => inner,
        Block::List { marker, spacing, mut items } => {
            if items.is_empty() {
                return Vec::new();
            }
            let mut blocks = without_sign(marker, items.remove(0));
            if !items.is_empty() {
                blocks.push(Block::List { marker: after(marker, 1), spacing, items });
            }
            blocks
        }
        Block::Table { columns, head, rows } => {
            let table = Table { columns: &columns, head: &head, rows: &rows };
            let (marker, spacing) = (Marker::Bullet, Spacing::Tight);
            vec![Block::List { marker, spacing, items: table::records(&table) }]
        }
        Block::Rule => Vec::new(),
    }
}

/// The blocks of an item; what its sign says becomes text.
fn without_sign(marker: Marker, item: Item) -> Vec<Block> {
    let Item { task, mut blocks } = item;
    let sign = crate::chat::plain_sign(marker, 0, task);
    if task.is_some() || marker != Marker::Bullet {
        match blocks.first_mut() {
            Some(Block::Paragraph(text)) => text.insert(0, Inline::Text(sign)),
            _ => blocks.insert(0, Block::Paragraph(vec![Inline::Text(sign.trim_end().to_owned())])),
        }
    }
    blocks
}

/// The sign of the item that comes so many items later.
fn after(marker: Marker, items: usize) -> Marker {
    match marker {
        Marker::Bullet => Marker::Bullet,
        Marker::Number(first) => Marker::Number(first.saturating_add(items as u64)),
    }
}
