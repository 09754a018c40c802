//! What was spent in a day.

use talaria_model::{AccountId, ChatId, SenderId};
use talaria_session::budget::{Day, Payer, Spent};

use super::Harness;
use super::world::{key, session, step};
use crate::{Commit, Spending, Store};

const TODAY: Day = Day::numbered(20_000);
const TOMORROW: Day = Day::numbered(20_001);

fn ann() -> Payer {
    Payer::Person("ann".into())
}

/// Named alike on purpose: what is told apart is who they are.
fn others() -> [Payer; 3] {
    let account = || AccountId::literal("ann");
    [
        Payer::Sender(account(), SenderId::literal("ann")),
        Payer::Sender(AccountId::literal("bot"), SenderId::literal("ann")),
        Payer::Chat(account(), ChatId::literal("ann")),
    ]
}

fn spent(messages: u64, tokens: u64, micros: u64) -> Spent {
    Spent { messages, tokens, micros }
}

async fn spend(store: &dyn Store, day: Day, payers: &[Payer], spent: Spent) {
    let session = session(&key("bot", "c"));
    let row = |payer: &Payer| Spending { day, payer: payer.clone(), spent };
    let spending = payers.iter().map(row).collect();
    store.commit(Commit { spending, ..step(&session) }).await.expect("commits");
}

pub async fn what_is_spent_is_added_up_with_the_steps_that_spend_it(harness: &dyn Harness) {
    let store = harness.open().await;
    assert_eq!(store.spent(TODAY, &ann()).await, Ok(Spent::default()));
    spend(&*store, TODAY, &[ann()], spent(1, 0, 0)).await;
    spend(&*store, TODAY, &[ann()], spent(0, 1_200, 34)).await;
    spend(&*store, TODAY, &[], spent(9, 9, 9)).await;
    for store in [store, harness.open().await] {
        assert_eq!(store.spent(TODAY, &ann()).await, Ok(spent(1, 1_200, 34)));
        assert_eq!(store.spent(TOMORROW, &ann()).await, Ok(Spent::default()), "another day");
    }
}

pub async fn what_is_spent_is_told_apart_by_who_spends_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let [here, there, chat] = others();
    for (payer, messages) in [(&ann(), 1), (&here, 2), (&there, 3), (&chat, 4)] {
        spend(&*store, TODAY, std::slice::from_ref(payer), spent(messages, 0, 0)).await;
    }
    let all = [(ann(), 1), (here, 2), (there, 3), (chat, 4)];
    for (payer, messages) in &all {
        assert_eq!(store.spent(TODAY, payer).await, Ok(spent(*messages, 0, 0)), "{payer:?}");
    }
    let listed = all.map(|(payer, messages)| (payer, spent(messages, 0, 0)));
    assert_eq!(store.spending(TODAY, 10).await, Ok(listed.to_vec()));
    assert_eq!(store.spending(TODAY, 2).await, Ok(listed[..2].to_vec()));
    assert_eq!(store.spending(TOMORROW, 10).await, Ok(vec![]));
}

pub async fn a_step_that_is_refused_spends_nothing(harness: &dyn Harness) {
    let store = harness.open().await;
    let mine = session(&key("bot", "c"));
    store.commit(step(&mine)).await.expect("commits");
    let mut stolen = session(&key("bot", "d"));
    stolen.id = mine.id.clone();
    let spending = vec![Spending { day: TODAY, payer: ann(), spent: spent(1, 1, 1) }];
    let refused = store.commit(Commit { spending, ..step(&stolen) }).await;
    assert!(refused.is_err());
    assert_eq!(store.spent(TODAY, &ann()).await, Ok(Spent::default()));
}

pub async fn old_days_are_forgotten(harness: &dyn Harness) {
    let store = harness.open().await;
    spend(&*store, TODAY, &others(), spent(1, 1, 1)).await;
    spend(&*store, TOMORROW, &[ann()], spent(2, 2, 2)).await;
    assert_eq!(store.forget_spending(TODAY).await, Ok(0));
    assert_eq!(store.forget_spending(TOMORROW).await, Ok(3));
    for store in [store, harness.open().await] {
        assert_eq!(store.spending(TODAY, 10).await, Ok(vec![]));
        assert_eq!(store.spending(TOMORROW, 10).await, Ok(vec![(ann(), spent(2, 2, 2))]));
    }
}
