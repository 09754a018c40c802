//! One document, every dialect.

use talaria_model::Markup;

use crate::commonmark::commonmark;
use crate::discord::discord;
use crate::document::{Block, Document};
use crate::html::html_blocks;
use crate::plain::plain_blocks;
use crate::slack::slack;
use crate::telegram::{Entity, telegram};

/// A way of writing text that some platforms share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Characters and nothing else.
    Plain,
    /// CommonMark with tables, strikethrough and task lists. Also what Slack's `markdown` block and
    /// `markdown_text` take.
    Markdown,
    /// HTML that needs no further cleaning.
    Html,
    /// Text, and entities beside it.
    TelegramEntities,
    /// Discord's Markdown. Mentions stay mentions: whom they may call, the request says that sends them.
    Discord,
    /// Slack's mrkdwn. People and channels can be mentioned, but never everybody at once.
    SlackMrkdwn,
}

/// A document in a dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// What is sent as text, and what counts for the length of a message.
    pub text: String,
    /// What has a form; empty unless the dialect is [`Dialect::TelegramEntities`].
    pub entities: Vec<Entity>,
}

/// The document in a dialect. No dialect refuses any document, and what the document says can be read
/// in each of them.
pub fn render(document: &Document, dialect: Dialect) -> Rendered {
    render_blocks(document.blocks(), dialect)
}

pub(crate) fn render_blocks(blocks: &[Block], dialect: Dialect) -> Rendered {
    let text = match dialect {
        Dialect::Plain => plain_blocks(blocks),
        Dialect::Markdown => commonmark(blocks),
        Dialect::Html => html_blocks(blocks),
        Dialect::TelegramEntities => {
            let (text, entities) = telegram(blocks);
            return Rendered { text, entities };
        }
        Dialect::Discord => discord(blocks),
        Dialect::SlackMrkdwn => slack(blocks),
    };
    Rendered { text, entities: Vec::new() }
}

impl From<Markup> for Dialect {
    fn from(markup: Markup) -> Self {
        match markup {
            Markup::Plain => Self::Plain,
            Markup::Markdown => Self::Markdown,
            Markup::Entities => Self::TelegramEntities,
            Markup::Discord => Self::Discord,
            Markup::Mrkdwn => Self::SlackMrkdwn,
            Markup::Html => Self::Html,
        }
    }
}
