//! What the tests of all dialects have in common.

use proptest::prelude::*;
use talaria_model::Unit;
use talaria_render::{Block, Dialect, Document, Inline, Item, Marker, Spacing, Task};

/// A document as a text in which only what can be seen makes a difference: neighbours of one form are
/// one, it does not matter which of two forms is the outer one, and the spacing of a list that is one
/// block says nothing.
pub(crate) fn essence(document: &Document) -> String {
    let mut out = String::new();
    blocks(document.blocks(), &mut out);
    out
}

fn blocks(all: &[Block], out: &mut String) {
    for block in all {
        match block {
            Block::Paragraph(text) => line("p", text, out),
            Block::Heading { level, text } => line(&format!("h{level}"), text, out),
            Block::List { marker, spacing, items } => {
                let is_one_block = items.len() == 1 && items[0].blocks.len() <= 1;
                let spacing = match spacing {
                    _ if is_one_block => "",
                    Spacing::Tight => "tight",
                    Spacing::Loose => "loose",
                };
                match marker {
                    Marker::Bullet => out.push_str(&format!("<ul {spacing}>\n")),
                    Marker::Number(first) => out.push_str(&format!("<ol {first} {spacing}>\n")),
                }
                for Item { task, blocks: inner } in items {
                    out.push_str(match task {
                        None => "<li>\n",
                        Some(Task::Open) => "<li open>\n",
                        Some(Task::Done) => "<li done>\n",
                    });
                    blocks(inner, out);
                }
                out.push_str("</list>\n");
            }
            Block::Quote(inner) => {
                out.push_str("<quote>\n");
                blocks(inner, out);
                out.push_str("</quote>\n");
            }
            Block::Code { language, text } => {
                out.push_str(&format!("code {language:?} {text:?}\n"))
            }
            Block::Table { columns, head, rows } => {
                out.push_str(&format!("<table {columns:?}>\n"));
                for row in std::iter::once(head).chain(rows) {
                    out.push_str("<row>\n");
                    row.iter().for_each(|cell| line("cell", cell, out));
                }
            }
            Block::Rule => out.push_str("rule\n"),
        }
    }
}

fn line(name: &str, inlines: &[Inline], out: &mut String) {
    let mut pieces: Vec<(String, String)> = Vec::new();
    collect(inlines, &mut Vec::new(), &mut pieces);
    let mut plain: Vec<(String, String)> = Vec::new();
    pieces.push((String::new(), "\0break".to_owned()));
    for (forms, text) in pieces {
        // Blanks at the end of a line cannot be seen.
        if text == "\0break" {
            if let Some((_, before)) = plain.last_mut().filter(|(_, before)| is_text(before)) {
                before.truncate(before.trim_end_matches(' ').len());
            }
            plain.pop_if(|(_, before)| before.is_empty());
        }
        match plain.last_mut() {
            Some((last, before))
                if *last == forms
                    && is_text(&text)
                    && is_text(before)
                    && (text == " ") == (before.trim_matches(' ').is_empty()) =>
            {
                before.push_str(&text);
            }
            _ => plain.push((forms, text)),
        }
    }
    out.push_str(&format!("{name} {plain:?}\n"));
}

fn is_text(piece: &str) -> bool {
    !piece.starts_with('\0')
}

fn collect(inlines: &[Inline], forms: &mut Vec<char>, pieces: &mut Vec<(String, String)>) {
    let named = |forms: &Vec<char>| {
        let mut names = forms.clone();
        names.sort_unstable();
        names.dedup();
        names.into_iter().collect::<String>()
    };
    for inline in inlines {
        let (form, inner) = match inline {
            Inline::Text(text) => {
                for piece in text.split_inclusive(' ') {
                    let word = piece.trim_end_matches(' ');
                    if !word.is_empty() {
                        pieces.push((named(forms), word.to_owned()));
                    }
                    if piece.ends_with(' ') {
                        pieces.push((String::new(), " ".to_owned()));
                    }
                }
                continue;
            }
            Inline::Code(text) => {
                pieces.push((named(forms), format!("\0code {text}")));
                continue;
            }
            Inline::Math(text) => {
                pieces.push((named(forms), format!("\0math {text}")));
                continue;
            }
            Inline::Break => {
                pieces.push((String::new(), "\0break".to_owned()));
                continue;
            }
            Inline::Link { to, text } => {
                pieces.push((String::new(), format!("\0link {to}")));
                collect(text, forms, pieces);
                pieces.push((String::new(), "\0end of link".to_owned()));
                continue;
            }
            Inline::Strong(inner) => ('b', inner),
            Inline::Emphasis(inner) => ('i', inner),
            Inline::Strike(inner) => ('s', inner),
            Inline::Spoiler(inner) => ('h', inner),
        };
        forms.push(form);
        collect(inner, forms, pieces);
        forms.pop();
    }
}

