//! Markdown to the tree.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::autolink::addresses;
use crate::document::{Align, Block, Cell, Document, Inline, Item, Marker, Spacing, Task};
use crate::visible::visible;

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
    markdown.lines().all(|line| {
        let marker = |c: &char| matches!(c, '>' | '-' | '+' | '*' | '.' | ')');
        let beginning = |c: &char| marker(c) || matches!(c, ' ' | '\t' | '0'..='9');
        line.chars().take_while(beginning).filter(marker).count() <= MAX_MARKERS
    })
}

/// Reads CommonMark with tables, strikethrough and task lists. Never fails, whatever the text is:
/// what is not Markdown is text, HTML is text, and a document that is still being written is read as
/// far as it goes. As in a chat, a line that ends in the source ends in the document.
pub fn parse(markdown: &str) -> Document {
    let source = visible(markdown);
    let source = without_half_underline(&source);
    let (marked, unmarked) = if is_tame(source) { bounded(source) } else { ("", source) };
    let mut reader =
        Reader { events: Parser::new_ext(marked, extensions()), task: None, within: Within::Text };
    let mut blocks = reader.flow(0).blocks;
    if !unmarked.trim().is_empty() {
        blocks.push(Block::Paragraph(lines(unmarked)));
    }
    Document { blocks }
}

/// A list that begins below a paragraph looks like the underline of a heading until its first word
/// arrives; without this, the paragraph would flash up as a heading in every draft of an answer.
fn without_half_underline(source: &str) -> &str {
    source
        .trim_end_matches(' ')
        .strip_suffix(['-', '='])
        .filter(|before| before.ends_with('\n'))
        .unwrap_or(source)
}

fn bounded(source: &str) -> (&str, &str) {
    if source.len() <= MAX_MARKED {
        return (source, "");
    }
    let end = source.floor_char_boundary(MAX_MARKED);
    source.split_at(source[..end].rfind('\n').map_or(end, |newline| newline + 1))
}

/// Text as it is, line by line.
fn lines(text: &str) -> Vec<Inline> {
    let mut inlines = Vec::new();
    for line in text.trim_end().lines() {
        if !inlines.is_empty() {
            inlines.push(Inline::Break);
        }
        inlines.push(Inline::Text(one_line(line)));
    }
    inlines
}

/// Character references such as `&#27;` put control characters back after the source was cleaned.
fn one_line(text: &str) -> String {
    let replaced = |c: char| if c == '\n' || c == '\t' { ' ' } else { c };
    text.chars().map(replaced).filter(|c| !c.is_control()).collect()
}

/// The language in the info string of a code block.
fn language(info: &str) -> Option<String> {
    let allowed = |c: &char| matches!(c, 'a'..='z' | '0'..='9' | '+' | '#' | '-');
    let name: String =
        info.trim().chars().map(|c| c.to_ascii_lowercase()).take_while(allowed).take(32).collect();
    (!name.is_empty()).then_some(name)
}

struct Reader<'a> {
    events: Parser<'a>,
    /// What the item that is being read turned out to be.
    task: Option<Task>,
    within: Within,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Text,
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
            self.blocks.push(Block::Paragraph(with_addresses(text)));
        }
    }
}

