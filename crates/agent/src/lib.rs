//! The agent contract, and the built-in agent: turn loop, tools, context.
//!
//! An agent gets a turn and yields events; it does not know platforms, sessions, stores or who may
//! do what. It runs only while its events are asked for, so the time between two events is the
//! gateway's to make the first one durable.
#![forbid(unsafe_code)]

mod approval;
mod bounds;
mod budget;
mod builtin;
mod compress;
mod contract;
mod emit;
mod llm;
pub mod media;
mod ports;
mod prefix;
mod prompt;
mod refused;
mod situation;
mod spelled;
mod tool;
pub mod tools;
mod voice;

pub use bounds::{Bounds, Fence};
pub use budget::{Automatic, Budget};
pub use builtin::{BuiltIn, Settings};
pub use contract::{
    Agent, Destination, Elsewhere, Events, History, Permitted, Preview, Running, Turn,
};
pub use emit::{Emitter, events};
pub use llm::{
    Delta, Deltas, FinishReason, Models, NoModel, Part, Prompt, PromptMessage, Provider,
    ProviderError, Retry, ToolSpec,
};
pub use media::Roots;
pub use ports::{AsksFirst, Attachments, Memory, Order, Program, Programs, Recall};
pub use prefix::{PrefixLimits, Prefixes};
pub use prompt::Sight;
pub use refused::Refused;
pub use situation::{Home, PlatformFacts, Privacy, Situation, digest, hide_chat};
pub use tool::{
    Danger, EffectClass, Gravity, Reads, Tool, ToolError, ToolOutput, ToolScope, Toolbox, Wraps,
};
pub use voice::{Recording, Speaker, Transcriber, VoiceError};
