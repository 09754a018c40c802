//! Who watches from outside: what it is shown, when it is asked, and how long anybody waits for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use talaria_agent::Agent;
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::{
    Arriving, Commanded, Decided, Happening, Order, Paired, Used, Watcher, What,
};
use talaria_model::{
    Addressed, AgentEvent, CallId, Cost, Failure, Inbound, InboundKind, Intervened, Intervention,
    Message, MessageId, Scrutiny, SenderId, ToolCall, Usage, Word,
};
use talaria_platform::Verdict;
use talaria_session::{Access, Edits, PairWish, Reach, RoomRules, Strangers, Tiers};
use talaria_store::{Clue, JournalState, Store};
use talaria_testkit::Dice;

use crate::world::{End, Habits, Hears, SIMPLE, Vendor, Verb, World, agent};

/// As long as somebody takes who uses all the time there is to decide about something.
const LONGEST: Duration = Duration::from_secs(10);

type Look = Box<dyn Fn(&str) -> Arriving + Send + Sync>;
type Decide = Box<dyn Fn(&str) -> Commanded + Send + Sync>;

/// Somebody who watches, remembers what was seen, and takes long.
struct Witness {
    seen: Mutex<Vec<String>>,
    look: Look,
    decide: Decide,
    /// How long it thinks about something that it is asked about, by its text or its name.
    thinks: Thinks,
}

type Thinks = Box<dyn Fn(&str) -> Duration + Send + Sync>;

impl Witness {
    fn new() -> Self {
        Self {
            seen: Mutex::default(),
            look: Box::new(|_| Arriving::Goes),
            decide: Box::new(|_| Commanded::Goes),
            thinks: Box::new(|_| Duration::ZERO),
        }
    }

    /// One that answers every command that it is asked about.
    fn answering() -> Self {
        let decide = |name: &str| Commanded::Answered(format!("{name}: done"));
        Self { decide: Box::new(decide), ..Self::new() }
    }

    fn saw(&self, what: String) {
        self.seen.lock().unwrap().push(what);
    }

    /// What was seen of a kind.
    fn seen(&self, kind: &str) -> Vec<String> {
        let kind = format!("{kind} ");
        let seen = self.seen.lock().unwrap();
        seen.iter().filter_map(|seen| seen.strip_prefix(&kind)).map(str::to_owned).collect()
    }

    /// The same, and thinks about everything for this long.
    fn thinking(self, time: Duration) -> Self {
        Self { thinks: Box::new(move |_| time), ..self }
    }

    async fn think(&self, about: &str) {
        SystemClock.sleep((self.thinks)(about)).await;
    }
}

/// What was said.
fn words(inbound: &Inbound) -> &str {
    match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => &message.text,
        _ => panic!("nothing was said"),
    }
}

#[async_trait]
impl Watcher for Witness {
    fn watches(&self) -> bool {
        true
    }

    fn happened(&self, happening: &Happening) {
        self.saw(match &happening.what {
            What::Began => "happened began".into(),
            What::Ended(why) => format!("happened ended: {why:?}"),
            What::Renewed => "happened renewed".into(),
            What::TurnBegan { message, .. } => format!("happened turn: {message}"),
            What::Stepped { iteration, calls, took, .. } => {
                let used = |used: &Used| {
                    let took = used.took.map(|took| format!(" {} s", took.as_secs()));
                    let took = took.unwrap_or_default();
                    format!("{} {}{took}", used.call.tool, used.call.arguments)
                };
                let calls: Vec<_> = calls.iter().map(used).collect();
                let took = took.as_secs();
                format!("happened step {iteration}: {} in {took} s", calls.join(", "))
            }
            What::TurnEnded { message, response, failure, .. } => {
                let how = if failure.is_some() { "failed" } else { "answered" };
                format!("happened {how}: {} -> {response}", message.as_deref().unwrap_or("?"))
            }
        });
    }

    fn judges_arrivals(&self) -> bool {
        true
    }

    fn judges(&self, _: &Order<'_>) -> bool {
        true
    }

    fn arrived(&self, _: &'static str, inbound: &Inbound) {
        self.saw(format!("arrived {}: {}", inbound.from.id, words(inbound)));
    }

    async fn arriving(&self, _: &'static str, inbound: &Inbound) -> Decided<Arriving> {
        self.saw(format!("arriving {}: {}", inbound.from.id, words(inbound)));
        self.think(words(inbound)).await;
        let what = (self.look)(words(inbound));
        let did = match &what {
            Arriving::Goes => None,
            Arriving::Rewritten(_) => Some(Intervened::Rewrote),
            Arriving::Dropped(_) => Some(Intervened::Refused),
        };
        Decided { what, by: did.map(by_witness) }
    }

    fn ordered(&self, order: &Order<'_>) {
        self.saw(format!("told {}: {}", order.inbound.from.id, order.given.name));
    }

    async fn commanded(&self, order: &Order<'_>) -> Decided<Commanded> {
        self.saw(format!("asked {}: {}", order.inbound.from.id, order.given.name));
        self.think(&order.given.name).await;
        let what = (self.decide)(&order.given.name);
        let did = match &what {
            Commanded::Goes => None,
            Commanded::Rewritten(_) => Some(Intervened::Rewrote),
            Commanded::Answered(_) => Some(Intervened::Handled),
        };
        Decided { what, by: did.map(by_witness) }
    }
}

fn by_witness(what: Intervened) -> Intervention {
    Intervention { by: "witness".into(), what }
}

