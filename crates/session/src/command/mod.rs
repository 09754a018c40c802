//! Commands: what each one is, and how a message is recognised as one.

mod list;
mod near;

use talaria_model::{Addressed, Inbound, InboundKind, Message};

use crate::access::Authority;
pub use list::COMMANDS;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Answers the open question with yes.
    Approve,
    /// Takes a turn beside the conversation.
    Background,
    /// Goes on with a copy of the conversation.
    Branch,
    /// Puts a summary in place of what is old.
    Compress,
    /// Answers the open question with no.
    Deny,
    /// Chooses whether an answer says what it cost.
    Footer,
    /// Lists the commands.
    Help,
    /// Shows what was said last.
    History,
    /// Shows or chooses the model.
    Model,
    /// Begins a new conversation.
    New,
    /// Says how somebody gets in.
    Pair,
    /// Tells how it stands with the platforms.
    Platforms,
    /// Says something for a turn of its own, after the one that runs.
    Queue,
    /// Chooses how hard the model thinks.
    Reasoning,
    /// Reads the configuration again.
    Reload,
    /// Restarts the gateway.
    Restart,
    /// Goes back to an earlier conversation.
    Resume,
    /// Has the last message answered again.
    Retry,
    /// Finds what was said.
    Search,
    /// Lists the earlier conversations.
    Sessions,
    /// Makes this chat the home of its account.
    SetHome,
    /// Greets; platforms send it by themselves.
    Start,
    /// Tells about the session.
    Status,
    /// Tells the running turn something.
    Steer,
    /// Stops the running turn.
    Stop,
    /// Shows or sets the title.
    Title,
    /// Takes back the last turns.
    Undo,
    /// Tells what was used.
    Usage,
    /// Chooses how much is told of what tools do.
    Verbose,
    /// Chooses which answers are also spoken.
    Voice,
    /// Tells who is asking, and what they may do.
    Whoami,
}

/// One line of the list of commands. Parsing, help, menus and documentation are made from it.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec {
    /// What it does.
    pub command: Command,
    /// The name after the slash.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What comes after the name, as people are shown it.
    pub arguments: &'static str,
    /// Where it stands in the list.
    pub category: Category,
    /// Who may give it.
    pub who: Who,
    /// What becomes of it while a turn runs.
    pub running: WhileRunning,
    /// One line of help.
    pub help: &'static str,
    /// Whether people are shown it.
    pub shown: Shown,
}

/// Where a command stands in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// The conversation as a whole.
    Conversation,
    /// The answer that is being written.
    Answer,
    /// What was said earlier.
    Past,
    /// How answers are made.
    Settings,
    /// The gateway itself.
    Gateway,
}

impl Category {
    /// All of them, in the order in which people are shown them.
    pub const ALL: [Self; 5] =
        [Self::Conversation, Self::Answer, Self::Past, Self::Settings, Self::Gateway];

    /// As people are shown it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Conversation => "This conversation",
            Self::Answer => "The answer in hand",
            Self::Past => "Looking back",
            Self::Settings => "How I answer",
            Self::Gateway => "The gateway",
        }
    }
}

/// Who may give a command. `Tiers` decides who is who.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Whoever is heard.
    Anyone,
    /// Administrators.
    Admin,
}

/// What becomes of a command while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileRunning {
    /// It reaches the session ahead of everything that waits.
    Jumps,
    /// It is obeyed when its place in the order of what was said comes.
    Passes,
    /// It is refused, because it would change what the turn works with.
    Refused,
}

/// Whether people are shown a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// In help, menus and documentation.
    Listed,
    /// Nowhere.
    Hidden,
}

/// A command from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuickCommand {
    /// The name after the slash, in lower case. The name of a built-in command never reaches it.
    pub name: String,
    /// One line of help.
    pub help: String,
    /// Who may give it.
    pub who: Who,
    /// What it does.
    pub does: Quick,
}

impl QuickCommand {
    /// Whether typing its name leads to it, and not to a built-in command.
    pub fn is_reached(&self) -> bool {
        let name = self.name.replace('_', "-");
        !COMMANDS.iter().any(|spec| spec.names().any(|built_in| built_in == name))
    }
}

/// What a command from the configuration does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quick {
    /// Stands for this text, with what follows the name behind it.
    Alias(String),
    /// Runs a program that the gateway knows by the command's name.
    Run,
}

/// How a text is divided that begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The name in lower case, without what follows an `@`. None for a path: a name has no second
    /// slash.
    pub name: Option<String>,
    /// What follows, with the dashes that keyboards make of `--` put back.
    pub arguments: String,
}

