//! Connected and not heard, heard and mute, or not there at all: noticed, and told of.

use super::*;

#[test]
fn an_account_that_is_connected_but_deaf_is_noticed_rebuilt_and_told_of_within_a_minute() {
    let (mut world, other) = watched();
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        life.pass_seconds(10).await;
        assert_eq!(connections(&life.vendor), 1);
        let deaf = life.now();
        life.vendor.forgets_listeners();
        life.vendor.say("alice", "home", "is anybody there?");
        // Speaking works all the while, and proves nothing.
        while connections(&life.vendor) == 1 {
            assert_eq!(life.account().state, AccountState::Connected);
            life.pass(Duration::from_millis(100)).await;
        }
        let took = life.now().since(deaf);
        assert!(took <= Duration::from_secs(60), "noticed and rebuilt after {took:?}");
        assert_eq!(life.texts("home", 2).await[1], "echo: is anybody there?", "the gap is read");
        assert_eq!(life.account().state, AccountState::Connected);
        life.quiet().await;
        let told = other.texts("operator");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("`main` was connected but deaf for"), "{told:?}");
        assert!(life.vendor.texts("operator").is_empty(), "on another account");
        assert_eq!(life.vendor.truth(|truth| truth.most_listening), 1, "one after the other");
    });
}

#[test]
fn a_secret_that_somebody_says_is_neither_kept_nor_told_to_the_agent() {
    let (mut world, _) = watched();
    let store = MemoryStore::new();
    world.disk.kept = Arc::new(store.clone());
    world.live(async |life| {
        life.vendor.say("alice", "home", &format!("my key is {SECRET}, keep it"));
        assert_eq!(life.texts("home", 1).await[0], "echo: my key is (hidden), keep it");
        life.quiet().await;
        assert!(store.mentions("my key is") && !store.mentions(SECRET));
    });
}

#[test]
fn an_account_that_nobody_writes_to_is_not_deaf_as_long_as_its_polls_come_back() {
    let (mut world, other) = watched();
    world.live(async |life| {
        life.pass_seconds(60 * 60).await;
        assert_eq!(connections(&life.vendor), 1);
        let heard = life.account().heard.expect("polls are evidence");
        assert!(life.now().since(heard) <= Duration::from_secs(30));
        assert!(other.texts("operator").is_empty());
    });
}

#[test]
fn a_platform_that_stays_deaf_is_tried_ever_more_rarely_and_the_operator_is_told_once() {
    let (mut world, other) = watched();
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        for _ in 0..200 {
            life.vendor.forgets_listeners();
            let tries = connections(&life.vendor);
            life.pass_seconds(10).await;
            // A connection on which nothing was heard yet is no sign that it works.
            let is_new = tries > 1 && connections(&life.vendor) > tries;
            assert!(!is_new || life.account().state != AccountState::Connected);
        }
        let state = life.account().state;
        assert!(
            matches!(state, AccountState::Deaf { .. } | AccountState::Unproven { .. }),
            "{state:?}"
        );
        let tries = connections(&life.vendor);
        assert!((8..=20).contains(&tries), "{tries} connections in 2,000 s");
        let told = other.texts("operator");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("another connection did not help so far"), "{told:?}");
        life.vendor.say("alice", "home", "after");
        assert_eq!(life.texts("home", 2).await[1], "echo: after");
        life.quiet().await;
        assert!(other.texts("operator")[1].contains("was connected but deaf"));
    });
}

#[test]
fn what_the_platform_itself_says_of_its_backlog_is_enough() {
    let (mut world, other) = watched();
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        let begun = life.now();
        life.vendor.ends_with(LinkError::Deaf {
            reason: "three updates wait".into(),
            until: Proof::Life,
            since: None,
        });
        life.until("another connection", |vendor| connections(vendor) == 2).await;
        assert_eq!(life.now(), begun, "at once");
        life.quiet().await;
        life.pass_seconds(40).await;
        assert!(other.texts("operator")[0].contains("three updates wait"));
    });
}

