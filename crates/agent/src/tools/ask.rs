//! `ask`: a question to the person, with answers to choose from.

use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::Value;
use talaria_model::{CallId, Choice, ChoiceId, Question, TurnId};

use super::arguments;
use crate::{EffectClass, Gravity, Tool, ToolError, ToolOutput, ToolScope, ToolSpec};

/// More answers than this are not a choice any more.
const MOST_CHOICES: usize = 10;

/// Asks the person. The turn loop puts the question and waits; this is what the model sees of it.
pub struct Ask;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The question, in one or two sentences.
    question: String,
    /// Two to ten short answers to choose from. Leave it out for a free answer.
    #[serde(default)]
    choices: Vec<String>,
}

impl Ask {
    /// The tool's name.
    pub const NAME: &str = "ask";

    /// The question that a call asks.
    pub(crate) fn question(
        turn: &TurnId,
        call: &CallId,
        given: Value,
    ) -> Result<Question, ToolError> {
        let Arguments { question, choices } = arguments(given)?;
        if question.trim().is_empty() {
            return Err(ToolError::Arguments("the question is empty".into()));
        }
        if choices.len() > MOST_CHOICES {
            return Err(ToolError::Arguments(format!("more than {MOST_CHOICES} choices")));
        }
        let choices = choices.into_iter().enumerate().map(|(place, label)| {
            // Bound to turn and call, so that a button of an older question cannot answer this one:
            // models number their calls anew every time.
            let id = ChoiceId::new(format!("{turn}.{call}.{}", place + 1))
                .map_err(|error| ToolError::Arguments(error.to_string()))?;
            Ok(Choice { id, label })
        });
        let choices = choices.collect::<Result<_, ToolError>>()?;
        Ok(Question { call: call.clone(), text: question, choices, approval: None })
    }
}

#[async_trait]
impl Tool for Ask {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: Self::NAME.into(),
            description: "Ask the person a question and wait for the answer. Use it when you \
                          cannot go on without a decision that is theirs."
                .into(),
            parameters: schema_for!(Arguments).to_value(),
        }
    }

    fn effect(&self) -> EffectClass {
        EffectClass::Pure
    }

    fn gravity(&self, _: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
        Ok(Gravity::Harmless)
    }

    async fn call(&self, _: Value, _: ToolScope) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Failed("a question can only be asked by the turn loop".into()))
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}
