//! One step of a session: stepped, made durable, and only then carried out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use talaria_model::{
    Address, AgentEvent, Cost, Entry, Failure, Outbound, OutboundId, RoleId, Sender, Seq,
    SessionId, TurnId, Usage,
};
use talaria_session::{Begun, Effect, Event, Phase, Request, Session, Start, TurnInHand, Unsaid};
use talaria_store::{Commit, Owner, StoreError};

use super::Beginning;
use super::driver::Driver;
use super::events::{after_panics, barred, begins_unheard, deny, look_again, place_of, refused};
use crate::backoff::Backoff;
use crate::bystanders;
use crate::delivery::{shows_words, withdrawal};
use crate::memory::Change;
use crate::preview::Past;
use crate::requests::{self, Asking};
use crate::spending::{self, Bill, Settled};
use crate::turn::{self, TurnHandle};

/// What came of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Stepped {
    /// It is taken in, if there is a session for it. The delivery that its turn in hand has next, if there is one.
    Done(Option<u32>),
    /// It panicked over and over, and nothing of it happened.
    GivenUp,
}

impl Driver {
    /// Steps the session, makes the step durable, lets its effects happen.
    pub(super) async fn step(&mut self, mut event: Event) -> Stepped {
        if let (Event::Restarted { .. }, Some(session)) = (&event, &self.session) {
            self.inherited = session.hand().map(|hand| OutboundId {
                session: session.id.clone(),
                delivery: hand.delivery,
                part: 0,
            });
            // Nobody is told anything who is not heard any more.
            if let Some(barred) = barred(&self.shared, session)
                && Box::pin(self.step(barred)).await == Stepped::GivenUp
            {
                return Stepped::GivenUp;
            }
        }
        // What is tried again is judged by what was so before it was tried.
        let refused_before = self.refused.as_ref().map(|(turn, _)| turn.clone());
        let mut backoff = self.shared.spread.backoff();
        let mut failures = 0;
        let mut panics = 0;
        loop {
            if failures > 0 {
                look_again(&self.shared, &mut event);
                if let Some((rows, why)) = refused(&event) {
                    deny(&self.shared, &self.lane.key, &rows, why).await;
                    break;
                }
            }
            let now = self.shared.clock.now();
            let mut next = match (&self.session, place_of(&event)) {
                (Some(session), _) => session.clone(),
                (None, Some(place)) => Session::begin(
                    self.lane.key.clone(),
                    place.clone(),
                    now,
                    self.shared.rules_for(&self.lane.key),
                ),
                // A session that never began has nothing to hear about.
                (None, None) => return Stepped::Done(None),
            };
            let unsaid = match (&event, &self.turn) {
                // An agent that reports says itself what it has said.
                (Event::Agent { .. }, _) => Unsaid::default(),
                (_, None) => Unsaid { begun: Begun::No, ..Unsaid::default() },
                (_, Some(turn)) => turn.unsaid(),
            };
            let untold = unsaid.used.unwrap_or_default();
            // What stands beside what it hears, and what it has overheard, may be read in this step.
            bystanders::judge_again(&self.shared, &mut event);
            bystanders::judge_held(&self.shared, &mut next);
            let stepped = std::panic::catch_unwind(AssertUnwindSafe(|| {
                let effects = next.step_amid(event.clone(), now, unsaid);
                let commit = self.commit_of(&next, &effects);
                (next, effects, commit)
            }));
            let (next, effects, commit) = match stepped {
                Ok(stepped) => stepped,
                Err(_) => {
                    panics += 1;
                    tracing::error!(session = %self.lane.key, panics, "a step panicked");
                    let Some((instead, rest)) = after_panics(event, panics) else {
                        return Stepped::GivenUp;
                    };
                    event = instead;
                    self.lane.put_back(rest, now);
                    continue;
                }
            };
            // Where a turn ends or something is said again, what was said before begins the next one.
            if let Some(before) = &self.session
                && begins_unheard(&self.shared, before, &effects)
                && let Some(barred) = barred(&self.shared, before)
            {
                match Box::pin(self.step(barred)).await {
                    Stepped::Done(_) => continue,
                    // What cannot be denied does not begin either.
                    Stepped::GivenUp => return Stepped::GivenUp,
                }
            }
            let shared = self.shared.clone();
            let used = spending::reported(&event).or_else(|| spending::left(&effects, untold));
            let (before, refused) = (self.session.as_ref(), refused_before.as_ref());
            let bill = Bill::of(&self.shared, before, refused, used, &next, &effects, now);
            let settled = match bill.settle(&shared).await {
                Ok(settled) => settled,
                Err(error) => {
                    failures += 1;
                    self.rest(&mut backoff, &error).await;
                    continue;
                }
            };
            let Settled { rows, refused, unaffordable, counters } = settled;
            if let Some(instead) = unaffordable.and_then(|why| spending::unaffordable(&event, why))
            {
                event = instead;
                continue;
            }
            let commit = Commit { spending: rows, ..commit };
            if effects.iter().any(|effect| matches!(effect, Effect::Start(_))) {
                self.refused = refused;
            }
            let parcels = commit.outbox.clone();
            let _deciding = crate::chats::decide(&self.shared, &parcels).await;
            // A model is not asked again for every time that the disk is full.
            let begins = (failures == 0).then(|| self.begins_at_once(&effects)).flatten();
            let change = Change::of(&commit);
            let written = self.write(commit, &next, &change, begins).await;
            drop(counters);
            match written {
                Ok(begun) => {
                    self.memory.follow(&next, change);
                    let before = self.session.as_ref();
                    let watched = &mut self.watched;
                    crate::watching::tell(&self.shared, watched, before, &next, &event, &effects);
                    crate::passing::stepped(
                        &self.shared,
                        before,
                        &next,
                        &event,
                        &effects,
                        &parcels,
                    );
                    self.shared.open_questions.follow(self.session.as_ref(), &next);
                    self.lane.does(Some(&next), next.updated);
                    self.session = Some(next);
                    crate::chats::offer(&self.shared, parcels, self.inherited.as_ref());
                    self.perform(effects, begun);
                    break;
                }
                Err(error) => {
                    // Nothing was written, so the same event is stepped again from the same state.
                    tracing::warn!(session = %self.lane.key, %error, "a step cannot be made durable");
                    failures += 1;
                    self.shared.clock.sleep(backoff.next()).await;
                }
            }
        }
        let hand = self.session.as_ref().and_then(Session::hand);
        Stepped::Done(hand.map(|hand| hand.delivery))
    }

