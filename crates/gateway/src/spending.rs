//! What turns spend, and whether there is anything left for the next.
//!
//! What was spent is in the store and nowhere else: it is written with the step that spends it, and read
//! when somebody with a budget is about to be answered. Nothing is read for those who have none.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use talaria_model::{
    Address, AgentEvent, ChatId, Failure, Inbound, RoleId, Sender, Seq, Timestamp, TurnId, Used,
};
use talaria_session::budget::{Bounds, Budget, BudgetOf, Day, Need, Payer, Spent, begins_anew};
use talaria_session::{Authority, Effect, Event, Phase, Rules, Session, SessionKey, TurnInHand};
use talaria_store::{Spending, StoreError};
use tokio::sync::{Mutex, MutexGuard};

use crate::shared::Shared;

/// How many begin a turn at once for those who have a budget, if chance puts none in another's way.
const COUNTERS: usize = 64;

/// Places where those who have a budget wait for each other, so that two do not spend the last of it.
#[derive(Default)]
pub(crate) struct Counters(Vec<Mutex<()>>);

impl Counters {
    pub(crate) fn new() -> Self {
        Self((0..COUNTERS).map(|_| Mutex::default()).collect())
    }

    /// Waits until nobody else spends for these. Always in the same order, so that nobody waits for
    /// somebody who waits for them.
    async fn hold(&self, payers: [&Payer; 2]) -> Vec<MutexGuard<'_, ()>> {
        let place = |payer: &Payer| {
            let mut hasher = DefaultHasher::new();
            payer.hash(&mut hasher);
            hasher.finish() as usize % COUNTERS
        };
        let mut places = payers.map(place);
        places.sort_unstable();
        let mut held = vec![self.0[places[0]].lock().await];
        if places[1] != places[0] {
            held.push(self.0[places[1]].lock().await);
        }
        held
    }
}

/// Who pays for a turn, and how much they may spend.
pub(crate) struct Tab {
    own: Payer,
    chat: Payer,
    bounds: Bounds,
    day: Day,
    rules: Arc<Rules>,
    now: Timestamp,
}

impl Tab {
    /// Of a turn, by what its person may do at this moment.
    fn of(shared: &Shared, session: &Session, hand: &TurnInHand, now: Timestamp) -> Self {
        let rules = shared.rules_for(&session.key);
        let chat = session.counts_for(&hand.to.chat.id);
        Self::at(shared, &hand.from, (&hand.to, chat), &hand.roles, rules, now)
    }

    /// Of somebody at an address, and the chat for which counts what happens there.
    pub(crate) fn at(
        shared: &Shared,
        from: &Sender,
        (to, chat): (&Address, &ChatId),
        roles: &[RoleId],
        rules: Arc<Rules>,
        now: Timestamp,
    ) -> Self {
        // One that is taken out for a moment has the budgets that it had.
        let account = shared.accounts.known(&to.account);
        let by =
            account.map_or_else(Authority::none, |account| account.authority_in(from, to, roles));
        let own = match &by.person {
            Some(person) => Payer::Person(person.name.clone()),
            None => Payer::Sender(to.account.clone(), from.lasting().clone()),
        };
        let chat = Payer::Chat(to.account.clone(), chat.clone());
        let day = Day::of(now, &rules.zone);
        Self { own, chat, bounds: by.bounds, day, rules, now }
    }

    fn rows(&self, spent: Spent) -> impl Iterator<Item = Spending> {
        let row = |payer: &Payer| Spending { day: self.day, payer: payer.clone(), spent };
        let rows = [row(&self.own), row(&self.chat)];
        rows.into_iter().filter(move |_| !spent.is_nothing())
    }

    fn limits(&self) -> [(BudgetOf, &Budget, &Payer); 2] {
        [
            (BudgetOf::Own, &self.bounds.own, &self.own),
            (BudgetOf::Chat, &self.bounds.chat, &self.chat),
        ]
    }

    /// Why there is nothing left for a turn, in words for the person; none if there is. `besides` is what
    /// is being written at the moment.
    async fn used_up(
        &self,
        shared: &Shared,
        need: Need,
        besides: &[Spending],
    ) -> Result<Option<String>, StoreError> {
        for (of, budget, payer) in self.limits() {
            if budget.is_none() {
                continue;
            }
            let mut spent = shared.store.spent(self.day, payer).await?;
            let theirs = |row: &&Spending| row.day == self.day && row.payer == *payer;
            besides.iter().filter(theirs).for_each(|row| spent += row.spent);
            if let Some(used_up) = budget.used_up(&spent, need) {
                let anew = begins_anew(self.now, &self.rules.zone);
                return Ok(Some(used_up.sentence(of, &anew)));
            }
        }
        Ok(None)
    }

