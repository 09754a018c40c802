//! What tests and benchmarks share: peers that behave like the real ones and keep their own truth.
//!
//! `Vendor` plays the platform behind a loopback account, `FakeLlm` the model, `GatewayProcess` runs
//! the real binary, `ScriptedAgent` stands in for an agent. They know the gateway only from outside,
//! by its documented lines and files: sharing code with it would hide its mistakes. `sim` is the other
//! way round: it holds a whole gateway and makes the world around it.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "peers live in real time and in tasks of their own")]

mod agent;
pub mod audio;
mod dice;
mod echo;
mod impostor;
mod llm;
mod past;
pub mod platform_contract;
mod process;
pub mod scripted;
pub mod sim;
mod vendor;
pub mod vendors;
mod waiting;

pub use agent::{Scene, ScriptedAgent};
pub use dice::Dice;
pub use echo::{Token, complete, echo, mentioned};
pub use impostor::Impostor;
pub use llm::{Asked, FakeLlm, Hold, Pace, Reply, ScriptedCall};
pub use past::Past;
pub use process::{Clutter, GatewayProcess, Home, Launch, Usage};
pub use vendor::{
    Act, Arrived, Author, By, Choice, Conduct, Happened, Overheard, Place, Quote, Refusal, Said,
    Shown, Truth, Vendor, VendorSettings, Violation,
};
pub use waiting::within;
