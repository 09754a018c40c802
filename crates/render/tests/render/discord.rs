//! The dialect of Discord, read by a small parser that follows the rules of its clients: rules are
//! tried in order at each place, and forms are looked for without regard to what stands in them.

use proptest::prelude::*;
use talaria_render::{Dialect, parse, render};

use crate::support::{Tables, any_markdown, comparable, readable, written_markdown};

fn discord(source: &str) -> String {
    render(&parse(source), Dialect::Discord).text
}

#[track_caller]
fn check(source: &str, expect: &str) {
    assert_eq!(discord(source), expect, "{source:?}");
}

/// What a client shows, with the addresses of links behind them.
fn shown(source: &str) -> String {
    let mut reader = Reader { out: String::new(), in_quote: false, in_link: false };
    reader.read(source.trim(), true);
    reader.out
}

struct Reader {
    out: String,
    in_quote: bool,
    in_link: bool,
}

impl Reader {
    fn read(&mut self, source: &str, mut at_line_start: bool) {
        let mut at = 0;
        while at < source.len() {
            let rest = &source[at..];
            if let Some(length) = self.block(rest, at_line_start) {
                at += length;
                at_line_start = true;
            } else if let Some(length) = self.inline(rest).or_else(|| {
                let is_in_word = source[..at].ends_with(char::is_alphanumeric);
                if is_in_word && !rest.starts_with('<') { None } else { self.address(rest) }
            }) {
                at += length;
                at_line_start = false;
            } else {
                let c = rest.chars().next().expect("something is left");
                self.out.push(c);
                at += c.len_utf8();
                at_line_start = c == '\n';
            }
        }
    }

    fn block(&mut self, rest: &str, at_line_start: bool) -> Option<usize> {
        if !at_line_start || self.in_link {
            return None;
        }
        let line = rest.split_inclusive('\n').next()?;
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(quoted) = text.strip_prefix("> ").filter(|text| !text.trim().is_empty())
            && !self.in_quote
        {
            self.in_quote = true;
            self.read(quoted.trim_end(), true);
            self.in_quote = false;
            return Some(line.len());
        }
        let title = text.trim_start_matches('#');
        let level = text.len() - title.len();
        if (1..=3).contains(&level)
            && title.starts_with(' ')
            && !title.trim().is_empty()
            && !title.trim_start().starts_with('#')
        {
            self.read(title.trim(), true);
            return Some(line.len());
        }
        if let Some(small) = line.strip_prefix("-# ").filter(|text| !text.trim().is_empty()) {
            self.read(small.trim(), true);
            return Some(line.len());
        }
        let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &text[..text.len() - number.len()];
        let body = match digits {
            "" => ["- ", "* ", "+ "].iter().find_map(|sign| text.strip_prefix(sign)),
            _ => number.strip_prefix(". "),
        };
        let body = body.filter(|body| !body.trim().is_empty())?;
        let mut length = line.len();
        let mut item = body.trim_start_matches(' ').to_owned();
        for next in rest[length..].split_inclusive('\n') {
            let margin = next.len() - next.trim_start_matches(' ').len();
            if margin <= indent || next.trim().is_empty() {
                break;
            }
            item.push_str(&next[margin.min(2)..]);
            length += next.len();
        }
        if !digits.is_empty() {
            self.out.push_str(&format!("{}.", digits.parse::<u64>().unwrap_or(1).max(1)));
        }
        self.read(&item, true);
        Some(length)
    }

