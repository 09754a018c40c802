//! Mends Markdown as models write it, before the parser reads it: fences inside fences, formulas, marks
//! beside wide punctuation, ragged tables.
//!
//! What is put into a source are noncharacters, which mean nothing to the parser and which nobody
//! writes. They are taken out again wherever they ended up, so a wrong guess about a stretch of text
//! costs form and never text.

mod fences;
mod formulas;
mod tables;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::{Range, RangeInclusive};

pub(crate) use formulas::unindented;

/// Stands between a mark and punctuation, so that the parser sees a letter there.
const NOTHING: char = '\u{fdd1}';

/// A pipe that separates no cells.
const PIPE: char = '\u{fdd2}';

/// A star between two digits.
const TIMES: char = '\u{fdd3}';

/// Digits of the number of a formula. Around the number stand dollars: beside a mark, a formula is
/// punctuation as it was before.
const DIGITS: RangeInclusive<char> = '\u{fde0}'..='\u{fdef}';

const NONCHARACTERS: RangeInclusive<char> = '\u{fdd0}'..='\u{fdef}';

/// A source that is ready for the parser.
#[derive(Debug)]
pub(crate) struct Mended<'a> {
    pub(crate) text: Cow<'a, str>,
    formulas: Vec<String>,
}

/// A piece of text as it was before it was mended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(Cow<'a, str>),
    Formula(&'a str),
}

/// Mends a source.
pub(crate) fn mend(source: &str) -> Mended<'_> {
    let text = match has_noncharacters(source) {
        true => Cow::Owned(source.replace(is_noncharacter, "")),
        false => Cow::Borrowed(source),
    };
    let text = then(text, fences::untangled);
    let mut formulas = Vec::new();
    let text = then(text, |text| formulas::marked(text, &mut formulas));
    let text = then(text, tables::straightened);
    Mended { text, formulas }
}

fn is_noncharacter(c: char) -> bool {
    NONCHARACTERS.contains(&c)
}

fn has_noncharacters(text: &str) -> bool {
    // They all begin with this byte, and hardly any text but Chinese has it.
    text.bytes().any(|byte| byte == 0xef) && text.contains(is_noncharacter)
}

fn then<'a>(text: Cow<'a, str>, mended: impl FnOnce(&str) -> Option<String>) -> Cow<'a, str> {
    mended(&text).map_or(text, Cow::Owned)
}

impl Mended<'_> {
    /// Whether something that the parser gave back is not as it was written.
    pub(crate) fn is_marked(&self, text: &str) -> bool {
        matches!(self.text, Cow::Owned(_)) && has_noncharacters(text)
    }

    /// The text and the formulas in something that the parser gave back.
    pub(crate) fn pieces<'t>(&'t self, text: &'t str) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, formula, after)) = self.formula_in(rest) {
            pieces.push(Piece::Text(without_marks(before)));
            pieces.push(Piece::Formula(formula));
            rest = after;
        }
        pieces.push(Piece::Text(without_marks(rest)));
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        pieces
    }

    /// Something that the parser gave back, as it was written.
    pub(crate) fn restored<'t>(&'t self, text: &'t str) -> Cow<'t, str> {
        if !self.is_marked(text) {
            return Cow::Borrowed(text);
        }
        let mut restored = String::with_capacity(text.len());
        for piece in self.pieces(text) {
            match piece {
                Piece::Text(text) => restored.push_str(&text),
                Piece::Formula(formula) => restored.push_str(formula),
            }
        }
        Cow::Owned(restored)
    }

    fn formula_in<'t>(&'t self, text: &'t str) -> Option<(&'t str, &'t str, &'t str)> {
        if self.formulas.is_empty() {
            return None;
        }
        let start = text.find(|c: char| DIGITS.contains(&c))?;
        let (before, from) = text.split_at(start);
        let digits = from.len() - from.trim_start_matches(|c: char| DIGITS.contains(&c)).len();
        let (number, after) = from.split_at(digits);
        let number = number.chars().fold(0_usize, |number, digit| {
            number * 16 + (digit as usize - *DIGITS.start() as usize)
        });
        let formula = self.formulas.get(number)?;
        Some((
            before.strip_suffix('$').unwrap_or(before),
            formula,
            after.strip_prefix('$').unwrap_or(after),
        ))
    }
}

fn without_marks(text: &str) -> Cow<'_, str> {
    if !has_noncharacters(text) {
        return Cow::Borrowed(text);
    }
    let restored = |c: char| match c {
        PIPE => '|',
        TIMES => '*',
        _ => c,
    };
    Cow::Owned(text.chars().map(restored).filter(|c| !NONCHARACTERS.contains(c)).collect())
}

/// The number of a formula as it stands in a mended source.
fn numbered(number: usize) -> String {
    let digit = |value: usize| {
        char::from_u32(*DIGITS.start() as u32 + (value % 16) as u32).expect("sixteen digits exist")
    };
    let mut digits: Vec<char> = vec![digit(number)];
    let mut rest = number / 16;
    while rest > 0 {
        digits.push(digit(rest));
        rest /= 16;
    }
    let number: String = digits.into_iter().rev().collect();
    format!("${number}$")
}

/// A line without the signs of the quotes and list items that it may stand in.
pub(crate) fn content(line: &str) -> &str {
    let mut rest = line.trim_start_matches([' ', '\t', '>']);
    loop {
        let sign = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = sign.len() < rest.len();
        let after = match sign.as_bytes() {
            [b'.' | b')', b' ', ..] if is_numbered => &sign[2..],
            [b'-' | b'*' | b'+', b' ', ..] if !is_numbered => &sign[2..],
            _ => return rest,
        };
        rest = after.trim_start_matches([' ', '\t', '>']);
    }
}

/// Where the code between fences is; looked for when somebody asks for the first time.
#[derive(Debug)]
struct Fenced<'a> {
    source: &'a str,
    ranges: OnceCell<Vec<Range<usize>>>,
}

impl<'a> Fenced<'a> {
    fn in_source(source: &'a str) -> Self {
        Self { source, ranges: OnceCell::new() }
    }

    /// Whether this stands in a code block, its fences included.
    fn holds(&self, at: usize) -> bool {
        let ranges = self.ranges.get_or_init(|| fenced(self.source));
        let next = ranges.partition_point(|range| range.end <= at);
        ranges.get(next).is_some_and(|range| range.contains(&at))
    }
}

fn fenced(source: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut open: Option<(Fence, usize)> = None;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let end = start + line.len();
        open = match open {
            Some((fence, from)) if fence.is_closed_by(line) => {
                ranges.push(from..end);
                None
            }
            Some(open) => Some(open),
            None => Fence::of(content(line)).map(|(fence, _)| (fence, start)),
        };
        start = end;
    }
    ranges.extend(open.map(|(_, from)| from..source.len()));
    ranges
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// The fence that a line consists of, and what stands behind it.
    fn of(line: &str) -> Option<(Self, &str)> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some((Self { mark, length }, info.trim()))
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::of(line.trim_start_matches([' ', '\t', '>'])).is_some_and(|(fence, info)| {
            fence.mark == self.mark && fence.length >= self.length && info.is_empty()
        })
    }
}
