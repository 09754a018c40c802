//! Running text as one row of characters, in which it can be cut.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::document::{Inline, words};
use crate::length::{Limit, beginning};

/// Stands for a link.
const LINK: char = '\u{fffc}';

/// The beginning of running text, without forms. A place in it is a place in the running text.
#[derive(Debug, Default)]
pub(super) struct Flat {
    text: String,
    /// What is not cut.
    whole: Vec<std::ops::Range<usize>>,
    /// Units that may still be added.
    room: usize,
}

/// A place where running text can be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seam {
    pub(super) at: usize,
    pub(super) kind: SeamKind,
}

/// How well a cut reads, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SeamKind {
    /// Between two words of a script that puts no spaces there.
    Ideograph,
    Word,
    Sentence,
    Line,
}

/// What stays whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// Links, formulas and code.
    Code,
    /// Links and formulas.
    Links,
}

impl Flat {
    /// As much as `room` units can show at most.
    pub(super) fn of(inlines: &[Inline], room: usize, whole: Whole, limit: Limit) -> Self {
        let one_character = 4;
        let mut flat = Self { room: room.saturating_add(1).max(one_character), ..Self::default() };
        flat.collect(inlines, whole, limit);
        flat
    }

    fn collect(&mut self, inlines: &[Inline], whole: Whole, limit: Limit) {
        for inline in inlines {
            if self.room == 0 {
                return;
            }
            let start = self.text.len();
            match inline {
                Inline::Text(text) => self.push(text, limit),
                Inline::Code(text) => {
                    self.push(text, limit);
                    if whole == Whole::Code {
                        self.whole.push(start..start + text.len());
                    }
                }
                Inline::Math(text) => {
                    self.push(text, limit);
                    self.whole.push(start..start + text.len());
                }
                Inline::Link { .. } => {
                    self.text.push(LINK);
                    self.whole.push(start..self.text.len());
                    self.room = self.room.saturating_sub(1);
                }
                Inline::Break => {
                    self.text.push('\n');
                    self.room = self.room.saturating_sub(1);
                }
                Inline::Strong(inner)
                | Inline::Emphasis(inner)
                | Inline::Strike(inner)
                | Inline::Spoiler(inner) => self.collect(inner, whole, limit),
            }
        }
    }

    fn push(&mut self, text: &str, limit: Limit) {
        let seen = beginning(text, self.room, limit.unit);
        self.text.push_str(seen);
        self.room = match seen.len() < text.len() {
            true => 0,
            false => self.room - limit.length(seen),
        };
    }

    fn is_within(&self, at: usize) -> bool {
        let next = self.whole.partition_point(|range| range.end <= at);
        self.whole.get(next).is_some_and(|range| range.start < at)
    }

    /// Where lines, sentences and words end.
    pub(super) fn seams(&self) -> Vec<Seam> {
        let mut seams = Vec::new();
        let mut before: Option<char> = None;
        let mut ends_sentence = false;
        for (at, character) in self.text.char_indices() {
            let kind = match before {
                _ if character.is_whitespace() => None,
                Some('\n') => Some(SeamKind::Line),
                Some(last) if last.is_whitespace() && ends_sentence => Some(SeamKind::Sentence),
                Some(last) if last.is_whitespace() => Some(SeamKind::Word),
                Some('。' | '！' | '？') if !is_closing(character) => Some(SeamKind::Sentence),
                Some('，' | '、' | '；' | '：') => Some(SeamKind::Word),
                Some(last) if is_ideograph(last) && is_ideograph(character) => {
                    Some(SeamKind::Ideograph)
                }
                _ => None,
            };
            if let Some(kind) = kind.filter(|_| !self.is_within(at)) {
                seams.push(Seam { at, kind });
            }
            if !character.is_whitespace() {
                let closes = is_closing(character) && ends_sentence;
                ends_sentence =
                    closes || matches!(character, '.' | '!' | '?' | '…' | '。' | '！' | '？');
            }
            before = Some(character);
        }
        seams.retain(|seam| self.is_boundary(seam.at));
        seams
    }

    /// Where grapheme clusters end.
    pub(super) fn clusters(&self) -> Vec<usize> {
        let starts = self.text.grapheme_indices(true).map(|(at, _)| at);
        starts.skip(1).filter(|at| !self.is_within(*at)).collect()
    }

    /// Where characters end.
    pub(super) fn characters(&self) -> Vec<usize> {
        let starts = self.text.char_indices().map(|(at, _)| at);
        starts.skip(1).filter(|at| !self.is_within(*at)).collect()
    }

    /// Where the first character ends, or what takes its place.
    pub(super) fn first(&self) -> usize {
        match self.whole.first() {
            Some(range) if range.start == 0 => range.end,
            _ => self.text.chars().next().map_or(0, char::len_utf8),
        }
    }

