//! Something is asked about before it is done: on the platforms, over restarts, and for good.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_gateway::AccountPlan;
use talaria_model::{
    AccountId, Address, Approval, Approver, CallId, Capabilities, ChatKind, ChoiceId, Choices,
    Digest, EarlierYes, EventId, Inbound, InboundKind, Lasting, Message, Question, RoleId, Sender,
    SenderId, SenderKind, Source, Timestamp, Typing,
};
use talaria_platform::SendError;
use talaria_session::budget::Budget;
use talaria_session::{
    Access, Approvals, Approvers, Asking, Bots, Gate, GroupSessions, Rules, Scope, Tiers,
};
use talaria_store::Store;
use tokio::sync::Semaphore;

use crate::spending::{bursting, say_at_length};
use crate::world::{Conduct, EDITING, Life, SIMPLE, Vendor, Verb, World, agent};

pub(crate) const BUTTONS: Capabilities =
    Capabilities { choices: Choices::Buttons { max: 4, id: 64 }, ..SIMPLE };
const CHANGING: Capabilities =
    Capabilities { choices: Choices::Buttons { max: 4, id: 64 }, ..EDITING };

const HANDLE: &str = "0123456789abcdef0123456789abcdef";

fn question() -> Question {
    let approval = Approval {
        handle: HANDLE.into(),
        digest: Digest::new([1; 32]),
        tool: "pay".into(),
        lasting: Lasting::Possible(Digest::new([2; 32])),
        earlier: EarlierYes::CountsNot,
        approver: Approver::default(),
    };
    Question {
        call: CallId::literal("call"),
        text: "May I pay?".into(),
        choices: approval.choices(),
        approval: Some(Box::new(approval)),
    }
}

pub(crate) fn choice(word: &str) -> ChoiceId {
    ChoiceId::new(format!("{HANDLE}.{word}")).unwrap()
}

/// Asks whether it may pay, then tells what was answered.
pub(crate) fn paying() -> Arc<dyn Agent> {
    agent(|mut stage| async move {
        let answer = stage.ask(question()).await;
        stage.finish(&format!("{answer:?}")).await;
    })
}

pub(crate) const ONCE: &str = "Approved { digest: 01010101, consent: Once }";
const ALWAYS: &str = "Approved { digest: 01010101, consent: Always }";

/// Alice and her friends are named: who only came in with everybody approves nothing.
pub(crate) fn world(can: Capabilities) -> World {
    let mut world = World::new(can).with_agent(paying());
    let named = ["alice", "bob", "carol"].map(SenderId::literal);
    world.accounts[0].1 = Access { listed: named.into(), ..Access::everyone() };
    world
}

#[test]
fn the_outcome_takes_the_place_of_the_question_where_messages_can_be_changed() {
    world(CHANGING).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["May I pay?"]);
        life.vendor.press("alice", "home", &choice("once"));
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts, ["May I pay?\n\n✅ approved once by `alice`", ONCE]);
        let buttons = life.vendor.truth(|truth| truth.shown[0].content.choices.len());
        assert_eq!(buttons, 0, "nobody can press it again");
    });
}

#[test]
fn what_is_said_before_the_question_has_arrived_approves_nothing() {
    for words in ["yes", "/approve"] {
        let mut world = world(BUTTONS);
        let throttled = SendError::Throttled { after: Duration::from_secs(60) };
        world.vendor().first([Conduct::Refuses(throttled)]);
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.pass_seconds(5).await;
            life.vendor.say("alice", "home", words);
            let texts = life.texts("home", 2).await;
            assert_eq!(texts[0], "May I pay?", "{words}");
            assert!(texts[1].contains("before my question could be read"), "{words}: {texts:?}");
            life.pass_seconds(1).await;
            life.vendor.say("alice", "home", words);
            let texts = life.texts("home", 4).await;
            assert_eq!(texts[3], ONCE, "{words}");
        });
    }
}

#[test]
fn what_was_held_up_on_its_way_from_before_the_question_approves_nothing() {
    world(BUTTONS).live(async |life| {
        let before = life.now();
        let came_late = |id: &'static str, at| Inbound {
            id: EventId::literal(id),
            at,
            from: Sender::new(SenderId::literal("alice")),
            to: life.vendor.dm("home"),
            source: Source::default(),
            kind: says("yes"),
        };
        life.pass_seconds(60).await;
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["May I pay?"]);
        let asked = life.now();
        life.pass_seconds(60).await;
        life.vendor.deliver(came_late("about something else", before));
        let texts = life.texts("home", 2).await;
        assert!(texts[1].contains("before my question could be read"), "{texts:?}");
        // Its platform tells the time in whole seconds.
        let whole_second = Timestamp::from_millis(asked.as_millis() / 1000 * 1000);
        life.vendor.deliver(came_late("about the question", whole_second));
        assert_eq!(life.texts("home", 4).await[3], ONCE);
    });
}

#[test]
fn the_outcome_is_said_where_messages_cannot_be_changed() {
    world(BUTTONS).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &choice("deny"));
        life.quiet().await;
        let texts = life.vendor.texts("home");
        let denied = r#"Denied { reason: "" }"#;
        assert_eq!(texts, ["May I pay?", "⛔ denied by `alice`", denied]);
    });
}