/// Somebody is heard, and then only a connection shows that anything is.
async fn goes_deaf(life: &Life) {
    life.vendor.say("alice", "home", "before");
    life.texts("home", 1).await;
    life.vendor.ends_with(nothing_comes_back());
    life.until("another connection", |vendor| connections(vendor) == 2).await;
    life.quiet().await;
}

#[test]
fn where_a_sign_of_life_proves_nothing_an_account_counts_as_deaf_until_somebody_is_heard() {
    // One has no sign of life, and the polls of the other come back all the while.
    for hears in [Hears::Requests, Hears::Poll] {
        let (mut world, other) = watched_hearing(hears);
        world.live(async |life| {
            goes_deaf(life).await;
            life.pass_seconds(3 * 60 * 60).await;
            assert!(is_unproven(&life.account()), "{:?}", life.account());
            let told = other.texts("operator");
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].contains("`main` was connected but deaf for"), "{told:?}");
            assert!(told[0].contains("shows when somebody writes there"), "{told:?}");
            life.vendor.say("alice", "home", "after");
            assert_eq!(life.texts("home", 2).await[1], "echo: after");
            life.quiet().await;
            assert_eq!(life.account().state, AccountState::Connected);
            assert!(other.texts("operator")[1].contains("went on from where I had stopped"));
        });
    }
}

#[test]
fn who_is_deaf_a_second_time_within_an_hour_is_told_of_when_that_is_over() {
    let (mut world, other) = watched_hearing(Hears::Requests);
    world.live(async |life| {
        for time in [1, 2] {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", time).await;
            life.quiet().await;
            life.vendor.ends_with(nothing_comes_back());
            life.until("another connection", |vendor| connections(vendor) == time + 1).await;
            life.pass_seconds(60).await;
        }
        let told = other.texts("operator");
        assert_eq!(told.len(), 2, "deaf and heard again, once within an hour: {told:?}");
        life.pass_seconds(70 * 60).await;
        let told = other.texts("operator");
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[2].contains("shows when somebody writes there"), "{told:?}");
    });
}

#[test]
fn what_was_deaf_is_not_when_it_is_set_up_in_another_way() {
    let mut world = World::hearing(SIMPLE, Hears::Requests);
    let plan = world.plan(&world.vendor());
    world.live(async |life| {
        goes_deaf(life).await;
        life.gateway.pause(&life.vendor.account(), Pause::Resume, "operator").await.unwrap();
        life.until("another connection", |vendor| connections(vendor) == 3).await;
        life.quiet().await;
        assert!(is_unproven(&life.account()), "a connection proves nothing: {:?}", life.account());
        life.gateway.put_account(plan);
        life.until("another connection", |vendor| connections(vendor) == 4).await;
        life.quiet().await;
        let state = life.account().state;
        assert_eq!(state, AccountState::Connected, "of these settings nothing is known");
    });
}

#[test]
fn who_cannot_be_told_elsewhere_is_not_told_on_the_account_that_is_deaf() {
    let mut world = World::hearing(SIMPLE, Hears::Poll);
    let homes = vec![world.vendor().dm("operator")];
    world.steward = Arc::new(Keeper { homes, ..Keeper::default() });
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        life.vendor.forgets_listeners();
        life.vendor.say("alice", "home", "after");
        life.texts("home", 2).await;
        life.quiet().await;
        assert!(life.vendor.texts("operator").is_empty());
    });
}

#[test]
fn whether_we_are_heard_is_known_apart_from_whether_we_hear() {
    let mut world = World::new(SIMPLE);
    let away = || Conduct::Refuses(SendError::Unreachable { reason: "no route".into() });
    world.vendor().first(std::iter::repeat_with(away).take(3));
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.until("a try", |vendor| vendor.truth(|truth| truth.acts.len() == 2)).await;
        let AccountStatus { state, heard, spoke, mute, .. } = life.account();
        assert_eq!((state, spoke), (AccountState::Connected, None));
        assert!(heard.is_some());
        let mute = mute.expect("nothing gets through");
        assert!(mute.why.contains("no route") && mute.since <= life.now(), "{mute:?}");
        life.texts("home", 1).await;
        life.quiet().await;
        let AccountStatus { spoke, mute, .. } = life.account();
        assert!(spoke.is_some() && mute.is_none(), "{mute:?}");
    });
}

