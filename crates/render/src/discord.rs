//! The dialect of Discord, a Markdown of its own.
//!
//! The rules: <https://docs.discord.com/developers/reference#message-formatting> and
//! <https://support.discord.com/hc/en-us/articles/210298617>. How its clients read the rest is known
//! from parsers that follow them: forms are looked for without regard to code and links, a quote and a
//! list item end with the line, a backslash escapes punctuation, and no escape keeps a mention from
//! calling people.

use std::borrow::Cow;

use crate::chat::{Link, Pen, Shown, Sign, blocks, columns, page, plain_sign, running_text};
use crate::document::{Block, Inline, Marker, Spacing, Task, shows_address};
use crate::page::{GAP, Page};
use crate::parse::starts_with_scheme;
use crate::runs::{Form, Forms, Piece, runs, runs_within};
use crate::table::Table;

/// The document as Discord's Markdown. It calls nobody whom the text does not call.
pub(crate) fn discord(document: &[Block]) -> String {
    let mut pen = Discord { last: Last::Words, quotes: 0, lists: Vec::new() };
    page(&mut pen, document).into_text()
}

struct Discord {
    last: Last,
    /// How many quotes are open.
    quotes: usize,
    /// The lists that are open.
    lists: Vec<Marker>,
}

/// What was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Words,
    OpeningMark,
    ClosingMark,
}

fn mark(form: Form) -> &'static str {
    match form {
        Form::Spoiler => "||",
        Form::Strike => "~~",
        Form::Strong => "**",
        Form::Emphasis => "*",
    }
}

impl Discord {
    /// Writes a mark. Marks that open or close at once may touch each other, other marks and text not.
    fn mark(&mut self, page: &mut Page, form: Form, what: Last) {
        let mark = mark(form);
        if self.last != what && page.last().is_some_and(|last| mark.starts_with(last)) {
            page.push_char(GAP);
        }
        page.push(mark);
        self.last = what;
    }

    fn fence(&self, page: &mut Page, language: &str, text: &str) {
        page.at_the_edge(|page| {
            page.push("```");
            page.push(language);
            page.end_line();
            // A block without anything in it is three ticks, and three more.
            let text = if text.trim().is_empty() { " " } else { text };
            for line in text.split('\n') {
                page.push(&unfenced(line));
                page.end_line();
            }
            page.push("```");
        });
    }
}

/// Code in which no tick stands beside another.
fn parted_ticks(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + GAP.len_utf8());
    for character in text.chars() {
        if character == '`' && out.ends_with('`') {
            out.push(GAP);
        }
        out.push(character);
    }
    out
}

/// A line in which nothing ends a block of code.
pub(crate) fn unfenced(line: &str) -> Cow<'_, str> {
    match line.contains("```") {
        true => Cow::Owned(parted_ticks(line)),
        false => Cow::Borrowed(line),
    }
}

impl Pen for Discord {
    const WIDEST_TABLE: usize = 60;

    fn open(&mut self, page: &mut Page, form: Form) {
        self.mark(page, form, Last::OpeningMark);
    }

    fn close(&mut self, page: &mut Page, form: Form) {
        self.mark(page, form, Last::ClosingMark);
    }

    fn text(&mut self, page: &mut Page, text: &str) {
        self.last = Last::Words;
        let begins_title = page.text().ends_with("# ");
        page.push(&escaped(text, page.is_at_line_start() || begins_title));
    }

    fn code(&mut self, page: &mut Page, text: &str) {
        self.last = Last::Words;
        let (ticks, text) = match text.contains('`') {
            false => ("`", Cow::Borrowed(text)),
            true => ("``", Cow::Owned(parted_ticks(text))),
        };
        let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
        if page.last() == Some('`') {
            page.push_char(GAP);
        }
        page.push(&format!("{ticks}{space}{text}{space}{ticks}"));
    }

