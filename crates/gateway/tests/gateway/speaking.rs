//! How an account speaks: by what an answer grows, how fast, what it answers, and what is done when a
//! platform says wait, or nothing.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::{Replies, Transport};
use talaria_model::{
    Act, AgentEvent, Bucket, Capabilities, Content, Cost, Deletes, Drafts, Failure, Files,
    Idempotency, Marks, Notify, Outbound, Pace, Progress, SenderId, TextLimit, Timestamp, Typing,
    Usage, Whispers,
};
use talaria_platform::SendError;
use talaria_store::Store;

use crate::world::{Conduct, EDITING, End, Life, MARK, Reach, SIMPLE, Vendor, World, agent, keyed};

const DRAFTING: Capabilities =
    Capabilities { drafts: Drafts::Every(Duration::from_secs(1)), ..EDITING };

/// A platform that takes messages away again, with room for a long answer in each.
const DELETING: Capabilities = Capabilities {
    deletes: Deletes::Anytime,
    text: TextLimit { max: 10_000, ..EDITING.text },
    ..EDITING
};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Writes a line a second and ends with them.
fn writer(seconds: usize) -> Arc<dyn Agent> {
    agent(move |stage| async move {
        let mut text = String::new();
        for n in 1..=seconds {
            text.push_str(&format!("This is line number {n} of many. "));
            stage.show(&text);
            SystemClock.sleep(secs(1)).await;
        }
        stage.finish("The whole answer.").await;
    })
}

fn acts(vendor: &Vendor) -> Vec<(Timestamp, Outbound)> {
    vendor.truth(|truth| truth.acts.clone())
}

fn count(vendor: &Vendor, kind: impl Fn(&Act) -> bool) -> usize {
    acts(vendor).iter().filter(|(_, outbound)| kind(&outbound.act)).count()
}

fn posted(vendor: &Vendor) -> Vec<(Timestamp, Content)> {
    let acts = acts(vendor).into_iter();
    acts.filter_map(|(at, outbound)| match outbound.act {
        Act::Post(content) => Some((at, content)),
        _ => None,
    })
    .collect()
}

async fn ask(life: &Life) -> Vec<String> {
    life.vendor.say("alice", "home", "hello");
    life.quiet().await;
    life.vendor.texts("home")
}

/// Brings a story to its end that may not have begun.
async fn say_if_silent(life: &Life) {
    if life.vendor.truth(|truth| truth.happened.is_empty()) {
        life.vendor.say("alice", "home", "hello");
    }
    life.quiet().await;
}

#[test]
fn an_answer_grows_by_what_was_chosen() {
    for (transport, drafts, edits) in [
        (Transport::Auto, true, false),
        (Transport::Draft, true, false),
        (Transport::Edit, false, true),
        (Transport::Off, false, false),
    ] {
        let mut world = World::new(DRAFTING).with_agent(writer(5));
        world.manner.streaming.transport = transport;
        world.live(async |life| {
            assert_eq!(ask(life).await, ["The whole answer."]);
            let drafted = count(&life.vendor, |act| matches!(act, Act::Draft(_)));
            let edited = count(&life.vendor, |act| matches!(act, Act::Edit { .. }));
            assert_eq!((drafted > 0, edited > 0), (drafts, edits), "{transport:?}");
        });
    }
}

#[test]
fn what_an_account_can_do_depends_on_the_kind_of_chat() {
    let mut world = World::new(DRAFTING).with_agent(writer(5));
    let small = TextLimit { max: 100, ..EDITING.text };
    world.vendor().can_in_groups(Capabilities { text: small, ..EDITING });
    world.live(async |life| {
        life.vendor.say_in_group("alice", "room", "hello");
        life.quiet().await;
        assert_eq!(count(&life.vendor, |act| matches!(act, Act::Draft(_))), 0);
        let acts = acts(&life.vendor);
        assert!(acts.len() > 1);
        for (_, outbound) in &acts {
            let (Act::Post(content) | Act::Edit { content, .. }) = &outbound.act else { continue };
            assert!(content.text.chars().count() <= 100, "{content:?}");
        }
        ask(life).await;
        assert!(count(&life.vendor, |act| matches!(act, Act::Draft(_))) > 0);
    });
}

