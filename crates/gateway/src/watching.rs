//! Who watches from outside: is told what happens in conversations, and asked before some of it does.
//!
//! What happens in a conversation is told once it is durable, and never twice; a process that dies at the
//! wrong moment tells nobody. What is asked about what arrives is the business of `scrutiny`.

use std::time::Duration;

use async_trait::async_trait;
use talaria_model::{
    Address, AgentEvent, CallId, EntryBody, Failure, Inbound, Intervention, Sender, SessionId,
    Timestamp, ToolCall, TurnId,
};
use talaria_session::{Effect, Event, Given, Life, Retired, Session, SessionKey};

use crate::shared::Shared;

/// Who watches. Telling must not wait. Asking holds up the conversation that it is about and nobody else's,
/// and has an answer before long, whatever happens.
#[async_trait]
pub trait Watcher: Send + Sync {
    /// Whether anybody watches at all. Nothing is prepared for nobody.
    fn watches(&self) -> bool;

    /// Something happened in a conversation.
    fn happened(&self, happening: &Happening);

    /// Whether who watches has a say in what arrives.
    fn judges_arrivals(&self) -> bool;

    /// Whether who watches has a say in a command.
    fn judges(&self, order: &Order<'_>) -> bool;

    /// Something arrived in which nobody else has a say: nobody answers it, or it waits for nobody.
    fn arrived(&self, platform: &'static str, inbound: &Inbound);

    /// Something arrived, and is answered unless who watches does not want that.
    async fn arriving(&self, platform: &'static str, inbound: &Inbound) -> Decided<Arriving>;

    /// Somebody gave a command that waits for nobody.
    fn ordered(&self, order: &Order<'_>);

    /// Somebody gives a command that they may give.
    async fn commanded(&self, order: &Order<'_>) -> Decided<Commanded>;
}

/// What was decided about something, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided<T> {
    /// What becomes of it.
    pub what: T,
    /// Whose doing that is; none where nobody did anything.
    pub by: Option<Intervention>,
}

impl<T> From<T> for Decided<T> {
    fn from(what: T) -> Self {
        Self { what, by: None }
    }
}

/// What becomes of something that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arriving {
    /// It goes on as it is.
    Goes,
    /// It goes on with another text.
    Rewritten(String),
    /// Nobody will answer it, and why.
    Dropped(String),
}

/// What becomes of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Commanded {
    /// It is carried out.
    Goes,
    /// Another one is carried out, or said, in its place.
    Rewritten(String),
    /// It is not carried out; the person is told this.
    Answered(String),
}

/// A command that somebody gives.
#[derive(Debug)]
pub struct Order<'a> {
    /// The kind of place it was given in.
    pub platform: &'static str,
    /// The conversation it was given in.
    pub key: &'a SessionKey,
    /// Who gives it, and where.
    pub inbound: &'a Inbound,
    /// Which it is.
    pub given: &'a Given,
}

/// Something that happened in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// The kind of place.
    pub platform: &'static str,
    /// The conversation.
    pub key: SessionKey,
    /// The life of it.
    pub life: SessionId,
    /// Where.
    pub at: Address,
    /// Whose doing it was, where that is known.
    pub from: Option<Sender>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A life of a conversation began.
    Began,
    /// A life of a conversation is over. It is told once, whatever becomes of it afterwards.
    Ended(Over),
    /// A person said that a conversation begins anew.
    Renewed,
    /// The agent begins a turn with what was said.
    TurnBegan {
        /// Which.
        turn: TurnId,
        /// What was said.
        message: String,
    },
    /// The agent called tools, and they have returned or will not any more.
    Stepped {
        /// In which turn.
        turn: TurnId,
        /// Which step of the turn it is, counting from one; from where it was taken up, if its beginning
        /// was in another process.
        iteration: u32,
        /// The calls.
        calls: Vec<Used>,
        /// How long all of them took together.
        took: Duration,
    },
    /// The agent's turn is over.
    TurnEnded {
        /// Which.
        turn: TurnId,
        /// What was said that it answers, unless another process began it.
        message: Option<String>,
        /// What was answered.
        response: String,
        /// Why it is no answer; none when it is one.
        failure: Option<Failure>,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// Which.
    pub call: ToolCall,
    /// How long after it was called it returned; none when it did not.
    pub took: Option<Duration>,
}

/// Why a life of a conversation is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It gave way to another.
    Retired(Retired),
    /// Its policy says so, and it was put away.
    Expired,
}

/// Nobody.
pub struct NoWatcher;

#[async_trait]
impl Watcher for NoWatcher {
    fn watches(&self) -> bool {
        false
    }

    fn happened(&self, _: &Happening) {}

    fn judges_arrivals(&self) -> bool {
        false
    }

    fn judges(&self, _: &Order<'_>) -> bool {
        false
    }

