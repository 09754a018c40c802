//! What the demo says to what.

use serde_json::json;
use talaria_agent::{Part, Prompt, PromptMessage};
use talaria_model::{CallId, ToolCall};

use super::long::LONG;

const SEARCH: &str = "session_search";
const ASK: &str = "ask";
const FILE: &str = "demo_file";
const LAUNCH: &str = "demo_launch";

/// How much of a tool's result is shown.
const SHOWN: usize = 400;

const TRICKS: &str = "\
- **tool**: I use a tool and tell you what it found
- **ask**: I ask you something, with choices to pick from
- **approve**: I ask whether I may do something before I do it
- **long**: a long answer with headings, a table and code
- **file**: an answer with a file attached";

const MODELS: &str = "\
- set a key in the environment, such as `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`
- or write `model: provider/model` into `config.yaml`
- or start Ollama on this machine

Then start Talaria again. `talaria model` shows what it found, and why.";

const QUESTION: &str = "Where would you like to reach your agent first?";

/// The choices, and what the demo says to each.
const PLACES: [(&str, &str); 3] = [
    ("On my phone", "A good choice: it is always with you."),
    ("At work", "Makes sense: that is where the questions are."),
    ("Right here", "Fine by me. Nothing to install, nothing to sign up for."),
];

/// What the demo answers.
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
}

/// What a person may want to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Greeting,
    Models,
    Tool,
    Ask,
    Approve,
    Long,
    File,
}

/// Decides by the last message: a person's wish, or the result of a tool that was called for one.
pub(super) fn reply(prompt: &Prompt) -> Reply {
    match prompt.messages.last() {
        Some(PromptMessage::ToolResult { call, output, failed }) => {
            say(react(&called(prompt, call), output, *failed))
        }
        Some(PromptMessage::User(parts)) => answer(prompt, &words(parts)),
        _ => say(hello()),
    }
}

fn answer(prompt: &Prompt, said: &str) -> Reply {
    match wish(said) {
        Some(Wish::Greeting) => say(hello()),
        Some(Wish::Models) => say(format!("This is how you connect a real model:\n\n{MODELS}")),
        Some(Wish::Long) => say(LONG.to_owned()),
        Some(Wish::Tool) => {
            let query = query(prompt, said);
            let text = format!("Let me search our conversations for “{query}”. ");
            call(prompt, SEARCH, text, json!({ "query": query }))
        }
        Some(Wish::Ask) => {
            let choices = PLACES.map(|(place, _)| place);
            let arguments = json!({ "question": QUESTION, "choices": choices });
            call(prompt, ASK, String::new(), arguments)
        }
        Some(Wish::Approve) => {
            let text =
                "This would have an effect outside of our conversation, so you are asked first. ";
            call(prompt, LAUNCH, text.to_owned(), json!({ "to": "the moon" }))
        }
        Some(Wish::File) => {
            let arguments = json!({ "name": "hello-from-talaria.txt", "text": file() });
            call(prompt, FILE, "One moment, I am writing you a file. ".to_owned(), arguments)
        }
        None => say(format!(
            "I cannot answer that: I am only the demo, and no language model is connected yet.\n\n\
             Say one of these words and I will show you something:\n\n{TRICKS}\n\n\
             To connect a real model:\n\n{MODELS}"
        )),
    }
}

fn hello() -> String {
    format!(
        "Hello! I am Talaria’s built-in demo. I run offline and there is no language model behind \
         me, so I know only a few tricks. Say one of these words:\n\n{TRICKS}\n\n\
         To talk to a real model:\n\n{MODELS}"
    )
}

fn file() -> String {
    format!(
        "Hello from Talaria!\n\n\
         This file was written by the built-in demo and travelled the same way as any file that an\n\
         agent sends: it was stored first, then delivered with the answer.\n\n\
         To connect a real model:\n\n{MODELS}\n"
    )
}

