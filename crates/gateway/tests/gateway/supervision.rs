//! Who looks after the accounts: deafness, breakdowns, pauses and other settings.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::{
    AccountPlan, AccountState, AccountStatus, Hindrance, PauseError, Probation, Standing, Steward,
};
use talaria_model::{AccountId, Address, Capabilities, Ids, SenderId, TextLimit, Timestamp};
use talaria_platform::{ConnectError, LinkError, Proof, SendError};
use talaria_session::{Access, Busy, Pause, Person, Strangers};
use talaria_store::{Clue, JournalState, MemoryStore, Store};
use tokio::sync::Semaphore;

use crate::world::{Conduct, EDITING, Hears, Life, Reach, SIMPLE, Vendor, Verb, World, agent, key};

/// What nobody is to be told.
const SECRET: &str = "42-canary";

/// A process that knows where the operator is, and which accounts are paused.
#[derive(Default)]
struct Keeper {
    homes: Vec<Address>,
    paused: Mutex<BTreeSet<AccountId>>,
    /// How often looking for a home breaks down.
    breaks: Mutex<u32>,
}

#[async_trait]
impl Steward for Keeper {
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    fn model(&self, name: &str) -> Result<String, String> {
        Err(name.to_owned())
    }

    fn homes(&self) -> Vec<talaria_agent::Home> {
        let breaks = std::mem::take(&mut *self.breaks.lock().unwrap());
        assert_eq!(breaks, 0, "the test says so");
        let home = |at: &Address| talaria_agent::Home {
            at: at.clone(),
            name: None,
            ids: Ids::Needed,
            platform: "sim".into(),
        };
        self.homes.iter().map(home).collect()
    }

    fn destinations(&self) -> Vec<talaria_agent::Destination> {
        Vec::new()
    }

    async fn set_home(&self, _: &Address) -> Result<(), String> {
        Err("no".into())
    }

    fn paused(&self) -> Vec<AccountId> {
        self.paused.lock().unwrap().iter().cloned().collect()
    }

    async fn keep_paused(&self, account: &AccountId, pause: Pause) -> Result<(), String> {
        let mut paused = self.paused.lock().unwrap();
        match pause {
            Pause::Pause => paused.insert(account.clone()),
            Pause::Resume => paused.remove(account),
        };
        Ok(())
    }

    fn discreet<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match text.contains(SECRET) {
            true => text.replace(SECRET, "[hidden]").into(),
            false => text.into(),
        }
    }

    async fn reload(&self, _: &str) -> Result<String, String> {
        Err("no".into())
    }

    async fn restart(&self) -> Result<(), String> {
        Err("no".into())
    }

    async fn run(&self, _: &str) -> Result<String, String> {
        Err("no".into())
    }
}

/// A world with an account that is polled and another one, on which the operator is at home.
fn watched() -> (World, Vendor) {
    watched_hearing(Hears::Poll)
}

/// The same with an account that is heard in another way.
fn watched_hearing(hears: Hears) -> (World, Vendor) {
    let mut world = World::hearing(SIMPLE, hears);
    let other = world.add("other", SIMPLE);
    let homes = vec![other.dm("operator"), world.vendor().dm("operator")];
    world.steward = Arc::new(Keeper { homes, ..Keeper::default() });
    (world, other)
}

fn status(life: &Life, account: &str) -> AccountStatus {
    let found = life.gateway.accounts().into_iter().find(|status| status.id.as_str() == account);
    found.expect("it is configured")
}

fn is_unproven(status: &AccountStatus) -> bool {
    matches!(status.state, AccountState::Unproven { .. })
}

fn nothing_comes_back() -> LinkError {
    LinkError::Deaf { reason: "nothing comes back".into(), until: Proof::Events, since: None }
}

