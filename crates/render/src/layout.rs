//! Where Markdown can be taken apart, and what is lost by it.

use std::cmp::Reverse;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use unicode_segmentation::UnicodeSegmentation;

use crate::length::Limit;
use crate::parse::{MAX_DEPTH, extensions, is_tame};

/// Indented further, a fence is code.
const MAX_FENCE_INDENT: usize = 3;

/// What a text consists of, as far as it matters for taking it apart into parts of a given length.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    fences: Vec<Fence>,
    indented_code: Vec<Range<usize>>,
    /// Where pieces begin and end that fit into one part and should stay in one; each list is sorted.
    whole_starts: Vec<usize>,
    whole_ends: Vec<usize>,
}

/// A fenced code block whose fences can be repeated in every part it is taken apart into.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    /// From the start of the line with the opening fence to the end of the closing one.
    range: Range<usize>,
    /// What stands between the fences.
    body: Range<usize>,
    /// The quote marks and blanks before the fence.
    lead: String,
    mark: String,
    info: String,
    /// In units.
    closing_length: usize,
}

/// Where a text is cut in two.
#[derive(Debug)]
pub(crate) struct Cut<'a> {
    pub(crate) at: usize,
    pub(crate) within: Within<'a>,
}

/// What is cut.
#[derive(Debug)]
pub(crate) enum Within<'a> {
    /// Text, whose blanks at the cut mean nothing.
    Text,
    /// Code that is marked by its indentation.
    IndentedCode,
    /// Code between fences.
    Fence(&'a Fence),
}

/// How well a cut reads, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Seam {
    Cluster,
    Space,
    Sentence,
    Line,
    Blank,
}

/// What makes one cut better than another; what comes first decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Quality {
    /// Whether a fence before the cut has anything in it.
    has_content: bool,
    /// How many pieces that could have stayed whole are cut.
    whole: Reverse<usize>,
    between_words: bool,
    /// How well it reads, if the part is at least half full.
    late: Option<Seam>,
    at: usize,
}

