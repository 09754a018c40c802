//! The agent contract, and the built-in agent: turn loop, tools, context.
//!
//! An agent gets a turn and yields events; it does not know platforms, sessions, stores or who may
//! do what. It runs only while its events are asked for, so the time between two events is the
//! gateway's to make the first one durable.
#![forbid(unsafe_code)]

mod builtin;
mod contract;
mod emit;
mod llm;
mod ports;
mod prompt;
mod tool;
pub mod tools;

pub use builtin::{BuiltIn, Settings};
pub use contract::{Agent, Events, Preview, Running, Turn};
pub use emit::{Emitter, events};
pub use llm::{
    Delta, Deltas, FinishReason, Part, Prompt, PromptMessage, Provider, ProviderError, Retry,
    ToolSpec,
};
pub use ports::{Attachments, Memory, Recall};
pub use prompt::Sight;
pub use tool::{EffectClass, Tool, ToolError, ToolOutput, ToolScope, Toolbox};