fn connections(vendor: &Vendor) -> usize {
    vendor.truth(|truth| truth.connected.len())
}

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
        assert_eq!(life.texts("home", 1).await[0], "echo: my key is [hidden], keep it");
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
fn a_paused_account_stays_so_after_a_restart_and_loses_nothing() {
    let (mut world, _) = watched();
    let main = AccountId::literal("main");
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        life.gateway.pause(&main, Pause::Pause, "operator").await.unwrap();
        assert_eq!(
            life.gateway.tried(&main, Duration::from_secs(60)).await,
            Some(AccountState::Paused)
        );
        life.vendor.say("alice", "home", "while it is paused");
        life.pass_seconds(60 * 60).await;
        assert_eq!(life.vendor.texts("home").len(), 1);
        let nobody = AccountId::literal("nobody");
        let refused = life.gateway.pause(&nobody, Pause::Pause, "operator").await;
        assert_eq!(refused, Err(PauseError::NoAccount("nobody".into())));
    });
    world.live(async |life| {
        life.gateway.first_connections().await;
        life.pass_seconds(60 * 60).await;
        assert_eq!(life.account().state, AccountState::Paused);
        assert_eq!(connections(&life.vendor), 1);
        life.gateway.pause(&main, Pause::Resume, "operator").await.unwrap();
        assert_eq!(life.texts("home", 2).await[1], "echo: while it is paused");
    });
    world.live(async |life| {
        life.vendor.say("alice", "home", "after");
        assert_eq!(life.texts("home", 3).await[2], "echo: after");
    });
}

#[test]
fn an_administrator_pauses_another_account_from_a_chat_and_not_their_own() {
    let (mut world, other) = watched();
    world.accounts[0].1 = talaria_session::Access::own();
    world.live(async |life| {
        life.vendor.say("alice", "home", "/platforms pause other");
        assert!(life.texts("home", 1).await[0].contains("is paused"));
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Paused);
        life.vendor.say("alice", "home", "/platforms");
        assert!(life.texts("home", 2).await[1].contains("other (scripted): paused"));
        life.vendor.say("alice", "home", "/platforms resume other");
        life.texts("home", 3).await;
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        life.vendor.say("alice", "home", "/platforms pause main");
        assert!(life.texts("home", 4).await[3].contains("talaria platforms pause main"));
        assert_eq!(life.account().state, AccountState::Connected);
        other.say("bob", "home", "/platforms pause main");
        life.pass_seconds(1).await;
        assert!(other.texts("home")[0].contains("for administrators"), "{:?}", other.texts("home"));
    });
}

/// People who are heard on an account, each with the name that the operator knows them by.
fn known(people: &[(&'static str, &str)]) -> Access {
    let person = |(id, name): &(&'static str, &str)| {
        let person = Person { name: (*name).to_owned(), role: None };
        (SenderId::literal(id), Arc::new(person))
    };
    let listed = people.iter().map(|(id, _)| SenderId::literal(id));
    Access { people: people.iter().map(person).collect(), ..Access::only(listed) }
}

#[test]
fn an_administrator_of_one_account_does_not_pause_the_operator_s_own_page() {
    let (mut world, other) = watched();
    // That somebody is known on the page by the same name makes no difference.
    world.accounts[0].1 = Access { people: known(&[("bob", "Bob")]).people, ..Access::own() };
    world.accounts[1].1 = known(&[("bob", "Bob")]);
    world.live(async |life| {
        for verb in ["pause", "resume"] {
            other.say("bob", "home", &format!("/platforms {verb} main"));
        }
        life.quiet().await;
        let texts = other.texts("home");
        assert_eq!(texts.len(), 2, "{texts:?}");
        for text in texts {
            assert!(text.contains("not known as an administrator of main"), "{text}");
        }
        assert_eq!(life.account().state, AccountState::Connected);
        let rows = life.disk.audited(0, 10).await.unwrap();
        assert!(rows.iter().all(|row| row.audited.subject != "main"), "{rows:?}");
    });
}

#[test]
fn who_is_an_administrator_of_two_accounts_pauses_either_and_nobody_else_does() {
    let (mut world, other) = watched();
    world.accounts[0].1 = known(&[("ann", "Ann"), ("bob", "Ben")]);
    world.accounts[1].1 = known(&[("anna", "Ann"), ("bob", "Bob")]);
    world.live(async |life| {
        // Their id is somebody's on the other account, too, but not theirs.
        other.say("bob", "home", "/platforms pause main");
        life.quiet().await;
        assert!(other.texts("home")[0].contains("not known as an administrator of main"));
        assert_eq!(life.account().state, AccountState::Connected);
        other.say("anna", "den", "/platforms pause main");
        life.quiet().await;
        assert!(other.texts("den")[0].contains("is paused"), "{:?}", other.texts("den"));
        assert_eq!(life.account().state, AccountState::Paused);
    });
}

#[test]
fn what_cannot_be_recorded_is_not_paused() {
    let (mut world, other) = watched();
    world.accounts[0].1 = Access::own();
    world.live(async |life| {
        life.disk.fails(Verb::Audit, 1);
        life.vendor.say("alice", "home", "/platforms pause other");
        let told = life.texts("home", 1).await.remove(0);
        assert!(told.contains("cannot be recorded"), "{told}");
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        other.say("alice", "home", "still there?");
        life.quiet().await;
        assert_eq!(other.texts("home"), ["echo: still there?"]);
        life.vendor.say("alice", "home", "/platforms pause other");
        assert!(life.texts("home", 2).await[1].contains("is paused"));
        let rows = life.disk.audited(0, 10).await.unwrap();
        assert_eq!(rows.last().unwrap().audited.detail, "paused");
    });
}

#[test]
fn an_account_that_is_set_up_anew_has_never_two_connections() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.live(async |life| {
        for n in 0..20 {
            other.say("alice", "home", &format!("{n}"));
            life.gateway.put_account(plan.clone());
            life.pass(Duration::from_millis(7 * n)).await;
        }
        life.quiet().await;
        assert_eq!(other.truth(|truth| truth.most_listening), 1);
        let texts = other.texts("home");
        let mut said: Vec<&str> =
            texts.iter().flat_map(|text| text["echo: ".len()..].split(" / ")).collect();
        said.sort_by_key(|number| number.parse::<u32>().unwrap());
        let all: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        assert_eq!(said, all, "each once");
    });
}

#[test]
fn an_account_can_be_added_taken_out_and_put_back_while_the_gateway_runs() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.accounts.truncate(1);
    world.live(async |life| {
        other.say("alice", "home", "first");
        life.pass_seconds(5).await;
        assert_eq!((other.texts("home").len(), life.gateway.accounts().len()), (0, 1));
        life.gateway.put_account(plan.clone());
        let state = life.gateway.tried(&other.account(), Duration::from_secs(60)).await;
        assert_eq!(state, Some(AccountState::Connected));
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: first"]);
        life.gateway.drop_account(&other.account());
        life.pass_seconds(1).await;
        assert_eq!(life.gateway.accounts().len(), 1);
        other.say("alice", "home", "second");
        life.pass_seconds(60).await;
        assert_eq!(other.texts("home").len(), 1, "nobody listens");
        life.gateway.put_account(plan);
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home")[1], "echo: second");
    });
}