/// Divides a text that begins with a slash.
pub fn divide(text: &str) -> Option<Typed> {
    let rest = text.strip_prefix('/')?;
    let (word, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = word.split('@').next().unwrap_or_default();
    if name.contains('/') {
        return Some(Typed { name: None, arguments: String::new() });
    }
    let arguments = arguments.trim().replace("——", "--").replace('—', "--").replace('–', "-");
    Some(Typed { name: Some(name.to_lowercase()), arguments })
}

/// What a text is, as far as commands go.
#[derive(Debug, Clone)]
pub(crate) enum Parsed<'a> {
    /// A command.
    Command {
        /// Which.
        spec: &'static CommandSpec,
        /// What follows its name.
        arguments: String,
    },
    /// A command from the configuration.
    Quick {
        /// Which.
        quick: &'a QuickCommand,
        /// What follows its name.
        arguments: String,
    },
    /// Looks like a command, but there is none of that name.
    Unknown {
        /// The name.
        name: String,
        /// Names that may have been meant.
        near: Vec<String>,
    },
    /// Something said.
    Words,
}

/// The shortest beginning that stands for a whole name.
const SHORTEST_PREFIX: usize = 2;

/// Recognises a command by its name, an alias, or the beginning of exactly one name.
pub(crate) fn parse<'a>(text: &str, quick: &'a [QuickCommand]) -> Parsed<'a> {
    let Some(Typed { name: Some(name), arguments }) = divide(text) else { return Parsed::Words };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_name) {
        return Parsed::Words;
    }
    let wanted = name.replace('_', "-");
    if let Some(spec) = COMMANDS.iter().find(|spec| spec.names().any(|name| name == wanted)) {
        return Parsed::Command { spec, arguments };
    }
    if let Some(quick) = quick.iter().find(|quick| quick.name.replace('_', "-") == wanted) {
        return Parsed::Quick { quick, arguments };
    }
    // What only administrators may do is done by its whole name.
    let open = || COMMANDS.iter().filter(|spec| spec.who == Who::Anyone && spec.is_listed());
    let begins = |spec: &&CommandSpec| spec.names().any(|name| name.starts_with(&wanted));
    let begun: Vec<&'static CommandSpec> = match wanted.len() >= SHORTEST_PREFIX {
        true => open().filter(begins).collect(),
        false => Vec::new(),
    };
    match begun.as_slice() {
        [spec] => Parsed::Command { spec, arguments },
        [] => {
            let mut names: Vec<&str> = open().flat_map(CommandSpec::names).collect();
            names.extend(quick.iter().map(|quick| quick.name.as_str()));
            Parsed::Unknown { near: near::nearest(&wanted, &names), name }
        }
        several => {
            let near = several.iter().map(|spec| spec.name.to_owned()).collect();
            Parsed::Unknown { name, near }
        }
    }
}

/// The same of a message. What somebody passed on are the words of another: they command nobody.
pub(crate) fn parsed<'a>(message: &Message, quick: &'a [QuickCommand]) -> Parsed<'a> {
    match &message.forwarded {
        Some(_) => Parsed::Words,
        None => parse(&message.text, quick),
    }
}

/// How many aliases may stand for one another.
pub(crate) const DEEPEST_ALIAS: usize = 4;

impl Command {
    /// Whether it must not wait for anybody's consent: it stops something, or answers a question.
    pub fn acts_at_once(self) -> bool {
        matches!(self, Self::Approve | Self::Deny | Self::Stop)
    }
}

/// What a message is, as far as commands go, to whoever decides about commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// Something said.
    Words,
    /// A command of this name that whoever gives it may not give.
    Refused(String),
    /// A command.
    Command(Given),
}

/// A command that somebody gives who may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Which it is; none for one from the configuration, and for one that does not exist.
    pub command: Option<Command>,
    /// What it is called in the list, whatever alias or beginning was typed; as typed where there is none
    /// of that name.
    pub name: String,
    /// The name as it was typed.
    pub typed: String,
    /// What stands behind it.
    pub arguments: String,
}

