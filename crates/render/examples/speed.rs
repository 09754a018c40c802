//! Prints how long an answer of 20 kB takes: `cargo run --release -p talaria-render --example speed`.
#![expect(clippy::print_stdout, reason = "it is there to be read")]
#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use talaria_model::{TextLimit, Unit};
use talaria_render::{Dialect, parse, render, split_in};

const ANSWER: &str = "\
## Where the time goes\n\n\
The **parser** reads about *one hundred* megabytes a second, see [the notes](https://a.example/b_(c)) and `parse()`. \
A paragraph like this one has a few sentences, some `code`, and ends. Then the next one begins; it is not much longer, \
but it has an address in it: https://b.example/speed?x=1&y=2 and a price of $5.\n\n\
1. First, *measure*.\n   - with a clock\n   - and with a profiler\n2. Then change **one** thing.\n3. Measure again.\n\n\
```rust\nfn main() {\n    let answer = std::fs::read_to_string(\"answer.md\")?;\n    println!(\"{}\", answer.len());\n}\n```\n\n\
| dialect | time | note |\n|---|--:|---|\n| plain | 10 | fast |\n| html | 12 | also fast |\n| discord | 14 | `escapes` |\n\n\
> It is not the speed that kills you, it is the sudden stop.\n\n\
如果答案是中文的，标点符号**（例如这个）**也要处理好。这里没有空格，所以只能在标点之后换行。\n\n";

const ROUNDS: u32 = 200;

fn main() {
    let answer = ANSWER.repeat(20_000 / ANSWER.len() + 1);
    println!("{} bytes", answer.len());
    time("parse", || drop(black_box(parse(black_box(&answer)))));
    let document = parse(&answer);
    for (dialect, max, unit) in [
        (Dialect::Plain, 2000, Unit::Chars),
        (Dialect::Markdown, 12_000, Unit::Chars),
        (Dialect::Html, 4000, Unit::Bytes),
        (Dialect::TelegramEntities, 4096, Unit::Utf16),
        (Dialect::Discord, 2000, Unit::Chars),
        (Dialect::SlackMrkdwn, 4000, Unit::Chars),
    ] {
        let limit = TextLimit { max, unit };
        println!("{dialect:?}, {} parts", split_in(&answer, limit, dialect).len());
        time("  render", || drop(black_box(render(black_box(&document), dialect))));
        time("  split", || drop(black_box(split_in(black_box(&answer), limit, dialect))));
    }
}

fn time(what: &str, work: impl Fn()) {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        work();
        best = best.min(begun.elapsed());
    }
    println!("{what}: {best:?}");
}