#[test]
fn an_account_that_is_added_later_does_not_begin_another_start() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.accounts.truncate(1);
    other.hangs_while_connecting();
    world.live(async |life| {
        assert!(life.gateway.is_starting());
        life.gateway.every_connection().await;
        assert!(!life.gateway.is_starting());
        life.gateway.put_account(plan);
        life.pass_seconds(5).await;
        assert!(!status(life, "other").tried);
        assert!(!life.gateway.is_starting());
    });
}

/// Answers each turn with what was said, one for each permit.
fn one_by_one() -> (Arc<dyn talaria_agent::Agent>, Arc<Semaphore>, Arc<Semaphore>) {
    let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, ends) = (begun.clone(), may_end.clone());
    let agent = agent(move |stage| {
        let (begins, ends) = (begins.clone(), ends.clone());
        async move {
            begins.add_permits(1);
            ends.acquire().await.unwrap().forget();
            stage.finish(&stage.echo()).await;
        }
    });
    (agent, begun, may_end)
}

#[test]
fn what_is_decided_while_an_account_is_out_is_delivered_when_it_is_back() {
    let (mut world, other) = watched();
    let (agent, _, may_end) = one_by_one();
    world.agent = agent;
    let plan = world.plan(&other);
    world.live(async |life| {
        other.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        life.gateway.drop_account(&other.account());
        life.pass_seconds(1).await;
        may_end.add_permits(1);
        life.pass_seconds(60 * 60).await;
        let counts = life.disk.counts().await.unwrap();
        assert_eq!((counts.undelivered, other.texts("home").len()), (1, 0));
        life.gateway.put_account(plan);
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: hello"]);
        life.quiet().await;
    });
}

#[test]
fn what_the_last_run_left_for_an_account_is_delivered_when_the_account_is_added_later() {
    let (mut world, other) = watched();
    let away = || Conduct::Refuses(SendError::Unreachable { reason: "no route".into() });
    other.behaves(move |_| away());
    world.live(async |life| {
        other.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        assert_eq!(life.disk.counts().await.unwrap().undelivered, 1);
    });
    other.behaves(|_| Conduct::Shows);
    let plan = world.plan(&other);
    world.accounts.truncate(1);
    world.live(async |life| {
        life.pass_seconds(60 * 60).await;
        assert_eq!(other.texts("home").len(), 0);
        life.gateway.put_account(plan);
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home"), ["echo: hello"]);
        other.say("alice", "home", "and now?");
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home")[1], "echo: and now?");
    });
}

