//! Takes Markdown apart into parts that each fit into one message.

use talaria_model::TextLimit;

use crate::layout::{Cut, Fence, Layout, Within, indent, without_margin};
use crate::length::{Limit, beginning};

/// All the [`parts`] of a text.
pub fn split(markdown: &str, limit: TextLimit) -> Vec<String> {
    parts(markdown, limit).collect()
}

/// Takes Markdown apart, lazily.
///
/// Each part fits the limit and is well-formed by itself: a code block that is taken apart is closed,
/// and opened again with its info string in the next part. Parts end at a blank line, else at a line,
/// a sentence, a word, a grapheme cluster, whichever is the first to be found in the second half of
/// the part; links, code spans, headings, table rows and code blocks that fit into one part stay in
/// one. Only blanks at the seams and indentation that lost its meaning are dropped.
///
/// A text that fits is its only part, untouched. A text without anything but blanks has no parts.
/// Limits too small for a single character of any kind (4 bytes, 2 UTF-16 units, 1 char) count as
/// that; under limits too small for fences, code blocks are taken apart without them.
pub fn parts(markdown: &str, limit: TextLimit) -> Parts<'_> {
    let limit = Limit::of(limit);
    let rest = if markdown.trim().is_empty() {
        Rest::Nothing
    } else if limit.fits(markdown) {
        Rest::Untouched(markdown)
    } else {
        Rest::At(Place::default())
    };
    Parts { source: markdown.trim_end(), limit, rest }
}

/// The parts of a text; see [`parts`].
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    source: &'a str,
    limit: Limit,
    rest: Rest<'a>,
}

#[derive(Debug, Clone)]
enum Rest<'a> {
    Nothing,
    Untouched(&'a str),
    At(Place),
}

/// Where the next part begins, and what is left over from the part before.
#[derive(Debug, Clone, Default)]
struct Place {
    source: usize,
    /// The block that has to be opened again.
    fence: Option<Fence>,
    /// How many columns of indentation belong to a list item that began in an earlier part.
    margin: usize,
}

impl Iterator for Parts<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::Nothing => None,
            Rest::Untouched(text) => Some(text.to_owned()),
            Rest::At(place) => self.part(place),
        }
    }
}

impl Parts<'_> {
    fn part(&mut self, place: Place) -> Option<String> {
        let window = Window::read(self.source, place, self.limit)?;
        let layout = Layout::of(&window.text, self.limit);
        if window.is_last && self.limit.fits(&window.text) {
            let closing = layout.left_open(&window.text).map(Fence::closing).unwrap_or_default();
            let whole = format!("{}{closing}", window.text);
            if self.limit.fits(&whole) {
                return Some(whole);
            }
        }
        let without_fences = Layout::default();
        let cut = layout
            .cut(&window.text, window.from, self.limit)
            .or_else(|| without_fences.cut(&window.text, window.from, self.limit))
            .expect("a limit holds at least one character");
        let mut part = window.text[..cut.at].trim_end().to_owned();
        if let Within::Fence(fence) = cut.within {
            part.push_str(&fence.closing());
        }
        self.rest = Rest::At(window.place_of(&cut));
        Some(part)
    }
}

/// The beginning of what is left of a text, about two parts long so that whatever could fit into the
/// next part is seen whole.
struct Window {
    text: String,
    /// Where the source begins, behind the fence that was opened again.
    from: usize,
    lines: Vec<Line>,
    is_last: bool,
}

/// A line in the window and where it comes from.
struct Line {
    start: usize,
    source: usize,
    /// Bytes of indentation left out.
    omitted: usize,
    margin: usize,
}

impl Window {
    /// `None` when nothing but blanks is left.
    fn read(source: &str, place: Place, limit: Limit) -> Option<Self> {
        let Place { source: start, mut fence, mut margin } = place;
        let mut window = Self { text: String::new(), from: 0, lines: Vec::new(), is_last: true };
        let mut room = limit.max.saturating_mul(2);
        let mut at = start;
        for line in source[start..].split_inclusive('\n') {
            let source_line = at;
            at += line.len();
            let is_blank = line.trim().is_empty();
            let begins_here = source_line == 0 || source[..source_line].ends_with('\n');
            if begins_here && !is_blank {
                margin = margin.min(indent(line));
            }
            let mut text = if begins_here { without_margin(line, margin) } else { line };
            if window.lines.is_empty() {
                if is_blank || fence.take_if(|fence| fence.is_closed_by(text)).is_some() {
                    continue;
                }
                // A part that begins with more blanks than this would have no room for a word.
                let word = text.trim_start();
                if !begins_here || text.len() - word.len() > limit.max / 8 {
                    text = word;
                }
                if let Some(fence) = &fence {
                    window.text = fence.opening() + "\n";
                    window.from = window.text.len();
                }
            }
            if room == 0 {
                window.is_last = false;
                break;
            }
            let omitted = line.len() - text.len();
            let seen = beginning(text, room, limit.unit);
            let start = window.text.len();
            window.lines.push(Line { start, source: source_line, omitted, margin });
            window.text.push_str(seen);
            room -= limit.length(seen);
            if seen.len() < text.len() {
                window.is_last = false;
                break;
            }
        }
        (!window.lines.is_empty()).then_some(window)
    }

    fn place_of(&self, cut: &Cut<'_>) -> Place {
        let index = self.lines.partition_point(|line| line.start <= cut.at).saturating_sub(1);
        let line = &self.lines[index];
        let source = if cut.at == line.start {
            line.source
        } else {
            line.source + line.omitted + (cut.at - line.start)
        };
        match cut.within {
            Within::Text => {
                let margin = line.margin + indent(&self.text[line.start..]);
                Place { source, fence: None, margin }
            }
            Within::IndentedCode => Place { source, fence: None, margin: line.margin },
            Within::Fence(fence) => {
                let margin = line.margin + fence.indent();
                Place { source, fence: Some(fence.clone()), margin }
            }
        }
    }
}
