//! A conversation at a terminal: what is said and what happens, turn by turn.
//!
//! Either the prompt is open, and what happens is printed above it, or the answer is being watched as
//! it grows, and the first key opens the prompt. Nothing waits for anything else: one loop hears the
//! gateway, the keyboard, the signals and whatever was asked for last.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use talaria_clock::{Clock, Sleep, rfc3339};
use talaria_model::{Choice, FileRef, Timestamp};
use talaria_platforms::terminal::wire::{
    Doing, Event, FILES_PER_MESSAGE, Heard, Kind, LONGEST_TEXT, Listed, PROTOCOL, Posted, Press,
    Say, Stop, drafted,
};

use super::command::{Input, LOCAL, chosen, understood};
use super::follow::{Told, follow};
use super::paper::{Display, Paper};
use super::prompt::{Prompt, Typed};
use super::seen::{Seen, Sight};
use super::socket::{Ending, Socket, Word, size};
use super::tty::{self, Quiet};
use super::{due, fresh_id};
use crate::exit::Exit;

/// Entries of the past that a conversation is opened with.
const PAST: usize = 12;

/// How long a gateway that was never there is waited for.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);

/// Pressed twice within this time, Ctrl-C leaves.
const TWICE_WITHIN: Duration = Duration::from_secs(3);

/// What may wait to be done. More than anybody types ahead.
const ERRANDS: usize = 16;

/// Talks until the person leaves.
pub(super) async fn talk(
    socket: Socket,
    conversation: &str,
    history: &Path,
    clock: Arc<dyn Clock>,
    mut interruptions: BoxStream<'static, ()>,
    mut hangups: BoxStream<'static, ()>,
) -> anyhow::Result<Exit> {
    let display = tty::display();
    // A terminal that can do no more than print keeps its own way of reading lines.
    let _quiet = match display {
        Display::Rich { .. } => Some(Quiet::begin().context("the terminal cannot be set up")?),
        Display::Plain => None,
    };
    let mut told = follow(socket.clone(), PAST, clock.clone());
    let mut patience: Option<Sleep> = Some(clock.sleep(FIRST_PATIENCE));
    let mut talk =
        Talk::begin(socket, display, Prompt::new(history, display.colour())?, clock.clone());
    talk.note(&format!("Conversation {conversation} · /help lists the commands · Ctrl-D leaves\n"));
    loop {
        talk.take_up();
        tokio::select! {
            event = told.next() => match event {
                Some(Told::Event(event)) => {
                    if matches!(event, Event::Hello { .. }) {
                        patience = None;
                    }
                    talk.hear(event);
                }
                Some(Told::Lost(reason)) => talk.lost(&reason),
                Some(Told::Refused(reason)) => bail!(reason),
                None => bail!("the gateway has gone away"),
            },
            typed = talk.prompt.typed(), if talk.prompt.is_open() => match typed {
                Typed::Line(line) => {
                    if talk.typed(&line) == Wish::Leave {
                        return Ok(Exit::Done);
                    }
                }
                Typed::Interrupted => {
                    if talk.interrupted() == Wish::Leave {
                        return Ok(Exit::Done);
                    }
                }
                Typed::Ended => return Ok(Exit::Done),
                Typed::Broken(reason) => bail!("the terminal cannot be read: {reason}"),
            },
            () = tty::key_pressed(&*clock), if !talk.prompt.is_open() => talk.open_prompt(),
            done = due(&mut talk.errand) => talk.done(done),
            _ = due(&mut talk.stopping) => talk.stopping = None,
            () = due(&mut patience) => bail!("no gateway answers"),
            Some(()) = interruptions.next() => {
                if talk.interrupted() == Wish::Leave {
                    return Ok(Exit::Done);
                }
            }
            Some(()) = hangups.next() => {
                tty::write("\n");
                return Ok(Exit::Done);
            }
        }
    }
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Stay,
    Leave,
}

