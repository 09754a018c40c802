//! What Discord tells, in batches. Everything here happens while the stream is asked for more; nothing
//! runs beside it.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, FuturesUnordered};
use futures::{FutureExt, StreamExt, stream};
use serde_json::json;
use talaria_model::{ChatKind, Inbound, InboundKind, Message};
use talaria_platform::{Ack, Arrival, Arrivals, Batch, Committed, LinkError, Verdict as Stored};
use tokio::sync::mpsc;

use super::api;
use super::connection::{Connection, Event, Heard, Room, Verdict, verdict};
use super::decode::{COMMAND, Concern, PRESS, Past, concern};
use super::lookup::Lookup;
use super::missed::Missed;
use super::position::{Position, Session};
use super::snowflake::Snowflake;

/// Events that are ready together are committed together, up to this many.
const BATCH: usize = 64;

/// Events that wait to be read. Beyond that we stop listening, and Discord keeps them for us.
const WAITING: usize = 4096;

/// Answers to interactions that wait to be sent.
const ANSWERS: usize = 256;

/// Something that is done beside listening.
pub(crate) type Chore = BoxFuture<'static, ()>;

type Work = BoxFuture<'static, Result<Vec<Step>, LinkError>>;

/// One step forward.
enum Step {
    /// Something that was said while nobody was connected.
    Missed(Inbound),
    /// Nothing more was missed.
    CaughtUp,
    /// Something that happened.
    Live { seq: u64, inbound: Option<Inbound>, question: Option<Question> },
}

/// An interaction that waits for our answer.
struct Question {
    id: Snowflake,
    token: String,
    kind: u64,
}

/// What an interaction is answered.
struct Answer {
    question: Question,
    denied: bool,
}

/// Listens on one connection.
pub(crate) struct Listening {
    connection: Connection,
    lookup: Arc<Lookup>,
    /// What everything up to here was given to the gateway, and is stored when it asks again.
    given: Position,
    /// The session with the last event that was received.
    session: Session,
    /// The newest message that was given.
    seen: Snowflake,
    catching_up: bool,
    /// Whether the gateway does not know the newest position yet.
    untold: bool,
    work: FuturesOrdered<Work>,
    ready: VecDeque<Step>,
    chores: FuturesUnordered<Chore>,
    answers: (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
    over: Option<LinkError>,
    ended: bool,
    skipped: u64,
}

impl Listening {
    /// Goes on from `from`, on a session that is at `session`.
    pub(crate) fn new(
        connection: Connection,
        lookup: Arc<Lookup>,
        from: Position,
        session: Session,
    ) -> Self {
        Self {
            connection,
            lookup,
            seen: from.seen,
            given: from,
            session,
            catching_up: false,
            untold: true,
            work: FuturesOrdered::new(),
            ready: VecDeque::new(),
            chores: FuturesUnordered::new(),
            answers: mpsc::channel(ANSWERS),
            over: None,
            ended: false,
            skipped: 0,
        }
    }

    /// First tells what was missed.
    pub(crate) fn catch_up(&mut self, missed: Missed) {
        self.catching_up = true;
        let work = async move {
            let missed = missed.fetch().await?;
            Ok(missed.into_iter().map(Step::Missed).chain([Step::CaughtUp]).collect())
        };
        self.work.push_back(work.boxed());
    }

    /// Does something beside listening.
    pub(crate) fn also(&mut self, chore: Chore) {
        self.chores.push(chore);
    }

    pub(crate) fn arrivals(self) -> Arrivals {
        stream::unfold(self, Self::next).boxed()
    }

    async fn next(mut self) -> Option<(Result<Arrival, LinkError>, Self)> {
        // Asking again says that everything that was given is stored.
        self.connection.stored = self.given.session.as_ref().map(|session| session.seq);
        loop {
            if let Some(batch) = self.batch() {
                return Some((Ok(Arrival::Batch(batch)), self));
            }
            // A session that nobody has written down cannot be resumed.
            if self.untold && self.work.is_empty() && self.over.is_none() {
                let seq = self.session.seq;
                let batch = self.position(Vec::new(), Vec::new(), Some(seq));
                return Some((Ok(Arrival::Batch(batch)), self));
            }
            if self.work.is_empty()
                && let Some(error) = self.over.take()
            {
                self.ended = true;
                return Some((Err(error), self));
            }
            if self.ended {
                return None;
            }
            let is_listening = self.over.is_none();
            let room = if self.work.len() < WAITING { Room::Left } else { Room::None };
            tokio::select! {
                biased;
                Some(done) = self.work.next(), if !self.work.is_empty() => self.done(done),
                Some(answer) = self.answers.1.recv() => self.answer(answer),
                Some(()) = self.chores.next(), if !self.chores.is_empty() => {}
                heard = self.connection.hear(room), if is_listening => {
                    if let Some(alive) = self.hear(heard) {
                        return Some((Ok(alive), self));
                    }
                }
            }
        }
    }

