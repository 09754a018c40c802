//! One life of a conversation after another.

use talaria_model::{ChatKind, Cost, EntryBody, InboundKind, Quote, Seq, Usage, Used};

use super::{Talk, check, heard, posted, printed, quiet, rules_with};
use crate::{
    AfterStop, Effect, Event, Life, Notify, Phase, Recalled, ResetMode, ResetReason, Retired,
    Rules, Told, Unsaid,
};

const DAY: &str = "away: 90000";

fn marks(talk: &Talk) -> Vec<u32> {
    talk.session.marks.iter().map(|mark| mark.entry).collect()
}

#[test]
fn a_new_conversation_ends_the_turn_and_forgets() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: /model x / told 1: model x / alice: hello");
    let old = talk.session.id.clone();
    let effects = talk.line("alice: /new");
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Abandon(_))));
    assert_ne!(talk.session.id, old);
    assert_eq!(talk.session.phase, Phase::Idle);
    assert_eq!(talk.session.life, Life::Fresh);
    assert_eq!(talk.session.preferences.model, None);
    let lives: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Post(outbound) => Some(outbound.id.session == old),
            _ => None,
        })
        .collect();
    assert_eq!(lives, [true, false], "the old life ends visibly, the new one begins visibly");
    let retired = effects.iter().find_map(|effect| match effect {
        Effect::Retire { past, why } => Some((past.id.clone(), past.turns, *why)),
        _ => None,
    });
    assert_eq!(retired, Some((old, 1, Retired::New)));
}

#[test]
fn a_new_conversation_drops_what_waits_and_may_have_a_title() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / alice: /queue more");
    let effects = talk.line("alice: /new The plan");
    let lines = printed(&effects);
    assert!(lines.contains(&"drop unread before #3".to_owned()), "{lines:?}");
    assert!(lines.contains(&"ignore #2: dropped by a stop".to_owned()), "{lines:?}");
    assert_eq!(talk.session.title, "The plan");
    assert!(talk.session.waiting.is_empty());
    let new = posted(&effects).pop().unwrap();
    assert!(new.ends_with(" One message that was waiting is dropped."), "{new}");
}

#[test]
fn what_people_could_read_of_a_turn_that_is_abandoned_stays_and_so_does_what_it_used() {
    let mut talk = Talk::new(quiet());
    talk.line("alice: hello");
    let old = talk.session.id.clone();
    let (seq, inbound) = (Seq(2), super::said("alice", "/new"));
    let by = talk.authority(&inbound);
    let event = Event::Arrived { seq, inbound, overtaken: 0, by };
    let used = Used { usage: Usage::estimate(90), cost: Cost::estimated(7) };
    let unsaid = Unsaid { text: "Once upon".into(), used: Some(used), ..Unsaid::default() };
    let effects = talk.session.step_amid(event, talk.now, unsaid);
    assert_eq!(posted(&effects)[0], "Once upon\n\n*Stopped.*");
    let kept = effects.iter().any(|effect| match effect {
        Effect::Record { session, entry } => {
            *session == old
                && matches!(&entry.body, EntryBody::Answered { text, usage, cost, .. }
                if text.starts_with("Once upon") && *usage == used.usage && *cost == used.cost)
        }
        _ => false,
    });
    assert!(kept, "{effects:?}");
}

#[test]
fn a_conversation_that_is_over_begins_anew_with_the_next_message() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: finishes hi");
    let old = talk.session.id.clone();
    let effects = talk.play(&format!("{DAY} / alice: again"));
    assert_ne!(talk.session.id, old);
    let lines = printed(&effects);
    assert_eq!(lines[0], r#"retire "hello": Reset(Idle)"#);
    assert!(lines[1].starts_with("post 1: ◐ This is a new conversation"), "{lines:?}");
    assert_eq!(lines[3], "bind #2 to turn 1");
    let read = heard(&effects).remove(0);
    assert!(read.starts_with("[[System note: The earlier conversation here ended"), "{read}");
    assert!(matches!(talk.session.life, Life::AutoReset { reason: ResetReason::Idle, .. }));
    talk.play("agent: finishes hi");
    assert_eq!(talk.session.life, Life::Continuing);
    assert_eq!(heard(&talk.line("alice: more")), ["more"]);
}

#[test]
fn people_are_told_of_a_new_conversation_unless_nobody_reads_or_nothing_is_lost() {
    let quietly = rules_with(|rules| rules.reset.notify = Notify::Quietly);
    let reset = format!("alice: hello / agent: finishes hi / {DAY} / alice: again");
    assert_eq!(posted(&Talk::new(quietly).play(&reset)).len(), 0);
    let nothing = format!("alice: /help / {DAY} / alice: hello");
    assert_eq!(posted(&Talk::new(quiet()).play(&nothing)).len(), 0);
    let never = rules_with(|rules| rules.reset.mode = ResetMode::Never);
    let mut talk = Talk::new(never);
    let old = talk.session.id.clone();
    talk.play(&reset);
    assert_eq!(talk.session.id, old);
}