/// What the conversation is doing, as far as this terminal is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Turn {
    /// The past is not told yet.
    Unknown,
    /// It is the person's turn.
    Idle,
    /// Something was said, and nothing has come back yet.
    Awaited,
    /// An answer is on its way.
    Going,
    /// A question is open, with these answers to choose from.
    Asking(Vec<Choice>),
}

/// Whether the gateway can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Attached,
    Lost,
}

/// Something to be done, one after the other.
enum Errand {
    /// Say this, with everything that was attached by then.
    Say(String),
    /// Choose this answer.
    Choose(Choice),
    /// Hand this file over.
    Attach(PathBuf),
    /// Fetch this file.
    Save(FileRef, Option<PathBuf>),
    /// List the conversations.
    List,
}

/// What became of an errand.
enum Done {
    Told(Result<Heard, String>),
    Attached(anyhow::Result<FileRef>),
    Saved(anyhow::Result<PathBuf>),
    Listed(Result<Vec<Listed>, String>),
}

struct Talk {
    socket: Socket,
    clock: Arc<dyn Clock>,
    prompt: Prompt,
    paper: Paper,
    seen: Seen,
    turn: Turn,
    reach: Reach,
    /// The answers to choose from, if the past ends with a question.
    open: Option<Vec<Choice>>,
    /// Goes along with the next message.
    attached: Vec<FileRef>,
    errands: VecDeque<Errand>,
    errand: Option<BoxFuture<'static, Done>>,
    stopping: Option<BoxFuture<'static, Result<Heard, String>>>,
    /// When Ctrl-C was last pressed with nothing going on.
    warned: Option<Timestamp>,
}

impl Talk {
    fn begin(socket: Socket, display: Display, prompt: Prompt, clock: Arc<dyn Clock>) -> Self {
        Self {
            socket,
            clock,
            prompt,
            paper: Paper::on(display),
            seen: Seen::default(),
            turn: Turn::Unknown,
            reach: Reach::Attached,
            open: None,
            attached: Vec::new(),
            errands: VecDeque::new(),
            errand: None,
            stopping: None,
            warned: None,
        }
    }

    /// Starts what waits, and lets the person see or type.
    fn take_up(&mut self) {
        if self.errand.is_none()
            && let Some(errand) = self.errands.pop_front()
        {
            self.errand = Some(self.run(errand));
        }
        if self.prompt.is_open() {
            return;
        }
        match self.turn {
            Turn::Idle | Turn::Asking(_) if self.errand.is_none() => self.open_prompt(),
            Turn::Unknown => {}
            _ => {
                let text = self.paper.work();
                tty::write(&text);
            }
        }
    }

    fn open_prompt(&mut self) {
        tty::write(&self.paper.pause());
        self.prompt.open();
    }

    fn show(&mut self, make: impl FnOnce(&mut Paper) -> String) {
        let text = make(&mut self.paper);
        self.prompt.write(&text);
    }

    fn note(&mut self, text: &str) {
        self.show(|paper| paper.note(text));
    }

    fn hear(&mut self, event: Event) {
        if self.seen.look(&event) == Sight::Known {
            return;
        }
        match event {
            Event::Hello { protocol, doing } => self.greeted(protocol, doing),
            Event::Said(said) => {
                self.open = None;
                self.show(|paper| paper.said(&said));
            }
            Event::Draft { id, text, doing } if self.prompt.is_open() => {
                self.paper.keep_draft(&id, &drafted(&text, doing.as_deref()));
            }
            Event::Draft { id, text, doing } => {
                if self.turn == Turn::Awaited {
                    self.turn = Turn::Going;
                }
                let text = self.paper.draft(&id, &drafted(&text, doing.as_deref()));
                tty::write(&text);
            }
            Event::Posted(posted) => self.posted(posted),
            Event::Turned { doing: Doing::Idle } if self.turn != Turn::Awaited => {
                self.turn = Turn::Idle;
            }
            Event::Turned { .. } => {}
        }
    }

