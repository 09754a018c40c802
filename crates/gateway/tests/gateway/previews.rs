//! An answer that can be read while it grows, and is one message in the end.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_model::{Act, Capabilities, Deletes, Drafts, Failure, Outbound, Timestamp, Typing};
use talaria_platform::SendError;

use crate::world::{Conduct, EDITING, Life, MARK, SIMPLE, Vendor, World, agent, keyed};

/// A platform that shows drafts.
const DRAFTING: Capabilities =
    Capabilities { drafts: Drafts::Every(Duration::from_secs(1)), ..SIMPLE };

/// A platform that shows that somebody types.
const TYPING: Capabilities =
    Capabilities { typing: Typing::Fades(Duration::from_secs(5)), ..SIMPLE };

/// One sentence of a story. Longer than it takes for a preview to begin.
fn sentence(n: usize) -> String {
    format!("This is the sentence number {n}. ")
}

fn story(sentences: usize) -> String {
    let text: String = (1..=sentences).map(sentence).collect();
    text.trim_end().to_owned()
}

/// Tells a story, a sentence a quarter of a second.
fn storyteller(sentences: usize) -> Arc<dyn Agent> {
    agent(move |stage| async move {
        let mut text = String::new();
        for n in 1..=sentences {
            text.push_str(&sentence(n));
            stage.show(&text);
            SystemClock.sleep(Duration::from_millis(250)).await;
        }
        stage.finish(text.trim_end()).await;
    })
}

fn acts(vendor: &Vendor) -> Vec<(Timestamp, Outbound)> {
    vendor.truth(|truth| truth.acts.clone())
}

fn typed(vendor: &Vendor) -> Vec<Timestamp> {
    let acts = acts(vendor).into_iter();
    acts.filter(|(_, outbound)| outbound.act == Act::Typing).map(|(at, _)| at).collect()
}

fn text_of(outbound: &Outbound) -> &str {
    match &outbound.act {
        Act::Post(content) | Act::Edit { content, .. } => &content.text,
        Act::Draft(draft) => &draft.content.text,
        _ => "",
    }
}

/// Asks for a story and waits until it is told.
async fn ask(life: &Life) -> Vec<String> {
    life.vendor.say("alice", "home", "a story");
    life.quiet().await;
    life.vendor.texts("home")
}

#[test]
fn a_growing_answer_is_one_message_that_is_edited_until_it_is_whole() {
    World::new(EDITING).with_agent(storyteller(20)).live(async |life| {
        let texts = ask(life).await;
        assert_eq!(texts, [story(20)]);
        let acts = acts(&life.vendor);
        assert!(matches!(acts[0].1.act, Act::Post(_)));
        assert!(acts.len() >= 4, "it was seen growing: {}", acts.len());
        for (_, act) in &acts[1..] {
            assert!(matches!(act.act, Act::Edit { .. }), "{act:?}");
            assert_eq!(act.id, acts[0].1.id);
        }
        let whole = |act: &Outbound| text_of(act).trim_end_matches(" ▉").len();
        let lengths: Vec<usize> = acts.iter().map(|(_, act)| whole(act)).collect();
        assert!(lengths.is_sorted(), "{lengths:?}");
        let (last, growing) = acts.split_last().unwrap();
        assert!(growing.iter().all(|(_, act)| text_of(act).ends_with(" ▉")));
        assert!(!text_of(&last.1).contains('▉'), "what is whole has no cursor");
    });
}

#[test]
fn edits_are_no_more_frequent_than_the_platform_allows() {
    World::new(EDITING).with_agent(storyteller(25)).live(async |life| {
        ask(life).await;
        let acts = acts(&life.vendor);
        // The last one is the answer itself, which does not wait.
        for pair in acts[..acts.len() - 1].windows(2) {
            let apart = pair[1].0.since(pair[0].0);
            assert!(apart >= Duration::from_secs(1), "{apart:?}");
        }
    });
}

#[test]
fn a_short_answer_has_no_preview() {
    let short = agent(|stage| async move {
        stage.show("Yes,");
        SystemClock.sleep(Duration::from_secs(10)).await;
        stage.show("Yes, I do.");
        SystemClock.sleep(Duration::from_secs(10)).await;
        stage.finish("Yes, I do.").await;
    });
    World::new(EDITING).with_agent(short).live(async |life| {
        assert_eq!(ask(life).await, ["Yes, I do."]);
        assert_eq!(acts(&life.vendor).len(), 1);
    });
}

