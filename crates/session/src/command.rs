//! Commands: the one list, and how a message is recognised as one.

use talaria_model::{Inbound, InboundKind};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Lists the commands.
    Help,
    /// Begins a new conversation.
    New,
    /// Stops the running turn.
    Stop,
    /// Tells about the session.
    Status,
}

/// One line of the list of commands. Parsing, help and completion are made from it.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec {
    /// What it does.
    pub command: Command,
    /// The name after the slash.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// One line of help.
    pub help: &'static str,
}

/// Every command.
pub const COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        command: Command::Help,
        name: "help",
        aliases: &["commands"],
        help: "show the commands",
    },
    CommandSpec {
        command: Command::New,
        name: "new",
        aliases: &["reset"],
        help: "begin a new conversation; the old one stays searchable",
    },
    CommandSpec {
        command: Command::Stop,
        name: "stop",
        aliases: &["cancel"],
        help: "stop the answer that is being written",
    },
    CommandSpec {
        command: Command::Status,
        name: "status",
        aliases: &[],
        help: "show this conversation's id, turns and tokens",
    },
];

/// What a text is, as far as commands go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// A command.
    Command(Command),
    /// Looks like a command, but there is none of that name.
    Unknown(&'a str),
    /// Something said.
    Words,
}

/// Recognises a command. A file path is not one: a command's name has no second slash.
pub(crate) fn parse(text: &str) -> Parsed<'_> {
    let Some(rest) = text.trim_start().strip_prefix('/') else { return Parsed::Words };
    let word = rest.split(char::is_whitespace).next().unwrap_or_default();
    let name = word.split('@').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Parsed::Words;
    }
    if !name.chars().all(is_name) {
        return Parsed::Words;
    }
    let wanted = name.to_ascii_lowercase().replace('_', "-");
    COMMANDS
        .iter()
        .find(|spec| spec.name == wanted || spec.aliases.contains(&wanted.as_str()))
        .map_or(Parsed::Unknown(name), |spec| Parsed::Command(spec.command))
}

/// Whether an event must reach a session whatever it is doing and however much waits before it.
pub fn is_control(inbound: &Inbound) -> bool {
    match &inbound.kind {
        InboundKind::Stopped | InboundKind::Pressed(_) => true,
        InboundKind::Said(message) => {
            matches!(parse(&message.text), Parsed::Command(Command::Stop | Command::New))
        }
    }
}

/// The answer to `/help`.
pub(crate) fn help() -> String {
    let mut text = String::from("Commands:\n\n");
    for spec in COMMANDS {
        text.push_str(&format!("- `/{}` — {}\n", spec.name, spec.help));
    }
    text.push_str("\nAnything else goes to the agent.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_recognised_and_paths_are_not() {
        for (text, parsed) in [
            ("/stop", Parsed::Command(Command::Stop)),
            ("  /STOP now", Parsed::Command(Command::Stop)),
            ("/stop@talaria_bot", Parsed::Command(Command::Stop)),
            ("/reset", Parsed::Command(Command::New)),
            ("/nope", Parsed::Unknown("nope")),
            ("/usr/bin/env", Parsed::Words),
            ("/", Parsed::Words),
            ("/ stop", Parsed::Words),
            ("/2", Parsed::Words),
            ("please /stop", Parsed::Words),
            ("", Parsed::Words),
        ] {
            assert_eq!(parse(text), parsed, "{text:?}");
        }
    }

    #[test]
    fn help_names_every_command() {
        let help = help();
        for spec in COMMANDS {
            assert!(help.contains(&format!("/{}", spec.name)));
        }
    }
}