    /// Waits before the store is asked again what was spent.
    async fn rest(&self, backoff: &mut Backoff, error: &StoreError) {
        tracing::warn!(session = %self.lane.key, %error, "what was spent cannot be read");
        self.shared.clock.sleep(backoff.next()).await;
    }

    /// Makes a step durable. A turn that begins with it does not wait for the disk: its agent begins to
    /// think meanwhile. If the step is not made durable, that turn is dropped.
    async fn write(
        &self,
        commit: Commit,
        next: &Session,
        change: &Change,
        begins: Option<&Start>,
    ) -> Result<Option<TurnHandle>, StoreError> {
        let Some(start) = begins else {
            return self.shared.store.commit(commit).await.map(|()| None);
        };
        let begin = async {
            let history = match self.memory.with(next, change, self.shared.limits.history) {
                Some(history) => Some(history),
                None => self.read_history(&start.turn.session, &change.recorded).await,
            };
            // Reading takes its time: an end that began meanwhile waits for no turn that it cannot see.
            (!self.shared.is_draining()).then(|| self.begin(start.clone(), next, history))
        };
        let (committed, turn) = futures::join!(self.shared.store.commit(commit), begin);
        committed.map(|()| turn)
    }

    /// The transcript while a step is written that adds to it. A turn that is given none reads it for
    /// itself.
    async fn read_history(&self, life: &SessionId, recorded: &[Entry]) -> Option<Vec<Entry>> {
        let limit = self.shared.limits.history.saturating_sub(recorded.len()).max(1);
        let mut read = self.shared.store.history(life, limit).await.ok()?;
        if let Some(first) = recorded.first() {
            // The reader may have seen the step or not.
            read.retain(|entry| entry.number < first.number);
            read.extend_from_slice(recorded);
        }
        Some(read)
    }