#[test]
fn an_old_preview_gives_way_to_a_new_message() {
    for (can, seconds, anew) in [
        (DELETING, 70, true),
        (DELETING, 50, false),
        // What cannot be removed takes its place.
        (Capabilities { deletes: Deletes::Never, ..DELETING }, 70, false),
        (keyed(DELETING), 70, true),
    ] {
        World::new(can).with_agent(writer(seconds)).live(async |life| {
            assert_eq!(ask(life).await, ["The whole answer."], "one answer");
            let shown = life.vendor.truth(|truth| truth.shown[0].clone());
            assert_eq!(shown.edits == 0, anew, "{seconds}: {shown:?}");
            assert_eq!(shown.message.as_str(), if anew { "m2" } else { "m1" });
            assert!(!shown.is_marked());
        });
    }
}

#[test]
fn of_an_answer_of_several_messages_the_last_is_the_one_that_is_posted_anew() {
    let long = agent(|stage| async move {
        let mut text = String::new();
        for n in 1..=40 {
            text.push_str(&format!("This is line number {n} of many.\n\n"));
            stage.show(&text);
            SystemClock.sleep(secs(1)).await;
        }
        SystemClock.sleep(secs(61)).await;
        stage.finish(&format!("{text}The end.")).await;
    });
    let small = Capabilities { text: EDITING.text, ..DELETING };
    for can in [small, keyed(small)] {
        World::new(can).with_agent(long.clone()).live(async |life| {
            let texts = ask(life).await;
            assert_eq!(texts.len(), 2, "{texts:#?}");
            assert!(texts[0].starts_with("This is line number 1 "), "{texts:#?}");
            assert!(texts[1].ends_with("The end."), "{texts:#?}");
            let shown = life.vendor.truth(|truth| truth.shown.clone());
            assert!(shown[0].edits > 0, "the first stays where it is");
            assert_eq!(shown[1].edits, 0, "people are told of the last");
        });
    }
}

#[test]
fn an_old_preview_that_cannot_be_removed_becomes_the_answer() {
    let refused = || Conduct::Refuses(SendError::Rejected { reason: "too old".into() });
    for conduct in [refused(), Conduct::LosesSilently] {
        let mut world = World::new(DELETING).with_agent(writer(70));
        let given = conduct.clone();
        world.vendor().behaves(move |outbound| match outbound.act {
            Act::Delete { .. } => given.clone(),
            _ => Conduct::Shows,
        });
        world.live(async |life| assert_eq!(ask(life).await, ["The whole answer."], "{conduct:?}"));
    }
}

#[test]
fn a_crash_while_an_answer_is_posted_anew_leaves_one_answer_where_repeats_are_recognised() {
    let mut moment = 0;
    loop {
        let mut world = World::new(keyed(DELETING)).with_agent(writer(3));
        world.manner.streaming.fresh_final_after = Some(secs(1));
        let died = world.live_and_die(moment, async |life| {
            ask(life).await;
        });
        if died == End::Over {
            break;
        }
        world.live(async |life| {
            say_if_silent(life).await;
            assert_eq!(life.vendor.texts("home"), ["The whole answer."], "dead at {moment}");
        });
        moment += 1;
    }
    assert!(moment > 12, "{moment}");
}

#[test]
fn a_crash_while_an_answer_is_posted_anew_leaves_one_answer() {
    let mut moment = 0;
    let mut marked = 0;
    loop {
        let mut world = World::new(DELETING).with_agent(writer(3));
        world.manner.streaming.fresh_final_after = Some(secs(1));
        let died = world.live_and_die(moment, async |life| {
            ask(life).await;
        });
        if died == End::Over {
            break;
        }
        world.live(async |life| {
            say_if_silent(life).await;
            let texts = life.vendor.texts("home");
            let (last, before) = texts.split_last().unwrap();
            assert!(last.ends_with("The whole answer."), "dead at {moment}: {texts:?}");
            assert!(before.is_empty() || last.contains(MARK), "dead at {moment}: {texts:?}");
            marked += usize::from(last.contains(MARK));
        });
        moment += 1;
    }
    assert!(moment > 12 && marked > 0 && marked < moment, "{marked} of {moment}");
}