    fn link(&mut self, page: &mut Page, link: Link<'_>) {
        self.last = Last::Words;
        let is_web =
            ["http://", "https://"].iter().any(|scheme| starts_with_scheme(link.to, scheme))
                && !link.to.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '\\'));
        if shows_address(link.text, link.to) {
            // Whatever follows without a blank would become part of the address.
            let glued = link.glued.trim_start_matches([')', ',', '.']);
            let ends = glued.is_empty() || glued.starts_with('<');
            let begins = !page.last().is_some_and(char::is_alphanumeric);
            match (is_web, begins && ends) {
                (true, true) => page.push(link.to),
                (true, false) => page.push(&format!("<{}>", link.to)),
                (false, _) => running_text(self, page, &runs(link.text)),
            }
            return;
        }
        let mut label = Page::default();
        label.push_char(GAP);
        running_text(self, &mut label, &runs(link.text));
        let label = label.into_text();
        let label = label.strip_prefix(GAP).unwrap_or(&label);
        self.last = Last::Words;
        if is_web && may_be_label(label) {
            page.push(&format!("[{label}]({})", masked(link.to)));
            return;
        }
        running_text(self, page, &runs(link.text));
        page.push(" (");
        match is_web {
            true => page.push(&format!("<{}>", link.to)),
            false => self.text(page, link.to),
        }
        page.push(")");
    }

    fn shown(&self, forms: Forms, piece: &Piece<'_>) -> Forms {
        let literal = match piece {
            Piece::Code(text) => text,
            Piece::Link { to, .. } => to,
            Piece::Text(_) | Piece::Math(_) | Piece::Break => return forms,
        };
        // A mark in what cannot be escaped would end the form that it stands in.
        let ends = |form: &Form| literal.contains(mark(*form));
        Form::ALL.iter().filter(|form| ends(form)).fold(forms, |forms, form| forms.without(*form))
    }

    fn heading(&mut self, page: &mut Page, level: u8, text: &[Inline]) {
        // In a quote within a quote, signs at the start of a line mean nothing, and neither do they
        // behind a number that is text.
        let is_seen = self.quotes < 2 && self.lists.last() != Some(&Marker::Number(0));
        if level <= 3 && !text.is_empty() && is_seen {
            self.last = Last::Words;
            page.push(&"#".repeat(level.into()));
            page.push(" ");
            running_text(self, page, &runs(text));
        } else {
            running_text(self, page, &runs_within(text, Forms::NONE.with(Form::Strong)));
        }
    }

    fn block_of_code(&mut self, page: &mut Page, language: Option<&str>, text: &str) {
        // A sharp would make a line of code of the name.
        let language = match language.unwrap_or_default() {
            "c#" => "cs",
            "f#" => "fs",
            other if other.contains('#') => "",
            other => other,
        };
        self.fence(page, language, text);
    }

    fn quote(&mut self, page: &mut Page, inner: &[Block]) {
        let margin = page.deepen("> ");
        self.quotes += 1;
        blocks(self, page, inner, Spacing::Loose);
        self.quotes -= 1;
        page.restore(margin);
    }

    fn table(&mut self, page: &mut Page, table: &Table<'_>) -> Shown {
        let Some(lines) = columns::<Self>(table) else { return Shown::No };
        self.fence(page, "", &lines.join("\n"));
        Shown::Yes
    }

    fn begin_list(&mut self, marker: Marker, _: Option<&Block>) {
        self.lists.push(marker);
    }

    fn end_list(&mut self) {
        self.lists.pop();
    }

    fn sign(&self, marker: Marker, index: usize, task: Option<Task>) -> Sign {
        let plain = plain_sign(marker, index, task);
        match (marker, task) {
            (_, Some(_)) => Sign { text: format!("- {plain}"), width: 2 },
            (Marker::Bullet, None) => Sign { text: "- ".to_owned(), width: 2 },
            // A list that begins with zero would be shown as one that begins with one.
            (Marker::Number(0), None) => Sign { text: format!("{index}\\. "), width: 2 },
            (Marker::Number(_), None) => Sign { width: plain.len(), text: plain },
        }
    }
}

/// Text that shows itself.
fn escaped(text: &str, at_line_start: bool) -> Cow<'_, str> {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b" ,.-;:'\"()?!/%=@".contains(&byte) || byte >= 0x80
    };
    let first_word = text.bytes().next().is_none_or(|byte| byte.is_ascii_alphabetic());
    if (first_word || !at_line_start) && text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (last_end, last_target) = (text.rfind(']'), text.rfind("]("));
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        if character == '<'
            && let Some(length) = custom_emoji(&text[at..])
        {
            out.push_str(&text[at..at + length]);
            while rest.next_if(|(next, _)| *next < at + length).is_some() {}
            before = Some('>');
            continue;
        }
        let after = rest.peek().map(|(_, next)| *next);
        let is_first = at_line_start && at == 0;
        let is_mark = match character {
            '*' | '_' | '`' => true,
            '~' | '|' => before == Some(character) || after == Some(character),
            '\\' => after.is_none_or(|c| !c.is_alphanumeric() && !c.is_whitespace()),
            '[' => {
                last_target.is_some_and(|last| at < last) || last_end.is_none_or(|last| last < at)
            }
            '-' | '+' | '#' | '>' => is_first,
            '.' => at_line_start && digits > 0 && at == digits,
            _ => false,
        };
        if is_mark {
            out.push('\\');
        }
        out.push(character);
        before = Some(character);
    }
    Cow::Owned(out)
}

/// The name of a custom emoji has 32 characters at most, its id is a number of 64 bits.
const LONGEST_EMOJI: usize = 64;

/// How long the custom emoji is that a text begins with; its name may have underscores.
fn custom_emoji(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("<a:").or_else(|| text.strip_prefix("<:"))?;
    let end = inner.bytes().take(LONGEST_EMOJI).position(|byte| byte == b'>')?;
    let (name, id) = inner[..end].split_once(':')?;
    let is_emoji = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !id.is_empty()
        && id.bytes().all(|byte| byte.is_ascii_digit());
    is_emoji.then_some(text.len() - inner.len() + end + 1)
}

/// Discord shows no link whose text could be taken for an address, and counts brackets in it.
fn may_be_label(label: &str) -> bool {
    let mut depth = 0_i32;
    let balanced = label.bytes().all(|byte| {
        depth += match byte {
            b'[' => 1,
            b']' => -1,
            _ => 0,
        };
        depth >= 0
    });
    let lower = label.to_ascii_lowercase();
    balanced
        && depth == 0
        && !label.trim().is_empty()
        && !lower.contains("http://")
        && !lower.contains("https://")
        && !label.contains("```")
        && !label.contains("](")
}

/// An address as it may stand behind a text: brackets in it would end it, and some characters at its
/// end would not belong to it.
fn masked(address: &str) -> String {
    let mut masked = String::with_capacity(address.len());
    for (at, character) in address.char_indices() {
        let is_last = at + character.len_utf8() == address.len();
        match character {
            '(' => masked.push_str("%28"),
            ')' => masked.push_str("%29"),
            '.' | ',' | ':' | ';' | '"' | '\'' | ']' if is_last => {
                masked.push_str(&format!("%{:02X}", character as u32));
            }
            _ => masked.push(character),
        }
    }
    masked
}