#[test]
fn what_does_not_fit_into_the_previewed_message_follows_in_order() {
    World::new(EDITING).with_agent(storyteller(100)).live(async |life| {
        let texts = ask(life).await;
        assert!(texts.len() >= 4, "{}", texts.len());
        let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        assert_eq!(words.join(" "), story(100));
        let shown = life.vendor.truth(|truth| truth.shown.clone());
        assert!(shown.iter().all(|shown| shown.edits > 0), "each was seen growing");
        assert!(shown.is_sorted_by_key(|shown| shown.by.part), "and each stands below the last");
        let delivery = shown[0].by.with_part(0);
        assert!(shown.iter().all(|shown| shown.by.with_part(0) == delivery), "of one delivery");
    });
}

#[test]
fn what_is_full_is_left_alone_once_it_says_what_it_will_say() {
    World::new(EDITING).with_agent(storyteller(100)).live(async |life| {
        let texts = ask(life).await;
        let acts = acts(&life.vendor);
        for (number, whole) in texts.iter().enumerate().take(texts.len() - 1) {
            let of_part: Vec<&Outbound> = acts
                .iter()
                .map(|(_, act)| act)
                .filter(|act| usize::from(act.id.part) == number)
                .collect();
            let last = of_part.iter().filter(|act| text_of(act) == whole).count();
            assert_eq!(last, 1, "part {number} is brought to its last form once");
            assert_eq!(text_of(of_part.last().unwrap()), whole, "and not touched again");
        }
    });
}

#[test]
fn a_crash_in_the_middle_of_an_answer_of_several_messages_leaves_one_answer() {
    let mut world = World::new(EDITING).with_agent(storyteller(100));
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(20).await;
        assert!(life.vendor.texts("home").len() >= 3, "{:#?}", life.vendor.texts("home"));
    });
    world.live(async |life| {
        life.quiet().await;
        let texts = life.vendor.texts("home");
        let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        assert_eq!(words.join(" "), story(100));
    });
}

/// Tells a long story, and then says something short instead.
fn changing_its_mind() -> Arc<dyn Agent> {
    agent(|stage| async move {
        let mut text = String::new();
        for n in 1..=60 {
            text.push_str(&sentence(n));
            stage.show(&text);
            SystemClock.sleep(Duration::from_millis(250)).await;
        }
        stage.finish("Never mind.").await;
    })
}

#[test]
fn messages_that_an_answer_does_not_need_in_the_end_are_taken_away() {
    let deleting = Capabilities { deletes: Deletes::Anytime, ..EDITING };
    World::new(deleting).with_agent(changing_its_mind()).live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(12).await;
        assert!(life.vendor.texts("home").len() > 1);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["Never mind."]);
    });
    World::new(EDITING).with_agent(changing_its_mind()).live(async |life| {
        let texts = ask(life).await;
        assert_eq!(texts[0], "Never mind.");
        assert!(texts[1..].iter().all(|text| text == "(done)"), "{texts:?}");
    });
}

#[test]
fn messages_that_an_answer_does_not_need_are_taken_away_after_a_crash_too() {
    let deleting = Capabilities { deletes: Deletes::Anytime, ..EDITING };
    let mut world = World::new(deleting).with_agent(storyteller(100));
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(20).await;
        assert!(life.vendor.texts("home").len() >= 3);
    });
    let mut world = world.with_agent(agent(|stage| async move { stage.finish("Short.").await }));
    world.live(async |life| {
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["Short."]);
    });
}

#[test]
fn no_message_has_two_edits_on_their_way() {
    let mut world = World::new(EDITING).with_agent(storyteller(60));
    world.vendor().behaves(|act| match act.act {
        Act::Edit { .. } => Conduct::ShowsAfter(Duration::from_millis(1700)),
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        let texts = ask(life).await;
        let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        assert_eq!(words.join(" "), story(60));
        let edits = acts(&life.vendor).into_iter();
        let edits: Vec<Timestamp> = edits
            .filter(|(_, act)| matches!(act.act, Act::Edit { .. }))
            .map(|(at, _)| at)
            .collect();
        let apart = |pair: &[Timestamp]| pair[1].since(pair[0]) >= Duration::from_millis(1700);
        assert!(edits.windows(2).all(apart), "{edits:?}");
    });
}