#[test]
fn the_outcome_is_said_anew_where_the_question_cannot_be_found_any_more() {
    let mut world = world(CHANGING);
    let vendor = world.vendor();
    vendor.behaves(|outbound| match &outbound.act {
        talaria_model::Act::Edit { .. } => {
            Conduct::Refuses(SendError::Rejected { reason: "no such message".into() })
        }
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &choice("once"));
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[1].contains("✅ approved once"), "{texts:?}");
    });
}

#[test]
fn a_question_and_its_outcome_survive_the_process() {
    let mut world = world(CHANGING);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
    });
    world.live(async |life| {
        life.vendor.press("alice", "home", &choice("once"));
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts, ["May I pay?\n\n✅ approved once by `alice`", ONCE]);
    });
}

#[test]
fn nobody_answering_is_a_no_and_is_said() {
    let mut world = world(CHANGING);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        let asked = life.now();
        let texts = life.texts("home", 2).await;
        assert_eq!(texts, ["May I pay?\n\n⌛ not done: nobody answered in time", "Expired"]);
        let waited = life.now().since(asked);
        assert!(waited >= Duration::from_secs(300) && waited < Duration::from_secs(400));
        life.vendor.press("alice", "home", &choice("once"));
        assert_eq!(life.texts("home", 3).await[2], "That question is not open any more.");
    });
}

#[test]
fn what_is_approved_for_good_is_not_asked_again_until_it_is_revoked() {
    let mut world = world(BUTTONS);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &choice("always"));
        assert_eq!(life.texts("home", 3).await[2], ALWAYS);
    });
    world.live(async |life| {
        life.vendor.say("alice", "home", "once more");
        assert_eq!(life.texts("home", 4).await[3], ALWAYS);
        let granted = life.disk.grants(10).await.unwrap();
        assert_eq!(granted.len(), 1);
        assert_eq!(granted[0].sender, SenderId::literal("alice"));
        assert!(life.disk.revoke_grant(&granted[0].digest).await.unwrap());
        life.vendor.say("alice", "home", "and again");
        assert_eq!(life.texts("home", 5).await[4], "May I pay?");
    });
}

#[test]
fn what_cannot_be_looked_up_is_asked_about() {
    let mut world = world(BUTTONS);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &choice("always"));
        life.texts("home", 3).await;
    });
    world.disk.fails(crate::world::Verb::Granted, 1);
    world.live(async |life| {
        life.vendor.say("alice", "home", "once more");
        assert_eq!(life.texts("home", 4).await[3], "May I pay?");
    });
}

#[test]
fn what_somebody_approved_lasts_only_as_long_as_they_may_approve() {
    for (consent, asked_for) in [("session", "Session"), ("always", "Always")] {
        world(BUTTONS).live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", 1).await;
            life.vendor.press("alice", "home", &choice(consent));
            life.texts("home", 3).await;
            life.vendor.say("alice", "home", "once more");
            let texts = life.texts("home", 4).await;
            assert!(texts[3].contains(asked_for), "{texts:?}");
            // She is heard like everybody, and approves nothing any more.
            life.gateway.set_access(&AccountId::literal("main"), Access::everyone());
            life.vendor.say("alice", "home", "and again");
            let texts = life.texts("home", 5).await;
            assert!(texts[4].starts_with("⛔ `pay` is not done"), "{consent}: {texts:?}");
        });
    }
}

/// Bob is the administrator of groups.
pub(crate) fn with_admin(by: Approvers, groups: GroupSessions) -> World {
    let mut world = world(BUTTONS);
    world.scope = Scope { groups, ..Scope::default() };
    world.rules.approvals = Approvals { by, ..Approvals::default() };
    let admins = BTreeSet::from([SenderId::literal("bob")]);
    world.accounts[0].1.group.tiers = Arc::new(Tiers { admins, ..Tiers::default() });
    world
}

#[test]
fn a_tap_of_somebody_else_approves_nothing_unless_policy_says_so() {
    for groups in [GroupSessions::PerMember, GroupSessions::Shared] {
        for (by, who, approves) in [
            (Approvers::Requester, "bob", false),
            (Approvers::Requester, "carol", false),
            (Approvers::Requester, "alice", true),
            (Approvers::Admins, "bob", true),
            (Approvers::Admins, "carol", false),
            (Approvers::Admins, "alice", false),
            (Approvers::Both, "bob", true),
            (Approvers::Both, "carol", false),
            (Approvers::Both, "alice", true),
        ] {
            let case = format!("{by:?} {who} {groups:?}");
            with_admin(by, groups).live(async |life| {
                let all = life.vendor.group("all");
                life.vendor.say_in_group("alice", "all", "hello");
                life.until("the question", |vendor| vendor.texts_at(&all) == ["May I pay?"]).await;
                life.vendor.does(who, all.clone(), InboundKind::Pressed(choice("once")));
                life.until("a word about it", |vendor| vendor.texts_at(&all).len() > 1).await;
                life.pass_seconds(1).await;
                let texts = life.vendor.texts_at(&all);
                assert_eq!(texts.contains(&ONCE.to_owned()), approves, "{case}: {texts:?}");
                if !approves {
                    assert_eq!(texts[1], "That is not yours to approve.", "{case}");
                }
            });
        }
    }
}