impl Layout {
    pub(crate) fn of(text: &str, limit: Limit) -> Self {
        let mut layout = Self::default();
        if !is_tame(text) {
            return layout;
        }
        let mut whole = Vec::new();
        let mut depth = 0_usize;
        for (event, range) in Parser::new_ext(text, extensions()).into_offset_iter() {
            match &event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth = depth.saturating_sub(1),
                _ => {}
            }
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => {
                    layout.indented_code.push(line_start(text, range.start)..range.end);
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                    if let Some(fence) = Fence::at(text, range, limit) {
                        whole.push(fence.range.clone());
                        layout.fences.push(fence);
                    }
                }
                // Measuring what is nested costs its length once per level.
                _ if depth > MAX_DEPTH => {}
                Event::Start(Tag::Item) => whole.push(sign_of_item(text, range.start)),
                Event::Start(
                    Tag::Heading { .. }
                    | Tag::TableHead
                    | Tag::TableRow
                    | Tag::Emphasis
                    | Tag::Strong
                    | Tag::Strikethrough
                    | Tag::Link { .. }
                    | Tag::Image { .. },
                )
                | Event::Code(_) => whole.push(range),
                _ => {}
            }
        }
        whole.retain(|range| limit.fits(text[range.clone()].trim_end()));
        layout.whole_starts = whole.iter().map(|range| range.start).collect();
        layout.whole_starts.sort_unstable();
        layout.whole_ends = whole.iter().map(|range| range.end).collect();
        layout.whole_ends.sort_unstable();
        layout
    }

    /// The fence that the end of the text leaves open.
    pub(crate) fn left_open(&self, text: &str) -> Option<&Fence> {
        let end = text.trim_end().len();
        self.fences.last().filter(|fence| fence.is_unclosed() && fence.range.end >= end)
    }

    /// The best place to end a part that holds at least something of what stands behind `from`.
    /// `None` when the fences leave no room for it.
    pub(crate) fn cut(&self, text: &str, from: usize, limit: Limit) -> Option<Cut<'_>> {
        let characters = text.char_indices().map(|(at, c)| (at, &text[at..at + c.len_utf8()]));
        let at = self
            .search(text, text.grapheme_indices(true), from, limit)
            .or_else(|| self.search(text, characters, from, limit))?;
        let within = if let Some(fence) = self.fence_around(at) {
            Within::Fence(fence)
        } else if self.indented_code.iter().any(|code| code.contains(&at)) {
            Within::IndentedCode
        } else {
            Within::Text
        };
        Some(Cut { at, within })
    }

    fn search<'t>(
        &self,
        text: &str,
        pieces: impl Iterator<Item = (usize, &'t str)>,
        from: usize,
        limit: Limit,
    ) -> Option<usize> {
        let mut best = None;
        let mut before = Before::default();
        let mut used = 0;
        for (start, piece) in pieces {
            used += limit.length(piece);
            if piece.trim().is_empty() {
                before.pass_blank(start, piece);
                continue;
            }
            if before.length > limit.max {
                break;
            }
            let at = before.line_start.unwrap_or(start);
            best = best.max(self.quality(at, from, &before, limit));
            before.pass_word(start, piece, used);
        }
        if before.end < text.len() {
            best = best.max(self.quality(before.end, from, &before, limit));
        }
        best.map(|quality| quality.at)
    }

    /// How good a cut here is; `None` when the text cannot be cut here.
    fn quality(&self, at: usize, from: usize, before: &Before, limit: Limit) -> Option<Quality> {
        let (seam, closing_length, content_start) = match self.fence_around(at) {
            None => (before.seam(), 0, from),
            // Only the closing fence is left of the block, and the next part does without it.
            Some(fence) if at == fence.body.end => {
                (Seam::Cluster, fence.closing_length, fence.body.start)
            }
            Some(fence) if fence.body.start < at && at < fence.body.end => {
                let seam = match before.seam() {
                    Seam::Blank | Seam::Line => Seam::Sentence,
                    Seam::Sentence | Seam::Space => Seam::Space,
                    Seam::Cluster => Seam::Cluster,
                };
                (seam, fence.closing_length, fence.body.start)
            }
            Some(_) => return None,
        };
        let is_late = before.length * 2 >= limit.max;
        (before.end > from && before.length + closing_length <= limit.max).then(|| Quality {
            has_content: before.end > content_start,
            whole: Reverse(self.whole_pieces_around(at)),
            between_words: seam > Seam::Cluster,
            late: is_late.then_some(seam),
            at,
        })
    }

    fn fence_around(&self, at: usize) -> Option<&Fence> {
        let next = self.fences.partition_point(|fence| fence.range.end <= at);
        self.fences.get(next).filter(|fence| fence.range.start < at)
    }

    fn whole_pieces_around(&self, at: usize) -> usize {
        let begun = self.whole_starts.partition_point(|start| *start < at);
        let ended = self.whole_ends.partition_point(|end| *end <= at);
        begun.saturating_sub(ended)
    }
}

/// What stands before a place where the text could be cut.
#[derive(Debug, Default)]
struct Before {
    /// Up to the end of the last word, in units.
    length: usize,
    /// Where the last word ends.
    end: usize,
    gap: Gap,
    /// Where the last line begins, if it has no word yet.
    line_start: Option<usize>,
    stop: Stop,
}

/// The blanks behind the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
    Blank,
}

/// The punctuation behind the last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stop {
    #[default]
    None,
    /// Ends a sentence if a space follows.
    Full,
    /// Ends a sentence in a script that puts no spaces between words.
    WideFull,
    /// Ends a clause in such a script.
    WideComma,
}

impl Before {
    fn pass_blank(&mut self, start: usize, blank: &str) {
        if blank.ends_with('\n') {
            self.gap = if self.line_start.is_some() { Gap::Blank } else { Gap::Line };
            self.line_start = Some(start + blank.len());
        } else if self.gap == Gap::None {
            self.gap = Gap::Space;
        }
    }

    fn pass_word(&mut self, start: usize, piece: &str, length: usize) {
        self.stop = match piece {
            "." | "!" | "?" | "…" => Stop::Full,
            "。" | "！" | "？" => Stop::WideFull,
            "，" | "、" | "；" | "：" => Stop::WideComma,
            "\"" | "'" | ")" | "]" | "*" | "_" | "”" | "’" | "»" if self.gap == Gap::None => {
                self.stop
            }
            _ => Stop::None,
        };
        self.length = length;
        self.end = start + piece.len();
        self.gap = Gap::None;
        self.line_start = None;
    }

