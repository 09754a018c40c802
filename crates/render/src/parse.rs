//! Markdown to the tree.

use std::borrow::Cow;

use pulldown_cmark::{
    Alignment, CodeBlockKind, Event, LinkType, OffsetIter, Options, Parser, Tag, TagEnd,
};

use crate::document::{Align, Block, Cell, Document, Inline, Item, Marker, Spacing, Task, words};
use crate::finish::{finished, push_text};
use crate::mend::{Mended, Piece, content, mend, unindented};
use crate::visible::{has_control, shown};

/// Deeper quotes, lists and emphasis are shown as if they stood in the last level, which keeps every
/// recursive walk of the tree shallow.
pub(crate) const MAX_DEPTH: usize = 32;

/// What stands behind this many bytes is kept, but as text without form.
const MAX_MARKED: usize = 256 * 1024;

/// A text with more markers than this at the start of one line is kept as text without form. The time
/// a line takes grows with the containers that are open, so that such a line makes every line slow.
const MAX_MARKERS: usize = 1000;

/// The extensions we read on top of CommonMark.
pub(crate) fn extensions() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Whether the parser can be trusted with a text.
pub(crate) fn is_tame(markdown: &str) -> bool {
    markdown.split('\n').all(|line| {
        let marker = |byte: &u8| matches!(byte, b'>' | b'-' | b'+' | b'*' | b'.' | b')');
        let beginning = |byte: &u8| marker(byte) || matches!(byte, b' ' | b'\t' | b'0'..=b'9');
        line.len() <= MAX_MARKERS
            || line.bytes().take_while(beginning).filter(marker).count() <= MAX_MARKERS
    })
}

/// Reads CommonMark with tables, strikethrough, task lists, spoilers and formulas. Never fails,
/// whatever the text is: what is not Markdown is text, HTML is text, and a document that is still being
/// written is read as far as it goes. As in a chat, a line that ends in the source ends in the
/// document. What models often get wrong is read as they mean it: code blocks in a block of Markdown,
/// rows with too many cells, marks between words of scripts that put no spaces there.
pub fn parse(markdown: &str) -> Document {
    let source = shown(markdown);
    let source = without_half_marks(&source);
    let (marked, unmarked) = if is_tame(source) { bounded(source) } else { ("", source) };
    let mended = mend(marked);
    let mut reader = Reader {
        events: Parser::new_ext(&mended.text, extensions()).into_offset_iter(),
        mended: &mended,
        task: None,
        within: Within::Text,
    };
    let mut blocks = reader.flow(0).blocks;
    blocks.extend(paragraphs(unmarked));
    Document { blocks }
}

/// A list that begins below a paragraph looks like the underline of a heading until its first word
/// arrives, and a fence like code until its third tick does; without this, both would flash up in every
/// draft of an answer.
fn without_half_marks(source: &str) -> &str {
    let text = source.trim_end_matches(' ');
    let half_underline = text.strip_suffix(['-', '=']).filter(|before| {
        let above = before.trim_end_matches(' ').strip_suffix('\n').unwrap_or_default();
        let above = above.rsplit('\n').next().unwrap_or_default().trim_end();
        let number = above.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_item = content(above) != above || matches!(number, "-" | "*" | "+" | "." | ")");
        !above.is_empty() && !is_item
    });
    let half_fence = ["``", "`", "~~", "~"].iter().find_map(|ticks| text.strip_suffix(ticks));
    let before = half_underline.or(half_fence);
    before.filter(|before| before.ends_with('\n')).unwrap_or(source)
}

fn bounded(source: &str) -> (&str, &str) {
    if source.len() <= MAX_MARKED {
        return (source, "");
    }
    let end = source.floor_char_boundary(MAX_MARKED);
    source.split_at(source[..end].rfind('\n').map_or(end, |newline| newline + 1))
}

/// Text as it is, line by line; an empty line ends a paragraph.
fn paragraphs(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut inlines = Vec::new();
    for line in text.lines().chain([""]) {
        if line.trim().is_empty() {
            if !inlines.is_empty() {
                blocks.push(Block::Paragraph(finished(std::mem::take(&mut inlines))));
            }
            continue;
        }
        if !inlines.is_empty() {
            inlines.push(Inline::Break);
        }
        inlines.push(Inline::Text(one_line(line.trim_end()).into_owned()));
    }
    blocks
}

