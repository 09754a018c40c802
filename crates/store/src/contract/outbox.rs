//! What has to be delivered.

use std::collections::HashSet;

use talaria_model::{Act, Address, Content, Outbound, Receipt, Seq};

use super::Harness;
use super::world::{
    address, admit, at, attempt, decide, delivered, key, message, outbound_id, parcel, parcels,
    post, preview, record, session, settle, settle_at, state, thinking, waiting,
};
use crate::{Crossing, ParcelState, Settlement, Store, Told, Untold};

/// A session that takes a turn, so that its previews are still going on.
fn busy(account: &str, chat: &str) -> talaria_session::Session {
    let mut session = session(&key(account, chat));
    session.phase = thinking(&session);
    session
}

pub async fn parcels_keep_the_order_of_decisions(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    decide(&*store, &session, &[post(&session, 9, 0), post(&session, 9, 1), post(&session, 9, 2)])
        .await;
    decide(&*store, &session, &[post(&session, 2, 0), post(&session, 1, 0)]).await;
    let all = [(9, 0), (9, 1), (9, 2), (2, 0), (1, 0)];
    assert_eq!(waiting(&*store, &session.at).await, all);
    assert_eq!(store.parcels(&session.at, 2).await.map(|parcels| parcels.len()), Ok(2));

    attempt(&*store, &post(&session, 9, 0)).await;
    assert_eq!(waiting(&*store, &session.at).await, all, "what is leaving keeps its place");
    settle(&*store, &post(&session, 9, 0), delivered()).await;
    attempt(&*store, &post(&session, 9, 1)).await;
    settle(&*store, &post(&session, 9, 1), Settlement::Again { at: at(50) }).await;
    let store = harness.open().await;
    assert_eq!(waiting(&*store, &session.at).await, all[1..]);
    let first = parcels(&*store, &session.at).await.remove(0);
    assert_eq!(first.outbound, post(&session, 9, 1));
    assert_eq!((first.state, first.attempts, first.at), (ParcelState::Ready, 0, at(1)));
}

pub async fn chats_do_not_wait_for_each_other(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let elsewhere = address(&key("bot", "d"));
    let there = Outbound { to: elsewhere.clone(), ..post(&session, 2, 0) };
    decide(&*store, &session, &[post(&session, 1, 0), there, post(&session, 3, 0)]).await;
    assert_eq!(waiting(&*store, &session.at).await, [(1, 0), (3, 0)]);
    assert_eq!(waiting(&*store, &elsewhere).await, [(2, 0)]);
    assert_eq!(waiting(&*store, &address(&key("bot", "e"))).await, []);
}

pub async fn a_text_takes_over_the_message_of_its_preview(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let draft = Outbound { act: Act::Post(Content::text("deliv")), ..post(&session, 1, 0) };
    preview(&*store, &draft).await;
    settle(&*store, &draft, Settlement::Previewed(message("shown"))).await;
    decide(&*store, &session, &[post(&session, 1, 0), post(&session, 1, 1)]).await;
    let parcels = parcels(&*store, &session.at).await;
    assert_eq!(parcels[0].outbound, post(&session, 1, 0));
    assert_eq!((parcels[0].state, &parcels[0].shown), (ParcelState::Ready, &message("shown")));
    assert_eq!((parcels[1].state, &parcels[1].shown), (ParcelState::Ready, &None));
}

pub async fn what_a_preview_shows_beyond_the_text_is_withdrawn(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    for part in 0..4 {
        preview(&*store, &post(&session, 1, part)).await;
        settle(&*store, &post(&session, 1, part), Settlement::Previewed(message("shown"))).await;
    }
    preview(&*store, &post(&session, 2, 0)).await;
    decide(&*store, &session, &[post(&session, 1, 0), post(&session, 1, 1)]).await;
    let store = harness.open().await;
    assert_eq!(waiting(&*store, &session.at).await, [(1, 0), (1, 1), (1, 2), (1, 3)]);
    let parcels = parcels(&*store, &session.at).await;
    for parcel in &parcels[2..] {
        assert_eq!(parcel.outbound.act, Act::Post(Content::default()), "it has nothing to say");
        assert_eq!((parcel.state, &parcel.shown), (ParcelState::Ready, &message("shown")));
    }
}