fn watched(witness: Witness) -> (World, Arc<Witness>) {
    let witness = Arc::new(witness);
    let mut world = World::new(SIMPLE);
    world.watcher = witness.clone();
    (world, witness)
}

#[test]
fn nobody_is_asked_about_a_command_that_its_sender_may_not_give() {
    let (mut world, witness) = watched(Witness::answering());
    let tiers = Tiers {
        admins: [SenderId::literal("alice")].into(),
        others: ["weather".to_owned()].into(),
        ..Tiers::default()
    };
    let listed = ["alice", "ben"].map(SenderId::literal);
    let direct = RoomRules { tiers: Arc::new(tiers), ..RoomRules::default() };
    world.accounts[0].1 = Access { direct, ..Access::only(listed) };
    world.live(async |life| {
        for (number, command) in ["/restart", "/deploy now", "/weather"].into_iter().enumerate() {
            life.vendor.say("ben", "bens", command);
            life.texts("bens", number + 1).await;
            life.vendor.say("alice", "home", command);
            life.texts("home", number + 1).await;
        }
        life.vendor.say("mallory", "strange", "/weather");
        life.pass_seconds(1).await;
        life.quiet().await;
        let bens = life.vendor.texts("bens");
        assert!(bens[0].contains("is for administrators"), "{bens:?}");
        assert!(bens[1].contains("There is no command `/deploy`"), "{bens:?}");
        assert_eq!(bens[2], "weather: done");
        let home = ["restart: done", "deploy: done", "weather: done"];
        assert_eq!(life.vendor.texts("home"), home);
        assert!(life.vendor.texts("strange").is_empty());
    });
    let asked = witness.seen("asked");
    assert_eq!(asked, ["alice: restart", "alice: deploy", "ben: weather", "alice: weather"]);
    assert_eq!(witness.seen("arrived"), ["mallory: /weather"], "nobody is asked about a stranger");
}

#[test]
fn what_a_watcher_decided_is_not_said_to_somebody_who_may_not_give_the_command_any_more() {
    let (mut world, witness) = watched(Witness::answering());
    let tiers = |admin: &'static str| {
        let tiers = Tiers { admins: [SenderId::literal(admin)].into(), ..Tiers::default() };
        let direct = RoomRules { tiers: Arc::new(tiers), ..RoomRules::default() };
        Access { direct, ..Access::only(["alice", "ben"].map(SenderId::literal)) }
    };
    world.accounts[0].1 = tiers("ben");
    // It is decided about, and no step takes it.
    world.disk.fails(Verb::Commit, 1000);
    world.live(async |life| {
        life.vendor.say("ben", "bens", "/restart");
        life.pass_seconds(5).await;
    });
    assert_eq!(witness.seen("asked"), ["ben: restart"]);
    world.disk.fails(Verb::Commit, 0);
    world.accounts[0].1 = tiers("alice");
    world.live(async |life| {
        let bens = life.texts("bens", 1).await;
        assert!(bens[0].contains("is for administrators"), "{bens:?}");
    });
    assert_eq!(witness.seen("asked"), ["ben: restart"], "what was decided is written down");
}

#[test]
fn what_a_platform_repeats_is_shown_once() {
    let (mut world, witness) = watched(Witness::answering());
    world.live(async |life| {
        let command = life.vendor.say("alice", "home", "/deploy");
        life.vendor.repeat(&command);
        life.texts("home", 1).await;
        life.vendor.repeat(&command);
        let words = life.vendor.say("alice", "home", "hello");
        life.texts("home", 2).await;
        life.vendor.repeat(&words);
        life.quiet().await;
    });
    let repeated = world.vendor().truth(|truth| truth.happened[0].id.clone());
    world.live(async |life| {
        life.vendor.repeat(&repeated);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["deploy: done", "echo: hello"]);
    });
    assert_eq!(witness.seen("asked"), ["alice: deploy"]);
    assert_eq!(witness.seen("arriving"), ["alice: /deploy", "alice: hello"]);
}

#[test]
fn what_is_twice_in_a_batch_is_shown_once() {
    let (mut world, witness) = watched(Witness::answering());
    world.vendor().has_habits(Habits { batch: 10, ..Habits::default() }, Dice::seeded(1));
    world.live(async |life| {
        let command = life.vendor.say("alice", "home", "/deploy");
        life.vendor.repeat(&command);
        life.quiet().await;
        assert_eq!(life.vendor.truth(|truth| truth.batches.len()), 1);
        assert_eq!(life.vendor.texts("home"), ["deploy: done"]);
    });
    assert_eq!(witness.seen("asked"), ["alice: deploy"]);
}

