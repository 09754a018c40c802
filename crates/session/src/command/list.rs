//! The one list of commands.

use super::Category::{Answer, Conversation, Gateway, Past, Settings};
use super::Shown::{Hidden, Listed};
use super::WhileRunning::{Jumps, Passes, Refused};
use super::Who::{Admin, Anyone};
use super::{Command, CommandSpec};

/// What most commands have in common.
const PLAIN: CommandSpec = CommandSpec {
    command: Command::Help,
    name: "",
    aliases: &[],
    arguments: "",
    category: Conversation,
    who: Anyone,
    running: Passes,
    help: "",
    shown: Listed,
};

/// Every command, by name.
pub const COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        command: Command::Approve,
        name: "approve",
        arguments: "[session|always]",
        category: Answer,
        running: Jumps,
        help: "answer the open question with yes",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Background,
        name: "background",
        aliases: &["bg", "btw"],
        arguments: "WORDS",
        category: Answer,
        help: "have something done beside this conversation; the answer comes here",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Branch,
        name: "branch",
        aliases: &["fork"],
        arguments: "[TITLE]",
        running: Refused,
        help: "go on with a copy of this conversation",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Compress,
        name: "compress",
        aliases: &["compact"],
        arguments: "[WHAT MATTERS]",
        running: Refused,
        help: "replace what is old by a summary; it stays searchable",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Deny,
        name: "deny",
        arguments: "[REASON]",
        category: Answer,
        running: Jumps,
        help: "answer the open question with no",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Footer,
        name: "footer",
        arguments: "[on|off]",
        category: Settings,
        help: "choose whether an answer says what it used",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Help,
        name: "help",
        aliases: &["commands"],
        category: Gateway,
        help: "show the commands",
        ..PLAIN
    },
    CommandSpec {
        command: Command::History,
        name: "history",
        arguments: "[NUMBER]",
        category: Past,
        help: "show what was said last",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Model,
        name: "model",
        arguments: "[NAME|default]",
        category: Settings,
        running: Refused,
        help: "show the models, or choose the one that answers here",
        ..PLAIN
    },
    CommandSpec {
        command: Command::New,
        name: "new",
        aliases: &["reset"],
        arguments: "[TITLE]",
        running: Jumps,
        help: "begin a new conversation; the old one stays searchable",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Pair,
        name: "pair",
        arguments: "[approve CODE|list|revoke ID|clear] [everywhere]",
        category: Gateway,
        who: Admin,
        help: "let somebody in: a code to hand on, or approve the one they were given",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Platforms,
        name: "platforms",
        arguments: "[pause ACCOUNT|resume ACCOUNT]",
        category: Gateway,
        who: Admin,
        help: "show which accounts are connected, and disconnect or connect one",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Queue,
        name: "queue",
        aliases: &["q"],
        arguments: "WORDS",
        category: Answer,
        help: "say something for a turn of its own, after this one",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Reasoning,
        name: "reasoning",
        arguments: "[off|minimal|low|medium|high|xhigh|max|default]",
        category: Settings,
        running: Refused,
        help: "choose how hard the model thinks here",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Reload,
        name: "reload",
        category: Gateway,
        who: Admin,
        help: "read the configuration again",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Restart,
        name: "restart",
        category: Gateway,
        who: Admin,
        help: "restart the gateway; what is running goes on afterwards",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Resume,
        name: "resume",
        arguments: "[NUMBER|ID|TITLE]",
        category: Past,
        running: Refused,
        help: "go back to an earlier conversation here",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Retry,
        name: "retry",
        category: Answer,
        running: Refused,
        help: "have the last message answered again",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Search,
        name: "search",
        arguments: "WORDS",
        category: Past,
        help: "find what was said in any of your conversations",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Sessions,
        name: "sessions",
        category: Past,
        help: "list the earlier conversations here",
        ..PLAIN
    },
    CommandSpec {
        command: Command::SetHome,
        name: "sethome",
        aliases: &["set-home"],
        category: Gateway,
        who: Admin,
        help: "make this chat the home of its account; the agent is told where that is",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Start,
        name: "start",
        category: Gateway,
        help: "what platforms say by themselves when a chat is opened",
        shown: Hidden,
        ..PLAIN
    },
    CommandSpec {
        command: Command::Status,
        name: "status",
        running: Jumps,
        help: "show how it stands with this conversation",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Steer,
        name: "steer",
        arguments: "WORDS",
        category: Answer,
        help: "tell the running turn something without ending it",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Stop,
        name: "stop",
        aliases: &["cancel"],
        category: Answer,
        running: Jumps,
        help: "stop the answer that is being written, and drop what waits",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Title,
        name: "title",
        arguments: "[TITLE]",
        help: "show or set the title of this conversation",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Undo,
        name: "undo",
        arguments: "[NUMBER]",
        running: Refused,
        help: "take back the last turns",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Usage,
        name: "usage",
        help: "show the tokens and the cost of this conversation",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Verbose,
        name: "verbose",
        arguments: "[off|new|all|verbose]",
        category: Settings,
        help: "choose how much is told of what tools do",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Voice,
        name: "voice",
        arguments: "[on|tts|off|status]",
        category: Settings,
        help: "choose which answers are also spoken: those to voice messages, all, or none",
        ..PLAIN
    },
    CommandSpec {
        command: Command::Whoami,
        name: "whoami",
        category: Gateway,
        help: "show who you are here and what you may do",
        ..PLAIN
    },
];
