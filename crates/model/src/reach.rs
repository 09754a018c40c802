//! Where somebody is heard who was let in.

use serde::{Deserialize, Serialize};

/// Where somebody is heard who was let in by pairing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// In direct chats.
    #[default]
    Direct,
    /// In every chat.
    Everywhere,
}