#[test]
fn wherever_a_process_dies_nobody_is_asked_again_about_what_was_decided() {
    let (mut repeats, mut asked_again) = (0, 0);
    for moment in 1.. {
        let witness = Arc::new(Witness::answering().thinking(Duration::from_secs(1)));
        let mut world = World::hearing(SIMPLE, Hears::Envelopes);
        world.watcher = witness.clone();
        let end = world.live_and_die(moment, async |life| {
            life.vendor.say("alice", "home", "/deploy");
            life.texts("home", 1).await;
            life.quiet().await;
        });
        let said = world.vendor().truth(|truth| truth.happened.first().cloned());
        let Some(said) = said else { continue };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let clue = Clue::Id(said.id.as_str().to_owned());
        let kept = runtime.block_on(world.disk.kept.trace(&clue, 1)).unwrap();
        let is_decided = kept.first().is_some_and(|row| match &row.inbound.kind {
            InboundKind::Said(message) => message.scrutiny == Scrutiny::Over,
            _ => false,
        });
        let before = witness.seen("asked").len();
        world.live(async |life| {
            let texts = life.texts("home", 1).await;
            assert!(texts[0].ends_with("deploy: done"), "{texts:?}");
            // What was not acknowledged comes again.
            life.pass_seconds(60).await;
            life.quiet().await;
            let answers = life.vendor.texts("home");
            let unmarked = answers.iter().filter(|text| **text == "deploy: done").count();
            assert!(unmarked <= 1, "{answers:?}");
        });
        let again = if is_decided { 0 } else { 1 };
        assert_eq!(witness.seen("asked").len(), before + again, "at moment {moment}");
        asked_again += usize::from(before > 0) * again;
        repeats += world.vendor().truth(|truth| {
            let told = truth.batches.iter().filter_map(|batch| batch.verdicts.clone()).flatten();
            told.filter(|verdict| *verdict == Verdict::Repeated).count()
        });
        if end == End::Over {
            break;
        }
    }
    assert!(repeats > 0, "nothing was ever repeated");
    assert!(asked_again > 0, "nobody ever died while somebody was asked");
}

#[test]
fn a_watcher_that_takes_all_its_time_holds_up_what_it_is_asked_about_and_nothing_else() {
    let thinks = |about: &str| if about == "slow" { LONGEST } else { Duration::ZERO };
    let (mut world, witness) = watched(Witness { thinks: Box::new(thinks), ..Witness::new() });
    world.vendor().has_habits(Habits { batch: 100, ..Habits::default() }, Dice::seeded(1));
    world.live(async |life| {
        let said = life.now();
        for number in 0..4 {
            life.vendor.say("alice", &format!("slow-{number}"), "slow");
        }
        for number in 0..50 {
            life.vendor.say("alice", &format!("words-{number}"), "hello");
            life.vendor.say("alice", &format!("command-{number}"), "/whoami");
        }
        let is_answered = |vendor: &Vendor| {
            let answered = |chat: String| !vendor.texts(&chat).is_empty();
            (0..50).all(|n| answered(format!("words-{n}")) && answered(format!("command-{n}")))
        };
        life.until("all others are answered", is_answered).await;
        assert_eq!(life.now(), said, "nobody waits for somebody else's question");
        let told = life.vendor.truth(|truth| {
            let told = truth.batches.iter().filter_map(|batch| batch.verdicts.clone()).flatten();
            told.count()
        });
        assert_eq!(told, 104, "the platform has its acknowledgement");
        let slow = |vendor: &Vendor| (0..4).all(|n| !vendor.texts(&format!("slow-{n}")).is_empty());
        life.until("the slow ones are answered", slow).await;
        let took = life.now().since(said);
        assert!(took >= LONGEST && took < LONGEST + Duration::from_secs(1), "{took:?}");
    });
    assert_eq!(witness.seen("arriving").len(), 104);
    assert_eq!(witness.seen("asked").len(), 50);
}

#[test]
fn what_is_too_much_to_be_asked_about_at_once_waits_and_is_asked_about() {
    let drops = |text: &str| match text {
        "bad" => Arriving::Dropped("bad".into()),
        _ => Arriving::Goes,
    };
    let witness = Witness { look: Box::new(drops), ..Witness::new() };
    let (mut world, witness) = watched(witness.thinking(Duration::from_secs(1)));
    world.vendor().has_habits(Habits { batch: 100, ..Habits::default() }, Dice::seeded(1));
    world.live(async |life| {
        for number in 0..64 {
            let text = if number % 2 == 0 { "good" } else { "bad" };
            life.vendor.say("alice", &format!("chat-{number}"), text);
        }
        life.pass_seconds(9).await;
        life.quiet().await;
        for number in 0..64 {
            let texts = life.vendor.texts(&format!("chat-{number}"));
            assert_eq!(texts.len(), (number + 1) % 2, "{texts:?}");
        }
    });
    assert_eq!(witness.seen("arriving").len(), 64);
}

#[test]
fn commands_that_arrive_together_are_decided_together_and_stay_in_order() {
    let (mut world, _) = watched(Witness::answering().thinking(Duration::from_millis(450)));
    world.vendor().has_habits(Habits { batch: 100, ..Habits::default() }, Dice::seeded(1));
    world.live(async |life| {
        let said = life.now();
        for number in 0..40 {
            life.vendor.say("alice", "home", &format!("/do-{number}"));
        }
        let texts = life.texts("home", 40).await;
        let took = life.now().since(said);
        // Four of a conversation at a time, each looked at once as a message and once as a command.
        assert!(took < Duration::from_secs(10), "{took:?}");
        let ordered: Vec<_> = (0..40).map(|number| format!("do-{number}: done")).collect();
        assert_eq!(texts, ordered);
    });
}

