//! Who is let in, who is put out, and what becomes of everybody else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_gateway::{AccountPlan, Drain, PairError, Paired, Unwritten, carry_out};
use talaria_model::{
    AccountId, ChoiceId, EventId, Inbound, InboundKind, Message, RoleId, Sender, SenderId,
    SenderKind, Source, Timestamp,
};
use talaria_session::pairing::{Chance, Refusal, TypedCode};
use talaria_session::{
    Access, Bots, Busy, Gate, GroupSessions, Mention, PairWish, Reach, RoomRules, Scope, Strangers,
    Tiers,
};
use talaria_store::{AuditDeed, Clue, JournalState, MemoryStore, Store, broken_at};
use tokio::sync::Semaphore;

use crate::world::{End, Life, SIMPLE, Verb, World, agent};

const MAIN: &str = "main";

fn account() -> AccountId {
    AccountId::literal(MAIN)
}

/// An account on which strangers are given codes, and Alice is listed.
fn pairing() -> World {
    let mut world = World::new(SIMPLE);
    assert_eq!(world.vendor().account(), account());
    world.accounts[0].1 =
        Access { strangers: Strangers::Pair, ..Access::only([SenderId::literal("alice")]) };
    world
}

/// The code in what a stranger was told.
fn code(texts: &[String]) -> String {
    let told = texts.last().expect("something was said");
    let (_, rest) = told.split_once('`').expect("a code is marked");
    rest.split('`').next().expect("and ends").to_owned()
}

async fn approve(life: &Life, code: &str, reach: Reach) -> Result<Paired, PairError> {
    let wish = PairWish::Approve(TypedCode::new(code), reach);
    life.gateway.pair(&account(), &wish, "operator").await
}

async fn revoke(life: &Life, who: &str) {
    let wish = PairWish::Revoke(who.to_owned());
    let done = life.gateway.pair(&account(), &wish, "operator").await;
    assert_eq!(done, Ok(Paired::PutOut(SenderId::new(who).expect("an id"))));
}

#[test]
fn a_stranger_gets_a_code_and_is_heard_once_it_is_approved() {
    pairing().live(async |life| {
        life.vendor.say("ann", "home", "do something for me");
        let told = life.texts("home", 1).await;
        let code = code(&told);
        assert!(told[0].contains(&format!("talaria pair approve main {code}")), "{told:?}");
        life.quiet().await;
        let counts = life.disk.counts().await.expect("reads");
        assert_eq!((counts.denied, counts.sessions, counts.entries), (1, 0, 0), "{counts:?}");
        let done = approve(life, &code.to_lowercase(), Reach::Direct).await;
        assert!(matches!(done, Ok(Paired::LetIn { .. })), "{done:?}");
        assert_eq!(life.texts("home", 2).await[1], "Paired! You are let in; say what you need.");
        life.vendor.say("ann", "home", "hello");
        assert_eq!(life.texts("home", 3).await[2], "echo: hello");
        let again = approve(life, &code, Reach::Everywhere).await;
        assert_eq!(again, Err(PairError::Refused(Refusal::NoSuchCode { left: 4 })));
        let rows = life.disk.audited(0, 10).await.expect("reads");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].audited.deed, AuditDeed::LetIn);
        assert_eq!(rows[0].audited.subject, "main:ann");
        assert_eq!(rows[0].audited.actor, "operator");
    });
}

#[test]
fn a_pairing_reaches_no_further_than_it_was_granted() {
    pairing().live(async |life| {
        for (who, reach) in [("ann", Reach::Direct), ("ben", Reach::Everywhere)] {
            life.vendor.say(who, who, "hello");
            let code = code(&life.texts(who, 1).await);
            approve(life, &code, reach).await.expect("approves");
            life.texts(who, 2).await;
        }
        life.vendor.say_in_group("ann", "club", "from ann");
        life.vendor.say_in_group("ben", "club", "from ben");
        let club = life.vendor.group("club");
        life.until("ben is answered", |vendor| !vendor.texts_at(&club).is_empty()).await;
        life.quiet().await;
        assert_eq!(life.vendor.texts_at(&club), ["echo: from ben"]);
        life.vendor.say("ann", "ann", "/restart");
        let told = life.texts("ann", 3).await;
        assert!(told[2].contains("is for administrators"), "{told:?}");
    });
}

#[test]
fn nothing_that_a_stranger_does_has_an_effect_but_the_one_answer() {
    let mut world = pairing();
    world.gate = Gate { mention: Mention::Unneeded, bots: Bots::LikePeople, ..Gate::default() };
    world.live(async |life| {
        let words = |text: &str| Message { text: text.into(), ..Message::default() };
        let kinds = || {
            [
                InboundKind::Said(words("hello")),
                InboundKind::Said(words("/stop")),
                InboundKind::Said(words("/restart")),
                InboundKind::Said(words("/pair")),
                InboundKind::Edited(words("hello again")),
                InboundKind::Pressed(ChoiceId::literal("yes")),
                InboundKind::Stopped,
            ]
        };
        for kind in kinds() {
            life.vendor.does("mallory", life.vendor.group("club"), kind);
        }
        for kind in kinds().into_iter().skip(4) {
            life.vendor.does("mallory", life.vendor.dm("cellar"), kind);
        }
        let mut bot = life.vendor.dm("factory");
        bot.chat.id = talaria_model::ChatId::literal("factory");
        life.vendor.deliver(talaria_model::Inbound {
            id: talaria_model::EventId::literal("bot-1"),
            at: life.now(),
            from: Sender { kind: SenderKind::Bot, ..Sender::new(SenderId::literal("robot")) },
            to: bot,
            source: Default::default(),
            kind: InboundKind::Said(words("hello")),
        });
        life.quiet().await;
        let acts = |life: &Life| life.vendor.truth(|truth| truth.acts.len());
        assert_eq!(acts(life), 0, "silence in groups, to programs, and to what is not said");
        for kind in kinds() {
            life.vendor.does("mallory", life.vendor.dm("home"), kind);
        }
        life.texts("home", 1).await;
        life.quiet().await;
        assert_eq!(acts(life), 1);
        let counts = life.disk.counts().await.expect("reads");
        assert_eq!((counts.sessions, counts.entries, counts.turns_in_hand), (0, 0, 0));
        assert_eq!(counts.denied, 7 + 3 + 1 + 7);
        assert_eq!(life.disk.audited(0, 10).await, Ok(Vec::new()));
    });
}