    fn inline(&mut self, rest: &str) -> Option<usize> {
        let mut chars = rest.chars();
        let (first, second) = (chars.next()?, chars.next());
        if first == '\\'
            && let Some(escaped) = second.filter(|c| !c.is_alphanumeric() && !c.is_whitespace())
            && !(self.in_link && escaped == ']')
        {
            self.out.push(escaped);
            return Some(1 + escaped.len_utf8());
        }
        for mark in ["**", "__"] {
            if let Some(inner) = between(rest, mark, |after| !after.starts_with(&mark[..1])) {
                self.read(inner, false);
                return Some(inner.len() + 4);
            }
        }
        if let Some(inner) = italic(rest) {
            self.read(inner, false);
            return Some(inner.len() + 2);
        }
        if let Some(inner) = between(rest, "~~", |_| true) {
            self.read(inner, false);
            return Some(inner.len() + 4);
        }
        if let Some(inner) = between(rest, "||", |_| true) {
            self.out.push_str("||");
            self.read(inner, false);
            self.out.push_str("||");
            return Some(inner.len() + 4);
        }
        if let Some(inner) =
            between(rest, "```", |_| true).filter(|text| text.contains(|c| c != '\n'))
        {
            let (language, code) = inner.split_once('\n').unwrap_or(("", inner));
            let is_name = language.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
            self.out.push_str(if is_name { code } else { inner });
            return Some(inner.len() + 6);
        }
        for ticks in ["``", "`"] {
            let inner = rest.strip_prefix(ticks).and_then(|text| text.split(ticks).next());
            if let Some(inner) = inner.filter(|inner| {
                rest.len() > inner.len() + 2 * ticks.len() - 1 && inner.contains(|c| c != '`')
            }) {
                self.out.push_str(inner);
                return Some(inner.len() + 2 * ticks.len());
            }
        }
        self.link(rest)
    }

    fn link(&mut self, rest: &str) -> Option<usize> {
        if !rest.starts_with('[') || self.in_link {
            return None;
        }
        let mut depth = 0;
        let end = rest.char_indices().find_map(|(at, c)| {
            depth += match c {
                '[' => 1,
                ']' => -1,
                _ => 0,
            };
            (depth == 0).then_some(at)
        })?;
        let address = rest[end + 1..].strip_prefix('(')?;
        let address = &address[..address.find(')')?];
        let is_web = address.starts_with("http://") || address.starts_with("https://");
        if !is_web
            || address.contains([' ', '\n', '<', '\\', '('])
            || address.ends_with(['.', ',', ':', ';', '"', '\'', ']'])
        {
            return None;
        }
        let label = &rest[1..end];
        assert!(!label.contains("http://") && !label.contains("https://"), "{rest}");
        self.in_link = true;
        self.read(label, false);
        self.in_link = false;
        let mut address = address.to_owned();
        for (code, character) in
            [("%28", "("), ("%29", ")"), ("%2E", "."), ("%2C", ","), ("%3A", ":")]
        {
            address = address.replace(code, character);
        }
        self.out.push_str(&format!("({address})"));
        Some(end + 3 + rest[end + 2..].find(')')?)
    }

    fn address(&mut self, rest: &str) -> Option<usize> {
        if let Some(inner) = rest.strip_prefix("<http") {
            let end = inner.find('>')?;
            self.out.push_str(&rest[1..end + 5]);
            return Some(end + 6);
        }
        if !(rest.starts_with("http://") || rest.starts_with("https://")) {
            return None;
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(rest.len());
        let word = rest[..end].trim_end_matches(['.', ',', ':', ';', '"', '\'', ']', ')']);
        self.out.push_str(word);
        Some(word.len())
    }
}

/// What stands between a mark and the next one that closes it.
fn between<'a>(rest: &'a str, mark: &str, closes: impl Fn(&str) -> bool) -> Option<&'a str> {
    let inner = rest.strip_prefix(mark)?;
    let first = inner.chars().next()?.len_utf8();
    let mut from = first;
    loop {
        let end = from + inner.get(from..)?.find(mark)?;
        if closes(&inner[end + mark.len()..]) {
            return Some(&inner[..end]);
        }
        from = end + 1;
    }
}

fn italic(rest: &str) -> Option<&str> {
    if let Some(inner) = rest.strip_prefix('_') {
        let mut at = 0;
        while at < inner.len() {
            let text = &inner[at..];
            let after = |n: usize| text[n..].chars().next();
            if at > 0
                && text.starts_with('_')
                && !after(1).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
            {
                return Some(&inner[..at]);
            }
            at += match text.as_bytes() {
                [b'_', b'_', ..] => 2,
                [b'\\', ..] => 1 + after(1)?.len_utf8(),
                [b'_', ..] => return None,
                _ => text.chars().next()?.len_utf8(),
            };
        }
        return None;
    }
    let inner = rest.strip_prefix('*')?;
    if inner.starts_with(char::is_whitespace) {
        return None;
    }
    let mut at = 0;
    while at < inner.len() {
        let text = &inner[at..];
        if at > 0
            && text.starts_with('*')
            && !text.starts_with("**")
            && !inner[..at].ends_with('\\')
        {
            return Some(&inner[..at]);
        }
        if text.starts_with("\\*") || text.starts_with("**") {
            at += 2;
            continue;
        }
        let word = text.trim_start();
        at += text.len() - word.len();
        let next = word.chars().next()?;
        if next == '*' {
            if word.starts_with("**") && word.len() < text.len() {
                at += 2;
                continue;
            }
            return None;
        }
        if word.len() == text.len() || !word.starts_with("\\*") {
            at += next.len_utf8();
        }
    }
    None
}