pub async fn messages_that_are_gone_are_counted(harness: &dyn Harness) {
    let mut store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    preview(&*store, &outbound).await;
    settle(&*store, &outbound, Settlement::Previewed(message("one"))).await;
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    for (count, name) in (1..).zip(["two", "three"]) {
        settle(&*store, &outbound, Settlement::Vanished).await;
        store = harness.open().await;
        let parcel = parcels(&*store, &session.at).await.remove(0);
        assert_eq!((parcel.anew, parcel.shown), (count, None));
        settle(&*store, &outbound, Settlement::Previewed(message(name))).await;
    }
}

pub async fn a_text_whose_preview_is_on_its_way_is_unsure_until_it_is_settled(
    harness: &dyn Harness,
) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    preview(&*store, &outbound).await;
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    assert_eq!(state(&*store, &session).await, ParcelState::Unsure);
    settle(&*store, &outbound, Settlement::Previewed(message("shown"))).await;
    let parcel = parcel(&*store, &session).await;
    assert_eq!((parcel.state, parcel.shown), (ParcelState::Ready, message("shown")));
    assert_eq!(parcel.attempts, 0);
}

pub async fn a_preview_that_never_became_visible_leaves_no_doubt(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    preview(&*store, &outbound).await;
    settle(&*store, &outbound, Settlement::Previewed(None)).await;
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    let parcel = parcel(&*store, &session).await;
    assert_eq!((parcel.state, parcel.shown), (ParcelState::Ready, None));
}

pub async fn a_second_preview_does_not_settle_the_first(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    preview(&*store, &outbound).await;
    preview(&*store, &outbound).await;
    settle(&*store, &outbound, Settlement::Previewed(message("second"))).await;
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    let parcel = parcel(&*store, &session).await;
    assert_eq!((parcel.state, parcel.shown), (ParcelState::Unsure, message("second")));
}

pub async fn a_text_stands_where_it_was_decided_not_where_its_preview_began(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    preview(&*store, &post(&session, 1, 0)).await;
    decide(&*store, &session, &[post(&session, 2, 0)]).await;
    decide(&*store, &session, &[post(&session, 1, 0), post(&session, 1, 1)]).await;
    assert_eq!(waiting(&*store, &session.at).await, [(2, 0), (1, 0), (1, 1)]);
}

pub async fn a_preview_is_no_parcel(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    preview(&*store, &post(&session, 1, 0)).await;
    attempt(&*store, &post(&session, 1, 0)).await;
    assert_eq!(parcels(&*store, &session.at).await, []);
    assert_eq!(store.undelivered(None, 10).await, Ok(Vec::new()));
    assert_eq!(store.counts().await.map(|counts| counts.undelivered), Ok(0));
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    assert_eq!(parcels(&*store, &session.at).await, []);
}

pub async fn a_preview_that_no_text_replaced_ends_with_its_turn(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut mine = busy("bot", "c");
    let other = busy("bot", "d");
    for session in [&mine, &other] {
        preview(&*store, &post(session, 1, 0)).await;
        settle(&*store, &post(session, 1, 0), Settlement::Previewed(message("shown"))).await;
    }
    // A step during the turn ends nothing.
    record(&*store, &mine, &["a step"]).await;
    let idle = session(&mine.key);
    record(&*store, &idle, &["the end"]).await;
    mine.id = idle.id.clone();
    decide(&*store, &mine, &[post(&mine, 1, 0)]).await;
    assert_eq!(parcels(&*store, &mine.at).await, [], "its preview is over");
    decide(&*store, &other, &[post(&other, 1, 0)]).await;
    assert_eq!(parcel(&*store, &other).await.shown, message("shown"));
}