#[test]
fn what_an_administrator_approved_for_others_lasts_only_as_long_as_they_are_one() {
    for consent in ["session", "always"] {
        with_admin(Approvers::Both, GroupSessions::PerMember).live(async |life| {
            let all = life.vendor.group("all");
            let asked = |vendor: &Vendor| {
                vendor.texts_at(&all).iter().filter(|text| *text == "May I pay?").count()
            };
            let answered = |vendor: &Vendor| {
                vendor.texts_at(&all).iter().filter(|text| text.starts_with("Approved")).count()
            };
            life.vendor.say_in_group("alice", "all", "hello");
            life.until("the question", |vendor| asked(vendor) == 1).await;
            life.vendor.does("bob", all.clone(), InboundKind::Pressed(choice(consent)));
            life.until("the answer", |vendor| answered(vendor) == 1).await;
            life.vendor.say_in_group("alice", "all", "once more");
            life.until("another, unasked", |vendor| answered(vendor) == 2).await;
            assert_eq!(asked(&life.vendor), 1, "{consent}");
            // Carol is the administrator now, and Alice and Bob are named like anybody.
            let mut access =
                with_admin(Approvers::Both, GroupSessions::PerMember).accounts[0].1.clone();
            let admins = BTreeSet::from([SenderId::literal("carol")]);
            access.group.tiers = Arc::new(Tiers { admins, ..Tiers::default() });
            life.gateway.set_access(&AccountId::literal("main"), access);
            life.vendor.say_in_group("alice", "all", "and again");
            life.until("the question again", |vendor| asked(vendor) == 2).await;
            assert_eq!(answered(&life.vendor), 2, "{consent}");
        });
    }
}

#[test]
fn a_button_answers_only_in_the_chat_that_it_is_in() {
    with_admin(Approvers::Admins, GroupSessions::PerMember).live(async |life| {
        let (all, other) = (life.vendor.group("all"), life.vendor.group("other"));
        life.vendor.say_in_group("alice", "all", "hello");
        life.until("the question", |vendor| vendor.texts_at(&all) == ["May I pay?"]).await;
        life.vendor.does("bob", other.clone(), InboundKind::Pressed(choice("once")));
        let told = ["That question is not open any more."];
        life.until("a refusal", |vendor| vendor.texts_at(&other) == told).await;
        assert_eq!(life.vendor.texts_at(&all), ["May I pay?"]);
    });
}

#[test]
fn an_administrator_is_heard_by_the_session_that_asked_also_after_a_restart() {
    let mut world = with_admin(Approvers::Admins, GroupSessions::PerMember);
    let all = world.vendor().group("all");
    world.live(async |life| {
        life.vendor.say_in_group("alice", "all", "hello");
        life.until("the question", |vendor| vendor.texts_at(&all) == ["May I pay?"]).await;
    });
    world.live(async |life| {
        life.pass_seconds(5).await;
        life.vendor.does("bob", all.clone(), InboundKind::Pressed(choice("once")));
        life.until("the answer", |vendor| vendor.texts_at(&all).contains(&ONCE.to_owned())).await;
    });
}

/// Asks whoever says *pay* whether it may, under a handle of their own, and repeats everything else.
fn paying_on_request() -> Arc<dyn Agent> {
    agent(|mut stage| async move {
        if stage.said() != "pay" {
            let answer = stage.echo();
            return stage.finish(&answer).await;
        }
        let who = stage.turn.from.id.to_string();
        let mut question = question();
        let approval = question.approval.as_mut().unwrap();
        approval.handle = handle_of(&who);
        question.choices = approval.choices();
        question.text = format!("May I pay for {who}?");
        let answer = stage.ask(question).await;
        stage.finish(&format!("{who}: {answer:?}")).await;
    })
}

fn handle_of(who: &str) -> String {
    format!("{who:0<32}")
}

pub(crate) fn says(text: &str) -> InboundKind {
    InboundKind::Said(Message { text: text.into(), ..Message::default() })
}

#[test]
fn words_of_whoever_may_approve_reach_the_session_that_asked() {
    for groups in [GroupSessions::PerMember, GroupSessions::Shared] {
        for (by, who, words, outcome) in [
            (Approvers::Admins, "bob", "/approve", "consent: Once"),
            (Approvers::Admins, "bob", "/approve session", "consent: Session"),
            (Approvers::Admins, "bob", "/APPROVE@talaria always", "consent: Always"),
            (Approvers::Admins, "bob", "/deny too dear", "Denied { reason: \"too dear\" }"),
            (Approvers::Both, "bob", "/approve", "consent: Once"),
            (Approvers::Both, "alice", "/approve", "consent: Once"),
            (Approvers::Requester, "alice", "/approve", "consent: Once"),
        ] {
            let case = format!("{by:?} {who} {words} {groups:?}");
            with_admin(by, groups).live(async |life| {
                let all = life.vendor.group("all");
                life.vendor.say_in_group("alice", "all", "hello");
                life.until("the question", |vendor| vendor.texts_at(&all) == ["May I pay?"]).await;
                life.vendor.does(who, all.clone(), says(words));
                life.until("a word about it", |vendor| vendor.texts_at(&all).len() > 1).await;
                life.pass_seconds(1).await;
                let texts = life.vendor.texts_at(&all);
                assert!(texts.last().unwrap().contains(outcome), "{case}: {texts:?}");
            });
        }
    }
}

