//! The command line, as people type it.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde::Deserialize;

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
                  home; of the gateway itself also 75, whoever started it is to start it again, and \
                  78, the configuration or the store is such that starting it again would not \
                  help.\n\nStart with `talaria`, then open the address it prints, or type \
                  `talaria chat` in another terminal."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway (the default)
    Run(RunOptions),
    /// Talk to the agent in this terminal; starts a gateway if none is running
    Chat(ChatOptions),
    /// Connect the agent to a messaging platform
    Setup(Box<SetupOptions>),
    /// Print a fresh link to the web chat
    Open,
    /// Show which model answers and why, and try it
    Model(ModelOptions),
    /// Show how the gateway and its accounts are doing
    Status(StatusOptions),
    /// Look for what commonly goes wrong, and mend what can be mended
    Doctor(DoctorOptions),
    /// Show what the gateway wrote about itself, also when none is running
    Logs(LogsOptions),
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
    /// Show how the accounts are doing and what this program can connect to; pause and resume accounts
    Platforms(PlatformsOptions),
    /// List your hooks, and try one
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Tell what became of a message, and why
    Why(WhyOptions),
    /// Print the running gateway's numbers, as `/metrics` has them for Prometheus
    Metrics,
    /// Take a backup, check one, go back to one
    #[command(subcommand)]
    Backup(BackupCommand),
    /// Make the running gateway read its configuration again
    Reload(Output),
    /// End the running gateway; what is unfinished goes on at the next start
    Stop,
    /// End the running gateway and start it again; what is unfinished goes on
    Restart,
    /// Let the operating system start the gateway and keep it running
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Print a completion script for your shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunOptions {
    /// Take the place of the gateway that runs on this home, once it has finished its turns
    #[arg(long)]
    pub(crate) replace: bool,
    /// Be the service of this name, which Windows has started
    #[arg(long, hide = true, value_name = "NAME", requires = "home")]
    pub(crate) as_service: Option<String>,
    /// The home folder of a service, which has no environment of its own
    #[arg(long, hide = true, value_name = "FOLDER", requires = "as_service")]
    pub(crate) home: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct StatusOptions {
    /// Show it again whenever it changes, until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LogsOptions {
    /// How many of the last lines
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100)]
    pub(crate) lines: usize,
    /// Go on with what is written meanwhile, until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only lines that are at least this serious
    #[arg(long, value_enum)]
    pub(crate) level: Option<Severity>,
    /// Only lines from this long ago on, like 30m or 2days
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) since: Option<Duration>,
    /// Print each line as it was written, a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How serious a line of the log is, the most serious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Severity {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Severity {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Write a systemd unit or a launchd property list, and start it
    Install(InstallOptions),
    /// End the service and remove what was written
    Uninstall(ServiceName),
    /// Show how the service is doing
    Status(ServiceName),
}

#[derive(Debug, Args)]
pub(crate) struct InstallOptions {
    #[command(flatten)]
    pub(crate) which: ServiceName,
    /// The user that a service of the machine runs as
    #[arg(long, value_name = "USER", requires = "system")]
    pub(crate) run_as: Option<String>,
    /// Only print what would be written
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ServiceName {
    /// What it is called, where there is more than one
    #[arg(long, default_value = "talaria")]
    pub(crate) name: String,
    /// A service of the whole machine instead of this user's
    #[arg(long)]
    pub(crate) system: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Mend what can be mended: modes of files, and what a process left behind
    #[arg(long)]
    pub(crate) fix: bool,
    /// Do not ask any platform who we are
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct PlatformsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<PlatformsCommand>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlatformsCommand {
    /// Disconnect an account until it is resumed, also after a restart
    Pause {
        /// The account, as `talaria status` shows it
        account: String,
        #[command(flatten)]
        output: Output,
    },
    /// Connect an account that was paused, or try one at once that waits or has failed
    Resume {
        /// The account
        account: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ModelOptions {
    /// Only show what was chosen; do not ask the model anything
    #[arg(long)]
    pub(crate) no_test: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct WhyOptions {
    /// The platform's id of a message, the id of an event, or ACCOUNT:CHAT for the newest there
    #[arg(value_parser = meant)]
    pub(crate) what: String,
    /// Print what was said, too
    #[arg(long)]
    pub(crate) text: bool,
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
        #[arg(long, value_name = "AGE", value_parser = age)]
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
        #[arg(long, value_name = "AGE", value_parser = age)]
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
pub(crate) enum HooksCommand {
    /// List the hooks, what they want to hear of, and which are not used
    List(Output),
    /// Let a hook hear one event as the gateway would, and tell what it answers and what that means
    Test {
        /// The hook
        name: String,
        /// The event, such as command:new
        event: String,
        /// What it is told of it, as JSON
        #[arg(default_value = "{}")]
        context: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Write everything the home keeps into one file, while the gateway runs or not
    Create {
        /// Into this file, which must not be there yet; into the home's backups folder if not given
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Check a backup to its last byte, the database in it included
    Verify {
        /// The backup
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Put a backup into the place of what the home keeps; what is replaced is kept beside it
    ///
    /// What was used, revoked or ended since it was taken stays so: pairing codes, approvals, people who were
    /// put out, web logins.
    Restore {
        /// The backup
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
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
    /// Forget who asks, and every code that is out; ends a lockout
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
    #[arg(long, value_name = "AGE", value_parser = age)]
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
    /// Show what is different from what the gateway runs with, and what applying it does
    Plan(Output),
    /// Make the gateway apply what is different; the same as `talaria reload`
    Apply(Output),
    /// Print the JSON Schema of config.yaml
    Schema,
}

/// A length of time, as people write it.
fn age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "not a length of time; write it like 30s, 5m, 2h or 7d".to_owned())
}

/// What somebody wants to know about. The number of an event may have the sign that it is printed with.
fn meant(text: &str) -> Result<String, Infallible> {
    let number = text.strip_prefix('#');
    let is_number =
        |rest: &&str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    Ok(number.filter(is_number).unwrap_or(text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        let parsed = Cli::try_parse_from(["talaria"].iter().chain(words));
        parsed.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_length_of_time_that_is_none_is_answered_with_what_one_looks_like() {
        for words in [
            &["logs", "--since", "soon"][..],
            &["audit", "--since", "30"],
            &["sessions", "search", "x", "--since", "5 fortnights"],
            &["sessions", "prune", "--older-than", ""],
        ] {
            let told = refused(words);
            assert!(told.contains("write it like 30s, 5m, 2h or 7d"), "{words:?}: {told}");
        }
        assert_eq!(refused(&["logs", "--since", "1h 30m"]), "");
    }

    #[test]
    fn an_event_is_meant_with_and_without_its_sign() {
        for (said, what) in
            [("#6", "6"), ("6", "6"), ("#general", "#general"), ("#", "#"), ("web:#6", "web:#6")]
        {
            assert_eq!(meant(said), Ok(what.to_owned()));
        }
    }
}