pub async fn a_preview_cannot_be_settled_away(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let reason = String::from("gone");
    let settlements = [
        (Settlement::Delivered(Receipt { message: message("m"), at: at(2) }), ParcelState::Ready),
        (Settlement::Undeliverable { reason: reason.clone() }, ParcelState::Unsure),
        (Settlement::Abandoned { reason }, ParcelState::Unsure),
        (Settlement::Again { at: at(9) }, ParcelState::Unsure),
        (Settlement::Plain, ParcelState::Unsure),
        (Settlement::Unsure, ParcelState::Unsure),
    ];
    for (delivery, (settlement, expected)) in (1..).zip(settlements) {
        let outbound = post(&session, delivery, 0);
        preview(&*store, &outbound).await;
        settle(&*store, &outbound, settlement.clone()).await;
        decide(&*store, &session, std::slice::from_ref(&outbound)).await;
        assert_eq!(state(&*store, &session).await, expected, "{settlement:?}");
        settle(&*store, &outbound, delivered()).await;
    }
}

pub async fn a_delivered_parcel_stays_delivered(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    attempt(&*store, &outbound).await;
    settle(&*store, &outbound, delivered()).await;
    let reason = String::from("never");
    for settlement in [
        Settlement::Again { at: at(9) },
        Settlement::Plain,
        Settlement::Unsure,
        Settlement::Previewed(None),
        Settlement::Undeliverable { reason: reason.clone() },
        Settlement::Abandoned { reason },
    ] {
        settle(&*store, &outbound, settlement).await;
        attempt(&*store, &outbound).await;
        preview(&*store, &outbound).await;
        assert_eq!(parcels(&*store, &session.at).await, []);
    }
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    assert_eq!(parcels(&*store, &session.at).await, []);
    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.undelivered, counts.failed), (0, 0));
}

pub async fn a_parcel_that_is_there_already_is_left_alone(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    let changed = Outbound { act: Act::Post(Content::text("changed")), ..outbound.clone() };
    decide(&*store, &session, std::slice::from_ref(&changed)).await;
    preview(&*store, &changed).await;
    let parcel = parcel(&*store, &session).await;
    assert_eq!((parcel.outbound, parcel.state), (outbound.clone(), ParcelState::Ready));
    settle(&*store, &outbound, delivered()).await;
    decide(&*store, &session, &[changed]).await;
    assert_eq!(parcels(&*store, &session.at).await, []);
}

pub async fn an_attempt_that_did_not_arrive_waits_and_does_not_count(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    for wait in [70, 90] {
        attempt(&*store, &outbound).await;
        let leaving = parcel(&*store, &session).await;
        assert_eq!((leaving.state, leaving.attempts), (ParcelState::Attempting, 1));
        settle(&*store, &outbound, Settlement::Again { at: at(wait) }).await;
        let again = parcel(&*store, &session).await;
        assert_eq!((again.state, again.attempts), (ParcelState::Ready, 0));
        assert_eq!(again.not_before, Some(at(wait)));
    }
    // Put off without having been tried.
    settle(&*store, &outbound, Settlement::Again { at: at(99) }).await;
    let put_off = parcel(&*store, &session).await;
    assert_eq!((put_off.attempts, put_off.not_before), (0, Some(at(99))));
}

pub async fn an_attempt_that_may_have_arrived_counts_and_is_unsure(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    for tries in 1..=3 {
        attempt(&*store, &outbound).await;
        settle(&*store, &outbound, Settlement::Unsure).await;
        let parcel = parcel(&*store, &session).await;
        assert_eq!((parcel.state, parcel.attempts), (ParcelState::Unsure, tries));
    }
}