#[test]
fn words_of_whoever_may_not_approve_change_nothing() {
    for groups in [GroupSessions::PerMember, GroupSessions::Shared] {
        for (by, who) in [
            (Approvers::Requester, "bob"),
            (Approvers::Requester, "carol"),
            (Approvers::Admins, "carol"),
            (Approvers::Admins, "mallory"),
            (Approvers::Both, "carol"),
            (Approvers::Both, "mallory"),
        ] {
            for (words, told) in [
                ("/approve", "That is not yours to approve."),
                ("/approve always", "That is not yours to approve."),
                ("/deny", "That is not yours to deny."),
            ] {
                let case = format!("{by:?} {who} {words} {groups:?}");
                with_admin(by, groups).live(async |life| {
                    let all = life.vendor.group("all");
                    life.vendor.say_in_group("alice", "all", "hello");
                    life.until("the question", |vendor| vendor.texts_at(&all).len() == 1).await;
                    life.vendor.does(who, all.clone(), says(words));
                    life.until("a word about it", |vendor| vendor.texts_at(&all).len() > 1).await;
                    life.pass_seconds(1).await;
                    let texts = life.vendor.texts_at(&all);
                    assert_eq!(texts, ["May I pay?", told], "{case}");
                    assert!(life.disk.grants(10).await.unwrap().is_empty(), "{case}");
                });
            }
        }
    }
}

#[test]
fn a_strangers_word_is_not_even_heard() {
    let mut world = with_admin(Approvers::Both, GroupSessions::PerMember);
    world.accounts[0].1.group.policy = talaria_session::Policy::Named;
    world.live(async |life| {
        let all = life.vendor.group("all");
        life.vendor.say_in_group("alice", "all", "hello");
        life.until("the question", |vendor| vendor.texts_at(&all).len() == 1).await;
        for kind in [says("/approve"), says("/deny"), InboundKind::Pressed(choice("once"))] {
            life.vendor.does("mallory", all.clone(), kind);
        }
        life.pass_seconds(2).await;
        assert_eq!(life.vendor.texts_at(&all), ["May I pay?"]);
        life.vendor.does("bob", all.clone(), says("/approve"));
        life.until("the answer", |vendor| vendor.texts_at(&all).contains(&ONCE.to_owned())).await;
    });
}

#[test]
fn only_the_command_itself_answers_what_another_was_asked() {
    let passed_on = Message {
        text: "/approve".into(),
        forwarded: Some(talaria_model::Author::Unknown),
        ..Message::default()
    };
    let to_others = Message {
        text: "/approve".into(),
        addressed: talaria_model::Addressed::ToOthers,
        ..Message::default()
    };
    for kind in [
        says("yes"),
        says("👍"),
        says("approve"),
        says("1"),
        says("no"),
        says("please /approve"),
        says("/appr"),
        InboundKind::Said(passed_on),
        InboundKind::Said(to_others),
    ] {
        let mut world = with_admin(Approvers::Both, GroupSessions::PerMember);
        world.agent = paying_on_request();
        world.live(async |life| {
            let all = life.vendor.group("all");
            life.vendor.say_in_group("alice", "all", "pay");
            life.until("the question", |vendor| vendor.texts_at(&all).len() == 1).await;
            life.vendor.does("bob", all.clone(), kind.clone());
            life.pass_seconds(2).await;
            let texts = life.vendor.texts_at(&all);
            assert!(!texts.iter().any(|text| text.contains("alice:")), "{kind:?}: {texts:?}");
            // The question is open still.
            life.vendor.does("alice", all.clone(), says("yes"));
            life.until("the answer", |vendor| {
                vendor.texts_at(&all).contains(&format!("alice: {ONCE}"))
            })
            .await;
        });
    }
}

#[test]
fn a_command_that_may_answer_several_questions_answers_none_and_says_so() {
    let mut world = with_admin(Approvers::Both, GroupSessions::PerMember);
    world.agent = paying_on_request();
    world.live(async |life| {
        let all = life.vendor.group("all");
        let shows = |text: &str| {
            let (all, text) = (all.clone(), text.to_owned());
            move |vendor: &Vendor| vendor.texts_at(&all).contains(&text)
        };
        for who in ["alice", "carol"] {
            life.vendor.say_in_group(who, "all", "pay");
            life.until("a question", shows(&format!("May I pay for {who}?"))).await;
        }
        for (place, words) in [(2, "/approve"), (3, "/deny")] {
            life.vendor.does("bob", all.clone(), says(words));
            life.until("a word", |vendor| vendor.texts_at(&all).len() > place).await;
            life.pass_seconds(1).await;
            let texts = life.vendor.texts_at(&all);
            assert_eq!(texts.len(), place + 1, "{texts:?}");
            assert!(texts[place].starts_with("Several questions are open here"), "{texts:?}");
        }
        // Whoever is asked answers their own.
        life.vendor.does("carol", all.clone(), says("/approve"));
        life.until("an answer", shows(&format!("carol: {ONCE}"))).await;
        // One is left, and it is clear which.
        life.vendor.does("bob", all.clone(), says("/approve session"));
        let session = ONCE.replace("Once", "Session");
        life.until("an answer", shows(&format!("alice: {session}"))).await;
        life.vendor.does("bob", all.clone(), says("/approve"));
        life.until("a word", shows("No question is open.")).await;
    });
}