#[test]
fn commands_do_not_keep_a_conversation_alive_and_do_not_end_it() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: finishes hi");
    let old = talk.session.id.clone();
    talk.play(&format!("{DAY} / alice: /status"));
    assert_eq!(talk.session.id, old);
    talk.line("alice: again");
    assert_ne!(talk.session.id, old);
}

#[test]
fn a_conversation_for_which_something_works_is_not_over() {
    let mut talk =
        Talk::new(rules_with(|rules| rules.reset.idle = std::time::Duration::from_secs(60)));
    talk.play("alice: hello / agent: finishes hi / alice: /background look / away: 100");
    assert_eq!(talk.session.expired(talk.now), None);
    talk.play("side 1 over");
    assert!(talk.session.expired(talk.now).is_some());
    let mut talk = Talk::new(quiet());
    talk.play(&format!("alice: hello / agent: finishes hi / alice: /background look / {DAY}"));
    assert!(talk.session.expired(talk.now).is_some(), "but not for ever");
}

#[test]
fn what_is_over_is_put_away_once() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: finishes hi / put away");
    assert_eq!(talk.session.life, Life::Continuing, "it is not over");
    talk.play(&format!("{DAY} / put away"));
    assert_eq!(talk.session.life, Life::Finalized);
    let old = talk.session.id.clone();
    talk.line("alice: again");
    assert_ne!(talk.session.id, old);
}

#[test]
fn a_stop_wipes_the_conversation_and_says_so_unless_the_rule_is_to_keep_it() {
    let script = "alice: hello / alice: /stop / agent: stopped Once";
    let mut kept = Talk::new(quiet());
    let old = kept.session.id.clone();
    assert_eq!(posted(&kept.play(script)), ["Once\n\n*Stopped.*"]);
    kept.line("alice: again");
    assert_eq!(kept.session.id, old);

    let mut wiped = Talk::new(Rules::default());
    let old = wiped.session.id.clone();
    let said = "Once\n\n*Stopped. Your next message begins a new conversation.*";
    assert_eq!(posted(&wiped.play(script)), [said]);
    assert_eq!(wiped.session.life, Life::Suspended);
    let effects = wiped.line("alice: again");
    assert_ne!(wiped.session.id, old);
    assert!(posted(&effects)[0].starts_with("◐ This is a new conversation"));
}

#[test]
fn a_stop_that_stops_nothing_wipes_nothing() {
    let mut talk = Talk::new(quiet());
    talk.session.rules = Rules::default().into();
    let effects = talk.play("alice: hello / agent: finishes hi / alice: /stop");
    assert_eq!(posted(&effects), ["Nothing is running."]);
    let old = talk.session.id.clone();
    talk.line("alice: again");
    assert_eq!(talk.session.id, old);
}

#[test]
fn what_was_said_after_a_stop_that_wipes_begins_the_new_conversation() {
    let mut talk = Talk::new(rules_with(|rules| rules.stop = AfterStop::Wipe));
    let old = talk.session.id.clone();
    let effects = talk.play("alice: hello / alice: /stop / alice: again / agent: stopped ");
    assert_ne!(talk.session.id, old);
    assert_eq!(posted(&effects)[0], "Stopped.");
    assert!(matches!(effects.last(), Some(Effect::Start(start)) if start.turn.number == 1));
}

#[test]
fn turns_are_taken_back_one_after_another() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: one / agent: finishes 1 / alice: two / agent: finishes 2");
    assert_eq!(marks(&talk), [1, 3]);
    assert_eq!(
        printed(&talk.line("alice: /undo")),
        [
            "rewind 3 to 4 by alice",
            "close #3",
            "record aside alice: /undo",
            "post 5: “two” and what came of it is taken back. What its tools did ",
            "record notice: “two” and what came of it is taken back. What its tools did is not.",
        ]
    );
    talk.play("alice: three / agent: finishes 3");
    assert_eq!(printed(&talk.line("alice: /undo 5"))[0], "rewind 1 to 8 by alice");
    assert_eq!(posted(&talk.line("alice: /undo")), ["There is nothing that can be taken back."]);
    assert_eq!(posted(&talk.line("alice: /undo x")), ["Say how many turns: `/undo 2`."]);
}