pub async fn formatting_that_was_not_accepted_is_remembered(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    attempt(&*store, &outbound).await;
    settle(&*store, &outbound, Settlement::Plain).await;
    let store = harness.open().await;
    let plain = parcel(&*store, &session).await;
    assert_eq!((plain.state, plain.attempts), (ParcelState::Plain, 1));
    attempt(&*store, &outbound).await;
    settle(&*store, &outbound, Settlement::Again { at: at(9) }).await;
    assert_eq!(state(&*store, &session).await, ParcelState::Plain);
}

pub async fn a_doubt_is_not_lost_by_a_later_attempt(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let outbound = post(&session, 1, 0);
    decide(&*store, &session, std::slice::from_ref(&outbound)).await;
    attempt(&*store, &outbound).await;
    settle(&*store, &outbound, Settlement::Unsure).await;
    for settlement in [Settlement::Again { at: at(9) }, Settlement::Plain] {
        attempt(&*store, &outbound).await;
        settle(&*store, &outbound, settlement).await;
        assert_eq!(state(&*store, &session).await, ParcelState::Unsure);
    }
    // An attempt that nobody settled may have arrived, whatever the next one says.
    let second = post(&session, 2, 0);
    settle(&*store, &outbound, delivered()).await;
    decide(&*store, &session, std::slice::from_ref(&second)).await;
    attempt(&*store, &second).await;
    attempt(&*store, &second).await;
    settle(&*store, &second, Settlement::Again { at: at(9) }).await;
    let parcel = parcel(&*store, &session).await;
    assert_eq!((parcel.state, parcel.attempts), (ParcelState::Unsure, 1));
}

pub async fn what_will_never_arrive_is_counted_and_gone_from_the_outbox(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    decide(&*store, &session, &[post(&session, 1, 0), post(&session, 2, 0)]).await;
    attempt(&*store, &post(&session, 1, 0)).await;
    let gone = Settlement::Undeliverable { reason: "the chat is gone".into() };
    settle(&*store, &post(&session, 1, 0), gone).await;
    settle(&*store, &post(&session, 2, 0), Settlement::Abandoned { reason: "late".into() }).await;
    let store = harness.open().await;
    assert_eq!(parcels(&*store, &session.at).await, []);
    assert_eq!(store.undelivered(None, 10).await, Ok(Vec::new()));
    let counts = store.counts().await.expect("counts");
    assert_eq!((counts.undelivered, counts.failed), (0, 2));
}

pub async fn confidential_words_are_kept_until_they_are_settled_and_no_longer(
    harness: &dyn Harness,
) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let confided = |delivery| Outbound {
        act: Act::Post(Content::confidential("the code is ABCD2345")),
        ..post(&session, delivery, 0)
    };
    let (gone, late) = (String::from("gone"), String::from("late"));
    let ends = [
        (1, Settlement::Undeliverable { reason: gone }),
        (2, Settlement::Abandoned { reason: late }),
    ];
    decide(&*store, &session, &[confided(1), confided(2), post(&session, 3, 0)]).await;
    for (delivery, _) in &ends {
        attempt(&*store, &confided(*delivery)).await;
        // None of these is the end of it: it may have to be said again after a crash.
        for settlement in [Settlement::Again { at: at(9) }, Settlement::Plain, Settlement::Unsure] {
            settle(&*store, &confided(*delivery), settlement).await;
        }
    }
    let store = harness.open().await;
    store.recover().await.expect("recovers");
    let waiting = parcels(&*store, &session.at).await;
    let waiting: Vec<_> = waiting.into_iter().map(|parcel| parcel.outbound).collect();
    assert_eq!(waiting, [confided(1), confided(2), post(&session, 3, 0)]);
    for (delivery, settlement) in ends {
        settle(&*store, &confided(delivery), settlement).await;
    }
    settle(&*store, &post(&session, 3, 0), Settlement::Abandoned { reason: "late".into() }).await;
    let store = harness.open().await;
    let failed = store.failed(10).await.expect("reads");
    let kept: Vec<_> = failed.into_iter().map(|failed| failed.outbound.act).collect();
    let withheld = Act::Post(Content::withheld());
    assert_eq!(kept, [post(&session, 3, 0).act, withheld.clone(), withheld]);
}