/// Character references such as `&#27;` put control characters back after the source was cleaned.
fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\t']) && !has_control(text) {
        return Cow::Borrowed(text);
    }
    let replaced = |c: char| if c == '\n' || c == '\t' { ' ' } else { c };
    Cow::Owned(text.chars().map(replaced).filter(|c| !c.is_control()).collect())
}

/// The language in the info string of a code block.
fn language(info: &str) -> Option<String> {
    let allowed = |c: &char| matches!(c, 'a'..='z' | '0'..='9' | '+' | '#' | '-');
    let name: String =
        info.trim().chars().map(|c| c.to_ascii_lowercase()).take_while(allowed).take(32).collect();
    (!name.is_empty()).then_some(name)
}

struct Reader<'a> {
    events: OffsetIter<'a>,
    mended: &'a Mended<'a>,
    /// What the item that is being read turned out to be.
    task: Option<Task>,
    within: Within,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Text,
    Cell,
    Link,
}

/// Blocks that follow each other, with the running text that has not become one yet: the items of a
/// tight list hold text without a paragraph around it.
struct Flow {
    blocks: Vec<Block>,
    text: Vec<Inline>,
    spacing: Spacing,
}

impl Flow {
    fn push(&mut self, block: Block) {
        self.end_text();
        self.blocks.push(block);
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.blocks.push(Block::Paragraph(finished(text)));
        }
    }
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Event<'a>> {
        self.events.next().map(|(event, _)| event)
    }

    /// Everything up to the end of the container that was entered last.
    fn flow(&mut self, depth: usize) -> Flow {
        let mut flow = Flow { blocks: Vec::new(), text: Vec::new(), spacing: Spacing::Tight };
        let mut flattened = 0;
        while let Some((event, range)) = self.events.next() {
            match event {
                Event::Start(Tag::Paragraph) => {
                    flow.spacing = Spacing::Loose;
                    let text = self.running_text(depth);
                    flow.push(Block::Paragraph(text));
                }
                Event::Start(Tag::Heading { level, .. }) => {
                    let text = on_one_line(self.running_text(depth));
                    flow.push(Block::Heading { level: level as u8, text });
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(info) => language(&self.mended.restored(&info)),
                        CodeBlockKind::Indented => None,
                    };
                    let mut text = self.verbatim();
                    text.truncate(text.trim_end_matches('\n').len());
                    // A fence that nothing follows yet: an answer in the making.
                    let is_last_line = !self.mended.text[range.start..].trim_end().contains('\n');
                    if !(text.is_empty() && is_last_line) {
                        flow.push(Block::Code { language, text });
                    }
                }
                Event::Start(Tag::HtmlBlock) => {
                    let text = self.verbatim();
                    paragraphs(&text).into_iter().for_each(|block| flow.push(block));
                }
                Event::Start(Tag::Table(columns)) => {
                    let table = self.table(&columns, depth);
                    flow.push(table);
                }
                Event::Start(Tag::List(first)) if depth < MAX_DEPTH => {
                    let list = self.list(first, depth + 1);
                    flow.push(list);
                }
                Event::Start(Tag::BlockQuote(_)) if depth < MAX_DEPTH => {
                    let quote = self.flow(depth + 1).blocks;
                    flow.push(Block::Quote(quote));
                }
                Event::Start(Tag::List(_) | Tag::Item | Tag::BlockQuote(_)) => {
                    flow.end_text();
                    flattened += 1;
                }
                Event::End(_) => {
                    flow.end_text();
                    if flattened == 0 {
                        return flow;
                    }
                    flattened -= 1;
                }
                Event::Rule => flow.push(Block::Rule),
                inline => self.inline(inline, range.start, &mut flow.text, depth),
            }
        }
        flow.end_text();
        flow
    }

    fn list(&mut self, first: Option<u64>, depth: usize) -> Block {
        let mut spacing = Spacing::Tight;
        let mut items = Vec::new();
        while let Some(Event::Start(_)) = self.next() {
            let outer = self.task.take();
            let flow = self.flow(depth);
            if flow.spacing == Spacing::Loose {
                spacing = Spacing::Loose;
            }
            let task = std::mem::replace(&mut self.task, outer);
            items.push(Item { task, blocks: flow.blocks });
        }
        let marker = first.map_or(Marker::Bullet, Marker::Number);
        Block::List { marker, spacing, items }
    }

    fn table(&mut self, columns: &[Alignment], depth: usize) -> Block {
        let columns = columns
            .iter()
            .map(|alignment| match alignment {
                Alignment::None | Alignment::Left => Align::Left,
                Alignment::Center => Align::Center,
                Alignment::Right => Align::Right,
            })
            .collect();
        let mut head = Vec::new();
        let mut rows = Vec::new();
        loop {
            match self.next() {
                Some(Event::Start(Tag::TableHead)) => head = self.row(depth),
                Some(Event::Start(_)) => {
                    let mut row = self.row(depth);
                    let filled = row.iter().rposition(|cell| !cell.is_empty());
                    row.truncate(filled.map_or(0, |last| last + 1));
                    rows.push(row);
                }
                _ => return Block::Table { columns, head, rows },
            }
        }
    }

    fn row(&mut self, depth: usize) -> Vec<Cell> {
        let mut cells = Vec::new();
        let outer = std::mem::replace(&mut self.within, Within::Cell);
        while let Some(Event::Start(_)) = self.next() {
            let mut cell = self.running_text(depth);
            trim_edge(&mut cell, Edge::Start);
            trim_edge(&mut cell, Edge::End);
            cells.push(cell);
        }
        self.within = outer;
        cells
    }

    /// The text of a code or HTML block.
    fn verbatim(&mut self) -> String {
        let mut text = String::new();
        while let Some(event) = self.next() {
            match event {
                Event::Text(piece) | Event::Html(piece) => {
                    text.push_str(&self.mended.restored(&piece));
                }
                Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock) => break,
                _ => {}
            }
        }
        text
    }

    fn running_text(&mut self, depth: usize) -> Vec<Inline> {
        finished(self.inlines(depth))
    }

    fn inlines(&mut self, depth: usize) -> Vec<Inline> {
        let mut inlines = Vec::new();
        let mut flattened = 0;
        while let Some((event, range)) = self.events.next() {
            match event {
                Event::Start(_) if depth >= MAX_DEPTH => flattened += 1,
                Event::End(_) if flattened == 0 => break,
                Event::End(_) => flattened -= 1,
                inline => self.inline(inline, range.start, &mut inlines, depth),
            }
        }
        inlines
    }

    fn inline(&mut self, event: Event<'_>, at: usize, into: &mut Vec<Inline>, depth: usize) {
        match event {
            Event::InlineHtml(tag) if self.within == Within::Cell && is_line_break(&tag) => {
                into.push(Inline::Break);
            }
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text)
                if !self.mended.is_marked(&text) =>
            {
                push_text(into, &one_line(&text));
            }
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => {
                for piece in self.mended.pieces(&text) {
                    match piece {
                        Piece::Text(text) => push_text(into, &one_line(&text)),
                        Piece::Formula(formula) if self.within == Within::Cell => {
                            into.push(Inline::Math(one_line(formula).into_owned()));
                        }
                        Piece::Formula(formula) => into.push(Inline::Math(unindented(formula))),
                    }
                }
            }
            Event::Code(text) => {
                into.push(Inline::Code(one_line(&self.mended.restored(&text)).into_owned()));
            }
            Event::SoftBreak | Event::HardBreak => into.push(Inline::Break),
            Event::TaskListMarker(done) => {
                self.task = Some(if done { Task::Done } else { Task::Open });
            }
            Event::Start(Tag::Strong) => into.push(Inline::Strong(self.inlines(depth + 1))),
            Event::Start(Tag::Emphasis) => into.push(Inline::Emphasis(self.inlines(depth + 1))),
            Event::Start(Tag::Strikethrough) => {
                let inner = self.inlines(depth + 1);
                if self.mended.text[at..].starts_with("~~") {
                    into.push(Inline::Strike(inner));
                } else {
                    // Two tildes strike out; one means "about", or a range.
                    push_text(into, "~");
                    inner.into_iter().for_each(|inline| push(into, inline));
                    push_text(into, "~");
                }
            }
            Event::Start(Tag::Link { link_type: LinkType::Email, dest_url, .. }) => {
                self.link(&format!("mailto:{dest_url}"), "", into, depth);
            }
            Event::Start(Tag::Link { dest_url, .. }) => self.link(&dest_url, "", into, depth),
            Event::Start(Tag::Image { dest_url, .. }) => self.link(&dest_url, "image", into, depth),
            Event::Start(_) => {
                self.inlines(depth + 1).into_iter().for_each(|inline| push(into, inline));
            }
            _ => {}
        }
    }

    fn link(&mut self, to: &str, unnamed: &str, into: &mut Vec<Inline>, depth: usize) {
        let to = one_line(&self.mended.restored(to)).into_owned();
        let outer = std::mem::replace(&mut self.within, Within::Link);
        let mut text = self.inlines(depth + 1);
        self.within = outer;
        if words(&text).trim().is_empty() {
            let name = if unnamed.is_empty() { to.as_str() } else { unnamed };
            text = vec![Inline::Text(name.to_owned())];
        }
        // A data address is the thing itself and not a way to it; nobody wants to read it.
        let leads_nowhere = to.is_empty() || starts_with_scheme(&to, "data:");
        if outer == Within::Link || leads_nowhere {
            text.into_iter().for_each(|inline| push(into, inline));
        } else {
            let before = trim_edge(&mut text, Edge::Start);
            let after = trim_edge(&mut text, Edge::End);
            push_text(into, &before);
            if names_another_place(&text, &to) {
                text.into_iter().for_each(|inline| push(into, inline));
                push_text(into, " (");
                into.push(Inline::Link { text: vec![Inline::Text(to.clone())], to });
                push_text(into, ")");
            } else {
                into.push(Inline::Link { to, text });
            }
            push_text(into, &after);
        }
    }
}