#[test]
fn whoever_is_asked_something_answers_that_and_not_what_another_was_asked() {
    let mut world = with_admin(Approvers::Both, GroupSessions::PerMember);
    world.agent = agent(|mut stage| async move {
        let who = stage.turn.from.id.to_string();
        let approval = (who != "bob").then(|| question().approval).flatten();
        let answer = stage.ask(Question { approval, ..question() }).await;
        stage.finish(&format!("{who}: {answer:?}")).await;
    });
    world.live(async |life| {
        let all = life.vendor.group("all");
        for (place, who) in ["alice", "bob"].into_iter().enumerate() {
            life.vendor.say_in_group(who, "all", "hello");
            life.until("a question", |vendor| vendor.texts_at(&all).len() > place).await;
        }
        life.vendor.does("bob", all.clone(), says("/approve"));
        life.until("an answer", |vendor| vendor.texts_at(&all).len() > 2).await;
        life.pass_seconds(1).await;
        let texts = life.vendor.texts_at(&all);
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[2].starts_with("bob: "), "{texts:?}");
    });
}

#[test]
fn a_word_answers_only_in_the_chat_that_it_is_said_in() {
    with_admin(Approvers::Admins, GroupSessions::PerMember).live(async |life| {
        let (all, other) = (life.vendor.group("all"), life.vendor.group("other"));
        life.vendor.say_in_group("alice", "all", "hello");
        life.until("the question", |vendor| vendor.texts_at(&all) == ["May I pay?"]).await;
        life.vendor.does("bob", other.clone(), says("/approve"));
        let told = ["No question is open."];
        life.until("a refusal", |vendor| vendor.texts_at(&other) == told).await;
        let thread = Some(talaria_model::ThreadId::literal("t"));
        let below = talaria_model::Address { thread, ..all.clone() };
        life.vendor.does("bob", below.clone(), says("/approve"));
        life.until("a refusal", |vendor| vendor.texts_at(&below) == told).await;
        assert_eq!(life.vendor.texts_at(&all), ["May I pay?"]);
    });
}

#[test]
fn nobody_is_shown_to_be_typing_while_a_person_thinks_it_over() {
    let typing = Capabilities { typing: Typing::Fades(Duration::from_secs(5)), ..BUTTONS };
    world(typing).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.pass_seconds(200).await;
        let typed = life.vendor.truth(|truth| {
            let is_typing = |act: &talaria_model::Act| *act == talaria_model::Act::Typing;
            truth.acts.iter().filter(|(_, outbound)| is_typing(&outbound.act)).count()
        });
        assert!(typed <= 1, "{typed} times");
    });
}

#[test]
fn what_only_an_administrator_approves_is_denied_at_once_where_none_can_be() {
    for (by, admin, is_asked) in [
        (Approvers::Admins, "bob", false),
        (Approvers::Admins, "alice", true),
        (Approvers::Both, "bob", true),
        (Approvers::Requester, "bob", true),
    ] {
        let mut world = with_admin(by, GroupSessions::PerMember);
        let admins = BTreeSet::from([SenderId::new(admin).unwrap()]);
        world.accounts[0].1.direct.tiers = Arc::new(Tiers { admins, ..Tiers::default() });
        world.live(async |life| {
            let asked = life.now();
            life.vendor.say("alice", "home", "hello");
            let texts = life.texts("home", if is_asked { 1 } else { 2 }).await;
            let case = format!("{by:?} {admin}: {texts:?}");
            assert_eq!(texts[0] == "May I pay?", is_asked, "{case}");
            if !is_asked {
                assert!(life.now().since(asked) < Duration::from_secs(5), "{case}");
                let reason = "only an administrator may approve this, and none is in this chat";
                assert!(texts[0].starts_with("⛔ `pay` is not done: "), "{case}");
                assert!(texts[0].contains(reason), "{case}");
                assert!(texts[1].starts_with("Denied") && texts[1].contains(reason), "{case}");
                let buttons = life.vendor.truth(|truth| {
                    truth.shown.iter().map(|shown| shown.content.choices.len()).sum::<usize>()
                });
                assert_eq!(buttons, 0, "{case}");
            }
        });
    }
}

#[test]
fn work_in_the_background_is_approved_by_nobody() {
    world(BUTTONS).live(async |life| {
        life.vendor.say("alice", "home", "/background pay");
        life.until("an answer", |vendor| {
            vendor.texts("home").iter().any(|text| text.contains("Denied"))
        })
        .await;
        let texts = life.vendor.texts("home");
        assert!(!texts.iter().any(|text| text.contains("May I pay?")), "{texts:?}");
    });
}