#[test]
fn after_three_refusals_the_answer_is_posted_and_the_preview_removed() {
    let mut world = World::new(DELETING).with_agent(writer(30));
    world.vendor().behaves(|outbound| match outbound.act {
        Act::Edit { .. } => Conduct::Refuses(SendError::Throttled { after: secs(1) }),
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        assert_eq!(ask(life).await, ["The whole answer."]);
        assert_eq!(count(&life.vendor, |act| matches!(act, Act::Edit { .. })), 3);
    });
}

/// Refuses this often to change a message into the answer.
fn refuses_the_answer(times: usize) -> impl FnMut(&Outbound) -> Conduct + Send + 'static {
    let mut left = times;
    move |outbound| match &outbound.act {
        Act::Edit { content, .. } if content.text == "The whole answer." && left > 0 => {
            left -= 1;
            Conduct::Refuses(SendError::Throttled { after: secs(1) })
        }
        _ => Conduct::Shows,
    }
}

#[test]
fn an_answer_that_may_not_replace_its_preview_three_times_is_posted_and_the_preview_removed() {
    for can in [DELETING, keyed(DELETING)] {
        let mut world = World::new(can).with_agent(writer(5));
        world.vendor().behaves(refuses_the_answer(usize::MAX));
        world.live(async |life| {
            assert_eq!(ask(life).await, ["The whole answer."]);
            let is_final = |act: &Act| matches!(act, Act::Edit { content, .. } if content.text == "The whole answer.");
            assert_eq!(count(&life.vendor, is_final), 3);
            assert_eq!(count(&life.vendor, |act| matches!(act, Act::Delete { .. })), 1);
            let shown = life.vendor.truth(|truth| truth.shown[0].clone());
            assert!(shown.edits == 0 && !shown.is_marked(), "{shown:?}");
        });
    }
}

#[test]
fn two_refusals_are_waited_out() {
    let mut world = World::new(DELETING).with_agent(writer(5));
    world.vendor().behaves(refuses_the_answer(2));
    world.live(async |life| {
        assert_eq!(ask(life).await, ["The whole answer."]);
        assert_eq!(count(&life.vendor, |act| matches!(act, Act::Delete { .. })), 0);
        assert_eq!(posted(&life.vendor).len(), 1, "it is the same message");
    });
}

#[test]
fn an_answer_whose_preview_cannot_be_removed_goes_on_waiting_for_its_place() {
    let never = Capabilities { deletes: Deletes::Never, ..DELETING };
    for (can, removals) in [(never, 0), (DELETING, 2)] {
        let mut world = World::new(can).with_agent(writer(5));
        let mut edits = refuses_the_answer(7);
        world.vendor().behaves(move |outbound| match outbound.act {
            Act::Delete { .. } => Conduct::Refuses(SendError::Rejected { reason: "no".into() }),
            _ => edits(outbound),
        });
        world.live(async |life| {
            assert_eq!(ask(life).await, ["The whole answer."]);
            assert_eq!(posted(&life.vendor).len(), 1, "it is the same message");
            let tried = count(&life.vendor, |act| matches!(act, Act::Delete { .. }));
            assert_eq!(tried, removals, "once for three refusals");
        });
    }
}

#[test]
fn a_crash_while_an_answer_is_posted_after_three_refusals_leaves_one_answer() {
    for can in [keyed(DELETING), DELETING] {
        let (mut moment, mut marked) = (0, 0);
        loop {
            let mut world = World::new(can).with_agent(writer(3));
            world.vendor().behaves(refuses_the_answer(usize::MAX));
            let died = world.live_and_die(moment, async |life| {
                ask(life).await;
            });
            if died == End::Over {
                break;
            }
            world.vendor().behaves(refuses_the_answer(4));
            world.live(async |life| {
                say_if_silent(life).await;
                let texts = life.vendor.texts("home");
                let (last, before) = texts.split_last().unwrap();
                assert!(last.ends_with("The whole answer."), "dead at {moment}: {texts:?}");
                assert!(before.is_empty() || last.contains(MARK), "dead at {moment}: {texts:?}");
                marked += usize::from(last.contains(MARK));
            });
            moment += 1;
        }
        assert!(moment > 15 && marked < moment, "{marked} of {moment}");
        let is_keyed = can.idempotency != Idempotency::None;
        assert!(!is_keyed || marked == 0, "{marked} of {moment}");
    }
}

