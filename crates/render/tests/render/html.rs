//! The dialect of browsers.

use talaria_render::{html, parse};

#[test]
fn every_form_has_its_elements() {
    for (source, expect) in [
        ("one\n\ntwo", "<p>one</p><p>two</p>"),
        ("one\ntwo", "<p>one<br>two</p>"),
        ("# A\n### B", "<h1>A</h1><h3>B</h3>"),
        ("**a** *b* ~~c~~ `d`", "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d</code></p>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("- a\n  - b", "<ul><li>a<ul><li>b</li></ul></li></ul>"),
        ("- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"),
        ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
        ("7. a", "<ol start=\"7\"><li>a</li></ol>"),
        ("- [ ] a\n- [x] b", "<ul><li class=\"task\">☐ a</li><li class=\"task\">☑ b</li></ul>"),
        ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
        ("```c++\na < b\n```", "<pre><code class=\"language-c++\">a &lt; b</code></pre>"),
        ("    a\n    b", "<pre><code>a\nb</code></pre>"),
        ("---", "<hr>"),
        (
            "|a|b|c|\n|-|:-:|-:|\n|1|2|3|",
            "<div class=\"table\"><table><thead><tr><th>a</th><th class=\"center\">b</th>\
             <th class=\"right\">c</th></tr></thead><tbody><tr><td>1</td>\
             <td class=\"center\">2</td><td class=\"right\">3</td></tr></tbody></table></div>",
        ),
        (
            "[a](https://b.example/?c&d)",
            "<p><a href=\"https://b.example/?c&amp;d\" rel=\"noopener noreferrer nofollow\" \
             target=\"_blank\">a</a></p>",
        ),
        (
            "![a](https://b.example/c.png)",
            "<p><a href=\"https://b.example/c.png\" rel=\"noopener noreferrer nofollow\" \
             target=\"_blank\">a</a></p>",
        ),
        ("[a](./b.md)", "<p>a (./b.md)</p>"),
        ("a <b>c</b> & \"d\" 'e'", "<p>a &lt;b&gt;c&lt;/b&gt; &amp; &quot;d&quot; &#39;e&#39;</p>"),
        ("<div>\n*a*\n</div>", "<p>&lt;div&gt;<br>*a*<br>&lt;/div&gt;</p>"),
        ("\\*a\\* &lt;b&gt;", "<p>*a* &lt;b&gt;</p>"),
    ] {
        assert_eq!(html(&parse(source)), expect, "{source:?}");
    }
}