/// What the demo says once a tool has returned.
fn react(tool: &str, output: &str, failed: bool) -> String {
    match tool {
        LAUNCH if failed => format!(
            "Then I leave it. This is what a model is told:\n\n{}\n\nWithout your yes nothing of the kind is \
             done, and silence is not a yes.",
            quote(output)
        ),
        LAUNCH => format!(
            "You said yes, so it was done, once and exactly as you were shown:\n\n{}",
            quote(output)
        ),
        _ if failed => {
            format!(
                "That did not work. The tool said:\n\n{}\n\nEven that is honest.",
                quote(output)
            )
        }
        SEARCH => format!(
            "That was a real tool call: `{SEARCH}` looked through what was said before. It found:\n\n\
             {}\n\nA real model would now use this for its answer.",
            quote(output)
        ),
        ASK => {
            let reaction = PLACES
                .iter()
                .find(|(place, _)| output.contains(place))
                .map_or("Thank you, noted.", |(_, reaction)| reaction);
            format!(
                "{reaction}\n\nThat is how an agent asks before it goes on. Until you answered, the \
                 turn was waiting; it would have waited through a restart as well."
            )
        }
        FILE => "Here it is: `hello-from-talaria.txt` is attached.".to_owned(),
        _ => format!("The tool returned:\n\n{}", quote(output)),
    }
}

fn say(text: String) -> Reply {
    Reply { text, calls: Vec::new() }
}

/// Calls a tool, or says that it cannot.
fn call(prompt: &Prompt, tool: &str, text: String, arguments: serde_json::Value) -> Reply {
    if !prompt.tools.iter().any(|spec| spec.name == tool) {
        return say(format!(
            "I would show you that with the tool `{tool}`, but it is not available in this chat."
        ));
    }
    let made = prompt.messages.iter().map(|message| match message {
        PromptMessage::Assistant { calls, .. } => calls.len(),
        _ => 0,
    });
    let id = CallId::new(format!("demo_{}", made.sum::<usize>() + 1)).expect("a short plain id");
    let call = ToolCall { id, tool: tool.to_owned(), arguments: arguments.to_string() };
    Reply { text, calls: vec![call] }
}

/// The tool behind a call.
fn called(prompt: &Prompt, id: &CallId) -> String {
    let calls = prompt.messages.iter().rev().filter_map(|message| match message {
        PromptMessage::Assistant { calls, .. } => calls.iter().find(|call| call.id == *id),
        _ => None,
    });
    calls.map(|call| call.tool.clone()).next().unwrap_or_default()
}

fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(own(text)),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// What the person said, without the notes and the name that stand in front of it.
fn own(read: &str) -> &str {
    let mut own = read.trim_start();
    while own.starts_with("[[")
        && let Some((note, rest)) = own.split_once("]]\n")
    {
        // What others said stands between these two.
        let rest = match note.starts_with("[[Said in this chat") {
            true => rest.split_once("\n[[New message]]\n").map_or(rest, |(_, rest)| rest),
            false => rest,
        };
        own = rest.trim_start();
    }
    match own.split_once("] ") {
        Some((name, rest)) if name.starts_with('[') && !name.starts_with("[[") => rest,
        _ => own,
    }
}

fn split(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

fn wish(said: &str) -> Option<Wish> {
    let meant = |word: &str| match word {
        "tool" | "tools" | "search" => Some(Wish::Tool),
        "ask" | "choose" | "choice" | "choices" | "question" => Some(Wish::Ask),
        "approve" | "approval" | "approvals" | "dangerous" => Some(Wish::Approve),
        "long" => Some(Wish::Long),
        "file" | "files" | "attachment" | "attach" => Some(Wish::File),
        "model" | "models" | "setup" | "key" => Some(Wish::Models),
        _ => None,
    };
    let greets =
        |word: String| matches!(word.as_str(), "hi" | "hello" | "hey" | "help" | "start" | "demo");
    split(said)
        .find_map(|word| meant(&word))
        .or_else(|| split(said).any(greets).then_some(Wish::Greeting))
}

/// The word to search for: the longest one that is not part of the wish itself, or one that was said
/// earlier.
fn query(prompt: &Prompt, said: &str) -> String {
    let telling = |text: &str| {
        split(text)
            .filter(|word| word.chars().count() > 3 && wish(word).is_none())
            .filter(|word| !matches!(word.as_str(), "show" | "please" | "with" | "some" | "call"))
            .max_by_key(|word| word.chars().count())
    };
    let mut earlier = prompt.messages.iter().rev().filter_map(|message| match message {
        PromptMessage::User(parts) => telling(&words(parts)),
        _ => None,
    });
    telling(said).or_else(|| earlier.next()).unwrap_or_else(|| "hello".to_owned())
}

/// The beginning of a text as a block quote.
fn quote(text: &str) -> String {
    let text = text.trim();
    let shown = &text[..text.floor_char_boundary(SHOWN)];
    let more = if shown.len() < text.len() { " …" } else { "" };
    format!("> {}{more}", shown.trim_end().replace('\n', "\n> "))
}