pub async fn settling_what_is_not_there_changes_nothing(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    attempt(&*store, &post(&session, 1, 0)).await;
    settle(&*store, &post(&session, 1, 0), delivered()).await;
    decide(&*store, &session, &[post(&session, 1, 0)]).await;
    settle(&*store, &post(&session, 1, 1), delivered()).await;
    let id = outbound_id(&talaria_model::SessionId::literal("unknown"), 1, 0);
    store.settle(&id, delivered(), at(1)).await.expect("settles");
    assert_eq!(state(&*store, &session).await, ParcelState::Ready);
}

pub async fn undelivered_addresses_are_found_page_by_page(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut undelivered = HashSet::new();
    for number in 0..9 {
        let session = busy(&format!("bot {}", number % 2), &format!("chat {number}"));
        let posts = [post(&session, 1, 0), post(&session, 2, 0)];
        decide(&*store, &session, &posts).await;
        if number % 3 == 0 {
            settle(&*store, &posts[0], delivered()).await;
            settle(&*store, &posts[1], Settlement::Abandoned { reason: "late".into() }).await;
        } else {
            undelivered.insert(session.at);
        }
    }
    let store = harness.open().await;
    assert_eq!(all_undelivered(&*store).await, undelivered);
}

async fn all_undelivered(store: &dyn Store) -> HashSet<Address> {
    let mut found = HashSet::new();
    let mut after = None;
    loop {
        let page = store.undelivered(after, 2).await.expect("reads");
        assert!(page.len() <= 2);
        after = page.last().cloned();
        for address in page {
            assert!(found.insert(address), "an address is on one page only");
        }
        if after.is_none() {
            return found;
        }
    }
}

async fn lose(store: &dyn Store, outbound: &Outbound, reason: &str) {
    attempt(store, outbound).await;
    settle(store, outbound, Settlement::Undeliverable { reason: reason.into() }).await;
}

pub async fn what_will_never_arrive_is_known_with_its_reason(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let posts: Vec<_> = (1..=4).map(|delivery| post(&session, delivery, 0)).collect();
    decide(&*store, &session, &posts).await;
    lose(&*store, &posts[0], "the chat is gone").await;
    settle(&*store, &posts[1], delivered()).await;
    settle(&*store, &posts[2], Settlement::Abandoned { reason: "late".into() }).await;
    // What is final is final, its reason too.
    settle(&*store, &posts[0], Settlement::Abandoned { reason: "another".into() }).await;
    settle(&*store, &posts[1], Settlement::Abandoned { reason: "another".into() }).await;
    let store = harness.open().await;
    let failed = store.failed(10).await.expect("reads");
    let seen: Vec<_> = failed
        .iter()
        .map(|failed| (failed.outbound.clone(), failed.state, failed.reason.as_str(), failed.told))
        .collect();
    assert_eq!(
        seen,
        [
            (posts[2].clone(), ParcelState::Abandoned, "late", Told::No),
            (posts[0].clone(), ParcelState::Undeliverable, "the chat is gone", Told::No),
        ]
    );
    assert_eq!(failed[0].at, at(1));
    assert_eq!(store.failed(1).await.map(|failed| failed.len()), Ok(1));
}