#[test]
fn a_wait_is_remembered_with_the_final_that_was_refused_and_with_nothing_else() {
    // Edits of a growing answer are only for show: what they were told dies with the process.
    let mut world = World::new(EDITING).with_agent(writer(40));
    let asked = || Conduct::Refuses(SendError::Throttled { after: secs(600) });
    world.vendor().behaves(move |outbound| match outbound.act {
        Act::Edit { .. } => asked(),
        _ => Conduct::Shows,
    });
    let refused = world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.until("a refusal", |vendor| !edited(vendor).is_empty()).await;
        edited(&life.vendor)[0]
    });
    world.vendor().behaves(|_| Conduct::Shows);
    world.live(async |life| {
        life.until("an edit", |vendor| edited(vendor).len() > 1).await;
        let next = edited(&life.vendor)[1].since(refused);
        assert!(next < secs(600), "the next life does not know: {next:?}");
    });
    // A final has the wait in its row.
    let mut world = World::new(SIMPLE);
    world.vendor().first([asked()]);
    let refused = world.live(async |life| {
        life.vendor.say("alice", "home", "/nope");
        life.until("a refusal", |vendor| !posted(vendor).is_empty()).await;
        life.pass_seconds(1).await;
        posted(&life.vendor)[0].0
    });
    world.live(async |life| {
        life.until("the answer", |vendor| posted(vendor).len() > 1).await;
        let next = posted(&life.vendor)[1].0.since(refused);
        assert!(next >= secs(600), "the next life waits: {next:?}");
    });
}

#[test]
fn a_platform_that_asks_for_patience_is_given_it() {
    let mut world = World::new(EDITING).with_agent(writer(40));
    let mut first = true;
    world.vendor().behaves(move |outbound| match outbound.act {
        Act::Edit { .. } if std::mem::take(&mut first) => {
            Conduct::Refuses(SendError::Throttled { after: secs(15) })
        }
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        ask(life).await;
        let acts = acts(&life.vendor);
        let refused = acts.iter().position(|(_, act)| matches!(act.act, Act::Edit { .. })).unwrap();
        assert!(acts[refused + 1].0.since(acts[refused].0) >= secs(15));
        assert!(acts.len() > refused + 5, "then it grows again");
    });
}

fn paced(can: Capabilities, account: Option<Bucket>, chat: Option<Bucket>) -> Capabilities {
    Capabilities { pace: Pace { account, chat, edits: None }, ..can }
}

#[test]
fn a_chat_is_sent_no_more_than_its_platform_allows() {
    let chat = Some(Bucket { burst: 3, every: secs(2) });
    World::new(paced(SIMPLE, None, chat)).live(async |life| {
        let began = life.now();
        for n in 1..=6 {
            life.vendor.say("alice", "home", &format!("/nope-{n}"));
        }
        life.quiet().await;
        let at: Vec<u64> =
            posted(&life.vendor).iter().map(|(at, _)| at.since(began).as_secs()).collect();
        assert_eq!(at, [0, 0, 0, 2, 4, 6]);
        let elsewhere = life.now();
        life.vendor.say("bob", "den", "/nope");
        life.quiet().await;
        assert!(life.now().since(elsewhere) < secs(1), "another chat has its own");
    });
}

#[test]
fn an_account_is_sent_no_more_than_its_platform_allows() {
    let account = Some(Bucket { burst: 2, every: secs(1) });
    World::new(paced(SIMPLE, account, None)).live(async |life| {
        let began = life.now();
        for n in 1..=6 {
            life.vendor.say("alice", &format!("chat-{n}"), "/nope");
        }
        life.quiet().await;
        let at: Vec<u64> =
            posted(&life.vendor).iter().map(|(at, _)| at.since(began).as_secs()).collect();
        assert_eq!(at, [0, 0, 1, 2, 3, 4]);
    });
}

