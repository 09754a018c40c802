//! Nothing that a model writes becomes active in a browser.
//!
//! The HTML is read by a tokenizer that knows only what may be there, and refuses everything else.

use proptest::prelude::*;
use talaria_render::{html, parse, plain};

use crate::support::{Tables, comparable, readable, written_markdown};

/// A tag or a stretch of text; `Err` says what has no business in our HTML.
fn tokens(mut rest: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        if let Some(tag) = rest.strip_prefix("</") {
            let (name, after) = tag.split_once('>').ok_or("a closing tag without an end")?;
            tokens.push(Token::Close(name));
            rest = after;
        } else if let Some(tag) = rest.strip_prefix('<') {
            let end =
                tag.find(|c: char| !c.is_ascii_alphanumeric()).ok_or("a tag without an end")?;
            let (name, mut after) = tag.split_at(end);
            let mut attributes = Vec::new();
            while let Some(attribute) = after.strip_prefix(' ') {
                let (key, value) = attribute.split_once("=\"").ok_or("a bare attribute")?;
                let (value, behind) = value.split_once('"').ok_or("an open attribute")?;
                attributes.push((key, unescaped(value)?));
                after = behind;
            }
            rest = after.strip_prefix('>').ok_or_else(|| format!("{after:.20?} in a tag"))?;
            tokens.push(Token::Open(name, attributes));
        } else {
            let end = rest.find('<').unwrap_or(rest.len());
            tokens.push(Token::Text(unescaped(&rest[..end])?));
            rest = &rest[end..];
        }
    }
    Ok(tokens)
}

#[derive(Debug)]
enum Token<'a> {
    Open(&'a str, Vec<(&'a str, String)>),
    Close(&'a str),
    Text(String),
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut pieces = text.split('&');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (name, after) = piece.split_once(';').ok_or("a bare ampersand")?;
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            _ => return Err(format!("&{name};")),
        });
        out.push_str(after);
    }
    match text.find(['<', '>', '"', '\'']) {
        Some(at) => Err(format!("{:.20?} unescaped", &text[at..])),
        None => Ok(out),
    }
}

/// Whether HTML has what it may have and nothing else, and closes what it opens.
pub(crate) fn check(html: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for token in tokens(html)? {
        match token {
            Token::Open("br" | "hr", attributes) if attributes.is_empty() => {}
            Token::Open(name, attributes) => {
                let known = "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code div table thead \
                             tbody tr th td strong em del a";
                if !known.split_whitespace().any(|tag| tag == name) {
                    return Err(format!("<{name}>"));
                }
                if name == "a" && open.contains(&"a") {
                    return Err("a link in a link".into());
                }
                for (key, value) in &attributes {
                    let is_fine = match (name, *key) {
                        ("a", "href") => ["http://", "https://", "mailto:"]
                            .iter()
                            .any(|scheme| value.to_ascii_lowercase().starts_with(scheme)),
                        ("a", "rel") => value == "noopener noreferrer nofollow",
                        ("a", "target") => value == "_blank",
                        ("ol", "start") => value.bytes().all(|byte| byte.is_ascii_digit()),
                        ("div", "class") => value == "table",
                        ("li", "class") => value == "task",
                        ("th" | "td", "class") => value == "center" || value == "right",
                        ("code", "class") => value.strip_prefix("language-").is_some_and(|name| {
                            name.chars()
                                .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '+' | '#' | '-'))
                        }),
                        _ => false,
                    };
                    if !is_fine {
                        return Err(format!("<{name} {key}={value:?}>"));
                    }
                }
                if name == "a" && attributes.len() != 3 {
                    return Err(format!("a link with {attributes:?}"));
                }
                open.push(name);
            }
            Token::Close(name) => {
                if open.pop() != Some(name) {
                    return Err(format!("</{name}> closes nothing"));
                }
            }
            Token::Text(text) => {
                if text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
                    return Err(format!("{text:?}"));
                }
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} left open")) }
}

/// What a browser shows, with the numbers of items and the addresses of links.
fn shown(html: &str) -> String {
    let mut out = String::new();
    let mut numbers: Vec<Option<u64>> = Vec::new();
    let mut link: Option<(String, usize)> = None;
    for token in tokens(html).expect("it can be read") {
        match token {
            Token::Open("ul", _) => numbers.push(None),
            Token::Open("ol", attributes) => {
                let start = attributes.first().and_then(|(_, value)| value.parse().ok());
                numbers.push(Some(start.unwrap_or(1)));
            }
            Token::Open("li", attributes) => {
                if let Some(Some(number)) = numbers.last_mut() {
                    if attributes.is_empty() {
                        out.push_str(&format!("{number}."));
                    }
                    *number += 1;
                }
            }
            Token::Open("a", attributes) => {
                let to = attributes.into_iter().find(|(key, _)| *key == "href");
                link = to.map(|(_, to)| (to, out.len()));
            }
            Token::Close("ul" | "ol") => drop(numbers.pop()),
            Token::Close("a") => {
                if let Some((to, start)) = link.take()
                    && out[start..] != *to.strip_prefix("mailto:").unwrap_or(&to)
                {
                    out.push_str(&format!("({to})"));
                }
            }
            Token::Text(text) => out.push_str(&text),
            Token::Open(..) | Token::Close(_) => {}
        }
    }
    out
}

