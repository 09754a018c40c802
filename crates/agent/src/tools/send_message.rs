//! `send_message`: says something in another chat than the one it is asked for in.
//!
//! The model knows chats by the names that the operator gave them; it never writes an address. What it wants
//! to say is held until a person has approved exactly that, to exactly there, unless the operator has said of a
//! place that nobody is asked.

use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};
use talaria_model::{CallId, Sending};

use super::arguments;
use crate::{
    AsksFirst, Danger, Destination, EffectClass, Elsewhere, Gravity, Reads, Tool, ToolError,
    ToolOutput, ToolScope, ToolSpec, Wraps,
};

/// The longest message, in characters. What is asked about must be shorter still, so that it can be read.
const LONGEST: usize = 8_000;

/// The most places that are listed for the model.
const MOST_LISTED: usize = 50;

/// Sends messages where the turn may send them.
pub struct SendMessage;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The name of the chat. A name that is not known is answered with all that are.
    to: String,
    /// What is said there, in Markdown.
    text: String,
}

/// A message and where it goes.
struct Letter {
    to: Destination,
    text: String,
}

impl SendMessage {
    /// The tool's name.
    pub const NAME: &str = "send_message";
}

/// What a call asks for. Who may send where is decided behind `elsewhere`.
fn letter(given: &Value, elsewhere: &Elsewhere) -> Result<Letter, ToolError> {
    let Arguments { to, text } = arguments(given.clone())?;
    if text.trim().is_empty() || text.chars().count() > LONGEST {
        return Err(ToolError::Arguments(format!(
            "`text` is empty or longer than {LONGEST} characters"
        )));
    }
    let places = elsewhere.places();
    match places.iter().find(|place| place.name == to) {
        Some(place) => Ok(Letter { to: place.clone(), text }),
        None => Err(ToolError::Failed(nowhere(&to, &places))),
    }
}

/// Says where messages can go, for a model that named another place.
fn nowhere(named: &str, places: &[Destination]) -> String {
    if places.is_empty() {
        return "The person you work for may not send messages to other chats.".to_owned();
    }
    let told = places.iter().take(MOST_LISTED).map(|place| match &place.about {
        Some(about) => format!("\n- {:?}: {about}", place.name),
        None => format!("\n- {:?}, on {}", place.name, place.to.account),
    });
    let told: String = told.collect();
    format!("There is no chat {named:?} to which this person may send messages. There are:{told}")
}

#[async_trait]
impl Tool for SendMessage {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: Self::NAME.into(),
            description: "Send a message to another chat, by its name. Never use it for what you say here: \
                          your answer is sent here anyway. A person may be asked first; if they say no, do \
                          not try again."
                .into(),
            parameters: schema_for!(Arguments).to_value(),
        }
    }

    /// A call only says what is to be sent. It is sent by the commit that records its result.
    fn effect(&self) -> EffectClass {
        EffectClass::Pure
    }

    fn gravity(&self, given: &Value, scope: &ToolScope) -> Result<Gravity, ToolError> {
        let Letter { to, text } = letter(given, &scope.elsewhere)?;
        Ok(match to.asks {
            AsksFirst::No => Gravity::Harmless,
            AsksFirst::Yes => Gravity::Asks(Danger {
                what: format!("sends a message to {}", to.name),
                // A name may come to stand for another chat while somebody thinks.
                resolved: json!({ "text": text, "to": to.name, "where": to.to }),
                wraps: Wraps::Nothing,
                reads: Reads::Prose,
            }),
        })
    }

    async fn call(&self, given: Value, scope: ToolScope) -> Result<ToolOutput, ToolError> {
        let Letter { to, text } = letter(&given, &scope.elsewhere)?;
        let told = format!("It is on its way to {:?}.", to.name);
        let sends = vec![Sending { to: to.to, text }];
        Ok(ToolOutput { sends, ..ToolOutput::text(told) })
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}
