//! `run_program`: runs a program that the operator has named. Never a shell, and never anything else.

use std::fmt::Write;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};
use talaria_model::CallId;

use super::arguments;
use crate::ports::{AsksFirst, Order, Programs};
use crate::{
    Danger, EffectClass, Gravity, Reads, Tool, ToolError, ToolOutput, ToolScope, ToolSpec,
};

/// The most arguments of a call.
const MOST_ARGUMENTS: usize = 64;

/// The most bytes of all of them.
const LONGEST: usize = 8 * 1024;

/// Runs programs through a port.
pub struct RunProgram {
    programs: Arc<dyn Programs>,
    description: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The name of the program, as it is listed.
    name: String,
    /// Arguments for it, one by one. They reach the program as they are: nothing in them is expanded.
    #[serde(default)]
    args: Vec<String>,
}

impl RunProgram {
    /// The tool's name.
    pub const NAME: &str = "run_program";

    /// Runs what `programs` knows.
    pub fn new(programs: Arc<dyn Programs>) -> Self {
        let mut description =
            "Run one of these programs on the machine of the operator and read what \
                               it prints. A person may be asked first; if they say no, do not try \
                               again."
                .to_owned();
        for program in programs.known() {
            // A string takes all that is written to it.
            let _ = write!(description, "\n- `{}`: {}", program.name, program.about);
        }
        Self { programs, description }
    }

    fn order(&self, given: &Value) -> Result<Order, ToolError> {
        let Arguments { name, args } = arguments(given.clone())?;
        if args.len() > MOST_ARGUMENTS || args.iter().map(String::len).sum::<usize>() > LONGEST {
            return Err(ToolError::Arguments(format!(
                "more than {MOST_ARGUMENTS} arguments, or more than {LONGEST} bytes of them"
            )));
        }
        if args.iter().any(|argument| argument.contains('\0')) {
            return Err(ToolError::Arguments("no argument can hold a zero byte".into()));
        }
        self.programs.order(&name, args).map_err(ToolError::Failed)
    }
}

#[async_trait]
impl Tool for RunProgram {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: Self::NAME.into(),
            description: self.description.clone(),
            parameters: schema_for!(Arguments).to_value(),
        }
    }

    fn effect(&self) -> EffectClass {
        EffectClass::Unsafe
    }

    fn gravity(&self, arguments: &Value, _: &ToolScope) -> Result<Gravity, ToolError> {
        let Order { name, program, arguments, file, asks, wraps } = self.order(arguments)?;
        Ok(match asks {
            AsksFirst::No => Gravity::Harmless,
            AsksFirst::Yes => Gravity::Asks(Danger {
                what: format!("runs the program {name}"),
                resolved: json!({ "run": program, "arguments": arguments, "file": file }),
                wraps,
                reads: Reads::Signs,
            }),
        })
    }

    async fn call(&self, given: Value, _: ToolScope) -> Result<ToolOutput, ToolError> {
        let order = self.order(&given)?;
        let text = self.programs.run(order).await.map_err(ToolError::Failed)?;
        Ok(ToolOutput::text(text))
    }

    async fn outcome(&self, _: &CallId) -> Result<Option<ToolOutput>, ToolError> {
        Ok(None)
    }
}
