//! From the outbox to the vendor: in order, once, and honest about what cannot be known.

use std::time::Duration;

use talaria_model::{Act, Capabilities, Markup, Outbound, Reading, TextLimit, Unit};
use talaria_platform::SendError;
use talaria_store::Store;

use crate::world::{Conduct, Life, MARK, SIMPLE, Vendor, World, agent, keyed};

fn posts(vendor: &Vendor) -> Vec<Outbound> {
    vendor.truth(|truth| {
        let posts = truth.acts.iter().filter(|(_, act)| matches!(act.act, Act::Post(_)));
        posts.map(|(_, outbound)| outbound.clone()).collect()
    })
}

async fn failed(life: &Life) -> u64 {
    life.disk.counts().await.unwrap().failed
}

fn throttled(seconds: u64) -> Conduct {
    Conduct::Refuses(SendError::Throttled { after: Duration::from_secs(seconds) })
}

fn unreachable() -> Conduct {
    Conduct::Refuses(SendError::Unreachable { reason: "no route".into() })
}

fn unreadable() -> Conduct {
    Conduct::Refuses(SendError::Unreadable { reason: "cannot parse".into() })
}

#[test]
fn the_parts_of_a_long_answer_arrive_in_order() {
    let long = agent(|stage| async move {
        let text: Vec<String> = (0..400).map(|n| format!("word{n:04}")).collect();
        stage.finish(&text.join(" ")).await;
    });
    let mut world = World::new(SIMPLE).with_agent(long);
    world.limits.outbox = 2;
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert!(texts.len() >= 4, "{}", texts.len());
        let words: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        let expected: Vec<String> = (0..400).map(|n| format!("word{n:04}")).collect();
        assert_eq!(words, expected);
    });
}

#[test]
fn a_vendor_that_asks_to_wait_is_waited_for_and_nothing_overtakes() {
    let mut world = World::new(SIMPLE);
    let mut waits = vec![50, 100];
    world.vendor().behaves(move |act| match act.to.chat.id.as_str() {
        "home" => waits.pop().map_or(Conduct::Shows, throttled),
        _ => Conduct::Shows,
    });
    world.live(async |life| {
        let said = life.now();
        for n in 1..=3 {
            life.vendor.say("alice", "home", &format!("/nope-{n}"));
        }
        life.vendor.say("bob", "work", "hello");
        assert_eq!(life.texts("work", 1).await, ["echo: hello"]);
        assert!(life.now().since(said) < Duration::from_secs(1), "another chat does not wait");
        let texts = life.texts("home", 3).await;
        assert!(life.now().since(said) >= Duration::from_secs(150));
        for (n, text) in texts.iter().enumerate() {
            assert!(text.contains(&format!("nope-{}", n + 1)), "{texts:?}");
            assert!(!text.contains(MARK));
        }
        let home = life.vendor.dm("home");
        let first = posts(&life.vendor).into_iter().filter(|post| post.to == home);
        let first: Vec<_> = first.map(|post| post.id.delivery).collect();
        assert_eq!(first[..3], [1, 1, 1], "{first:?}");
    });
}

#[test]
fn a_vendor_that_cannot_be_reached_is_tried_again_unmarked_however_often() {
    let mut world = World::new(SIMPLE);
    world.vendor().first(std::iter::repeat_with(unreachable).take(30));
    world.live(async |life| {
        let said = life.now();
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        assert_eq!(posts(&life.vendor).len(), 31);
        // One to two seconds, doubling up to three minutes.
        let waited = life.now().since(said);
        assert!(waited > Duration::from_secs(30 * 60), "{waited:?}");
        assert_eq!(failed(life).await, 0);
    });
}

#[test]
fn a_try_that_did_not_arrive_does_not_count_against_one_that_may_have() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([unreachable(), Conduct::LosesSilently, unreachable(), throttled(5)]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains(MARK) && texts[0].contains("echo: hello"), "{texts:?}");
        assert_eq!(failed(life).await, 0);
    });
}