#[test]
fn previews_leave_room_for_what_is_whole() {
    let account = Some(Bucket { burst: 2, every: secs(5) });
    World::new(paced(EDITING, account, None)).with_agent(writer(60)).live(async |life| {
        for n in 1..=4 {
            life.vendor.say("alice", &format!("chat-{n}"), "hello");
        }
        life.pass_seconds(30).await;
        let asked = life.now();
        life.vendor.say("bob", "den", "/nope");
        life.until("an answer", |vendor| !vendor.texts("den").is_empty()).await;
        assert!(life.now().since(asked) < secs(1), "{:?}", life.now().since(asked));
        life.quiet().await;
        let acts = acts(&life.vendor);
        let in_a_minute = acts.iter().filter(|(at, _)| at.since(acts[0].0) < secs(60)).count();
        assert!(in_a_minute <= 2 + 12 + 1, "{in_a_minute}");
    });
}

/// When messages were changed, in all chats.
fn edited(vendor: &Vendor) -> Vec<Timestamp> {
    let acts = acts(vendor).into_iter();
    acts.filter(|(_, act)| matches!(act.act, Act::Edit { .. })).map(|(at, _)| at).collect()
}

#[test]
fn changes_are_counted_apart_over_all_chats_where_the_platform_does() {
    let edits = Some(Bucket { burst: 3, every: secs(3) });
    let pace = Pace { edits, ..Pace::FREE };
    let can = Capabilities { pace, text: DELETING.text, ..EDITING };
    World::new(can).with_agent(writer(60)).live(async |life| {
        for n in 1..=5 {
            life.vendor.say("alice", &format!("chat-{n}"), "hello");
        }
        life.pass_seconds(50).await;
        let edits = edited(&life.vendor);
        for (at, from) in edits.iter().enumerate() {
            let minute = edits[at..].iter().filter(|edit| edit.since(*from) < secs(30)).count();
            assert!(minute <= 3 + 10, "{minute} in half a minute");
        }
        assert!(edits.len() > 10, "they grow all the same: {}", edits.len());
        let asked = life.now();
        life.vendor.say("bob", "den", "/nope");
        life.until("an answer", |vendor| !vendor.texts("den").is_empty()).await;
        assert!(life.now().since(asked) < secs(1), "what is no change does not wait for them");
        life.quiet().await;
        for n in 1..=5 {
            assert_eq!(life.vendor.texts(&format!("chat-{n}")), ["The whole answer."]);
        }
    });
}

#[test]
fn a_word_to_wait_with_a_change_is_about_all_changes_where_they_are_counted_apart() {
    let edits = Some(Bucket { burst: 50, every: secs(1) });
    let can = Capabilities { pace: Pace { edits, ..Pace::FREE }, ..EDITING };
    for (can, waits) in [(can, true), (EDITING, false)] {
        let mut world = World::new(can).with_agent(writer(60));
        let mut first = true;
        world.vendor().behaves(move |outbound| match outbound.act {
            Act::Edit { .. } if std::mem::take(&mut first) => {
                Conduct::Refuses(SendError::Throttled { after: secs(20) })
            }
            _ => Conduct::Shows,
        });
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.until("an edit", |vendor| !edited(vendor).is_empty()).await;
            let refused = edited(&life.vendor)[0];
            life.vendor.say("bob", "den", "hello");
            life.pass_seconds(15).await;
            assert_eq!(edited(&life.vendor).len() == 1, waits, "{waits}");
            assert!(!life.vendor.texts("den").is_empty(), "a new message is no change");
            life.pass_seconds(15).await;
            let next = edited(&life.vendor)[1].since(refused);
            assert_eq!(next >= secs(20), waits, "{next:?}");
        });
    }
}

#[test]
fn where_drafts_turn_out_not_to_be_known_answers_grow_by_edits() {
    let mut world = World::new(DRAFTING).with_agent(writer(20));
    world.vendor().behaves(|outbound| match outbound.act {
        Act::Draft(_) => {
            let reason = "method not found".into();
            Conduct::Refuses(SendError::Rejected { reason })
        }
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        for chat in ["home", "den"] {
            life.vendor.say("alice", chat, "hello");
            life.quiet().await;
            assert_eq!(life.vendor.texts(chat), ["The whole answer."]);
        }
        let drafts = count(&life.vendor, |act| matches!(act, Act::Draft(_)));
        assert_eq!(drafts, 1, "it is tried once in all");
        let shown = life.vendor.truth(|truth| truth.shown.clone());
        assert!(shown.iter().all(|shown| shown.edits > 3), "both were seen growing");
    });
}