#[test]
fn each_step_of_a_turn_has_a_preview_of_its_own() {
    let stepping = agent(|stage| async move {
        stage.show("First I look at what there is");
        SystemClock.sleep(Duration::from_secs(3)).await;
        stage.step("First I look at what there is.").await;
        SystemClock.sleep(Duration::from_secs(3)).await;
        stage.show("Then I tell you what I found");
        SystemClock.sleep(Duration::from_secs(3)).await;
        stage.finish("Then I tell you what I found.").await;
    });
    World::new(EDITING).with_agent(stepping).live(async |life| {
        let texts = ask(life).await;
        assert_eq!(texts, ["First I look at what there is.", "Then I tell you what I found."]);
    });
}

#[test]
fn a_notice_in_the_middle_does_not_disturb_a_preview() {
    World::new(EDITING).with_agent(storyteller(20)).live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(2).await;
        life.vendor.say("alice", "home", "/nope");
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts[0], story(20));
        assert!(texts[1].contains("no command"), "{texts:?}");
        assert_eq!(texts.len(), 2);
    });
}

#[test]
fn two_people_in_a_group_see_their_own_answers_grow() {
    let telling = agent(|stage| async move {
        let who = stage.turn.from.id.to_string();
        let mut text = format!("A story for {who}, as long as it takes. ");
        for n in 1..=20 {
            text.push_str(&sentence(n));
            stage.show(&text);
            SystemClock.sleep(Duration::from_millis(250)).await;
        }
        stage.finish(text.trim_end()).await;
    });
    World::new(EDITING).with_agent(telling).live(async |life| {
        life.vendor.say_in_group("alice", "room", "a story");
        life.pass(Duration::from_millis(1500)).await;
        life.vendor.say_in_group("bob", "room", "me too");
        life.quiet().await;
        let texts = life.vendor.texts_at(&life.vendor.group("room"));
        assert_eq!(texts.len(), 2, "one message each: {texts:#?}");
        for (text, who) in texts.iter().zip(["alice", "bob"]) {
            assert!(
                text.contains(&format!("for {who},")) && text.ends_with("number 20."),
                "{text}"
            );
        }
    });
}

#[test]
fn a_preview_that_may_have_arrived_is_followed_by_a_marked_answer() {
    let mut world = World::new(EDITING).with_agent(storyteller(20));
    for conduct in [Conduct::ShowsSilently, Conduct::LosesSilently, Conduct::ShowsNameless] {
        let mut fresh = World::new(EDITING).with_agent(storyteller(20));
        std::mem::swap(&mut world, &mut fresh);
        world.vendor().first([conduct.clone()]);
        world.live(async |life| {
            let texts = ask(life).await;
            let last = texts.last().unwrap();
            assert!(last.contains(&story(20)), "{conduct:?}: {texts:#?}");
            assert!(last.contains(MARK), "{conduct:?}: {texts:#?}");
            assert!(texts.len() <= 2, "one half, one whole: {conduct:?}: {texts:#?}");
        });
    }
}

#[test]
fn a_preview_that_may_have_arrived_where_repeats_are_recognised_becomes_the_answer() {
    let mut world = World::new(keyed(EDITING)).with_agent(storyteller(20));
    world.vendor().first([Conduct::ShowsSilently]);
    world.live(async |life| {
        assert_eq!(ask(life).await, [story(20)]);
    });
}

/// Says one sentence, thinks for a while, and then says all the others at once.
fn bursting_out(sentences: usize) -> Arc<dyn Agent> {
    agent(move |stage| async move {
        stage.show(&sentence(1));
        SystemClock.sleep(Duration::from_secs(2)).await;
        stage.show(&story(sentences));
        SystemClock.sleep(Duration::from_secs(30)).await;
        stage.finish(&story(sentences)).await;
    })
}

#[test]
fn a_repeat_that_is_recognised_shows_what_came_first_until_it_is_edited() {
    let mut world = World::new(keyed(EDITING)).with_agent(bursting_out(100));
    world.vendor().first([Conduct::ShowsSilently]);
    world.live(async |life| {
        let texts = ask(life).await;
        let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        assert_eq!(words.join(" "), story(100));
    });
}