impl Reader<'_> {
    /// Everything up to the end of the container that was entered last.
    fn flow(&mut self, depth: usize) -> Flow {
        let mut flow = Flow { blocks: Vec::new(), text: Vec::new(), spacing: Spacing::Tight };
        let mut flattened = 0;
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(Tag::Paragraph) => {
                    flow.spacing = Spacing::Loose;
                    let text = self.running_text(depth);
                    flow.push(Block::Paragraph(text));
                }
                Event::Start(Tag::Heading { level, .. }) => {
                    let text = self.running_text(depth);
                    flow.push(Block::Heading { level: level as u8, text });
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(info) => language(&info),
                        CodeBlockKind::Indented => None,
                    };
                    let mut text = self.verbatim();
                    text.truncate(text.trim_end_matches('\n').len());
                    flow.push(Block::Code { language, text });
                }
                Event::Start(Tag::HtmlBlock) => {
                    let text = self.verbatim();
                    flow.push(Block::Paragraph(lines(&text)));
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
                inline => self.inline(inline, &mut flow.text, depth),
            }
        }
        flow.end_text();
        flow
    }

    fn list(&mut self, first: Option<u64>, depth: usize) -> Block {
        let mut spacing = Spacing::Tight;
        let mut items = Vec::new();
        while let Some(Event::Start(_)) = self.events.next() {
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
            match self.events.next() {
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
        while let Some(Event::Start(_)) = self.events.next() {
            cells.push(self.running_text(depth));
        }
        cells
    }

    /// The text of a code or HTML block.
    fn verbatim(&mut self) -> String {
        let mut text = String::new();
        for event in self.events.by_ref() {
            match event {
                Event::Text(piece) | Event::Html(piece) => text.push_str(&piece),
                Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock) => break,
                _ => {}
            }
        }
        text
    }

    fn running_text(&mut self, depth: usize) -> Vec<Inline> {
        with_addresses(self.inlines(depth))
    }

    fn inlines(&mut self, depth: usize) -> Vec<Inline> {
        let mut inlines = Vec::new();
        let mut flattened = 0;
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(_) if depth >= MAX_DEPTH => flattened += 1,
                Event::End(_) if flattened == 0 => break,
                Event::End(_) => flattened -= 1,
                inline => self.inline(inline, &mut inlines, depth),
            }
        }
        inlines
    }

    fn inline(&mut self, event: Event<'_>, into: &mut Vec<Inline>, depth: usize) {
        match event {
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => {
                push_text(into, &one_line(&text));
            }
            Event::Code(text) => into.push(Inline::Code(one_line(&text))),
            Event::SoftBreak | Event::HardBreak => into.push(Inline::Break),
            Event::TaskListMarker(done) => {
                self.task = Some(if done { Task::Done } else { Task::Open });
            }
            Event::Start(Tag::Strong) => into.push(Inline::Strong(self.inlines(depth + 1))),
            Event::Start(Tag::Emphasis) => into.push(Inline::Emphasis(self.inlines(depth + 1))),
            Event::Start(Tag::Strikethrough) => into.push(Inline::Strike(self.inlines(depth + 1))),
            Event::Start(Tag::Link { link_type: LinkType::Email, dest_url, .. }) => {
                self.link(&format!("mailto:{dest_url}"), "", into, depth);
            }
            Event::Start(Tag::Link { dest_url, .. }) => self.link(&dest_url, "", into, depth),
            Event::Start(Tag::Image { dest_url, .. }) => self.link(&dest_url, "image", into, depth),
            Event::Start(_) => into.extend(self.inlines(depth + 1)),
            _ => {}
        }
    }

    fn link(&mut self, to: &str, unnamed: &str, into: &mut Vec<Inline>, depth: usize) {
        let to = one_line(to);
        let outer = std::mem::replace(&mut self.within, Within::Link);
        let mut text = self.inlines(depth + 1);
        self.within = outer;
        if text.is_empty() {
            let name = if unnamed.is_empty() { to.as_str() } else { unnamed };
            push_text(&mut text, name);
        }
        // A data address is the thing itself and not a way to it; nobody wants to read it.
        let leads_nowhere = to.is_empty() || starts_with_scheme(&to, "data:");
        if outer == Within::Link || leads_nowhere {
            into.extend(text);
        } else {
            into.push(Inline::Link { to, text });
        }
    }
}

pub(crate) fn starts_with_scheme(address: &str, scheme: &str) -> bool {
    address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

fn push_text(into: &mut Vec<Inline>, text: &str) {
    match into.last_mut() {
        _ if text.is_empty() => {}
        Some(Inline::Text(before)) => before.push_str(text),
        _ => into.push(Inline::Text(text.to_owned())),
    }
}

/// Turns addresses that were written without marks into links. Links are left alone.
fn with_addresses(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut linked = Vec::with_capacity(inlines.len());
    for inline in inlines {
        match inline {
            Inline::Text(text) => {
                let mut done = 0;
                for address in addresses(&text) {
                    push_text(&mut linked, &text[done..address.start]);
                    done = address.end;
                    let to = text[address].to_owned();
                    linked.push(Inline::Link { text: vec![Inline::Text(to.clone())], to });
                }
                push_text(&mut linked, &text[done..]);
            }
            Inline::Strong(inner) => linked.push(Inline::Strong(with_addresses(inner))),
            Inline::Emphasis(inner) => linked.push(Inline::Emphasis(with_addresses(inner))),
            Inline::Strike(inner) => linked.push(Inline::Strike(with_addresses(inner))),
            Inline::Code(_) | Inline::Link { .. } | Inline::Break => linked.push(inline),
        }
    }
    linked
}