#[test]
fn a_chat_that_is_gone_ends_its_parcels_and_others_go_on() {
    let gone = || Conduct::Refuses(SendError::Gone { reason: "kicked".into() });
    let rejected = || Conduct::Refuses(SendError::Rejected { reason: "never".into() });
    let mut world = World::new(SIMPLE);
    world.vendor().first([gone(), rejected()]);
    world.live(async |life| {
        for n in 1..=3 {
            life.vendor.say("alice", "home", &format!("/nope-{n}"));
            life.pass_seconds(1).await;
        }
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains("nope-3"), "{texts:?}");
        life.quiet().await;
        assert_eq!(failed(life).await, 2);
        assert_eq!(posts(&life.vendor).len(), 4, "each once, and a notice");
    });
}

#[test]
fn what_cannot_be_read_is_sent_once_more_as_plain_text() {
    let formatted = agent(|stage| async move { stage.finish("**bold** [link](http://a.b)").await });
    let mut world = World::new(SIMPLE).with_agent(formatted.clone());
    world.vendor().first([unreadable()]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 1).await;
        assert!(!texts[0].contains("**") && texts[0].contains("bold"), "{texts:?}");
    });

    let mut world = World::new(SIMPLE).with_agent(formatted);
    world.vendor().first([unreadable(), unreadable()]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.quiet().await;
        assert_eq!(posts(&life.vendor).len(), 2);
        assert_eq!(failed(life).await, 1);
    });
}

#[test]
fn plain_text_is_read_as_it_is() {
    let text = "Stars: `a*b*c`\n\n```\n# no title\n__init__\n```";
    let coding = agent(move |stage| async move { stage.finish(text).await });
    let mut world = World::new(SIMPLE).with_agent(coding);
    world.vendor().first([unreadable()]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.texts("home", 1).await;
        let Act::Post(content) = posts(&life.vendor)[1].act.clone() else { panic!("a post") };
        assert_eq!(content.reading, Reading::AsItIs);
        assert_eq!(content.text, "Stars: a*b*c\n\n# no title\n__init__");
    });
}

#[test]
fn what_may_have_arrived_is_sent_once_more_with_a_mark() {
    for conduct in [Conduct::ShowsSilently, Conduct::LosesSilently] {
        let mut world = World::new(SIMPLE);
        world.vendor().first([conduct]);
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.quiet().await;
            let texts = life.vendor.texts("home");
            let last = texts.last().unwrap();
            assert!(last.contains(MARK) && last.contains("echo: hello"), "{texts:?}");
            assert_eq!(posts(&life.vendor).len(), 2);
        });
    }
}

#[test]
fn what_is_lost_twice_arrives_with_a_mark() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([Conduct::LosesSilently, Conduct::LosesSilently]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "/nope-1");
        life.vendor.say("alice", "home", "/nope-2");
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("nope-1") && texts[0].contains(MARK), "{texts:?}");
        assert!(texts[1].contains("nope-2") && !texts[1].contains(MARK), "{texts:?}");
        assert_eq!(failed(life).await, 0);
    });
}

#[test]
fn what_may_have_arrived_three_times_is_given_up_and_the_next_goes_on() {
    let mut world = World::new(SIMPLE);
    let silently = [Conduct::LosesSilently, Conduct::LosesSilently, Conduct::ShowsSilently];
    world.vendor().first(silently);
    world.live(async |life| {
        life.vendor.say("alice", "home", "/nope-1");
        life.vendor.say("alice", "home", "/nope-2");
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].contains("nope-1") && texts[0].contains(MARK), "{texts:?}");
        assert!(texts[1].contains("nope-2") && !texts[1].contains(MARK), "{texts:?}");
        assert!(texts[2].contains("1 earlier message"), "{texts:?}");
        assert_eq!(failed(life).await, 1);
    });
}

#[test]
fn a_vendor_that_recognises_repeats_gets_the_same_id_unmarked() {
    let mut world = World::new(keyed(SIMPLE));
    world.vendor().first([Conduct::ShowsSilently, Conduct::LosesSilently]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
        let posts = posts(&life.vendor);
        assert_eq!(posts.len(), 3);
        assert!(posts.iter().all(|post| *post == posts[0]), "{posts:?}");
    });
}

