//! `session_search`: what was said before, in this and other conversations of the same person.

use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::Value;
use talaria_model::CallId;

use super::arguments;
use crate::{EffectClass, Recall, Tool, ToolError, ToolOutput, ToolScope, ToolSpec};

/// Searches the transcripts that the person may read.
pub struct SessionSearch {
    recall: Arc<dyn Recall>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words that must all occur, or a part of a word.
    query: String,
    /// How many results, at most 20.
    #[serde(default = "usual_limit")]
    limit: usize,
}

fn usual_limit() -> usize {
    5
}

impl SessionSearch {
    /// Searches through `recall`.
    pub fn new(recall: Arc<dyn Recall>) -> Self {
        Self { recall }
    }
}

#[async_trait]
impl Tool for SessionSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "session_search".into(),
            description: "Search what was said in earlier conversations with this person. Use it \
                          when they refer to something from the past."
                .into(),
            parameters: schema_for!(Arguments).to_value(),
        }
    }

    fn effect(&self) -> EffectClass {
        EffectClass::Pure
    }

    async fn call(&self, given: Value, scope: ToolScope) -> Result<ToolOutput, ToolError> {
        let Arguments { query, limit } = arguments(given)?;
        let memories = self
            .recall
            .search(&scope, &query, limit.clamp(1, 20))
            .await
            .map_err(ToolError::Failed)?;
        if memories.is_empty() {
            return Ok(ToolOutput {
                text: format!("Nothing was said about {query:?}."),
                files: vec![],
            });
        }
        let mut text = String::new();
        for memory in memories {
            // Quoted line by line: what people said is data, not a second conversation.
            let excerpt = memory.excerpt.replace('\n', "\n> ");
            let _ = writeln!(
                text,
                "{} in “{}”, {} said:\n> {excerpt}\n",
                memory.when, memory.conversation, memory.who
            );
        }
        Ok(ToolOutput { text, files: vec![] })
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}