/// Whether a link's text reads as the address of another place than the one that it leads to.
fn names_another_place(text: &[Inline], to: &str) -> bool {
    fn host(address: &str) -> Option<String> {
        let address = address.trim().to_ascii_lowercase();
        let rest = match address.split_once("://") {
            Some((_, rest)) => rest,
            None if address.starts_with("www.") => &address,
            None => return None,
        };
        let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        Some(host.strip_prefix("www.").unwrap_or(host).to_owned())
    }
    host(&words(text)).is_some_and(|named| host(to) != Some(named))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Start,
    End,
}

/// Takes the blanks at an edge of running text away, and returns them.
fn trim_edge(inlines: &mut [Inline], edge: Edge) -> String {
    let outermost = match edge {
        Edge::Start => inlines.first_mut(),
        Edge::End => inlines.last_mut(),
    };
    match outermost {
        Some(Inline::Text(text)) => {
            let kept = match edge {
                Edge::Start => text.trim_start_matches(' '),
                Edge::End => text.trim_end_matches(' '),
            };
            let blanks = " ".repeat(text.len() - kept.len());
            *text = kept.to_owned();
            blanks
        }
        Some(
            Inline::Strong(inner)
            | Inline::Emphasis(inner)
            | Inline::Strike(inner)
            | Inline::Spoiler(inner)
            | Inline::Link { text: inner, .. },
        ) => trim_edge(inner, edge),
        Some(Inline::Code(_) | Inline::Math(_) | Inline::Break) | None => String::new(),
    }
}