#[test]
fn whoever_came_in_with_everybody_approves_nothing_and_may_still_say_no() {
    with_admin(Approvers::Both, GroupSessions::PerMember).live(async |life| {
        let all = life.vendor.group("all");
        let shown = |vendor: &Vendor| vendor.texts_at(&vendor.group("all"));
        life.vendor.does("mallory", all.clone(), says("hello"));
        life.until("a question", |vendor| shown(vendor).len() == 1).await;
        life.vendor.does("mallory", all.clone(), InboundKind::Pressed(choice("always")));
        life.until("a refusal", |vendor| shown(vendor).len() == 2).await;
        assert_eq!(life.vendor.texts_at(&all)[1], "That is not yours to approve.");
        life.vendor.does("mallory", all.clone(), InboundKind::Pressed(choice("deny")));
        life.until("an end", |vendor| shown(vendor).len() == 4).await;
        let end = ["⛔ denied by `mallory`", r#"Denied { reason: "" }"#];
        assert_eq!(life.vendor.texts_at(&all)[2..], end);
    });
}

#[test]
fn whoever_a_role_lets_in_is_asked_and_whoever_speaks_as_a_chat_is_not() {
    let mut world = with_admin(Approvers::Requester, GroupSessions::PerMember);
    world.accounts[0].1 = Access::only([SenderId::literal("channel")]);
    world.accounts[0].1.direct.roles = [RoleId::literal("cooks")].into();
    world.live(async |life| {
        let hello = |id: &'static str, chat: &str, from: Sender, roles: Vec<RoleId>| Inbound {
            id: EventId::literal(id),
            at: life.now(),
            from,
            to: life.vendor.dm(chat),
            source: Source { roles, ..Source::default() },
            kind: says("hello"),
        };
        let carla = Sender::new(SenderId::literal("carla"));
        life.vendor.deliver(hello("e1", "c", carla, vec![RoleId::literal("cooks")]));
        assert_eq!(life.texts("c", 1).await, ["May I pay?"]);
        let channel =
            Sender { kind: SenderKind::Chat, ..Sender::new(SenderId::literal("channel")) };
        life.vendor.deliver(hello("e2", "d", channel, Vec::new()));
        let texts = life.texts("d", 1).await;
        assert!(texts[0].starts_with("⛔ `pay` is not done"), "{texts:?}");
    });
}

#[test]
fn a_program_that_is_on_the_list_approves_nothing_and_a_person_has_to() {
    for by in [Approvers::Requester, Approvers::Admins, Approvers::Both] {
        let mut world = world(BUTTONS);
        world.gate = Gate { bots: Bots::WhenMentioned, ..Gate::default() };
        world.scope = Scope { groups: GroupSessions::Shared, ..Scope::default() };
        world.rules.approvals = Approvals { by, ..Approvals::default() };
        // Nobody is named as an administrator, so everybody on the list would be one.
        world.accounts[0].1 = Access::only(["alice", "robot"].map(SenderId::literal));
        world.live(async |life| {
            let robot = |number: usize, to: Address, text: &str| Inbound {
                id: EventId::new(format!("robot-{number}")).unwrap(),
                at: life.now(),
                from: Sender { kind: SenderKind::Bot, ..Sender::new(SenderId::literal("robot")) },
                to,
                source: Source::default(),
                kind: says(text),
            };
            life.vendor.deliver(robot(1, life.vendor.dm("factory"), "hello"));
            let texts = life.texts("factory", 2).await;
            assert!(texts[0].starts_with("⛔ `pay` is not done"), "{by:?}: {texts:?}");
            assert!(texts[1].starts_with("Denied"), "{by:?}: {texts:?}");
            let all = life.vendor.group("all");
            life.vendor.deliver(robot(2, all.clone(), "hello"));
            life.until("something", |vendor| !vendor.texts_at(&all).is_empty()).await;
            if by == Approvers::Requester {
                life.quiet().await;
                let texts = life.vendor.texts_at(&all);
                assert!(texts[0].starts_with("⛔ `pay` is not done"), "{by:?}: {texts:?}");
                return;
            }
            assert_eq!(life.vendor.texts_at(&all), ["May I pay?"], "{by:?}");
            for (number, yes) in ["ok", "/approve always"].into_iter().enumerate() {
                life.pass_seconds(1).await;
                life.vendor.deliver(robot(3 + number, all.clone(), yes));
                life.until("a refusal", |vendor| vendor.texts_at(&all).len() == 2 + number).await;
                let texts = life.vendor.texts_at(&all);
                assert_eq!(texts[1 + number], "That is not yours to approve.", "{by:?} {yes}");
            }
            life.vendor.does("alice", all.clone(), InboundKind::Pressed(choice("once")));
            life.until("the end", |vendor| vendor.texts_at(&all).len() == 5).await;
            assert_eq!(life.vendor.texts_at(&all)[4], ONCE, "{by:?}");
        });
    }
}

#[test]
fn nobody_is_asked_who_may_not_approve_where_nobody_else_may() {
    for by in [Approvers::Requester, Approvers::Both] {
        with_admin(by, GroupSessions::PerMember).live(async |life| {
            life.vendor.say("mallory", "home", "hello");
            let texts = life.texts("home", 2).await;
            assert!(texts[0].contains("whoever came in with everybody"), "{texts:?}");
            assert!(texts[1].starts_with("Denied"), "{texts:?}");
            let all = life.vendor.group("all");
            life.vendor.does("mallory", all.clone(), says("hello"));
            life.until("something", |vendor| !vendor.texts_at(&all).is_empty()).await;
            let asks = life.vendor.texts_at(&all)[0] == "May I pay?";
            assert_eq!(asks, by == Approvers::Both, "an administrator may be there");
        });
    }
}

/// Asks whether it may pay, and has not made use of the answer when its process dies.
pub(crate) fn slow_to_pay() -> Arc<dyn Agent> {
    agent(|mut stage| async move {
        stage.ask(question()).await;
        std::future::pending().await
    })
}

