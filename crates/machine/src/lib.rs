//! This machine as the gateway touches it: programs that it starts, which get none of its secrets, and
//! folders that it holds open, in which a name means what it meant when it was looked at.
//!
//! It knows nothing of what the programs do and what the files are.
#![forbid(unsafe_code)]

mod child;
mod folder;

pub use child::{Group, PASSED_ON, environment};
pub use folder::Folder;
