//! Commands, and what the gateway is asked for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use talaria_model::{ChatKind, Effort, Privacy, SenderId, SenderKind, Seq, WITHHELD};

use super::{Talk, check, posted, printed, quiet, rules_with, said};
use crate::{
    Access, Begun, Effect, Event, Footer, Phase, Quick, QuickCommand, Request, RoomRules, Rules,
    Tiers, Unsaid, Verbosity, Who,
};

/// On an account that is the operator's own.
fn own() -> Talk {
    Talk::new(quiet()).on(Access::own())
}

fn texts(rules: Rules, script: &str) -> Vec<String> {
    posted(&Talk::new(rules).play(script))
}

#[test]
fn an_unknown_command_is_answered_with_the_nearest() {
    let near = texts(quiet(), "alice: /stauts");
    assert_eq!(near, ["There is no command `/stauts`. Did you mean `/status`?"]);
    let none = texts(quiet(), "alice: /frobnicate");
    assert_eq!(none, ["There is no command `/frobnicate`. `/help` lists what there is."]);
    let path = Talk::new(quiet()).play("alice: /usr/bin/env");
    assert!(path.iter().any(|effect| matches!(effect, Effect::Start(_))));
}

#[test]
fn what_would_change_the_turn_in_hand_is_refused_while_it_runs() {
    for command in ["retry", "undo", "branch", "compress", "model x", "reasoning high", "resume 1"]
    {
        let mut talk = Talk::new(quiet());
        talk.line("alice: hello");
        let before = talk.session.phase.clone();
        let effects = talk.line(&format!("alice: /{command}"));
        assert!(posted(&effects)[0].starts_with("⏳ Not while I am working"), "{command}");
        assert_eq!(printed(&effects)[0], "close #2");
        assert_eq!(talk.session.phase, before);
    }
}

/// On an account where Alice is an administrator and others may ask for `/usage`.
fn named() -> Talk {
    let tiers = Tiers {
        admins: BTreeSet::from([SenderId::literal("alice")]),
        others: BTreeSet::from(["usage".into()]),
        ..Tiers::default()
    };
    let direct = RoomRules { tiers: Arc::new(tiers), ..RoomRules::default() };
    Talk::new(quiet()).on(Access { direct, ..Access::closed() })
}

#[test]
fn administrators_commands_need_an_administrator() {
    let refused = "`/restart` is for administrators.";
    assert!(texts(quiet(), "alice: /restart")[0].starts_with(refused));
    let texts = |script: &str| posted(&named().play(script));
    assert!(texts("bob: /restart")[0].starts_with(refused));
    assert!(texts("bob: /new")[0].contains("for administrators"));
    assert!(texts("bob: /usage")[0].contains("tokens in all"));
    assert!(texts("bob: /whoami")[0].contains("not an administrator"));
    assert!(texts("alice: /whoami")[0].contains("`alice`"));
    let effects = named().play("alice: /restart");
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Ask { request: Request::Restart, .. }))
    );
}

