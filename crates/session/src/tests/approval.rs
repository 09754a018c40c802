//! Something is asked about before it is done.

use std::collections::BTreeSet;
use std::sync::Arc;

use talaria_model::{
    AgentEvent, Answer, Approval, Approver, CallId, Consent, Digest, EarlierYes, Lasting, Notify,
    Question, Sender, SenderId, Timestamp, Unasked, Word,
};

use super::{Talk, check, posted, print, printed, quiet, rules_with};
use crate::{
    Access, Approvals, Approvers, Asking, Attest, Effect, Ended, Event, Phase, RoomRules, Tiers,
};

pub(super) const HANDLE: &str = "0123456789abcdef0123456789abcdef";

fn digest(number: u8) -> Digest {
    Digest::new([number; 32])
}

/// An approval of what has this number. One that ends in `?` cannot be given for good, one that ends in
/// `!` was.
pub(super) fn question(words: &str) -> Question {
    let number = words.trim_end_matches(['?', '!']).parse().expect("a number");
    let lasting = match words.chars().last() {
        Some('?') => Lasting::Never,
        Some('!') => Lasting::Granted(digest(100 + number)),
        _ => Lasting::Possible(digest(100 + number)),
    };
    let (handle, tool) = (HANDLE.into(), "pay".into());
    let approval = Approval {
        handle,
        digest: digest(number),
        tool,
        lasting,
        earlier: EarlierYes::Counts,
        approver: Approver::default(),
    };
    Question {
        call: CallId::literal("call"),
        text: format!("May I pay {words}?"),
        choices: approval.choices(),
        approval: Some(Box::new(approval)),
    }
}