#[test]
fn an_account_that_hears_and_is_mute_fails_after_a_minute_and_is_told_of_after_five() {
    let mut world = World::new(SIMPLE);
    let other = world.add("other", SIMPLE);
    let homes = vec![other.dm("operator")];
    world.steward = Arc::new(Keeper { homes, ..Keeper::default() });
    let away = || Conduct::Refuses(SendError::Unreachable { reason: "no route".into() });
    world.vendor().behaves(move |_| away());
    world.live(async |life| {
        let is_failing = || life.account().is_failing(life.clock.mark());
        life.vendor.say("alice", "home", "hello");
        life.until("a try", |vendor| vendor.truth(|truth| !truth.acts.is_empty())).await;
        life.pass_seconds(50).await;
        assert!(!is_failing(), "it may have been nothing");
        life.pass_seconds(15).await;
        assert!(is_failing(), "{:?}", life.account());
        assert_eq!(life.account().state, AccountState::Connected, "it is heard all the same");
        assert!(!status(life, "other").is_failing(life.clock.mark()));
        life.pass_seconds(230).await;
        assert!(other.texts("operator").is_empty(), "{:?}", other.texts("operator"));
        life.pass_seconds(190).await;
        let told = other.texts("operator");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("`main` hears, but nothing that I say there"), "{told:?}");
        assert!(told[0].contains("no route"), "{told:?}");
        life.pass_seconds(3 * 60 * 60).await;
        assert_eq!(other.texts("operator").len(), 1, "once");
        life.vendor.behaves(|_| Conduct::Shows);
        life.pass_seconds(190).await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
        assert!(!is_failing());
        let told = other.texts("operator");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("gets through again"), "{told:?}");
    });
}

#[test]
fn an_account_that_cannot_be_reached_is_told_of_once_after_ten_minutes_and_when_it_is_back() {
    let (mut world, other) = watched();
    let away = || ConnectError::Unreachable { reason: "no route to host".into() };
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        // Three minutes, about which nobody has to know.
        life.vendor.hangs_up(std::iter::repeat_with(away).take(7));
        life.pass_seconds(10 * 60).await;
        assert_eq!(life.account().state, AccountState::Connected);
        assert!(other.texts("operator").is_empty(), "{:?}", other.texts("operator"));

        let begun = life.ground.time.elapsed();
        life.vendor.hangs_up(std::iter::repeat_with(away).take(60));
        life.pass_seconds(30).await;
        life.clock.jump(AN_HOUR_BACK);
        while other.texts("operator").is_empty() {
            life.pass_seconds(1).await;
        }
        let took = life.ground.time.elapsed() - begun;
        assert!((600..=800).contains(&took.as_secs()), "{took:?}");
        let told = other.texts("operator");
        assert!(told[0].contains("`main` could not be reached for 1"), "{told:?}");
        assert!(told[0].contains("no route to host"), "{told:?}");
        while life.account().state != AccountState::Connected {
            life.pass_seconds(60).await;
            assert!(other.texts("operator").len() <= 2, "once: {:?}", other.texts("operator"));
        }
        life.pass_seconds(60).await;
        let told = other.texts("operator");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("`main` can be reached again, after"), "{told:?}");
        life.vendor.say("alice", "home", "after");
        assert_eq!(life.texts("home", 2).await[1], "echo: after");
    });
}

#[test]
fn an_alarm_says_nothing_that_must_not_be_said() {
    let (mut world, other) = watched();
    let problem = format!("the token {SECRET} is not known");
    world.vendor().hangs_up([ConnectError::Fatal { problem, hint: "take another".into() }]);
    world.live(async |life| {
        life.pass_seconds(5).await;
        let told = other.texts("operator");
        assert!(told[0].contains("the token (hidden) is not known"), "{told:?}");
    });
}
