//! Reading Markdown: the tree, its bounds, and documents that are still being written.

use talaria_render::{Block, Colour, Document, Inline, Style, ansi, html, parse, plain};

fn text(text: &str) -> Inline {
    Inline::Text(text.to_owned())
}

fn depth(document: &Document) -> usize {
    fn of_inlines(inlines: &[Inline]) -> usize {
        let inner = |inline: &Inline| match inline {
            Inline::Strong(inner)
            | Inline::Emphasis(inner)
            | Inline::Strike(inner)
            | Inline::Spoiler(inner)
            | Inline::Link { text: inner, .. } => 1 + of_inlines(inner),
            Inline::Text(_) | Inline::Code(_) | Inline::Math(_) | Inline::Break => 0,
        };
        inlines.iter().map(inner).max().unwrap_or(0)
    }
    fn of_blocks(blocks: &[Block]) -> usize {
        let inner = |block: &Block| match block {
            Block::Paragraph(text) | Block::Heading { text, .. } => of_inlines(text),
            Block::Quote(inner) => 1 + of_blocks(inner),
            Block::List { items, .. } => {
                1 + items.iter().map(|item| of_blocks(&item.blocks)).max().unwrap_or(0)
            }
            Block::Table { head, rows, .. } => {
                rows.iter().flatten().chain(head).map(|cell| of_inlines(cell)).max().unwrap_or(0)
            }
            Block::Code { .. } | Block::Rule => 0,
        };
        blocks.iter().map(inner).max().unwrap_or(0)
    }
    of_blocks(document.blocks())
}

#[test]
fn a_line_that_ends_in_the_source_ends_in_the_document() {
    assert_eq!(
        parse("one\ntwo").blocks(),
        [Block::Paragraph(vec![text("one"), Inline::Break, text("two")])]
    );
}

#[test]
fn an_image_is_a_link_and_a_link_holds_no_other() {
    let link = |to: &str, shown: &str| Inline::Link { to: to.into(), text: vec![text(shown)] };
    for (source, expect) in [
        ("![cat](http://a/c.png)", link("http://a/c.png", "cat")),
        ("![](http://a/c.png)", link("http://a/c.png", "image")),
        ("[![cat](http://a/c.png)](http://b)", link("http://b", "cat")),
        ("[](http://b)", link("http://b", "http://b")),
        ("http://a.example/x", link("http://a.example/x", "http://a.example/x")),
        ("<me@a.example>", link("mailto:me@a.example", "me@a.example")),
        ("![cat](data:image/png;base64,AAAA)", text("cat")),
    ] {
        assert_eq!(parse(source).blocks(), [Block::Paragraph(vec![expect])], "{source}");
    }
}

#[test]
fn a_link_that_names_another_place_shows_where_it_leads() {
    let link = |to: &str, shown: &str| Inline::Link { to: to.into(), text: vec![text(shown)] };
    let evil = "https://evil.example/login";
    for named in ["https://bank.example", "HTTPS://Bank.example/x", "www.bank.example"] {
        let source = format!("[{named}]({evil})");
        let document = parse(&source);
        let [Block::Paragraph(inlines)] = document.blocks() else { panic!("{document:?}") };
        assert_eq!(talaria_render::plain(&document), format!("{named} ({evil})"));
        assert!(inlines.contains(&link(evil, evil)), "{inlines:?}");
        let leads = |it: &&Inline| matches!(it, Inline::Link { to, .. } if to == evil);
        assert_eq!(inlines.iter().filter(leads).count(), 1, "{inlines:?}");
    }
    for (named, to) in [
        ("https://a.example", "https://a.example/all/of/it"),
        ("www.a.example", "https://a.example"),
        ("our bank", evil),
        ("README.md", evil),
    ] {
        let source = format!("[{named}]({to})");
        assert_eq!(parse(&source).blocks(), [Block::Paragraph(vec![link(to, named)])], "{source}");
    }
}

#[test]
fn a_language_is_a_name_and_nothing_else() {
    for (info, expect) in [
        ("rust", Some("rust")),
        ("C++", Some("c++")),
        ("c# title=\"x\"", Some("c#")),
        ("rust,ignore", Some("rust")),
        ("{.python}", None),
        ("\"><script>", None),
        ("é", None),
        ("", None),
    ] {
        let document = parse(&format!("```{info}\nx\n```"));
        let language = match &document.blocks()[0] {
            Block::Code { language, .. } => language.as_deref(),
            other => panic!("{other:?}"),
        };
        assert_eq!(language, expect, "{info}");
    }
}

#[test]
fn control_characters_do_not_come_back_as_character_references() {
    let document = parse("a&#27;[31mb&#x9b;c&#7;d&#0;e&#10;f [x](http://a/&#27;b) `\u{1b}[1m`");
    assert!(!format!("{document:?}").contains("\\u{1b}"), "{document:?}");
    assert!(!plain(&document).contains(|c: char| c.is_control()), "{document:?}");
}

