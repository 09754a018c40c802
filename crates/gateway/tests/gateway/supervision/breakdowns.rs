//! Accounts that break down, come and go, or can never work, and what others notice of it.

use super::*;

#[test]
fn an_account_that_keeps_breaking_down_rests_until_somebody_looks_at_it() {
    let (mut world, other) = watched();
    world.live(async |life| {
        life.pass_seconds(1).await;
        for _ in 0..5 {
            let before = life.account().crashes;
            while life.account().crashes == before {
                life.vendor.panics_on_next_arrival();
                life.pass_seconds(1).await;
            }
        }
        let AccountStatus { state, crashes, .. } = life.account();
        assert!(
            matches!(&state, AccountState::Refused { hint, .. } if hint.contains("resume main")),
            "{state:?}"
        );
        assert_eq!(crashes, 5);
        life.pass_seconds(1).await;
        assert!(other.texts("operator")[0].contains("`main` needs you"));
        let tries = connections(&life.vendor);
        life.pass_seconds(30 * 60).await;
        assert_eq!(connections(&life.vendor), tries, "it rests");
        life.vendor.say("alice", "home", "hello");
        life.gateway.pause(&life.vendor.account(), Pause::Resume, "operator").await.unwrap();
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn an_account_that_rests_after_breakdowns_is_tried_again_by_itself() {
    let (mut world, _) = watched();
    world.live(async |life| {
        while !matches!(life.account().state, AccountState::Refused { .. }) {
            life.vendor.panics_on_next_arrival();
            life.pass_seconds(1).await;
        }
        let breakdowns = life.account().crashes;
        assert!(breakdowns > 1, "{breakdowns}");
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn what_can_never_work_is_not_tried_again_before_somebody_says_so() {
    let (mut world, other) = watched();
    let fatal = ConnectError::Fatal { problem: "no such server".into(), hint: "name one".into() };
    world.vendor().hangs_up([fatal]);
    world.live(async |life| {
        life.gateway.first_connections().await;
        life.pass_seconds(24 * 60 * 60).await;
        assert!(matches!(life.account().state, AccountState::Fatal { .. }));
        assert_eq!(connections(&life.vendor), 1);
        assert!(other.texts("operator")[0].contains("no such server; name one"));
        life.gateway.pause(&life.vendor.account(), Pause::Resume, "operator").await.unwrap();
        life.pass_seconds(1).await;
        assert_eq!(life.account().state, AccountState::Connected);
    });
}

#[test]
fn a_connection_that_comes_and_goes_is_made_ever_more_rarely() {
    World::new(SIMPLE).live(async |life| {
        for n in 0..600 {
            life.vendor.say("alice", "home", &format!("{n}"));
            life.pass_seconds(1).await;
            life.vendor.hangs_up([]);
        }
        let tries = connections(&life.vendor);
        assert!(tries < 40, "{tries} connections in ten minutes");
        life.quiet().await;
        assert_eq!(life.vendor.truth(|truth| truth.most_listening), 1);
    });
}

#[test]
fn an_account_whose_care_broke_down_still_does_what_it_is_told() {
    let mut world = World::new(SIMPLE);
    let keeper = Arc::new(Keeper::default());
    world.steward = keeper.clone();
    world.live(async |life| {
        life.pass_seconds(1).await;
        *keeper.breaks.lock().unwrap() = 1;
        life.vendor.ends_with(LinkError::Unauthorized { reason: "revoked".into() });
        life.pass_seconds(1).await;
        let AccountStatus { state, crashes, .. } = life.account();
        assert_eq!(
            state,
            AccountState::Waiting { reason: "something went wrong inside me".into() }
        );
        assert_eq!(crashes, 1);
        life.pass_seconds(1).await;
        assert_eq!(connections(&life.vendor), 1, "it rests");
        life.gateway.pause(&life.vendor.account(), Pause::Resume, "operator").await.unwrap();
        life.pass_seconds(1).await;
        assert_eq!(life.account().state, AccountState::Connected);
    });
}

/// How long each of these messages waited for its answer.
async fn waits(life: &Life, vendors: &[Vendor], rounds: u32) -> Vec<Duration> {
    let mut waits = Vec::new();
    for round in 0..rounds {
        let said: Timestamp = life.now();
        let text = format!("round {round}");
        vendors.iter().for_each(|vendor| {
            vendor.say("alice", &format!("chat {round}"), &text);
        });
        life.pass_seconds(2).await;
        for vendor in vendors {
            let chat = vendor.dm(&format!("chat {round}"));
            let shown = vendor.truth(|truth| {
                truth.shown.iter().find(|shown| shown.to == chat).map(|shown| shown.at)
            });
            waits.push(shown.expect("answered within two seconds").since(said));
        }
    }
    waits.sort();
    waits
}

#[test]
fn ten_accounts_keep_their_pace_while_five_hang_three_flap_and_two_panic() {
    const ROUNDS: u32 = 60;
    let alone = {
        let mut world = World::new(SIMPLE);
        for n in 1..10 {
            world.add(&format!("good-{n}"), SIMPLE);
        }
        world.live(async |life| waits(life, &life.vendors, ROUNDS).await)
    };
    let mut world = World::new(SIMPLE);
    let mut add = |name: &str, count: usize| -> Vec<Vendor> {
        (1..=count)
            .map(|n| world.add_hearing(&format!("{name}-{n}"), SIMPLE, Hears::Poll))
            .collect()
    };
    let (hang, flap, panic) = (add("hang", 5), add("flap", 3), add("panic", 2));
    let mut good = vec![world.vendor()];
    good.extend((1..10).map(|n| world.add(&format!("good-{n}"), SIMPLE)));
    assert_eq!(world.accounts.len(), 20);
    hang.iter().for_each(|vendor| vendor.is(Reach::Silent));
    let troubled = world.live(async |life| {
        let trouble = async {
            loop {
                flap.iter().for_each(|vendor| vendor.hangs_up([]));
                panic.iter().for_each(Vendor::panics_on_next_arrival);
                life.pass(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = trouble => unreachable!(),
            waits = waits(life, &good, ROUNDS) => {
                assert!(panic.iter().all(|vendor| status(life, vendor.account().as_str()).crashes >= 3));
                assert!(flap.iter().all(|vendor| connections(vendor) > 5));
                for vendor in &hang {
                    let state = status(life, vendor.account().as_str()).state;
                    assert!(matches!(state, AccountState::Waiting { .. } | AccountState::Connecting), "{state:?}");
                }
                waits
            }
        }
    });
    assert_eq!((alone.len(), troubled.len()), (600, 600));
    let p99 = |waits: &[Duration]| waits[waits.len() * 99 / 100];
    assert!(
        p99(&troubled) <= p99(&alone) + Duration::from_millis(10),
        "{:?} alone, {:?} among others",
        p99(&alone),
        p99(&troubled)
    );
}
