//! Cuts a block in two, so that what comes first fits into the rest of a part.

use unicode_segmentation::UnicodeSegmentation;

use crate::document::{Align, Block, Cell, Inline, Item, Marker, Spacing, Task};

use super::after;
use super::flat::{self, Flat, SeamKind, Whole};
use super::ruler::{Ruler, Size};

/// That something ends is seen by the blank and the character behind it, in units.
const WHAT_FOLLOWS: usize = 8;

/// Cuts blocks. While it is inside a block, it carries along what stands before the cut, because that
/// takes room, too.
pub(super) struct Cutter<'a> {
    ruler: &'a Ruler,
    /// What the blocks before this one take.
    used: Size,
    room: Size,
    /// Whether there is nothing else in the part.
    is_alone: bool,
    frames: Vec<Frame>,
    /// What the last thing that fitted takes.
    fitted: Size,
}

/// A block that is being cut, as far as it stands before the cut.
enum Frame {
    Quote {
        before: Vec<Block>,
    },
    Item {
        marker: Marker,
        spacing: Spacing,
        items: Vec<Item>,
        task: Option<Task>,
        before: Vec<Block>,
    },
}

impl Frame {
    fn before(&mut self) -> &mut Vec<Block> {
        match self {
            Self::Quote { before } | Self::Item { before, .. } => before,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Quote { before } => before.is_empty(),
            Self::Item { items, before, .. } => items.is_empty() && before.is_empty(),
        }
    }

    /// The whole block, with this as the last thing in it.
    fn close(&mut self, last: Block) -> Block {
        match self {
            Self::Quote { before } => {
                before.push(last);
                Block::Quote(std::mem::take(before))
            }
            Self::Item { marker, spacing, items, task, before } => {
                before.push(last);
                items.push(Item { task: *task, blocks: std::mem::take(before) });
                Block::List { marker: *marker, spacing: *spacing, items: std::mem::take(items) }
            }
        }
    }

    /// Takes a block apart that [`Frame::close`] put together.
    fn open(&mut self, whole: Block) -> Option<Block> {
        match (self, whole) {
            (Self::Quote { before }, Block::Quote(blocks)) => {
                *before = blocks;
                before.pop()
            }
            (Self::Item { items, before, .. }, Block::List { items: all, .. }) => {
                *items = all;
                *before = items.pop()?.blocks;
                before.pop()
            }
            _ => None,
        }
    }
}

/// A block cut in two: its beginning, and what is to follow it.
type Cut = (Block, Vec<Block>);

impl<'a> Cutter<'a> {
    pub(super) fn new(ruler: &'a Ruler, used: Size, room: Size, is_alone: bool) -> Self {
        Self { ruler, used, room, is_alone, frames: Vec::new(), fitted: Size::default() }
    }

    /// Cuts a block that does not fit. `Err` gives it back when nothing of it can be put here.
    pub(super) fn divide(&mut self, block: Block) -> Result<Cut, Block> {
        match block {
            Block::Paragraph(text) => {
                self.divide_text(text, Block::Paragraph).map_err(Block::Paragraph)
            }
            Block::Heading { level, text } => self
                .divide_text(text, |text| Block::Heading { level, text })
                .map_err(|text| Block::Heading { level, text }),
            Block::Code { language, text } => self.divide_code(language, text),
            Block::Quote(inner) => {
                self.frames.push(Frame::Quote { before: Vec::new() });
                let cut = self.divide_blocks(inner);
                self.frames.pop();
                match cut {
                    Ok((first, rest)) => {
                        let rest = (!rest.is_empty()).then_some(Block::Quote(rest));
                        Ok((Block::Quote(first), rest.into_iter().collect()))
                    }
                    Err(inner) => Err(Block::Quote(inner)),
                }
            }
            Block::List { marker, spacing, items } => self.divide_list(marker, spacing, items),
            Block::Table { columns, head, rows } => self.divide_table(columns, head, rows),
            Block::Rule => Err(Block::Rule),
        }
    }

    /// Whether something fits as the last thing in the part; gives it back.
    fn try_on(&mut self, last: Block) -> (bool, Block) {
        let mut block = last;
        for frame in self.frames.iter_mut().rev() {
            block = frame.close(block);
        }
        let size = self.ruler.size(std::slice::from_ref(&block)).map(|size| self.used + size);
        let fits = size.is_some_and(|size| size.fits(self.room));
        if let Some(size) = size.filter(|_| fits) {
            self.fitted = size;
        }
        for frame in &mut self.frames {
            block = frame.open(block).expect("what was put together can be taken apart");
        }
        (fits, block)
    }

    /// Whether there is nothing before the cut.
    fn is_first(&self) -> bool {
        self.is_alone && self.frames.iter().all(Frame::is_empty)
    }

    fn could_be_whole(&self, block: &Block) -> bool {
        self.ruler.size(std::slice::from_ref(block)).is_some_and(|size| size.fits(self.room))
    }

