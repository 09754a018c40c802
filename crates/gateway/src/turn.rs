//! One turn of the agent: drives it, makes what it does durable, passes on what it is told.

mod consent;

use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use talaria_agent::tools::SendMessage;
use talaria_agent::{Elsewhere, History, Permitted, Preview, Running, Situation, Turn};
use talaria_clock::Sleep;
use talaria_model::{
    AgentEvent, Cost, Entry, Failure, OutboundId, Progress, Sending, TurnId, Usage, Used, Word,
};
use talaria_session::{Begun, Deed, Person, Start, Unsaid};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::lane::Lane;
use crate::marks::{self, Marking};
use crate::preview::{Live, Past, Shown, said_in};
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};
use crate::turns::InHand;

pub(crate) use consent::may_approve;

/// How long an agent has to stop by itself. People expect a stop within a second.
const STOP_GRACE: Duration = Duration::from_millis(700);

/// How long the store rests that could not answer.
const STORE_REST: Duration = Duration::from_secs(1);

/// Words that wait for an agent to listen.
const WORDS: usize = 32;

/// What the model is told of a message that it may not send.
const NOT_GRANTED: &str =
    "The person you work for may not send messages to that chat. Nothing was sent.";

/// Room among them that steers leave to an answer and a stop.
const SPARE: usize = 2;

/// The way to a turn. Dropping it abandons the turn.
pub(crate) struct TurnHandle {
    pub(crate) turn: TurnId,
    ear: Ear,
    /// What the agent writes, from when it has begun.
    written: Arc<OnceLock<watch::Receiver<Preview>>>,
    durable: CancellationToken,
    stopped: CancellationToken,
    abandoned: CancellationToken,
}

impl TurnHandle {
    /// Says that the step which began the turn is durable. Until then the agent may think, and nobody
    /// sees or hears anything of it.
    pub(crate) fn confirm(&self) {
        self.durable.cancel();
    }

    /// Whether its agent has begun. One that waits for a place has not.
    pub(crate) fn begun(&self) -> Begun {
        if self.written.get().is_some() { Begun::Yes } else { Begun::No }
    }

    /// What the agent has not said yet: what can be read of it, and what it used.
    pub(crate) fn unsaid(&self) -> Unsaid {
        match self.written.get() {
            Some(preview) => {
                let preview = preview.borrow();
                let text = said_in(&preview).to_owned();
                Unsaid { text, used: preview.untold, begun: Begun::Yes }
            }
            // Nobody was asked yet.
            None => {
                let used = Some(Used::default());
                Unsaid { text: String::new(), used, begun: Begun::No }
            }
        }
    }

    /// Passes a word on. A stop always gets through.
    pub(crate) fn tell(&mut self, word: Word) {
        match word {
            Word::Stop => self.stopped.cancel(),
            word => self.ear.tell(word),
        }
    }
}

/// A bounded way to somebody who may not be listening.
struct Ear {
    words: mpsc::Sender<Word>,
    deaf: bool,
}

impl Ear {
    /// A steer that finds no room is still in the session and begins the next turn. Then so does
    /// every later one, because nothing that is said may overtake what was said before.
    fn tell(&mut self, word: Word) {
        if let Word::Steer(_) = word {
            self.deaf |= self.words.capacity() <= SPARE;
            if self.deaf {
                return;
            }
        }
        if self.words.try_send(word).is_err() {
            tracing::debug!("the agent is not listening");
        }
    }
}

