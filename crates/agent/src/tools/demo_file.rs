//! `demo_file`: lets the demo show an attachment. It is offered to the demo only.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::Value;
use talaria_model::CallId;

use super::arguments;
use crate::{Attachments, EffectClass, Gravity, Tool, ToolError, ToolOutput, ToolScope, ToolSpec};

/// Writes a small text file and attaches it to the answer.
pub struct DemoFile {
    attachments: Arc<dyn Attachments>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The name of the file.
    name: String,
    /// What is in it.
    text: String,
}

impl DemoFile {
    /// What it is called by.
    pub const NAME: &str = "demo_file";

    /// Keeps its file through `attachments`.
    pub fn new(attachments: Arc<dyn Attachments>) -> Self {
        Self { attachments }
    }
}

#[async_trait]
impl Tool for DemoFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: Self::NAME.into(),
            description: "Attach a small text file to the answer.".into(),
            parameters: schema_for!(Arguments).to_value(),
        }
    }

    fn effect(&self) -> EffectClass {
        // The same bytes have the same name, so a second start changes nothing.
        EffectClass::Idempotent
    }

    fn gravity(&self, _: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
        Ok(Gravity::Harmless)
    }

    async fn call(&self, given: Value, _: ToolScope) -> Result<ToolOutput, ToolError> {
        let Arguments { name, text } = arguments(given)?;
        let file = self
            .attachments
            .save(&name, "text/plain", text.into_bytes())
            .await
            .map_err(ToolError::Failed)?;
        Ok(ToolOutput {
            files: vec![file.clone()],
            ..ToolOutput::text(format!("Attached {}.", file.name))
        })
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}
