//! The dialect of platforms that show characters and nothing else.

use talaria_render::{parse, plain};

#[test]
fn marks_go_and_the_meaning_stays() {
    for (source, expect) in [
        ("", ""),
        ("one\ntwo\n\nthree", "one\ntwo\n\nthree"),
        ("# Title\ntext", "Title\n\ntext"),
        ("**a** *b* ~~c~~ `d` a_b_c", "a b c d a_b_c"),
        ("- a\n- b\n  - c\n    more\n- d", "• a\n• b\n  • c\n    more\n• d"),
        ("9. a\n10. b\n    c", "9. a\n10. b\n    c"),
        ("- a\n\n  b\n\n- c", "• a\n\n  b\n\n• c"),
        ("- [ ] a\n- [x] b", "☐ a\n☑ b"),
        ("> a\n>\n> b", "> a\n>\n> b"),
        ("- ", "•"),
        ("```rust\nfn  a() {\n\n\t*b*\n}\n```", "fn  a() {\n\n\t*b*\n}"),
        ("[docs](https://a.example/b_c)", "docs (https://a.example/b_c)"),
        ("<https://a.example> https://b.example.", "https://a.example https://b.example."),
        ("<me@a.example>", "me@a.example"),
        ("![cat](https://a.example/c.png)", "cat (https://a.example/c.png)"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("a <b>c</b> &amp; \\*d\\*", "a <b>c</b> & *d*"),
        ("|Name|Age|\n|-|-:|\n|Ann|7|\n|日本|12|", "Name  Age\n----  ---\nAnn     7\n日本   12"),
        ("|a|b|\n|-|-|\n|1|", "a  b\n-  -\n1"),
    ] {
        assert_eq!(plain(&parse(source)), expect, "{source:?}");
    }
}

#[test]
fn a_wide_table_becomes_a_list() {
    let long = "a value that is much too long for a telephone";
    assert_eq!(
        plain(&parse(&format!("|Name|What|Note|\n|-|-|-|\n|x|{long}||\n|y||z|"))),
        format!("• Name: x\n  What: {long}\n• Name: y\n  Note: z")
    );
    assert_eq!(
        plain(&parse(&format!("|{long}|beta|\n|-|-|\n|x|y|"))),
        format!("• {long}\n  beta\n• x\n  y")
    );
}
