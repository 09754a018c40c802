//! The command line, as people type it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::chat::ChatOptions;
use crate::commands::setup::SetupOptions;

/// One AI agent, reachable from every chat app you use.
///
/// Without a command, talaria runs the gateway: it keeps everything in one folder (TALARIA_HOME,
/// ~/.talaria if not set), serves a web chat on this machine, and needs no configuration to begin.
#[derive(Debug, Parser)]
#[command(
    name = "talaria",
    version,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 the agent asked \
                  something and nobody was there to answer, 4 a gateway is already running on this \
                  home, 75 it was asked to restart and systemd does that.\n\nStart with `talaria`, then open the address it prints, or type \
                  `talaria chat` in another terminal."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway (the default)
    Run,
    /// Talk to the agent in this terminal; starts a gateway if none is running
    Chat(ChatOptions),
    /// Connect the agent to a messaging platform
    Setup(Box<SetupOptions>),
    /// Print a fresh link to the web chat
    Open,
    /// Show which model answers and why, and try it
    Model(ModelOptions),
    /// Show how the gateway and its accounts are doing
    Status(Output),
    /// List, read, search, export, rename and forget conversations
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Let people in who write to an account and are not listed, and put them out
    #[command(subcommand)]
    Pair(PairCommand),
    /// Show whom you know by name, what they are to you, and who has spent how much today
    People(Output),
    /// Show the record of who was let in and what was changed
    Audit(AuditOptions),
    /// List what was approved for good, and take it back
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List the platforms this program can connect to
    Platforms(Output),
    /// Make the running gateway read its configuration again
    Reload(Output),
    /// End the running gateway; what is unfinished goes on at the next start
    Stop,
    /// Print a completion script for your shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelOptions {
    /// Only show what was chosen; do not ask the model anything
    #[arg(long)]
    pub(crate) no_test: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List conversations, the most recent first, and what all of them used
    List {
        /// Only those on this account
        #[arg(long)]
        account: Option<String>,
        /// Earlier ones too, that their chats are not in any more
        #[arg(long)]
        past: bool,
        /// How many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        output: Output,
    },
    /// Print what was said in a conversation, and what it used
    Show {
        /// Its id or its title, or the beginning of one of them
        name: String,
        /// How many entries, counted from the end
        #[arg(long, default_value_t = 200)]
        limit: usize,
        #[command(flatten)]
        output: Output,
    },
    /// Search what was said anywhere
    Search {
        /// Words, or a part of a word
        query: String,
        /// Only on this account
        #[arg(long)]
        account: Option<String>,
        /// Only what was said so long ago at most, like 7d or 12h
        #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
        since: Option<Duration>,
        /// How many
        #[arg(long, default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        output: Output,
    },
    /// Write a whole conversation to a file or to standard output
    Export {
        /// Its id or its title, or the beginning of one of them
        name: String,
        /// How it is written
        #[arg(long, value_enum, default_value_t = Format::Jsonl)]
        format: Format,
        /// Into this file, which must not be there yet
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// With what was taken back by /undo
        #[arg(long)]
        taken_back: bool,
    },
    /// Give a conversation another title
    Rename {
        /// Its id or its title, or the beginning of one of them
        name: String,
        /// The title
        title: String,
        #[command(flatten)]
        output: Output,
    },
    /// Forget conversations in which nothing was said for long, for good
    Prune {
        /// For how long, like 90d or 1y
        #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
        older_than: Duration,
        /// Only say which those would be
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List what was approved for good, the newest first
    List(Output),
    /// Ask about something again that was approved for good
    Revoke {
        /// Its id, or the beginning of it
        id: String,
        #[command(flatten)]
        output: Output,
    },
}

/// How a conversation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line: the conversation, then its entries
    Jsonl,
    /// For people
    Markdown,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PairCommand {
    /// Show who asks to be let in and who was; never a code
    List {
        /// Only on this account
        account: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Let in who was given this code
    Approve {
        /// The account they wrote to
        account: String,
        /// The code they were given; case, spaces and dashes do not matter
        #[arg(required = true)]
        code: Vec<String>,
        /// In chats of several people, too
        #[arg(long)]
        everywhere: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Put somebody out who was let in
    Revoke {
        /// The account
        account: String,
        /// Their id, as `talaria pair list` shows it
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Make a code to hand on; whoever says it first is let in
    Issue {
        /// The account they will write to
        account: String,
        /// In chats of several people, too
        #[arg(long)]
        everywhere: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Forget who asks, and every code that is out
    Clear {
        /// The account
        account: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditOptions {
    /// Only what happened so long ago at most, like 7d or 12h
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    pub(crate) since: Option<Duration>,
    /// Check that no row was changed and none taken out before another; prints the last one's mark
    #[arg(long)]
    pub(crate) verify: bool,
    /// Check that the row is still there that had this mark, so that nothing was cut off behind it either
    #[arg(long, value_name = "MARK", requires = "verify")]
    pub(crate) seen: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting, its value and where it comes from
    Show(Output),
    /// Explain one setting, such as agent.turn_limit
    Explain {
        /// The setting
        key: String,
        #[command(flatten)]
        output: Output,
    },
    /// Check config.yaml, .env and the environment without starting anything
    Check(Output),
    /// Print the JSON Schema of config.yaml
    Schema,
}