#[test]
fn a_repeat_that_comes_too_late_to_be_recognised_is_marked() {
    let mut world = World::new(keyed(SIMPLE));
    world.vendor().first([Conduct::LosesSilently]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.until("a try", |vendor| vendor.truth(|truth| truth.acts.len() == 1)).await;
    });
    world.sleep(Duration::from_secs(25 * 60 * 60));
    world.live(async |life| {
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains(MARK), "{texts:?}");
    });
}

#[test]
fn a_vendor_that_does_not_answer_in_time_may_have_it() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([Conduct::ShowsAfter(Duration::from_secs(3600))]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts.len(), 1);
        assert!(texts[0].contains(MARK), "{texts:?}");
    });
}

#[test]
fn a_part_as_long_as_the_vendor_takes_fits_with_its_mark_too() {
    for max in [16, 40, 100, 1000] {
        let can = Capabilities { text: TextLimit { max, unit: Unit::Chars }, ..SIMPLE };
        let long = agent(|stage| async move { stage.finish(&"word ".repeat(100)).await });
        let mut world = World::new(can).with_agent(long);
        world.vendor().first([Conduct::LosesSilently]);
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.quiet().await;
            assert_eq!(failed(life).await, 0, "a limit of {max}");
            let words: usize =
                life.vendor.texts("home").iter().map(|text| text.matches("word").count()).sum();
            assert_eq!(words, 100, "a limit of {max}");
        });
    }
}

#[test]
fn a_mark_on_a_platform_without_formatting_has_none() {
    let mut world = World::new(Capabilities { markup: Markup::Plain, ..SIMPLE });
    world.vendor().first([Conduct::LosesSilently]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains(MARK) && !texts[0].contains('*'), "{texts:?}");
    });
}

#[test]
fn a_mark_survives_whatever_else_happens_to_the_parcel() {
    let formatted = agent(|stage| async move { stage.finish("**bold** words").await });
    for conducts in [
        vec![Conduct::LosesSilently, unreadable()],
        vec![unreadable(), Conduct::LosesSilently],
        vec![Conduct::LosesSilently, throttled(5), unreadable(), unreachable()],
    ] {
        let mut world = World::new(SIMPLE).with_agent(formatted.clone());
        world.vendor().first(conducts.clone());
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.quiet().await;
            let texts = life.vendor.texts("home");
            assert_eq!(texts.len(), 1, "{conducts:?}: {texts:?}");
            assert!(texts[0].contains(MARK), "{conducts:?}: {texts:?}");
            assert_eq!(failed(life).await, 0, "{conducts:?}");
        });
    }
}

#[test]
fn a_platform_that_panics_while_sending_is_one_that_did_not_answer() {
    let mut world = World::new(SIMPLE);
    world.vendor().first([Conduct::Panics]);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains(MARK), "{texts:?}");
        life.vendor.say("alice", "home", "again");
        assert_eq!(life.texts("home", 2).await[1], "echo: again");
    });
}

#[test]
fn what_cannot_be_delivered_for_a_week_is_given_up() {
    let mut world = World::new(SIMPLE);
    world.vendor().behaves(|_| unreachable());
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.quiet().await;
        assert_eq!(failed(life).await, 1);
    });
}

#[test]
fn a_settlement_that_cannot_be_stored_is_stored_later_and_nothing_is_sent_twice() {
    let mut world = World::new(SIMPLE);
    world.live(async |life| {
        life.disk.fails(crate::world::Verb::Attempt, 5);
        life.disk.fails(crate::world::Verb::Settle, 5);
        life.vendor.say("alice", "home", "hello");
        life.vendor.say("alice", "home", "/nope");
        life.quiet().await;
        assert_eq!(posts(&life.vendor).len(), 2);
    });
}

#[test]
fn a_text_that_is_plain_already_is_not_read_as_markdown_when_it_is_sent_again() {
    let fenced = agent(|stage| async move { stage.finish("one `` ``` two `` three").await });
    let can = Capabilities { markup: Markup::Plain, ..SIMPLE };
    World::new(can).with_agent(fenced).live(async |life| {
        let reason = "no".to_owned();
        life.vendor.first([Conduct::Refuses(SendError::Unreadable { reason })]);
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["one ``` two three"]);
    });
}
