//! The process dies before and after everything that survives it or that others can see, once and
//! twice. Whatever the moment: no message is lost, none is answered twice without saying so, order
//! is kept, and nothing that cannot be undone is done twice.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_model::{Address, Capabilities, Choices, Idempotency};
use talaria_platform::SendError;

use crate::world::{
    Conduct, Deeds, EDITING, End, Life, SIMPLE, Verb, World, agent, built_in, keyed,
};

/// What people say, in order, in one chat. Each is a word of its own.
type Script = &'static [&'static str];

const SIMPLE_TURN: Script = &["sunrise"];
const TWO_MESSAGES: Script = &["sunrise", "moonlight"];
const PURE_TOOL: Script = &["look-up"];
const UNSAFE_TOOL: Script = &["pay-rent"];
const QUESTION: Script = &["choose-one"];

/// One story with all the gateways it takes.
struct Story {
    world: World,
    script: Script,
    deeds: Deeds,
    /// Questions that the person has answered already.
    answered: Arc<Mutex<BTreeSet<String>>>,
}

impl Story {
    fn begin(can: Capabilities, script: Script) -> Self {
        let deeds = Deeds::default();
        let world = World::new(can).with_agent(built_in(&deeds));
        for text in script {
            world.vendor().say("alice", "home", text);
        }
        Self { world, script, deeds, answered: Arc::default() }
    }

    /// A life that dies at that moment, if it gets there before everything is done.
    fn die_at(&mut self, moment: usize) -> End {
        let answered = self.answered.clone();
        self.world.live_and_die(moment, async |life| attend(life, &answered).await)
    }

    /// A life in which everything is brought to its end.
    fn live(&mut self) -> usize {
        let answered = self.answered.clone();
        self.world.live(async |life| attend(life, &answered).await);
        self.world.points.passed().len()
    }

    fn last_moment(&self) -> String {
        self.world.points.passed().pop().expect("it died at a moment")
    }

    /// What is wrong with what people see.
    fn problems(&self) -> Vec<String> {
        let vendor = self.world.vendor();
        let is_keyed = vendor.can().idempotency != Idempotency::None;
        let home = vendor.dm("home");
        let shown = vendor.truth(|truth| {
            let shown = truth.shown.iter().filter(|shown| shown.to == home);
            shown.map(|shown| shown.content.text.clone()).collect::<Vec<_>>()
        });
        let mut problems = Vec::new();
        let mut first_places = Vec::new();
        for said in self.script {
            let answers: Vec<usize> =
                places(&shown, |text| text.contains("echo:") && text.contains(said));
            let whole = |place: &usize| shown[*place].contains(" done");
            let marked = |place: &usize| shown[*place].contains("sent again");
            match answers.iter().find(|place| whole(place)) {
                Some(place) => first_places.push(*place),
                None => problems.push(format!("{said} is not answered")),
            }
            let unmarked = answers.iter().filter(|place| whole(place) && !marked(place)).count();
            if unmarked > 1 {
                problems.push(format!("{said} is answered {unmarked} times, unmarked"));
            }
            for half in answers.iter().filter(|place| !whole(place)) {
                let made_good =
                    answers.iter().any(|place| place > half && whole(place) && marked(place));
                if is_keyed || !made_good {
                    problems.push(format!("half an answer to {said} stays"));
                }
            }
            if is_keyed && answers.iter().any(marked) {
                problems.push(format!("the answer to {said} is marked for nothing"));
            }
            for sentence in ["First I pay for", "Which one for"] {
                let copies = places(&shown, |text| text.contains(sentence) && text.contains(said));
                if copies.iter().filter(|place| !marked(place)).count() > 1 {
                    problems.push(format!("\"{sentence} {said}\" is said twice, unmarked"));
                }
            }
        }
        if !first_places.is_sorted() {
            problems.push("answered out of order".into());
        }
        for text in &shown {
            let ours = ["echo:", "First I pay", "Which one"];
            if !ours.iter().any(|ours| text.contains(ours)) {
                problems.push(format!("nobody wanted to read {text:?}"));
            }
        }
        let deeds = self.deeds.lock().unwrap();
        let paid = deeds.iter().filter(|deed| deed.starts_with("pay")).count();
        if paid > 1 {
            problems.push(format!("paid {paid} times"));
        }
        if !problems.is_empty() {
            problems.push(format!("what can be read: {shown:#?}"));
        }
        problems
    }
}

fn places(shown: &[String], fits: impl Fn(&str) -> bool) -> Vec<usize> {
    (0..shown.len()).filter(|place| fits(&shown[*place])).collect()
}

/// Answers questions as they appear, until there is nothing left to do.
async fn attend(life: &Life, answered: &Mutex<BTreeSet<String>>) {
    let home = life.vendor.dm("home");
    let answering = async {
        let mut changes = life.vendor.changes();
        loop {
            answer(life, &home, answered);
            changes.changed().await.unwrap();
        }
    };
    tokio::select! {
        () = life.quiet() => {}
        () = answering => {}
    }
}