    /// The turn that a step begins, if it does nothing besides and there is a place for it.
    fn begins_at_once<'a>(&self, effects: &'a [Effect]) -> Option<&'a Start> {
        let mut begins = None;
        for effect in effects {
            match effect {
                Effect::Start(start) => begins = Some(start),
                Effect::Bind { .. } | Effect::Record { .. } => {}
                _ => return None,
            }
        }
        // What resumes a turn counts the deaths of the process during it, which has to be durable.
        let is_new = effects.iter().any(|effect| matches!(effect, Effect::Bind { .. }));
        let at_once = is_new
            && self.lane.lock().beginning == Beginning::AtOnce
            && !self.shared.is_draining()
            && !self.is_out();
        begins.filter(|_| at_once && self.shared.turn_permits.available_permits() > 0)
    }

    fn begin(&self, start: Start, session: &Session, history: Option<Vec<Entry>>) -> TurnHandle {
        let beginning = turn::Beginning {
            situation: Arc::new(crate::situation::of(&self.shared, session, &start)),
            delivery: session.hand().map_or(0, |hand| hand.delivery),
            inherited: self.inherited.clone(),
            history,
            refused: self
                .refused
                .clone()
                .filter(|(turn, _)| *turn == start.turn)
                .map(|(_, why)| why),
            start,
        };
        turn::start(&self.shared, self.lane.clone(), beginning)
    }

    fn commit_of(&self, next: &Session, effects: &[Effect]) -> Commit {
        let mut commit = crate::commits::of(&self.shared, next, effects);
        commit.outbox.extend(self.withdrawn(next, &commit.outbox));
        commit
    }

    /// What takes away the preview of a turn that ends without a word in its place.
    fn withdrawn(&self, next: &Session, said: &[Outbound]) -> Option<Outbound> {
        let before = self.session.as_ref()?;
        let TurnInHand { delivery, to, .. } = before.hand()?;
        let id = OutboundId { session: before.id.clone(), delivery: *delivery, part: 0 };
        let still = next.hand().filter(|hand| next.id == before.id && hand.delivery == *delivery);
        let replaced = said.iter().any(|outbound| outbound.id == id);
        let can = self.shared.capabilities(to);
        if still.is_some() || replaced || !shows_words(&can) {
            return None;
        }
        let past = if self.inherited.as_ref() == Some(&id) { Past::Unknown } else { Past::None };
        Some(withdrawal(id, to.clone(), &can, past))
    }

    fn perform(&mut self, effects: Vec<Effect>, mut begun: Option<TurnHandle>) {
        for effect in effects {
            match effect {
                // It is in hand, so the next run begins it.
                Effect::Start(_) if begun.is_none() && self.shared.is_draining() => {
                    self.turn = None
                }
                // It is in hand, and begins when the account is back.
                Effect::Start(_) if begun.is_none() && self.is_out() => {
                    self.turn = None;
                    self.put_off = true;
                }
                Effect::Start(start) => {
                    let begun = begun.take();
                    self.turn =
                        begun.or_else(|| Some(self.begin(start, self.session.as_ref()?, None)));
                    self.turn.iter().for_each(TurnHandle::confirm);
                }
                Effect::Tell { turn, word } => {
                    if let Some(handle) = self.turn.as_mut().filter(|handle| handle.turn == turn) {
                        handle.tell(word);
                    }
                }
                Effect::Abandon(turn) => {
                    if self.turn.as_ref().is_some_and(|handle| handle.turn == turn) {
                        self.turn = None;
                    }
                }
                Effect::DropUnread { before, .. } => self.lane.lock().drop_before(before),
                Effect::Forward { to, .. } => crate::lanes::look(&self.shared, to),
                Effect::Pass { to, passed } => {
                    crate::lanes::tell(&self.shared, to, Event::Passed(passed));
                }
                Effect::Send(outbound) => crate::destinations::tell(&self.shared, outbound),
                Effect::Ask { seq, from, roles, at, request } => {
                    self.ask(seq, from, roles, at, request);
                }
                Effect::Take(_)
                | Effect::Bind { .. }
                | Effect::Close { .. }
                | Effect::Conceal { .. }
                | Effect::Record { .. }
                | Effect::Rewind { .. }
                | Effect::Branch { .. }
                | Effect::Retire { .. }
                | Effect::Post(_)
                | Effect::Replace(_)
                | Effect::Grant(_)
                | Effect::Attest(_) => {}
            }
        }
    }

    /// What ends a turn that has spent all that there was.
    pub(super) async fn overdrawn(&mut self, spender: TurnId) -> Option<Event> {
        let session = self.session.as_ref()?;
        let Phase::Thinking(hand) = &session.phase else { return None };
        if hand.turn != spender {
            return None;
        }
        let failure = Failure::OverBudget(spending::overdrawn(&self.shared, session, hand).await?);
        // Nobody listens to the agent any more, so it is asked what it had begun to say.
        let said = self.turn.take().map(|turn| turn.unsaid().text).unwrap_or_default();
        let (usage, cost) = (Usage::default(), Cost::FREE);
        Some(Event::Agent {
            turn: spender,
            event: AgentEvent::Failed { failure, said, usage, cost },
        })
    }

    fn ask(&self, seq: Seq, from: Sender, roles: Vec<RoleId>, at: Address, request: Request) {
        let Some(session) = &self.session else { return };
        let asking = Asking {
            key: session.key.clone(),
            life: session.id.clone(),
            owner: Owner::of(session),
            seq,
            from,
            roles,
            chat: session.counts_for(&at.chat.id).clone(),
            at,
            request,
        };
        requests::ask(&self.shared, asking);
    }
}