    /// Whether no cluster is cut here. A blank and a combining mark behind it are one.
    fn is_boundary(&self, at: usize) -> bool {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.is_boundary(&self.text, 0).unwrap_or(true)
    }
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』' | '）' | '】' | '》')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// The text up to a place, without the blanks before it.
pub(super) fn head(inlines: &[Inline], at: usize) -> Vec<Inline> {
    let mut left = at;
    let mut head = beginning_of(inlines, &mut left);
    trim_end(&mut head);
    head
}

fn beginning_of(inlines: &[Inline], left: &mut usize) -> Vec<Inline> {
    let mut taken = Vec::new();
    for inline in inlines {
        if *left == 0 {
            break;
        }
        let mut cut = |text: &String| {
            let end = (*left).min(text.len());
            *left -= end;
            text[..end].to_owned()
        };
        taken.push(match inline {
            Inline::Text(text) => Inline::Text(cut(text)),
            Inline::Code(text) => Inline::Code(cut(text)),
            Inline::Math(text) => Inline::Math(cut(text)),
            Inline::Link { .. } => {
                *left = left.saturating_sub(LINK.len_utf8());
                inline.clone()
            }
            Inline::Break => {
                *left -= 1;
                Inline::Break
            }
            Inline::Strong(inner) => Inline::Strong(beginning_of(inner, left)),
            Inline::Emphasis(inner) => Inline::Emphasis(beginning_of(inner, left)),
            Inline::Strike(inner) => Inline::Strike(beginning_of(inner, left)),
            Inline::Spoiler(inner) => Inline::Spoiler(beginning_of(inner, left)),
        });
    }
    taken
}

/// The text behind a place, without the blanks behind it.
pub(super) fn tail(inlines: Vec<Inline>, at: usize) -> Vec<Inline> {
    let mut left = at;
    let mut tail = end_of(inlines, &mut left);
    trim_start(&mut tail);
    tail
}

fn end_of(inlines: Vec<Inline>, left: &mut usize) -> Vec<Inline> {
    let mut kept = Vec::with_capacity(inlines.len());
    for inline in inlines {
        if *left == 0 {
            kept.push(inline);
            continue;
        }
        let mut cut = |mut text: String| {
            let end = (*left).min(text.len());
            *left -= end;
            text.drain(..end);
            text
        };
        let rest = match inline {
            Inline::Text(text) => Inline::Text(cut(text)),
            Inline::Code(text) => Inline::Code(cut(text)),
            Inline::Math(text) => Inline::Math(cut(text)),
            Inline::Link { .. } => {
                *left = left.saturating_sub(LINK.len_utf8());
                continue;
            }
            Inline::Break => {
                *left -= 1;
                continue;
            }
            Inline::Strong(inner) => Inline::Strong(end_of(inner, left)),
            Inline::Emphasis(inner) => Inline::Emphasis(end_of(inner, left)),
            Inline::Strike(inner) => Inline::Strike(end_of(inner, left)),
            Inline::Spoiler(inner) => Inline::Spoiler(end_of(inner, left)),
        };
        if !is_empty(&rest) {
            kept.push(rest);
        }
    }
    kept
}

fn is_empty(inline: &Inline) -> bool {
    match inline {
        Inline::Text(text) | Inline::Code(text) | Inline::Math(text) => text.is_empty(),
        Inline::Strong(inner)
        | Inline::Emphasis(inner)
        | Inline::Strike(inner)
        | Inline::Spoiler(inner) => inner.iter().all(is_empty),
        Inline::Link { .. } | Inline::Break => false,
    }
}

fn trim_end(inlines: &mut Vec<Inline>) {
    while let Some(last) = inlines.last_mut() {
        match last {
            Inline::Text(text) => text.truncate(text.trim_end().len()),
            Inline::Strong(inner)
            | Inline::Emphasis(inner)
            | Inline::Strike(inner)
            | Inline::Spoiler(inner) => trim_end(inner),
            Inline::Code(_) | Inline::Math(_) | Inline::Link { .. } => {}
            Inline::Break => {
                inlines.pop();
                continue;
            }
        }
        if !is_empty(last) {
            return;
        }
        inlines.pop();
    }
}

fn trim_start(inlines: &mut Vec<Inline>) {
    let mut blank = 0;
    for inline in inlines.iter_mut() {
        match inline {
            Inline::Text(text) => *text = text.trim_start().to_owned(),
            Inline::Strong(inner)
            | Inline::Emphasis(inner)
            | Inline::Strike(inner)
            | Inline::Spoiler(inner) => trim_start(inner),
            Inline::Code(_) | Inline::Math(_) | Inline::Link { .. } => {}
            Inline::Break => {
                blank += 1;
                continue;
            }
        }
        if !is_empty(inline) {
            break;
        }
        blank += 1;
    }
    inlines.drain(..blank);
}

/// The same words without any form: an address that does not show stands behind the text of its link.
pub(super) fn without_forms(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut plain = Vec::new();
    flatten(inlines, &mut plain);
    plain
}

fn flatten(inlines: Vec<Inline>, into: &mut Vec<Inline>) {
    for inline in inlines {
        match inline {
            Inline::Text(text) | Inline::Code(text) => push(text, into),
            Inline::Math(text) => lines(&text).into_iter().for_each(|inline| match inline {
                Inline::Text(text) => push(text, into),
                other => into.push(other),
            }),
            Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strike(inner) => {
                flatten(inner, into);
            }
            Inline::Spoiler(inner) => {
                push("||".to_owned(), into);
                flatten(inner, into);
                push("||".to_owned(), into);
            }
            Inline::Link { to, text } => {
                let shows = words(&text) == to;
                flatten(text, into);
                if !shows {
                    push(format!(" ({to})"), into);
                }
            }
            Inline::Break => into.push(Inline::Break),
        }
    }
}

fn push(text: String, into: &mut Vec<Inline>) {
    match into.last_mut() {
        Some(Inline::Text(before)) => before.push_str(&text),
        _ => into.push(Inline::Text(text)),
    }
}

/// Text as it is, line by line.
pub(super) fn lines(text: &str) -> Vec<Inline> {
    let mut inlines = Vec::new();
    for line in text.split('\n').filter(|line| !line.trim().is_empty()) {
        if !inlines.is_empty() {
            inlines.push(Inline::Break);
        }
        inlines.push(Inline::Text(line.replace('\t', "    ")));
    }
    inlines
}