    fn greeted(&mut self, protocol: u32, doing: Doing) {
        if protocol != PROTOCOL {
            self.note("The gateway is of another version than this program; restart it soon.");
        }
        if self.reach == Reach::Lost {
            self.reach = Reach::Attached;
            self.note("Connected again.");
        }
        self.turn = match (&self.turn, doing, self.open.take()) {
            (Turn::Awaited, _, _) => Turn::Awaited,
            (_, Doing::Idle, _) => Turn::Idle,
            (_, Doing::Busy, Some(choices)) => {
                self.note("This is still open: what you say next answers it. /stop gives it up.\n");
                Turn::Asking(choices)
            }
            (Turn::Asking(choices), Doing::Busy, None) => Turn::Asking(choices.clone()),
            (_, Doing::Busy, None) => Turn::Going,
        };
    }

    fn posted(&mut self, posted: Posted) {
        self.show(|paper| {
            let mut text = paper.posted(&posted);
            text.push_str(&paper.files(&posted.files));
            text
        });
        if posted.position.is_some() && self.turn == Turn::Unknown {
            self.open = (posted.kind == Kind::Question).then_some(posted.choices);
            return;
        }
        self.turn = match (&self.turn, posted.kind, posted.doing) {
            (_, Kind::Question, Doing::Busy) => Turn::Asking(posted.choices),
            // Somebody else's turn goes on without us.
            (Turn::Idle, _, _) | (_, _, Doing::Idle) => Turn::Idle,
            (_, _, Doing::Busy) => Turn::Going,
        };
    }

    fn lost(&mut self, reason: &str) {
        self.reach = Reach::Lost;
        let text = self.paper.pause();
        self.prompt.write(&text);
        self.note(&format!("{}; trying again …", sentence(reason)));
    }

    fn typed(&mut self, line: &str) -> Wish {
        self.warned = None;
        self.paper.fit(tty::display());
        match understood(line) {
            Input::Nothing => {}
            Input::Quit => return Wish::Leave,
            Input::Incomplete(problem) => self.note(&problem),
            Input::Attach(path) => self.enqueue(Errand::Attach(path)),
            Input::Conversations => self.enqueue(Errand::List),
            Input::Save { number, path } => match self.paper.file(number).cloned() {
                Some(file) => self.enqueue(Errand::Save(file, path)),
                None => self.note(&format!("There is no file {number}.")),
            },
            Input::Say(text) => self.say(text),
        }
        Wish::Stay
    }

    fn say(&mut self, text: String) {
        if text.len() > LONGEST_TEXT {
            let most = size(LONGEST_TEXT as u64);
            return self
                .note(&format!("That is longer than {most}; send it as a file: /attach FILE"));
        }
        if matches!(text.trim(), "/help" | "/commands") {
            let local = LOCAL.iter().map(|command| {
                let typed = format!("{} {}", command.name, command.arguments);
                format!("/{} — {}\n", typed.trim_end(), command.help)
            });
            let local: String = local.collect();
            self.note(&format!("In this terminal:\n{local}\n"));
        }
        let chosen = match &self.turn {
            Turn::Asking(choices) => chosen(choices, &text).cloned(),
            _ => None,
        };
        self.enqueue(chosen.map_or(Errand::Say(text), Errand::Choose));
        self.turn = Turn::Awaited;
    }

    fn enqueue(&mut self, errand: Errand) {
        if self.errands.len() == ERRANDS {
            return self.note("Too much is waiting already; that was not done.");
        }
        self.errands.push_back(errand);
    }