    fn done(&mut self, done: Result<Vec<Step>, LinkError>) {
        let mut done = Some(done);
        // What is ready behind it goes along.
        while let Some(finished) = done {
            match finished {
                Ok(steps) => self.ready.extend(steps),
                Err(error) => {
                    // What comes after something that could not be told may not be told either: its
                    // position would say that everything before it is stored.
                    self.work = FuturesOrdered::new();
                    self.over = Some(error);
                    return;
                }
            }
            if self.ready.len() >= BATCH {
                return;
            }
            done = self.work.next().now_or_never().flatten();
        }
    }

    /// What is ready, with the position behind it.
    fn batch(&mut self) -> Option<Batch> {
        if self.ready.is_empty() {
            return None;
        }
        let mut events = Vec::new();
        let mut questions = Vec::new();
        let mut last = None;
        let most = self.ready.len().min(BATCH);
        for step in self.ready.drain(..most) {
            let inbound = match step {
                Step::Missed(inbound) => Some(inbound),
                Step::CaughtUp => {
                    self.catching_up = false;
                    None
                }
                Step::Live { seq, inbound, question } => {
                    last = Some(seq);
                    questions.extend(question.map(|question| (events.len(), question)));
                    inbound
                }
            };
            let Some(inbound) = inbound else { continue };
            // Only what Discord itself has numbered says how far Discord's time is.
            if let InboundKind::Said(Message { id: Some(id), .. }) = &inbound.kind {
                self.seen = self.seen.max(Snowflake::parse(id.as_str()).unwrap_or_default());
            }
            if inbound.to.chat.kind == ChatKind::Dm
                && let Some(chat) = Snowflake::parse(inbound.to.chat.id.as_str())
            {
                self.given.talked(chat);
            }
            events.push(inbound);
        }
        let is_all = self.ready.is_empty() && self.work.is_empty();
        let seq = if is_all { Some(self.session.seq) } else { last };
        Some(self.position(events, questions, seq))
    }

    /// A batch that ends behind this number.
    fn position(
        &mut self,
        events: Vec<Inbound>,
        questions: Vec<(usize, Question)>,
        seq: Option<u64>,
    ) -> Batch {
        self.untold = false;
        self.given.promised = self.lookup.places.promises();
        if self.catching_up {
            self.given.session = None;
        } else {
            let before = self.given.session.as_ref().map(|session| session.seq);
            let seq = seq.or(before).unwrap_or(0);
            self.given.session = Some(Session { seq, ..self.session.clone() });
            self.given.seen = self.seen;
        }
        Batch { events, cursor: Some(self.given.cursor()), ack: self.ack(questions) }
    }

    fn ack(&self, questions: Vec<(usize, Question)>) -> Ack {
        if questions.is_empty() {
            return Ack::unneeded();
        }
        let answers = self.answers.0.clone();
        Ack::with(move |Committed(verdicts)| {
            for (number, question) in questions {
                let denied = verdicts.get(number) == Some(&Stored::Denied);
                // One that finds no room is shown as unanswered, and is carried out all the same.
                let _ = answers.try_send(Answer { question, denied });
            }
        })
    }

    fn answer(&mut self, answer: Answer) {
        let rest = self.lookup.rest.clone();
        let chore = async move {
            let Answer { question, denied } = answer;
            let words = match (question.kind, denied) {
                (PRESS, false) => None,
                (PRESS, true) => Some("You are not allowed to answer this."),
                (_, false) => Some("Received. The answer comes as a message."),
                (_, true) => Some("You are not allowed to use this command."),
            };
            let body = match words {
                None => json!({ "type": 6 }),
                Some(words) => json!({
                    "type": 4,
                    "data": { "content": words, "flags": 64, "allowed_mentions": { "parse": [] } },
                }),
            };
            if let Err(error) = rest.answer(question.id, &question.token, body).await {
                tracing::debug!(?error, "an interaction could not be answered");
            }
        };
        self.chores.push(chore.boxed());
    }

    /// Takes in what Discord says; something comes back when it is only a sign of life.
    fn hear(&mut self, heard: Result<Heard, LinkError>) -> Option<Arrival> {
        let lost = |reason: &str| Some(LinkError::Lost { reason: reason.to_owned() });
        match heard {
            Ok(Heard::Event(event)) => self.event(event),
            Ok(Heard::Alive) => return Some(self.alive()),
            Ok(Heard::Again) => self.over = lost("Discord asks us to connect again"),
            Ok(Heard::Invalid { .. }) => self.over = lost("Discord has ended the session"),
            Ok(Heard::Closed(reason)) => self.over = Some(closed(reason)),
            Err(error) => self.over = Some(error),
        }
        None
    }