#[test]
fn after_three_refusals_a_preview_stands_still_and_the_answer_comes_all_the_same() {
    let mut world = World::new(EDITING).with_agent(storyteller(100));
    world.vendor().behaves(|act| match act.act {
        Act::Edit { .. } => {
            Conduct::Refuses(SendError::Throttled { after: Duration::from_millis(100) })
        }
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(24).await;
        let edits = acts(&life.vendor).iter().filter(|(_, act)| text_of(act).len() > 40).count();
        assert_eq!(edits, 3);
        life.vendor.behaves(|_| Conduct::Shows);
        life.quiet().await;
        let words = life.vendor.texts("home").join(" ");
        assert_eq!(words.split_whitespace().collect::<Vec<_>>().join(" "), story(100));
    });
}

#[test]
fn a_preview_that_is_refused_leaves_no_mark_on_the_answer() {
    let mut world = World::new(EDITING).with_agent(storyteller(20));
    let refused = || Conduct::Refuses(SendError::Throttled { after: Duration::from_secs(1) });
    world.vendor().first([refused(), refused(), refused()]);
    world.live(async |life| {
        assert_eq!(ask(life).await, [story(20)]);
    });
}

#[test]
fn a_draft_grows_and_the_answer_is_posted_once() {
    World::new(DRAFTING).with_agent(storyteller(20)).live(async |life| {
        assert_eq!(ask(life).await, [story(20)]);
        let acts = acts(&life.vendor);
        let (last, drafts) = acts.split_last().unwrap();
        assert!(matches!(last.1.act, Act::Post(_)));
        assert!(drafts.len() >= 4);
        for pair in drafts.windows(2) {
            assert!(matches!(pair[0].1.act, Act::Draft(_)));
            assert!(pair[1].0.since(pair[0].0) >= Duration::from_secs(1));
        }
        assert!(drafts.iter().all(|(_, draft)| draft.id == last.1.id));
    });
}

#[test]
fn a_short_draft_is_shown_from_its_first_word() {
    let short = agent(|stage| async move {
        stage.show("Y");
        SystemClock.sleep(Duration::from_secs(10)).await;
        stage.finish("Yes.").await;
    });
    World::new(DRAFTING).with_agent(short).live(async |life| {
        ask(life).await;
        assert_eq!(text_of(&acts(&life.vendor)[0].1), "Y");
    });
}

#[test]
fn a_draft_that_is_taken_back_is_shown_as_it_is() {
    let fickle = agent(|stage| async move {
        stage.show("A wrong beginning of some length");
        SystemClock.sleep(Duration::from_secs(3)).await;
        stage.show("A right one");
        SystemClock.sleep(Duration::from_secs(3)).await;
        stage.finish("A right one.").await;
    });
    for can in [DRAFTING, EDITING] {
        World::new(can).with_agent(fickle.clone()).live(async |life| {
            assert_eq!(ask(life).await, ["A right one."]);
            let seen: Vec<String> =
                acts(&life.vendor).iter().map(|(_, act)| text_of(act).to_owned()).collect();
            assert_eq!(seen[1].trim_end_matches(" ▉"), "A right one", "{seen:?}");
        });
    }
}

#[test]
fn typing_is_shown_at_once_and_repeated_for_as_long_as_nothing_can_be_read() {
    let slow = agent(|stage| async move {
        SystemClock.sleep(Duration::from_secs(10)).await;
        stage.show("Nobody can see this before it is finished.");
        SystemClock.sleep(Duration::from_secs(10)).await;
        stage.finish("Done.").await;
    });
    World::new(TYPING).with_agent(slow).live(async |life| {
        let asked = life.now();
        assert_eq!(ask(life).await, ["Done."]);
        let typed = typed(&life.vendor);
        assert!(typed[0].since(asked) < Duration::from_secs(1), "at once");
        assert!(typed.last().unwrap().since(asked) >= Duration::from_secs(15), "until the end");
        for pair in typed.windows(2) {
            let apart = pair[1].since(pair[0]);
            assert!(apart >= Duration::from_secs(2) && apart < Duration::from_secs(5), "{apart:?}");
        }
        let until = life.now();
        life.pass_seconds(60).await;
        assert!(typed.iter().all(|at| *at <= until), "not after the end");
    });
}

#[test]
fn typing_that_lasts_long_is_repeated_seldom() {
    let slow = agent(|stage| async move {
        SystemClock.sleep(Duration::from_secs(120)).await;
        stage.finish("Done.").await;
    });
    let lasting = Capabilities { typing: Typing::Fades(Duration::from_secs(100)), ..SIMPLE };
    World::new(lasting).with_agent(slow).live(async |life| {
        assert_eq!(ask(life).await, ["Done."]);
        let typed = typed(&life.vendor);
        assert!((3..=6).contains(&typed.len()), "{typed:?}");
        for pair in typed.windows(2) {
            let apart = pair[1].since(pair[0]);
            assert!((25..100).contains(&apart.as_secs()), "{apart:?}");
        }
    });
}