fn by(by: Approvers, admins: &[&'static str]) -> Talk {
    let admins = admins.iter().map(|name| SenderId::literal(name)).collect();
    // Commands are not what is looked at here.
    let others = BTreeSet::from(["approve", "deny"].map(str::to_owned));
    let direct = RoomRules {
        tiers: Arc::new(Tiers { admins, others, ..Tiers::default() }),
        ..RoomRules::default()
    };
    let rules = rules_with(|rules| rules.approvals = Approvals { by, ..Approvals::default() });
    Talk::new(rules).on(Access { direct, ..Access::closed() })
}

/// What the agent is told by the last line.
fn told(effects: &[Effect]) -> Option<Answer> {
    effects.iter().find_map(|effect| match effect {
        Effect::Tell { word: Word::Answer { answer, .. }, .. } => Some(answer.clone()),
        _ => None,
    })
}

fn approved(consent: Consent) -> Option<Answer> {
    Some(Answer::Approved { digest: digest(7), consent })
}

fn denied(reason: &str) -> Option<Answer> {
    Some(Answer::Denied { reason: reason.into() })
}

#[test]
fn only_what_can_mean_nothing_else_is_a_yes() {
    for (line, expected) in [
        ("alice presses: @.once", approved(Consent::Once)),
        ("alice presses: @.session", approved(Consent::Session)),
        ("alice presses: @.always", approved(Consent::Always)),
        ("alice presses: @.deny", denied("")),
        ("alice: yes", approved(Consent::Once)),
        ("alice: YES", approved(Consent::Once)),
        ("alice: 👍", approved(Consent::Once)),
        ("alice: 👍🏽", approved(Consent::Once)),
        ("alice: 👎🏿", denied("")),
        ("alice: 👍\u{fe0f}", approved(Consent::Once)),
        ("alice: 👍👎", denied("👍👎")),
        ("alice: approve once", approved(Consent::Once)),
        ("alice: 1", approved(Consent::Once)),
        ("alice: 4", denied("")),
        ("alice: deny", denied("")),
        ("alice: no", denied("")),
        ("alice: 👎", denied("")),
        ("alice: /approve", approved(Consent::Once)),
        ("alice: /approve session", approved(Consent::Session)),
        ("alice: /approve always", approved(Consent::Always)),
        ("alice: /deny", denied("")),
        ("alice: /deny too dear", denied("too dear")),
        ("alice: yes please", denied("yes please")),
        ("alice: yes, but not now", denied("yes, but not now")),
        ("alice: is it approved?", denied("is it approved?")),
        ("alice: ✅ approved once by Alice", denied("✅ approved once by Alice")),
        ("alice: 5", denied("5")),
        ("alice: 0", denied("0")),
        ("alice: ", denied("")),
        ("alice sends a.png: ", denied("")),
        ("alice: /approve everything", None),
        ("alice presses: @.ever", None),
        ("alice presses: once", None),
        ("alice presses: q1", None),
    ] {
        let mut talk = Talk::new(quiet());
        talk.play("alice: hello / agent: begs 7");
        let effects = talk.line(&line.replace('@', HANDLE));
        assert_eq!(told(&effects), expected, "{line}");
        let still = matches!(talk.session.phase, Phase::Asking { .. });
        assert_eq!(still, expected.is_none(), "{line}");
    }
}

#[test]
fn nothing_is_approved_by_what_was_said_before_the_question_could_be_read() {
    for yes in ["yes", "👍", "1", "approve once", "/approve", "/approve session", "/approve always"]
    {
        let mut talk = Talk::new(quiet());
        talk.play("alice: hello / agent: begs 7");
        let effects = talk.line(&format!("alice said early: {yes}"));
        assert_eq!(told(&effects), None, "{yes}");
        assert!(matches!(talk.session.phase, Phase::Asking { .. }), "{yes}");
        assert!(posted(&effects).concat().contains("before my question could be read"), "{yes}");
        assert_eq!(told(&talk.line("alice: yes")), approved(Consent::Once), "{yes}");
    }
}

#[test]
fn a_no_is_a_no_however_early_and_other_words_are_about_something_else() {
    for (no, reason) in [("no", ""), ("4", ""), ("/deny", ""), ("/deny too dear", "too dear")] {
        let mut talk = Talk::new(quiet());
        talk.play("alice: hello / agent: begs 7");
        assert_eq!(told(&talk.line(&format!("alice said early: {no}"))), denied(reason), "{no}");
    }
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7");
    assert_eq!(told(&talk.line("alice said early: and the weather?")), None);
    assert_eq!(told(&talk.line("alice: yes")), approved(Consent::Once));
    let next = printed(&talk.line("agent: finishes paid"));
    assert!(next.iter().any(|line| line.contains("and the weather?")), "{next:?}");
}

#[test]
fn what_nobody_is_asked_about_is_on_record() {
    let unasked = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Attest(attested) => Some(attested.what.clone()),
            _ => None,
        })
    };
    let asking = |asking| {
        let rules = rules_with(|rules| rules.approvals.asking = asking);
        let mut talk = Talk::new(rules);
        unasked(&talk.play("alice: hello / agent: begs 7"))
    };
    assert_eq!(asking(Asking::Asks), Some(Attest::Asked));
    assert_eq!(asking(Asking::Never), Some(Attest::Unasked(Some(Consent::Once))));
    assert_eq!(asking(Asking::Refuses), Some(Attest::Unasked(None)));
    let mut talk = Talk::new(quiet());
    let granted = talk.play("alice: hello / agent: begs 7!");
    assert_eq!(unasked(&granted), Some(Attest::Unasked(Some(Consent::Always))));
    let here = talk.play("agent: begs 8 / alice: /approve session / agent: begs 8");
    assert_eq!(unasked(&here), Some(Attest::Unasked(Some(Consent::Session))));
    // What the agent did not even have to ask about, or was not let do.
    let call = || CallId::literal("c");
    let about = || Some(Box::new(Unasked { tool: "note".into(), digest: Digest::new([7; 32]) }));
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello");
    let made = talk.agent(AgentEvent::Calling { call: call(), unasked: about() });
    assert_eq!(unasked(&made), Some(Attest::Unasked(Some(Consent::Once))));
    let not_made = talk.agent(AgentEvent::Called {
        call: call(),
        output: String::new(),
        files: Vec::new(),
        sends: Vec::new(),
        failed: true,
        refused: about(),
    });
    assert_eq!(unasked(&not_made), Some(Attest::Unasked(None)));
}

