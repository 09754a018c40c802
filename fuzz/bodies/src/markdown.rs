//! Markdown as a model, or somebody who speaks through one, may write it.

use std::time::{Duration, Instant};

use talaria_model::{TextLimit, Unit};
use talaria_render::{
    Block, Dialect, ansi, html as to_html, length, parse, parts_in, plain, render, split_in,
    visible,
};

use crate::bytes::Bytes;

/// Even a debug build on a busy machine needs a fraction of this for what takes linear time.
const TOO_LONG: Duration = Duration::from_secs(10);

/// What nobody but an attacker writes, at most this long.
const LARGE: usize = 48 * 1024;

/// What one character can take in the most talkative dialect: `<p>&quot;</p>`.
const SMALLEST: usize = 16;

const DIALECTS: [Dialect; 6] = [
    Dialect::Plain,
    Dialect::Markdown,
    Dialect::Html,
    Dialect::TelegramEntities,
    Dialect::Discord,
    Dialect::SlackMrkdwn,
];

pub(crate) fn split(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let unit = bytes.pick(&[Unit::Bytes, Unit::Utf16, Unit::Chars]);
    let max = 1 + bytes.below(400) as u32;
    let dialect = bytes.pick(&DIALECTS);
    let text = bytes.text();
    let limit = TextLimit { max, unit };
    let split = split_in(&text, limit, dialect);
    assert_eq!(split, parts_in(&text, limit, dialect).collect::<Vec<_>>());
    for part in &split {
        let shown = match dialect {
            // It is sent as it is.
            Dialect::Markdown => part.clone(),
            _ => render(&parse(part), dialect).text,
        };
        assert!(length(&shown, unit) <= (max as usize).max(SMALLEST), "too long: {shown:?}");
        assert!(!shown.trim().is_empty(), "an empty part");
    }
    // Titles of tables are repeated, and in a small limit a table becomes a list, in another order.
    let document = parse(&text);
    if has_table(document.blocks()) {
        return;
    }
    // Besides that nothing is added but signs, so the words are found in the parts, in order.
    let all: String = split.iter().map(|part| plain(&parse(part))).collect();
    let counts = |c: &char| c.is_ascii_alphabetic() || *c == '.';
    let mut after = all.chars().filter(counts);
    for c in plain(&document).chars().filter(counts) {
        assert!(after.any(|other| other == c), "{c:?} is lost or moved in {split:?}");
    }
}

fn has_table(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match block {
        Block::Table { .. } => true,
        Block::Quote(inner) => has_table(inner),
        Block::List { items, .. } => items.iter().any(|item| has_table(&item.blocks)),
        _ => false,
    })
}

pub(crate) fn html(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let document = parse(&text);
    let page = to_html(&document);
    let shown = check_html(&page).unwrap_or_else(|wrong| panic!("{wrong} in {page:?}"));
    // Where a link shows its address, plain text has more; it never has less. A wide table becomes a list
    // in which titles stand beside values, so there only the number of each letter can be compared.
    let (mut in_plain, mut in_html) = (letters(&plain(&document)), letters(&shown));
    if page.contains("<table") {
        in_plain.sort_unstable();
        in_html.sort_unstable();
    }
    let mut rest = in_plain.iter();
    for c in &in_html {
        assert!(
            rest.any(|other| other == c),
            "{c:?} of {shown:?} is lost in {:?}",
            plain(&document)
        );
    }
    let _ =
        ansi(&document, talaria_render::Style { width: 40, colour: talaria_render::Colour::Off });
    assert_eq!(visible(&visible(&text)), visible(&text));
}

fn letters(text: &str) -> Vec<char> {
    text.chars().filter(char::is_ascii_alphabetic).collect()
}

/// Whether everything is closed and nothing can do harm; the text, if so.
fn check_html(page: &str) -> Result<String, String> {
    const TAGS: &str = " p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code div table thead tbody tr th td \
                        strong em del a br hr ";
    let mut open: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        text.push_str(&unescaped(&rest[..start])?);
        let (tag, after) = rest[start + 1..].split_once('>').ok_or("a tag without an end")?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes something else"));
            }
            continue;
        }
        let name = tag.split(' ').next().unwrap_or_default();
        if !TAGS.contains(&format!(" {name} ")) {
            return Err(format!("<{tag}>"));
        }
        if let Some((_, value)) = tag.split_once("href=\"") {
            let address = unescaped(value.split('"').next().unwrap_or_default())?;
            let address = address.to_ascii_lowercase();
            let is_harmless =
                ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme));
            if !is_harmless {
                return Err(format!("a link to {address:?}"));
            }
        }
        if tag.contains(" on") || tag.contains("style=") || tag.contains("src=") {
            return Err(format!("<{tag}>"));
        }
        if !matches!(name, "br" | "hr") {
            open.push(name);
        }
    }
    text.push_str(&unescaped(rest)?);
    if open.is_empty() { Ok(text) } else { Err(format!("{open:?} stay open")) }
}

fn unescaped(text: &str) -> Result<String, String> {
    if text.contains('>') || text.contains('"') {
        return Err(format!("{text:?} is not escaped"));
    }
    for piece in text.split('&').skip(1) {
        let (name, _) = piece.split_once(';').ok_or("a bare ampersand")?;
        if !matches!(name, "amp" | "lt" | "gt" | "quot" | "#39") {
            return Err(format!("&{name};"));
        }
    }
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Ok(plain.replace("&#39;", "'").replace("&amp;", "&"))
}

/// The bytes again and again: what takes quadratic time shows.
pub(crate) fn hostile(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let (head, tail) = (bytes.words(), bytes.words());
    let piece = bytes.text();
    if piece.is_empty() {
        return;
    }
    let times = LARGE / piece.len().max(1);
    let text = format!("{head}{}{tail}", piece.repeat(times));
    let begun = Instant::now();
    let document = parse(&text);
    let (page, words) = (to_html(&document), plain(&document));
    let limit = TextLimit { max: 4000, unit: Unit::Utf16 };
    let dialect = DIALECTS[piece.len() % DIALECTS.len()];
    let in_parts = parts_in(&text, limit, dialect).count();
    let took = begun.elapsed();
    assert!(took < TOO_LONG, "{took:?} for {} bytes of {piece:?}", text.len());
    assert!(page.len() <= 64 * text.len() + 4096, "{} bytes of HTML", page.len());
    assert!(words.len() <= 64 * text.len() + 4096, "{} bytes of text", words.len());
    assert!(in_parts <= text.len(), "{in_parts} parts");
    assert!(depth(document.blocks()) < 1000, "a document without bottom");
}

fn depth(blocks: &[Block]) -> usize {
    let below = |block: &Block| match block {
        Block::Quote(inner) => depth(inner),
        Block::List { items, .. } => {
            items.iter().map(|item| depth(&item.blocks)).max().unwrap_or(0)
        }
        _ => 0,
    };
    blocks.iter().map(below).max().unwrap_or(0) + 1
}