#[test]
fn typing_that_stays_is_taken_back_when_nothing_is_said() {
    let lasting = Capabilities { typing: Typing::Stays(Duration::from_secs(100)), ..SIMPLE };
    for (answer, taken_back) in [("NO_REPLY", 1), ("Yes.", 0)] {
        let slow = agent(move |stage| async move {
            SystemClock.sleep(Duration::from_secs(30)).await;
            stage.finish(answer).await;
        });
        World::new(lasting).with_agent(slow).live(async |life| {
            ask(life).await;
            let acts = acts(&life.vendor).into_iter();
            let rests = acts.filter(|(_, outbound)| outbound.act == Act::Rest).count();
            assert_eq!(rests, taken_back, "{answer}");
            assert!(life.vendor.truth(|truth| truth.works.is_empty()), "nobody seems to work");
        });
    }
}

#[test]
fn typing_ends_where_the_answer_can_be_read() {
    let can = Capabilities { typing: TYPING.typing, ..EDITING };
    World::new(can).with_agent(storyteller(80)).live(async |life| {
        ask(life).await;
        assert!(typed(&life.vendor).len() <= 1);
    });
}

#[test]
fn a_preview_while_the_account_is_away_does_no_harm() {
    let mut world = World::new(EDITING).with_agent(storyteller(60));
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(3).await;
        let away = talaria_platform::ConnectError::Unreachable { reason: "away".into() };
        life.vendor.hangs_up(std::iter::repeat_n(away, 6));
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" "), story(60));
        assert!(!texts[0].contains(MARK));
    });
}

#[test]
fn a_crash_in_the_middle_of_a_preview_completes_the_same_message() {
    let mut world = World::new(EDITING).with_agent(storyteller(20));
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(3).await;
        assert_eq!(life.vendor.texts("home").len(), 1);
    });
    world.live(async |life| {
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), [story(20)]);
    });
}

#[test]
fn a_clean_stop_in_the_middle_of_a_preview_completes_the_same_message() {
    let mut world = World::new(EDITING).with_agent(storyteller(20));
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(3).await;
        life.gateway.stop(Duration::ZERO).await;
    });
    world.live(async |life| {
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!((texts.len(), &texts[0]), (2, &story(20)), "{texts:?}");
        assert!(texts[1].contains("have not finished this yet"), "{texts:?}");
    });
}

#[test]
fn a_crash_before_a_preview_was_confirmed_leaves_a_marked_answer() {
    let mut world = World::new(EDITING).with_agent(storyteller(20));
    world.vendor().first([Conduct::ShowsAfter(Duration::from_secs(30))]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(3).await;
    });
    world.live(async |life| {
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 1, "{texts:#?}");
        assert!(texts[0].contains(MARK) && texts[0].contains(&story(20)), "{texts:#?}");
    });
}

#[test]
fn a_turn_that_is_stopped_by_a_restart_ends_in_its_preview() {
    let endless = agent(|stage| async move {
        stage.show("A beginning that is long enough to be seen");
        std::future::pending::<()>().await;
    });
    let mut world = World::new(EDITING).with_agent(endless);
    world.live(async |life| {
        life.vendor.say("alice", "home", "a story");
        life.pass_seconds(3).await;
        life.vendor.press_stop("alice", "home");
        // The stop is recorded, and nobody is told yet.
        life.until("the stop", |vendor| vendor.is_heard()).await;
        life.pass(Duration::from_millis(100)).await;
    });
    world.live(async |life| {
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 1, "nothing is left half-way: {texts:#?}");
        assert!(texts[0].contains("Stopped."), "{texts:#?}");
    });
}

#[test]
fn a_turn_that_fails_ends_in_its_preview() {
    let failing = agent(|stage| async move {
        stage.show("A beginning that is long enough to be seen");
        SystemClock.sleep(Duration::from_secs(3)).await;
        stage.fail(Failure::Model("The model is asleep.".into())).await;
    });
    World::new(EDITING).with_agent(failing).live(async |life| {
        let texts = ask(life).await;
        assert_eq!(texts, ["The model is asleep."]);
    });
}
