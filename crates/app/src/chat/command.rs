//! What a typed line asks for: the few commands that only a terminal can carry out, or something to
//! say. Every other command is the gateway's.

use std::path::PathBuf;

use talaria_model::Choice;
use talaria_session::{COMMANDS, Command, CommandSpec, Typed, Who, divide};

/// A command that the terminal carries out itself.
pub(super) struct LocalCommand {
    /// The name after the slash.
    pub(super) name: &'static str,
    /// What comes after the name.
    pub(super) arguments: &'static str,
    /// One line of help.
    pub(super) help: &'static str,
}

/// Every command of the terminal.
pub(super) const LOCAL: &[LocalCommand] = &[
    LocalCommand {
        name: "attach",
        arguments: "FILE",
        help: "send a file along with your next message",
    },
    LocalCommand { name: "save", arguments: "NUMBER [PATH]", help: "save a file you were sent" },
    LocalCommand { name: "conversations", arguments: "", help: "list your conversations" },
    LocalCommand { name: "quit", arguments: "", help: "leave; so does Ctrl-D" },
];

/// What a typed line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// Nothing was typed.
    Nothing,
    /// To be said as it stands.
    Say(String),
    /// Send this file along with the next message.
    Attach(PathBuf),
    /// Save the file with this number, under its own name or this path.
    Save {
        /// Counts from one.
        number: usize,
        /// A file or a folder.
        path: Option<PathBuf>,
    },
    /// List the conversations.
    Conversations,
    /// Leave.
    Quit,
    /// It is one of ours, but something is missing. The sentence is for the person.
    Incomplete(String),
}

/// Understands a typed line.
pub(super) fn understood(line: &str) -> Input {
    let text = line.trim();
    if text.is_empty() {
        return Input::Nothing;
    }
    let (word, rest) = match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    };
    match word {
        "/quit" | "/exit" => Input::Quit,
        "/conversations" => Input::Conversations,
        "/attach" if rest.is_empty() => usage("attach"),
        "/attach" => Input::Attach(path(rest)),
        "/save" => saved(rest),
        _ => Input::Say(line.trim_end().to_owned()),
    }
}

fn saved(rest: &str) -> Input {
    let (number, to) = match rest.split_once(char::is_whitespace) {
        Some((number, to)) => (number, to.trim()),
        None => (rest, ""),
    };
    match number.parse() {
        Ok(number) if number > 0 => {
            Input::Save { number, path: (!to.is_empty()).then(|| path(to)) }
        }
        _ => usage("save"),
    }
}

fn usage(name: &str) -> Input {
    let known = LOCAL.iter().find(|command| command.name == name);
    let arguments = known.map_or("", |command| command.arguments);
    Input::Incomplete(format!("usage: /{name} {arguments}"))
}

/// A path as people type it: quoted or not, and perhaps from their own folder.
fn path(text: &str) -> PathBuf {
    let quoted = |mark| text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark));
    let text = quoted('"').or_else(|| quoted('\'')).unwrap_or(text);
    match (text.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(text),
    }
}

/// The shortest beginning of a name that stands for it.
const SHORTEST_BEGINNING: usize = 2;

/// Whether a line is a command of the gateway, which answers no question.
pub(super) fn is_command(line: &str) -> bool {
    let Some(Typed { name: Some(name), .. }) = divide(line) else { return false };
    let name = name.replace('_', "-");
    // The gateway takes the beginning of a name for the name, but for what only administrators may do.
    let is_begun = |command: &&CommandSpec| {
        name.len() >= SHORTEST_BEGINNING && command.is_listed() && command.who == Who::Anyone
    };
    COMMANDS.iter().any(|command| command.names().any(|known| known == name))
        || COMMANDS
            .iter()
            .filter(is_begun)
            .any(|command| command.names().any(|known| known.starts_with(&name)))
}

/// Why the gateway will not answer a line, if it is one that it never answers.
pub(super) fn unanswered(line: &str) -> Option<String> {
    let Typed { name: Some(name), .. } = divide(line)? else { return None };
    let command = COMMANDS.iter().find(|command| command.names().any(|known| known == name))?;
    let is_greeting = command.command == Command::Start;
    is_greeting.then(|| format!("/{} is {}: nothing is answered.", command.name, command.help))
}