impl Drop for TurnHandle {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

/// What a turn begins with.
pub(crate) struct Beginning {
    pub(crate) start: Start,
    pub(crate) situation: Arc<Situation>,
    /// The delivery that its first words will have.
    pub(crate) delivery: u32,
    /// The delivery that a turn of the last run left open.
    pub(crate) inherited: Option<OutboundId>,
    /// The transcript, where it was read already.
    pub(crate) history: Option<Vec<Entry>>,
    /// Why its agent is not asked at all.
    pub(crate) refused: Option<Failure>,
}

/// Starts a turn in a task of its own.
pub(crate) fn start(shared: &Arc<Shared>, lane: Arc<Lane>, beginning: Beginning) -> TurnHandle {
    let Beginning { start, situation, delivery, inherited, history, refused } = beginning;
    let (words, heard) = mpsc::channel(WORDS);
    let handle = TurnHandle {
        turn: start.turn.clone(),
        ear: Ear { words, deaf: false },
        written: Arc::default(),
        durable: CancellationToken::new(),
        stopped: CancellationToken::new(),
        abandoned: CancellationToken::new(),
    };
    let (stopped, abandoned) = (handle.stopped.clone(), handle.abandoned.clone());
    let (durable, written) = (handle.durable.clone(), handle.written.clone());
    // Before there is a task that somebody might not wait for. A turn whose question is open does not work.
    let in_hand = start.asked.is_none().then(|| InHand::new(shared, &start.turn, &start.to));
    let task = {
        let shared = shared.clone();
        async move {
            let (id, told) = (start.turn.clone(), lane.clone());
            let confirmed = durable.clone();
            let turn = InProgress {
                shared,
                lane,
                start,
                situation,
                inherited,
                history,
                heard,
                written,
                durable,
                stopped,
                in_hand,
                refused,
            };
            let run = async {
                if let Err(Panicked) = calm(turn.run(delivery)).await {
                    confirmed.cancelled().await;
                    let failed = unfinished(panicked(&id), String::new(), None);
                    told.agent(id, failed).await;
                }
            };
            tokio::select! {
                biased;
                () = abandoned.cancelled() => {}
                () = run => {}
            }
        }
    };
    shared.tasks.spawn(task);
    handle
}

/// A place among the turns that may run at once.
struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    _in_hand: InHand,
}

struct InProgress {
    shared: Arc<Shared>,
    lane: Arc<Lane>,
    start: Start,
    situation: Arc<Situation>,
    inherited: Option<OutboundId>,
    /// The transcript, where it was read already.
    history: Option<Vec<Entry>>,
    heard: mpsc::Receiver<Word>,
    written: Arc<OnceLock<watch::Receiver<Preview>>>,
    durable: CancellationToken,
    stopped: CancellationToken,
    /// Why its agent is not asked at all.
    refused: Option<Failure>,
    /// That it is being taken, until it has a place.
    in_hand: Option<InHand>,
}

impl InProgress {
    async fn run(mut self, mut delivery: u32) {
        let (durable, stopped) = (self.durable.clone(), self.stopped.clone());
        let begun = match self.refused.take() {
            Some(failure) => {
                durable.cancelled().await;
                Err(failure)
            }
            None => tokio::select! {
                biased;
                () = stopped.cancelled() => Err(Failure::Stopped),
                begun = self.begin() => Ok(begun),
            },
        };
        let (mut place, Running { preview, mut events, control }) = match begun {
            Ok(begun) => begun,
            Err(failure) => {
                // Nobody was asked yet.
                let (said, usage, cost) = (String::new(), Usage::default(), Cost::FREE);
                let event = AgentEvent::Failed { failure, said, usage, cost };
                self.lane.agent(self.start.turn.clone(), event).await;
                return;
            }
        };
        // An agent begins once.
        let _ = self.written.set(preview.clone());
        let mut ear = Ear { words: control, deaf: false };
        // The agent may think as far as its first report. Whatever comes of a turn whose beginning is
        // not durable would come out of nothing.
        let mut early = tokio::select! {
            biased;
            () = durable.cancelled() => None,
            reported = calm(events.next()) => Some(reported),
        };
        durable.cancelled().await;
        let marking = self.mark(delivery);
        let mut live = place.is_some().then(|| self.show(delivery, &preview));
        let mut grace: Option<Sleep> = None;
        let outcome = loop {
            let reported = async {
                match early.take() {
                    Some(reported) => reported,
                    None => calm(events.next()).await,
                }
            };
            let event = tokio::select! {
                biased;
                Some(word) = self.heard.recv() => {
                    if matches!(word, Word::Answer { .. }) && place.is_none() {
                        place = tokio::select! {
                            biased;
                            () = stopped.cancelled() => None,
                            place = self.place() => Some(place),
                        };
                        live = Some(self.show(delivery, &preview));
                    }
                    // On the heap only while it lasts: most turns are asked nothing.
                    ear.tell(Box::pin(self.of_this_moment(word)).await);
                    continue;
                }
                () = stopped.cancelled(), if grace.is_none() => {
                    grace = Some(self.shared.clock.sleep(STOP_GRACE));
                    ear.tell(Word::Stop);
                    continue;
                }
                () = passed(&mut grace) => failed(Failure::Stopped, &preview),
                reported = reported => match reported {
                    Ok(Some(event)) => event,
                    Ok(None) => failed(sorry("The agent ended without an answer."), &preview),
                    Err(Panicked) => failed(panicked(&self.start.turn), &preview),
                },
            };
            let event = self.known(event).await;
            let ends = matches!(event, AgentEvent::Finished { .. } | AgentEvent::Failed { .. });
            let asks = matches!(event, AgentEvent::Asked(_));
            let outcome = outcome(&event);
            if asks {
                // While a person is asked, somebody else may have the place.
                place = None;
            } else if place.is_none() && !ends {
                // It goes on without an answer: what was asked before a restart is not the same any more.
                place = tokio::select! {
                    biased;
                    () = stopped.cancelled() => None,
                    place = self.place() => Some(place),
                };
            }
            let next = self.lane.agent(self.start.turn.clone(), event).await;
            match next {
                Some(next) if !ends && next == delivery => {}
                Some(next) if !ends => {
                    delivery = next;
                    // Nobody is typing but the person who is asked.
                    live = (!asks).then(|| self.show(delivery, &preview));
                }
                _ => break outcome,
            }
        };
        drop((live, place));
        marking.end(outcome);
    }