#[test]
fn whose_yes_counts_is_looked_at_when_it_arrives() {
    use Approvers::{Admins, Both, Requester};
    for (who, admins, presser, approves, denies) in [
        (Requester, &[][..], "alice", true, true),
        (Requester, &[], "bob", false, false),
        (Requester, &["bob"], "bob", false, false),
        (Requester, &["bob"], "alice", true, true),
        (Admins, &[], "alice", false, true),
        (Admins, &[], "bob", false, false),
        (Admins, &["bob"], "alice", false, true),
        (Admins, &["bob"], "bob", true, true),
        (Admins, &["bob"], "carol", false, false),
        (Admins, &["alice"], "alice", true, true),
        (Both, &["bob"], "alice", true, true),
        (Both, &["bob"], "bob", true, true),
        (Both, &["bob"], "carol", false, false),
    ] {
        for (verdict, may) in [("once", approves), ("session", approves), ("deny", denies)] {
            for way in ["presses", "says"] {
                let mut talk = by(who, admins);
                talk.play("alice: hello / agent: begs 7");
                let line = match (way, verdict) {
                    ("presses", verdict) => format!("{presser} presses: {HANDLE}.{verdict}"),
                    (_, "deny") => format!("{presser}: /deny"),
                    (_, verdict) => format!("{presser}: /approve {verdict}"),
                };
                let effects = talk.line(&line);
                let about = format!("{line} by {who:?}, administrators {admins:?}");
                assert_eq!(told(&effects).is_some(), may, "{about}");
                if !may {
                    assert!(matches!(talk.session.phase, Phase::Asking { .. }), "{about}");
                    let told = match verdict {
                        "deny" => "That is not yours to deny.",
                        _ => "That is not yours to approve.",
                    };
                    assert_eq!(posted(&effects), [told], "{about}");
                    assert!(talk.session.approved.is_empty(), "{about}");
                }
            }
        }
    }
}

#[test]
fn somebody_elses_words_wait_and_decide_nothing() {
    let mut talk = Talk::new(quiet());
    let effects = talk.play("alice: hello / agent: begs 7 / bob: yes");
    assert_eq!(printed(&effects), ["take #2"]);
    assert!(matches!(talk.session.phase, Phase::Asking { .. }));
}

#[test]
fn a_requester_who_may_not_approve_can_still_call_it_off() {
    let mut talk = by(Approvers::Admins, &["bob"]);
    talk.play("alice: hello / agent: begs 7");
    assert_eq!(told(&talk.line("alice: yes")), None);
    assert_eq!(told(&talk.line("alice: better not")), denied("better not"));
}

#[test]
fn the_outcome_takes_the_place_of_the_question() {
    check(
        "alice: hello / agent: begs 7",
        &["post 1: May I pay 7?", "record notice: May I pay 7?", "attest Asked"],
    );
    for (line, outcome) in [
        ("alice: yes", "✅ approved once by `alice`"),
        ("alice: /approve session", "✅ approved in this conversation by `alice`"),
        ("alice: /approve always", "✅ approved for good by `alice`"),
        ("alice: no", "⛔ denied by `alice`"),
        ("later: 301", "⌛ not done: nobody answered in time"),
        ("alice: /stop", "⛔ not done: I was stopped before anybody answered"),
        ("alice: /new", "⛔ not done: I was stopped before anybody answered"),
        ("agent: returns call", "⛔ not done: it is not the same any more"),
        ("agent: fails badly", "⛔ not done: I was stopped before anybody answered"),
    ] {
        let mut talk = Talk::new(quiet());
        talk.play("alice: hello / agent: begs 7");
        let effects = talk.line(line);
        let replaced: Vec<_> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Replace(replacement) => Some(replacement),
                _ => None,
            })
            .collect();
        let [replacement] = replaced[..] else { panic!("{line}: {:?}", printed(&effects)) };
        assert_eq!(replacement.of.delivery, 1, "{line}");
        assert!(replacement.id.delivery > 2, "{line}");
        assert_eq!(replacement.otherwise.text, outcome, "{line}");
        assert_eq!(replacement.whole.text, format!("May I pay 7?\n\n{outcome}"), "{line}");
        assert!(replacement.whole.choices.is_empty(), "{line}");
        for content in [&replacement.whole, &replacement.otherwise] {
            assert_eq!(content.notify, Notify::Silently, "{line}");
        }
    }
    check(
        "alice: hello / agent: asks Sure? / alice: yes",
        &["close #2", "record aside alice: yes", r#"tell turn 1: Chosen(ChoiceId("q1"))"#],
    );
}

