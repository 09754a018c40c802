//! Text that is no Markdown: every character of it is shown as itself, in every dialect.

use std::borrow::Cow;

use talaria_model::Reading;

use crate::dialect::{Dialect, render};
use crate::document::{Block, Document, Inline};
use crate::parse::parse;
use crate::visible::shown;

/// Reads a text as it is meant to be read.
pub fn read(text: &str, reading: Reading) -> Document {
    match reading {
        Reading::Markdown => parse(text),
        Reading::AsItIs => verbatim(text),
    }
}

/// The text as CommonMark, for readers who know nothing else.
pub fn markdown(text: &str, reading: Reading) -> Cow<'_, str> {
    match reading {
        Reading::Markdown => Cow::Borrowed(text),
        Reading::AsItIs => Cow::Owned(render(&verbatim(text), Dialect::Markdown).text),
    }
}

/// Every line is a line; empty ones end a paragraph.
fn verbatim(text: &str) -> Document {
    let text = shown(text).replace('\t', "    ");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    let paragraph = |lines: &[&str]| {
        let words = |line: &&str| [Inline::Break, Inline::Text((*line).to_owned())];
        Block::Paragraph(lines.iter().flat_map(words).skip(1).collect())
    };
    Document { blocks: paragraphs.map(paragraph).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "# no title\n- no item\n\n> no quote, a*b*c and __init__\n```\nno `code`\n\
                           <@U1> & <!here> [no](http://a.b) ~~no~~ ||no||";

    #[test]
    fn nothing_in_it_has_a_form() {
        let read = read(HOSTILE, Reading::AsItIs);
        let telegram = render(&read, Dialect::TelegramEntities);
        assert_eq!(telegram.entities, []);
        assert_eq!(telegram.text, HOSTILE);
        assert_eq!(render(&read, Dialect::Plain).text, HOSTILE);
    }

    #[test]
    fn written_as_markdown_it_is_read_as_the_same_words() {
        let escaped = markdown(HOSTILE, Reading::AsItIs);
        let again = render(&parse(&escaped), Dialect::Plain).text;
        assert_eq!(again, HOSTILE);
        assert_eq!(markdown("*a*", Reading::Markdown), "*a*");
    }

    #[test]
    fn discord_and_slack_are_kept_from_reading_marks() {
        let read = read("a*b*c `d` __e__", Reading::AsItIs);
        assert_eq!(render(&read, Dialect::Discord).text, r"a\*b\*c \`d\` \_\_e\_\_");
        let slack = render(&read, Dialect::SlackMrkdwn).text;
        let visible: String = slack.chars().filter(|c| !"\u{200b}\u{2060}".contains(*c)).collect();
        // Slack has no escape for them, only signs that look alike.
        assert_eq!(visible, "a*b*c ˋdˋ ˍˍeˍˍ");
    }
}