#[test]
fn what_was_dropped_is_on_record_with_its_reason_and_an_excerpt() {
    let drops = |text: &str| match text.starts_with("spam") {
        true => Arriving::Dropped("the filter dropped it".into()),
        false => Arriving::Goes,
    };
    let witness = Witness { look: Box::new(drops), ..Witness::new() };
    let (mut world, _) = watched(witness.thinking(Duration::from_secs(1)));
    // What was decided is written however long that takes, and others go on in the meantime.
    world.disk.fails(Verb::Ignore, 3);
    world.live(async |life| {
        let spam = life.vendor.say("alice", "home", &"spam ".repeat(1000));
        life.vendor.say("alice", "other", "hello");
        assert_eq!(life.texts("other", 1).await, ["echo: hello"]);
        life.pass_seconds(60).await;
        life.quiet().await;
        let clue = Clue::Id(spam.as_str().to_owned());
        let row = life.disk.trace(&clue, 1).await.unwrap().remove(0);
        assert_eq!(row.state, JournalState::Ignored("the filter dropped it".into()));
        assert_eq!(words(&row.inbound).len(), 200);
        assert_eq!(life.vendor.texts("home"), [""; 0]);
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn who_did_what_about_a_message_is_kept_with_it_across_a_restart() {
    let look = |text: &str| match text {
        "secret" => Arriving::Rewritten("******".into()),
        "spam" => Arriving::Dropped("spam".into()),
        "/first" => Arriving::Rewritten("/deploy".into()),
        _ => Arriving::Goes,
    };
    let decide = |name: &str| match name {
        "deploy" => Commanded::Answered("done".into()),
        _ => Commanded::Goes,
    };
    let witness = Witness { look: Box::new(look), decide: Box::new(decide), ..Witness::new() };
    let (mut world, _) = watched(witness);
    let cases = [
        ("hello", vec![]),
        ("secret", vec![Intervened::Rewrote]),
        ("spam", vec![Intervened::Refused]),
        ("/first", vec![Intervened::Rewrote, Intervened::Handled]),
    ];
    let said = world.live(async |life| {
        let mut said = Vec::new();
        for (text, _) in &cases {
            said.push(life.vendor.say("alice", "home", text));
            life.quiet().await;
        }
        said
    });
    world.live(async |life| {
        for (said, (text, did)) in said.iter().zip(cases) {
            let clue = Clue::Id(said.as_str().to_owned());
            let row = life.disk.trace(&clue, 1).await.unwrap().remove(0);
            let InboundKind::Said(message) = &row.inbound.kind else { panic!("{row:?}") };
            let expected: Vec<_> = did.into_iter().map(by_witness).collect();
            assert_eq!(message.interventions, expected, "{text}");
        }
    });
}

#[test]
fn what_a_process_died_over_is_asked_about_by_the_next_one_and_answered_once() {
    let (mut world, witness) = watched(Witness::new().thinking(LONGEST));
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(5).await;
        assert_eq!(life.vendor.texts("home"), [""; 0]);
    });
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
    });
    assert_eq!(witness.seen("arriving"), ["alice: hello", "alice: hello"]);
}

#[test]
fn nobody_is_asked_about_what_somebody_left_who_is_not_heard_any_more() {
    for text in ["hello", "/new"] {
        let (mut world, witness) = watched(Witness::new().thinking(LONGEST / 2));
        world.live(async |life| {
            life.vendor.say("alice", "home", text);
            life.until("it is heard", |vendor| vendor.is_heard()).await;
        });
        let asked =
            |witness: &Witness| witness.seen("arriving").len() + witness.seen("asked").len();
        let before = asked(&witness);
        world.accounts[0].1 = Access::closed();
        world.live(async |life| {
            life.quiet().await;
            assert_eq!(asked(&witness), before, "{text}");
            let counts = life.disk.counts().await.expect("reads");
            assert_eq!((counts.denied, counts.unread), (1, 0), "{text}");
        });
    }
}

#[test]
fn whoever_stops_waits_for_no_watcher_and_the_next_run_asks() {
    let (mut world, witness) = watched(Witness::new().thinking(LONGEST));
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        let began = life.now();
        life.gateway.stop(Duration::from_secs(180)).await;
        let took = life.now().since(began);
        assert!(took < LONGEST / 2, "{took:?}");
    });
    assert_eq!(witness.seen("arriving"), ["alice: hello"]);
    world.live(async |life| {
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
    });
    assert_eq!(witness.seen("arriving").len(), 2);
}

#[test]
fn what_is_asked_about_while_its_account_is_taken_out_is_answered_when_that_is_back() {
    let (mut world, _) = watched(Witness::new().thinking(LONGEST));
    let plan = world.plan(&world.vendor());
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        life.gateway.drop_account(&life.vendor.account());
        life.pass_seconds(60).await;
        assert_eq!(life.vendor.texts("home"), [""; 0]);
        life.gateway.put_account(plan);
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
        life.quiet().await;
        assert_eq!(life.vendor.texts("home"), ["echo: hello"]);
    });
}

#[test]
fn a_command_that_overtakes_others_is_asked_about_before_what_waits() {
    // So much waits that nothing else is taken in.
    let (mut world, witness) = watched(Witness::new().thinking(Duration::from_secs(1)));
    world.rules.room = 2;
    world.with_agent(endless()).live(async |life| {
        life.vendor.say("alice", "home", "work");
        life.pass_seconds(2).await;
        for number in 0..20 {
            life.vendor.say("alice", "home", &format!("more {number}"));
        }
        life.pass_seconds(30).await;
        let asked = life.now();
        life.vendor.say("alice", "home", "/new");
        life.until("a new conversation", |vendor| !vendor.texts("home").is_empty()).await;
        let took = life.now().since(asked);
        assert!(took < Duration::from_secs(5), "{took:?}");
    });
    assert_eq!(witness.seen("asked"), ["alice: new"]);
}