/// The answer that is meant by a number or by its words.
pub(super) fn chosen<'a>(choices: &'a [Choice], text: &str) -> Option<&'a Choice> {
    let text = text.trim();
    let number = text.trim_end_matches(['.', ')']).parse::<usize>().ok();
    let by_number = number.and_then(|number| choices.get(number.checked_sub(1)?));
    by_number.or_else(|| {
        choices.iter().find(|choice| choice.label.trim().to_lowercase() == text.to_lowercase())
    })
}

/// Every command that can be typed: its name and what it does.
pub(super) fn every_command() -> impl Iterator<Item = (&'static str, &'static str)> {
    let listed = COMMANDS.iter().filter(|command| command.is_listed());
    let gateway = listed.map(|command| (command.name, command.help));
    let local = LOCAL.iter().map(|command| (command.name, command.help));
    gateway.chain(local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_model::ChoiceId;

    #[test]
    fn a_line_is_a_command_of_ours_or_something_to_say() {
        let say = |text: &str| Input::Say(text.into());
        let save = |number, path: Option<&str>| Input::Save { number, path: path.map(Into::into) };
        for (line, expected) in [
            ("", Input::Nothing),
            ("  \n ", Input::Nothing),
            ("hello", say("hello")),
            ("  indented\n    code  \n", say("  indented\n    code")),
            ("/help", say("/help")),
            ("/stop", say("/stop")),
            ("/etc/hosts is odd", say("/etc/hosts is odd")),
            ("please /quit", say("please /quit")),
            ("/quit", Input::Quit),
            (" /exit ", Input::Quit),
            ("/conversations", Input::Conversations),
            ("/attach notes.txt", Input::Attach("notes.txt".into())),
            ("/attach my notes.txt ", Input::Attach("my notes.txt".into())),
            ("/attach \"my notes.txt\"", Input::Attach("my notes.txt".into())),
            ("/attach 'a'", Input::Attach("a".into())),
            ("/attach", Input::Incomplete("usage: /attach FILE".into())),
            ("/save 2", save(2, None)),
            ("/save 2 to here.txt", save(2, Some("to here.txt"))),
            ("/save", Input::Incomplete("usage: /save NUMBER [PATH]".into())),
            ("/save 0", Input::Incomplete("usage: /save NUMBER [PATH]".into())),
            ("/save it", Input::Incomplete("usage: /save NUMBER [PATH]".into())),
        ] {
            assert_eq!(understood(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_path_may_begin_at_home() {
        if let Some(home) = std::env::home_dir() {
            assert_eq!(understood("/attach ~/a"), Input::Attach(home.join("a")));
        }
    }

    #[test]
    fn no_command_of_the_terminal_hides_one_of_the_gateway() {
        for command in COMMANDS {
            let names = [command.name].into_iter().chain(command.aliases.iter().copied());
            for name in names {
                assert_eq!(understood(&format!("/{name}")), Input::Say(format!("/{name}")));
            }
        }
    }

    #[test]
    fn a_choice_is_made_by_number_or_by_its_words() {
        let choices = ["Yes", "No", "Ask me later"]
            .map(|label| Choice { id: ChoiceId::new(label).unwrap(), label: label.into() });
        for (text, expected) in [
            ("1", Some("Yes")),
            (" 2. ", Some("No")),
            ("3)", Some("Ask me later")),
            ("yes", Some("Yes")),
            ("ask me LATER ", Some("Ask me later")),
            ("0", None),
            ("4", None),
            ("perhaps", None),
            ("", None),
        ] {
            let found = chosen(&choices, text).map(|choice| choice.label.as_str());
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn only_what_the_gateway_carries_out_is_a_command() {
        for (line, expected) in [
            ("/stop", true),
            ("/stop now ", true),
            ("/STOP", true),
            ("/stop@talaria", true),
            ("/sto", true),
            ("/set_home", true),
            ("/resta", false),
            (" /stop now", false),
            ("/stopped", false),
            ("/etc/hosts", false),
            ("stop", false),
            ("", false),
        ] {
            assert_eq!(is_command(line), expected, "{line:?}");
        }
    }
}
