//! A question to a person: asked once, answered in any way, never forgotten.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    Act, Answer, CallId, Capabilities, Choice, ChoiceId, Choices, Question, Typing, Word,
};

use talaria_platform::SendError;

use crate::world::{Conduct, SIMPLE, World, agent};

/// A platform with buttons.
const BUTTONS: Capabilities =
    Capabilities { choices: Choices::Buttons { max: 4, id: 64 }, ..SIMPLE };

pub(crate) fn question(text: &str) -> Question {
    let choice = |id, label: &str| Choice { id: ChoiceId::literal(id), label: label.into() };
    Question {
        call: CallId::literal("call"),
        text: text.into(),
        choices: vec![choice("q1", "Yes"), choice("q2", "No")],
        approval: None,
    }
}

/// Asks, then tells what was answered.
fn curious() -> Arc<dyn Agent> {
    agent(|mut stage| async move {
        let answer = stage.ask(question("Sure?")).await;
        stage.finish(&format!("{answer:?}")).await;
    })
}

#[test]
fn a_question_is_answered_by_its_button() {
    World::new(BUTTONS).with_agent(curious()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["Sure?"]);
        let offered = life.vendor.truth(|truth| truth.shown[0].content.choices.clone());
        assert_eq!(offered, question("Sure?").choices);
        life.vendor.press("alice", "home", &offered[1].id);
        assert_eq!(life.texts("home", 2).await[1], r#"Chosen(ChoiceId("q2"))"#);
    });
}

#[test]
fn a_choice_with_a_long_id_is_pressed_all_the_same_after_a_restart_too() {
    let id = ChoiceId::new("call_".repeat(30)).unwrap();
    let long = id.clone();
    let curious = agent(move |mut stage| {
        let choice = Choice { id: long.clone(), label: "Yes".into() };
        async move {
            let asked = Question { choices: vec![choice], ..question("Sure?") };
            let answer = stage.ask(asked).await;
            stage.finish(&format!("{answer:?}")).await;
        }
    });
    let mut world = World::new(BUTTONS).with_agent(curious);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
    });
    world.live(async |life| {
        let button = life.vendor.truth(|truth| truth.shown[0].content.choices[0].id.clone());
        assert!(button.as_str().len() <= 64, "{button}");
        life.vendor.press("alice", "home", &button);
        let texts = life.texts("home", 2).await;
        assert!(texts[1].contains(id.as_str()), "{texts:?}");
    });
}

#[test]
fn a_question_is_answered_by_its_number_where_there_are_no_buttons() {
    World::new(SIMPLE).with_agent(curious()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let asked = life.texts("home", 1).await.remove(0);
        assert!(asked.contains("1. Yes") && asked.contains("2. No"), "{asked}");
        life.vendor.say("alice", "home", "2");
        assert_eq!(life.texts("home", 2).await[1], r#"Chosen(ChoiceId("q2"))"#);
    });
}

#[test]
fn a_question_whose_buttons_are_refused_is_asked_with_a_list() {
    let mut world = World::new(BUTTONS).with_agent(curious());
    let reason = "invalid_blocks".to_owned();
    world.vendor().first([Conduct::Refuses(SendError::Unreadable { reason })]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let asked = life.texts("home", 1).await.remove(0);
        assert_eq!(asked, "Sure?\n\n1. Yes\n2. No\n\nAnswer with a number.");
        let choices = life.vendor.truth(|truth| truth.shown[0].content.choices.clone());
        assert_eq!(choices, [], "no buttons are tried again");
        life.vendor.say("alice", "home", "2");
        assert_eq!(life.texts("home", 2).await[1], r#"Chosen(ChoiceId("q2"))"#);
    });
}

#[test]
fn a_question_is_answered_in_the_persons_own_words() {
    World::new(BUTTONS).with_agent(curious()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.say("alice", "home", "perhaps");
        assert_eq!(life.texts("home", 2).await[1], r#"Said("perhaps")"#);
    });
}

#[test]
fn two_answers_to_one_question_have_one_effect() {
    World::new(BUTTONS).with_agent(curious()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &ChoiceId::literal("q1"));
        life.vendor.press("alice", "home", &ChoiceId::literal("q2"));
        life.quiet().await;
        let texts = life.vendor.texts("home");
        let answered = texts.iter().filter(|text| text.starts_with("Chosen")).collect::<Vec<_>>();
        assert_eq!(answered, [r#"Chosen(ChoiceId("q1"))"#], "{texts:?}");
    });
}

#[test]
fn a_question_that_nobody_answers_expires_and_the_turn_goes_on() {
    World::new(BUTTONS).with_agent(curious()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        let asked = life.now();
        assert_eq!(life.texts("home", 2).await[1], "Expired");
        let waited = life.now().since(asked);
        assert!(waited >= Duration::from_secs(24 * 60 * 60), "{waited:?}");
    });
}

#[test]
fn a_question_expires_although_the_gateway_was_down_at_that_time() {
    let mut world = World::new(BUTTONS).with_agent(curious());
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
    });
    world.sleep(Duration::from_secs(30 * 60 * 60));
    world.live(async |life| {
        assert_eq!(life.texts("home", 2).await, ["Sure?", "Expired"]);
    });
}

