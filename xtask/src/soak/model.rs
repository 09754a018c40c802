//! The model of the soak: what it answers is decided by what was said, so that asking again gives the
//! same answer. Sometimes it fails first.

use std::sync::Mutex;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use talaria_testkit::{Asked, FakeLlm, Reply, ScriptedCall, Token, mentioned};

use super::book::{Book, Pages};
use super::protocol::Moment;

/// What people say to get a long answer, word by word.
pub(crate) const SLOWLY: &str = "slowly please";
/// What people say to get an answer that grows for some seconds.
pub(crate) const STEADILY: &str = "steadily please";
/// What people say to get an answer in several messages.
pub(crate) const AT_LENGTH: &str = "at length please";
/// What people say to have a tool called first.
pub(crate) const WITH_A_TOOL: &str = "look it up please";
/// What people say to be asked something first.
pub(crate) const ASK_ME: &str = "ask me first";
/// What the model refuses.
pub(crate) const REFUSE: &str = "refuse this please";
/// How a question begins.
pub(crate) const QUESTION: &str = "Which colour?";

/// Lets the model answer as the soak needs it.
pub(crate) fn teach(llm: &FakeLlm, book: &Book, seed: u64) {
    let (book, dice) = (book.clone(), Mutex::new(StdRng::seed_from_u64(seed ^ 0x11)));
    llm.script(move |asked| {
        let mut dice = dice.lock().expect("nobody panics with it");
        answer(asked, &book, &mut dice)
    });
}

fn answer(asked: &Asked, book: &Book, dice: &mut StdRng) -> Reply {
    let said = asked.said();
    let tokens = mentioned(&said);
    let newest = said.rsplit(" / ").next().unwrap_or_default();
    let reply = reply(asked, &said, newest, &tokens, &mut book.pages(), dice);
    let what = match &reply {
        Reply::Says(_) => "the model answers".to_owned(),
        Reply::Streams { .. } => "the model answers slowly".to_owned(),
        Reply::Calls(_, calls) => format!("the model calls {}", calls[0].tool),
        Reply::Breaks(_) => "the model is cut off".to_owned(),
        Reply::Refuses { status, .. } => format!("the model fails with {status}"),
    };
    if let Reply::Streams { .. } = reply {
        book.signal(Moment::Streaming);
    }
    book.log("", "", tokens, what);
    reply
}

fn reply(
    asked: &Asked,
    said: &str,
    newest: &str,
    tokens: &[Token],
    pages: &mut Pages,
    dice: &mut StdRng,
) -> Reply {
    let last = tokens.last().copied().unwrap_or(Token(0));
    if newest.contains(REFUSE) {
        let body = format!(r#"{{"error":{{"message":"not {last}"}}}}"#);
        return Reply::Refuses { status: 400, body };
    }
    let call = |tool: &str, arguments: String| {
        let calls = vec![ScriptedCall { tool: tool.to_owned(), arguments }];
        Reply::Calls(String::new(), calls)
    };
    // From the tokens and not from the dice: the same request gets the same answer.
    let spread = last.0 * 31;
    let reply = if newest.contains(ASK_ME) && !asked.has_called() {
        let choices = r#"["red","green","blue"]"#;
        call("ask", format!(r#"{{"question":"{QUESTION} {last}","choices":{choices}}}"#))
    } else if said.contains(WITH_A_TOOL) && !asked.has_called() {
        call("session_search", format!(r#"{{"query":"{last}"}}"#))
    } else if said.contains(AT_LENGTH) {
        Reply::Says(pages.answer(tokens, 60 + (spread % 240) as u16))
    } else if said.contains(STEADILY) {
        let text = pages.answer(tokens, 24 + (spread % 40) as u16);
        Reply::Streams { text, between: Duration::from_millis(40 + spread % 80) }
    } else if said.contains(SLOWLY) {
        let text = pages.answer(tokens, 12 + (spread % 20) as u16);
        Reply::Streams { text, between: Duration::from_millis(2 + spread % 5) }
    } else {
        Reply::Says(pages.answer(tokens, 1 + (spread % 3) as u16))
    };
    spoiled(reply, tokens, pages, dice)
}

/// Goes wrong, at most once for the same request.
fn spoiled(reply: Reply, tokens: &[Token], pages: &mut Pages, dice: &mut StdRng) -> Reply {
    let wrong = match (dice.random_range(0..100), &reply) {
        (0 | 1, Reply::Says(text) | Reply::Streams { text, .. }) => {
            Reply::Breaks(text[..text.len() / 2].to_owned())
        }
        (2, _) => Reply::Refuses { status: 503, body: "busy".into() },
        (3, _) => {
            let body = r#"{"error":{"message":"slow"}}"#.into();
            Reply::Refuses { status: 429, body }
        }
        _ => return reply,
    };
    if !pages.spoiled.insert(tokens.to_vec()) {
        return reply;
    }
    pages.faults += 1;
    wrong
}
