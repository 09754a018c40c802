//! The process dies before and after everything that survives it or that others can see, once and
//! twice. Whatever the moment: no message is lost, none is answered twice without saying so, order
//! is kept, and nothing that cannot be undone is done twice.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use talaria_model::{Address, Capabilities, Choices, Idempotency};

use crate::world::{Deeds, EDITING, End, Life, SIMPLE, World, built_in, keyed};

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
        if let Ok(l)=std::env::var("LAG") { world.disk.lags(std::time::Duration::from_millis(l.parse().unwrap())); }
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

/// Dies at every moment of a story, and, at every `second`th moment of the life after, once more.
fn die_everywhere(script: Script, second: Option<usize>) {
    let mut stories = 0;
    let mut failures = Vec::new();
    for (platform, can) in platforms() {
        for moment in 0.. {
            let mut story = Story::begin(can, script);
            if story.die_at(moment) == End::Over {
                assert!(moment > 8, "there are moments to die at");
                break;
            }
            let name = story.world.points.passed().pop().unwrap();
            stories += 1;
            let moments = story.live();
            let problems = story.problems();
            if !problems.is_empty() {
                failures.push(format!("{platform}, dead at {moment} ({name}): {problems:#?}"));
            }
            let Some(step) = second else { continue };
            for again in (moment % step..moments).step_by(step) {
                let mut story = Story::begin(can, script);
                story.die_at(moment);
                if story.die_at(again) == End::Over {
                    break;
                }
                let then = story.world.points.passed().pop().unwrap();
                stories += 1;
                story.live();
                let problems = story.problems();
                if !problems.is_empty() {
                    failures.push(format!(
                        "{platform}, dead at {moment} ({name}), then at {again} ({then}): {problems:#?}"
                    ));
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
    die_everywhere(SIMPLE_TURN, Some(1));
}

#[test]
fn two_messages_survive_every_death() {
    die_everywhere(TWO_MESSAGES, Some(1));
}

#[test]
fn a_turn_with_a_pure_tool_survives_every_death() {
    die_everywhere(PURE_TOOL, Some(1));
}

#[test]
fn a_turn_with_an_unsafe_tool_survives_every_death() {
    die_everywhere(UNSAFE_TOOL, Some(1));
}

#[test]
fn a_turn_with_a_question_survives_every_death() {
    die_everywhere(QUESTION, Some(1));
}

#[test]
fn zz_hasty() {
        let mut bad = Vec::new();
        for (platform, can) in platforms() {
            for moment in 0.. {
                let mut story = Story::begin(can, SIMPLE_TURN);
                story.world.disk.answers_late(crate::world::Verb::Commit, std::time::Duration::from_millis(50));
                story.world.vendor().first([crate::world::Conduct::Refuses(talaria_platform::SendError::Throttled{after: std::time::Duration::from_secs(1)})]);
                story.world.agent = crate::world::agent(move |stage| async move {
                    let text = format!("{} and so the story goes on to its very end. done", stage.echo());
                    stage.show(&text);
                    talaria_clock::Clock::sleep(&talaria_clock::SystemClock, std::time::Duration::from_millis(1990)).await;
                    stage.finish(&text).await;
                });
                if story.die_at(moment) == End::Over {
                    println!("{:?}", story.world.points.passed());
                    break;
                }
                let trace = story.world.points.passed();
                story.live();
                let problems = story.problems();
                if !problems.is_empty() {
                    bad.push(format!("{platform} at {moment}: {trace:?} {problems:?}"));
                }
            }
        }
        for b in &bad { println!("{b}"); }
}