#[test]
fn a_text_that_becomes_a_stop_stops_and_a_command_that_becomes_words_waits_for_its_turn() {
    let look = |text: &str| match text {
        "enough" => Arriving::Rewritten("/stop".into()),
        _ => Arriving::Goes,
    };
    let decide = |name: &str| match name {
        "new" => Commanded::Rewritten("three".into()),
        _ => Commanded::Goes,
    };
    let witness = Witness { look: Box::new(look), decide: Box::new(decide), ..Witness::new() };
    let (world, witness) = watched(witness);
    world.with_agent(endless()).live(async |life| {
        life.vendor.say("alice", "home", "work");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "enough");
        life.until("a stop", is_stopped).await;
    });
    assert_eq!(witness.seen("told"), ["alice: stop"], "nobody is asked about a stop");

    // The second one is still asked about when the third has been decided.
    let thinks = |about: &str| if about == "two" { LONGEST } else { Duration::ZERO };
    let witness = Witness { decide: Box::new(decide), thinks: Box::new(thinks), ..Witness::new() };
    let (mut world, _) = watched(witness);
    world.live(async |life| {
        life.vendor.say("alice", "home", "one");
        life.texts("home", 1).await;
        life.vendor.say("alice", "home", "two");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "/new");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "four");
        life.pass_seconds(20).await;
        life.quiet().await;
        let texts = life.vendor.texts("home").join(" ");
        let place = |word: &str| texts.find(word).unwrap_or_else(|| panic!("{word} in {texts}"));
        assert!(place("two") < place("three") && place("three") < place("four"), "{texts}");
    });
}

/// An agent that works until it is told to stop.
fn endless() -> Arc<dyn Agent> {
    agent(|mut stage| async move {
        loop {
            if stage.hear().await == Word::Stop {
                return stage.fail(Failure::Stopped).await;
            }
        }
    })
}

fn is_stopped(vendor: &Vendor) -> bool {
    vendor.texts("home").iter().any(|text| text.contains("Stopped."))
}

#[test]
fn no_number_of_commands_that_are_asked_about_holds_up_a_stop() {
    let (mut world, _) = watched(Witness::new().thinking(LONGEST));
    world.rules.room = 2;
    world.with_agent(endless()).live(async |life| {
        life.vendor.say("alice", "home", "work");
        life.pass_seconds(11).await;
        for _ in 0..12 {
            life.vendor.say("alice", "home", "more");
            life.vendor.say("alice", "home", "/new");
        }
        life.pass_seconds(1).await;
        let asked = life.now();
        life.vendor.say("alice", "home", "/stop");
        life.until("a stop", is_stopped).await;
        assert_eq!(life.now(), asked);
    });
}

#[test]
fn a_stop_that_is_read_back_from_the_journal_waits_for_nobody_either() {
    let (world, witness) = watched(Witness::new().thinking(LONGEST));
    let mut world = world.with_agent(endless());
    let more = world.live(async |life| {
        life.vendor.say("alice", "home", "work");
        life.pass_seconds(11).await;
        // What arrives from here on is in the journal, and no step takes it.
        life.disk.fails(Verb::Commit, 1000);
        let more = life.vendor.say("alice", "home", "more");
        life.pass_seconds(1).await;
        life.vendor.say("alice", "home", "/stop");
        life.pass_seconds(1).await;
        more
    });
    world.disk.fails(Verb::Commit, 0);
    world.live(async |life| {
        let began = life.now();
        life.until("a stop", is_stopped).await;
        assert_eq!(life.now(), began);
        life.quiet().await;
        let clue = Clue::Id(more.as_str().to_owned());
        let row = life.disk.trace(&clue, 1).await.unwrap().remove(0);
        assert!(matches!(row.state, JournalState::Ignored(_)), "dropped: {:?}", row.state);
    });
    assert_eq!(witness.seen("arriving"), ["alice: work", "alice: more"]);
}

#[test]
fn what_was_said_behind_a_command_is_heard_behind_it() {
    let thinks = |about: &str| if about == "new" { LONGEST } else { Duration::ZERO };
    let (mut world, witness) = watched(Witness { thinks: Box::new(thinks), ..Witness::new() });
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        life.vendor.say("alice", "home", "/new");
        life.vendor.say("alice", "home", "behind");
        life.until("an answer", |vendor| vendor.texts("home").contains(&"echo: behind".into()))
            .await;
        life.quiet().await;
    });
    let happened = witness.seen("happened");
    let place = |what: &str| happened.iter().position(|seen| seen == what);
    assert!(place("renewed") < place("turn: behind"), "{happened:?}");
    assert_eq!(happened.last().unwrap(), "answered: behind -> echo: behind");
}

#[test]
fn what_a_watcher_let_pass_is_not_asked_about_again() {
    let (mut world, witness) = watched(Witness::new());
    world.disk.fails(Verb::Commit, 1000);
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.vendor.say("alice", "other", "/whoami");
        life.pass_seconds(5).await;
    });
    world.disk.fails(Verb::Commit, 0);
    world.live(async |life| {
        life.texts("home", 1).await;
        life.texts("other", 1).await;
        life.vendor.say("alice", "home", "/background do it");
        life.texts("home", 3).await;
        life.quiet().await;
    });
    let mut arriving = witness.seen("arriving");
    arriving.sort();
    assert_eq!(arriving, ["alice: /background do it", "alice: /whoami", "alice: hello"]);
    assert_eq!(witness.seen("asked"), ["alice: whoami", "alice: background"]);
}

#[test]
fn whoever_breaks_down_over_a_message_or_makes_too_much_of_it_drops_it() {
    let look = |text: &str| match text {
        "break" => panic!("a watcher broke down, on purpose"),
        "blow up" => Arriving::Rewritten("x".repeat(300 * 1024)),
        _ => Arriving::Goes,
    };
    let (mut world, _) = watched(Witness { look: Box::new(look), ..Witness::new() });
    world.live(async |life| {
        for (text, reason) in [
            ("break", "something went wrong inside me while hooks were asked about it"),
            ("blow up", "what a hook made of it is longer than the gateway takes"),
        ] {
            let said = life.vendor.say("alice", "home", text);
            life.quiet().await;
            let clue = Clue::Id(said.as_str().to_owned());
            let row = life.disk.trace(&clue, 1).await.unwrap().remove(0);
            assert_eq!(row.state, JournalState::Ignored(reason.to_owned()));
        }
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
    });
}