    /// Waits for a place and lets the agent begin. A turn whose question is open needs no place
    /// before it is answered.
    async fn begin(&mut self) -> (Option<Place>, Running) {
        let place = match self.start.asked {
            None => Some(self.place().await),
            Some(_) => None,
        };
        let turn = self.turn().await;
        let agent = self.shared.agent.read().unwrap_or_else(PoisonError::into_inner).clone();
        (place, agent.start(turn))
    }

    /// Waits for a place among the turns that may run at once. Whoever has to wait while the gateway ends gets
    /// none: the turn is in hand, the next run goes on with it, and nothing waits for it any more. Until it is
    /// cut off, it can still be stopped.
    async fn place(&mut self) -> Place {
        let Start { turn, to, .. } = &self.start;
        let in_hand = self.in_hand.take();
        let mut in_hand = in_hand.unwrap_or_else(|| InHand::new(&self.shared, turn, to));
        let permits = self.shared.turn_permits.clone();
        let permit = match permits.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => tokio::select! {
                biased;
                () = self.shared.draining.cancelled() => {
                    drop(in_hand);
                    return std::future::pending().await;
                }
                permit = permits.acquire_owned() => permit.ok(),
            },
        };
        in_hand.works();
        Place { _permit: permit, _in_hand: in_hand }
    }

    async fn turn(&mut self) -> Turn {
        let entries = match self.history.take() {
            Some(entries) => entries,
            None => {
                self.durable.cancelled().await;
                self.read_history().await
            }
        };
        Turn {
            id: self.start.turn.clone(),
            at: self.start.to.clone(),
            from: self.start.from.clone(),
            history: match entries.len() < self.shared.limits.history {
                true => History::Whole,
                false => History::Newest,
            },
            entries,
            started: self.start.started.clone(),
            asked: self.start.asked.clone(),
            limit: self.start.deadline.since(self.shared.clock.now()),
            situation: self.situation.clone(),
            model: self.model(),
            effort: self.start.effort,
            task: self.start.task.clone(),
            skills: self.start.skills.clone(),
            attended: self.start.attended,
            tools: self.permitted(),
            elsewhere: self.elsewhere(),
        }
    }

    /// The model that was chosen for the conversation, if the one who is answered may have it.
    fn model(&self) -> Option<String> {
        let chosen = self.start.model.as_ref()?;
        let account = self.shared.accounts.get(&self.start.to.account);
        let person = account.and_then(|account| account.person(&self.start.from.id));
        may_choose(&self.shared, person.as_deref(), chosen).then(|| chosen.clone())
    }

    /// The tools that the one who is answered may use, looked up whenever one is: whoever is put out meanwhile
    /// has none.
    fn permitted(&self) -> Permitted {
        let shared = self.shared.clone();
        let Start { from, to, roles, .. } = &self.start;
        let (from, to, roles) = (from.clone(), to.clone(), roles.clone());
        let elsewhere = self.elsewhere();
        Permitted::by(move |tool| {
            // On an account that is taken out, nobody has any: it may have been for what was done in its name.
            let account = shared.accounts.get(&to.account);
            let is_theirs = account.is_some_and(|account| {
                let by = account.authority_in(&from, &to, &roles);
                let is_granted = by.person.as_ref().is_none_or(|person| person.may_use(tool));
                by.may(Deed::Speak) && is_granted
            });
            is_theirs && (tool != SendMessage::NAME || !elsewhere.places().is_empty())
        })
    }

    /// Where messages may be sent for the one who is answered, looked up whenever one is.
    fn elsewhere(&self) -> Elsewhere {
        let shared = self.shared.clone();
        let Start { from, to, roles, .. } = &self.start;
        let (from, to, roles) = (from.clone(), to.clone(), roles.clone());
        Elsewhere::by(move || crate::destinations::of(&shared, &from, &to, &roles))
    }

    async fn read_history(&self) -> Vec<Entry> {
        let session = &self.start.turn.session;
        let limit = self.shared.limits.history;
        loop {
            match self.shared.store.history(session, limit).await {
                Ok(entries) => return entries,
                Err(error) => {
                    tracing::warn!(turn = %self.start.turn, %error, "the transcript cannot be read");
                    self.shared.clock.sleep(STORE_REST).await;
                }
            }
        }
    }

    /// What an agent reports, as far as it is so: what it asks for was approved for good if the store knows
    /// that, and it sends where the person may. What cannot be looked up was not approved.
    async fn known(&self, mut event: AgentEvent) -> AgentEvent {
        if let AgentEvent::Asked(question) = &mut event
            && let Some(approval) = &mut question.approval
        {
            self.look_up(approval).await;
        }
        if let AgentEvent::Called { output, sends, failed, .. } = &mut event
            && !sends.is_empty()
            && !self.may_send(sends)
        {
            tracing::warn!(turn = %self.start.turn, "a message for a chat that nobody granted");
            sends.clear();
            (*output, *failed) = (NOT_GRANTED.to_owned(), true);
        }
        event
    }

    /// Whether all of these go where they may. Whatever an agent believes, nothing else leaves.
    fn may_send(&self, sends: &[Sending]) -> bool {
        let places = self.elsewhere().places();
        sends.iter().all(|sending| places.iter().any(|place| place.to == sending.to))
    }

    /// Shows on the message that began the turn that somebody works on it.
    fn mark(&self, delivery: u32) -> Marking {
        let Start { turn, to, answers, .. } = &self.start;
        let id = OutboundId { session: turn.session.clone(), delivery, part: 0 };
        marks::begin(&self.shared, to, id, answers.clone())
    }

    fn show(&self, delivery: u32, preview: &watch::Receiver<Preview>) -> Live {
        let session = self.start.turn.session.clone();
        let id = OutboundId { session, delivery, part: 0 };
        let past = if self.inherited.as_ref() == Some(&id) { Past::Unknown } else { Past::None };
        let (answers, preview) = (self.start.answers.clone(), preview.clone());
        let shown = Shown { id, answers, preview, past };
        crate::chats::show(&self.shared, self.start.to.clone(), shown)
    }
}