#[test]
fn a_yes_from_before_a_death_counts_only_as_long_as_it_could_be_given_again() {
    type Change = fn(&mut World);
    let cases: [(&str, Change, &str); 3] = [
        ("nothing changes", |_| {}, ONCE),
        (
            "bob is no administrator any more",
            |world| {
                let admins = BTreeSet::from([SenderId::literal("carol")]);
                world.accounts[0].1.group.tiers = Arc::new(Tiers { admins, ..Tiers::default() });
            },
            "May I pay?",
        ),
        (
            "the operator lets nothing be done",
            |world| {
                world.rules.approvals.asking = Asking::Refuses;
            },
            r#"Denied { reason: "the operator does not let it be done" }"#,
        ),
    ];
    for (case, change, comes) in cases {
        let mut world = with_admin(Approvers::Admins, GroupSessions::PerMember);
        world.agent = slow_to_pay();
        let all = world.vendor().group("all");
        world.live(async |life| {
            life.vendor.say_in_group("alice", "all", "hello");
            life.until("the question", |vendor| vendor.texts_at(&all) == ["May I pay?"]).await;
            life.vendor.does("bob", all.clone(), InboundKind::Pressed(choice("once")));
            life.until("the outcome", |vendor| vendor.texts_at(&all).len() == 2).await;
        });
        change(&mut world);
        world.agent = paying();
        world.live(async |life| {
            life.until("a word", |vendor| vendor.texts_at(&all).len() == 3).await;
            life.pass_seconds(1).await;
            assert_eq!(life.vendor.texts_at(&all)[2..], [comes], "{case}");
        });
    }
}

#[test]
fn what_was_approved_without_asking_before_a_death_is_asked_about_where_that_is_wanted_by_then() {
    let mut world = world(BUTTONS);
    world.rules.approvals.asking = Asking::Never;
    world.agent = slow_to_pay();
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
    });
    world.rules.approvals.asking = Asking::Asks;
    world.agent = paying();
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["May I pay?"]);
    });
}

#[test]
fn on_an_account_that_is_taken_out_no_tool_is_used_and_no_earlier_yes_counts() {
    let may_go_on = Arc::new(Semaphore::new(0));
    let held = may_go_on.clone();
    let agent = agent(move |mut stage| {
        let held = held.clone();
        async move {
            let before = stage.turn.tools.permits("pay");
            held.acquire().await.unwrap().forget();
            let permitted = stage.turn.tools.permits("pay");
            let answer = stage.ask(question()).await;
            stage.finish(&format!("{before} {permitted} {answer:?}")).await;
        }
    });
    let mut world = world(BUTTONS).with_agent(agent);
    let access = world.accounts[0].1.clone();
    let plan = AccountPlan { access, ..world.plan(&world.vendor()) };
    world.live(async |life| {
        may_go_on.add_permits(1);
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &choice("always"));
        assert_eq!(life.texts("home", 3).await[2], format!("true true {ALWAYS}"));
        life.vendor.say("alice", "home", "once more");
        life.pass_seconds(1).await;
        life.gateway.drop_account(&life.vendor.account());
        life.pass_seconds(1).await;
        may_go_on.add_permits(1);
        life.pass_seconds(1).await;
        life.gateway.put_account(plan);
        assert_eq!(life.texts("home", 4).await[3], "May I pay?", "it is asked about again");
        life.vendor.press("alice", "home", &choice("once"));
        let texts = life.texts("home", 6).await;
        assert_eq!(texts[5], format!("true false {ONCE}"), "{texts:?}");
    });
}

/// Whoever writes something else than `hello` takes a place for as long as they are not let.
fn paying_in_turn(gate: Arc<Semaphore>) -> Arc<dyn Agent> {
    agent(move |mut stage| {
        let gate = gate.clone();
        async move {
            if stage.said() != "hello" {
                gate.acquire().await.unwrap().forget();
                return stage.finish("done").await;
            }
            let answer = stage.ask(question()).await;
            stage.finish(&format!("{answer:?}")).await;
        }
    })
}

const NOT_ANY_MORE: &str =
    r#"Denied { reason: "whoever approved it may not approve it any more" }"#;

/// Alice is heard like everybody, and approves nothing any more.
fn demote(life: &Life) {
    life.gateway.set_access(&AccountId::literal("main"), Access::everyone());
}

#[test]
fn a_yes_that_waits_for_a_place_counts_only_as_long_as_it_could_be_given() {
    type Change = fn(&Life, AccountPlan);
    let changes: [(Change, Option<&str>); 3] = [
        (|_, _| {}, None),
        (|life, _| demote(life), Some(NOT_ANY_MORE)),
        (
            |life, refuses| life.gateway.put_account(refuses),
            Some(r#"Denied { reason: "the operator does not let it be done" }"#),
        ),
    ];
    for (consent, (change, comes)) in ["once", "session", "always"]
        .into_iter()
        .flat_map(|consent| changes.map(|change| (consent, change)))
    {
        let gate = Arc::new(Semaphore::new(0));
        let mut world = world(BUTTONS).with_agent(paying_in_turn(gate.clone()));
        world.limits.turns_at_once = 1;
        let mut refuses = world.rules.clone();
        refuses.approvals.asking = Asking::Refuses;
        let refuses = AccountPlan {
            rules: [(ChatKind::Dm, Arc::new(refuses))].into(),
            access: world.accounts[0].1.clone(),
            ..world.plan(&world.vendor())
        };
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", 1).await;
            life.vendor.say("bob", "work", "takes the only place");
            life.pass_seconds(1).await;
            life.vendor.press("alice", "home", &choice(consent));
            life.texts("home", 2).await;
            change(life, refuses);
            gate.add_permits(1);
            let texts = life.texts("home", 3).await;
            match comes {
                Some(comes) => assert_eq!(texts[2], comes, "{consent}"),
                None => assert!(texts[2].starts_with("Approved"), "{consent}: {texts:?}"),
            }
        });
    }
}

