//! Writes down what is said and says what is written: by an audio API as OpenAI's, or by programs on
//! this machine.
//!
//! It knows how an API is called and how a program is run. Which one is, when, how often and for how
//! long is decided by whoever holds it; dropping what it is doing ends it.
#![forbid(unsafe_code)]

mod endpoint;
mod program;
mod programs;
mod sound;

pub use endpoint::{Endpoint, EndpointSpeaker, EndpointTranscriber, SetupError};
pub use program::is_there;
pub use programs::{Program, ProgramSpeaker, ProgramTranscriber, Workshop};
pub use sound::Format;