#[test]
fn an_answer_that_grows_goes_by_how_the_account_is_set_up_at_the_moment() {
    let mut world = World::new(EDITING).with_agent(agent(|stage| async move {
        let mut text = String::new();
        for n in 0..30 {
            text.push_str(&format!("This is the sentence number {n}. "));
            stage.show(&text);
            SystemClock.sleep(Duration::from_millis(250)).await;
        }
        std::future::pending().await
    }));
    let text = TextLimit { max: 200, ..EDITING.text };
    let narrow = Capabilities { text, ..EDITING };
    let plan = world.plan(&world.vendor());
    let plan = AccountPlan { account: plan.account.clone().able(|_| narrow), ..plan };
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(2).await;
        assert_eq!(life.vendor.texts("home").len(), 1);
        life.gateway.put_account(plan);
        life.pass_seconds(20).await;
        let texts = life.vendor.texts("home");
        assert!(texts.len() > 4, "{texts:?}");
        assert!(texts.iter().all(|text| text.chars().count() <= 200), "{texts:?}");
    });
}

/// A gateway whose first account is taken out while a turn works there, one message waits behind it and
/// another has not been heard.
async fn taken_out_at_work(life: &Life, begun: &Semaphore, may_end: &Semaphore) {
    life.vendor.say("alice", "home", "first");
    life.pass_seconds(1).await;
    for text in ["second", "third"] {
        life.vendor.say("alice", "home", text);
        life.pass_seconds(1).await;
    }
    life.gateway.drop_account(&life.vendor.account());
    life.pass_seconds(1).await;
    may_end.add_permits(3);
    life.pass_seconds(60 * 60).await;
    let counts = life.disk.counts().await.unwrap();
    assert_eq!((counts.denied, counts.unread, counts.undelivered), (0, 1, 1), "{counts:?}");
    assert_eq!(begun.available_permits(), 1, "no turn begins for an account that is out");
    let session = life.disk.load(&key(&life.vendor.dm("home"))).await.unwrap().unwrap();
    let turn = &session.hand().expect("it waits").turn;
    let standing = life.gateway.standing(turn, &life.vendor.account());
    assert_eq!(standing, Standing::WaitsForAccount);
    let clue = Clue::Chat { account: life.vendor.account(), chat: life.vendor.dm("home").chat.id };
    let traced = life.disk.trace(&clue, 10).await.unwrap();
    let unread = traced.iter().find(|event| event.state == JournalState::Unread).unwrap();
    let hindrance = life.gateway.hindrance(&unread.inbound, &unread.state);
    assert_eq!(hindrance, Some(Hindrance::Account), "nor is the one read that was not heard");
    assert!(life.vendor.texts("home").is_empty());
}

fn queueing() -> (World, Arc<Semaphore>, Arc<Semaphore>) {
    let (mut world, _) = watched();
    let (agent, begun, may_end) = one_by_one();
    world.agent = agent;
    world.rules.busy = Busy::Queue;
    world.rules.room = 1;
    (world, begun, may_end)
}

#[test]
fn what_was_said_before_an_account_was_taken_out_is_answered_when_it_is_back() {
    let (mut world, begun, may_end) = queueing();
    let plan = world.plan(&world.vendor());
    world.live(async |life| {
        taken_out_at_work(life, &begun, &may_end).await;
        life.gateway.put_account(plan);
        life.pass_seconds(2).await;
        assert_eq!(life.vendor.texts("home"), ["echo: first", "echo: second", "echo: third"]);
        life.quiet().await;
        assert_eq!(life.disk.counts().await.unwrap().denied, 0);
    });
}

#[test]
fn what_waits_for_an_account_is_denied_by_a_start_without_it() {
    let (mut world, begun, may_end) = queueing();
    world.live(async |life| taken_out_at_work(life, &begun, &may_end).await);
    world.accounts.remove(0);
    world.live(async |life| {
        life.pass_seconds(60).await;
        let counts = life.disk.counts().await.unwrap();
        assert_eq!((counts.denied, counts.unread), (2, 0), "{counts:?}");
        assert_eq!(begun.available_permits(), 1, "nor does a turn that was in hand begin");
    });
}