    fn arrived(&self, _: &'static str, _: &Inbound) {}

    async fn arriving(&self, _: &'static str, _: &Inbound) -> Decided<Arriving> {
        Arriving::Goes.into()
    }

    fn ordered(&self, _: &Order<'_>) {}

    async fn commanded(&self, _: &Order<'_>) -> Decided<Commanded> {
        Commanded::Goes.into()
    }
}

/// What who watches is told of a turn beside what its events say. It is kept while the lane of its session
/// is in memory.
#[derive(Default)]
pub(crate) struct Watched {
    turn: Option<TurnId>,
    message: Option<String>,
    steps: u32,
    /// What has been called last, until it is told of.
    step: Option<Step>,
}

/// Tools that the agent has called.
struct Step {
    iteration: u32,
    began: Timestamp,
    calls: Vec<Used>,
}

impl Step {
    fn returned(&mut self, call: &CallId, now: Timestamp) {
        let took = now.since(self.began);
        let used = self.calls.iter_mut().filter(|used| used.call.id == *call);
        used.for_each(|used| used.took = Some(took));
    }

    fn is_over(&self) -> bool {
        self.calls.iter().all(|used| used.took.is_some())
    }

    fn told(self, turn: &TurnId, now: Timestamp) -> What {
        let Self { iteration, began, calls } = self;
        What::Stepped { turn: turn.clone(), iteration, calls, took: now.since(began) }
    }
}

impl Watched {
    /// What is known of a turn; nothing of one that somebody else began.
    fn of(&mut self, turn: &TurnId) -> &mut Self {
        if self.turn.as_ref() != Some(turn) {
            *self = Self { turn: Some(turn.clone()), ..Self::default() };
        }
        self
    }

    /// What has been called, if the turn that did it is not in hand any more.
    fn left(&mut self, hand: Option<&TurnId>) -> Option<(TurnId, Step)> {
        let turn = self.turn.clone().filter(|turn| hand != Some(turn))?;
        Some((turn, self.step.take()?))
    }
}

/// Tells what a step that is durable was about.
pub(crate) fn tell(
    shared: &Shared,
    watched: &mut Watched,
    before: Option<&Session>,
    next: &Session,
    event: &Event,
    effects: &[Effect],
) {
    if !shared.watcher.watches() {
        return;
    }
    let account = shared.accounts.get(&next.key.account);
    let platform = account.map_or("unknown", |account| account.plan().account.spec.name);
    let from = next.hand().or_else(|| before.and_then(Session::hand)).map(|hand| &hand.from);
    let happened = |life: &SessionId, from: Option<&Sender>, what: What| {
        shared.watcher.happened(&Happening {
            platform,
            key: next.key.clone(),
            life: life.clone(),
            at: next.at.clone(),
            from: from.or(next.origin.as_ref().map(|origin| &origin.from)).cloned(),
            what,
        });
    };
    let now = shared.clock.now();
    if let Some((turn, step)) = watched.left(next.hand().map(|hand| &hand.turn)) {
        happened(&turn.session, from, step.told(&turn, now));
    }
    let was_put_away = before.is_some_and(|before| before.life == Life::Finalized);
    if matches!(event, Event::PutAway) && next.life == Life::Finalized && !was_put_away {
        happened(&next.id, from, What::Ended(Over::Expired));
    }
    let mut begins = before.is_none();
    for effect in effects {
        match effect {
            Effect::Retire { past, why } => {
                if !was_put_away {
                    happened(&past.id, from, What::Ended(Over::Retired(*why)));
                }
                if *why == Retired::New {
                    happened(&past.id, from, What::Renewed);
                }
                begins |= !matches!(why, Retired::Switched);
            }
            Effect::Branch { .. } => begins = true,
            _ => {}
        }
    }
    if begins {
        happened(&next.id, from, What::Began);
    }
    let is_new = effects.iter().any(|effect| matches!(effect, Effect::Bind { .. }));
    for effect in effects {
        if let (Effect::Start(start), true) = (effect, is_new) {
            let (turn, message) = (start.turn.clone(), words(effects));
            watched.of(&turn).message = Some(message.clone());
            happened(&turn.session.clone(), Some(&start.from), What::TurnBegan { turn, message });
        }
    }
    if let Event::Agent { turn, event } = event {
        // A turn that is over is not listened to, and has been told of.
        if before.and_then(Session::hand).is_none_or(|hand| hand.turn != *turn) {
            return;
        }
        let mut over = |response: &str, failure: Option<&Failure>| What::TurnEnded {
            turn: turn.clone(),
            message: std::mem::take(watched.of(turn)).message,
            response: response.to_owned(),
            failure: failure.cloned(),
        };
        let what = match event {
            AgentEvent::Stepped { calls, .. } => {
                let watched = watched.of(turn);
                watched.steps += 1;
                let calls = calls.iter().map(|call| Used { call: call.clone(), took: None });
                let step = Step { iteration: watched.steps, began: now, calls: calls.collect() };
                match watched.step.replace(step) {
                    Some(before) => before.told(turn, now),
                    None => return,
                }
            }
            AgentEvent::Called { call, .. } => {
                let watched = watched.of(turn);
                let Some(mut step) = watched.step.take() else { return };
                step.returned(call, now);
                if !step.is_over() {
                    watched.step = Some(step);
                    return;
                }
                step.told(turn, now)
            }
            AgentEvent::Finished { text, .. } => over(text, None),
            AgentEvent::Failed { failure, said, .. } => over(said, Some(failure)),
            _ => return,
        };
        happened(&turn.session, from, what);
    }
}

/// What people said that begins a turn.
fn words(effects: &[Effect]) -> String {
    let said = effects.iter().filter_map(|effect| match effect {
        Effect::Record { entry, .. } => match &entry.body {
            EntryBody::Said { text, .. } => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    });
    said.collect::<Vec<_>>().join("\n\n")
}