#[test]
fn a_question_stays_open_over_restarts_and_is_not_asked_again() {
    let mut world = World::new(BUTTONS).with_agent(curious());
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.gateway.stop(Duration::from_secs(1)).await;
    });
    for _ in 0..5 {
        // Five deaths: waiting for a person is not what kills a process.
        world.live(async |life| life.pass_seconds(60).await);
    }
    world.live(async |life| {
        life.vendor.press("alice", "home", &ChoiceId::literal("q2"));
        assert_eq!(life.texts("home", 2).await, ["Sure?", r#"Chosen(ChoiceId("q2"))"#]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home").len(), 2);
    });
}

#[test]
fn somebody_else_has_the_turns_place_while_a_person_is_asked() {
    let mixed = agent(|mut stage| async move {
        if stage.said() == "ask me" {
            stage.ask(question("Sure?")).await;
        }
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    let mut world = World::new(BUTTONS).with_agent(mixed);
    world.limits.turns_at_once = 1;
    world.live(async |life| {
        life.vendor.say("alice", "home", "ask me");
        life.texts("home", 1).await;
        life.vendor.say("bob", "work", "hello");
        assert_eq!(life.texts("work", 1).await, ["echo: hello"]);
    });
    // The same after a restart, when the question is open from the beginning.
    world.live(async |life| {
        life.vendor.say("bob", "work", "still there?");
        life.texts("work", 2).await;
        let asked = life.now();
        life.vendor.press("alice", "home", &ChoiceId::literal("q1"));
        assert_eq!(life.texts("home", 2).await[1], "echo: ask me");
        assert!(life.now().since(asked) < Duration::from_secs(1));
    });
}

#[test]
fn an_answer_is_not_lost_when_the_process_dies_before_the_agent_has_used_it() {
    // Dies once after it was given the answer.
    let mut world = World::new(BUTTONS);
    let pondering = |patience: u64| {
        agent(move |mut stage| async move {
            let answer = stage.ask(question("Sure?")).await;
            SystemClock.sleep(Duration::from_secs(patience)).await;
            stage.finish(&format!("{answer:?}")).await;
        })
    };
    world.agent = pondering(3600);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &ChoiceId::literal("q2"));
        life.pass_seconds(60).await;
    });
    world.agent = pondering(1);
    world.live(async |life| {
        let texts = life.texts("home", 2).await;
        assert_eq!(texts, ["Sure?", r#"Chosen(ChoiceId("q2"))"#]);
    });
}

#[test]
fn the_time_a_person_takes_is_not_the_turns_even_over_a_restart() {
    let counting = agent(|mut stage| async move {
        let left = stage.turn.limit;
        stage.ask(question("Sure?")).await;
        stage.finish(&format!("{} minutes left", left.as_secs() / 60)).await;
    });
    let mut world = World::new(BUTTONS).with_agent(counting);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.pass_seconds(2 * 60 * 60).await;
    });
    world.live(async |life| {
        life.pass_seconds(60 * 60).await;
        life.vendor.press("alice", "home", &ChoiceId::literal("q1"));
        assert_eq!(life.texts("home", 2).await[1], "30 minutes left");
    });
}

#[test]
fn nobody_is_shown_to_be_typing_while_a_person_is_asked() {
    let typing = Capabilities { typing: Typing::Fades(Duration::from_secs(5)), ..BUTTONS };
    World::new(typing).with_agent(curious()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.pass_seconds(600).await;
        let typed = life.vendor.truth(|truth| {
            truth.acts.iter().filter(|(_, outbound)| outbound.act == Act::Typing).count()
        });
        assert!(typed <= 1, "{typed} times");
    });
}

#[test]
fn a_full_session_still_hears_the_answer_to_its_question() {
    let busy_then_curious = agent(|mut stage| async move {
        if stage.turn.id.number > 1 {
            let answer = stage.echo();
            return stage.finish(&answer).await;
        }
        SystemClock.sleep(Duration::from_secs(10)).await;
        while stage.words.try_recv().is_ok() {}
        let answer = stage.ask(question("Sure?")).await;
        stage.finish(&format!("{answer:?}")).await;
    });
    let mut world = World::new(SIMPLE).with_agent(busy_then_curious);
    world.rules.room = 4;
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        for n in 0..4 {
            life.vendor.say("alice", "home", &format!("m{n}"));
        }
        life.texts("home", 1).await;
        let asked = life.now();
        life.vendor.say("alice", "home", "yes");
        assert_eq!(life.texts("home", 2).await[1], r#"Chosen(ChoiceId("q1"))"#);
        assert!(life.now().since(asked) < Duration::from_secs(60));
        life.quiet().await;
        assert_eq!(life.vendor.texts("home")[2], "echo: m0 / m1 / m2 / m3");
    });
}

#[test]
fn a_question_that_could_not_be_sent_at_once_is_sent_before_anything_else() {
    let mut world = World::new(BUTTONS).with_agent(curious());
    let vendor = world.vendor();
    vendor.first([Conduct::Refuses(talaria_platform::SendError::Throttled {
        after: Duration::from_secs(60),
    })]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        life.vendor.say("alice", "home", "yes");
        let texts = life.texts("home", 2).await;
        assert_eq!(texts, ["Sure?", r#"Chosen(ChoiceId("q1"))"#]);
    });
}

#[test]
fn an_answer_given_to_an_agent_that_does_not_ask_harms_nobody() {
    let strange = agent(|mut stage| async move {
        let answer = stage.ask(question("Sure?")).await;
        assert!(matches!(answer, Answer::Chosen(_)));
        match stage.hear().await {
            Word::Steer(steer) => stage.took(vec![steer.seq]).await,
            word => panic!("{word:?}"),
        }
        stage.finish("done").await;
    });
    World::new(BUTTONS).with_agent(strange).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        life.vendor.press("alice", "home", &ChoiceId::literal("q1"));
        life.vendor.say("alice", "home", "and this");
        assert_eq!(life.texts("home", 2).await[1], "done");
    });
}