/// What a message means when somebody says it. What only stands for another command is that one. A name
/// that does not exist is a command that anybody may give, as far as they may give any.
pub fn meant(message: &Message, quick: &[QuickCommand], by: &Authority) -> Meant {
    let Some(Typed { name: Some(typed), .. }) = divide(&message.text) else { return Meant::Words };
    let mut message = message.clone();
    for _ in 0..=DEEPEST_ALIAS {
        let (command, name, arguments) = match parsed(&message, quick) {
            Parsed::Words => return Meant::Words,
            Parsed::Command { spec, .. } if !by.may_give(spec.name, spec.who) => {
                return Meant::Refused(spec.name.to_owned());
            }
            Parsed::Command { spec, arguments } => {
                (Some(spec.command), spec.name.to_owned(), arguments)
            }
            Parsed::Quick { quick, .. } if !by.may_run(quick) => {
                return Meant::Refused(quick.name.clone());
            }
            Parsed::Quick {
                quick: QuickCommand { does: Quick::Alias(stands_for), .. },
                arguments,
            } => {
                message.text = format!("{stands_for} {arguments}").trim_end().to_owned();
                continue;
            }
            Parsed::Quick { quick, arguments } => (None, quick.name.clone(), arguments),
            Parsed::Unknown { name, .. } if !by.may_give(&name, Who::Anyone) => {
                return Meant::Refused(name);
            }
            Parsed::Unknown { name, .. } => {
                let arguments = divide(&message.text).map(|typed| typed.arguments);
                (None, name, arguments.unwrap_or_default())
            }
        };
        return Meant::Command(Given { command, name, typed, arguments });
    }
    Meant::Words
}

/// Whether a message gives a command that must not wait for anybody's consent.
pub fn acts_at_once(message: &Message) -> bool {
    given_whole(message).is_some_and(Command::acts_at_once)
}

/// Whether an event is a command to us that answers the open question, whosever that is.
pub fn is_answer(inbound: &Inbound) -> bool {
    match &inbound.kind {
        InboundKind::Said(message) if message.addressed == Addressed::ToUs => {
            matches!(given_whole(message), Some(Command::Approve | Command::Deny))
        }
        _ => false,
    }
}

/// The built-in command that a message gives by its whole name. Cut short, it may be the name of a command that
/// somebody made.
fn given_whole(message: &Message) -> Option<Command> {
    let Parsed::Command { spec, .. } = parsed(message, &[]) else { return None };
    let typed = divide(&message.text)?.name?;
    spec.names().any(|name| name == typed).then_some(spec.command)
}

/// Whether an event must reach a session whatever it is doing and however much waits before it.
pub fn is_control(inbound: &Inbound) -> bool {
    match &inbound.kind {
        InboundKind::Stopped | InboundKind::Pressed(_) => true,
        InboundKind::Edited(_) => false,
        InboundKind::Said(message) => {
            message.addressed == Addressed::ToUs
                && matches!(
                    parsed(message, &[]),
                    Parsed::Command { spec, .. } if spec.running == WhileRunning::Jumps
                )
        }
    }
}

impl CommandSpec {
    /// Its name and its other names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether people are shown it.
    pub fn is_listed(&self) -> bool {
        self.shown == Shown::Listed
    }

    /// As people type it, with what it takes.
    pub fn usage(&self) -> String {
        match self.arguments {
            "" => format!("/{}", self.name),
            arguments => format!("/{} {arguments}", self.name),
        }
    }
}

