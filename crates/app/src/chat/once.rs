//! One message and its answer: for scripts, and for people who ask on the command line.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use talaria_clock::{Clock, Sleep};
use talaria_model::{EventId, FileRef};
use talaria_platforms::terminal::wire::{
    Doing, Event, Heard, Kind, LONGEST_HISTORY, Posted, Press, Say, Stop, drafted,
};

use super::command::{chosen, is_command, unanswered};
use super::follow::{Told, follow};
use super::paper::{Display, Paper};
use super::seen::{Seen, Sight};
use super::socket::{Ending, Socket, Word};
use super::{due, fresh_id};
use crate::exit::Exit;

/// How long the gateway may be away, or unable to store the message, before we give up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same, as long as it was never there.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);

/// How long a stop may take to show.
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// How one message was answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    /// What came along.
    pub(super) files: Vec<FileRef>,
}

/// Says `text`, writes the answer as it comes, and ends when the turn is over. The first
/// interruption stops the turn, the second one ends at once. If what is said answers a question from
/// before, or gets no answer, `remark` is told so, which is not part of the answer.
pub(super) async fn once(
    socket: Socket,
    text: String,
    display: Display,
    clock: Arc<dyn Clock>,
    mut interruptions: BoxStream<'static, ()>,
    write: impl FnMut(&str),
    mut remark: impl FnMut(&str),
) -> anyhow::Result<Ended> {
    let mut told = follow(socket.clone(), LONGEST_HISTORY, clock.clone());
    let mut reply = Reply::on(display, write);
    let no_answer = unanswered(&text);
    let mut unsaid = Some(text);
    let mut saying: Option<BoxFuture<'static, Result<Heard, String>>> = None;
    let mut stopping: Option<BoxFuture<'static, Result<Heard, String>>> = None;
    let mut patience: Option<Sleep> = Some(clock.sleep(FIRST_PATIENCE));
    loop {
        tokio::select! {
            told = told.next() => match told {
                Some(Told::Event(event)) => {
                    if let Event::Hello { doing, .. } = event {
                        patience = None;
                        // Said only when we listen, so that nothing of the answer is missed.
                        if let Some(text) = unsaid.take() {
                            let open = reply.open.take().filter(|_| doing == Doing::Busy);
                            let open = open.filter(|_| !is_command(&text));
                            if let Some(question) = &open {
                                remark(&reminder(question));
                            }
                            let word = worded(text, open.as_ref());
                            reply.expect(&word);
                            saying = Some(insist(&socket, word, &clock));
                        }
                    }
                    if let Some(exit) = reply.hear(&event) {
                        if reply.last.is_none() {
                            remark("The agent has nothing to say to that.\n");
                        }
                        return Ok(Ended { exit, files: reply.files });
                    }
                }
                Some(Told::Lost(_)) => {
                    patience.get_or_insert_with(|| clock.sleep(PATIENCE));
                }
                Some(Told::Refused(reason)) => bail!(reason),
                None => bail!("the gateway has gone away"),
            },
            said = due(&mut saying) => {
                saying = None;
                if let Err(reason) = said {
                    bail!("the gateway does not take the message: {reason}");
                }
                if let Some(why) = &no_answer {
                    remark(&format!("{why}\n"));
                    return Ok(Ended { exit: Exit::Done, files: reply.files });
                }
            }
            _ = due(&mut stopping) => stopping = None,
            () = due(&mut patience) => match reply.state {
                State::Stopping => return Ok(Ended { exit: Exit::Failed, files: reply.files }),
                _ => bail!("the gateway cannot be reached"),
            },
            Some(()) = interruptions.next() => {
                if reply.state == State::Stopping {
                    return Ok(Ended { exit: Exit::Failed, files: reply.files });
                }
                reply.state = State::Stopping;
                stopping = Some(insist(&socket, Word::Stop(Stop { id: fresh_id() }), &clock));
                patience = Some(clock.sleep(STOP_WITHIN));
            }
        }
    }
}