/// Whether somebody may choose the model of this whole name.
pub(crate) fn may_choose(shared: &Shared, person: Option<&Person>, whole: &str) -> bool {
    let Some(models) = person.and_then(Person::models) else { return true };
    let is_it = |name: &String| {
        name == whole || shared.steward.model(name).is_ok_and(|meant| meant == whole)
    };
    models.iter().any(is_it)
}

/// How far the answer is after this.
fn outcome(event: &AgentEvent) -> Progress {
    match event {
        AgentEvent::Finished { .. } => Progress::Done,
        AgentEvent::Failed { failure, .. } if *failure != Failure::Stopped => Progress::Failed,
        _ => Progress::Nothing,
    }
}

/// Completes when the grace is over, and never when there is none.
async fn passed(grace: &mut Option<Sleep>) {
    match grace {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
}

fn panicked(turn: &TurnId) -> Failure {
    tracing::error!(%turn, "the agent panicked");
    sorry("Something went wrong inside me; the log has the details.")
}

fn sorry(text: &str) -> Failure {
    Failure::Model(text.to_owned())
}

fn failed(failure: Failure, preview: &watch::Receiver<Preview>) -> AgentEvent {
    let Preview { text, untold, .. } = preview.borrow().clone();
    unfinished(failure, text, untold)
}

/// The end of a turn whose agent does not report it.
fn unfinished(failure: Failure, said: String, untold: Option<Used>) -> AgentEvent {
    let Used { usage, cost } = untold.unwrap_or(Used::UNKNOWN);
    AgentEvent::Failed { failure, said, usage, cost }
}