#[test]
fn a_stranger_who_says_much_while_they_wait_costs_no_question_for_each() {
    let (mut world, witness) = watched(Witness::new().thinking(Duration::from_secs(2)));
    let access = Access::only([SenderId::literal("alice")]);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..access };
    world.live(async |life| {
        for _ in 0..50 {
            life.vendor.say("mallory", "mallorys", "let me in");
        }
        life.pass_seconds(1).await;
        life.vendor.say("eve", "eves", "hello");
        life.texts("eves", 1).await;
        assert_eq!(life.vendor.texts("mallorys").len(), 1, "answered once");
    });
    let of = |kind: &str| witness.seen(kind).iter().filter(|seen| seen.contains("mallory")).count();
    let (asked, told) = (of("arriving"), of("arrived"));
    assert!(asked <= 4, "asked {asked} times");
    assert_eq!(asked + told, 50, "and the rest is told");
}

#[test]
fn however_many_strangers_were_asked_about_so_is_the_next() {
    let (mut world, witness) = watched(Witness::new());
    let access = Access::only([SenderId::literal("alice")]);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..access };
    world.live(async |life| {
        for who in ["ann", "ben", "cid"] {
            life.vendor.say(who, who, "let me in");
            life.quiet().await;
            assert_eq!(life.vendor.texts(who).len(), 1, "{who}");
        }
    });
    assert_eq!(witness.seen("arriving").len(), 3);
}

#[test]
fn a_stranger_over_whom_somebody_thinks_keeps_no_other_waiting_and_codes_are_shown_to_nobody() {
    let thinks = |about: &str| if about == "slow" { LONGEST } else { Duration::ZERO };
    let (mut world, witness) = watched(Witness { thinks: Box::new(thinks), ..Witness::new() });
    let access = Access::only([SenderId::literal("alice")]);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..access };
    world.live(async |life| {
        let account = life.vendor.account();
        let issued = life.gateway.pair(&account, &PairWish::Issue(Reach::Direct), "operator").await;
        let Ok(Paired::Code(code)) = issued else { panic!("{issued:?}") };
        let said = life.now();
        life.vendor.say("mallory", "mallorys", "slow");
        life.pass_seconds(1).await;
        life.vendor.say("eve", "eves", "hello");
        life.vendor.say("ann", "anns", code.expose());
        let texts = life.texts("eves", 1).await;
        assert!(texts[0].contains("pairing code"), "{texts:?}");
        assert_eq!(life.texts("anns", 1).await, ["Paired! You are let in; say what you need."]);
        assert_eq!(life.now().since(said), Duration::from_secs(1));
        life.texts("mallorys", 1).await;
        assert_eq!(life.now().since(said), LONGEST);
        let seen = [witness.seen("arriving"), witness.seen("arrived")].concat();
        assert!(!seen.iter().any(|seen| seen.contains(code.expose())), "{seen:?}");
    });
}

#[test]
fn what_only_looks_like_a_code_is_asked_about_like_any_greeting() {
    let refuses = Witness {
        look: Box::new(|_| Arriving::Dropped("nobody comes in".into())),
        ..Witness::new()
    };
    let (mut world, witness) = watched(refuses);
    let access = Access::only([SenderId::literal("alice")]);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..access };
    world.live(async |life| {
        // No code is out that these could be, and one of them is two words.
        life.vendor.say("mallory", "mallorys", "abcdefgh");
        life.vendor.say("eve", "eves", "hey there");
        life.quiet().await;
        assert!(life.vendor.texts("mallorys").is_empty() && life.vendor.texts("eves").is_empty());
    });
    assert_eq!(witness.seen("arriving").len(), 2);
}

#[test]
fn strangers_share_two_questions_of_their_account_and_a_conversation_has_its_own() {
    let (mut world, witness) = watched(Witness::new().thinking(LONGEST));
    let access =
        Access { strangers: Strangers::Pair, ..Access::only([SenderId::literal("alice")]) };
    world.accounts[0].1 = access.clone();
    let other = world.add("other", SIMPLE);
    world.accounts[1].1 = access;
    let count = |who: &str, text: &str| {
        let is_it = |seen: &&String| seen.starts_with(who) && seen.ends_with(text);
        witness.seen("arriving").iter().filter(is_it).count()
    };
    world.live(async |life| {
        for number in 0..6 {
            life.vendor.say(&format!("here-{number}"), &format!("chat-{number}"), "let me in");
            other.say(&format!("there-{number}"), &format!("chat-{number}"), "let me in");
            life.vendor.say("alice", "home", "hello");
            life.vendor.say("alice", "home", "/new");
        }
        life.pass_seconds(1).await;
        assert_eq!((count("here", ""), count("there", "")), (2, 2), "strangers of each account");
        assert_eq!((count("alice", "hello"), count("alice", "/new")), (4, 1));
        life.pass_seconds(10).await;
        assert_eq!((count("here", ""), count("there", "")), (4, 4), "and then the next");
        life.pass_seconds(20).await;
        life.quiet().await;
        assert_eq!((count("here", ""), count("there", "")), (6, 6), "in the end, everybody");
    });
}

