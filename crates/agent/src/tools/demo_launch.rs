//! `demo_launch`: lets the demo show how a person is asked before something is done. It does nothing,
//! and is offered to the demo only.

use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};
use talaria_model::CallId;

use super::arguments;
use crate::{
    Danger, EffectClass, Gravity, Reads, Tool, ToolError, ToolOutput, ToolScope, ToolSpec, Wraps,
};

/// Launches a paper plane, if a person lets it.
pub struct DemoLaunch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Where to.
    to: String,
}

impl DemoLaunch {
    /// The tool's name.
    pub const NAME: &str = "demo_launch";
}

#[async_trait]
impl Tool for DemoLaunch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: Self::NAME.into(),
            description: "Launch a paper plane.".into(),
            parameters: schema_for!(Arguments).to_value(),
        }
    }

    fn effect(&self) -> EffectClass {
        EffectClass::Idempotent
    }

    fn gravity(&self, given: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
        let Arguments { to } = arguments(given.clone())?;
        Ok(Gravity::Asks(Danger {
            what: "launches a paper plane (this is the demo: nothing really happens)".into(),
            resolved: json!({ "to": to }),
            wraps: Wraps::Nothing,
            reads: Reads::Signs,
        }))
    }

    async fn call(&self, given: Value, _: ToolScope) -> Result<ToolOutput, ToolError> {
        let Arguments { to } = arguments(given)?;
        Ok(ToolOutput::text(format!("The plane is on its way to {to}.")))
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}