    fn run(&mut self, errand: Errand) -> BoxFuture<'static, Done> {
        let (socket, clock) = (self.socket.clone(), self.clock.clone());
        match errand {
            Errand::Say(text) => {
                let files = std::mem::take(&mut self.attached);
                let say = Say { id: fresh_id(), text, files };
                self.seen.say(say.id.clone(), &say.text);
                let word = Word::Say(say);
                Box::pin(
                    async move { Done::Told(socket.insist(&word, &*clock, Ending::Wait).await) },
                )
            }
            Errand::Choose(Choice { id: choice, label }) => {
                let press = Press { id: fresh_id(), choice };
                self.seen.say(press.id.clone(), &label);
                let word = Word::Press(press);
                Box::pin(
                    async move { Done::Told(socket.insist(&word, &*clock, Ending::Wait).await) },
                )
            }
            Errand::Attach(path) => Box::pin(async move {
                let shown = path.display().to_string();
                Done::Attached(socket.upload(&path).await.context(shown))
            }),
            Errand::Save(file, to) => Box::pin(async move {
                Done::Saved(socket.download(&file, to.as_deref()).await.context(file.name))
            }),
            Errand::List => Box::pin(async move {
                Done::Listed(socket.conversations().await.map_err(|error| error.to_string()))
            }),
        }
    }

    fn done(&mut self, done: Done) {
        self.errand = None;
        match done {
            Done::Told(Ok(Heard::Recorded | Heard::Repeated)) => {}
            Done::Told(Err(reason)) => {
                self.turn = Turn::Idle;
                self.note(&format!("Not sent: {reason}."));
            }
            Done::Attached(Ok(file)) if self.attached.len() < FILES_PER_MESSAGE => {
                let name = file.name.clone();
                self.note(&format!("📎 {name} ({}) goes with your next message", size(file.size)));
                self.attached.push(file);
            }
            Done::Attached(Ok(_)) => {
                self.note(&format!("A message carries no more than {FILES_PER_MESSAGE} files."));
            }
            Done::Attached(Err(error)) => self.note(&format!("Not attached: {error:#}.")),
            Done::Saved(Ok(path)) => self.note(&format!("Saved as {}", path.display())),
            Done::Saved(Err(error)) => self.note(&format!("Not saved: {error:#}.")),
            Done::Listed(Ok(listed)) => self.note(&listing(&listed)),
            Done::Listed(Err(reason)) => self.note(&format!("Not listed: {reason}.")),
        }
    }

    /// Ctrl-C: stops what is going on. With nothing going on, twice means to leave.
    fn interrupted(&mut self) -> Wish {
        match (&self.turn, self.reach) {
            (Turn::Unknown, _) => Wish::Leave,
            (Turn::Idle, _) if self.errand.is_none() => {
                let now = self.clock.now();
                if self.warned.is_some_and(|warned| now.since(warned) < TWICE_WITHIN) {
                    return Wish::Leave;
                }
                self.warned = Some(now);
                self.note("Press Ctrl-C again or Ctrl-D to leave.");
                Wish::Stay
            }
            (_, Reach::Lost) => {
                if self.errand.take().is_some() {
                    self.note("Given up; it may not have arrived.");
                }
                self.errands.clear();
                self.turn = Turn::Idle;
                Wish::Stay
            }
            (_, Reach::Attached) => {
                let (socket, clock) = (self.socket.clone(), self.clock.clone());
                let word = Word::Stop(Stop { id: fresh_id() });
                self.stopping =
                    Some(Box::pin(
                        async move { socket.insist(&word, &*clock, Ending::Wait).await },
                    ));
                Wish::Stay
            }
        }
    }
}

fn listing(listed: &[Listed]) -> String {
    if listed.is_empty() {
        return "There are no conversations yet.".into();
    }
    let widest = listed.iter().map(|one| one.id.as_str().len()).max().unwrap_or(0);
    let mut text: String = listed
        .iter()
        .map(|Listed { id, title, updated, doing }| {
            let when = rfc3339(*updated).chars().take(16).collect::<String>().replace('T', " ");
            let busy = if *doing == Doing::Busy { " · busy" } else { "" };
            format!("{:widest$}  {when}  {title}{busy}\n", id.as_str())
        })
        .collect();
    text.push_str("Open one with: talaria chat --conversation NAME\n");
    text
}

fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
