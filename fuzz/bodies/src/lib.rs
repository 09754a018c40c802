//! What each fuzz target does with its bytes.
//!
//! A body takes any bytes, drives our code through its public seams with them, and panics when what
//! comes out cannot be right. It knows nothing of who makes the bytes: libFuzzer does under
//! `cargo fuzz`, and `cargo xtask fuzz` does on a stable compiler.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "one target measures real time")]

mod bytes;
mod calls;
mod keys;
mod markdown;
mod refusals;
mod rows;
mod settings;
mod stored;
mod stream;

/// One target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, which is also the name of its corpus.
    pub name: &'static str,
    /// What must hold.
    pub holds: &'static str,
    /// Takes any bytes; panics when it does not hold.
    pub run: fn(&[u8]),
    /// Pieces that are likely to mean something.
    pub words: &'static [&'static str],
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "sse",
        holds: "an event stream reads the same however it is cut, as the standard says, in bounds",
        run: stream::run,
        words: &[
            "data: ", "data", "event: ", ": x", "\n", "\r", "\r\n", "\n\n", "id: 1", "\u{feff}",
            "é", "{}",
        ],
    },
    Target {
        name: "tool_calls",
        holds: "no call comes out of arguments that are not one complete object",
        run: calls::run,
        words: &[
            "{", "}", "{}", "\"a\":", "[1,2]", "null", "true", "\"x\"", "\\\"", "\\u00e9", ",", " ",
        ],
    },
    Target {
        name: "config",
        holds: "a configuration is loaded or refused, twice the same, and no secret is printed",
        run: settings::config,
        words: &[
            "model: ",
            "providers:\n",
            "  p:\n",
            "    api_key: ",
            "    base_url: ",
            "accounts:\n",
            "    platform: loopback\n",
            "    address: ",
            "agent:\n",
            "  max_steps: ",
            "&a ",
            "*a",
            "!!str ",
            "|\n",
            "\"",
            "'",
            ": ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            "null",
            "1e9",
            "~",
            "\t",
            "\n",
            "#",
            "allow: [",
            "http:\n",
            "  listen: ",
            "limits:\n",
            "---\n",
            "<<: ",
        ],
    },
    Target {
        name: "dotenv",
        holds: "a quoted value comes back as it was written, and no value is printed",
        run: settings::dotenv,
        words: &[
            "export ", "=", "\"", "'", "#", "\n", "\r\n", "\\", "\\n", "${", "A", "_", " ",
            "\u{feff}",
        ],
    },
    Target {
        name: "rows",
        holds: "flipped bits in the store are noticed or do no harm, and never show another's rows",
        run: rows::run,
        words: &[],
    },
    Target {
        name: "split",
        holds: "every part fits as it is shown in its dialect, every word is there and in order",
        run: markdown::split,
        words: MARKDOWN,
    },
    Target {
        name: "html",
        holds: "only known tags, all closed, no active link of another scheme, no text lost",
        run: markdown::html,
        words: MARKDOWN,
    },
    Target {
        name: "hostile_markdown",
        holds: "long and deep Markdown is read and split in bounded time",
        run: markdown::hostile,
        words: MARKDOWN,
    },
    Target {
        name: "session_key",
        holds: "two events share a session exactly when the fields that make it are the same",
        run: keys::run,
        words: &[":", "a", "agent:main:", "é", "0"],
    },
    Target {
        name: "stored_json",
        holds: "what is stored is read back as it was, and anything else is refused",
        run: stored::run,
        words: &[
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"",
            "null",
            "0",
            "-1",
            "4294967295",
            "18446744073709551615",
            "\"said\"",
            "\"id\"",
            "\"text\"",
            "\"to\"",
            "\"turn\"",
            "\"phase\"",
            "\"idle\"",
            "\\u0000",
        ],
    },
    Target {
        name: "refusals",
        holds: "every status and body has an answer of one short line",
        run: refusals::run,
        words: &[
            "{\"error\":",
            "\"message\":",
            "\"type\":",
            "\"code\":",
            "\"status\":",
            "}",
            "[",
            "]",
            "null",
            "insufficient_quota",
            "context_length_exceeded",
            "rate_limit_error",
            "\\n",
            "\u{1b}[31m",
            "<html>",
        ],
    },
];

const MARKDOWN: &[&str] = &[
    "```",
    "```rust\n",
    "~~~\n",
    "\n```\n",
    "> ",
    "- ",
    "1. ",
    "    ",
    "\n\n",
    "\n",
    "**",
    "*",
    "_",
    "`",
    "[a](",
    "https://a.example/",
    ")",
    "javascript:",
    "<script>",
    "&amp;",
    "|a|b|\n|-|-|\n",
    "# ",
    "---\n",
    "~~",
    "\\",
    "![x](",
    "<https://a.example>",
    "[ ] ",
    "日本",
    "👨‍👩‍👧",
    "e\u{301}",
    "\t",
    "\r\n",
    "<a href=\"",
    "[x]: ",
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