#[test]
fn what_was_asked_and_what_became_of_it_is_recorded() {
    let attested = |effects: &[Effect]| -> Vec<String> {
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Attest(attested) => {
                    assert_eq!(attested.requester.as_str(), "alice");
                    assert_eq!((attested.tool.as_str(), attested.digest), ("pay", digest(7)));
                    Some(print(effect))
                }
                _ => None,
            })
            .collect()
    };
    for (line, expected) in [
        ("bob: /approve", r#"attest Approved(Once, SenderId("bob"))"#),
        ("bob: /approve always", r#"attest Approved(Always, SenderId("bob"))"#),
        ("bob: /deny", r#"attest Denied(SenderId("bob"))"#),
        ("alice: no", r#"attest Denied(SenderId("alice"))"#),
        ("later: 301", "attest Expired"),
        ("bob: /stop", "attest Stopped"),
        ("agent: returns call", "attest Changed"),
    ] {
        let mut talk = by(Approvers::Both, &["bob"]);
        assert_eq!(attested(&talk.play("alice: hello / agent: begs 7")), ["attest Asked"]);
        assert_eq!(attested(&talk.line(line)), [expected], "{line}");
    }
    let mut talk = by(Approvers::Both, &["bob"]);
    talk.play("alice: hello / agent: begs 7");
    assert!(attested(&talk.line("carol: /approve")).is_empty(), "nothing was decided");
}

#[test]
fn nobody_answering_is_a_no_after_five_minutes() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7");
    assert_eq!(told(&talk.line("later: 290")), None);
    assert_eq!(told(&talk.line("later: 20")), Some(Answer::Expired));
    assert_eq!(told(&talk.line("alice: yes")), None, "too late");
}

#[test]
fn a_yes_after_the_limit_is_too_late_whether_somebody_noticed_the_end_or_not() {
    for yes in ["alice: yes", "alice: /approve", "alice presses: @.once"] {
        for (time, expected) in
            [("299", Answer::Expired), ("298", approved(Consent::Once).unwrap())]
        {
            let mut talk = Talk::new(quiet());
            talk.play(&format!("alice: hello / agent: begs 7 / away: {time}"));
            let effects = talk.line(&yes.replace('@', HANDLE));
            assert_eq!(told(&effects), Some(expected), "{yes} after {time} seconds");
            let answers =
                |effect: &&Effect| matches!(effect, Effect::Tell { word: Word::Answer { .. }, .. });
            assert_eq!(effects.iter().filter(answers).count(), 1, "{yes}");
        }
    }
}

#[test]
fn a_clock_that_is_set_back_leaves_a_question_open_for_twice_its_time_at_most() {
    for (back, expected) in [(301, approved(Consent::Once)), (302, Some(Answer::Expired))] {
        let mut talk = Talk::new(quiet());
        talk.play("alice: hello / agent: begs 7");
        talk.now = Timestamp::from_millis(talk.now.as_millis() - back * 1000);
        assert_eq!(told(&talk.line("alice: yes")), expected, "{back} seconds");
    }
}

#[test]
fn what_was_approved_for_the_conversation_is_not_asked_again_in_it() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7 / alice: /approve session / agent: returns call");
    assert_eq!(told(&talk.line("agent: begs 7")), approved(Consent::Session));
    assert!(matches!(talk.session.phase, Phase::Thinking(_)));
    talk.line("agent: returns call");
    let other = talk.line("agent: begs 8");
    assert_eq!(told(&other), None, "something else");
    talk.play(
        "alice: no / agent: returns call / agent: finishes done / alice: /new / alice: again",
    );
    assert_eq!(told(&talk.line("agent: begs 7")), None, "another conversation");
}

#[test]
fn what_was_approved_for_a_conversation_is_asked_again_in_one_that_is_gone_back_to() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7 / alice: /approve session / agent: returns call");
    talk.play("agent: finishes done / alice: /resume whales");
    let effects = talk.line("told 3: life 20260101_000000_0badcafe");
    assert!(posted(&effects)[0].starts_with("Back in"), "{effects:?}");
    talk.line("alice: again");
    assert_eq!(told(&talk.line("agent: begs 7")), None);
}

#[test]
fn once_is_once() {
    let mut talk = Talk::new(quiet());
    talk.play(
        "alice: hello / agent: begs 7 / alice: yes / agent: calls call / agent: returns call",
    );
    assert_eq!(told(&talk.line("agent: begs 7")), None);
}

/// Asks for what has the number 7 as if no yes from before counted.
fn begs_anew(talk: &mut Talk) -> Vec<Effect> {
    let mut question = question("7");
    question.approval.as_mut().unwrap().earlier = EarlierYes::CountsNot;
    let turn = talk.session.hand().unwrap().turn.clone();
    talk.tell(Event::Agent { turn, event: AgentEvent::Asked(question) })
}

