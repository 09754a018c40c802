//! Accounts that come and go.

use std::time::Duration;

use talaria_gateway::AccountState;
use talaria_platform::{ConnectError, LinkError, SendError};

use crate::world::{Conduct, Hears, MARK, SIMPLE, Verb, World};

fn away() -> ConnectError {
    ConnectError::Unreachable { reason: "away".into() }
}

#[test]
fn what_is_decided_while_the_account_is_away_goes_out_in_order_when_it_is_back() {
    World::new(SIMPLE).live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        for n in 0..5 {
            life.vendor.say("alice", "home", &format!("/nope-{n}"));
        }
        life.until("everything is heard", |vendor| vendor.is_heard()).await;
        life.vendor.hangs_up(std::iter::repeat_with(away).take(8));
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 6);
        for n in 0..5 {
            assert!(texts[n + 1].contains(&format!("nope-{n}")), "{texts:?}");
        }
        assert!(texts.iter().all(|text| !text.contains(MARK)), "{texts:?}");
    });
}

#[test]
fn an_account_that_is_away_at_the_start_is_tried_until_it_is_there() {
    let mut world = World::new(SIMPLE);
    world.vendor().hangs_up(std::iter::repeat_with(away).take(12));
    world.vendor().say("alice", "home", "hello");
    world.live(async |life| {
        life.gateway.first_connections().await;
        let state = life.account().state;
        assert_eq!(state, AccountState::Waiting { reason: "away".into() });
        let begun = life.now();
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        assert_eq!(life.account().state, AccountState::Connected);
        let waited = life.now().since(begun);
        assert!(waited > Duration::from_secs(2 * 60), "patiently: {waited:?}");
        assert!(waited < Duration::from_secs(60 * 60), "{waited:?}");
    });
}

#[test]
fn an_account_that_is_refused_waits_for_a_human_and_others_go_on() {
    let mut world = World::new(SIMPLE);
    let other = world.add("other", SIMPLE);
    let refused = ConnectError::Refused { problem: "no token".into(), hint: "set one".into() };
    world.vendor().hangs_up([refused]);
    world.live(async |life| {
        life.gateway.first_connections().await;
        let state = life.account().state;
        assert!(matches!(state, AccountState::Refused { .. }), "{state:?}");
        other.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: hello"]);
        life.pass_seconds(60).await;
        assert_eq!(life.vendor.truth(|truth| truth.connected.len()), 1, "nobody is pestered");
        life.pass_seconds(300).await;
        assert_eq!(life.account().state, AccountState::Connected);
    });
}

#[test]
fn an_account_whose_credentials_are_not_accepted_is_suspended_and_loses_nothing() {
    let mut world = World::new(SIMPLE);
    let unauthorized = || SendError::Unauthorized { reason: "revoked".into() };
    world.vendor().first([Conduct::Refuses(unauthorized())]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.until("a try", |vendor| vendor.truth(|truth| truth.acts.len() == 1)).await;
        life.pass_seconds(1).await;
        let state = life.account().state;
        assert!(matches!(state, AccountState::Refused { .. }), "{state:?}");
        let refused = life.now();
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        assert!(life.now().since(refused) > Duration::from_secs(4 * 60), "not at once");
    });
}

#[test]
fn a_connection_that_loses_its_credentials_waits_for_a_human() {
    World::new(SIMPLE).live(async |life| {
        life.pass_seconds(1).await;
        life.vendor.ends_with(LinkError::Unauthorized { reason: "revoked".into() });
        life.pass_seconds(60).await;
        let state = life.account().state;
        assert!(matches!(state, AccountState::Refused { .. }), "{state:?}");
        life.pass_seconds(300).await;
        assert_eq!(life.account().state, AccountState::Connected);
    });
}

