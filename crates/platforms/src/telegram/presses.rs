//! Answers to pressed buttons. Until one comes, the button shows that something is going on; the
//! answer has to come within seconds and says nothing where the press was taken.

use std::time::Duration;

use serde_json::json;
use talaria_platform::Verdict;

use super::client::Client;
use super::encode::arguments;

/// Later nobody looks at the button any more.
const LIMIT: Duration = Duration::from_secs(8);

/// What a person reads who may not press.
const DENIED: &str = "You are not allowed to do this.";

/// An answer to a press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    press: String,
    text: Option<&'static str>,
}

impl Answer {
    pub(super) fn quiet(press: String) -> Self {
        Self { press, text: None }
    }

    /// The answer to a press, by what became of it.
    pub(super) fn to(press: String, verdict: Option<&Verdict>) -> Self {
        let text = matches!(verdict, Some(Verdict::Denied)).then_some(DENIED);
        Self { press, text }
    }

    /// Gives the answer. One that comes too late is none, and does no harm.
    pub(super) async fn give(self, client: &Client) {
        let mut body = arguments(json!({ "callback_query_id": self.press }));
        if let Some(text) = self.text {
            body.insert("text".into(), text.into());
        }
        if let Err(failure) = client.ask::<bool>("answerCallbackQuery", &body, LIMIT).await {
            let error = failure.of_act(super::refusal::Repeat::Invisible);
            tracing::info!(%error, "a press was not answered");
        }
    }
}