pub async fn a_notice_tells_once_of_all_that_was_lost_there(harness: &dyn Harness) {
    let store = harness.open().await;
    let (session, other) = (busy("bot", "c"), busy("bot", "d"));
    let posts: Vec<_> = (1..=3).map(|delivery| post(&session, delivery, 0)).collect();
    decide(&*store, &session, &posts).await;
    decide(&*store, &other, &[post(&other, 1, 0)]).await;
    assert_eq!(store.untold(&session.at).await, Ok(None));
    lose(&*store, &posts[0], "first").await;
    lose(&*store, &posts[1], "second").await;
    lose(&*store, &post(&other, 1, 0), "elsewhere").await;
    let untold = Untold { count: 2, last: posts[1].id.clone(), reason: "second".into() };
    assert_eq!(store.untold(&session.at).await, Ok(Some(untold)));

    let notice = post(&session, 2, 9);
    store.tell(&notice, at(5)).await.expect("tells");
    let store = harness.open().await;
    assert_eq!(store.untold(&session.at).await, Ok(None));
    assert_eq!(waiting(&*store, &session.at).await, [(3, 0), (2, 9)], "it comes last");
    let told = store.failed(10).await.expect("reads");
    let told: Vec<_> =
        told.iter().map(|failed| (failed.outbound.to == session.at, failed.told)).collect();
    assert_eq!(told, [(false, Told::No), (true, Told::Yes), (true, Told::Yes)]);
    assert_eq!(store.untold_at(None, 10).await, Ok(vec![other.at.clone()]));

    // The notice is lost as well: nobody is told of that, and so on without end.
    settle(&*store, &posts[2], delivered()).await;
    lose(&*store, &notice, "still gone").await;
    assert_eq!(store.untold(&session.at).await, Ok(None));
    store.tell(&notice, at(6)).await.expect("tells");
    assert_eq!(parcels(&*store, &session.at).await, [], "the same notice is not decided twice");
    assert_eq!(store.failed(10).await.map(|failed| failed.len()), Ok(4));
}

pub async fn addresses_where_something_is_untold_are_found_page_by_page(harness: &dyn Harness) {
    let store = harness.open().await;
    let mut lost = HashSet::new();
    for number in 0..7 {
        let session = busy("bot", &format!("chat {number}"));
        let posts = [post(&session, 1, 0), post(&session, 2, 0)];
        decide(&*store, &session, &posts).await;
        if number % 2 == 0 {
            lose(&*store, &posts[0], "gone").await;
            lose(&*store, &posts[1], "gone").await;
            lost.insert(session.at.clone());
        }
    }
    let mut found = HashSet::new();
    let mut after: Option<Address> = None;
    loop {
        let page = store.untold_at(after, 3).await.expect("reads");
        after = page.last().cloned();
        assert!(page.iter().all(|to| found.insert(to.clone())), "no address twice");
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, lost);
}

pub async fn what_crossed_on_the_way_is_known_by_both_moments(harness: &dyn Harness) {
    let store = harness.open().await;
    let session = busy("bot", "c");
    let (first, second) = (post(&session, 4, 0), post(&session, 4, 1));
    decide(&*store, &session, &[first.clone(), second.clone(), post(&session, 5, 0)]).await;
    let row = admit(&*store, &session.key, "e").await;
    let crossing = async |row| store.crossing(&first.id, row).await.expect("a crossing");
    let arrived = crossing(row).await.arrived;
    assert!(arrived.is_some());
    assert_eq!(crossing(row).await.delivered, None);
    attempt(&*store, &first).await;
    settle(&*store, &first, delivered()).await;
    assert_eq!(crossing(row).await.delivered, None, "one part is on its way");
    attempt(&*store, &second).await;
    settle_at(&*store, &second, delivered(), at(70)).await;
    let store = harness.open().await;
    let crossing = async |row| store.crossing(&first.id, row).await.expect("a crossing");
    assert_eq!(crossing(row).await, Crossing { delivered: Some(at(70)), arrived });
    assert_eq!(crossing(Seq(99)).await.arrived, None);
    let never = post(&session, 9, 0).id;
    let never = store.crossing(&never, row).await.expect("a crossing");
    assert_eq!(never, Crossing { delivered: None, arrived });
    let lost = post(&session, 5, 0);
    settle(&*store, &lost, Settlement::Undeliverable { reason: "gone".into() }).await;
    let lost = store.crossing(&lost.id, row).await.expect("a crossing");
    assert_eq!(lost.delivered, None, "what never arrives has not arrived");
}