    /// A sign of life is also the moment to say how far we are, when nothing was said for long.
    fn alive(&mut self) -> Arrival {
        let given = self.given.session.as_ref().map(|session| session.seq);
        let is_behind = given != Some(self.session.seq) && self.work.is_empty();
        if is_behind && !self.catching_up {
            let seq = self.session.seq;
            return Arrival::Batch(self.position(Vec::new(), Vec::new(), Some(seq)));
        }
        Arrival::Alive
    }

    /// Takes in an event.
    pub(crate) fn event(&mut self, event: Event) {
        let Event { seq, name, what } = event;
        self.session.seq = seq;
        if let Err(error) = self.read(seq, &name, what.get()) {
            self.skipped += 1;
            let (line, column) = (error.line(), error.column());
            tracing::warn!(event = name, line, column, skipped = self.skipped, "skipped an event");
        }
    }

    fn read(&mut self, seq: u64, name: &str, what: &str) -> Result<(), serde_json::Error> {
        let places = &self.lookup.places;
        match name {
            "GUILD_CREATE" | "GUILD_UPDATE" => {
                places.guild(serde_json::from_str(what)?, self.lookup.us);
            }
            "GUILD_DELETE" => {
                let guild: api::Named = serde_json::from_str(what)?;
                places.without_guild(guild.id);
            }
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                places.channel(serde_json::from_str(what)?);
            }
            "CHANNEL_DELETE" | "THREAD_DELETE" => {
                let channel: api::Named = serde_json::from_str(what)?;
                places.without_channel(channel.id);
            }
            "THREAD_LIST_SYNC" => {
                let sync: api::Threads = serde_json::from_str(what)?;
                sync.threads.into_iter().for_each(|thread| drop(places.channel(thread)));
            }
            "MESSAGE_CREATE" => self.created(seq, serde_json::from_str(what)?),
            "MESSAGE_UPDATE" => self.updated(seq, serde_json::from_str(what)?),
            "INTERACTION_CREATE" => self.interacted(seq, serde_json::from_str(what)?),
            _ => {}
        }
        Ok(())
    }

    fn created(&mut self, seq: u64, message: api::Message) {
        match concern(&message, self.lookup.us) {
            Concern::Echo => {
                if let Some(api::Nonce::Text(nonce)) = message.nonce {
                    self.lookup.places.note_echo(nonce, message.id);
                }
            }
            Concern::Said => {
                let lookup = self.lookup.clone();
                self.wait_for(seq, None, async move { lookup.said(&message, Past::Told).await });
            }
            Concern::Nothing => {}
        }
    }

    fn updated(&mut self, seq: u64, message: api::Message) {
        // Discord changes messages too, to add a preview of a link, and does not call that an edit.
        let is_edit = message.edited_timestamp.is_some();
        if is_edit && concern(&message, self.lookup.us) == Concern::Said {
            let lookup = self.lookup.clone();
            self.wait_for(seq, None, async move { lookup.edited(&message).await });
        }
    }

    fn interacted(&mut self, seq: u64, interaction: api::Interaction) {
        if !matches!(interaction.kind, COMMAND | PRESS) {
            return;
        }
        let api::Interaction { id, kind, ref token, .. } = interaction;
        let question = Question { id, kind, token: token.clone() };
        let lookup = self.lookup.clone();
        let read = async move { lookup.interaction(&interaction).await };
        self.wait_for(seq, Some(question), read);
    }

    fn wait_for(
        &mut self,
        seq: u64,
        question: Option<Question>,
        read: impl Future<Output = Option<Inbound>> + Send + 'static,
    ) {
        let step = async move {
            let inbound = read.await;
            // What makes no event is not answered either.
            let question = question.filter(|_| inbound.is_some());
            Ok(vec![Step::Live { seq, inbound, question }])
        };
        self.work.push_back(step.boxed());
    }
}

fn closed(reason: Option<(u16, String)>) -> LinkError {
    let code = reason.as_ref().map(|(code, _)| *code);
    let words =
        reason.map_or("no reason given".to_owned(), |(code, words)| format!("{words} ({code})"));
    match verdict(code) {
        Verdict::Unauthorized => LinkError::Unauthorized { reason: words },
        // Connecting again says what a person has to do.
        Verdict::Refused { problem, .. } => LinkError::Lost { reason: problem.to_owned() },
        Verdict::Resume | Verdict::Begin => {
            LinkError::Lost { reason: format!("Discord hung up: {words}") }
        }
    }
}