const CORPUS: &[&str] = &[
    "<script>alert(1)</script>",
    "<ScRiPt src=//x.example></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<style>*{background:url(javascript:alert(1))}</style>",
    "<!-- --><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version=\"1.0\"?><script>alert(1)</script>",
    "a <b onmouseover=alert(1)>b</b>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](java\tscript:alert(1))",
    "[x](java&#10;script:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](&#x6A&#x61vascript:alert(1))",
    "[x](\u{1}javascript:alert(1))",
    "[x](&#1;javascript:alert(1))",
    "[x](\u{a0}javascript:alert(1))",
    "[x](\u{feff}https://a.example)",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[x](file:///etc/passwd)",
    "[x](//a.example)",
    "[x](http:javascript:alert(1))",
    "[x](https://a.example/\"onmouseover=\"alert(1))",
    "[x](https://a.example/'onmouseover='alert(1))",
    "[x](<https://a.example/\" onmouseover=\"alert(1)>)",
    "[x](https://a.example/&quot;onmouseover=&quot;alert(1))",
    "[x](https://a.example \"title\\\" onload=alert(1)\")",
    "[x](https://a.example/\u{202e}gpj.exe)",
    "![\" onerror=\"alert(1)](https://a.example/x)",
    "![x](https://a.example/x\"onerror=\"alert(1))",
    "[<script>alert(1)</script>](https://a.example)",
    "[x][r]\n\n[r]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "<https://a.example/\"onload=alert(1)>",
    "https://a.example/\"><script>alert(1)</script>",
    "https://a.example/'onload='alert(1)",
    "`<script>alert(1)</script>`",
    "``` \"onload=\"alert(1)\n</code></pre><script>alert(1)</script>\n```",
    "```js\"><script>\nx\n```",
    "    </code></pre><script>alert(1)</script>",
    "|<script>|\n|-|\n|<img onerror=alert(1)>|",
    "|a|\n|:-\" onload=alert(1)|\n|b|",
    "# <script>alert(1)</script>",
    "- <script>alert(1)</script>\n- [ ] <img onerror=x>",
    "> <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\<script\\>alert(1)\\</script\\>",
    "＜script＞alert(1)＜/script＞",
    "<scr\0ipt>alert(1)</scr\0ipt>",
    "<scr\u{200b}ipt>alert(1)</scr\u{200b}ipt>",
    "<\u{1b}[0mscript>alert(1)</script>",
    "**<script>**alert(1)**</script>**",
    "<<script>script>alert(1)<</script>/script>",
    "[a](https://a.example)[b](https://b.example",
    "![a [b](https://b.example) c](https://a.example)",
    "99999999999999999999. x",
    "999999999. x",
    "\u{2028}<script>\u{2029}alert(1)</script>",
];

#[test]
fn the_corpus_stays_text() {
    for source in CORPUS {
        let rendered = html(&parse(source));
        assert_eq!(check(&rendered), Ok(()), "{source:?} became {rendered}");
    }
}

#[test]
fn the_corpus_stays_text_wherever_it_is_cut_off() {
    for source in CORPUS {
        for (end, _) in source.char_indices() {
            let rendered = html(&parse(&source[..end]));
            assert_eq!(check(&rendered), Ok(()), "{:?} became {rendered}", &source[..end]);
        }
    }
}

#[test]
fn the_tokenizer_notices_what_it_is_there_for() {
    for bad in [
        "<script>x</script>",
        "<p onclick=\"x\">y</p>",
        "<a href=\"javascript:x\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">y</a>",
        "<a href=\"https://x\">y</a>",
        "<p>a & b</p>",
        "<p>a < b</p>",
        "<p>a",
        "<img src=\"x\">",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}

proptest! {
    #![proptest_config(crate::same_every_time())]

    #[test]
    fn any_mixture_of_the_corpus_stays_text(
        pieces in prop::collection::vec(
            prop_oneof![
                3 => prop::sample::select(CORPUS).prop_map(str::to_owned),
                1 => "[ \\n<>\"'`*_\\[\\]()&;:|!#-]{1,6}",
                1 => ".{0,6}",
            ],
            1..8,
        ),
        cut in 0.0..1.0_f64,
    ) {
        let source = pieces.concat();
        let end = source.floor_char_boundary((source.len() as f64 * cut) as usize);
        for source in [&source, &source[..end]] {
            let rendered = html(&parse(source));
            prop_assert_eq!(check(&rendered), Ok(()), "{}", rendered);
        }
    }

    #[test]
    fn everything_that_is_written_is_shown(source in written_markdown(Tables::None)) {
        let document = parse(&source);
        prop_assert_eq!(comparable(&shown(&html(&document))), comparable(&readable(&document)));
        prop_assert_eq!(comparable(&plain(&document)), comparable(&readable(&document)));
    }
}
