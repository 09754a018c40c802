//! An answer that is shown while it grows.

use std::sync::Arc;

use talaria_agent::Preview;
use talaria_model::{MessageId, OutboundId, TextLimit, Unit};
use talaria_render::{Dialect, parts_in};
use talaria_session::reply::may_be_silence;
use tokio::sync::watch;

use crate::chats::{Chat, Voice};

/// What is being shown in a chat.
#[derive(Clone)]
pub(crate) struct Shown {
    /// The delivery whose text it will be.
    pub(crate) id: OutboundId,
    /// The message that it will answer.
    pub(crate) answers: Option<MessageId>,
    /// The answer so far.
    pub(crate) preview: watch::Receiver<Preview>,
    /// What was shown of it before this run.
    pub(crate) past: Past,
}

/// What was shown of an answer before this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Past {
    /// Nothing.
    None,
    /// Only the store knows: a preview posted anew could be a second one.
    Unknown,
}

/// Keeps a preview up. Dropping it takes the preview's claim on the chat away; what is visible
/// stays until the answer replaces it.
pub(crate) struct Live {
    shown: Option<(Arc<Chat>, OutboundId)>,
    _voice: Voice,
}

impl Live {
    pub(crate) fn new(chat: Arc<Chat>, id: OutboundId, voice: Voice) -> Self {
        Self { shown: Some((chat, id)), _voice: voice }
    }

    /// For chats that show nothing before it is finished.
    pub(crate) fn silent(voice: Voice) -> Self {
        Self { shown: None, _voice: voice }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some((chat, id)) = &self.shown {
            chat.hide(id);
        }
    }
}

/// What can be read of an answer. One that may turn out to be silence is not shown yet.
pub(crate) fn said_in(preview: &Preview) -> &str {
    if may_be_silence(&preview.text) { "" } else { preview.text.trim_end() }
}

/// Whether people would see anything of a text. One that so far consists of the marks of a title or a list
/// shows nothing.
pub(crate) fn says_something(text: &str) -> bool {
    /// No marks without words are longer.
    const MARKS: usize = 256;
    let limit = TextLimit { max: u32::MAX, unit: Unit::Bytes };
    text.len() > MARKS || parts_in(text, limit, Dialect::Plain).next().is_some()
}

/// What the preview looks like: the text so far and, under it, what the agent is doing.
pub(crate) fn text_of(preview: &Preview) -> String {
    let said = said_in(preview);
    match &preview.doing {
        None => said.to_owned(),
        Some(doing) if said.is_empty() => format!("*{doing}…*"),
        Some(doing) => format!("{said}\n\n*{doing}…*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_without_words_say_nothing() {
        for (text, says) in [("", false), ("# ", false), ("- ", false), ("# a", true)] {
            assert_eq!(says_something(text), says, "{text:?}");
        }
    }

    #[test]
    fn what_the_agent_is_doing_stands_under_what_it_said() {
        let look = |text: &str, doing: Option<&str>| {
            text_of(&Preview { doing: doing.map(Into::into), ..Preview::text(text) })
        };
        assert_eq!(look("Hello ", None), "Hello");
        assert_eq!(look("", Some("searching")), "*searching…*");
        assert_eq!(look("Hello", Some("searching")), "Hello\n\n*searching…*");
        assert_eq!(look("", None), "");
        assert_eq!(look("NO_REP", None), "");
        assert_eq!(look("NO_REPLACEMENT", None), "NO_REPLACEMENT");
    }
}