#[test]
fn a_stop_waits_for_nobody_who_is_asked_about_anything() {
    for batch in [1, 10] {
        let (world, witness) = watched(Witness::answering().thinking(LONGEST));
        world.vendor().has_habits(Habits { batch, ..Habits::default() }, Dice::seeded(1));
        world.with_agent(endless()).live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.pass_seconds(20).await;
            let asked = life.now();
            life.vendor.say("ben", "bens", "/weather");
            life.vendor.say("alice", "home", "and this");
            life.vendor.say("alice", "home", "/stop");
            life.until("a stop", is_stopped).await;
            assert_eq!(life.now(), asked, "in batches of {batch}");
            life.until("an answer", |vendor| !vendor.texts("bens").is_empty()).await;
        });
        assert_eq!(witness.seen("asked"), ["ben: weather"]);
        assert_eq!(witness.seen("told"), ["alice: stop"]);
    }
}

#[test]
fn what_stops_something_or_answers_a_question_waits_for_no_watcher() {
    let hangs = Witness {
        look: Box::new(|text| match text {
            "/stop" => Arriving::Dropped("it is not asked".into()),
            _ => Arriving::Goes,
        }),
        ..Witness::answering().thinking(LONGEST)
    };
    let (world, witness) = watched(hangs);
    world.with_agent(endless()).live(async |life| {
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(20).await;
        let asked = life.now();
        life.vendor.say("alice", "home", "/stop");
        life.until("a stop", is_stopped).await;
        assert_eq!(life.now(), asked);
        life.vendor.say("alice", "home", "/approve");
        life.until("an answer", |vendor| vendor.texts("home").len() == 2).await;
        assert_eq!(life.now(), asked);
    });
    assert_eq!(witness.seen("told"), ["alice: stop", "alice: approve"]);
    assert_eq!(witness.seen("asked"), [""; 0]);
}

#[test]
fn a_command_can_be_turned_into_another_one_and_is_still_subject_to_who_may_give_it() {
    let turns = |name: &str| match name {
        "again" => Commanded::Rewritten("/restart".into()),
        "who" => Commanded::Rewritten("/whoami".into()),
        "say" => Commanded::Rewritten("hello from the watcher".into()),
        _ => Commanded::Goes,
    };
    let (mut world, _) = watched(Witness { decide: Box::new(turns), ..Witness::new() });
    let tiers = Tiers {
        admins: [SenderId::literal("alice")].into(),
        others: ["again", "say"].map(str::to_owned).into(),
        ..Tiers::default()
    };
    let direct = RoomRules { tiers: Arc::new(tiers), ..RoomRules::default() };
    world.accounts[0].1 = Access { direct, ..Access::only(["ben"].map(SenderId::literal)) };
    world.live(async |life| {
        life.vendor.say("ben", "home", "/again");
        let texts = life.texts("home", 1).await;
        assert!(texts[0].contains("`/restart` is for administrators"), "{texts:?}");
        life.vendor.say("ben", "home", "/say");
        assert_eq!(life.texts("home", 2).await[1], "echo: hello from the watcher");
    });
}

#[test]
fn a_stranger_who_would_be_given_a_code_is_asked_about_and_others_are_told_of() {
    let look = |text: &str| match text {
        "spam" => Arriving::Dropped("spam".into()),
        _ => Arriving::Goes,
    };
    let witness = || Witness { look: Box::new(look), ..Witness::answering() };
    for strangers in [Strangers::Pair, Strangers::Ignore] {
        let (mut world, witness) = watched(witness().thinking(Duration::from_secs(1)));
        world.accounts[0].1 = Access { strangers, ..Access::only([SenderId::literal("alice")]) };
        world.live(async |life| {
            life.vendor.say("mallory", "mallorys", "spam");
            life.vendor.say("eve", "eves", "/deploy");
            life.vendor.say("alice", "home", "spam");
            life.vendor.say("alice", "home", "hello");
            assert_eq!(life.texts("home", 1).await, ["echo: hello"]);
            life.pass_seconds(5).await;
            life.quiet().await;
            assert_eq!(life.vendor.texts("mallorys"), [""; 0], "dropped");
            let codes = usize::from(strangers == Strangers::Pair);
            assert_eq!(life.vendor.texts("eves").len(), codes);
            assert_eq!(life.disk.counts().await.unwrap().denied, 2);
        });
        let mut asked = witness.seen("arriving");
        asked.sort();
        let told = witness.seen("arrived");
        match strangers {
            Strangers::Pair => {
                let all = ["alice: hello", "alice: spam", "eve: /deploy", "mallory: spam"];
                assert_eq!((asked, told.len()), (all.map(str::to_owned).to_vec(), 0));
            }
            _ => {
                assert_eq!(asked, ["alice: hello", "alice: spam"]);
                assert_eq!(told, ["mallory: spam", "eve: /deploy"]);
            }
        }
        assert_eq!(witness.seen("asked"), [""; 0]);
    }
}

#[test]
fn a_code_that_a_watcher_finds_in_something_lets_in() {
    let look = |text: &str| match text.strip_prefix("my code is ") {
        Some(code) => Arriving::Rewritten(code.to_owned()),
        None => Arriving::Goes,
    };
    let (mut world, _) = watched(Witness { look: Box::new(look), ..Witness::new() });
    let access = Access::only([SenderId::literal("alice")]);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..access };
    world.live(async |life| {
        let account = life.vendor.account();
        let issued = life.gateway.pair(&account, &PairWish::Issue(Reach::Direct), "operator").await;
        let Ok(Paired::Code(code)) = issued else { panic!("{issued:?}") };
        life.vendor.say("ann", "anns", &format!("my code is {}", code.expose()));
        assert_eq!(life.texts("anns", 1).await, ["Paired! You are let in; say what you need."]);
    });
}