#[test]
fn marks_without_words_are_no_draft_and_tell_nothing_about_drafts() {
    let titled = agent(|stage| async move {
        for shown in ["#", "# ", "# A title", "# A title\n\nAnd more than a few words below it."] {
            stage.show(shown);
            SystemClock.sleep(Duration::from_secs(2)).await;
        }
        stage.finish("# A title\n\nAnd more than a few words below it. The end.").await;
    });
    let mut world = World::new(DRAFTING).with_agent(titled);
    world.vendor().behaves(|outbound| match &outbound.act {
        // What shows nothing is asked of nobody.
        Act::Draft(draft) if draft.content.text.trim().is_empty() => Conduct::Shows,
        Act::Draft(_) => {
            let reason = "method not found".into();
            Conduct::Refuses(SendError::Rejected { reason })
        }
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.quiet().await;
        let blank =
            |act: &Act| matches!(act, Act::Draft(draft) if draft.content.text.trim().is_empty());
        assert_eq!(count(&life.vendor, blank), 0, "nothing is no draft");
        let shown = life.vendor.truth(|truth| truth.shown.clone());
        assert!(shown[0].edits > 0, "it was seen growing: {shown:#?}");
    });
}

#[test]
fn a_draft_that_is_refused_where_others_were_shown_changes_nothing() {
    let mut world = World::new(DRAFTING).with_agent(writer(20));
    let mut number = 0;
    world.vendor().behaves(move |outbound| match outbound.act {
        Act::Draft(_) => {
            number += 1;
            let reason = "not this one".into();
            if number == 3 {
                Conduct::Refuses(SendError::Rejected { reason })
            } else {
                Conduct::Shows
            }
        }
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        assert_eq!(ask(life).await, ["The whole answer."]);
        assert_eq!(edited(&life.vendor), []);
        assert!(count(&life.vendor, |act| matches!(act, Act::Draft(_))) > 6);
    });
}

#[test]
fn a_word_to_the_whole_account_is_heeded_in_every_chat() {
    for (error, waits) in [
        (SendError::Halted { after: secs(20) }, true),
        (SendError::Throttled { after: secs(20) }, false),
    ] {
        let mut world = World::new(SIMPLE);
        world.vendor().first([Conduct::Refuses(error.clone())]);
        world.live(async |life| {
            let began = life.now();
            life.vendor.say("alice", "home", "/nope");
            life.pass_seconds(1).await;
            life.vendor.say("bob", "den", "/nope");
            life.until("an answer", |vendor| !vendor.texts("den").is_empty()).await;
            assert_eq!(life.now().since(began) >= secs(20), waits, "{error}");
            life.quiet().await;
            assert!(life.now().since(began) >= secs(20));
        });
    }
}

#[test]
fn what_can_be_looked_for_is_not_sent_twice() {
    for (conduct, sent) in [(Conduct::ShowsSilently, 1), (Conduct::LosesSilently, 2)] {
        for can in [SIMPLE, EDITING] {
            let mut world = World::new(can);
            world.vendor().lets_look();
            world.vendor().first([conduct.clone()]);
            world.live(async |life| {
                assert_eq!(ask(life).await, ["echo: hello"], "{conduct:?}: no copy and no mark");
                assert_eq!(posted(&life.vendor).len(), sent, "{conduct:?}");
            });
        }
    }
}

#[test]
fn a_preview_that_is_found_becomes_the_answer() {
    for conduct in [Conduct::ShowsSilently, Conduct::LosesSilently] {
        let mut world = World::new(EDITING).with_agent(writer(10));
        world.vendor().lets_look();
        world.vendor().first([conduct.clone()]);
        world.live(async |life| {
            assert_eq!(ask(life).await, ["The whole answer."], "{conduct:?}");
        });
    }
}