#[test]
fn a_session_that_waits_for_its_account_takes_no_place_from_others() {
    let (mut world, other) = watched();
    let (agent, _, may_end) = one_by_one();
    world.agent = agent;
    world.rules.busy = Busy::Queue;
    world.live(async |life| {
        for text in ["first", "second"] {
            life.vendor.say("alice", "home", text);
            life.pass_seconds(1).await;
        }
        other.say("bob", "den", "hello");
        life.pass_seconds(1).await;
    });
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.pass_seconds(1).await;
        life.gateway.drop_account(&life.vendor.account());
        may_end.add_permits(3);
        life.pass_seconds(60).await;
        assert!(life.vendor.texts("home").is_empty(), "it is out");
        assert_eq!(other.texts("den"), ["echo: hello"]);
    });
}

#[test]
fn an_account_that_is_taken_out_lets_go_of_what_it_was_connected_with() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    let claim = Arc::new(());
    let claimed = Arc::downgrade(&claim);
    let account = plan.account.clone().claiming(move || {
        let _ = &claim;
        Ok(())
    });
    let plan = AccountPlan { account, ..plan };
    world.accounts.truncate(1);
    world.live(async |life| {
        life.gateway.put_account(plan);
        let id = other.account();
        let state = life.gateway.tried(&id, Duration::from_secs(60)).await;
        assert_eq!((state, claimed.strong_count()), (Some(AccountState::Connected), 1));
        life.gateway.drop_account(&id);
        life.gateway.tried(&id, Duration::from_secs(60)).await;
        assert_eq!(claimed.strong_count(), 0);
    });
}

#[test]
fn a_paused_account_that_is_taken_out_and_put_back_stays_paused() {
    let (mut world, other) = watched();
    let plan = world.plan(&other);
    world.live(async |life| {
        life.gateway.pause(&other.account(), Pause::Pause, "operator").await.unwrap();
        life.gateway.drop_account(&other.account());
        life.pass_seconds(1).await;
        life.gateway.put_account(plan.clone());
        life.pass_seconds(60).await;
        assert_eq!(status(life, "other").state, AccountState::Paused);
        life.gateway.pause(&other.account(), Pause::Resume, "operator").await.unwrap();
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        life.gateway.pause(&other.account(), Pause::Pause, "operator").await.unwrap();
    });
    world.accounts.truncate(1);
    world.live(async |life| {
        life.gateway.put_account(plan);
        life.pass_seconds(60).await;
        assert_eq!(
            status(life, "other").state,
            AccountState::Paused,
            "nor after a start without it"
        );
    });
}