#[test]
fn only_the_one_who_said_it_takes_it_back() {
    let mut talk = Talk::among(ChatKind::Group, quiet());
    talk.play("alice: one / agent: finishes 1 / bob: two / agent: finishes 2");
    let refused = ["Only the one who said it can take it back."];
    assert_eq!(posted(&talk.line("alice: /undo")), refused);
    assert_eq!(posted(&talk.line("bob: /undo 2")), refused);
    assert_eq!(marks(&talk), [1, 3]);
    assert_eq!(printed(&talk.line("bob: /undo"))[0], "rewind 3 to 8 by bob");
    assert_eq!(printed(&talk.line("alice: /undo"))[0], "rewind 1 to 10 by alice");

    let mut talk = Talk::among(ChatKind::Group, quiet()).on(crate::Access::own());
    talk.play("alice: one / agent: finishes 1 / bob: two / agent: finishes 2");
    let told = posted(&talk.line("alice: /undo 2"));
    assert!(told[0].starts_with("The last 2 turns are taken back, from “one” on."), "{told:?}");
}

#[test]
fn a_turn_in_a_summary_cannot_be_taken_back() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: 1 / agent: finishes 1 / alice: 2 / agent: compressed 2 / agent: finishes 2");
    assert_eq!(marks(&talk), [3]);
}

#[test]
fn only_so_many_turns_can_be_taken_back() {
    let mut talk = Talk::new(quiet());
    for _ in 0..40 {
        talk.play("alice: one / agent: finishes 1");
    }
    assert_eq!(talk.session.marks.len(), 32);
    assert_eq!(marks(&talk).last(), Some(&79));
}

#[test]
fn the_last_message_is_answered_again_in_place_of_the_first_answer() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: one / agent: finishes 1 / alice: two / agent: finishes 2");
    assert_eq!(printed(&talk.line("alice: /retry"))[2], "ask #3: Recall { from: 3, upto: 4 }");
    assert_eq!(
        printed(&talk.line("told 3: said two")),
        ["rewind 3 to 5 by alice", "bind #3 to turn 3", "record alice: two", "start turn 3"]
    );
    assert_eq!(marks(&talk), [1, 6]);
}

#[test]
fn what_is_answered_again_is_read_as_it_was_the_first_time() {
    let mut talk = Talk::new(quiet());
    let mut inbound = super::said("alice", "yes");
    if let InboundKind::Said(message) = &mut inbound.kind {
        message.quote = Some(Quote::new("shall we?", talaria_model::Author::Us));
        message.channel_prompt = Some("Be kind.".into());
    }
    let first = heard(&talk.arrive(inbound.clone())).remove(0);
    assert!(first.contains("shall we?"), "{first}");
    talk.play("agent: finishes 1 / alice: /retry");
    let InboundKind::Said(message) = inbound.kind else { unreachable!() };
    let message = talaria_model::Message { quote: None, channel_prompt: None, ..message };
    let recalled = Recalled { from: inbound.from, message, heard: Some(first.clone()) };
    let effects = talk.tell(Event::Told { seq: Seq(2), told: Told::Said(vec![recalled]) });
    assert_eq!(heard(&effects), [first]);
    let Some(Effect::Start(start)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(start.channel_prompt.as_deref(), Some("Be kind."));
}

#[test]
fn a_retry_that_comes_too_late_or_from_somebody_else_is_refused() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: one / agent: finishes 1 / alice: /retry / alice: two");
    let effects = talk.line("told 2: said one");
    assert_eq!(posted(&effects), ["I have begun something else; `/stop` it first."]);
    assert_eq!(printed(&effects)[0], "close #2");

    let mut talk = Talk::new(quiet());
    talk.play("alice: one / agent: finishes 1 / bob: /retry");
    let effects = talk.line("told 2: said one");
    assert_eq!(posted(&effects), ["Only the one who said it can have it answered again."]);
    assert_eq!(posted(&Talk::new(quiet()).play("alice: /retry")).len(), 1);
}

#[test]
fn a_stop_ends_a_retry_that_has_not_begun() {
    let mut talk = Talk::new(quiet());
    let effects = talk.play("alice: one / agent: finishes 1 / alice: /retry / alice: /stop");
    assert!(printed(&effects).contains(&"ignore #2: dropped by a stop".to_owned()));
    assert_eq!(talk.line("told 2: said one"), []);
}

#[test]
fn an_earlier_life_is_gone_back_to_and_on_with() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: finishes hi / alice: /resume whales");
    let effects = talk.line("told 2: life 20260101_000000_0badcafe");
    assert_eq!(
        printed(&effects),
        [
            r#"retire "hello": Switched"#,
            "post 10: Back in “Whales”.",
            "record notice: Back in “Whales”.",
            "close #2",
        ]
    );
    assert_eq!(talk.session.id.as_str(), "20260101_000000_0badcafe");
    let effects = talk.line("alice: and?");
    assert!(matches!(effects.last(), Some(Effect::Start(start)) if start.turn.number == 8));
    let Some(Effect::Record { entry, .. }) = effects.get(1) else { panic!("{effects:?}") };
    assert_eq!(entry.number, 22);
    assert_eq!(marks(&talk), [1, 18, 22]);
}