#[test]
fn a_change_is_a_command_only_where_it_is_answered() {
    for edits in [Edits::Ignored, Edits::Answered] {
        let (mut world, witness) = watched(Witness::answering());
        world.rules.edits = edits;
        world.live(async |life| {
            let message = |text: &str| {
                let id = Some(MessageId::literal("m"));
                Message { id, text: text.into(), ..Message::default() }
            };
            let home = life.vendor.dm("home");
            life.vendor.does("alice", home.clone(), InboundKind::Said(message("hello")));
            life.texts("home", 1).await;
            life.vendor.does("alice", home, InboundKind::Edited(message("/deploy")));
            life.pass_seconds(5).await;
            life.quiet().await;
        });
        let asked = witness.seen("asked");
        match edits {
            Edits::Ignored => assert_eq!(asked, [""; 0]),
            Edits::Answered => assert_eq!(asked, ["alice: deploy"]),
        }
        assert_eq!(witness.seen("arriving").len(), 2, "what is read by the agent is shown");
    }
}

#[test]
fn turns_are_told_of_from_their_first_word_to_their_last() {
    let works = agent(|stage| async move {
        for (tool, arguments) in [("look", "{\"at\":1}"), ("touch", "{}")] {
            let id = CallId::literal(tool);
            let call = ToolCall { id, tool: tool.into(), arguments: arguments.into() };
            stage
                .emit(AgentEvent::Stepped {
                    text: String::new(),
                    files: vec![],
                    calls: vec![call],
                    reasoning: None,
                    usage: Usage::default(),
                    cost: Cost::FREE,
                })
                .await;
            SystemClock.sleep(Duration::from_secs(3)).await;
            if tool == "look" {
                stage
                    .emit(AgentEvent::Called {
                        call: CallId::literal(tool),
                        output: String::new(),
                        files: vec![],
                        sends: vec![],
                        failed: false,
                        refused: None,
                    })
                    .await;
                SystemClock.sleep(Duration::from_secs(2)).await;
            }
        }
        let answer = stage.echo();
        stage.finish(&answer).await;
    });
    let (world, witness) = watched(Witness::new());
    world.with_agent(works).live(async |life| {
        life.vendor.say("alice", "home", "one");
        life.texts("home", 1).await;
        life.vendor.say("alice", "home", "two");
        life.texts("home", 2).await;
        life.vendor.say("alice", "home", "/new");
        life.quiet().await;
    });
    let expected = [
        "began",
        "turn: one",
        "step 1: look {\"at\":1} 3 s in 3 s",
        "step 2: touch {} in 3 s",
        "answered: one -> echo: one",
        "turn: two",
        "step 1: look {\"at\":1} 3 s in 3 s",
        "step 2: touch {} in 3 s",
        "answered: two -> echo: two",
        "ended: Retired(New)",
        "renewed",
        "began",
    ];
    assert_eq!(witness.seen("happened"), expected);
}

#[test]
fn the_end_of_a_conversation_that_nobody_goes_on_with_is_told_when_it_is_put_away_and_not_again() {
    for (next, expected) in [
        (
            "hello again",
            &["began", "turn: hello again", "answered: hello again -> echo: hello again"][..],
        ),
        ("/new", &["renewed", "began"]),
    ] {
        let (mut world, witness) = watched(Witness::new());
        world.rules.reset.idle = Duration::from_secs(120);
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", 1).await;
            life.pass_seconds(600).await;
            let seen = witness.seen("happened");
            assert_eq!(seen.last().map(String::as_str), Some("ended: Expired"), "{seen:?}");
            life.vendor.say("alice", "home", next);
            life.texts("home", 2).await;
            life.quiet().await;
            assert_eq!(witness.seen("happened")[seen.len()..], *expected, "after {next}");
        });
    }
}

#[test]
fn whoever_watches_is_told_all_of_what_nobody_answers() {
    let (mut world, witness) = watched(Witness::new());
    let access = Access::only([SenderId::literal("alice")]);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..access };
    let (chatter, greeting) = ("lunch? ".repeat(100), "hello ".repeat(100));
    world.live(async |life| {
        let addressed = Addressed::ToOthers;
        let said = Message { text: chatter.clone(), addressed, ..Message::default() };
        life.vendor.does("alice", life.vendor.group("team"), InboundKind::Said(said));
        life.vendor.say("mallory", "mallorys", &greeting);
        life.texts("mallorys", 1).await;
    });
    assert_eq!(witness.seen("arrived"), [format!("alice: {chatter}")]);
    assert_eq!(witness.seen("arriving"), [format!("mallory: {greeting}")]);
}

#[test]
fn a_stranger_who_is_put_on_the_list_while_somebody_thinks_gets_no_code() {
    let (mut world, _) = watched(Witness::new().thinking(Duration::from_secs(5)));
    let access = Access::only([SenderId::literal("alice")]);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..access };
    world.live(async |life| {
        life.vendor.say("ann", "anns", "hello");
        life.pass_seconds(1).await;
        let listed = ["alice", "ann"].map(SenderId::literal);
        let access = Access { strangers: Strangers::Pair, ..Access::only(listed) };
        life.gateway.set_access(&life.vendor.account(), access);
        life.pass_seconds(10).await;
        life.vendor.say("ann", "anns", "hello?");
        assert_eq!(life.texts("anns", 1).await, ["echo: hello?"]);
    });
}
