//! The dialect of Slack: escapes that are whole, and marks where Slack sees them.

use proptest::prelude::*;
use talaria_render::{Dialect, parse, render};

use crate::support::{Tables, any_markdown, comparable, readable, written_markdown};

fn slack(source: &str) -> String {
    render(&parse(source), Dialect::SlackMrkdwn).text
}

#[track_caller]
fn check(source: &str, expect: &str) {
    assert_eq!(slack(source), expect, "{source:?}");
}

#[test]
fn every_form_has_its_marks() {
    check("**a** *b* ~~c~~ `d` ***e***", "*a* _b_ ~c~ `d` *_e_*");
    check("# A *b*", "*A _b_*");
    check("[a](https://b.example/?c&d)", "<https://b.example/?c&amp;d|a>");
    check("https://b.example", "<https://b.example>");
    check("[https://a.example](https://b.example)", "<https://a.example> (<https://b.example>)");
    check("- a\n  - b\n- [x] c\n\n3. d", "• a\n  • b\n☑ c\n\n3. d");
    check("> a\n> b", "> a\n> b");
    check("```rust\na < b\n```", "```\na &lt; b\n```");
    check("a <b> & &amp; c", "a &lt;b&gt; &amp; &amp; c");
    check("|Name|Age|\n|-|-:|\n|Ann|7|", "```\nName  Age\n----  ---\nAnn     7\n```");
}

#[test]
fn a_mark_within_a_word_gets_a_gap() {
    check("in**wo**rd", "in\u{200b}*wo*\u{200b}rd");
    check("**重要**です", "*重要*\u{200b}です");
    check("**a**, (*b*)", "*a*, (_b_)");
    check("**a***b*", "*a*\u{200b}_b_");
}

#[test]
fn what_would_be_a_mark_is_replaced_by_what_looks_alike() {
    check("\\*a\\* b", "\u{2217}a\u{2217} b");
    check("a * b * c, 2*3*4, snake_case_name", "a * b * c, 2*3*4, snake_case_name");
    check("5\\* hotel", "5* hotel");
}

#[test]
fn people_and_channels_can_be_called_but_not_everybody() {
    check(
        "<@U024BE7LH> <#C024BE7LR> <!channel> <!here> <@oops> <@12>",
        "<@U024BE7LH> <#C024BE7LR> &lt;!channel&gt; &lt;!here&gt; &lt;@oops&gt; &lt;@12&gt;",
    );
    check("`<@U024BE7LH>`", "`&lt;@U024BE7LH&gt;`");
}

#[test]
fn a_sign_at_the_start_of_a_line_is_no_quote() {
    check("\\> a", "\u{200b}&gt; a");
}

/// What Slack shows, with the addresses of links behind them; `Err` when an escape is not whole.
pub(crate) fn shown(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut is_code = false;
    for line in text.split('\n') {
        if line == "```" {
            is_code = !is_code;
        } else if is_code {
            out.push_str(&unescaped(line)?);
        } else {
            let line = line.trim_start_matches([' ', '•']);
            out.push_str(&words(line.trim_start_matches("> "))?);
        }
        out.push('\n');
    }
    if is_code { Err("a fence is open".into()) } else { Ok(out) }
}

fn words(line: &str) -> Result<String, String> {
    let line = line.trim_start_matches(['>', ' ', '•']);
    let mut out = String::new();
    let (places, chars): (Vec<usize>, Vec<char>) = line.char_indices().unzip();
    let mut at = 0;
    let mut closing: Vec<usize> = Vec::new();
    while at < chars.len() {
        let rest = &line[places[at]..];
        let c = chars[at];
        if let Some(inner) = rest.strip_prefix('<') {
            let (inner, _) = inner.split_once('>').ok_or("an open angle bracket")?;
            match inner.split_once('|') {
                Some((address, label)) => {
                    out.push_str(&unescaped(label)?);
                    if address.strip_prefix("mailto:") != Some(label) {
                        out.push_str(&format!("({})", unescaped(address)?.replace("%20", " ")));
                    }
                }
                None if inner.starts_with(['@', '#']) => out.push_str(&format!("<{inner}>")),
                None => out.push_str(&unescaped(inner)?),
            }
            at += inner.chars().count() + 2;
            continue;
        }
        if c == '>' {
            return Err(format!("a bare angle bracket in {line:?}"));
        }
        if c == '&' {
            let (name, _) = rest.split_once(';').ok_or("a bare ampersand")?;
            out.push_str(&unescaped(&format!("{name};"))?);
            at += name.chars().count() + 1;
            continue;
        }
        let is_edge = |c: Option<&char>| c.is_none_or(|c| !c.is_alphanumeric());
        let before = at.checked_sub(1).map(|at| &chars[at]);
        if c == '`'
            && is_edge(before)
            && let Some(end) = chars[at + 1..].iter().position(|c| *c == '`')
        {
            let code: String = chars[at + 1..at + 1 + end].iter().collect();
            out.push_str(&unescaped(&code)?);
            at += end + 2;
            continue;
        }
        if closing.contains(&at) {
            at += 1;
            continue;
        }
        let next = chars.get(at + 1).filter(|c| !c.is_whitespace());
        if matches!(c, '*' | '_' | '~') && is_edge(before) && next.is_some() {
            let end = (at + 2..chars.len()).find(|end| {
                chars[*end] == c
                    && !closing.contains(end)
                    && !chars[end - 1].is_whitespace()
                    && is_edge(chars.get(end + 1))
            });
            if let Some(end) = end {
                closing.push(end);
                at += 1;
                continue;
            }
        }
        out.push(match c {
            '\u{2217}' => '*',
            '\u{2cd}' => '_',
            '\u{223c}' => '~',
            '\u{2cb}' => '`',
            c => c,
        });
        at += 1;
    }
    Ok(out)
}

fn unescaped(text: &str) -> Result<String, String> {
    for piece in text.split('&').skip(1) {
        if !["amp;", "lt;", "gt;"].iter().any(|name| piece.starts_with(name)) {
            return Err(format!("{piece:?} behind an ampersand"));
        }
    }
    if text.contains(['<', '>']) {
        return Err(format!("a bare angle bracket in {text:?}"));
    }
    Ok(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

#[test]
fn the_corpus_can_be_read() {
    for (name, answer) in crate::corpus::answers() {
        let written = slack(&answer);
        let seen = shown(&written).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        if !answer.contains("|--") {
            assert_eq!(
                comparable(&seen),
                comparable(&readable(&parse(&answer))),
                "{name}: {written}"
            );
        }
    }
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn what_is_written_is_what_is_shown(source in written_markdown(Tables::None)) {
        let written = slack(&source);
        let seen = shown(&written);
        prop_assert!(seen.is_ok(), "{:?} {}", seen, written);
        prop_assert_eq!(
            comparable(&seen.unwrap_or_default()), comparable(&readable(&parse(&source))), "{}", written
        );
    }

    #[test]
    fn every_escape_is_whole_and_nobody_is_called(source in any_markdown()) {
        let written = slack(&source);
        prop_assert!(shown(&written).is_ok(), "{:?} {}", shown(&written), written);
        prop_assert!(!written.contains("<!"), "{}", written);
    }
}
