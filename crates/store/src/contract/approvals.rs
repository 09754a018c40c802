//! What was approved for good.

use talaria_model::{AccountId, Digest, Giver, Grant, Receipt, RoleId, SenderId};

use super::Harness;
use super::world::{at, attempt, decide, key, message, outbound_id, post, session, settle, step};
use crate::{AuditDeed, Audited, Commit, MOST_GRANTS, Settlement, Store, broken_at};

fn digest(number: u32) -> Digest {
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    Digest::new(bytes)
}

fn grant(number: u32) -> Grant {
    Grant {
        digest: digest(number),
        tool: "pay".into(),
        account: AccountId::literal("bot"),
        sender: SenderId::literal("alice"),
        by: Giver { id: SenderId::literal("bob"), roles: vec![RoleId::literal("chief")] },
        shown: format!("May I pay {number}?"),
        at: at(i64::from(number)),
    }
}

async fn approve(store: &dyn Store, grants: Vec<Grant>) {
    let session = session(&key("bot", "c"));
    store.commit(Commit { grants, ..step(&session) }).await.expect("commits");
}

pub async fn what_is_approved_for_good_is_written_with_the_step_and_stays(harness: &dyn Harness) {
    let store = harness.open().await;
    assert_eq!(store.granted(&digest(1)).await, Ok(None));
    assert_eq!(store.grants(10).await, Ok(vec![]));
    approve(&*store, vec![grant(1), grant(2)]).await;
    for store in [store, harness.open().await] {
        assert_eq!(store.granted(&digest(1)).await, Ok(Some(grant(1))));
        assert_eq!(store.granted(&digest(3)).await, Ok(None));
        assert_eq!(store.grants(10).await, Ok(vec![grant(2), grant(1)]));
        assert_eq!(store.grants(1).await, Ok(vec![grant(2)]));
    }
}

pub async fn what_a_step_says_for_the_record_is_written_with_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    let audited = |subject: &str| Audited {
        actor: "bot:alice".into(),
        deed: AuditDeed::Approved,
        subject: subject.into(),
        detail: "pay, once".into(),
    };
    for subjects in [&["bot:ann", "bot:ben"][..], &[], &["bot:cat"]] {
        let audited = subjects.iter().copied().map(audited).collect();
        store.commit(Commit { audited, ..step(&session) }).await.expect("commits");
    }
    for store in [store, harness.open().await] {
        let rows = store.audited(0, 10).await.expect("reads");
        let subjects: Vec<_> = rows.iter().map(|row| row.audited.subject.as_str()).collect();
        assert_eq!(subjects, ["bot:ann", "bot:ben", "bot:cat"]);
        assert_eq!(rows[0].audited, audited("bot:ann"));
        assert_eq!(broken_at(None, &rows), None);
    }
}

pub async fn what_is_approved_twice_is_there_once_as_it_was_approved_last(harness: &dyn Harness) {
    let store = harness.open().await;
    approve(&*store, vec![grant(1)]).await;
    approve(&*store, vec![grant(2)]).await;
    let by = Giver::known_by_id(SenderId::literal("carol"));
    let anew = Grant { by, at: at(99), ..grant(1) };
    approve(&*store, vec![anew.clone()]).await;
    assert_eq!(store.granted(&digest(1)).await, Ok(Some(anew.clone())));
    assert_eq!(store.grants(10).await, Ok(vec![anew, grant(2)]));
}

pub async fn what_is_revoked_is_gone_at_once(harness: &dyn Harness) {
    let store = harness.open().await;
    approve(&*store, vec![grant(1), grant(2)]).await;
    assert_eq!(store.revoke_grant(&digest(1)).await, Ok(true));
    assert_eq!(store.revoke_grant(&digest(1)).await, Ok(false));
    assert_eq!(store.revoke_grant(&digest(3)).await, Ok(false));
    for store in [store, harness.open().await] {
        assert_eq!(store.granted(&digest(1)).await, Ok(None));
        assert_eq!(store.granted(&digest(2)).await, Ok(Some(grant(2))));
    }
    let store = harness.open().await;
    approve(&*store, vec![grant(1)]).await;
    assert_eq!(store.grants(10).await, Ok(vec![grant(1), grant(2)]), "approved anew");
}

pub async fn only_so_much_is_approved_for_good(harness: &dyn Harness) {
    let store = harness.open().await;
    let most = u32::try_from(MOST_GRANTS).expect("a small number");
    approve(&*store, (0..most).map(grant).collect()).await;
    assert_eq!(store.granted(&digest(0)).await, Ok(Some(grant(0))));
    approve(&*store, vec![grant(most)]).await;
    assert_eq!(store.granted(&digest(0)).await, Ok(None), "the oldest goes");
    assert_eq!(store.granted(&digest(1)).await, Ok(Some(grant(1))));
    assert_eq!(store.grants(usize::MAX).await.map(|grants| grants.len()), Ok(MOST_GRANTS));
}

pub async fn a_delivered_parcel_is_known_by_the_message_that_shows_it(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = session(&key("bot", "c"));
    let (first, second) = (post(&session, 1, 0), post(&session, 2, 0));
    decide(&*store, &session, &[first.clone(), second.clone()]).await;
    assert_eq!(store.shown(&first.id).await, Ok(None), "it has not left");
    attempt(&*store, &first).await;
    assert_eq!(store.shown(&first.id).await, Ok(None), "nobody knows");
    settle(&*store, &first, Settlement::Delivered(Receipt { message: message("m1"), at: at(5) }))
        .await;
    attempt(&*store, &second).await;
    settle(&*store, &second, Settlement::Undeliverable { reason: "no".into() }).await;
    for store in [store, harness.open().await] {
        assert_eq!(store.shown(&first.id).await, Ok(message("m1")));
        assert_eq!(store.shown(&second.id).await, Ok(None));
        assert_eq!(store.shown(&outbound_id(&session.id, 3, 0)).await, Ok(None));
    }
}
