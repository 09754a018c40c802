//! The dialect of Slack, mrkdwn: <https://docs.slack.dev/messaging/formatting-message-text>.
//!
//! It has no titles, lists or tables, and only `&`, `<` and `>` can be escaped. Its marks count between
//! words only, so a mark within a word gets a gap, and a character that would be taken for a mark is
//! replaced by one that looks the same.

use std::borrow::Cow;

use crate::chat::{Link, Pen, Shown, blocks, columns, label, page, running_text};
use crate::discord::unfenced;
use crate::document::{Block, Inline, Spacing, shows_address, words};
use crate::page::{GAP, Page};
use crate::parse::starts_with_scheme;
use crate::runs::{Form, Forms, Piece, Run, runs, runs_within};
use crate::table::Table;

/// The document as mrkdwn. It calls nobody whom the text does not call, and never everybody at once.
pub(crate) fn slack(document: &[Block]) -> String {
    let mut pen = Slack { last: Last::Words, within: Within::Text, live: [false; 4] };
    page(&mut pen, document).into_text()
}

const MARKS: [char; 4] = ['*', '_', '~', '`'];

/// What looks like them.
const ALIKE: [char; 4] = ['\u{2217}', '\u{2cd}', '\u{223c}', '\u{2cb}'];

struct Slack {
    last: Last,
    within: Within,
    /// Which of the marks mean something in this paragraph.
    live: [bool; 4],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Text,
    Quote,
}

/// What was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Words,
    OpeningMark,
    ClosingMark,
}

fn mark(form: Form) -> Option<char> {
    match form {
        Form::Spoiler => None,
        Form::Strike => Some('~'),
        Form::Strong => Some('*'),
        Form::Emphasis => Some('_'),
    }
}

impl Slack {
    fn fence(&self, page: &mut Page, text: &str) {
        page.at_the_edge(|page| {
            page.push("```");
            page.end_line();
            for line in text.split('\n') {
                page.push(&escaped(&unfenced(line)));
                page.end_line();
            }
            page.push("```");
        });
    }

    /// Makes room for a word behind a mark.
    fn gap(&mut self, page: &mut Page, next: Option<char>) {
        let is_glued = next.is_some_and(|c| !c.is_whitespace() && !is_boundary(c));
        let follows_mark = self.last == Last::ClosingMark && page.last().is_some_and(|c| c != ' ');
        if follows_mark && is_glued {
            page.push_char(GAP);
        }
        self.last = Last::Words;
    }
}

impl Slack {
    /// Text in which no character is one of a pair of marks.
    fn without_marks<'t>(&self, text: &'t str, last: Option<char>) -> Cow<'t, str> {
        if !text.contains(MARKS) {
            return Cow::Borrowed(text);
        }
        let mut before = last;
        let mut rest = text.chars().peekable();
        let mut out = String::with_capacity(text.len());
        while let Some(character) = rest.next() {
            let after = rest.peek().copied();
            let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let is_blank = |c: Option<char>| c.is_some_and(char::is_whitespace);
            let stands_free = (is_word(before) && is_word(after) && character != '`')
                || (is_blank(before) && is_blank(after));
            let mark = MARKS.iter().position(|mark| *mark == character);
            out.push(match mark.filter(|mark| self.live[*mark] && !stands_free) {
                Some(mark) => ALIKE[mark],
                None => character,
            });
            before = Some(character);
        }
        Cow::Owned(out)
    }
}

impl Pen for Slack {
    const WIDEST_TABLE: usize = 72;