#[test]
fn several_complaints_about_one_connection_do_not_end_the_next() {
    let mut world = World::new(SIMPLE);
    let mut complaints = 0;
    world.vendor().behaves(move |_| {
        complaints += 1;
        match complaints {
            ..=4 => Conduct::Refuses(SendError::Unauthorized { reason: "revoked".into() }),
            _ => Conduct::Shows,
        }
    });
    world.live(async |life| {
        let said = life.now();
        for n in 0..4 {
            life.vendor.say("alice", &format!("chat-{n}"), "hello");
        }
        life.quiet().await;
        let took = life.now().since(said);
        assert!(took < Duration::from_secs(7 * 60), "one suspension, not two: {took:?}");
        assert_eq!(life.vendor.truth(|truth| truth.connected.len()), 2);
    });
}

#[test]
fn a_platform_that_panics_while_listening_is_connected_again() {
    for hears in [Hears::Stream, Hears::Requests] {
        World::hearing(SIMPLE, hears).live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", 1).await;
            life.vendor.panics_on_next_arrival();
            life.pass_seconds(5).await;
            life.vendor.say("alice", "home", "again");
            assert_eq!(life.texts("home", 2).await[1], "echo: again");
        });
    }
}

#[test]
fn a_platform_that_panics_while_connecting_is_tried_again() {
    let mut world = World::new(SIMPLE);
    world.vendor().panics_on_next_connection();
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn a_connection_that_never_comes_about_does_not_hold_up_the_others() {
    let mut world = World::new(SIMPLE);
    let other = world.add("other", SIMPLE);
    world.vendor().hangs_while_connecting();
    world.live(async |life| {
        other.say("alice", "home", "hello");
        let begun = life.now();
        life.gateway.every_connection().await;
        let waited = life.now().since(begun);
        assert!(Duration::from_secs(29) < waited && waited < Duration::from_secs(31), "{waited:?}");
        assert_eq!(other.texts("home"), ["echo: hello"]);
        let state = life.account().state;
        assert!(matches!(state, AccountState::Waiting { .. }), "{state:?}");
    });
}

#[test]
fn a_store_that_hangs_does_not_let_an_account_connect_for_ever() {
    let mut world = World::new(SIMPLE);
    world.disk.begins_late(Verb::Cursor, Duration::from_secs(3600));
    world.live(async |life| {
        let begun = life.now();
        life.gateway.every_connection().await;
        let waited = life.now().since(begun);
        assert!(Duration::from_secs(29) < waited && waited < Duration::from_secs(31), "{waited:?}");
        let state = life.account().state;
        assert!(matches!(state, AccountState::Waiting { .. }), "{state:?}");
    });
}

#[test]
fn an_account_is_known_to_be_alive_when_something_was_heard() {
    World::new(SIMPLE).live(async |life| {
        life.pass_seconds(1).await;
        assert_eq!(life.account().heard, None);
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        assert!(life.account().heard.is_some());
    });
}

#[test]
fn an_account_whose_place_somebody_else_takes_says_so_and_rests_longer_each_time() {
    World::new(SIMPLE).live(async |life| {
        life.pass_seconds(1).await;
        for rest in [20, 40, 60, 60] {
            let (problem, hint) = ("somebody else".to_owned(), "stop it".to_owned());
            life.vendor.ends_with(LinkError::Conflict { problem, hint });
            life.pass_seconds(1).await;
            let state = life.account().state;
            assert!(matches!(state, AccountState::Contested { .. }), "{state:?}");
            life.pass_seconds(rest - 2).await;
            assert_ne!(life.account().state, AccountState::Connected, "after {rest} s");
            life.pass_seconds(2).await;
            assert_eq!(life.account().state, AccountState::Connected, "after {rest} s");
            // Something comes through, and the other one is still there.
            life.vendor.say("alice", "home", "hello");
            life.pass_seconds(1).await;
        }
        life.pass_seconds(600).await;
        let (problem, hint) = ("somebody else".to_owned(), "stop it".to_owned());
        life.vendor.ends_with(LinkError::Conflict { problem, hint });
        life.pass_seconds(21).await;
        assert_eq!(life.account().state, AccountState::Connected, "it begins anew");
    });
}