#[test]
fn where_strangers_are_ignored_nobody_is_answered() {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 = Access::only([SenderId::literal("alice")]);
    world.live(async |life| {
        for text in ["hello", "ABCDEFGH", "abcd-efgh"] {
            life.vendor.say("mallory", "home", text);
        }
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), Vec::<String>::new());
    });
}

#[test]
fn a_stranger_is_answered_once_however_often_it_is_delivered() {
    pairing().live(async |life| {
        let event = life.vendor.say("ann", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.repeat(&event);
        life.vendor.say("ann", "home", "hello?");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 1);
        life.pass_seconds(600).await;
        life.vendor.say("ann", "home", "hello??");
        assert_eq!(life.texts("home", 2).await.len(), 2);
    });
}

#[test]
fn whoever_asks_while_too_many_do_is_told_to_come_again() {
    pairing().live(async |life| {
        for who in ["ann", "ben", "cat"] {
            life.vendor.say(who, who, "hello");
            assert!(life.texts(who, 1).await[0].contains("pairing code"));
        }
        life.vendor.say("dan", "dan", "hello");
        assert!(life.texts("dan", 1).await[0].starts_with("Too many people"));
        life.vendor.say("dan", "dan", "hello");
        life.quiet().await;
        assert_eq!(life.vendor.texts("dan").len(), 1);
    });
}

#[test]
fn a_code_survives_a_restart_and_so_does_who_was_let_in() {
    let mut world = pairing();
    let code = world.live(async |life| {
        life.vendor.say("ann", "home", "hello");
        code(&life.texts("home", 1).await)
    });
    world.live(async |life| {
        approve(life, &code, Reach::Direct).await.expect("approves");
        life.texts("home", 2).await;
    });
    world.live(async |life| {
        life.vendor.say("ann", "home", "hello");
        assert_eq!(life.texts("home", 3).await[2], "echo: hello");
    });
}

#[test]
fn whenever_the_process_dies_a_stranger_is_answered_at_most_once_and_can_be_let_in() {
    for moment in 0.. {
        let mut world = pairing();
        let end = world.live_and_die(moment, async |life| {
            life.vendor.say("ann", "home", "hello");
            life.quiet().await;
        });
        world.live(async |life| {
            life.quiet().await;
            let told = life.vendor.texts("home");
            let plain = told.iter().filter(|text| text.starts_with("I do not know you"));
            assert!(plain.count() <= 1, "moment {moment}: {told:?}");
            life.pass_seconds(600).await;
            life.vendor.say("ann", "home", "hello?");
            life.until("there is a code", |vendor| vendor.texts("home").len() > told.len()).await;
            let code = code(&life.vendor.texts("home"));
            let done = approve(life, &code, Reach::Direct).await;
            assert!(done.is_ok(), "moment {moment}: {done:?}");
        });
        if end == End::Over {
            assert!(moment > 4, "there were moments to die at: {moment}");
            return;
        }
    }
}

#[test]
fn whenever_the_process_dies_an_approval_is_whole_or_was_not_made() {
    for moment in 0.. {
        let mut world = pairing();
        let code = world.live(async |life| {
            life.vendor.say("ann", "home", "hello");
            code(&life.texts("home", 1).await)
        });
        let end = world.live_and_die(moment, async |life| {
            approve(life, &code, Reach::Direct).await.expect("approves");
            life.quiet().await;
        });
        world.live(async |life| {
            life.quiet().await;
            let told = life.vendor.texts("home");
            let recorded = life.disk.audited(0, 10).await.expect("reads");
            let is_in = matches!(
                &*life
                    .disk
                    .guests(&account())
                    .await
                    .expect("reads")
                    .book
                    .guests()
                    .collect::<Vec<_>>(),
                [_]
            );
            assert_eq!(recorded.len(), usize::from(is_in), "moment {moment}");
            assert_eq!(told.len() > 1, is_in, "moment {moment}: {told:?}");
        });
        if end == End::Over {
            return;
        }
    }
}

/// Answers when it is let.
fn patient() -> (Arc<dyn Agent>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let agent = agent(move |stage| {
        let gate = held.clone();
        async move {
            gate.acquire().await.expect("is never closed").forget();
            stage.finish("done").await;
        }
    });
    (agent, gate)
}