/// What is said, as a choice where it names one.
fn worded(text: String, open: Option<&Posted>) -> Word {
    match open.and_then(|question| chosen(&question.choices, &text)) {
        Some(choice) => Word::Press(Press { id: fresh_id(), choice: choice.id.clone() }),
        None => Word::Say(Say { id: fresh_id(), text, files: Vec::new() }),
    }
}

/// Tells a person who may not know it that they are answering something.
fn reminder(question: &Posted) -> String {
    let question = Paper::on(Display::Plain).posted(question);
    let question: String = question.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "What you say answers a question that was still open:\n{question}\
         (`talaria chat /stop` gives it up; `talaria chat --new` leaves it and talks elsewhere.)\n"
    )
}

fn insist(
    socket: &Socket,
    word: Word,
    clock: &Arc<dyn Clock>,
) -> BoxFuture<'static, Result<Heard, String>> {
    let (socket, clock) = (socket.clone(), clock.clone());
    Box::pin(async move {
        tokio::select! {
            heard = socket.insist(&word, &*clock, Ending::GiveUp) => heard,
            () = clock.sleep(PATIENCE) => Err("it cannot store it".into()),
        }
    })
}

/// The answer as far as it has come.
struct Reply<W> {
    paper: Paper,
    display: Display,
    write: W,
    seen: Seen,
    state: State,
    /// What we say.
    said: Option<EventId>,
    /// The question that the past ends with.
    open: Option<Posted>,
    last: Option<Kind>,
    files: Vec<FileRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is said yet; what there is belongs to the past.
    Before,
    /// What comes is the answer.
    Expecting,
    /// The same, and what was said is among what we are told: once the conversation is idle, there
    /// will be no more.
    Heard,
    /// The person does not want to wait for it.
    Stopping,
}

impl<W: FnMut(&str)> Reply<W> {
    fn on(display: Display, write: W) -> Self {
        Self {
            paper: Paper::on(display),
            display,
            write,
            seen: Seen::default(),
            state: State::Before,
            said: None,
            open: None,
            last: None,
            files: Vec::new(),
        }
    }

    fn expect(&mut self, word: &Word) {
        self.state = State::Expecting;
        if let Word::Say(say) = word {
            self.said = Some(say.id.clone());
        }
        (self.write)(&self.paper.work());
    }

    /// Takes in what happened. Says how to end once the turn is over.
    fn hear(&mut self, event: &Event) -> Option<Exit> {
        let sight = self.seen.look(event);
        if self.state == State::Before {
            self.open = match event {
                Event::Posted(posted) if posted.kind == Kind::Question => Some(posted.clone()),
                _ => None,
            };
        }
        if self.state == State::Before || sight == Sight::Known {
            return None;
        }
        match event {
            Event::Posted(posted) => self.posted(posted),
            Event::Draft { id, text, doing } => {
                (self.write)(&self.paper.draft(id, &drafted(text, doing.as_deref())));
                None
            }
            Event::Hello { doing: Doing::Idle, .. } | Event::Turned { doing: Doing::Idle } => {
                self.over()
            }
            Event::Said(said) => {
                if self.state == State::Expecting && said.id.is_some() && said.id == self.said {
                    self.state = State::Heard;
                }
                None
            }
            Event::Hello { .. } | Event::Turned { .. } => None,
        }
    }

    fn posted(&mut self, posted: &Posted) -> Option<Exit> {
        if self.last.is_some() && self.display == Display::Plain {
            (self.write)("\n");
        }
        (self.write)(&self.paper.posted(posted));
        self.files.extend(posted.files.iter().cloned());
        self.last = Some(posted.kind);
        match (posted.kind, posted.doing) {
            (Kind::Question, _) => Some(Exit::Asked),
            (_, Doing::Idle) => self.over(),
            (_, Doing::Busy) => None,
        }
    }

    /// Nothing more will come, unless nobody has heard yet what was said.
    fn over(&self) -> Option<Exit> {
        match (self.last, self.state) {
            (Some(Kind::Failure), _) | (Some(_), State::Stopping) => Some(Exit::Failed),
            (Some(Kind::Answer | Kind::Notice | Kind::Question), _) => Some(Exit::Done),
            (None, State::Heard) => Some(Exit::Done),
            (None, _) => None,
        }
    }
}