#[test]
fn an_answer_that_died_on_its_way_is_looked_for() {
    let mut moment = 0;
    loop {
        let mut world = World::new(SIMPLE);
        world.vendor().lets_look();
        let died = world.live_and_die(moment, async |life| {
            ask(life).await;
        });
        if died == End::Over {
            break;
        }
        world.live(async |life| {
            say_if_silent(life).await;
            assert_eq!(life.vendor.texts("home"), ["echo: hello"], "dead at {moment}");
        });
        moment += 1;
    }
    assert!(moment > 4, "{moment}");
}

#[test]
fn whoever_does_not_say_what_can_be_seen_is_not_waited_for() {
    let mut world = World::new(SIMPLE);
    world.vendor().lets_look();
    world.vendor().first([Conduct::ShowsSilently]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.until("a post", |vendor| !vendor.texts("home").is_empty()).await;
        life.vendor.is(Reach::Silent);
        life.pass_seconds(600).await;
        life.vendor.is(Reach::Open);
        life.quiet().await;
        assert!(life.vendor.texts("home").len() <= 2);
    });
}

const MARKING: Capabilities = Capabilities { marks: Marks::Shown, ..SIMPLE };

#[test]
fn people_see_on_their_message_how_far_its_answer_is() {
    let ending = |failure: Option<Failure>| {
        agent(move |stage| {
            let failure = failure.clone();
            async move {
                SystemClock.sleep(secs(5)).await;
                match failure {
                    None => stage.finish("Done.").await,
                    Some(failure) => stage.fail(failure).await,
                }
            }
        })
    };
    for (failure, progress) in [
        (None, Progress::Done),
        (Some(Failure::Model("asleep".into())), Progress::Failed),
        (Some(Failure::Stopped), Progress::Nothing),
    ] {
        World::new(MARKING).with_agent(ending(failure)).live(async |life| {
            life.vendor.say_as("alice", "home", "hello", "hers");
            life.pass_seconds(2).await;
            let seen = |vendor: &Vendor| vendor.truth(|truth| truth.marks.values().next().copied());
            assert_eq!(seen(&life.vendor), Some(Progress::Seen));
            life.quiet().await;
            life.pass_seconds(1).await;
            assert_eq!(seen(&life.vendor), Some(progress));
        });
    }
}

#[test]
fn what_concerns_one_person_is_whispered_where_that_can_be_done_and_answers_never_are() {
    let whispering = Capabilities { whispers: Whispers::Shown, ..SIMPLE };
    for (can, alone) in [(whispering, Some("alice")), (SIMPLE, None)] {
        World::new(can).live(async |life| {
            let group = life.vendor.group("team");
            let shown = |vendor: &Vendor| {
                vendor.truth(|truth| {
                    let to = |content: &Content| content.whispered_to.clone();
                    let all = truth.shown.iter();
                    all.map(|shown| to(&shown.content)).collect::<Vec<_>>()
                })
            };
            for (said, number) in [("/whoami", 1), ("hello", 2), ("/title A day", 3)] {
                life.vendor.say_in_group("alice", "team", said);
                life.until(said, |vendor| vendor.texts_at(&group).len() == number).await;
            }
            assert_eq!(shown(&life.vendor), [alone.map(SenderId::literal), None, None]);
        });
    }
}

#[test]
fn a_sign_that_hangs_holds_up_nothing() {
    let mut world = World::new(MARKING);
    world.vendor().behaves(|outbound| match outbound.act {
        Act::Mark { .. } => Conduct::ShowsAfter(secs(3600)),
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        let asked = life.now();
        life.vendor.say_as("alice", "home", "hello", "hers");
        life.texts("home", 1).await;
        assert!(life.now().since(asked) < secs(1));
    });
}

#[test]
fn typing_pauses_while_a_person_is_asked() {
    let can = Capabilities { typing: Typing::Fades(secs(5)), ..SIMPLE };
    let asking = agent(|mut stage| async move {
        SystemClock.sleep(secs(7)).await;
        stage.ask(crate::questions::question("Which one?")).await;
        SystemClock.sleep(secs(7)).await;
        stage.finish("Done.").await;
    });
    World::new(can).with_agent(asking).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        let typed = || count(&life.vendor, |act| *act == Act::Typing);
        assert_eq!(typed(), 4, "every two seconds");
        life.pass_seconds(60).await;
        assert_eq!(typed(), 4, "nobody types but the person");
        life.vendor.say("alice", "home", "1");
        life.quiet().await;
        assert_eq!(typed(), 8);
    });
}