/// Words, marks, blanks and long clusters, in any order.
pub(crate) fn any_markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-z]{1,8}",
        4 => Just(" ".to_owned()),
        3 => Just("\n".to_owned()),
        2 => Just("\n\n".to_owned()),
        2 => prop::sample::select(vec!["- ", "* ", "1. ", "7) ", "> ", "# ", "### ", "- [ ] ", "- [x] ", "  ", "    ", "---", "***", "___", "```", "```rust", "~~~", "===", "0. "]).prop_map(str::to_owned),
        3 => prop::sample::select(vec!["**", "*", "_", "__", "~~", "~", "`", "``", "||", "$", "$$", "\\(", "\\)", "\\[", "\\]", "[", "](", ")", "](https://a.example/b_(c))", "<", ">", "&", "&amp;", "\\", "\\*", "|", "!", "#", ".", ",", "(", "-", "+", "=", ":", "'", "\""]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["https://a.example/b_c?d=e&f", "[text](https://a.example/b)", "![alt](http://b.example)", "<https://c.example>", "<b>", "</b>", "<br>", "<div>", "@everyone", "<@123>", "<!channel>", "|a|b|\n|-|-|\n|c|d|", "|a|\n|-|\n|b|c|", "$a_1*b$", "`x|y`", "[x]: http://d.example", "👨‍👩‍👧‍👦", "e\u{301}", "日本語", "中文（说明）", "“重要”", "مرحبا", "\u{200b}", "\u{a0}", "\u{202e}", "\t", "…", "。"]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// What a person can read in a document, in order, without blanks and gaps: the words, the numbers of
/// items, what is to be done, and the addresses that a dialect may hide. The titles of tables are left
/// out, because a table that is taken apart repeats them.
pub(crate) fn readable(document: &Document) -> String {
    fn all(blocks: &[Block], out: &mut String) {
        for block in blocks {
            match block {
                Block::Paragraph(text) | Block::Heading { text, .. } => words(text, out),
                Block::List { marker, items, .. } => {
                    for (index, item) in items.iter().enumerate() {
                        match (marker, item.task) {
                            (_, Some(Task::Open)) => out.push('☐'),
                            (_, Some(Task::Done)) => out.push('☑'),
                            (Marker::Number(first), None) => {
                                out.push_str(&format!("{}.", first + index as u64));
                            }
                            (Marker::Bullet, None) => {}
                        }
                        all(&item.blocks, out);
                    }
                }
                Block::Quote(inner) => all(inner, out),
                Block::Code { text, .. } => out.push_str(text),
                Block::Table { rows, .. } => {
                    rows.iter().flatten().for_each(|cell| words(cell, out))
                }
                Block::Rule => {}
            }
        }
    }
    fn words(inlines: &[Inline], out: &mut String) {
        for inline in inlines {
            match inline {
                Inline::Text(text) | Inline::Code(text) | Inline::Math(text) => out.push_str(text),
                Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strike(inner) => {
                    words(inner, out);
                }
                Inline::Spoiler(inner) => {
                    out.push_str("||");
                    words(inner, out);
                    out.push_str("||");
                }
                Inline::Link { to, text } => {
                    let mut label = String::new();
                    words(text, &mut label);
                    out.push_str(&label);
                    if label != to.strip_prefix("mailto:").unwrap_or(to) {
                        out.push_str(&format!("({to})"));
                    }
                }
                Inline::Break => {}
            }
        }
    }
    let mut out = String::new();
    all(document.blocks(), &mut out);
    out.split_whitespace().collect::<String>().replace('\u{200b}', "")
}

/// Whether answers have tables.
#[derive(Clone, Copy)]
pub(crate) enum Tables {
    Some,
    None,
}

/// Answers as a model writes them.
pub(crate) fn written_markdown(tables: Tables) -> impl Strategy<Value = String> {
    let words = "[a-zé家日]{1,9}( [a-z]{1,8}){0,12}[.!?:]?";
    let piece = prop_oneof![
        8 => words.prop_map(String::from),
        1 => words.prop_map(|text| format!("**{text}**")),
        1 => words.prop_map(|text| format!("*{text}*")),
        1 => "[a-z|*_<>&]{1,12}".prop_map(|text| format!("`{text}`")),
        1 => words.prop_map(|text| format!("[{text}](https://a.example/{}_(x))", text.len())),
        1 => Just("https://b.example/c?d=e".to_owned()),
        1 => Just("$a_1*b$".to_owned()),
        1 => Just("👨‍👩‍👧‍👦 🏳️‍🌈".to_owned()),
        1 => "[!-/:-@{-~]{1,4}".prop_map(String::from),
    ];
    let text = prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.join(" "));
    let lines = prop::collection::vec(text, 1..4).prop_map(|lines| lines.join("\n"));
    let code = (
        "(```|````|~~~)",
        "(rust|sh|json|)",
        prop::collection::vec("( {0,6}[a-z(){};=<>&]{1,30}( [a-z=`*_]{1,9}){0,8})?", 0..14),
    )
        .prop_map(|(fence, language, code)| {
            format!("{fence}{language}\n{}\n{fence}", code.join("\n"))
        });
    let table = prop::collection::vec("[a-z]{1,8}\\|[a-z ]{1,16}\\|[0-9]{1,4}", 1..8)
        .prop_map(|rows| format!("|name|what|n|\n|-|-|-:|\n|{}|", rows.join("|\n|")));
    let block = prop_oneof![
        4 => lines.clone(),
        1 => lines.clone().prop_map(|text| format!("## {}", text.replace('\n', " "))),
        2 => code,
        match tables { Tables::Some => 1, Tables::None => 0 } => table,
        1 => Just("---".to_owned()),
    ];
    let nested = block.prop_recursive(3, 24, 4, |inner| {
        let inside = |sign: &'static str, margin: &'static str| {
            move |blocks: Vec<String>| {
                let blocks: Vec<String> = blocks
                    .iter()
                    .map(|block| format!("{sign}{}", block.replace('\n', &format!("\n{margin}"))))
                    .collect();
                blocks.join("\n")
            }
        };
        let many = || prop::collection::vec(inner.clone(), 1..5);
        prop_oneof![
            many().prop_map(inside("- ", "  ")),
            many().prop_map(inside("1. ", "   ")),
            many().prop_map(inside("- [x] ", "  ")),
            many().prop_map(|blocks| format!("> {}", blocks.join("\n\n").replace('\n', "\n> "))),
        ]
    });
    prop::collection::vec(nested, 1..7).prop_map(|blocks| blocks.join("\n\n"))
}

pub(crate) fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(DIALECTS.to_vec())
}

/// All of them.
pub(crate) const DIALECTS: [Dialect; 6] = [
    Dialect::Plain,
    Dialect::Markdown,
    Dialect::Html,
    Dialect::TelegramEntities,
    Dialect::Discord,
    Dialect::SlackMrkdwn,
];

pub(crate) fn any_unit() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(Unit::Bytes), Just(Unit::Utf16), Just(Unit::Chars)]
}

/// A text without what a dialect puts into it: blanks, gaps, and the signs of items, quotes and lines
/// across. Text that has such signs itself loses them, too, on both sides of a comparison.
pub(crate) fn comparable(text: &str) -> String {
    let is_sign = |c: char| c.is_whitespace() || matches!(c, '\u{200b}' | '•' | '>' | '—' | '-');
    text.chars().filter(|c| !is_sign(*c)).collect()
}