#[test]
fn what_was_approved_for_the_conversation_counts_as_long_as_who_said_so_may() {
    for approves in ["alice", "bob"] {
        let mut talk = by(Approvers::Both, &["bob"]);
        talk.play("alice: hello / agent: begs 7");
        talk.play(&format!("{approves}: /approve session / agent: returns call"));
        assert_eq!(told(&talk.line("agent: begs 7")), approved(Consent::Session));
        talk.line("agent: returns call");
        assert_eq!(told(&begs_anew(&mut talk)), None, "approved by {approves}");
    }
}

#[test]
fn each_of_those_who_approve_for_the_conversation_is_remembered_once() {
    let mut talk = by(Approvers::Both, &["bob"]);
    talk.line("alice: hello");
    for approves in ["alice", "bob", "alice"] {
        begs_anew(&mut talk);
        talk.play(&format!("{approves}: /approve session / agent: returns call"));
    }
    let by: Vec<_> = talk.session.approved.iter().map(|here| here.by.id.as_str()).collect();
    assert_eq!(by, ["bob", "alice"]);
}

#[test]
fn work_in_the_background_asks_nobody_and_does_not_do_it() {
    let mut talk = Talk::new(quiet());
    talk.session.key.side = Some(1);
    talk.line("alice: hello");
    let answer = told(&talk.line("agent: begs 7"));
    let Some(Answer::Denied { reason }) = answer else { panic!("{answer:?}") };
    assert!(reason.contains("in the background"), "{reason}");
    assert_eq!(
        told(&talk.line("agent: begs 8!")),
        Some(Answer::Approved { digest: digest(8), consent: Consent::Always })
    );
}

#[test]
fn only_so_much_is_approved_for_a_conversation() {
    let mut talk = Talk::new(quiet());
    talk.line("alice: hello");
    for number in 0..70 {
        talk.play(&format!("agent: begs {number} / alice: /approve session / agent: returns call"));
    }
    assert_eq!(talk.session.approved.len(), 64);
    assert_eq!(told(&talk.line("agent: begs 5")), None);
}

#[test]
fn what_is_approved_for_good_is_granted_in_the_name_of_who_asked() {
    let mut talk = by(Approvers::Both, &["bob"]);
    talk.play("alice: hello / agent: begs 7");
    let effects = talk.line(&format!("bob presses: {HANDLE}.always"));
    let grant = effects.iter().find_map(|effect| match effect {
        Effect::Grant(grant) => Some(grant),
        _ => None,
    });
    let grant = grant.expect("it is granted");
    assert_eq!((grant.digest, grant.tool.as_str()), (digest(107), "pay"));
    assert_eq!((grant.sender.as_str(), grant.by.id.as_str()), ("alice", "bob"));
    let mut talk = Talk::new(quiet());
    assert_eq!(told(&talk.play("alice: hello / agent: begs 7!")), approved(Consent::Always));
}

#[test]
fn what_wraps_others_is_never_approved_for_good() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7?");
    for line in ["alice: /approve always", &format!("alice presses: {HANDLE}.always")] {
        let effects = talk.line(line);
        assert_eq!(told(&effects), None, "{line}");
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Grant(_))), "{line}");
    }
    assert_eq!(told(&talk.line("alice: /approve")), approved(Consent::Once));
}

#[test]
fn the_operator_decides_whether_anybody_is_asked() {
    let asking = |asking| rules_with(|rules| rules.approvals.asking = asking);
    let mut talk = Talk::new(asking(Asking::Never));
    assert_eq!(told(&talk.play("alice: hello / agent: begs 7")), approved(Consent::Once));
    for asked in ["7", "7!", "7?"] {
        let mut talk = Talk::new(asking(Asking::Refuses));
        let answer = told(&talk.play(&format!("alice: hello / agent: begs {asked}")));
        assert!(matches!(answer, Some(Answer::Denied { .. })), "{asked}");
    }
}