fn answer(life: &Life, home: &Address, answered: &Mutex<BTreeSet<String>>) {
    let questions: Vec<_> = life.vendor.truth(|truth| {
        let shown = truth.shown.iter().filter(|shown| shown.to == *home);
        shown.filter(|shown| shown.content.text.contains("Which one")).cloned().collect()
    });
    for shown in questions {
        let text = shown.content.text;
        let asked = text.split("Which").nth(1).unwrap_or_default().to_owned();
        if answered.lock().unwrap().insert(asked) {
            match shown.content.choices.first() {
                Some(choice) => life.vendor.press("alice", "home", &choice.id),
                None => life.vendor.say("alice", "home", "1"),
            };
        }
    }
}

/// The platforms on which everything is tried.
fn platforms() -> [(&'static str, Capabilities); 4] {
    let buttons = Capabilities { choices: Choices::Buttons { max: 4 }, ..SIMPLE };
    [
        ("plain", SIMPLE),
        ("keyed", keyed(buttons)),
        ("editing", EDITING),
        ("editing and keyed", keyed(EDITING)),
    ]
}

/// Dies at every moment of a story, and at every fifth moment of the life after once more.
fn die_everywhere(script: Script) {
    die(|can| Story::begin(can, script), Some(5));
    // A slow disk lets other things happen in between.
    let slow = |can| {
        let story = Story::begin(can, script);
        story.world.disk.lags(Duration::from_millis(3));
        story
    };
    die(slow, None);
}

fn die(begin: impl Fn(Capabilities) -> Story, second: Option<usize>) {
    let mut stories = 0;
    let mut failures = Vec::new();
    for (platform, can) in platforms() {
        for moment in 0.. {
            let mut story = begin(can);
            if story.die_at(moment) == End::Over {
                assert!(moment > 8, "there are moments to die at");
                break;
            }
            let name = story.last_moment();
            stories += 1;
            let moments = story.live();
            let problems = story.problems();
            if !problems.is_empty() {
                failures.push(format!("{platform}, dead at {moment} ({name}): {problems:#?}"));
            }
            let Some(step) = second else { continue };
            for again in (moment % step..moments).step_by(step) {
                let mut story = begin(can);
                story.die_at(moment);
                if story.die_at(again) == End::Over {
                    break;
                }
                let then = story.last_moment();
                stories += 1;
                story.live();
                let problems = story.problems();
                if !problems.is_empty() {
                    let deaths = format!("dead at {moment} ({name}), then at {again} ({then})");
                    failures.push(format!("{platform}, {deaths}: {problems:#?}"));
                }
            }
        }
    }
    let count = failures.len();
    failures.truncate(3);
    assert!(count == 0, "{count} of {stories} stories end badly, such as: {}", failures.join("\n"));
}

#[test]
fn a_story_without_a_death_ends_well() {
    for (platform, can) in platforms() {
        for script in [SIMPLE_TURN, TWO_MESSAGES, PURE_TOOL, UNSAFE_TOOL, QUESTION] {
            let mut story = Story::begin(can, script);
            story.live();
            assert_eq!(story.problems(), Vec::<String>::new(), "{platform}: {script:?}");
        }
    }
}

#[test]
fn a_simple_turn_survives_every_death() {
    die_everywhere(SIMPLE_TURN);
}

#[test]
fn two_messages_survive_every_death() {
    die_everywhere(TWO_MESSAGES);
}

#[test]
fn a_turn_with_a_pure_tool_survives_every_death() {
    die_everywhere(PURE_TOOL);
}

#[test]
fn a_turn_with_an_unsafe_tool_survives_every_death() {
    die_everywhere(UNSAFE_TOOL);
}

#[test]
fn a_turn_with_a_question_survives_every_death() {
    die_everywhere(QUESTION);
}

#[test]
fn a_preview_that_is_due_just_as_the_answer_is_decided_survives_every_death() {
    let hasty = agent(|stage| async move {
        let text = format!("{} and so on to the very end. done", stage.echo());
        stage.show(&text);
        SystemClock.sleep(Duration::from_millis(1990)).await;
        stage.finish(&text).await;
    });
    // The first try is refused, the second is due at two seconds; the commit of the answer is on
    // disk by then, and nobody knows it yet.
    let begin = |can| {
        let mut story = Story::begin(can, SIMPLE_TURN);
        story.world.agent = hasty.clone();
        story.world.disk.answers_late(Verb::Commit, Duration::from_millis(50));
        let after = Duration::from_secs(1);
        story.world.vendor().first([Conduct::Refuses(SendError::Throttled { after })]);
        story
    };
    die(begin, Some(3));
}