#[test]
fn the_same_life_is_not_switched_to_and_a_busy_one_not_away_from() {
    let mut talk = Talk::new(quiet());
    let id = talk.session.id.to_string();
    talk.line("alice: /resume this");
    assert_eq!(
        posted(&talk.line(&format!("told 1: life {id}"))),
        ["You are in that conversation."]
    );
    talk.play("alice: /resume that / alice: hello");
    let effects = talk.line("told 2: life 20260101_000000_0badcafe");
    assert_eq!(posted(&effects), ["I have begun something else; `/stop` it first."]);
    assert_eq!(talk.session.id.as_str(), id);
}

#[test]
fn a_copy_goes_on_under_the_same_numbers() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: plan / agent: finishes ok");
    let old = talk.session.id.clone();
    let effects = talk.line("alice: /branch");
    assert_eq!(
        printed(&effects)[..4],
        [
            "close #2".to_owned(),
            "record aside alice: /branch".to_owned(),
            r#"retire "plan": Branched"#.to_owned(),
            "branch up to 2".to_owned(),
        ]
    );
    assert_ne!(talk.session.id, old);
    assert_eq!(talk.session.title, "plan #2");
    assert_eq!(marks(&talk), [1]);
    let Some(Effect::Record { entry, session }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!((entry.number, session), (3, &talk.session.id));
    check(
        "alice: /branch x",
        &[
            "close #1",
            "record aside alice: /branch x",
            "post 1: There is nothing to copy yet.",
            "record notice: There is nothing to copy yet.",
        ],
    );
}

#[test]
fn a_life_of_another_conversation_is_gone_on_with_as_a_copy() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: finishes hi / alice: /resume whales");
    let old = talk.session.id.clone();
    let effects = talk.line("told 2: elsewhere 20260101_000000_0badcafe");
    assert_eq!(
        printed(&effects),
        [
            r#"retire "hello": Switched"#,
            "branch up to 20",
            "post 1: You are in a copy of “Whales”.",
            "record notice: You are in a copy of “Whales”.",
            "close #2",
        ]
    );
    assert!(talk.session.id != old && talk.session.id.as_str() != "20260101_000000_0badcafe");
    assert_eq!((talk.session.turns, talk.session.marks.len()), (7, 2));
}

#[test]
fn skills_and_channel_prompts_reach_the_turns_they_are_for() {
    let mut talk = Talk::new(quiet());
    let say = |talk: &mut Talk, text: &str| {
        let mut inbound = super::said("alice", text);
        if let InboundKind::Said(message) = &mut inbound.kind {
            message.skills = vec!["review".into(), "a]]\n[[b \"c\"".into()];
            message.channel_prompt = Some("Be kind.".into());
        }
        let effects = talk.arrive(inbound);
        let Some(Effect::Start(start)) = effects.last() else { panic!("{effects:?}") };
        (start.skills.len(), start.channel_prompt.clone(), heard(&effects).remove(0))
    };
    let kind = Some("Be kind.".to_owned());
    let first = |text: &str| {
        let note = "This chat wants these skills of yours used, as far as you have them: \"review\", \
                    \"a)) ((b 'c'\".";
        (2, kind.clone(), format!("[[System note: {note}]]\n\n{text}"))
    };
    assert_eq!(say(&mut talk, "one"), first("one"));
    talk.line("agent: finishes 1");
    assert_eq!(say(&mut talk, "two"), (0, kind.clone(), "two".into()));
    talk.play("agent: finishes 2 / alice: /new");
    assert_eq!(say(&mut talk, "three"), first("three"));
}

#[test]
fn copies_are_numbered_in_whichever_of_them_one_branches_off() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: plan / agent: finishes ok");
    let original = talk.session.past();
    let titles: Vec<String> = (0..3)
        .map(|round| {
            talk.play("alice: /branch");
            let title = talk.session.title.clone();
            if round == 0 {
                talk.line("alice: /resume plan");
                let told = Told::Life(Box::new(original.clone()));
                talk.tell(Event::Told { seq: Seq(talk.seq), told });
                assert_eq!(talk.session.title, "plan");
            }
            title
        })
        .collect();
    assert_eq!(titles, ["plan #2", "plan #3", "plan #4"]);
    for (title, copy) in [("issue #1", "issue #1 #2"), ("see #me", "see #me #2")] {
        talk.play(&format!("alice: /title {title} / alice: /branch"));
        assert_eq!(talk.session.title, copy);
    }
    assert_eq!((talk.session.turns, talk.session.copied), (1, 1), "none was taken in the copy");
}