#[test]
fn so_does_one_from_before_and_what_needed_none() {
    for (before, may_still) in [
        (Some("session"), true),
        (Some("session"), false),
        (Some("always"), true),
        (Some("always"), false),
        (None, true),
        (None, false),
    ] {
        let gate = Arc::new(Semaphore::new(0));
        let mut world = world(BUTTONS).with_agent(paying_in_turn(gate.clone()));
        world.limits.turns_at_once = 1;
        world.rules.approvals.asking = before.map_or(Asking::Never, |_| Asking::Asks);
        let asks = Rules { approvals: Approvals::default(), ..world.rules.clone() };
        let (rules, access) =
            ([(ChatKind::Dm, Arc::new(asks))].into(), world.accounts[0].1.clone());
        let asks = AccountPlan { rules, access, ..world.plan(&world.vendor()) };
        world.live(async |life| {
            let mut seen = 0;
            if let Some(consent) = before {
                life.vendor.say("alice", "home", "hello");
                life.texts("home", 1).await;
                life.vendor.press("alice", "home", &choice(consent));
                seen = life.texts("home", 3).await.len();
            }
            // Each waits for the one before, and Alice once more when she has asked.
            for (who, chat, text) in
                [("bob", "b", "first"), ("alice", "home", "hello"), ("carol", "c", "last")]
            {
                life.vendor.say(who, chat, text);
                life.pass_seconds(1).await;
            }
            gate.add_permits(1);
            life.texts("b", 1).await;
            life.pass_seconds(1).await;
            assert_eq!(life.vendor.texts("home").len(), seen, "{before:?}");
            match (may_still, before) {
                (true, _) => {}
                (false, Some(_)) => demote(life),
                (false, None) => life.gateway.put_account(asks),
            }
            life.pass_seconds(1).await;
            gate.add_permits(1);
            let texts = life.texts("home", seen + 1).await;
            assert_eq!(texts[seen] == NOT_ANY_MORE, !may_still, "{before:?}: {texts:?}");
            assert_eq!(texts[seen].starts_with("Approved"), may_still, "{before:?}: {texts:?}");
        });
    }
}

#[test]
fn a_yes_that_waits_for_the_disk_is_that_of_who_gives_it_by_then() {
    for may_still in [true, false] {
        let mut world = with_admin(Approvers::Admins, GroupSessions::PerMember);
        let all = world.vendor().group("all");
        let mut without_bob = world.accounts[0].1.clone();
        let admins = BTreeSet::from([SenderId::literal("carol")]);
        without_bob.group.tiers = Arc::new(Tiers { admins, ..Tiers::default() });
        world.live(async |life| {
            life.vendor.say_in_group("alice", "all", "hello");
            life.until("the question", |vendor| vendor.texts_at(&all) == ["May I pay?"]).await;
            life.pass_seconds(1).await;
            life.disk.fails(Verb::Commit, usize::MAX);
            life.vendor.does("bob", all.clone(), InboundKind::Pressed(choice("once")));
            life.pass_seconds(10).await;
            if !may_still {
                life.gateway.set_access(&AccountId::literal("main"), without_bob.clone());
            }
            life.disk.heals();
            life.until("a word", |vendor| vendor.texts_at(&all).len() > 1).await;
            life.pass_seconds(1).await;
            let texts = life.vendor.texts_at(&all);
            let is_approved = texts.iter().any(|text| text == ONCE);
            let is_refused = texts.iter().any(|text| text == "That is not yours to approve.");
            assert_eq!((is_approved, is_refused), (may_still, !may_still), "{texts:?}");
        });
    }
}

#[test]
fn a_yes_counts_although_the_receipt_of_the_question_is_still_on_its_way_into_the_store() {
    world(BUTTONS).live(async |life| {
        life.disk.begins_late(Verb::Settle, Duration::from_millis(100));
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.say("alice", "home", "yes");
        assert_eq!(life.texts("home", 3).await[2], ONCE);
    });
}

#[test]
fn a_long_text_from_before_the_question_could_be_read_is_no_answer_to_it() {
    let mut world = bursting(Budget::NONE, paying());
    world.accounts[0].1 = Access::only([SenderId::literal("alice")]);
    let throttled = SendError::Throttled { after: Duration::from_secs(60) };
    world.vendor().first([Conduct::Refuses(throttled)]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        say_at_length(life);
        life.pass_seconds(90).await;
        let texts = life.vendor.texts("home");
        assert!(texts.len() == 1 && texts[0].starts_with("May I pay?"), "{texts:?}");
        life.vendor.say("alice", "home", "yes");
        let texts = life.texts("home", 3).await;
        assert!(texts.contains(&ONCE.to_owned()), "{texts:?}");
    });
}
