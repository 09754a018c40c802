//! The dialect of Telegram: plain text, and beside it what is bold where. There is no markup in the
//! text, so nothing in it can be misread.
//!
//! What may stand in what, and which addresses make the Bot API refuse a message:
//! <https://core.telegram.org/bots/api#formatting-options>, and `MessageEntity.cpp` and `LinkManager.cpp`
//! of <https://github.com/tdlib/td>, which the Bot API server is built on.

use std::cmp::Reverse;

use serde::Serialize;

use crate::chat::{Link, Pen, Shown, blocks, columns, page, running_text};
use crate::document::{Block, Inline, Spacing, shows_address};
use crate::page::Page;
use crate::plain::lines;
use crate::runs::{Form, Forms, Piece, Run, runs, runs_within};
use crate::table::Table;

/// What is formatted beyond this many entities is shown without its form.
pub(crate) const MOST_ENTITIES: usize = 100;

/// A quote with more lines than this is folded up.
const LONGEST_OPEN_QUOTE: usize = 12;

/// A stretch of text that has a form; serialized, a `MessageEntity` of the Bot API.
///
/// If two have characters in common, one is within the other. `Code` and `Pre` hold nothing and stand
/// in quotes only, links hold no links and quotes no quotes. None is empty or ends with a blank, only
/// code begins with one, and all are within the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entity {
    /// The form.
    #[serde(flatten)]
    pub kind: EntityKind,
    /// Where it begins, in UTF-16 code units.
    pub offset: usize,
    /// How long it is, in UTF-16 code units.
    pub length: usize,
}

/// The form of a stretch of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntityKind {
    /// Somebody else's words.
    Blockquote,
    /// Many of them, of which a few lines are shown at first.
    ExpandableBlockquote,
    /// Lines of code.
    Pre {
        /// Which language they are in.
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    },
    /// Code within a line.
    Code,
    /// A link with a text of its own. Its address is one that the Bot API takes.
    TextLink {
        /// Where it leads.
        url: String,
    },
    /// Bold.
    Bold,
    /// Italic.
    Italic,
    /// Struck out.
    Strikethrough,
    /// Hidden until it is touched.
    Spoiler,
}

/// The text and its entities, in order.
pub(crate) fn telegram(document: &[Block]) -> (String, Vec<Entity>) {
    let (mut text, mut spans) = draft(document);
    trim(&mut text, &mut spans);
    spans.sort_by_key(|span| (span.start, Reverse(span.end), rank(&span.kind)));
    let entities = in_utf16(&text, spans);
    (text, entities)
}

/// The text before blanks at its edges are taken away, and how many entities there are: the more blocks,
/// the more of both.
pub(crate) fn measured(document: &[Block]) -> (String, usize) {
    let (text, spans) = draft(document);
    (text, spans.len())
}

fn draft(document: &[Block]) -> (String, Vec<Span>) {
    let mut pen = Telegram::default();
    let text = page(&mut pen, document).into_text();
    (text, pen.spans)
}

#[derive(Debug, Default)]
struct Telegram {
    spans: Vec<Span>,
    /// Where the forms begin that are open.
    opened: Vec<usize>,
    within: Within,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    Link,
    Quote,
}

/// An entity, in bytes.
#[derive(Debug)]
struct Span {
    kind: EntityKind,
    start: usize,
    end: usize,
}

impl Telegram {
    fn push(&mut self, kind: EntityKind, start: usize, page: &Page) {
        let end = page.text().len();
        if start < end {
            self.spans.push(Span { kind, start, end });
        }
    }

    /// Where the next word will stand.
    fn here(page: &mut Page) -> usize {
        page.begin_line();
        page.text().len()
    }

    fn pre(&mut self, page: &mut Page, language: Option<&str>, text: &str) {
        page.at_the_edge(|page| {
            let start = page.text().len();
            // A tab would arrive as one blank.
            lines(page, text.replace('\t', "    ").split('\n'));
            self.push(EntityKind::Pre { language: language.map(str::to_owned) }, start, page);
        });
    }
}

impl Pen for Telegram {
    // What a telephone shows side by side in a block of code.
    const WIDEST_TABLE: usize = 40;

    fn open(&mut self, page: &mut Page, _: Form) {
        let start = Self::here(page);
        self.opened.push(start);
    }

    fn close(&mut self, page: &mut Page, form: Form) {
        let kind = match form {
            Form::Spoiler => EntityKind::Spoiler,
            Form::Strike => EntityKind::Strikethrough,
            Form::Strong => EntityKind::Bold,
            Form::Emphasis => EntityKind::Italic,
        };
        if let Some(start) = self.opened.pop() {
            self.push(kind, start, page);
        }
    }

    fn text(&mut self, page: &mut Page, text: &str) {
        page.push(text);
    }

    fn code(&mut self, page: &mut Page, text: &str) {
        let start = Self::here(page);
        page.push(text);
        if self.within != Within::Link {
            self.push(EntityKind::Code, start, page);
        }
    }

