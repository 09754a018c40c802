//! The process ends and begins again.

use talaria_session::Ended;

use super::Harness;
use super::world::{
    account, at, attempt, decide, key, message, parcel, parcels, post, preview, record, said,
    session, settle, state, thinking, waiting,
};
use crate::{Delivered, JournalState, ParcelState, Settlement};

fn busy() -> talaria_session::Session {
    let mut session = session(&key("bot", "c"));
    session.phase = thinking(&session);
    session
}

pub async fn a_store_that_was_never_opened_ended_cleanly(harness: &dyn Harness) {
    assert_eq!(harness.open().await.recover().await, Ok(Ended::Cleanly));
}

pub async fn a_store_that_was_closed_ended_cleanly(harness: &dyn Harness) {
    for _ in 0..3 {
        let store = harness.open().await;
        assert_eq!(store.recover().await, Ok(Ended::Cleanly));
        store.close().await.expect("closes");
    }
}

pub async fn a_store_that_was_not_closed_ended_abruptly(harness: &dyn Harness) {
    harness.open().await.recover().await.expect("recovers");
    for _ in 0..3 {
        assert_eq!(harness.open().await.recover().await, Ok(Ended::Abruptly));
    }
    harness.open().await.close().await.expect("closes");
    assert_eq!(harness.open().await.recover().await, Ok(Ended::Cleanly));
}

pub async fn dying_before_recovering_changes_nothing(harness: &dyn Harness) {
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    store.close().await.expect("closes");
    for _ in 0..5 {
        drop(harness.open().await);
    }
    assert_eq!(harness.open().await.recover().await, Ok(Ended::Cleanly));
}

pub async fn what_was_leaving_is_unsure_after_a_crash(harness: &dyn Harness) {
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    let session = busy();
    decide(&*store, &session, &[post(&session, 1, 0)]).await;
    attempt(&*store, &post(&session, 1, 0)).await;
    let store = harness.open().await;
    assert_eq!(state(&*store, &session).await, ParcelState::Attempting);
    store.recover().await.expect("recovers");
    let parcel = parcel(&*store, &session).await;
    assert_eq!((parcel.state, parcel.attempts), (ParcelState::Unsure, 1));
}

pub async fn what_never_left_is_ready_after_a_crash(harness: &dyn Harness) {
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    let session = busy();
    decide(&*store, &session, &[post(&session, 1, 0), post(&session, 1, 1)]).await;
    attempt(&*store, &post(&session, 1, 0)).await;
    settle(&*store, &post(&session, 1, 0), Settlement::Again { at: at(9) }).await;
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    for parcel in parcels(&*store, &session.at).await {
        assert_eq!((parcel.state, parcel.attempts), (ParcelState::Ready, 0));
    }
}

pub async fn a_preview_that_was_on_its_way_makes_its_text_unsure_after_a_crash(
    harness: &dyn Harness,
) {
    // Whether the text was there before the crash or comes after it.
    let store = harness.open().await;
    let session = busy();
    for delivery in [1, 2] {
        preview(&*store, &post(&session, delivery, 0)).await;
    }
    decide(&*store, &session, &[post(&session, 1, 0)]).await;
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    decide(&*store, &session, &[post(&session, 2, 0)]).await;
    let unsure = parcels(&*store, &session.at).await;
    assert_eq!(unsure.len(), 2);
    assert!(unsure.iter().all(|parcel| parcel.state == ParcelState::Unsure), "{unsure:?}");

    // Nobody is left who could say what became of it.
    settle(&*store, &post(&session, 1, 0), Settlement::Previewed(message("other"))).await;
    let first = parcels(&*store, &session.at).await.remove(0);
    assert_eq!((first.state, first.shown), (ParcelState::Unsure, message("other")));
}

pub async fn a_shown_preview_is_edited_after_a_crash(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy();
    let outbound = post(&session, 1, 0);
    preview(&*store, &outbound).await;
    settle(&*store, &outbound, Settlement::Previewed(message("shown"))).await;
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    decide(&*store, &session, &[outbound]).await;
    let parcel = parcel(&*store, &session).await;
    assert_eq!((parcel.state, parcel.shown), (ParcelState::Ready, message("shown")));
}

pub async fn nothing_acknowledged_is_lost_by_a_crash(harness: &dyn Harness) {
    let chat = key("bot", "c");
    let session = busy();
    for life in 0..5 {
        let store = harness.open().await;
        store.recover().await.expect("recovers");
        let event = life.to_string();
        let events = vec![(chat.clone(), said(&chat, &event, "hi"), JournalState::Unread)];
        let cursor = Some(event.clone());
        let batch = Delivered { account: account("bot"), events, cursor, at: at(1) };
        store.admit(batch).await.expect("admits");
        record(&*store, &session, &[&event]).await;
        decide(&*store, &session, &[post(&session, life + 1, 0)]).await;
    }
    let store = harness.open().await;
    assert_eq!(store.unread(&chat, 10).await.map(|rows| rows.len()), Ok(5));
    assert_eq!(store.cursor(&account("bot")).await, Ok(Some("4".into())));
    assert_eq!(store.history(&session.id, 10).await.map(|entries| entries.len()), Ok(5));
    assert_eq!(waiting(&*store, &session.at).await, [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]);
}

pub async fn recovering_twice_is_recovering_once(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy();
    decide(&*store, &session, &[post(&session, 1, 0), post(&session, 2, 0)]).await;
    attempt(&*store, &post(&session, 1, 0)).await;
    store.recover().await.expect("recovers");
    let once = parcels(&*store, &session.at).await;
    for _ in 0..5 {
        let store = harness.open().await;
        store.recover().await.expect("recovers");
        assert_eq!(parcels(&*store, &session.at).await, once);
    }
}