#[test]
fn who_is_put_out_is_not_heard_and_what_waits_of_them_is_parked() {
    let (agent, gate) = patient();
    let mut world = pairing().with_agent(agent);
    world.rules.busy = Busy::Queue;
    world.rules.acks = talaria_session::Acks::Never;
    world.rules.room = 2;
    world.live(async |life| {
        life.vendor.say("ann", "home", "hello");
        let code = code(&life.texts("home", 1).await);
        approve(life, &code, Reach::Direct).await.expect("approves");
        life.texts("home", 2).await;
        // One is being answered, two wait in the session, the rest waits in the journal.
        for text in ["first", "second", "third", "fourth", "fifth"] {
            life.vendor.say("ann", "home", text);
        }
        life.until("all are heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(1).await;
        revoke(life, "ann").await;
        gate.add_permits(10);
        assert_eq!(life.texts("home", 3).await[2], "done");
        life.quiet().await;
        assert_eq!(
            life.vendor.texts("home").len(),
            3,
            "what was begun is finished, the rest is not"
        );
        let counts = life.disk.counts().await.expect("reads");
        assert_eq!((counts.denied, counts.unread), (1 + 4, 0));
        life.pass_seconds(700).await;
        life.vendor.say("ann", "home", "am I still there?");
        assert!(life.texts("home", 4).await[3].contains("pairing code"));
        let deeds: Vec<_> = life
            .disk
            .audited(0, 10)
            .await
            .expect("reads")
            .into_iter()
            .map(|row| row.audited.deed)
            .collect();
        assert_eq!(deeds, [AuditDeed::LetIn, AuditDeed::PutOut]);
    });
}

#[test]
fn who_is_taken_off_the_list_is_not_heard_and_what_waits_of_them_is_parked() {
    let (agent, gate) = patient();
    let mut world = World::new(SIMPLE).with_agent(agent);
    world.rules.busy = Busy::Queue;
    world.rules.acks = talaria_session::Acks::Never;
    world.accounts[0].1 = Access::only(["alice", "bob"].map(SenderId::literal));
    world.live(async |life| {
        life.vendor.say("alice", "a", "one");
        life.vendor.say("bob", "b", "one");
        life.vendor.say("bob", "b", "two");
        life.until("all are heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(1).await;
        life.gateway.set_access(&account(), Access::only([SenderId::literal("alice")]));
        gate.add_permits(10);
        assert_eq!(life.texts("a", 1).await, ["done"]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("b"), ["done"], "what was begun is finished");
        assert_eq!(life.disk.counts().await.expect("reads").denied, 1);
    });
}

#[test]
fn what_waits_for_the_disk_is_denied_where_its_sender_is_not_heard_by_then() {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 = Access::only(["alice", "bob"].map(SenderId::literal));
    world.live(async |life| {
        life.disk.fails(Verb::Commit, usize::MAX);
        life.vendor.say("alice", "a", "hello");
        life.vendor.say("bob", "b", "hello");
        life.pass_seconds(10).await;
        life.gateway.set_access(&account(), Access::only([SenderId::literal("alice")]));
        life.disk.heals();
        assert_eq!(life.texts("a", 1).await, ["echo: hello"]);
        life.quiet().await;
        assert!(life.vendor.texts("b").is_empty());
        assert_eq!(life.disk.counts().await.expect("reads").denied, 1);
    });
}

#[test]
fn what_an_earlier_run_let_in_is_denied_where_nobody_is_heard_any_more() {
    let (agent, gate) = patient();
    let mut world = World::new(SIMPLE).with_agent(agent);
    world.rules.busy = Busy::Queue;
    world.live(async |life| {
        life.vendor.say("bob", "b", "one");
        life.vendor.say("bob", "b", "two");
        life.until("all are heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(1).await;
    });
    world.accounts[0].1 = Access::closed();
    gate.add_permits(10);
    world.live(async |life| {
        life.quiet().await;
        let counts = life.disk.counts().await.expect("reads");
        assert_eq!((counts.denied, counts.unread, counts.turns_in_hand), (2, 0, 0), "{counts:?}");
        assert!(life.vendor.texts("b").is_empty());
    });
}

/// How the process ends that leaves a turn in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Stopped,
    Killed,
}

#[test]
fn what_an_earlier_run_left_in_hand_does_not_begin_for_who_is_not_heard_any_more() {
    for leaves in [Leaves::Stopped, Leaves::Killed] {
        let (agent, gate) = patient();
        let mut world = World::new(SIMPLE).with_agent(agent);
        world.rules.busy = Busy::Steer;
        world.rules.acks = talaria_session::Acks::Never;
        world.accounts[0].1 = Access::only(["alice", "mallory"].map(SenderId::literal));
        let mut said = Vec::new();
        world.live(async |life| {
            said.push(life.vendor.say("mallory", "m", "pay me"));
            life.vendor.say("alice", "a", "hello");
            life.until("both are heard", |vendor| vendor.is_heard()).await;
            life.pass_seconds(1).await;
            said.push(life.vendor.say("mallory", "m", "quickly"));
            life.until("it is heard", |vendor| vendor.is_heard()).await;
            life.pass_seconds(1).await;
            if leaves == Leaves::Stopped {
                life.gateway.stop(Duration::ZERO).await;
            }
        });
        let told = world.vendor().texts("m");
        world.accounts[0].1 = Access::only([SenderId::literal("alice")]);
        let asked = Arc::new(Semaphore::new(0));
        let asks = asked.clone();
        world.agent = agent_that_counts(asks);
        gate.close();
        world.live(async |life| {
            life.until("alice is answered", |vendor| {
                vendor.texts("a").last().is_some_and(|text| text == "echo: hello")
            })
            .await;
            life.quiet().await;
            assert_eq!(life.vendor.texts("m"), told, "{leaves:?}: nobody is told anything");
            assert_eq!(asked.available_permits(), 1, "{leaves:?}: one turn, which is Alice's");
            for event in &said {
                let clue = Clue::Id(event.as_str().to_owned());
                let row = life.disk.trace(&clue, 1).await.expect("reads").remove(0);
                let why = "the sender is on no list and not paired";
                assert_eq!(row.state, JournalState::Denied(why.into()), "{leaves:?}");
            }
            let counts = life.disk.counts().await.expect("reads");
            assert_eq!((counts.turns_in_hand, counts.unread), (0, 0), "{leaves:?}: {counts:?}");
        });
    }
}

#[test]
fn a_role_that_is_not_named_any_more_lets_nobody_go_on() {
    for (named_now, answers) in [("cooks", 2), ("guards", 0)] {
        let (mut world, gate) = kitchen();
        world.live(async |life| {
            carla_asks_twice(life).await;
            assert_eq!(life.disk.counts().await.expect("reads").turns_in_hand, 1);
        });
        world.accounts[0].1 = by_role(&[named_now]);
        gate.add_permits(10);
        world.live(async |life| {
            life.quiet().await;
            assert_eq!(life.vendor.texts("c").len(), answers);
            let counts = life.disk.counts().await.expect("reads");
            assert_eq!((counts.denied, counts.turns_in_hand), (2 - answers as u64, 0));
        });
    }
}

#[test]
fn a_role_that_is_taken_out_while_the_gateway_runs_ends_what_waits() {
    let (mut world, gate) = kitchen();
    world.live(async |life| {
        carla_asks_twice(life).await;
        life.gateway.set_access(&account(), by_role(&[]));
        gate.add_permits(10);
        life.quiet().await;
        assert_eq!(life.vendor.texts("c").len(), 1, "what was begun is finished");
        assert_eq!(life.disk.counts().await.expect("reads").denied, 1);
    });
}

#[test]
fn who_waits_by_a_role_on_an_account_that_is_disabled_is_answered_when_it_is_back_if_the_role_counts_then()
 {
    for (case, disabled_with, back_with, answered) in [
        ("the role stays", "cooks", "cooks", 2),
        ("it goes with the account", "guards", "guards", 1),
        ("it goes with the account and comes back with it", "guards", "cooks", 1),
        ("it goes while the account is out", "cooks", "guards", 1),
    ] {
        let (mut world, gate) = kitchen();
        let plan = AccountPlan { access: by_role(&[back_with]), ..world.plan(&world.vendor()) };
        world.live(async |life| {
            carla_asks_twice(life).await;
            // As reading the configuration again does it.
            life.gateway.set_access(&account(), by_role(&[disabled_with]));
            life.gateway.drop_account(&account());
            life.pass_seconds(1).await;
            gate.add_permits(10);
            life.pass_seconds(60).await;
            assert_eq!(life.vendor.texts("c").len(), 0, "{case}: it is out");
            assert_eq!(gate.available_permits(), 9, "{case}: what was begun is finished");
            life.gateway.put_account(plan);
            life.texts("c", answered).await;
            life.quiet().await;
            assert_eq!(life.vendor.texts("c").len(), answered, "{case}");
            let counts = life.disk.counts().await.expect("reads");
            assert_eq!((counts.denied, counts.turns_in_hand), (2 - answered as u64, 0), "{case}");
        });
    }
}

/// An account that lets cooks in, with an agent that waits for permits.
fn kitchen() -> (World, Arc<Semaphore>) {
    let (agent, gate) = patient();
    let mut world = World::new(SIMPLE).with_agent(agent);
    world.rules.busy = Busy::Queue;
    world.rules.acks = talaria_session::Acks::Never;
    world.accounts[0].1 = by_role(&["cooks"]);
    (world, gate)
}

/// People with these roles are heard in direct chats, and Alice is everywhere.
fn by_role(names: &[&'static str]) -> Access {
    let roles: BTreeSet<_> = names.iter().map(|name| RoleId::literal(name)).collect();
    Access {
        direct: RoomRules { roles, ..RoomRules::default() },
        ..Access::only([SenderId::literal("alice")])
    }
}

async fn carla_asks_twice(life: &Life) {
    for (id, text) in [("e1", "one"), ("e2", "two")] {
        life.vendor.deliver(of_a_cook(life, id, text));
    }
    life.until("both are heard", |vendor| vendor.is_heard()).await;
    life.pass_seconds(1).await;
}

/// Something that Carla says, who is one of the cooks and one of the waiters.
fn of_a_cook(life: &Life, id: &'static str, text: &str) -> Inbound {
    let roles = ["waiters", "cooks"].map(RoleId::literal).to_vec();
    Inbound {
        id: EventId::literal(id),
        at: life.now(),
        from: Sender::new(SenderId::literal("carla")),
        to: life.vendor.dm("c"),
        source: Source { roles, ..Source::default() },
        kind: InboundKind::Said(Message { text: text.to_owned(), ..Message::default() }),
    }
}

/// Answers with what was said, and counts how often it is asked.
fn agent_that_counts(asked: Arc<Semaphore>) -> Arc<dyn Agent> {
    agent(move |stage| {
        asked.add_permits(1);
        async move { stage.finish(&stage.echo()).await }
    })
}

#[test]
fn what_was_said_to_a_turn_begins_no_other_for_who_is_put_out_meanwhile() {
    let (agent, gate) = patient();
    let mut world = World::new(SIMPLE).with_agent(agent);
    world.rules.busy = Busy::Steer;
    world.rules.acks = talaria_session::Acks::Never;
    world.live(async |life| {
        life.vendor.say("bob", "b", "one");
        life.pass_seconds(1).await;
        life.vendor.say("bob", "b", "two");
        life.until("both are heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(1).await;
        life.gateway.set_access(&account(), Access::closed());
        gate.add_permits(10);
        life.texts("b", 1).await;
        life.quiet().await;
        assert_eq!(life.vendor.texts("b"), ["done"], "what was begun is finished");
        assert_eq!(gate.available_permits(), 9, "and nothing else is begun");
        assert_eq!(life.disk.counts().await.expect("reads").denied, 1);
    });
}

#[test]
fn what_was_to_be_said_again_is_not_for_who_is_not_heard_any_more() {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 = Access::only([SenderId::literal("bob")]);
    world.live(async |life| {
        life.vendor.say("bob", "b", "one");
        life.texts("b", 1).await;
        life.quiet().await;
        life.disk.begins_late(Verb::History, Duration::from_secs(60));
        life.vendor.say("bob", "b", "/retry");
        life.until("it is heard", |vendor| vendor.is_heard()).await;
        life.pass_seconds(1).await;
    });
    world.disk.begins_late(Verb::History, Duration::ZERO);
    world.accounts[0].1 = Access::closed();
    world.live(async |life| {
        life.pass_seconds(5).await;
        life.quiet().await;
        assert_eq!(life.vendor.texts("b"), ["echo: one"]);
        let counts = life.disk.counts().await.expect("reads");
        assert_eq!((counts.denied, counts.turns_in_hand), (1, 0), "{counts:?}");
    });
}

/// An account on which Alice is an administrator.
fn administered() -> World {
    let mut world = pairing();
    let tiers = Tiers { admins: [SenderId::literal("alice")].into(), ..Tiers::default() };
    world.accounts[0].1.direct = RoomRules { tiers: Arc::new(tiers), ..RoomRules::default() };
    world
}

#[test]
fn an_administrator_hands_a_code_on_and_whoever_says_it_is_let_in() {
    administered().live(async |life| {
        life.vendor.say("alice", "desk", "/pair");
        let told = life.texts("desk", 1).await;
        assert!(told[0].starts_with("Pairing code: `"), "{told:?}");
        let handed_on = code(&told);
        life.vendor.say("ann", "home", &format!(" {} ", handed_on.to_lowercase()));
        assert_eq!(life.texts("home", 1).await, ["Paired! You are let in; say what you need."]);
        life.vendor.say("ann", "home", "hello");
        assert_eq!(life.texts("home", 2).await[1], "echo: hello");
        life.vendor.say("ben", "other", &handed_on);
        assert!(life.texts("other", 1).await[0].contains("pairing code is"), "it is used up");
        life.vendor.say("alice", "desk", "/pair list");
        let list = &life.texts("desk", 2).await[1];
        assert!(
            list.contains("`ben` asks") && list.contains("`ann` is heard in direct chats"),
            "{list}"
        );
        assert!(!list.contains(&handed_on), "{list}");
        let asked = code(&life.vendor.texts("other"));
        life.vendor.say("alice", "desk", &format!("/pair approve {asked}"));
        assert!(life.texts("desk", 3).await[2].starts_with("`ben` is let in"));
        life.vendor.say("alice", "desk", "/pair revoke ann");
        assert!(life.texts("desk", 4).await[3].starts_with("`ann` is not heard"));
        life.vendor.say("ann", "home", "still there?");
        life.quiet().await;
        assert!(!life.vendor.texts("home").iter().any(|text| text.contains("still there")));
        let rows = life.disk.audited(0, 10).await.expect("reads");
        let deeds: Vec<_> = rows.iter().map(|row| row.audited.deed).collect();
        use AuditDeed::{CodeIssued, LetIn, PutOut};
        assert_eq!(deeds, [LetIn, CodeIssued, LetIn, LetIn, PutOut], "Alice came first");
        assert!(rows[1..].iter().all(|row| row.audited.actor == "main:alice"), "{rows:?}");
        assert_eq!(broken_at(None, &rows), None);
        // What may be a code is nowhere written down as it was said.
        let journal = life.disk.ledger();
        let kept = journal.rows.values().map(|row| format!("{:?}", row.inbound));
        let strangers = kept.filter(|row| row.contains("\"ben\"") || row.contains("\"ann\""));
        assert!(strangers.clone().count() >= 3);
        assert!(!strangers.into_iter().any(|row| { row.to_uppercase().contains(&handed_on) }));
    });
}

#[test]
fn a_code_is_good_only_as_long_as_who_handed_it_on_may_let_somebody_in() {
    let mut world = administered();
    let access = world.accounts[0].1.clone();
    world.live(async |life| {
        life.vendor.say("alice", "desk", "/pair");
        let handed_on = code(&life.texts("desk", 1).await);
        let issue = PairWish::Issue(Reach::Direct);
        let done = life.gateway.pair(&account(), &issue, "operator").await;
        let Ok(Paired::Code(of_operator)) = done else { panic!("{done:?}") };
        let tiers = Tiers { admins: [SenderId::literal("carol")].into(), ..Tiers::default() };
        let mut demoted = access.clone();
        demoted.direct.tiers = Arc::new(tiers);
        life.gateway.set_access(&account(), demoted);
        life.vendor.say("mallory", "den", &handed_on);
        life.quiet().await;
        assert_eq!(
            life.vendor.texts("den"),
            Vec::<String>::new(),
            "it is a wrong code like any other"
        );
        life.vendor.say("ann", "home", of_operator.expose());
        assert_eq!(life.texts("home", 1).await, ["Paired! You are let in; say what you need."]);
        // Nor is it good again with its administrator.
        life.gateway.set_access(&account(), access);
        life.vendor.say("mallory", "den", &handed_on);
        life.quiet().await;
        assert!(life.vendor.texts("den").iter().all(|text| !text.starts_with("Paired")));
    });
}

#[test]
fn only_an_administrator_decides_who_is_let_in_and_not_where_others_read_along() {
    administered().live(async |life| {
        life.vendor.say("ann", "home", "hello");
        let asked = code(&life.texts("home", 1).await);
        approve(life, &asked, Reach::Everywhere).await.expect("approves");
        life.texts("home", 2).await;
        life.vendor.say("ann", "home", "/pair");
        assert!(life.texts("home", 3).await[2].contains("is for administrators"));
        life.vendor.say_in_group("alice", "club", "/pair");
        let club = life.vendor.group("club");
        life.until("there is an answer", |vendor| !vendor.texts_at(&club).is_empty()).await;
        assert!(life.vendor.texts_at(&club)[0].contains("direct chat"));
    });
}

#[test]
fn nobody_lets_others_in_where_they_have_no_say_themselves() {
    let mut world = administered();
    let whole = world.accounts[0].1.clone();
    // In groups, Alice is a stranger.
    let mut halved = Access { listed: BTreeSet::new(), ..whole.clone() };
    halved.direct.listed = [SenderId::literal("alice")].into();
    world.live(async |life| {
        life.vendor.say("alice", "desk", "/pair everywhere");
        let handed_on = code(&life.texts("desk", 1).await);
        life.gateway.set_access(&account(), halved);
        life.vendor.say("alice", "desk", "/pair everywhere");
        assert!(life.texts("desk", 2).await[1].contains("to direct chats only"));
        life.vendor.say("ann", "home", "hello");
        let asked = code(&life.texts("home", 1).await);
        life.vendor.say("alice", "desk", &format!("/pair approve {asked} everywhere"));
        assert!(life.texts("desk", 3).await[2].contains("to direct chats only"));
        life.vendor.say("mallory", "den", &handed_on);
        assert!(life.texts("den", 1).await[0].contains("pairing code is"), "it is void by now");
        life.vendor.say("alice", "desk", &format!("/pair approve {asked}"));
        assert!(life.texts("desk", 4).await[3].starts_with("`ann` is let in"));
        life.gateway.set_access(&account(), whole);
        life.vendor.say("alice", "desk", "/pair everywhere");
        let handed_on = code(&life.texts("desk", 5).await);
        life.vendor.say("ben", "other", &handed_on);
        assert_eq!(life.texts("other", 1).await, ["Paired! You are let in; say what you need."]);
    });
}

#[test]
fn whoever_is_no_administrator_any_more_when_the_book_is_read_changes_nothing_in_it() {
    let mut world = administered();
    let mut demoted = world.accounts[0].1.clone();
    let tiers = Tiers { admins: [SenderId::literal("carol")].into(), ..Tiers::default() };
    demoted.direct.tiers = Arc::new(tiers);
    world.live(async |life| {
        life.vendor.say("ann", "home", "hello");
        let asked = code(&life.texts("home", 1).await);
        life.disk.begins_late(Verb::Guests, Duration::from_secs(2));
        life.vendor.say("alice", "desk", "/pair clear");
        life.pass_seconds(1).await;
        life.gateway.set_access(&account(), demoted);
        assert!(life.texts("desk", 1).await[0].contains("no administrator any more"));
        life.disk.begins_late(Verb::Guests, Duration::ZERO);
        approve(life, &asked, Reach::Direct).await.expect("nothing was cleared");
    });
}

#[test]
fn five_mistyped_codes_lock_and_say_so() {
    administered().live(async |life| {
        for n in 1..=5 {
            life.vendor.say("alice", "desk", "/pair approve AAAAAAAA");
            let told = life.texts("desk", n).await;
            let expected =
                if n < 5 { "No open request has that code" } else { "Too many wrong codes" };
            assert!(told[n - 1].starts_with(expected), "{told:?}");
        }
        life.vendor.say("ann", "home", "hello");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 0, "no code is given out either");
        let rows = life.disk.audited(0, 10).await.expect("reads");
        let deeds: Vec<_> = rows.iter().map(|row| row.audited.deed).collect();
        assert_eq!(deeds, [AuditDeed::LetIn, AuditDeed::LockedOut], "Alice came, and locked it");
    });
}

#[test]
fn two_programs_that_answer_each_other_stop() {
    let mut world = World::new(SIMPLE);
    world.gate = Gate { bots: Bots::LikePeople, mention: Mention::Unneeded, ..Gate::default() };
    world.live(async |life| {
        let says = |number: usize| talaria_model::Inbound {
            id: talaria_model::EventId::new(format!("robot-{number}")).expect("an id"),
            at: life.now(),
            from: Sender { kind: SenderKind::Bot, ..Sender::new(SenderId::literal("robot")) },
            to: life.vendor.group("lab"),
            source: Default::default(),
            kind: InboundKind::Said(Message { text: format!("{number}"), ..Message::default() }),
        };
        let lab = life.vendor.group("lab");
        for number in 1..=10 {
            life.vendor.deliver(says(number));
            life.until("it answers", |vendor| vendor.texts_at(&lab).len() == number).await;
        }
        for number in 11..=20 {
            life.vendor.deliver(says(number));
        }
        life.vendor.say_in_group("alice", "lab", "hello");
        life.until("people are heard", |vendor| vendor.texts_at(&lab).len() == 11).await;
        life.quiet().await;
        assert_eq!(life.vendor.texts_at(&lab).len(), 11);
        life.pass(Duration::from_secs(60)).await;
        life.vendor.deliver(says(21));
        life.until("a minute later", |vendor| vendor.texts_at(&lab).len() == 12).await;
    });
}

#[test]
fn a_book_that_cannot_be_written_lets_nobody_in_and_answers_nobody() {
    pairing().live(async |life| {
        life.disk.fails(crate::world::Verb::KeepGuests, 1);
        life.vendor.say("ann", "home", "hello");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 0);
        life.vendor.say("ann", "home", "hello");
        let asked = code(&life.texts("home", 1).await);
        life.disk.lies(crate::world::Verb::KeepGuests, 1);
        let unsure = approve(life, &asked, Reach::Direct).await;
        assert!(matches!(unsure, Err(PairError::Store(_))), "{unsure:?}");
        life.vendor.say("ann", "home", "hello");
        life.until("what was written counts", |vendor| {
            vendor.texts("home").iter().any(|text| text == "echo: hello")
        })
        .await;
    });
}

#[test]
fn who_is_on_a_list_is_recorded_when_they_first_come_and_never_again() {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 = Access {
        direct: RoomRules { listed: [SenderId::literal("bob")].into(), ..RoomRules::default() },
        ..Access::only([SenderId::literal("alice")])
    };
    let recorded = async |life: &Life| {
        let rows = life.disk.audited(0, 10).await.expect("reads");
        assert_eq!(broken_at(None, &rows), None);
        let told = rows.into_iter().map(|row| {
            let talaria_store::Audited { actor, deed, subject, detail } = row.audited;
            format!("{actor} {} {subject}: {detail}", deed.as_str())
        });
        told.collect::<Vec<_>>()
    };
    let expected = [
        "configuration let_in main:alice: the sender is on the account's allow list",
        "configuration let_in main:bob: the sender is on the account's list for such chats",
    ];
    world.live(async |life| {
        for n in 1..=3 {
            life.vendor.say("alice", "a", "hello");
            life.texts("a", n).await;
        }
        life.vendor.say("mallory", "m", "hello");
        life.vendor.say("bob", "b", "hello");
        life.texts("b", 1).await;
        life.quiet().await;
        assert_eq!(recorded(life).await, expected);
    });
    world.live(async |life| {
        life.vendor.say("alice", "elsewhere", "hello");
        life.texts("elsewhere", 1).await;
        life.quiet().await;
        assert_eq!(recorded(life).await, expected, "a restart makes nobody new");
    });
}

#[test]
fn who_comes_in_with_everybody_leaves_no_record() {
    World::new(SIMPLE).live(async |life| {
        life.vendor.say("ann", "a", "hello");
        life.texts("a", 1).await;
        life.quiet().await;
        assert_eq!(life.disk.audited(0, 10).await, Ok(Vec::new()));
    });
}

#[test]
fn nobody_waits_for_a_stranger_at_the_door() {
    pairing().live(async |life| {
        life.disk.begins_late(Verb::KeepGuests, Duration::from_secs(60));
        let begun = life.now();
        life.vendor.say("ann", "ann", "let me in");
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        assert!(life.now().since(begun) < Duration::from_secs(5), "Alice waited for Ann");
        code(&life.texts("ann", 1).await);
    });
}

#[test]
fn strangers_who_come_together_are_answered_by_one_write() {
    pairing().live(async |life| {
        life.disk.begins_late(Verb::KeepGuests, Duration::from_secs(60));
        let begun = life.now();
        for who in ["ann", "ben", "cid"] {
            life.vendor.say(who, who, "let me in");
        }
        for who in ["ann", "ben", "cid"] {
            code(&life.texts(who, 1).await);
        }
        // The first one, and everybody who came meanwhile.
        assert!(life.now().since(begun) < Duration::from_secs(130), "{:?}", life.now());
        let book = life.disk.guests(&account()).await.expect("reads").book;
        assert_eq!(book.requests(life.now()).count(), 3);
    });
}

#[test]
fn an_end_waits_for_who_is_being_attended_to_at_the_door() {
    pairing().live(async |life| {
        life.disk.begins_late(Verb::KeepGuests, Duration::from_secs(5));
        life.vendor.say("ann", "ann", "let me in");
        life.pass_seconds(1).await;
        let drained = life.gateway.drain(Drain::within(Duration::from_secs(60))).await;
        assert!(!drained.unsent, "{drained:?}");
        code(&life.vendor.texts("ann"));
    });
}

#[test]
fn a_panic_at_the_door_does_not_close_it() {
    pairing().live(async |life| {
        life.disk.panics(Verb::KeepGuests, 1);
        life.vendor.say("ann", "ann", "let me in");
        life.quiet().await;
        life.vendor.say("ben", "ben", "let me in");
        code(&life.texts("ben", 1).await);
    });
}

#[test]
fn who_is_let_in_while_they_wait_at_the_door_is_given_no_code() {
    pairing().live(async |life| {
        let issued =
            life.gateway.pair(&account(), &PairWish::Issue(Reach::Direct), "operator").await;
        let Ok(Paired::Code(code)) = issued else { panic!("{issued:?}") };
        life.disk.begins_late(Verb::KeepGuests, Duration::from_secs(10));
        life.vendor.say("ann", "ann", code.expose());
        life.vendor.say("ann", "ann", "hello");
        life.texts("ann", 1).await;
        life.pass_seconds(60).await;
        assert_eq!(life.vendor.texts("ann"), ["Paired! You are let in; say what you need."]);
        let book = life.disk.guests(&account()).await.expect("reads").book;
        assert_eq!(book.requests(life.now()).count(), 0);
    });
}

/// What became of somebody who asked to be let in, as `talaria why` tells it.
fn came(life: &Life, said: &EventId) -> Vec<String> {
    let seen = life.gateway.glimpses(&Clue::Id(said.as_str().to_owned()), 10);
    let knocked = seen.into_iter().filter_map(|glimpse| match glimpse.why {
        Unwritten::Knocked(why) => Some(why.into_owned()),
        _ => None,
    });
    knocked.collect()
}

#[test]
fn what_became_of_who_asks_is_told() {
    pairing().live(async |life| {
        let issued =
            life.gateway.pair(&account(), &PairWish::Issue(Reach::Direct), "operator").await;
        let Ok(Paired::Code(code)) = issued else { panic!("{issued:?}") };
        for (who, text, expected) in [
            ("ann", "hello", "was given a code"),
            ("ann", "hello?", "was answered lately"),
            ("ben", "AAAAAAAA", "said a wrong code"),
            ("cid", code.expose(), "is let in"),
            ("dan", "hello", "was given a code"),
            ("eve", "hello", "was given a code"),
            ("fay", "hello", "too many ask"),
        ] {
            let said = life.vendor.say(who, who, text);
            life.quiet().await;
            assert_eq!(came(life, &said), [expected], "{who}: {text}");
        }
        let mut access = Access::only([SenderId::literal("alice")]);
        access.strangers = Strangers::Ignore;
        life.gateway.set_access(&account(), access);
        let said = life.vendor.say("gus", "gus", "hello");
        life.quiet().await;
        assert_eq!(came(life, &said), ["is ignored"]);
    });
}

#[test]
fn whoever_is_met_with_silence_is_told_of_with_the_reason() {
    pairing().live(async |life| {
        let wish = PairWish::Issue(Reach::Direct);
        life.gateway.pair(&account(), &wish, "operator").await.expect("makes a code");
        for _ in 0..5 {
            life.vendor.say("eve", "eve", "AAAAAAAA");
            life.quiet().await;
        }
        let said = life.vendor.say("eve", "eve", "AAAAAAAA");
        life.quiet().await;
        assert_eq!(came(life, &said), ["is locked out"], "she said too many wrong codes");
        for _ in 0..5 {
            approve(life, "AAAAAAAA", Reach::Direct).await.expect_err("no request has it");
        }
        let said = life.vendor.say("ann", "ann", "hi");
        life.quiet().await;
        assert_eq!(life.vendor.texts("ann"), [""; 0]);
        assert_eq!(came(life, &said), ["is locked out"], "she has never written before");
    });
}

#[test]
fn what_a_stranger_is_told_is_found_by_what_they_said() {
    pairing().live(async |life| {
        let said = life.vendor.say("ann", "ann", "hello");
        let told = life.texts("ann", 1).await;
        life.quiet().await;
        let clue = Clue::Id(said.as_str().to_owned());
        let row = life.disk.trace(&clue, 1).await.expect("reads").remove(0);
        assert_eq!(row.parcels.len(), told.len());
    });
}

#[test]
fn of_too_many_at_the_door_the_last_are_turned_away_and_that_is_told() {
    pairing().live(async |life| {
        life.disk.begins_late(Verb::KeepGuests, Duration::from_secs(60));
        let said: Vec<EventId> = (0..257)
            .map(|number| life.vendor.say(&format!("who{number}"), &format!("{number}"), "hello"))
            .collect();
        life.pass_seconds(1).await;
        // There is room for so many as come at once.
        assert_eq!(came(life, &said[255]), [""; 0]);
        assert_eq!(came(life, &said[256]), ["too many ask"]);
    });
}

#[test]
fn requests_and_codes_that_are_cleared_are_recorded_where_there_are_any() {
    pairing().live(async |life| {
        life.vendor.say("ann", "ann", "hello");
        life.texts("ann", 1).await;
        for many in [1, 0] {
            let done = life.gateway.pair(&account(), &PairWish::Clear, "operator").await;
            assert_eq!(done, Ok(Paired::Cleared(many)));
            let rows = life.disk.audited(0, 10).await.expect("reads");
            let rows: Vec<_> = rows.into_iter().map(|row| row.audited).collect();
            let [row] = &rows[..] else { panic!("{rows:?}") };
            assert_eq!((row.actor.as_str(), row.deed), ("operator", AuditDeed::CodesCleared));
            assert_eq!((row.subject.as_str(), row.detail.as_str()), (MAIN, "one request or code"));
        }
    });
}

#[test]
fn clearing_ends_a_lockout_and_that_is_recorded() {
    pairing().live(async |life| {
        for _ in 0..5 {
            approve(life, "AAAAAAAA", Reach::Direct).await.expect_err("no request has it");
        }
        life.vendor.say("ann", "ann", "hello");
        life.quiet().await;
        assert_eq!(life.vendor.texts("ann"), [""; 0]);
        for _ in 0..2 {
            let done = life.gateway.pair(&account(), &PairWish::Clear, "operator").await;
            assert_eq!(done, Ok(Paired::Cleared(0)));
        }
        let rows = life.disk.audited(0, 10).await.expect("reads");
        let rows: Vec<_> =
            rows.iter().map(|row| (row.audited.deed, row.audited.detail.as_str())).collect();
        let expected = [
            (AuditDeed::LockedOut, "too many mistyped codes"),
            (AuditDeed::CodesCleared, "nothing was open; the lockout is over"),
        ];
        assert_eq!(rows, expected);
        life.vendor.say("ann", "ann", "hello again");
        code(&life.texts("ann", 1).await);
    });
}

#[tokio::test]
async fn whoever_changes_the_book_knows_which_one_it_is_then() {
    let store = MemoryStore::new();
    for number in 1..=3_u8 {
        let (wish, now) = (PairWish::Issue(Reach::Direct), Timestamp::from_millis(0));
        let chance = Chance([number; 32]);
        let (_, guests, _) =
            carry_out(&store, &account(), &wish, "operator", chance, now).await.expect("writes");
        let kept = store.guests(&account()).await.expect("reads");
        assert_eq!((guests.revision, guests.book), (kept.revision, kept.book));
    }
}

#[test]
fn what_waits_of_who_is_not_heard_any_more_is_denied_with_the_next_word_of_anybody() {
    let (agent, gate) = patient();
    let mut world = World::new(SIMPLE).with_agent(agent);
    world.rules.busy = Busy::Queue;
    world.scope = Scope { groups: GroupSessions::Shared, ..Scope::default() };
    world.accounts[0].1 = Access::only(["alice", "bob"].map(SenderId::literal));
    world.live(async |life| {
        let all = life.vendor.group("all");
        life.vendor.say_in_group("alice", "all", "one");
        life.vendor.say_in_group("bob", "all", "two");
        life.pass_seconds(1).await;
        life.gateway.set_access(&account(), Access::only([SenderId::literal("alice")]));
        life.vendor.say_in_group("alice", "all", "three");
        life.pass_seconds(1).await;
        assert_eq!(life.disk.counts().await.expect("reads").denied, 1, "nobody has answered yet");
        assert!(life.vendor.texts_at(&all).is_empty());
        gate.add_permits(2);
        life.until("both answers", |vendor| vendor.texts_at(&all).len() == 2).await;
    });
}