    fn link(&mut self, page: &mut Page, link: Link<'_>) {
        let outer = std::mem::replace(&mut self.within, Within::Link);
        let start = Self::here(page);
        let without = |run: &Run<'_>| {
            Form::ALL
                .iter()
                .filter(|form| link.forms.has(**form))
                .fold(run.forms, |forms, form| forms.without(*form))
        };
        let label: Vec<Run<'_>> =
            runs(link.text).into_iter().map(|run| Run { forms: without(&run), ..run }).collect();
        running_text(self, page, &label);
        self.within = outer;
        if shows_address(link.text, link.to) {
            return;
        }
        if is_accepted(link.to) {
            self.push(EntityKind::TextLink { url: link.to.to_owned() }, start, page);
        } else {
            page.push(" (");
            page.push(link.to);
            page.push(")");
        }
    }

    fn shown(&self, forms: Forms, piece: &Piece<'_>) -> Forms {
        match piece {
            Piece::Code(_) if self.within != Within::Link => Forms::NONE,
            _ => forms,
        }
    }

    fn heading(&mut self, page: &mut Page, _: u8, text: &[Inline]) {
        running_text(self, page, &runs_within(text, Forms::NONE.with(Form::Strong)));
    }

    fn block_of_code(&mut self, page: &mut Page, language: Option<&str>, text: &str) {
        self.pre(page, language, text);
    }

    fn quote(&mut self, page: &mut Page, inner: &[Block]) {
        if self.within == Within::Quote {
            let margin = page.deepen("> ");
            blocks(self, page, inner, Spacing::Loose);
            page.restore(margin);
            return;
        }
        self.within = Within::Quote;
        page.at_the_edge(|page| {
            let start = page.text().len();
            blocks(self, page, inner, Spacing::Loose);
            let kind = match page.text()[start..].lines().count() {
                0..=LONGEST_OPEN_QUOTE => EntityKind::Blockquote,
                _ => EntityKind::ExpandableBlockquote,
            };
            self.push(kind, start, page);
        });
        self.within = Within::Text;
    }

    fn table(&mut self, page: &mut Page, table: &Table<'_>) -> Shown {
        let Some(lines) = columns::<Self>(table) else { return Shown::No };
        self.pre(page, None, &lines.join("\n"));
        Shown::Yes
    }
}

/// Whether the Bot API takes an address for a link. It refuses the whole message otherwise, and makes
/// `http://mailto:me@…` of an address without a scheme that it knows.
fn is_accepted(address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else { return false };
    let host_and_port = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = match host_and_port.rsplit_once(':') {
        Some((host, port)) => (host, port.parse::<u16>().ok()),
        None => (host_and_port, Some(1)),
    };
    let is_host =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || !c.is_ascii();
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && port.is_some_and(|port| port > 0)
        && host.contains('.')
        && host != "."
        && host.chars().all(is_host)
        && !address.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Of two that hold the same text, which is the outer one.
fn rank(kind: &EntityKind) -> u8 {
    match kind {
        EntityKind::Blockquote | EntityKind::ExpandableBlockquote => 0,
        EntityKind::Pre { .. } | EntityKind::Code => 1,
        EntityKind::TextLink { .. } => 2,
        EntityKind::Bold | EntityKind::Italic | EntityKind::Strikethrough | EntityKind::Spoiler => {
            3
        }
    }
}

/// Takes the blanks away that Telegram takes away, so that we know the text as it will be.
fn trim(text: &mut String, spans: &mut Vec<Span>) {
    const BLANKS: [char; 2] = [' ', '\n'];
    text.truncate(text.trim_end_matches(BLANKS).len());
    for span in &mut *spans {
        let end = span.end.min(text.len());
        let inner = &text[span.start.min(end)..end];
        // Blanks at the start of code mean something, and a quote may begin with code.
        let is_block = matches!(
            span.kind,
            EntityKind::Pre { .. } | EntityKind::Blockquote | EntityKind::ExpandableBlockquote
        );
        let lead = inner.len() - inner.trim_start_matches(BLANKS).len();
        span.end = end.min(span.start + inner.trim_end_matches(BLANKS).len());
        if !is_block {
            span.start = (span.start + lead).min(span.end);
        }
    }
    spans.retain(|span| span.start < span.end);
    let first = spans.iter().map(|span| span.start).min().unwrap_or(text.len());
    let blanks = text.len() - text.trim_start_matches(BLANKS).len();
    let cut = blanks.min(first);
    text.drain(..cut);
    for span in spans {
        span.start -= cut;
        span.end -= cut;
    }
}

fn in_utf16(text: &str, spans: Vec<Span>) -> Vec<Entity> {
    let mut places: Vec<usize> = spans.iter().flat_map(|span| [span.start, span.end]).collect();
    places.sort_unstable();
    places.dedup();
    let (mut done, mut units) = (0, 0);
    let counted: Vec<usize> = places
        .iter()
        .map(|place| {
            units += text[done..*place].chars().map(char::len_utf16).sum::<usize>();
            done = *place;
            units
        })
        .collect();
    let unit = |place: usize| counted[places.partition_point(|other| *other < place)];
    spans
        .into_iter()
        .map(|Span { kind, start, end }| {
            let offset = unit(start);
            Entity { kind, offset, length: unit(end) - offset }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_the_bot_api_takes_become_links() {
        for address in ["http://a.example", "HTTPS://a.b:8080/c?d#e", "https://münchen.example/ü"]
        {
            assert!(is_accepted(address), "{address}");
        }
        for address in [
            "http://localhost:3000",
            "mailto:me@a.example",
            "tg://user?id=1",
            "https://a.example:0/",
            "https://a.example:99999",
            "https://user:pass@a.example:x",
            "https://.",
            "https://",
            "ftp://a.example",
            "./b.md",
            "https://a b.example",
        ] {
            assert!(!is_accepted(address), "{address}");
        }
    }
}