    /// What is left, in words for the person; nothing where nothing is limited.
    pub(crate) async fn left(&self, shared: &Shared) -> Result<String, StoreError> {
        let mut told = String::new();
        for (of, budget, payer) in self.limits() {
            let left = match budget.is_none() {
                true => None,
                false => budget.left(&shared.store.spent(self.day, payer).await?),
            };
            let whose = match of {
                BudgetOf::Own => "your budget",
                BudgetOf::Chat => "this chat's budget",
            };
            if let Some(left) = left {
                told.push_str(&format!(" Left of {whose} today: {left}."));
            }
        }
        if !told.is_empty() {
            let anew = begins_anew(self.now, &self.rules.zone);
            told.push_str(&format!(" It begins anew on {anew}."));
        }
        Ok(told)
    }
}

/// What a step spends, and what it is about to.
pub(crate) struct Bill {
    /// What the agent reports to have used.
    used: Vec<Spending>,
    /// Messages that are answered from here on.
    heard: Vec<Spending>,
    wants: Wants,
}

/// What there has to be something left for.
enum Wants {
    Nothing,
    /// A turn begins or goes on.
    Turn(TurnId, Tab, Need),
    /// Something is passed on to a turn.
    Steer(Tab),
}

/// A bill that was looked at: what is written of it, and whether its turn may begin.
pub(crate) struct Settled<'a> {
    pub(crate) rows: Vec<Spending>,
    pub(crate) refused: Option<(TurnId, Failure)>,
    /// Why nothing more may be passed on to a turn, in words for the person.
    pub(crate) unaffordable: Option<String>,
    /// Held until the rows are written.
    pub(crate) counters: Vec<MutexGuard<'a, ()>>,
}

impl Bill {
    /// Of one step. `refused` is the turn for which nothing was left.
    pub(crate) fn of(
        shared: &Shared,
        before: Option<&Session>,
        refused: Option<&TurnId>,
        used: Option<(&TurnId, Used)>,
        next: &Session,
        effects: &[Effect],
        now: Timestamp,
    ) -> Self {
        let mut bill = Self { used: Vec::new(), heard: Vec::new(), wants: Wants::Nothing };
        // A turn that is over is not listened to.
        if let (Some(session), Some((turn, Used { usage, cost }))) = (before, used)
            && let Some(hand) = session.hand().filter(|hand| hand.turn == *turn)
        {
            let spent = Spent::of(&usage, cost);
            bill.used.extend(Tab::of(shared, session, hand, now).rows(spent));
        }
        let Some(hand) = next.hand() else { return bill };
        let paid_before =
            |seq: Seq| before.is_some_and(|session| session.paid().any(|said| said.seq == seq));
        let bound = |effect: &Effect| match effect {
            Effect::Bind { seq, .. } => Some(*seq),
            _ => None,
        };
        let bound: Vec<Seq> = effects.iter().filter_map(bound).collect();
        let anew = bound.iter().filter(|seq| !paid_before(**seq)).count() as u64;
        let steers = next.paid().filter(|said| !paid_before(said.seq)).count() as u64;
        let start = effects.iter().find_map(|effect| match effect {
            Effect::Start(start) => Some(start),
            _ => None,
        });
        if steers > 0 {
            let tab = Tab::of(shared, next, hand, now);
            bill.heard.extend(tab.rows(Spent::messages(steers)));
            bill.wants = Wants::Steer(tab);
        }
        if bound.is_empty() && start.is_none() {
            return bill;
        }
        let tab = Tab::of(shared, next, hand, now);
        bill.heard.extend(tab.rows(Spent::messages(anew)));
        // Nothing is spent by waiting for an answer.
        if let Some(start) = start.filter(|start| start.asked.is_none()) {
            // What is taken again over the rest of what began it was let begin already, or was not.
            let again = before.and_then(Session::hand).filter(|_| hand.seqs.len() > bound.len());
            let has_begun = again.is_some_and(|before| refused != Some(&before.turn));
            // A summary is no message, and no model writes one for whoever has none left.
            let is_new = anew > 0 || !hand.task.is_answer();
            let need = if is_new && !has_begun { Need::Begin } else { Need::GoOn };
            bill.wants = Wants::Turn(start.turn.clone(), tab, need);
        }
        bill
    }

    /// Sees whether there is anything left for the turn that begins, or for what is passed on to one. What is not
    /// answered is not counted.
    pub(crate) async fn settle(self, shared: &Shared) -> Result<Settled<'_>, StoreError> {
        let Self { used, heard, wants } = self;
        let mut settled =
            Settled { rows: used, refused: None, unaffordable: None, counters: Vec::new() };
        if let Wants::Turn(_, tab, _) | Wants::Steer(tab) = &wants
            && !tab.bounds.is_none()
        {
            settled.counters = shared.counters.hold([&tab.own, &tab.chat]).await;
        }
        match wants {
            Wants::Nothing => {}
            Wants::Turn(turn, tab, need) => {
                let why = tab.used_up(shared, need, &settled.rows).await?;
                settled.refused = why.map(|why| (turn, Failure::OverBudget(why)));
            }
            Wants::Steer(tab) => {
                settled.unaffordable = tab.used_up(shared, Need::Begin, &settled.rows).await?;
            }
        }
        if settled.refused.is_none() {
            settled.rows.extend(heard);
        }
        Ok(settled)
    }
}