#[test]
fn what_nobody_there_can_approve_is_denied_at_once_and_said() {
    let begs = |talk: &mut Talk, words: &str| {
        talk.line("alice: hello");
        let mut question = question(words);
        question.approval.as_mut().unwrap().approver = Approver::Absent;
        let turn = talk.session.hand().unwrap().turn.clone();
        talk.tell(Event::Agent { turn, event: AgentEvent::Asked(question) })
    };
    let mut talk = by(Approvers::Admins, &["bob"]);
    let effects = begs(&mut talk, "7");
    let reason =
        "only an administrator may approve this, and none is in this chat; ask for it where one is";
    assert_eq!(told(&effects), denied(reason));
    assert_eq!(posted(&effects), [format!("⛔ `pay` is not done: {reason}.")]);
    assert!(matches!(talk.session.phase, Phase::Thinking(_)));
    let again = talk.line("crash");
    assert_eq!(told(&again), denied(reason), "told again, and nobody is asked");
    // What was approved before, or needs nobody, needs nobody there either.
    assert_eq!(told(&begs(&mut Talk::new(quiet()), "7!")), approved(Consent::Always));
    let never = rules_with(|rules| rules.approvals.asking = Asking::Never);
    let effects = begs(&mut Talk::new(never), "7");
    assert_eq!(told(&effects), approved(Consent::Once));
    assert!(posted(&effects).is_empty());
}

#[test]
fn the_policy_is_read_again_when_the_answer_comes() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7");
    let refuses = rules_with(|rules| rules.approvals.asking = Asking::Refuses);
    talk.session.rules = refuses.into();
    talk.line("restart");
    let effects = talk.line("alice: /approve always");
    assert!(matches!(told(&effects), Some(Answer::Denied { .. })));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Grant(_))));
}

#[test]
fn an_open_question_and_an_answer_survive_the_process() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7");
    let again = talk.line("crash");
    assert_eq!(again.last().map(print).as_deref(), Some("start turn 1, asked"));
    assert_eq!(told(&talk.line("alice: yes")), approved(Consent::Once));
    let again = talk.line("crash");
    assert_eq!(told(&again), approved(Consent::Once), "told again, and nobody is asked again");
    talk.line("agent: returns call");
    assert_eq!(told(&talk.line("crash")), None, "it is used up");
}

#[test]
fn a_question_that_expired_while_nothing_ran_is_a_no() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7 / away: 4000");
    assert_eq!(told(&talk.line("crash")), Some(Answer::Expired));
}

#[test]
fn a_name_cannot_format_the_outcome() {
    let mut talk = Talk::new(quiet());
    talk.play("alice: hello / agent: begs 7");
    let mut answer = super::said("alice", "yes");
    answer.from = Sender { name: Some("**[Bob](http://x)**\n`".into()), ..answer.from };
    let effects = talk.arrive(answer);
    let shown = effects.iter().find_map(|effect| match effect {
        Effect::Replace(replacement) => Some(replacement.otherwise.text.clone()),
        _ => None,
    });
    assert_eq!(shown.as_deref(), Some("✅ approved once by Bobhttpx"));
}

#[test]
fn a_yes_from_before_a_restart_counts_as_long_as_it_could_be_given_again() {
    let restarted = |asking: Asking, now: Asking, yes: EarlierYes| {
        let mut talk = Talk::new(rules_with(|rules| rules.approvals.asking = asking));
        talk.play("alice: hello / agent: begs 7");
        if asking == Asking::Asks {
            talk.line("alice: yes");
        }
        let rules = rules_with(|rules| rules.approvals.asking = now);
        talk.session.rules = Arc::new(rules);
        let effects = talk.tell(Event::Restarted { ended: Ended::Abruptly, unheard: None, yes });
        (printed(&effects), printed(&talk.agent(AgentEvent::Asked(question("7")))))
    };
    let (again, _) = restarted(Asking::Asks, Asking::Asks, EarlierYes::Counts);
    assert_eq!(again.len(), 2, "it is told again: {again:?}");
    // What does not count is asked about once more, and decided by what applies then.
    for (asking, now, yes, decided) in [
        (Asking::Asks, Asking::Asks, EarlierYes::CountsNot, "post"),
        (Asking::Asks, Asking::Refuses, EarlierYes::Counts, "tell turn 1: Denied"),
        (Asking::Never, Asking::Asks, EarlierYes::Counts, "post"),
        (Asking::Never, Asking::Refuses, EarlierYes::CountsNot, "tell turn 1: Denied"),
        (Asking::Never, Asking::Never, EarlierYes::CountsNot, "tell turn 1: Approved"),
    ] {
        let (again, asked) = restarted(asking, now, yes);
        assert_eq!(again, ["start turn 1"], "{asking:?} {now:?} {yes:?}");
        let is_decided = asked.iter().any(|line| line.starts_with(decided));
        assert!(is_decided, "{asking:?} {now:?} {yes:?}: {asked:?}");
    }
}