    /// Cuts the blocks in the innermost frame.
    fn divide_blocks(
        &mut self,
        mut blocks: Vec<Block>,
    ) -> Result<(Vec<Block>, Vec<Block>), Vec<Block>> {
        let whole = most(blocks.len(), 1, |count| {
            let rest = blocks.split_off(count);
            let last = blocks.pop().expect("something is tried on");
            let frame = self.frames.last_mut().expect("blocks stand in something");
            frame.before().append(&mut blocks);
            let (fits, last) = self.try_on(last);
            let frame = self.frames.last_mut().expect("blocks stand in something");
            blocks.append(frame.before());
            blocks.push(last);
            blocks.extend(rest);
            fits
        });
        let Some(next) = blocks.get(whole) else {
            return if whole > 0 { Ok((blocks, Vec::new())) } else { Err(blocks) };
        };
        let is_one_thing = matches!(next, Block::Code { .. } | Block::Table { .. });
        let is_better_whole = whole > 0
            && (self.fitted.is_late(self.room) || is_one_thing)
            && self.could_be_whole(next);
        if !is_better_whole {
            let mut rest = blocks.split_off(whole);
            let next = rest.remove(0);
            self.frames.last_mut().expect("blocks stand in something").before().append(&mut blocks);
            let cut = self.divide(next);
            let frame = self.frames.last_mut().expect("blocks stand in something");
            blocks.append(frame.before());
            match cut {
                Ok((first, others)) => {
                    blocks.push(first);
                    return Ok((blocks, others.into_iter().chain(rest).collect()));
                }
                Err(next) => blocks.push(next),
            }
            blocks.append(&mut rest);
        }
        match whole {
            0 => Err(blocks),
            _ => {
                let rest = blocks.split_off(whole);
                Ok((blocks, rest))
            }
        }
    }

    fn divide_list(
        &mut self,
        marker: Marker,
        spacing: Spacing,
        mut items: Vec<Item>,
    ) -> Result<Cut, Block> {
        let list = |items| Block::List { marker, spacing, items };
        let whole = most(items.len(), items.len() / 2, |count| {
            let rest = items.split_off(count);
            let (fits, tried) = self.try_on(list(std::mem::take(&mut items)));
            if let Block::List { items: tried, .. } = tried {
                items = tried;
            }
            items.extend(rest);
            fits
        });
        if whole == items.len() {
            return Ok((list(items), Vec::new()));
        }
        let mut rest = items.split_off(whole);
        let item = Block::List { marker, spacing, items: vec![rest.remove(0)] };
        let size = self.ruler.size(std::slice::from_ref(&item));
        let is_better_whole = whole > 0
            && size.is_some_and(|size| {
                size.fits(self.room) && (size.is_small(self.room) || self.fitted.is_late(self.room))
            });
        let Block::List { items: mut next, .. } = item else { unreachable!("it is a list") };
        let Item { task, blocks } = next.remove(0);
        let following = |rest: Vec<Item>, count: usize| {
            let marker = after(marker, count);
            (!rest.is_empty()).then_some(Block::List { marker, spacing, items: rest })
        };
        let blocks = match is_better_whole {
            true => blocks,
            false => {
                let before = Vec::new();
                self.frames.push(Frame::Item { marker, spacing, items, task, before });
                let cut = self.divide_blocks(blocks);
                items = match self.frames.pop() {
                    Some(Frame::Item { items, .. }) => items,
                    _ => unreachable!("every frame is taken away by whoever put it there"),
                };
                match cut {
                    Ok((first, mut others)) => {
                        items.push(Item { task, blocks: first });
                        others.extend(following(rest, whole + 1));
                        return Ok((list(items), others));
                    }
                    Err(blocks) => blocks,
                }
            }
        };
        rest.insert(0, Item { task, blocks });
        match whole {
            0 => Err(list(rest)),
            _ => Ok((list(items), following(rest, whole).into_iter().collect())),
        }
    }

    fn divide_table(
        &mut self,
        columns: Vec<Align>,
        head: Vec<Cell>,
        mut rows: Vec<Vec<Cell>>,
    ) -> Result<Cut, Block> {
        let table = |rows| Block::Table { columns: columns.clone(), head: head.clone(), rows };
        let whole = most(rows.len(), rows.len() / 2, |count| {
            let rest = rows.split_off(count);
            let (fits, tried) = self.try_on(table(std::mem::take(&mut rows)));
            if let Block::Table { rows: tried, .. } = tried {
                rows = tried;
            }
            rows.extend(rest);
            fits
        });
        if whole == 0 {
            return Err(table(rows));
        }
        let rest = rows.split_off(whole);
        Ok((table(rows), vec![table(rest)]))
    }