/// What an agent reports to have used.
pub(crate) fn reported(event: &Event) -> Option<(&TurnId, Used)> {
    let Event::Agent { turn, event } = event else { return None };
    used(event).map(|used| (turn, used))
}

/// What a turn used that is not listened to any more.
pub(crate) fn left(effects: &[Effect], untold: Used) -> Option<(&TurnId, Used)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Abandon(turn) => Some((turn, untold)),
        _ => None,
    })
}

fn used(event: &AgentEvent) -> Option<Used> {
    match event {
        AgentEvent::Stepped { usage, cost, .. }
        | AgentEvent::Compressed { usage, cost, .. }
        | AgentEvent::NotCompressed { usage, cost, .. }
        | AgentEvent::Finished { usage, cost, .. }
        | AgentEvent::Failed { usage, cost, .. } => Some(Used { usage: *usage, cost: *cost }),
        AgentEvent::Calling { .. }
        | AgentEvent::Called { .. }
        | AgentEvent::Asked(_)
        | AgentEvent::Took { .. }
        | AgentEvent::Working(_) => None,
    }
}

/// The turn that reports to have used something.
pub(crate) fn spender(event: &Event) -> Option<TurnId> {
    reported(event).map(|(turn, _)| turn.clone())
}

/// What a session hears instead of something said that would steer a turn, where the one who said it has no
/// message left.
pub(crate) fn unaffordable(event: &Event, why: String) -> Option<Event> {
    let rows = match event {
        Event::Arrived { seq, inbound, .. } => vec![(*seq, inbound.clone())],
        Event::Together { rows, .. } => rows.clone(),
        _ => return None,
    };
    Some(Event::Unaffordable { rows, why })
}

/// Whether anything is left for what somebody has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// It can be answered, as far as is known before its session has heard of it.
    Left,
    /// It will be refused.
    UsedUp,
}

/// Whether it is worth anything to find out what somebody has said, however long the store takes to tell. What it
/// cannot tell at all is not paid for.
pub(crate) async fn means(shared: &Shared, key: &SessionKey, inbound: &Inbound) -> Means {
    let mut backoff = shared.spread.backoff();
    loop {
        match look_at_means(shared, key, inbound).await {
            Ok(means) => return means,
            Err(error @ StoreError::Unavailable { .. }) => {
                tracing::warn!(session = %key, %error, "what was spent cannot be read yet");
                shared.clock.sleep(backoff.next()).await;
            }
            Err(error) => {
                tracing::error!(session = %key, %error, "what was spent cannot be read");
                return Means::UsedUp;
            }
        }
    }
}

async fn look_at_means(
    shared: &Shared,
    key: &SessionKey,
    inbound: &Inbound,
) -> Result<Means, StoreError> {
    let Inbound { from, to, source, .. } = inbound;
    let at = (to, source.counts_for(&to.chat.id));
    let (rules, now) = (shared.rules_for(key), shared.clock.now());
    let tab = Tab::at(shared, from, at, &source.roles, rules, now);
    if tab.used_up(shared, Need::Begin, &[]).await?.is_none() {
        return Ok(Means::Left);
    }
    // Whoever is asked something goes on with what they began.
    let session = shared.store.load(key).await?;
    let asked = session.as_ref().and_then(|session| match &session.phase {
        Phase::Asking { hand, .. } => Some(hand).filter(|hand| hand.from.is(from)),
        _ => None,
    });
    let goes_on = asked.is_some() && tab.used_up(shared, Need::GoOn, &[]).await?.is_none();
    Ok(if goes_on { Means::Left } else { Means::UsedUp })
}

/// Why a turn that goes on must not, in words for the person; none if it may.
pub(crate) async fn overdrawn(
    shared: &Shared,
    session: &Session,
    hand: &TurnInHand,
) -> Option<String> {
    let tab = Tab::of(shared, session, hand, shared.clock.now());
    if tab.bounds.is_none() {
        return None;
    }
    match tab.used_up(shared, Need::GoOn, &[]).await {
        Ok(why) => why.map(|why| format!("I stopped here. {why}")),
        Err(error) => {
            // It is looked at again with the next step.
            tracing::warn!(turn = %hand.turn, %error, "what was spent cannot be read");
            None
        }
    }
}
