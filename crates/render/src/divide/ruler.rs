//! How long something is in a dialect.

use std::ops::Add;

use crate::dialect::{Dialect, render_blocks};
use crate::document::{Block, Inline, Marker};
use crate::finish::finished;
use crate::length::Limit;
use crate::parse::parse;
use crate::telegram::{MOST_ENTITIES, measured};
use crate::visible::is_blank;

/// No character takes more bytes than this.
const WIDEST_CHARACTER: usize = 4;

/// What a document takes of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// In units.
    pub(super) length: usize,
    entities: usize,
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { length: self.length + other.length, entities: self.entities + other.entities }
    }
}

impl Size {
    pub(super) fn fits(self, room: Self) -> bool {
        self.length <= room.length && self.entities <= room.entities
    }

    /// Whether a part that is that full may end.
    pub(super) fn is_late(self, room: Self) -> bool {
        self.length * 2 >= room.length || self.entities * 2 >= room.entities
    }

    /// Whether it hardly matters.
    pub(super) fn is_small(self, room: Self) -> bool {
        self.length * 4 <= room.length && self.entities * 4 <= room.entities
    }
}

/// Measures documents.
#[derive(Debug)]
pub(super) struct Ruler {
    dialect: Dialect,
    limit: Limit,
    gap: Size,
}

impl Ruler {
    pub(super) fn new(dialect: Dialect, limit: Limit) -> Self {
        let mut ruler = Self { dialect, limit, gap: Size::default() };
        let word = || Block::Paragraph(vec![Inline::Text("a".to_owned())]);
        let one = ruler.measure(&[word()]);
        let two = ruler.measure(&[word(), word()]);
        ruler.gap.length = two.length - 2 * one.length;
        ruler
    }

    /// What a part may take.
    pub(super) fn room(&self) -> Size {
        Size { length: self.limit.max, entities: MOST_ENTITIES }
    }

    /// What stands between two blocks takes.
    pub(super) fn gap(&self) -> Size {
        self.gap
    }

    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// How long blocks are; `None` when they are certainly too long for any part.
    pub(super) fn size(&self, blocks: &[Block]) -> Option<Size> {
        (!self.is_too_heavy(blocks)).then(|| self.measure(blocks))
    }

    /// Whether a source fits into one part, of which these are the blocks.
    pub(super) fn fits(&self, source: &str, blocks: &[Block]) -> bool {
        if self.is_too_heavy(blocks) {
            return false;
        }
        match self.dialect {
            // Markdown is sent as it was written.
            Dialect::Markdown => self.limit.fits(source),
            _ => self.measure_as_it_is(blocks).fits(self.room()),
        }
    }

    /// How much a part is too long once somebody reads and renders it. That can be more than what its
    /// blocks take: the beginning of an address that was cut is an address, for example.
    pub(super) fn excess(&self, part: &str) -> usize {
        if self.dialect == Dialect::Markdown {
            return self.limit.length(part).saturating_sub(self.limit.max);
        }
        let size = self.measure_as_it_is(parse(part).blocks());
        let entities = size.entities.saturating_sub(MOST_ENTITIES);
        size.length.saturating_sub(self.limit.max) + entities
    }

    fn measure(&self, blocks: &[Block]) -> Size {
        // A link that was too long became text; its address is an address all the same when the text
        // is read again.
        if blocks.iter().any(is_bare_address) {
            let linked: Vec<Block> = blocks.iter().cloned().map(linked).collect();
            return self.measure_as_it_is(&linked);
        }
        self.measure_as_it_is(blocks)
    }

    fn measure_as_it_is(&self, blocks: &[Block]) -> Size {
        let (text, entities) = match self.dialect {
            Dialect::TelegramEntities => measured(blocks),
            _ => (render_blocks(blocks, self.dialect).text, 0),
        };
        Size { length: self.limit.length(&text), entities }
    }

    /// No dialect shows text in fewer units than it has characters, so what has more than that need not
    /// be rendered to see that it does not fit.
    fn is_too_heavy(&self, blocks: &[Block]) -> bool {
        let mut left = self.limit.max.saturating_mul(WIDEST_CHARACTER).saturating_add(64);
        !weigh_blocks(blocks, &mut left)
    }
}

fn is_bare_address(block: &Block) -> bool {
    let is_bare = |inline: &Inline| matches!(inline, Inline::Text(text) if text.contains("://"));
    matches!(block, Block::Paragraph(text) if text.iter().any(is_bare))
}

fn linked(block: Block) -> Block {
    match block {
        Block::Paragraph(text) => Block::Paragraph(finished(text)),
        other => other,
    }
}

/// Whether something in these blocks can be seen in every dialect.
pub(super) fn says_something(blocks: &[Block]) -> bool {
    fn says(inlines: &[Inline]) -> bool {
        inlines.iter().any(|inline| match inline {
            Inline::Text(text) | Inline::Code(text) | Inline::Math(text) => !is_blank(text),
            Inline::Strong(inner)
            | Inline::Emphasis(inner)
            | Inline::Strike(inner)
            | Inline::Spoiler(inner)
            | Inline::Link { text: inner, .. } => says(inner),
            Inline::Break => false,
        })
    }
    blocks.iter().any(|block| match block {
        Block::Paragraph(text) | Block::Heading { text, .. } => says(text),
        Block::List { marker, items, .. } => items.iter().any(|item| {
            *marker != Marker::Bullet || item.task.is_some() || says_something(&item.blocks)
        }),
        Block::Quote(inner) => says_something(inner),
        Block::Code { text, .. } => !is_blank(text),
        Block::Table { head, rows, .. } => {
            head.iter().chain(rows.iter().flatten()).any(|cell| says(cell))
        }
        Block::Rule => true,
    })
}

/// Whether the text of blocks is not longer than this many bytes.
fn weigh_blocks(blocks: &[Block], left: &mut usize) -> bool {
    blocks.iter().all(|block| match block {
        Block::Paragraph(text) | Block::Heading { text, .. } => weigh(text, left),
        Block::List { items, .. } => items.iter().all(|item| weigh_blocks(&item.blocks, left)),
        Block::Quote(inner) => weigh_blocks(inner, left),
        Block::Code { text, .. } => take(text, left),
        Block::Table { head, rows, .. } => {
            head.iter().chain(rows.iter().flatten()).all(|cell| weigh(cell, left))
        }
        Block::Rule => true,
    })
}

fn weigh(inlines: &[Inline], left: &mut usize) -> bool {
    inlines.iter().all(|inline| match inline {
        Inline::Text(text) | Inline::Code(text) | Inline::Math(text) => take(text, left),
        Inline::Strong(inner)
        | Inline::Emphasis(inner)
        | Inline::Strike(inner)
        | Inline::Spoiler(inner)
        | Inline::Link { text: inner, .. } => weigh(inner, left),
        Inline::Break => true,
    })
}

fn take(text: &str, left: &mut usize) -> bool {
    let rest = left.checked_sub(text.len());
    *left = rest.unwrap_or_default();
    rest.is_some()
}