    /// Cuts code between lines; within a line only if the line is too long for any part.
    fn divide_code(&mut self, language: Option<String>, text: String) -> Result<Cut, Block> {
        let code = |text: &str| Block::Code { language: language.clone(), text: text.to_owned() };
        let window = window(&text, self.room.length);
        let ends: Vec<usize> = text[..window].match_indices('\n').map(|(at, _)| at).collect();
        let guess = ends.partition_point(|end| *end < self.room.length);
        let whole = most(ends.len(), guess, |count| {
            self.try_on(code(text[..ends[count - 1]].trim_end_matches('\n'))).0
        });
        let cut = match whole {
            0 if !self.is_first() => return Err(code(&text)),
            0 => {
                let line = ends.first().map_or(&text[..window], |end| &text[..*end]);
                let clusters: Vec<usize> =
                    line.grapheme_indices(true).map(|(at, _)| at).skip(1).collect();
                let count = most(clusters.len(), clusters.len() / 2, |count| {
                    self.try_on(code(&text[..clusters[count - 1]])).0
                });
                if count == 0 {
                    return Err(code(&text));
                }
                let end = clusters[count - 1];
                let blank = text[..end].rfind(' ').filter(|at| at * 2 > end);
                blank.map_or(end, |at| at + 1)
            }
            _ => {
                let is_blank = |index: &usize| text[ends[*index]..].starts_with("\n\n");
                let last_third = whole - whole.div_ceil(3);
                let blank = (last_third..whole).rev().find(is_blank);
                ends[blank.unwrap_or(whole - 1)]
            }
        };
        let first = text[..cut].trim_end_matches('\n');
        let rest = text[cut..].trim_start_matches('\n');
        if first.is_empty() {
            return Err(code(&text));
        }
        let rest = (!rest.is_empty()).then(|| code(rest));
        Ok((code(first), rest.into_iter().collect()))
    }

    fn divide_text(
        &mut self,
        text: Vec<Inline>,
        block: impl Fn(Vec<Inline>) -> Block,
    ) -> Result<Cut, Vec<Inline>> {
        let at = self.seam(&text, &block).or_else(|| self.forced(&text, &block));
        let Some(at) = at else { return Err(text) };
        let first = flat::head(&text, at);
        let rest = flat::tail(text, at);
        let rest = (!rest.is_empty()).then(|| block(rest));
        Ok((block(first), rest.into_iter().collect()))
    }

    /// The best place between words.
    fn seam(&mut self, text: &[Inline], block: &impl Fn(Vec<Inline>) -> Block) -> Option<usize> {
        let left = self.room.length.saturating_sub(self.used.length);
        let seams = Flat::of(text, left + WHAT_FOLLOWS, Whole::Code, self.ruler.limit()).seams();
        let guess = seams.partition_point(|seam| seam.at < left);
        let count = most(seams.len(), guess, |count| {
            self.try_on(block(flat::head(text, seams[count - 1].at))).0
        });
        let last = seams[..count].last()?;
        let is_late = |at: usize| at * 2 >= last.at;
        let late = || seams[..count].iter().rev().take_while(|seam| is_late(seam.at));
        let best = [SeamKind::Line, SeamKind::Sentence, SeamKind::Word, SeamKind::Ideograph]
            .into_iter()
            .find_map(|kind| late().find(|seam| seam.kind == kind));
        Some(best.unwrap_or(last).at)
    }

    /// A place within a word that is too long for any part.
    fn forced(&mut self, text: &[Inline], block: &impl Fn(Vec<Inline>) -> Block) -> Option<usize> {
        if !self.is_first() {
            return None;
        }
        let flat =
            Flat::of(text, self.room.length + WHAT_FOLLOWS, Whole::Links, self.ruler.limit());
        for places in [flat.clusters(), flat.characters()] {
            let guess = places.len() / 2;
            let count = most(places.len(), guess, |count| {
                self.try_on(block(flat::head(text, places[count - 1]))).0
            });
            if count > 0 {
                return Some(places[count - 1]);
            }
        }
        // Text without forms is as short as it gets.
        let is_bare = |inline: &Inline| matches!(inline, Inline::Text(_) | Inline::Break);
        let has_frames = !self.frames.is_empty();
        let is_paragraph = matches!(block(Vec::new()), Block::Paragraph(_));
        (is_paragraph && !has_frames && text.iter().all(is_bare)).then(|| flat.first())
    }
}

/// How many of something fit, if more of it never fits better. None of it always does. `guess` is
/// where to look first.
fn most(count: usize, guess: usize, mut fits: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count + 1);
    let mut probe = guess.clamp(1, count.max(1));
    let mut step = 1;
    while low + 1 < high {
        probe = probe.clamp(low + 1, high - 1);
        if fits(probe) {
            low = probe;
            probe = if high > count { low + step } else { low + (high - low) / 2 };
        } else {
            high = probe;
            probe = if low == 0 { high.saturating_sub(step) } else { low + (high - low) / 2 };
        }
        step *= 2;
    }
    low
}

/// The beginning of a text beyond which nothing can be in a part of this length.
fn window(text: &str, units: usize) -> usize {
    text.floor_char_boundary(units.saturating_mul(4).saturating_add(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_found_from_any_guess() {
        for count in 0..40 {
            for most_fitting in 0..=count {
                for guess in 0..50 {
                    let mut tries = 0;
                    let found = most(count, guess, |number| {
                        tries += 1;
                        assert!((1..=count).contains(&number));
                        number <= most_fitting
                    });
                    assert_eq!(found, most_fitting, "{count} {guess}");
                    assert!(tries <= 14, "{tries} of {count}");
                }
            }
        }
    }
}