#[test]
fn what_the_session_does_not_know_is_asked_for_and_told() {
    for (line, request) in [
        ("/sessions", "Lives"),
        ("/resume", "Lives"),
        ("/resume whales", r#"Resume("whales")"#),
        ("/search blue whale", r#"Search("blue whale")"#),
        ("/history 5", "History { last: 5 }"),
        ("/history 9999", "History { last: 50 }"),
        ("/history", "History { last: 10 }"),
        ("/model", "Models"),
        ("/model opus", r#"Model("opus")"#),
        ("/platforms", "Platforms"),
        ("/platforms pause work", r#"Platform { account: "work", pause: Pause }"#),
        ("/platforms  resume  work", r#"Platform { account: "work", pause: Resume }"#),
        ("/sethome", "SetHome"),
        ("/reload", "Reload"),
        ("/restart", "Restart"),
    ] {
        let mut talk = own();
        let effects = talk.line(&format!("alice: {line}"));
        assert_eq!(
            printed(&effects),
            [
                "take #1".to_owned(),
                format!("record aside alice: {line}"),
                format!("ask #1: {request}")
            ]
        );
        let told = talk.line("told 1: Here you are.");
        assert_eq!(
            printed(&told),
            ["post 1: Here you are.", "record notice: Here you are.", "close #1"]
        );
        assert_eq!(talk.line("told 1: Twice."), [], "{line}");
    }
}

#[test]
fn a_request_that_nobody_answers_ends_with_a_word() {
    let mut talk = own();
    talk.line("alice: /sessions");
    assert_eq!(talk.session.wake_at().map(|at| at.since(talk.now)), Some(Duration::from_secs(300)));
    assert!(talk.session.is_restless());
    let effects = talk.line("later: 300");
    assert_eq!(printed(&effects)[0], "ignore #1: the request was not answered in time");
    assert!(!talk.session.is_restless());
}

#[test]
fn requests_have_a_bound() {
    let mut talk = own();
    for _ in 0..16 {
        talk.line("alice: /sessions");
    }
    let effects = talk.line("alice: /sessions");
    assert!(posted(&effects)[0].starts_with("Too many requests"));
    assert_eq!(printed(&effects)[0], "close #17");
}

#[test]
fn a_restart_is_announced_by_the_one_that_comes_back_and_programs_are_not_run_twice() {
    check_own(
        "alice: /restart / restart",
        &["close #1", "post 1: I am back.", "record notice: I am back."],
    );
    let rules = rules_with(|rules| rules.quick = vec![quick("deploy", Quick::Run)]);
    let mut talk = Talk::new(rules).on(Access::own());
    let effects = talk.line("alice: /deploy");
    assert_eq!(printed(&effects)[2], r#"ask #1: Run("deploy")"#);
    let effects = talk.line("crash");
    assert_eq!(posted(&effects), ["A restart cut that off; I have not run it again."]);
    check_own("alice: /sessions / crash", &["ask #1: Lives"]);
}

#[track_caller]
fn check_own(script: &str, expected: &[&str]) {
    let last = own().play(script);
    assert_eq!(printed(&last), expected, "after {script:?}");
}

fn quick(name: &str, does: Quick) -> QuickCommand {
    QuickCommand { name: name.into(), help: "mine".into(), who: Who::Anyone, does }
}

#[test]
fn an_alias_stands_for_a_command_or_for_words() {
    let rules = || {
        rules_with(|rules| {
            rules.quick = vec![
                quick("find", Quick::Alias("/search".into())),
                quick("morning", Quick::Alias("Good morning! What is new?".into())),
                quick("loop", Quick::Alias("/loop".into())),
                quick("later", Quick::Alias("/background".into())),
                QuickCommand { who: Who::Admin, ..quick("deploy", Quick::Run) },
            ];
        })
    };
    let effects = Talk::new(rules()).play("alice: /find blue whale");
    assert_eq!(printed(&effects)[2], r#"ask #1: Search("blue whale")"#);
    let effects = Talk::new(rules()).play("alice: /morning dear");
    assert_eq!(printed(&effects)[1], "record alice: Good morning! What is new? dear");
    assert_eq!(texts(rules(), "alice: /loop"), ["The alias `/loop` leads back to itself."]);
    assert!(texts(rules(), "alice: /deploy")[0].contains("administrators"));
    assert!(texts(rules(), "alice: /help")[0].contains("`/find` — mine"));
    assert!(!texts(rules(), "alice: /help")[0].contains("/deploy"));
    let effects = Talk::new(rules()).play("alice: /later look it up");
    assert!(printed(&effects)[0].starts_with("forward #1 to "));
}

#[test]
fn preferences_are_kept_and_given_to_every_turn() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: /model opus / told 1: model big-opus / alice: /reasoning high");
    let effects = talk.line("alice: hello");
    let Some(Effect::Start(start)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(start.model.as_deref(), Some("big-opus"));
    assert_eq!(start.effort, Some(Effort::High));
    let effects = talk.line("crash");
    let Some(Effect::Start(start)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(start.model.as_deref(), Some("big-opus"));
    talk.play("agent: finishes hi / alice: /model default / alice: /reasoning default");
    assert_eq!(talk.session.preferences.model, None);
    assert_eq!(talk.session.preferences.effort, None);
    let unknown = texts(quiet(), "alice: /reasoning harder").remove(0);
    assert!(unknown.starts_with("There is no such effort. Say `off`, "), "{unknown}");
    assert!(unknown.ends_with("`max` or `default`."), "{unknown}");
}

#[test]
fn verbose_tells_of_calls_and_footer_of_what_an_answer_used() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: /verbose / alice: hello");
    assert_eq!(talk.session.preferences.verbosity, Some(Verbosity::New));
    assert_eq!(posted(&talk.line("agent: wants read_file")), ["⚙ `read_file`"]);
    assert_eq!(posted(&talk.line("agent: wants read_file")), Vec::<String>::new(), "the same one");
    assert_eq!(posted(&talk.line("agent: wants search")), ["⚙ `search`"]);
    talk.line("alice: /verbose");
    assert_eq!(talk.session.preferences.verbosity, Some(Verbosity::All));
    assert_eq!(posted(&talk.line("agent: wants search")), ["⚙ `search`"]);
    talk.line("alice: /verbose verbose");
    assert_eq!(posted(&talk.line("agent: wants read_file")), [r#"⚙ `read_file {"a":1}`"#]);
    talk.play("alice: /verbose off / alice: /footer on");
    assert_eq!(talk.session.preferences.footer, Some(Footer::On));
    assert_eq!(posted(&talk.line("agent: wants read_file")), Vec::<String>::new());
    let effects = talk.line("agent: finishes Done.");
    assert_eq!(posted(&effects), ["Done.\n\n*700 in · 70 out · $0.0070*"], "over the turn");
    assert_eq!(printed(&effects)[1], "record answer: Done.", "the model does not read its footer");
    assert_eq!(texts(quiet(), "alice: /footer maybe"), ["Say `on` or `off`."]);
    assert_eq!(texts(quiet(), "alice: /verbose much"), ["Say `off`, `new`, `all` or `verbose`."]);
}

#[test]
fn a_title_is_shown_and_set() {
    let mut talk = Talk::new(quiet());
    let long = format!("alice: /title My\tplan {}", "x".repeat(200));
    talk.line(&long);
    assert!(talk.session.title.starts_with("My plan"), "{}", talk.session.title);
    assert!(talk.session.title.chars().count() <= 101);
    talk.line("alice: /title Whales");
    assert_eq!(posted(&talk.line("alice: /title")), ["This conversation is called “Whales”."]);
    talk.play("alice: hello");
    assert_eq!(talk.session.title, "Whales");
}

#[test]
fn status_and_usage_say_how_it_stands() {
    let mut talk = Talk::new(Rules { model: Some("fake/grand".into()), ..quiet() });
    talk.play("alice: hello / agent: finishes hi");
    let status = posted(&talk.line("alice: /status")).remove(0);
    assert!(status.contains("- model `fake/grand`"), "{status}");
    assert!(status.contains("“hello”") && status.contains("idle"), "{status}");
    assert!(status.contains("2026-11-15 09:30") && status.contains("$0.0010"), "{status}");
    let usage = posted(&talk.line("alice: /usage")).remove(0);
    assert!(usage.contains("110 tokens in all") && usage.contains("100 read"), "{usage}");
    assert!(posted(&talk.play("alice: more / alice: /status"))[0].contains("working"));
}

#[test]
fn a_platforms_greeting_is_not_answered() {
    check("alice: /start", &["ignore #1: a platform's own greeting"]);
}

#[test]
fn who_is_let_in_is_asked_of_the_gateway_by_who_may_decide_it() {
    let asked = |mut talk: Talk, line: &str| {
        let effects = talk.line(line);
        let request = effects.iter().find_map(|effect| match effect {
            Effect::Ask { request: Request::Pair { account, wish }, .. } => {
                Some(format!("{account:?} {wish:?}"))
            }
            _ => None,
        });
        request.unwrap_or_else(|| posted(&effects).join(" "))
    };
    for (line, expected) in [
        ("alice: /pair", "None Issue(Direct)"),
        ("alice: /pair everywhere", "None Issue(Everywhere)"),
        ("alice: /pair approve ABCD EFGH", "None Approve(TypedCode(…), Direct)"),
        ("alice: /pair approve abcdefgh everywhere", "None Approve(TypedCode(…), Everywhere)"),
        ("alice: /pair list", "None List"),
        ("alice: /pair revoke 42", r#"None Revoke("42")"#),
        ("alice: /pair clear", "None Clear"),
    ] {
        assert_eq!(asked(named(), line), expected, "{line}");
    }
    for wrong in ["alice: /pair approve", "alice: /pair revoke", "alice: /pair somebody"] {
        let usage = asked(named(), wrong);
        assert!(usage.starts_with("Say `/pair`") && usage.contains("`everywhere`"), "{wrong}");
    }
    assert!(asked(named(), "bob: /pair").contains("for administrators"));
    assert_eq!(asked(own(), "alice: /pair bot"), r#"Some("bot") Issue(Direct)"#);
    assert_eq!(asked(own(), "alice: /pair list bot"), r#"Some("bot") List"#);
    let usage = asked(own(), "alice: /pair");
    assert!(usage.starts_with("Say on which account") && usage.contains("`everywhere`"), "{usage}");
    let group = Talk::among(ChatKind::Group, quiet()).on(Access::own());
    assert!(asked(group, "alice: /pair bot").contains("read along"));
}

#[test]
fn a_code_is_told_with_where_it_lets_people_in() {
    for (line, expected) in
        [("alice: /pair", "in direct chats only."), ("alice: /pair everywhere", "everywhere.")]
    {
        let mut talk = named();
        talk.line(line);
        let told = posted(&talk.line("told 1: code ABCD2345")).remove(0);
        assert!(told.ends_with(&format!("Whoever says it is heard {expected}")), "{line}: {told}");
    }
}

#[test]
fn whoever_is_a_guest_at_most_is_told_so() {
    for (kind, why) in [
        (SenderKind::Person, ": the sender is on the account's allow list. `/help`"),
        (SenderKind::Bot, " allow list, and a program is a guest at most. `/help`"),
        (
            SenderKind::Chat,
            " allow list, and whoever speaks in the name of a chat is a guest at most. `/help`",
        ),
    ] {
        let mut talk = Talk::new(quiet()).on(Access::only([SenderId::literal("alice")]));
        let mut asks = said("alice", "/whoami");
        asks.from.kind = kind;
        let told = posted(&talk.arrive(asks)).remove(0);
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn people_are_told_in_which_kind_of_chat_they_are() {
    for (kind, expected) in [
        (ChatKind::Dm, "in a direct chat"),
        (ChatKind::Group, "in a group"),
        (ChatKind::Channel, "in a channel"),
        (ChatKind::Thread, "in a thread"),
        (ChatKind::Forum, "in a forum"),
    ] {
        let told = posted(&Talk::among(kind, quiet()).line("alice: /whoami")).remove(0);
        assert!(told.contains(&format!(" on `web`, {expected}. ")), "{told}");
    }
}

#[test]
fn a_code_is_told_and_not_recorded() {
    let mut talk = named();
    talk.line("alice: /pair");
    let effects = talk.line("told 1: code ABCD2345");
    assert_eq!(
        posted(&effects),
        ["Pairing code: `ABCD2345`. Whoever says it is heard in direct chats only."]
    );
    let privacy = effects.iter().find_map(|effect| match effect {
        Effect::Post(outbound) => Some(outbound.act.privacy()),
        _ => None,
    });
    assert_eq!(privacy, Some(Privacy::Confidential));
    let recorded = printed(&effects).join(" / ");
    assert!(recorded.contains(&format!("Pairing code: `{WITHHELD}`.")), "{recorded}");
    let state = serde_json::to_string(&talk.session).expect("writes");
    assert!(!format!("{effects:?} {state}").contains("ABCD2345"), "{effects:?}");
}

/// Whatever comes of it: who mistypes something has still typed somebody's code.
#[test]
fn a_code_that_was_typed_is_neither_recorded_nor_kept_in_the_journal() {
    type Case = (fn() -> Talk, &'static str, &'static str);
    let cases: [Case; 7] = [
        (named, "alice: /pair approve ABCD2345", "/pair approve ••••••••"),
        (named, "alice: /pair approve abcd-2345 everywhere", "/pair approve ••••••••"),
        (named, "alice: /pair ABCD2345", "/pair ••••••••"),
        (named, "bob: /pair approve ABCD2345", "/pair approve ••••••••"),
        (own, "alice: /pair approve bot ABCD 2345", "/pair approve bot ••••••••"),
        (own, "alice: /pair approve ABCD2345", "/pair approve ••••••••"),
        (own, "alice: /pair approve ABCD2345 bot", "/pair approve ••••••••"),
    ];
    for (talk, line, kept) in cases {
        let mut talk = talk();
        let effects = talk.line(line);
        let printed = printed(&effects);
        assert!(printed.contains(&format!("conceal #1: {kept}")), "{line}: {printed:?}");
        talk.line("told 1: It was carried out, or not.");
        let entries: Vec<_> =
            effects.iter().filter(|it| matches!(it, Effect::Record { .. })).collect();
        assert!(format!("{entries:?}").contains(kept), "{line}: {entries:?}");
        let state = serde_json::to_string(&talk.session).expect("writes");
        let left = format!("{entries:?} {} {state}", posted(&effects).join(" ")).to_uppercase();
        assert!(!left.contains("ABCD") && !left.contains("2345"), "{line}: {left}");
    }
    for other in ["alice: /pair", "alice: /pair list", "alice: /pair revoke 42"] {
        let printed = printed(&named().line(other));
        assert!(!printed.iter().any(|line| line.starts_with("conceal")), "{other}: {printed:?}");
    }
}

#[test]
fn compressing_is_a_turn_that_ends_without_an_answer() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: finishes hi");
    let effects = talk.line("alice: /compress the plan");
    assert_eq!(
        printed(&effects),
        ["close #2", "record aside alice: /compress the plan", "start turn 2, compress"]
    );
    let Some(Effect::Start(start)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(start.task, talaria_model::Task::Compress { focus: Some("the plan".into()) });
    let effects = talk.line("agent: compressed 2");
    assert_eq!(printed(&effects)[0], "record summary of 0 to 2: all of it");
    assert_eq!(posted(&effects).len(), 1);
    assert_eq!(talk.line("agent: finishes "), []);
    assert_eq!(talk.session.phase, Phase::Idle);
    assert_eq!(texts(quiet(), "alice: /compress"), ["There is nothing to summarise yet."]);
    let nothing = "alice: a / agent: finishes b / alice: /compress / agent: declines Too short.";
    assert_eq!(texts(quiet(), nothing), ["Too short."]);
}

#[test]
fn a_summary_in_the_midst_of_a_turn_is_recorded_without_a_word() {
    check(
        "alice: a / agent: finishes b / alice: c / agent: compressed 2",
        &["record summary of 0 to 2: all of it"],
    );
}

#[test]
fn something_done_beside_the_conversation_has_a_session_of_its_own() {
    let mut talk = Talk::new(rules_with(|rules| rules.background = 2));
    let effects = talk.line("alice: /background look it up");
    assert_eq!(
        printed(&effects),
        [
            "forward #1 to agent:main:web:dm:c:side-1",
            "record aside alice: /background look it up",
            "post 1: ⏳ Task 1 runs in the background; its answer comes here.",
            "record notice: ⏳ Task 1 runs in the background; its answer comes here.",
        ]
    );
    assert_eq!(talk.session.phase, Phase::Idle);
    talk.line("alice: /bg and this");
    let effects = talk.line("alice: /btw too much");
    assert!(posted(&effects)[0].starts_with("2 tasks run in the background already"));
    talk.line("side 1 over");
    assert_eq!(talk.session.background.len(), 1);
    let effects = talk.line("alice: /stop");
    assert!(printed(&effects).contains(&"pass agent:main:web:dm:c:side-2: Stop".to_owned()));
    talk.line("side 2 over");
    assert!(talk.session.background.is_empty());
}

#[test]
fn a_session_beside_answers_in_the_chat_and_asks_nobody() {
    let mut talk = Talk::new(quiet());
    talk.session.key = talk.session.key.beside(1);
    let effects = talk.line("alice: /background look it up");
    assert_eq!(
        printed(&effects),
        ["bind #1 to turn 1", "record alice: look it up", "start turn 1"]
    );
    let Some(Effect::Start(start)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(start.attended, talaria_model::Attended::No);
    assert_eq!(printed(&talk.line("agent: asks Sure?")), ["tell turn 1: Expired"]);
    talk.line("agent: returns call");
    let effects = talk.line("agent: finishes Found it.");
    assert_eq!(posted(&effects), ["*In the background, task 1: look it up*\n\nFound it."]);
    assert_eq!(printed(&effects)[1], "record answer: Found it.");
    assert_eq!(printed(&effects)[2], "pass agent:main:web:dm:c: SideOver(1)");
    let over = printed(&talk.line("passed stop"));
    assert_eq!(over, ["pass agent:main:web:dm:c: SideOver(1)"], "it says again that it is done");
}

#[test]
fn a_session_beside_can_be_stopped() {
    let mut talk = Talk::new(quiet());
    talk.session.key = talk.session.key.beside(1);
    talk.line("alice: /background look it up");
    assert_eq!(printed(&talk.line("passed stop")), ["tell turn 1: stop"]);
}

#[test]
fn a_conversation_whose_turn_has_not_begun_does_not_say_that_it_works() {
    for (begun, doing) in [
        (Begun::Yes, "working on an answer"),
        (Begun::No, "has your message and has not begun yet"),
    ] {
        let mut talk = Talk::new(quiet());
        talk.line("alice: hello");
        let inbound = said("alice", "/status");
        let by = talk.authority(&inbound);
        let event = Event::Arrived { seq: Seq(2), inbound, overtaken: 0, by };
        let effects =
            talk.session.step_amid(event, talk.now, Unsaid { begun, ..Unsaid::default() });
        let told = posted(&effects).remove(0);
        assert!(told.contains(&format!(": {doing}.")), "{told}");
    }
}
