//! Who watches from outside: is told what happens in conversations, and asked before some of it does.
//!
//! What happens in a conversation is told once it is durable, and never twice; a process that dies at the
//! wrong moment tells nobody. What arrives is shown before it is: a platform that repeats what is in the
//! journal already is of no interest, but one that repeats what a process died over is.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{self, BoxFuture};
use talaria_model::{
    Address, Addressed, AgentEvent, CallId, EntryBody, EventId, Failure, Inbound, InboundKind,
    Message, Sender, SessionId, Timestamp, ToolCall, TurnId,
};
use talaria_session::{
    Command, Edits, Effect, Event, Given, Life, Meant, Retired, Session, SessionKey, acts_at_once,
    meant,
};
use talaria_store::StoreError;

use crate::accounts::ConnectedAccount;
use crate::shared::Shared;

/// How long whoever watches may take over all that arrives at once. Nothing else is heard on the account
/// in the meantime, not even that its platform asks whether we are still there.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// The same from when there is something on the account that somebody may want to stop: a stop behind it is
/// to act within a second.
const HURRIED_LOOK: Duration = Duration::from_millis(600);

/// Who watches. Telling must not wait. Asking holds up what comes in on the account: an answer is there
/// by the time that was named with the question.
#[async_trait]
pub trait Watcher: Send + Sync {
    /// Whether anybody watches at all. Nothing is prepared for nobody.
    fn watches(&self) -> bool;

    /// Something happened in a conversation.
    fn happened(&self, happening: &Happening);

    /// Something arrived, and nobody has decided yet whether its sender is let in.
    async fn arriving(&self, platform: &'static str, inbound: &Inbound, say: Say) -> Arriving;

    /// Somebody gives a command that they may give.
    async fn commanded(&self, order: &Order<'_>) -> Commanded;
}

/// Whether who watches has a say in something.
#[derive(Debug, Clone)]
pub enum Say {
    /// Until nobody waits for it any more. Later it is as if nothing had been said.
    Until(Patience),
    /// It is only told: what stops something or answers a question waits for nobody.
    None,
}

/// How long who watches is waited for. It can turn out to be shorter than it was at first.
pub type Patience = future::Shared<BoxFuture<'static, ()>>;

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
    /// Whether anybody has a say in it.
    pub say: Say,
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

    async fn arriving(&self, _: &'static str, _: &Inbound, _: Say) -> Arriving {
        Arriving::Goes
    }

    async fn commanded(&self, _: &Order<'_>) -> Commanded {
        Commanded::Goes
    }
}

/// Whether who watches is shown something that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    No,
}

/// Which events of a batch are shown to who watches: none that is in the journal already or stands in the
/// batch before, and none of another account.
pub(crate) async fn shown(
    shared: &Shared,
    account: &ConnectedAccount,
    events: &[Inbound],
) -> Result<Vec<Shown>, StoreError> {
    if !shared.watcher.watches() || events.is_empty() {
        return Ok(vec![Shown::No; events.len()]);
    }
    let ids: Vec<EventId> = events.iter().map(|event| event.id.clone()).collect();
    let mut known: HashSet<EventId> =
        shared.store.journalled(&account.id, &ids).await?.into_iter().collect();
    let shown = events.iter().map(|event| {
        let is_ours = event.to.account == account.id;
        if is_ours && known.insert(event.id.clone()) { Shown::Yes } else { Shown::No }
    });
    Ok(shown.collect())
}

/// The say that who watches has in a batch that arrives now.
pub(crate) fn say(shared: &Arc<Shared>, account: &ConnectedAccount, events: &[Inbound]) -> Say {
    let (shared, account) = (shared.clone(), account.id.clone());
    let has_stop = events.iter().any(waits_for_nobody);
    let patience = async move {
        let hurried = async {
            if !has_stop {
                shared.turns.work_on(&account).await;
            }
            shared.clock.sleep(HURRIED_LOOK).await;
        };
        tokio::select! {
            () = hurried => {}
            () = shared.clock.sleep(LONGEST_LOOK) => {}
        }
    };
    Say::Until(patience.boxed().shared())
}

/// Lets the watcher see what arrives. Says why nobody will answer it, if nobody will.
pub(crate) async fn arriving(
    shared: &Shared,
    platform: &'static str,
    inbound: &mut Inbound,
    say: Say,
) -> Option<String> {
    let is_told = acts_at_once(text(inbound)?);
    let say = if is_told { Say::None } else { say };
    let seen = shared.watcher.arriving(platform, inbound, say).await;
    match seen {
        _ if is_told => None,
        Arriving::Goes => None,
        Arriving::Dropped(why) => Some(why),
        Arriving::Rewritten(words) => {
            text(inbound)?.text = words;
            None
        }
    }
}

/// Lets the watcher decide about a command that whoever gives it may give. What it decides is written down
/// with what arrived.
pub(crate) async fn commanded(
    shared: &Shared,
    account: &ConnectedAccount,
    key: &SessionKey,
    inbound: &mut Inbound,
    say: Say,
) {
    let rules = shared.rules_for(key);
    // Where a change is not answered, it commands nothing.
    let is_read = match &inbound.kind {
        InboundKind::Said(_) => true,
        InboundKind::Edited(_) => rules.edits == Edits::Answered,
        InboundKind::Pressed(_) | InboundKind::Stopped => false,
    };
    let by = account.authority(inbound);
    let Some(message) = text(inbound).filter(|_| is_read) else { return };
    if message.addressed != Addressed::ToUs {
        return;
    }
    let Meant::Command(given) = meant(message, &rules.quick, &by) else { return };
    let is_told = given.command.is_some_and(Command::acts_at_once);
    let say = if is_told { Say::None } else { say };
    let platform = account.plan().account.spec.name;
    let order = Order { platform, key, inbound, given: &given, say };
    let decided = shared.watcher.commanded(&order).await;
    let Some(message) = text(inbound).filter(|_| !is_told) else { return };
    match decided {
        Commanded::Goes => {}
        Commanded::Rewritten(words) => message.text = words,
        Commanded::Answered(words) => message.answered = Some(words),
    }
}

/// Whether something stops something or answers a question.
fn waits_for_nobody(inbound: &Inbound) -> bool {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => acts_at_once(message),
        InboundKind::Pressed(_) | InboundKind::Stopped => true,
    }
}

fn text(inbound: &mut Inbound) -> Option<&mut Message> {
    match &mut inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => Some(message),
        InboundKind::Pressed(_) | InboundKind::Stopped => None,
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