    fn begin_text(&mut self, runs: &[Run<'_>]) {
        self.live = MARKS.map(|mark| {
            let count = |run: &Run<'_>| match &run.piece {
                Piece::Text(text) => text.matches(mark).count(),
                Piece::Math(text) => text.matches(mark).count(),
                Piece::Code(_) if mark == '`' => 2,
                Piece::Code(text) => text.matches(mark).count(),
                Piece::Link { to, .. } => to.matches(mark).count(),
                Piece::Break => 0,
            };
            let is_form = |run: &Run<'_>| {
                Form::ALL.iter().any(|form| run.forms.has(*form) && self::mark(*form) == Some(mark))
            };
            runs.iter().any(is_form) || runs.iter().map(count).sum::<usize>() > 1
        });
    }

    fn open(&mut self, page: &mut Page, form: Form) {
        match mark(form) {
            Some(mark) => {
                let is_glued = |last: char| !last.is_whitespace() && !is_boundary(last);
                if self.last != Last::OpeningMark && page.last().is_some_and(is_glued) {
                    page.push_char(GAP);
                }
                page.push_char(mark);
            }
            None => page.push("||"),
        }
        self.last = Last::OpeningMark;
    }

    fn close(&mut self, page: &mut Page, form: Form) {
        match mark(form) {
            Some(mark) => page.push_char(mark),
            None => page.push("||"),
        }
        self.last = Last::ClosingMark;
    }

    fn text(&mut self, page: &mut Page, text: &str) {
        self.gap(page, text.chars().next());
        if page.is_at_line_start() && text.starts_with('>') {
            // Slack takes an escaped sign at the start of a line for the sign of a quote, too.
            page.push_char(GAP);
        }
        let text = self.without_marks(text, page.last());
        page.push(&escaped_around_mentions(&text));
    }

    fn code(&mut self, page: &mut Page, text: &str) {
        if text.contains('`') || text.trim().is_empty() {
            self.text(page, text);
            return;
        }
        self.gap(page, Some('`'));
        if page.last().is_some_and(|last| last.is_alphanumeric() || last == '`') {
            page.push_char(GAP);
        }
        page.push(&format!("`{}`", escaped(text)));
        self.last = Last::ClosingMark;
    }

    fn link(&mut self, page: &mut Page, link: Link<'_>) {
        let is_active = ["http://", "https://", "mailto:"]
            .iter()
            .any(|scheme| starts_with_scheme(link.to, scheme));
        let text = words(link.text);
        if !is_active || text.trim().is_empty() {
            label(self, page, &runs(link.text));
            if !shows_address(link.text, link.to) {
                self.last = Last::Words;
                page.push(" (");
                page.push(&escaped(link.to));
                page.push(")");
            }
            return;
        }
        self.gap(page, Some('<'));
        let address = address(link.to);
        if text == link.to {
            page.push(&format!("<{address}>"));
        } else {
            page.push(&format!("<{address}|{}>", escaped(text.trim())));
        }
    }

    fn shown(&self, forms: Forms, piece: &Piece<'_>) -> Forms {
        match piece {
            // Marks in an address would count.
            Piece::Link { to, .. } => Form::ALL
                .iter()
                .filter(|form| mark(**form).is_some_and(|mark| to.contains(mark)))
                .fold(forms, |forms, form| forms.without(*form)),
            Piece::Code(text) if text.trim().is_empty() => Forms::NONE,
            Piece::Code(text) => Form::ALL
                .iter()
                .filter(|form| mark(**form).is_some_and(|mark| text.contains(mark)))
                .fold(forms, |forms, form| forms.without(*form)),
            Piece::Text(_) | Piece::Math(_) | Piece::Break => forms,
        }
    }

    fn heading(&mut self, page: &mut Page, _: u8, text: &[Inline]) {
        running_text(self, page, &runs_within(text, Forms::NONE.with(Form::Strong)));
    }

    fn block_of_code(&mut self, page: &mut Page, _: Option<&str>, text: &str) {
        self.last = Last::Words;
        self.fence(page, text);
    }

    fn quote(&mut self, page: &mut Page, inner: &[Block]) {
        if self.within == Within::Quote {
            let margin = page.deepen("&gt; ");
            blocks(self, page, inner, Spacing::Loose);
            page.restore(margin);
            return;
        }
        self.within = Within::Quote;
        // Only at the start of a line it is a quote.
        page.at_the_edge(|page| {
            let margin = page.deepen("> ");
            blocks(self, page, inner, Spacing::Loose);
            page.restore(margin);
        });
        self.within = Within::Text;
    }

    fn table(&mut self, page: &mut Page, table: &Table<'_>) -> Shown {
        let Some(lines) = columns::<Self>(table) else { return Shown::No };
        self.last = Last::Words;
        self.fence(page, &lines.join("\n"));
        Shown::Yes
    }
}

/// Where a mark may begin or end. Other marks are none: beside each other they are not reliable.
fn is_boundary(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '-'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '"'
            | '\''
            | '/'
            | GAP
    )
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// Escaped text in which people and channels can be named.
fn escaped_around_mentions(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return escaped(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&escaped(&rest[..start]));
        rest = &rest[start..];
        let length = mention(rest).unwrap_or(1);
        match length {
            1 => out.push_str("&lt;"),
            _ => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out.push_str(&escaped(rest));
    Cow::Owned(out)
}

/// How long the mention of a person or a channel is that a text begins with.
fn mention(text: &str) -> Option<usize> {
    let id = text.strip_prefix("<@").or_else(|| text.strip_prefix("<#"))?;
    let is_id = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let end = id.bytes().take_while(is_id).count();
    let begins = id.starts_with(|c: char| c.is_ascii_uppercase());
    (begins && id[end..].starts_with('>')).then_some(end + 3)
}

/// An address as it may stand between angle brackets.
fn address(to: &str) -> String {
    let mut out = String::with_capacity(to.len());
    for character in to.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '|' => out.push_str("%7C"),
            ' ' => out.push_str("%20"),
            _ => out.push(character),
        }
    }
    out
}