#[test]
fn a_hostile_text_stays_shallow_and_keeps_its_words() {
    for source in [
        ">".repeat(10_000) + "deep",
        "> ".repeat(500) + "deep",
        "[".repeat(10_000) + "deep" + &"](x)".repeat(10_000),
        "- ".repeat(400) + "deep",
        "1. ".repeat(10_000) + "deep",
        "*_".repeat(5_000) + "deep" + &"_*".repeat(5_000),
        "![".repeat(10_000) + "deep",
        "~~**".repeat(3_000) + "deep" + &"**~~".repeat(3_000),
    ] {
        let document = parse(&source);
        assert!(depth(&document) <= 33, "{}", &source[..8]);
        for rendered in [
            html(&document),
            plain(&document),
            ansi(&document, Style { width: 80, colour: Colour::Off }),
        ] {
            let shown: String = rendered.split_whitespace().filter(|word| *word != "▎").collect();
            assert!(shown.contains("deep"), "{}", &source[..8]);
        }
    }
}

#[test]
fn output_grows_in_proportion_to_the_source() {
    let wide_head = format!("|{}\n|{}\n", "a|".repeat(8_000), "-|".repeat(8_000));
    for source in [
        wide_head.clone() + &"|\n".repeat(20_000),
        wide_head + &"|x\n".repeat(15_000),
        format!("|{}|b|\n|-|-|\n{}", "a".repeat(15_000), "|x|y|\n".repeat(8_000)),
        format!("|a|b|\n|-|-|\n|{}|\n{}", "x".repeat(15_000), "|x|y|\n".repeat(8_000)),
        format!("{}a\n{}", ">".repeat(30_000), "a\n".repeat(15_000)),
        format!("{}a\n{}", "> ".repeat(900), "a\n".repeat(15_000)),
        "&#x27;".repeat(15_000),
        "<".repeat(80_000),
        "* * *\n".repeat(15_000),
    ] {
        let document = parse(&source);
        let most = 200 * source.len();
        assert!(html(&document).len() < most);
        assert!(plain(&document).len() < most);
        assert!(ansi(&document, Style { width: 400, colour: Colour::On }).len() < most);
    }
}

#[test]
fn what_stands_behind_the_size_limit_is_kept_as_text() {
    let source = format!("{}\n\n**last**", "word ".repeat(60_000));
    let shown = plain(&parse(&source));
    assert!(shown.starts_with("word word") && shown.ends_with("**last**"));
    assert_eq!(shown.matches("word").count(), 60_000);
}

#[test]
fn a_document_that_is_still_being_written_is_shown_as_far_as_it_goes() {
    for (source, expect) in [
        ("```rust\nfn main", "<pre><code class=\"language-rust\">fn main</code></pre>"),
        ("```", ""),
        ("so:\n```ru", "<p>so:</p>"),
        ("```\n```", "<pre><code></code></pre>"),
        ("so:\n\n    ru", "<p>so:</p><pre><code>ru</code></pre>"),
        ("see [the doc", "<p>see [the doc</p>"),
        ("see [the docs](", "<p>see [the docs](</p>"),
        ("**bo", "<p>**bo</p>"),
        ("|a|b|", "<p>|a|b|</p>"),
        (
            "|a|b|\n|-|-|\n|1",
            "<div class=\"table\"><table><thead><tr><th>a</th><th>b</th></tr></thead>\
             <tbody><tr><td>1</td></tr></tbody></table></div>",
        ),
        ("Two things:\n-", "<p>Two things:</p>"),
        ("Two things:\n- ", "<p>Two things:</p>"),
        ("Two things:\n- o", "<p>Two things:</p><ul><li>o</li></ul>"),
        ("Title\n---\n", "<h2>Title</h2>"),
        ("- [", "<ul><li>[</li></ul>"),
        ("# ", "<h1></h1>"),
        ("&am", "<p>&amp;am</p>"),
        ("<scr", "<p>&lt;scr</p>"),
        ("", ""),
    ] {
        assert_eq!(html(&parse(source)), expect, "{source:?}");
    }
}

#[test]
fn every_beginning_of_a_document_can_be_shown() {
    let source = "# Hi *there*\n\n1. `one`\n   ```sh\n   ls\n   ```\n2. [two](http://a/b \"t\")\n\n\
                  > quote **x\n\n|a|é|\n|:-|-:|\n|1|~~2~~|\n\n- [x] done\n\n---\n<b>&lt;\\*";
    for (end, _) in source.char_indices() {
        let document = parse(&source[..end]);
        html(&document);
        plain(&document);
        ansi(&document, Style { width: 30, colour: Colour::On });
    }
}