#[test]
fn an_account_is_not_connected_before_it_is_known_whom_it_lets_in() {
    let (mut world, other) = watched();
    let access =
        Access { strangers: Strangers::Pair, ..Access::only([SenderId::literal("alice")]) };
    world.accounts[1].1 = access.clone();
    let plan = AccountPlan { access, ..world.plan(&other) };
    world.live(async |life| {
        other.say("ann", "home", "hello");
        life.pass_seconds(1).await;
        let told = other.texts("home").remove(0);
        let code = told.split('`').nth(1).unwrap().to_owned();
        let typed = talaria_session::pairing::TypedCode::new(code);
        let wish = talaria_session::PairWish::Approve(typed, talaria_session::Reach::Direct);
        life.gateway.pair(&other.account(), &wish, "operator").await.unwrap();
        life.pass_seconds(1).await;
        assert_eq!(other.texts("home").len(), 2);
    });
    world.accounts.truncate(1);
    world.live(async |life| {
        other.say("ann", "home", "it is me");
        life.disk.fails(Verb::Guests, 4);
        let before = connections(&other);
        life.gateway.put_account(plan);
        life.pass_seconds(2).await;
        let AccountStatus { state, .. } = status(life, "other");
        assert!(matches!(state, AccountState::Waiting { .. }), "{state:?}");
        assert_eq!(connections(&other), before);
        life.pass_seconds(30).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        assert_eq!(other.texts("home")[2], "echo: it is me", "they are known");
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

#[test]
fn new_settings_with_which_an_account_goes_deaf_are_taken_back_and_the_operator_is_told() {
    let (mut world, other) = watched();
    let plan = world.plan(&world.vendor());
    let (old, new) = (plan.clone(), plan);
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        let mut probation = Probation::default();
        let id = life.vendor.account();
        life.gateway.put_account(new);
        let state = life.gateway.tried(&id, Duration::from_secs(40)).await;
        assert_eq!(state, Some(AccountState::Connected));
        probation.begin(&life.gateway, old);
        // The vendor takes the connection and says nothing on it; the next one is as good as ever.
        life.vendor.forgets_listeners();
        life.pass_seconds(50).await;
        assert!(probation.failed(&life.gateway).is_none(), "nobody knows yet");
        life.pass_seconds(3 * 60).await;
        assert_eq!(life.account().state, AccountState::Connected, "nobody has looked meanwhile");
        let before = connections(&life.vendor);
        let (back, state) = probation.failed(&life.gateway).expect("it was deaf");
        let AccountState::Deaf { reason } = state else { panic!("{state:?}") };
        life.gateway.take_back(back, &reason).await;
        life.pass_seconds(5).await;
        assert_eq!(connections(&life.vendor), before + 1);
        assert!(probation.is_empty());
        let told = other.texts("operator");
        let told = told.last().expect("they are told");
        assert!(told.contains("`main` does not work with its new settings"), "{told}");
        assert!(told.contains("connected and not heard"), "{told}");
    });
}

#[test]
fn new_settings_that_work_for_a_while_have_proved_themselves_whatever_the_clock_says() {
    let (mut world, _) = watched();
    let plan = world.plan(&world.vendor());
    world.live(async |life| {
        let mut probation = Probation::default();
        life.gateway.put_account(plan.clone());
        life.pass_seconds(1).await;
        probation.begin(&life.gateway, plan);
        life.clock.jump(AN_HOUR_BACK);
        life.pass_seconds(149).await;
        assert!(probation.failed(&life.gateway).is_none() && !probation.is_empty());
        life.pass_seconds(1).await;
        assert!(probation.failed(&life.gateway).is_none() && probation.is_empty());
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
        assert!(told[0].contains("the token [hidden] is not known"), "{told:?}");
    });
}

const AN_HOUR_BACK: i64 = -60 * 60 * 1000;

#[test]
fn a_clock_that_is_set_back_delays_neither_the_alarm_nor_the_next_connection() {
    let (mut world, other) = watched();
    world.live(async |life| {
        let elapsed = || life.ground.time.elapsed();
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        for round in 1..=2 {
            let deaf = elapsed();
            life.vendor.forgets_listeners();
            life.pass_seconds(20).await;
            life.clock.jump(AN_HOUR_BACK);
            while connections(&life.vendor) == round {
                life.pass(Duration::from_millis(100)).await;
            }
            let took = elapsed() - deaf;
            // Looked at every tenth of a second.
            assert!(took <= Duration::from_millis(60_100), "rebuilt after {took:?}");
            life.pass_seconds(40).await;
            let told = other.texts("operator");
            assert_eq!(told.len(), round, "{told:?}");
            let seconds = told[round - 1].split("deaf for ").nth(1).unwrap();
            let seconds: u64 = seconds.split(' ').next().unwrap().parse().unwrap();
            assert!((20..=90).contains(&seconds), "{told:?}");
            // The same is told again after an hour of true time.
            life.pass_seconds(61 * 60).await;
        }
    });
}

#[test]
fn a_clock_that_is_set_back_does_not_make_an_account_wait_for_what_is_long_ago() {
    let away = || ConnectError::Unreachable { reason: "away".into() };
    World::new(SIMPLE).live(async |life| {
        let elapsed = || life.ground.time.elapsed();
        let is_back = async |within: Duration| {
            let begun = elapsed();
            while life.account().state != AccountState::Connected {
                life.pass(Duration::from_millis(100)).await;
            }
            let took = elapsed() - begun;
            assert!(took <= within, "{took:?}");
        };
        for n in 0..10 {
            life.vendor.say("alice", "home", &format!("{n}"));
            life.pass_seconds(20).await;
            life.vendor.hangs_up([]);
            life.pass_seconds(1).await;
        }
        life.pass_seconds(11 * 60).await;
        life.clock.jump(AN_HOUR_BACK);
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        // One connection that ends, after ten that are long forgotten.
        life.vendor.hangs_up([]);
        life.pass(Duration::from_millis(10)).await;
        is_back(Duration::from_secs(2)).await;
        // While it waits for its next try.
        life.vendor.say("alice", "home", "hello again");
        life.pass_seconds(1).await;
        life.vendor.hangs_up(std::iter::repeat_with(away).take(5));
        life.pass_seconds(5).await;
        life.clock.jump(AN_HOUR_BACK);
        is_back(Duration::from_secs(70)).await;
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
