//! Settings of conversations: when they begin anew, what people may do in them, what they cost.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talaria_model::SenderId;

use crate::units::Dollars;

/// How conversations are treated.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSettings {
    /// What `/stop` leaves behind.
    pub stop: AfterStop,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { stop: AfterStop::Wipe }
    }
}

/// What `/stop` leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AfterStop {
    /// Your next message begins a new conversation. The old one stays searchable.
    Wipe,
    /// The conversation goes on with your next message.
    Keep,
}

/// When a conversation begins anew by itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResetSettings {
    /// What ends a conversation.
    pub mode: ResetMode,

    /// The hour at which a day ends, in the time zone of `timezone`.
    #[schemars(range(min = 0, max = 23))]
    pub at_hour: u8,

    /// How many minutes nothing may be said.
    #[schemars(range(min = 1, max = 5_256_000))]
    pub idle_minutes: u32,

    /// Whether people are told, if something is lost by it.
    pub notify: bool,

    /// Platforms on which nobody is told, because nobody reads along there.
    pub notify_exclude_platforms: Vec<String>,
}

impl Default for ResetSettings {
    fn default() -> Self {
        Self {
            mode: ResetMode::Both,
            at_hour: 4,
            idle_minutes: 1440,
            notify: true,
            notify_exclude_platforms: QUIET_PLATFORMS.map(str::to_owned).to_vec(),
        }
    }
}

/// Platforms that programs talk to.
pub(crate) const QUIET_PLATFORMS: [&str; 2] = ["api_server", "webhook"];

impl ResetSettings {
    /// The same with what an account or a kind of chat says differently.
    pub fn with(mut self, other: &ResetOverride) -> Self {
        self.mode = other.mode.unwrap_or(self.mode);
        self.at_hour = other.at_hour.unwrap_or(self.at_hour);
        self.idle_minutes = other.idle_minutes.unwrap_or(self.idle_minutes);
        self.notify = other.notify.unwrap_or(self.notify);
        self
    }
}

/// What ends a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResetMode {
    /// Whichever of the other two comes first.
    Both,
    /// That nothing was said for long.
    Idle,
    /// That a day is over.
    Daily,
    /// Nothing but `/new`.
    None,
}

/// What differs from the general `session_reset`. What is not set is as there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResetOverride {
    /// What ends a conversation.
    pub mode: Option<ResetMode>,

    /// The hour at which a day ends.
    #[schemars(range(min = 0, max = 23))]
    pub at_hour: Option<u8>,

    /// How many minutes nothing may be said.
    #[schemars(range(min = 1, max = 5_256_000))]
    pub idle_minutes: Option<u32>,

    /// Whether people are told, if something is lost by it.
    pub notify: Option<bool>,
}

/// Who may give which command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandSettings {
    /// Who may give every command.
    pub admins: BTreeSet<SenderId>,
    /// What the others may give as soon as somebody is named there, without slashes.
    pub allowed: BTreeSet<String>,
    /// Who may give every command as long as nobody is.
    pub unnamed: AdminsUnlessNamed,
}

/// Who is an administrator as long as nobody is named as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdminsUnlessNamed {
    /// Whoever is on a list or has a role that the account names. Not who was let in by pairing, or because
    /// everybody is.
    #[default]
    Listed,
    /// Whoever is heard: who was paired and, where everybody is heard, everybody. They may restart the
    /// gateway, approve what others asked for, let others in and send messages to every destination, and their
    /// budget is `budgets.person`.
    Everyone,
}

/// What is done when a conversation becomes too long for the model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompressionSettings {
    /// Whether a summary takes the place of what is old without anybody asking. `/compress` works in any
    /// case. What is summarised stays searchable.
    pub enabled: bool,

    /// How full the model's window may be before that, as a part of it.
    #[schemars(range(min = 0.1, max = 0.8))]
    pub threshold: f64,

    /// How many entries at the beginning of a conversation stay as they are.
    #[schemars(range(min = 0, max = 50))]
    pub protect_first_n: u32,

    /// How many entries at its end stay as they are, as far as they fit.
    #[schemars(range(min = 0, max = 100))]
    pub protect_last_n: u32,
}