    fn seam(&self) -> Seam {
        match (self.gap, self.stop) {
            (Gap::Blank, _) => Seam::Blank,
            (Gap::Line, _) => Seam::Line,
            (Gap::Space, Stop::Full | Stop::WideFull) | (Gap::None, Stop::WideFull) => {
                Seam::Sentence
            }
            (Gap::Space, _) | (Gap::None, Stop::WideComma) => Seam::Space,
            (Gap::None, _) => Seam::Cluster,
        }
    }
}

impl Fence {
    /// The fenced code block in this range; `None` when its fences would take more than half of each
    /// part, which is worse than a block whose parts are not recognised as code.
    fn at(text: &str, range: Range<usize>, limit: Limit) -> Option<Self> {
        let first_line = line_start(text, range.start);
        let line_end = text[range.start..].find('\n').map_or(text.len(), |end| range.start + end);
        let opening = text[range.start..line_end].trim();
        let mark_start = line_end - text[range.start..line_end].trim_start().len();
        let character = opening.chars().next()?;
        let (mark, info) =
            opening.split_at(opening.len() - opening.trim_start_matches(character).len());
        let blank_unless_quote = |c: char| if c == '>' || c == '\t' { c } else { ' ' };
        let mut fence = Self {
            range: first_line..range.end,
            body: (line_end + 1).min(range.end)..range.end,
            lead: text[first_line..mark_start].chars().map(blank_unless_quote).collect(),
            mark: mark.to_owned(),
            info: info.trim().to_owned(),
            closing_length: 0,
        };
        fence.closing_length = limit.length(&fence.closing());
        let last_start = line_start(text, range.end);
        let last_line = without_margin(&text[last_start..range.end], indent(&fence.lead));
        if last_start >= fence.body.start && fence.is_closed_by(last_line) {
            fence.body.end = last_start;
        }
        let overhead = |fence: &Self| limit.length(&fence.opening()) + 1 + fence.closing_length;
        if overhead(&fence) > limit.max / 2 {
            fence.info.clear();
        }
        (overhead(&fence) <= limit.max / 2).then_some(fence)
    }

    /// The line that opens the block once more.
    pub(crate) fn opening(&self) -> String {
        let lead = if self.is_quoted() { self.lead.as_str() } else { "" };
        format!("{lead}{}{}", self.mark, self.info)
    }

    /// What closes the block behind one of its lines.
    pub(crate) fn closing(&self) -> String {
        format!("\n{}{}", self.lead, self.mark)
    }

    /// How many columns its lines can be moved to the left once it is opened without its lead.
    pub(crate) fn indent(&self) -> usize {
        if self.is_quoted() { 0 } else { indent(&self.lead) }
    }

    /// Whether a line, taken without the indentation that the block has, closes it.
    pub(crate) fn is_closed_by(&self, line: &str) -> bool {
        let lead: &[char] = if self.is_quoted() { &[' ', '\t', '>'] } else { &[' '] };
        if indent(line) > MAX_FENCE_INDENT {
            return false;
        }
        let rest = line.trim_start_matches(lead).strip_prefix(self.mark.as_str());
        let mark = self.mark.chars().next().unwrap_or_default();
        rest.is_some_and(|rest| rest.trim_start_matches(mark).trim().is_empty())
    }

    fn is_unclosed(&self) -> bool {
        self.body.end == self.range.end
    }

    fn is_quoted(&self) -> bool {
        self.lead.contains('>')
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// How many columns of blanks a line begins with.
pub(crate) fn indent(line: &str) -> usize {
    let mut columns = 0;
    for character in line.chars() {
        match character {
            ' ' => columns += 1,
            '\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// A line without its first `margin` columns, as far as these are blank.
pub(crate) fn without_margin(line: &str, margin: usize) -> &str {
    let mut columns = 0;
    let past = line.find(|c| {
        columns += match c {
            ' ' => 1,
            '\t' => 4 - columns % 4,
            _ => return true,
        };
        columns > margin
    });
    past.map_or("", |past| &line[past..])
}

/// The sign before an item and the first letter behind it: a sign that stands alone means nothing.
fn sign_of_item(text: &str, item: usize) -> Range<usize> {
    let sign = text[item..].trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    let content = sign.get(1..).unwrap_or_default().trim_start();
    let first_letter = content.chars().next().map_or(0, char::len_utf8);
    item..text.len() - content.len() + first_letter
}