#[test]
fn an_answer_shows_what_it_answers_as_it_was_wished() {
    let long = agent(|stage| async move {
        stage.finish(&"many words ".repeat(200)).await;
    });
    for (replies, expected) in [
        (Replies::Off, [false, false]),
        (Replies::First, [true, false]),
        (Replies::All, [true, true]),
    ] {
        let mut world = World::new(SIMPLE).with_agent(long.clone());
        world.manner.replies = replies;
        world.live(async |life| {
            life.vendor.say_as("alice", "home", "hello", "hers");
            life.quiet().await;
            let posted = posted(&life.vendor);
            let marked: Vec<bool> =
                posted.iter().map(|(_, content)| content.reply_to.is_some()).collect();
            assert_eq!(marked[..2], expected, "{replies:?}");
        });
    }
}

#[test]
fn a_preview_answers_the_same_message() {
    World::new(EDITING).with_agent(writer(5)).live(async |life| {
        life.vendor.say_as("alice", "home", "hello", "hers");
        life.quiet().await;
        let posted = posted(&life.vendor);
        assert_eq!(posted.len(), 1);
        assert_eq!(posted[0].1.reply_to.as_ref().unwrap().as_str(), "hers");
    });
}

#[test]
fn only_the_answer_makes_a_sound() {
    let stepping = agent(|stage| async move {
        let call = talaria_model::ToolCall {
            id: talaria_model::CallId::literal("c"),
            tool: "look".into(),
            arguments: "{}".into(),
        };
        let (text, files, calls) = ("Let me look.".to_owned(), vec![], vec![call]);
        let (usage, cost) = (Usage::default(), Cost::FREE);
        let step = AgentEvent::Stepped { text, files, calls, reasoning: None, usage, cost };
        stage.emit(step).await;
        stage.finish("Here it is.").await;
    });
    World::new(SIMPLE).with_agent(stepping).live(async |life| {
        assert_eq!(ask(life).await, ["Let me look.", "Here it is."]);
        let heard: Vec<Notify> =
            posted(&life.vendor).iter().map(|(_, content)| content.notify).collect();
        assert_eq!(heard, [Notify::Silently, Notify::Aloud]);
    });
}

#[test]
fn a_chat_that_is_gone_is_left_alone_until_something_is_heard_from_it() {
    let small = Capabilities { text: TextLimit { max: 300, ..SIMPLE.text }, ..SIMPLE };
    let long = agent(|stage| async move { stage.finish(&"many words ".repeat(200)).await });
    let mut world = World::new(small).with_agent(long);
    world.vendor().first([Conduct::Refuses(SendError::Gone { reason: "kicked".into() })]);
    world.live(async |life| {
        assert_eq!(ask(life).await, Vec::<String>::new());
        assert_eq!(posted(&life.vendor).len(), 1, "the other parts are not tried");
        let failed = life.disk.failed(100).await.unwrap();
        assert!(failed.len() > 5 && failed.iter().all(|lost| lost.reason.contains("kicked")));
        assert!(ask(life).await.len() > 5, "it is heard from again");
    });
}

#[test]
fn a_large_file_may_take_its_time() {
    let mut world = World::new(Capabilities { files: Files::UpTo(1 << 30), ..SIMPLE });
    let file = world.files.put("large.bin", &vec![0; 16 << 20]);
    world.agent = agent(move |stage| {
        let files = vec![file.clone()];
        async move {
            let (usage, cost) = (Usage::default(), Cost::FREE);
            let text = "Here it is.".into();
            stage.emit(AgentEvent::Finished { text, files, reasoning: None, usage, cost }).await;
        }
    });
    world.vendor().first([Conduct::ShowsAfter(secs(100))]);
    world.live(async |life| {
        assert_eq!(ask(life).await, ["Here it is."]);
        assert_eq!(posted(&life.vendor).len(), 1);
    });
}