#[test]
fn every_form_has_its_marks() {
    check("# A\n## B\n### C\n#### D", "# A\n\n## B\n\n### C\n\n**D**");
    check("**a** *b* ~~c~~ `d` ***e***", "**a** *b* ~~c~~ `d` ***e***");
    check("- a\n  - b\n- [x] c\n\n3. d\n4. e", "- a\n  - b\n- ☑ c\n\n3. d\n4. e");
    check("> a\n> b\n>\n> > c", "> a\n> b\n>\n> > c");
    check("```rust\nfn a() {}\n```", "```rust\nfn a() {}\n```");
    check("```c#\nx\n```", "```cs\nx\n```");
    check("[a](https://b.example/c)", "[a](https://b.example/c)");
    check("||the butler||", "||the butler||");
    check("a\n\n---\n\nb", "a\n\n———\n\nb");
    check("|Name|Age|\n|-|-:|\n|Ann|7|", "```\nName  Age\n----  ---\nAnn     7\n```");
}

#[test]
fn text_stays_text() {
    check("\\*a\\* \\_b\\_ snake_case __init__", "\\*a\\* \\_b\\_ snake\\_case **init**");
    check("\\# a\n\\- b\n1\\. c\n\\> d", "\\# a\n\\- b\n1\\. c\n\\> d");
    check("2 \\|\\| 3 \\~\\~ 4 | 5 ~ 6", "2 \\|\\| 3 \\~\\~ 4 | 5 ~ 6");
    check("C:\\dir\\\\_x", "C:\\dir\\\\\\_x");
    check("\\[a\\](https://b.example)", "\\[a](https://b.example)");
    check("0. zero", "0\\. zero");
}

#[test]
fn a_link_that_would_not_be_one_shows_its_address() {
    check("[https://a.example](https://b.example)", "https://a.example (https://b.example)");
    check("[a](./b.md)", "a (./b.md)");
    check("[a](https://b.example/c_(d))", "[a](https://b.example/c_%28d%29)");
    check("见https://a.example/b。好", "见<https://a.example/b>。好");
    check("https://a.example/b_c, d", "https://a.example/b_c, d");
}

#[test]
fn code_is_copied_as_it_is() {
    check("1. a\n   ```sh\n   ls\n   ```\n2. b", "1. a\n```sh\nls\n```\n2. b");
    check("> ```\n> a\n> ```", "```\na\n```");
    check("````\n```\n````", "```\n`\u{200b}`\u{200b}`\n```");
    check("``a`b``", "``a`b``");
    check("```\n`````a\n```", "```\n`\u{200b}`\u{200b}`\u{200b}`\u{200b}`a\n```");
    check("`a```b`", "``a`\u{200b}`\u{200b}`b``");
}

#[test]
fn nobody_is_called_who_was_not_called() {
    check("@every**one** @<b>here", "@every**one** @<b>here");
    check("<@1> <@&2> <#3> <:a_b:4>", "<@1> <@&2> <#3> <:a_b:4>");
}

#[test]
fn the_corpus_can_be_read() {
    for (name, answer) in crate::corpus::answers() {
        if answer.contains("|--") {
            continue;
        }
        let written = discord(&answer);
        assert_eq!(
            comparable(&shown(&written)),
            comparable(&readable(&parse(&answer))),
            "{name}: {written}"
        );
    }
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn what_is_written_is_what_is_shown(source in written_markdown(Tables::None)) {
        let written = discord(&source);
        prop_assert_eq!(comparable(&shown(&written)), comparable(&readable(&parse(&source))), "{}", written);
    }

    #[test]
    fn any_text_is_shown_as_it_is(source in any_markdown()) {
        let document = parse(&source);
        let written = discord(&source);
        let has_table = document.blocks().iter().any(|block| format!("{block:?}").contains("Table {"));
        if !has_table {
            prop_assert_eq!(comparable(&shown(&written)), comparable(&readable(&document)), "{}", written);
        }
    }
}