pub(crate) fn starts_with_scheme(address: &str, scheme: &str) -> bool {
    address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// In a cell, where a line cannot end otherwise.
fn is_line_break(tag: &str) -> bool {
    let name = tag.trim_start_matches('<').trim_end_matches('>').trim_end_matches('/').trim();
    name.eq_ignore_ascii_case("br")
}

fn push(into: &mut Vec<Inline>, inline: Inline) {
    match inline {
        Inline::Text(text) => push_text(into, &text),
        other => into.push(other),
    }
}

fn on_one_line(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut line = Vec::with_capacity(inlines.len());
    for inline in inlines {
        match inline {
            Inline::Break => push_text(&mut line, " "),
            Inline::Math(formula) => line.push(Inline::Math(formula.replace('\n', " "))),
            Inline::Strong(inner) => line.push(Inline::Strong(on_one_line(inner))),
            Inline::Emphasis(inner) => line.push(Inline::Emphasis(on_one_line(inner))),
            Inline::Strike(inner) => line.push(Inline::Strike(on_one_line(inner))),
            Inline::Spoiler(inner) => line.push(Inline::Spoiler(on_one_line(inner))),
            Inline::Link { to, text } => line.push(Inline::Link { to, text: on_one_line(text) }),
            Inline::Text(text) => push_text(&mut line, &text),
            Inline::Code(_) => line.push(inline),
        }
    }
    line
}