/// The answer to `/help`: what the one who asks may do.
pub(crate) fn help(by: &Authority, quick: &[QuickCommand]) -> String {
    let mut text = String::new();
    for category in Category::ALL {
        let mut title = Some(category.title());
        for spec in COMMANDS.iter().filter(|spec| spec.category == category && spec.is_listed()) {
            if !by.may_give(spec.name, spec.who) {
                continue;
            }
            if let Some(title) = title.take() {
                text.push_str(&format!("**{title}**\n\n"));
            }
            text.push_str(&format!("- `{}` — {}\n", spec.usage(), spec.help));
        }
        if title.is_none() {
            text.push('\n');
        }
    }
    let is_theirs = |quick: &&QuickCommand| quick.is_reached() && by.may_run(quick);
    let quick: Vec<_> = quick.iter().filter(is_theirs).collect();
    if !quick.is_empty() {
        text.push_str("**Your own**\n\n");
        for quick in quick {
            text.push_str(&format!("- `/{}` — {}\n", quick.name, quick.help));
        }
        text.push('\n');
    }
    text.push_str("Anything else goes to the agent.");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use talaria_model::SenderId;

    use super::*;
    use crate::access::{Footing, Tiers};

    #[test]
    fn whoever_decides_about_commands_is_told_the_name_in_the_list() {
        let alias = |name: &str, stands_for: &str| QuickCommand {
            name: name.into(),
            help: String::new(),
            who: Who::Anyone,
            does: Quick::Alias(stands_for.into()),
        };
        let quick = [alias("anew", "/reset"), alias("loop", "/loop"), alias("short", "be short")];
        let listed = Authority { footing: Footing::Listed, ..Authority::none() };
        let given = |text: &str| {
            let message = Message { text: text.into(), ..Message::default() };
            match meant(&message, &quick, &listed) {
                Meant::Words => None,
                Meant::Refused(name) => Some(format!("not {name}")),
                Meant::Command(given) => Some(format!("{}: {}", given.name, given.arguments)),
            }
        };
        for (text, name) in [
            ("/new title", Some("new: title")),
            ("/RESET@bot title", Some("new: title")),
            ("/anew title", Some("new: title")),
            ("/compr", Some("compress: ")),
            ("/weather in Rome", Some("weather: in Rome")),
            ("/short please", None),
            ("/loop", None),
            ("/etc/passwd", None),
            ("new", None),
        ] {
            assert_eq!(given(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn nobody_is_asked_about_what_somebody_may_not_give() {
        let quick = |name: &str, who, does| QuickCommand {
            name: name.into(),
            help: String::new(),
            who,
            does,
        };
        let quick = [
            quick("deploy", Who::Admin, Quick::Run),
            quick("disk", Who::Anyone, Quick::Run),
            quick("again", Who::Anyone, Quick::Alias("/restart".into())),
            quick("quietly", Who::Admin, Quick::Alias("/status".into())),
        ];
        let tiers = Arc::new(Tiers {
            admins: BTreeSet::from([SenderId::literal("alice")]),
            others: BTreeSet::from(["status".to_owned(), "weather".to_owned()]),
            ..Tiers::default()
        });
        let by = |footing| Authority { footing, tiers: tiers.clone(), ..Authority::none() };
        let may = |text: &str, footing| {
            let message = Message { text: text.into(), ..Message::default() };
            match meant(&message, &quick, &by(footing)) {
                Meant::Words => panic!("{text} is a command"),
                Meant::Refused(_) => false,
                Meant::Command(_) => true,
            }
        };
        for (text, others) in [
            ("/restart", false),
            ("/again", false),
            ("/new", false),
            ("/status", true),
            ("/quietly", false),
            ("/stop", true),
            ("/deploy", false),
            ("/disk", true),
            ("/weather in Rome", true),
            ("/ship it", false),
        ] {
            assert_eq!(may(text, Footing::Listed), others, "{text}");
            assert!(may(text, Footing::Admin), "{text}");
            assert!(!may(text, Footing::Stranger), "{text}");
        }
    }

    #[test]
    fn what_stops_something_or_answers_a_question_waits_for_nobody() {
        let at_once =
            |text: &str| acts_at_once(&Message { text: text.into(), ..Message::default() });
        for text in ["/stop", "/STOP@bot", "/approve", "/deny no"] {
            assert!(at_once(text), "{text}");
        }
        for text in ["/new", "/status", "stop", "/nothing", "", "/sto", "/appr"] {
            assert!(!at_once(text), "{text}");
        }
    }

    #[test]
    fn only_a_whole_command_to_us_answers_what_somebody_else_was_asked() {
        let said = |text: &str| crate::tests::said("alice", text);
        for text in ["/approve", "/APPROVE@bot always", "/deny no"] {
            assert!(is_answer(&said(text)), "{text}");
        }
        for text in ["yes", "👍", "approve", "/appr", "/stop", " /approve", "/approve/it", ""] {
            assert!(!is_answer(&said(text)), "{text}");
        }
        let message = Message { text: "/approve".into(), ..Message::default() };
        let to_others = Message { addressed: Addressed::ToOthers, ..message.clone() };
        let forwarded = Message { forwarded: Some(talaria_model::Author::Us), ..message.clone() };
        for kind in [
            InboundKind::Said(to_others),
            InboundKind::Said(forwarded),
            InboundKind::Edited(message),
            InboundKind::Stopped,
        ] {
            assert!(!is_answer(&Inbound { kind, ..said("") }));
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let quick = [
            QuickCommand {
                name: "deploy".into(),
                help: "put it out".into(),
                who: Who::Admin,
                does: Quick::Run,
            },
            QuickCommand {
                name: "new".into(),
                help: "never reached".into(),
                who: Who::Anyone,
                does: Quick::Run,
            },
        ];
        let parsed = match parse(text, &quick) {
            Parsed::Command { spec, arguments } => format!("{} {arguments}", spec.name),
            Parsed::Quick { quick, arguments } => format!("quick {} {arguments}", quick.name),
            Parsed::Unknown { name, near } => format!("unknown {name}: {}", near.join(" ")),
            Parsed::Words => "words".to_owned(),
        };
        assert_eq!(parsed.trim_end(), expected, "{text:?}");
    }

    #[test]
    fn a_text_with_a_slash_is_divided_as_people_expect() {
        let typed = |name: Option<&str>, arguments: &str| {
            Some(Typed { name: name.map(str::to_owned), arguments: arguments.to_owned() })
        };
        assert_eq!(divide("/New@MyBot arg"), typed(Some("new"), "arg"));
        assert_eq!(divide("/usr/bin/x"), typed(None, ""));
        assert_eq!(divide("/ new"), typed(Some(""), "new"));
        assert_eq!(divide(" /new"), None);
        assert_eq!(divide("/queue a—b –c"), typed(Some("queue"), "a--b -c"));
        assert_eq!(divide("/queue a——b"), typed(Some("queue"), "a--b"));
        assert_eq!(divide("hello"), None);
        assert_eq!(divide(""), None);
    }

    #[test]
    fn commands_are_recognised_and_paths_are_not() {
        for (text, expected) in [
            ("/stop", "stop"),
            ("/STOP now", "stop now"),
            ("/stop@talaria_bot", "stop"),
            ("/reset", "new"),
            ("/set_home", "sethome"),
            ("/usr/bin/env", "words"),
            ("/", "words"),
            ("/ stop", "words"),
            (" /stop", "words"),
            ("/2", "words"),
            ("/:)", "words"),
            ("please /stop", "words"),
            ("", "words"),
            ("/deploy it", "quick deploy it"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn nobody_commands_in_the_words_of_another() {
        for forwarded in [Some(talaria_model::Author::Us), Some(talaria_model::Author::Unknown)] {
            let message = Message { text: "/stop".into(), forwarded, ..Message::default() };
            assert!(matches!(parsed(&message, &[]), Parsed::Words));
            let said = crate::tests::said("alice", "");
            assert!(!is_control(&Inbound { kind: InboundKind::Said(message), ..said }));
        }
        assert!(is_control(&crate::tests::said("alice", "/stop")));
    }

    #[test]
    fn the_beginning_of_one_name_is_enough_unless_only_administrators_may() {
        check("/he", "help");
        check("/comp the plan", "compress the plan");
        check("/who", "whoami");
        check("/st", "unknown st: status steer stop");
        check("/h", "unknown h:");
        check("/resta", "unknown resta: reset");
        check("/restart", "restart");
        check("/relo", "unknown relo:");
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        check("/hlep", "unknown hlep: help");
        check("/staus", "unknown staus: status");
        check("/depoly", "unknown depoly: deploy");
        check("/xyzzy", "unknown xyzzy:");
    }

    #[test]
    fn every_name_is_used_once_and_the_list_is_in_order() {
        let names: Vec<_> = COMMANDS.iter().flat_map(CommandSpec::names).collect();
        let once: BTreeSet<_> = names.iter().collect();
        assert_eq!(once.len(), names.len());
        assert!(COMMANDS.is_sorted_by_key(|spec| spec.name));
        for spec in COMMANDS {
            assert!(spec.name.chars().all(|c| c.is_ascii_lowercase()), "{}", spec.name);
            assert!(!spec.help.is_empty() && !spec.help.ends_with('.'), "{}", spec.name);
        }
    }

    #[test]
    fn help_names_what_the_one_who_asks_may_do() {
        let others = BTreeSet::from(["status".to_owned()]);
        let tiers = Arc::new(Tiers {
            admins: BTreeSet::from([SenderId::literal("alice")]),
            others,
            ..Tiers::default()
        });
        let by = |footing| Authority { footing, tiers: tiers.clone(), ..Authority::none() };
        let all = help(&by(Footing::Admin), &[]);
        for spec in COMMANDS.iter().filter(|spec| spec.is_listed()) {
            assert!(all.contains(&format!("`/{}", spec.name)), "{}", spec.name);
        }
        let few = help(&by(Footing::Listed), &[]);
        assert!(few.contains("/status") && few.contains("/help"), "{few}");
        assert!(!few.contains("/restart") && !few.contains("/new"), "{few}");
        let guest = Authority { footing: Footing::Guest, ..Authority::none() };
        assert!(!help(&guest, &[]).contains("/restart"));
    }

    #[test]
    fn help_names_only_what_typing_it_leads_to() {
        let quick = |name: &str, help: &str| QuickCommand {
            name: name.into(),
            help: help.into(),
            who: Who::Anyone,
            does: Quick::Run,
        };
        let quick = [quick("disk", "how full it is"), quick("set_home", "never reached")];
        let guest = Authority { footing: Footing::Guest, ..Authority::none() };
        let text = help(&guest, &quick);
        assert!(text.contains("`/disk` — how full it is"), "{text}");
        assert!(!text.contains("never reached"), "{text}");
    }
}
