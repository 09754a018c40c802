//! The tools that come with the agent.

mod ask;
mod demo_file;
mod demo_launch;
mod run_program;
mod send_message;
mod session_search;

pub use ask::Ask;
pub use demo_file::DemoFile;
pub use demo_launch::DemoLaunch;
pub use run_program::RunProgram;
pub use send_message::SendMessage;
pub use session_search::SessionSearch;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ToolError;

/// A tool's arguments as its own type.
fn arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError::Arguments(error.to_string()))
}
