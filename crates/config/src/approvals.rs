//! Settings of what is asked about before it is done, and of programs that the agent may run.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{DurationText, duration_text};

/// What is asked about before it is done.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// What becomes of a call that should be approved.
    pub mode: ApprovalMode,

    /// How long the question stays open. Nobody's answer is a no.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText", extend("x-synonyms" = ["timeout"]))]
    pub limit: Duration,

    /// Whose yes counts. Where only administrators approve, one has to be named in `allow_admin_from` or
    /// `group_allow_admin_from` and has to read along; a no of the person who asked counts everywhere.
    pub by: ApprovedBy,

    /// Calls that are never made, whoever approves them: the name of a tool, or `tool:pattern` with a
    /// pattern for its arguments. `*` stands for anything.
    #[schemars(extend("x-applies" = "live"))]
    pub deny: Vec<String>,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            mode: ApprovalMode::Ask,
            limit: Duration::from_secs(5 * 60),
            by: ApprovedBy::Requester,
            deny: Vec::new(),
        }
    }
}

/// What becomes of a call that should be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// A person is asked in the chat.
    Ask,
    /// It is made without a question. Whoever can talk to the agent can then make it do everything that
    /// its tools can.
    Off,
    /// It is not made.
    Deny,
}

/// Whose yes counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovedBy {
    /// That of the person whose message the agent is answering.
    Requester,
    /// That of an administrator.
    Admins,
    /// Either.
    Both,
}

/// A program that the agent may run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramSettings {
    /// The file, as a whole path. Nobody but you and the administrator of the machine may be able to
    /// change it. It is run as it is, never through a shell.
    #[schemars(length(min = 1))]
    pub program: String,

    /// What it is good for, in a sentence for the model.
    #[schemars(length(min = 1))]
    pub about: String,

    /// The arguments it is always given first.
    #[serde(default)]
    pub arguments: Vec<String>,

    /// Whether the model may add arguments of its own.
    #[serde(default)]
    pub free_arguments: bool,

    /// Whether a person is asked each time.
    #[serde(default)]
    pub ask: AskBefore,

    /// Whether a call with arguments of the model's own may be approved for good, so that nobody is asked
    /// about exactly these again. Say so of a program that does only what its arguments say; one
    /// that runs others does something else tomorrow. Without `free_arguments` it may be anyway.
    #[serde(default)]
    pub always: bool,

    /// How long it may take. Then it is ended, with all that it started.
    #[serde(with = "duration_text", default = "usual_limit")]
    #[schemars(with = "DurationText")]
    pub limit: Duration,
}

fn usual_limit() -> Duration {
    Duration::from_secs(60)
}

/// Whether a person is asked first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskBefore {
    /// Yes, as `approvals` says.
    #[default]
    Always,
    /// No.
    Never,
}