impl Default for CompressionSettings {
    fn default() -> Self {
        Self { enabled: true, threshold: 0.5, protect_first_n: 3, protect_last_n: 20 }
    }
}

/// What the model is told about people.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrivacySettings {
    /// Whether the model sees a digest instead of the ids of people and chats, on platforms where it
    /// does not need the real ones.
    pub redact_pii: bool,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceSettings {
    /// What it reads.
    pub input: Dollars,

    /// What it writes, thoughts included.
    pub output: Dollars,

    /// What it reads from the prompt cache; as `input` when not set.
    #[serde(default)]
    pub cache_read: Option<Dollars>,

    /// What is written into the prompt cache; as `input` when not set.
    #[serde(default)]
    pub cache_write: Option<Dollars>,
}

/// A command of your own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum QuickSettings {
    /// Stands for another text.
    Alias {
        /// The text that it stands for, with what follows the name behind it.
        #[schemars(length(min = 1))]
        target: String,
        /// One line for `/help`.
        #[serde(default)]
        help: Option<String>,
        /// Who may give it.
        #[serde(default)]
        who: QuickWho,
    },
    /// Runs a program and says what it printed.
    Exec {
        /// The program and its arguments, as you would type them. Nothing that people say is added.
        #[schemars(length(min = 1))]
        command: String,
        /// Whether the command is handed to `/bin/sh`. Without it, quotes keep words together and
        /// nothing else has a meaning.
        #[serde(default)]
        shell: bool,
        /// One line for `/help`.
        #[serde(default)]
        help: Option<String>,
        /// Who may give it.
        #[serde(default = "admins")]
        who: QuickWho,
    },
}

/// Who may give a command of your own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuickWho {
    /// Everybody who is heard.
    #[default]
    Anyone,
    /// Administrators.
    Admin,
}

fn admins() -> QuickWho {
    QuickWho::Admin
}

/// The words of a command line: quotes keep words together, a backslash takes the next character as it
/// is. None when a quote is not closed or there is no word.
pub fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(characters.next()?),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (quote.is_none() && !words.is_empty()).then_some(words)
}

/// What only a shell understands, and what it understands even inside of double quotes.
const FOR_SHELLS: &str = "|&;<>()$`*?~#";
const FOR_SHELLS_IN_QUOTES: &str = "$`";

/// Whether a command line holds something that only a shell understands.
pub(crate) fn needs_shell(command: &str) -> bool {
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None | Some('"'), '\\') => drop(characters.next()),
            (None, c) if FOR_SHELLS.contains(c) => return true,
            (Some('"'), c) if FOR_SHELLS_IN_QUOTES.contains(c) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_shell_understands_is_noticed_wherever_it_is_meant() {
        for (command, expected) in [
            ("df -h /", false),
            ("grep 'a|b' notes", false),
            ("echo 'a' | wc", true),
            ("echo \"$HOME\"", true),
            ("echo '$HOME' \\*", false),
            ("ls *.txt", true),
        ] {
            assert_eq!(needs_shell(command), expected, "{command:?}");
        }
    }

    #[test]
    fn a_command_line_is_divided_as_it_is_typed() {
        for (command, expected) in [
            ("df -h /", Some(vec!["df", "-h", "/"])),
            ("  uptime\t", Some(vec!["uptime"])),
            (
                "echo 'two words' \"and \\\"two\\\"\"",
                Some(vec!["echo", "two words", "and \"two\""]),
            ),
            ("echo 'a\\b' a\\ b x''", Some(vec!["echo", "a\\b", "a b", "x"])),
            ("echo ''", Some(vec!["echo", ""])),
            ("", None),
            ("echo 'open", None),
            ("echo \\", None),
        ] {
            let expected = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(words(command), expected, "{command:?}");
        }
    }
}
