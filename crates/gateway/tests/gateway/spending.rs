//! What is spent is written down with what spends it, and when nothing is left, nobody is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use talaria_agent::Agent;
use talaria_model::{
    AccountId, AgentEvent, ChatId, ChatKind, Cost, EventId, Failure, Inbound, InboundKind, Message,
    Sender, SenderId, Source, Usage, Used, Word,
};
use talaria_platform::Bursts;
use talaria_session::budget::{Budget, Budgets, Day, Payer, Spent};
use talaria_session::{Access, Busy, GroupSessions, Person, Role, Scope};
use tokio::sync::Semaphore;

use crate::world::{End, Hears, Keeps, Life, SIMPLE, World, agent, finished, keyed};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What one step uses: 100 tokens, for a tenth of a cent.
const USAGE: Usage = Usage { input: 60, output: 40, reasoning: 10, ..Usage::NONE };
const COST: Cost = Cost::known(1_000);

fn messages(limit: u64) -> Budget {
    Budget { messages: Some(limit), ..Budget::NONE }
}

fn tokens(limit: u64) -> Budget {
    Budget { tokens: Some(limit), ..Budget::NONE }
}

fn person(name: &str, budget: Option<Budget>) -> Arc<Person> {
    let role = Role { name: "family".into(), budget, ..Role::default() };
    Arc::new(Person { name: name.into(), role: Some(Arc::new(role)) })
}

/// Everybody is heard, and limited like this.
fn limited(budgets: Budgets) -> World {
    let mut world = World::new(keyed(SIMPLE)).with_agent(spending());
    world.accounts[0].1.budgets = budgets;
    world
}

fn guests(guest: Budget) -> World {
    limited(Budgets { guest, ..Budgets::default() })
}

fn answered(text: &str) -> AgentEvent {
    match finished(text) {
        AgentEvent::Finished { text, files, reasoning, .. } => {
            AgentEvent::Finished { text, files, reasoning, usage: USAGE, cost: COST }
        }
        other => other,
    }
}

fn stepped(text: &str) -> AgentEvent {
    let (text, files, calls) = (text.to_owned(), vec![], vec![]);
    AgentEvent::Stepped { text, files, calls, reasoning: None, usage: USAGE, cost: COST }
}

/// Answers with what was said, for what a step costs.
fn spending() -> Arc<dyn Agent> {
    agent(|stage| async move {
        let answer = stage.echo();
        stage.emit(answered(&answer)).await;
    })
}

fn sender(who: &'static str) -> Payer {
    Payer::Sender(AccountId::literal("main"), SenderId::literal(who))
}

fn chat(name: &'static str) -> Payer {
    Payer::Chat(AccountId::literal("main"), ChatId::literal(name))
}

async fn spent(life: &Life, payer: &Payer) -> Spent {
    let today = Day::of(life.now(), &talaria_session::Rules::default().zone);
    life.disk.kept.spent(today, payer).await.unwrap()
}

fn of(messages: u64, steps: u64) -> Spent {
    Spent { messages, tokens: steps * 100, micros: steps * 1_000 }
}

/// Says something and waits for one more message.
async fn say(life: &Life, who: &str, text: &str) -> String {
    let before = life.vendor.texts("home").len();
    life.vendor.say(who, "home", text);
    life.texts("home", before + 1).await.pop().unwrap()
}

#[test]
fn what_an_answer_takes_is_written_down_whether_anything_is_limited_or_not() {
    World::new(SIMPLE).with_agent(spending()).live(async |life| {
        assert_eq!(say(life, "alice", "hello").await, "echo: hello");
        assert_eq!(say(life, "alice", "again").await, "echo: again");
        assert_eq!(spent(life, &sender("alice")).await, of(2, 2));
        assert_eq!(spent(life, &chat("home")).await, of(2, 2));
        assert_eq!(spent(life, &sender("bob")).await, Spent::default());
    });
}

#[test]
fn when_no_message_is_left_the_agent_is_not_asked_and_the_person_is_told() {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = turns.clone();
    let mut world = guests(messages(2)).with_agent(agent(move |stage| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { stage.emit(answered("yes")).await }
    }));
    world.live(async |life| {
        assert_eq!(say(life, "alice", "one").await, "yes");
        assert_eq!(say(life, "alice", "two").await, "yes");
        let told = say(life, "alice", "three").await;
        assert!(told.starts_with("Your budget of 2 messages a day is used up: 2 today."), "{told}");
        assert!(told.contains("It begins anew on ") && told.ends_with(" 00:00."), "{told}");
        assert!(say(life, "alice", "four").await.starts_with("Your budget"));
        assert_eq!(turns.load(Ordering::Relaxed), 2, "nobody was asked");
        assert_eq!(spent(life, &sender("alice")).await, of(2, 2), "what is refused is not counted");
        assert_eq!(say(life, "bob", "hello").await, "yes", "another has their own");
    });
}

#[test]
fn spending_outlives_the_process_and_not_the_day() {
    let mut world = guests(messages(1));
    world.live(async |life| {
        assert_eq!(say(life, "alice", "one").await, "echo: one");
    });
    world.live(async |life| {
        assert!(say(life, "alice", "two").await.starts_with("Your budget"));
        life.pass(DAY).await;
        assert_eq!(say(life, "alice", "three").await, "echo: three");
        assert!(say(life, "alice", "four").await.starts_with("Your budget"));
    });
}

#[test]
fn tokens_and_money_are_limited_too() {
    let money = Budget { micros: Some(1_000), ..Budget::NONE };
    for (budget, sentence) in [
        (tokens(100), "Your budget of 100 tokens a day is used up: 100 today."),
        (money, "Your budget of $0.0010 a day is used up: $0.0010 today."),
    ] {
        guests(budget).live(async |life| {
            assert_eq!(say(life, "alice", "one").await, "echo: one");
            let told = say(life, "alice", "two").await;
            assert!(told.starts_with(sentence), "{told}");
        });
    }
}

#[test]
fn a_turn_that_has_spent_everything_is_stopped_and_says_so() {
    let mut world = guests(tokens(250)).with_agent(agent(|stage| async move {
        for step in 1..100 {
            stage.emit(stepped(&format!("step {step}"))).await;
        }
        stage.emit(answered("done")).await;
    }));
    world.live(async |life| {
        life.vendor.say("alice", "home", "work");
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert_eq!(texts[..3], ["step 1", "step 2", "step 3"]);
        assert_eq!(texts.len(), 4, "{texts:?}");
        let told = &texts[3];
        let begins = "I stopped here. Your budget of 250 tokens a day is used up: 300 today.";
        assert!(told.starts_with(begins), "{told}");
        assert_eq!(spent(life, &sender("alice")).await, of(1, 3));
        assert!(say(life, "alice", "go on").await.starts_with("Your budget"), "nothing is left");
    });
}

/// Whether an agent listens when it is told to stop.
#[derive(Clone, Copy)]
enum Ear {
    Open,
    Deaf,
}

/// Begins an answer that people can read, has used what a step takes by then, and never comes to its end.
fn breaking_off(ear: Ear) -> Arc<dyn Agent> {
    agent(move |mut stage| async move {
        let used = Used { usage: Usage::estimate(100), cost: Cost::estimated(1_000) };
        stage.show_for("Once upon a time", used);
        while !matches!((stage.hear().await, ear), (Word::Stop, Ear::Open)) {}
        let (failure, said) = (Failure::Stopped, "Once upon a time".to_owned());
        let Used { usage, cost } = used;
        stage.emit(AgentEvent::Failed { failure, said, usage, cost }).await;
    })
}

#[test]
fn whoever_breaks_every_answer_off_pays_for_what_was_written() {
    let money = Budget { micros: Some(2_500), ..Budget::NONE };
    for (budget, sentence) in [
        (tokens(250), "Your budget of 250 tokens a day is used up: 300 today."),
        (money, "Your budget of $0.0025 a day is used up: $0.0030 today."),
    ] {
        for (ear, cut) in [
            (Ear::Open, None),
            (Ear::Open, Some("/stop")),
            (Ear::Open, Some("/new")),
            (Ear::Deaf, None),
            (Ear::Deaf, Some("/stop")),
        ] {
            let mut world = guests(budget).with_agent(breaking_off(ear));
            world.rules.busy = Busy::Interrupt;
            world.live(async |life| {
                for _ in 0..4 {
                    life.vendor.say("alice", "home", "tell me a story");
                    life.pass(Duration::from_secs(5)).await;
                    if let Some(cut) = cut {
                        life.vendor.say("alice", "home", cut);
                        life.pass(Duration::from_secs(5)).await;
                    }
                }
                let texts = life.vendor.texts("home");
                assert!(texts.iter().any(|text| text.starts_with(sentence)), "{cut:?} {texts:?}");
                let spent = spent(life, &sender("alice")).await;
                assert_eq!((spent.tokens, spent.micros), (300, 3_000), "{cut:?}");
            });
        }
    }
}

/// Takes up whatever it is told until somebody says that this is all.
fn taking_up() -> Arc<dyn Agent> {
    agent(|mut stage| async move {
        let mut heard = 0;
        loop {
            if let Word::Steer(steer) = stage.hear().await {
                stage.took(vec![steer.seq]).await;
                heard += 1;
                if steer.message.text == "that is all" {
                    return stage.emit(answered(&format!("heard {heard}"))).await;
                }
            }
        }
    })
}

#[test]
fn what_steers_a_turn_is_a_message_too() {
    for how in ["", "/steer "] {
        let mut world = guests(messages(3)).with_agent(taking_up());
        world.rules.busy = if how.is_empty() { Busy::Steer } else { Busy::Queue };
        world.live(async |life| {
            for text in ["work", "and this", "and that", "and more", "and more"] {
                let command = if text == "work" { "" } else { how };
                life.vendor.say("alice", "home", &format!("{command}{text}"));
                life.pass(Duration::from_secs(40)).await;
            }
            let texts = life.vendor.texts("home");
            let refused = "Your budget of 3 messages a day is used up: 3 today.";
            let refusals = texts.iter().filter(|text| text.starts_with(refused)).count();
            assert_eq!(refusals, 2, "{how:?} {texts:?}");
            assert_eq!(spent(life, &sender("alice")).await.messages, 3, "{how:?}");
        });
    }
}

#[test]
fn the_last_message_steers_one_turn_of_several_that_go_on_at_once() {
    for seed in 0..20_u64 {
        let mut world = guests(messages(3)).with_agent(taking_up());
        world.rules.busy = Busy::Steer;
        world.live(async |life| {
            for chat in ["home", "den"] {
                life.vendor.say("alice", chat, "work");
            }
            life.pass_seconds(5).await;
            life.disk.lags(Duration::from_millis(seed));
            for chat in ["home", "den"] {
                life.vendor.say("alice", chat, "that is all");
            }
            life.pass_seconds(5).await;
            let texts = [life.vendor.texts("home"), life.vendor.texts("den")].concat();
            let answers = texts.iter().filter(|text| *text == "heard 1").count();
            let refused = "Your budget of 3 messages a day is used up: 3 today.";
            let refusals = texts.iter().filter(|text| text.starts_with(refused)).count();
            assert_eq!((answers, refusals), (1, 1), "{seed}: {texts:?}");
            assert_eq!(spent(life, &sender("alice")).await.messages, 3, "{seed}");
        });
    }
}

#[test]
fn what_steers_a_turn_counts_once_whether_that_takes_it_up_or_the_next_one_does() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let deaf = agent(move |stage| {
        let held = held.clone();
        async move {
            held.acquire().await.unwrap().forget();
            let answer = stage.echo();
            stage.emit(answered(&answer)).await;
        }
    });
    let mut world = guests(messages(2)).with_agent(deaf);
    world.rules.busy = Busy::Steer;
    world.live(async |life| {
        life.vendor.say("alice", "home", "one");
        life.pass_seconds(5).await;
        life.vendor.say("alice", "home", "two");
        life.pass_seconds(5).await;
        gate.add_permits(2);
        assert_eq!(life.texts("home", 2).await, ["echo: one", "echo: two"], "it was paid for");
        life.quiet().await;
        assert_eq!(spent(life, &sender("alice")).await, of(2, 2));
    });
}

const BURSTS: Bursts = Bursts {
    split_at: Some(100),
    text: Duration::from_secs(1),
    album: Duration::ZERO,
    pictures: Duration::ZERO,
};

/// The same world on a platform that delivers a long text in parts.
pub(crate) fn bursting(budget: Budget, agent: Arc<dyn Agent>) -> World {
    let mut world = World::empty(Keeps::Last).with_agent(agent);
    world.add_bursting("main", keyed(SIMPLE), Hears::Requests, BURSTS);
    world.accounts[0].1.budgets = Budgets { guest: budget, ..Budgets::default() };
    world
}

/// A text that arrives as three messages.
pub(crate) fn say_at_length(life: &Life) {
    for text in ["x".repeat(100), "y".repeat(100), "that is all".to_owned()] {
        life.vendor.say("alice", "home", &text);
    }
}

#[test]
fn parts_of_one_message_count_each_and_are_taken_up_whole_as_long_as_one_is_left() {
    bursting(messages(2), spending()).live(async |life| {
        say_at_length(life);
        let texts = life.texts("home", 1).await;
        assert!(texts[0].starts_with("echo: "), "{texts:?}");
        life.quiet().await;
        assert_eq!(spent(life, &sender("alice")).await, of(3, 1), "one answer to three messages");
        let told = say(life, "alice", "and?").await;
        assert!(told.starts_with("Your budget of 2 messages a day is used up: 3 today."), "{told}");
    });
    let mut world = bursting(messages(2), taking_up());
    world.rules.busy = Busy::Steer;
    world.live(async |life| {
        life.vendor.say("alice", "home", "work");
        life.pass(Duration::from_secs(5)).await;
        say_at_length(life);
        assert_eq!(life.texts("home", 1).await, ["heard 3"], "one was left");
        life.quiet().await;
        assert_eq!(spent(life, &sender("alice")).await, of(4, 1));
        assert!(say(life, "alice", "and?").await.starts_with("Your budget of 2 messages"));
    });
}

#[test]
fn parts_that_no_turn_has_taken_up_yet_are_counted_before_another_message_is() {
    let mut world = bursting(messages(4), agent(|_| std::future::pending()));
    world.rules.busy = Busy::Steer;
    world.live(async |life| {
        life.vendor.say("alice", "home", "work");
        life.pass(Duration::from_secs(5)).await;
        say_at_length(life);
        life.pass(Duration::from_secs(5)).await;
        assert_eq!(life.vendor.texts("home").len(), 0, "three are left for it");
        let told = say(life, "alice", "and this").await;
        assert!(told.starts_with("Your budget of 4 messages a day is used up: 4 today."), "{told}");
    });
}

#[test]
fn the_rest_of_the_last_message_is_answered_with_it_and_what_was_refused_stays_so() {
    let waiting_for_more = agent(|mut stage| async move {
        let answer = stage.echo();
        while !answer.contains("this") && stage.hear().await != Word::Stop {}
        match answer.contains("this") {
            true => stage.emit(answered(&answer)).await,
            false => stage.fail(Failure::Stopped).await,
        }
    });
    let mut world = guests(messages(1)).with_agent(waiting_for_more);
    world.rules.busy = Busy::Interrupt;
    world.live(async |life| {
        life.vendor.say("alice", "home", "Look at");
        life.pass(Duration::from_secs(1)).await;
        life.vendor.say("alice", "home", "this");
        let texts = life.texts("home", 1).await;
        assert!(texts[0].starts_with("echo: ") && texts[0].contains("this"), "{texts:?}");
        life.quiet().await;
        assert_eq!(spent(life, &sender("alice")).await.messages, 2, "each is a message");
        for text in ["and", "this", "too"] {
            life.vendor.say("alice", "home", text);
        }
        life.quiet().await;
        let texts = life.vendor.texts("home");
        assert!(
            texts[1..].iter().all(|text| text.starts_with("Your budget of 1 message")),
            "{texts:?}"
        );
        assert_eq!(spent(life, &sender("alice")).await.messages, 2);
    });
}

#[test]
fn the_last_message_is_answered_to_its_end() {
    let mut world = guests(messages(1)).with_agent(agent(|stage| async move {
        stage.emit(stepped("one moment")).await;
        stage.emit(answered("done")).await;
    }));
    world.live(async |life| {
        life.vendor.say("alice", "home", "hello");
        assert_eq!(life.texts("home", 2).await, ["one moment", "done"]);
    });
}

#[test]
fn two_identities_of_one_person_share_one_budget() {
    let mut world = World::new(SIMPLE).with_agent(spending());
    let other = world.add("other", SIMPLE);
    let ann = person("ann", Some(messages(2)));
    for (account, id) in [(0, "alice"), (1, "annie")] {
        world.accounts[account].1.people = BTreeMap::from([(SenderId::literal(id), ann.clone())]);
    }
    world.live(async |life| {
        assert_eq!(say(life, "alice", "one").await, "echo: one");
        other.say("annie", "den", "two");
        life.quiet().await;
        assert_eq!(other.texts("den"), ["echo: two"]);
        assert!(say(life, "alice", "three").await.starts_with("Your budget of 2 messages"));
        other.say("annie", "den", "four");
        life.quiet().await;
        assert!(other.texts("den")[1].starts_with("Your budget of 2 messages"));
        assert_eq!(spent(life, &Payer::Person("ann".into())).await, of(2, 2));
        assert_eq!(spent(life, &sender("alice")).await, Spent::default());
    });
}

#[test]
fn the_last_message_is_not_answered_twice_to_who_writes_from_two_places_at_once() {
    for seed in 0..20_u64 {
        let mut world = World::new(SIMPLE).with_agent(spending());
        let other = world.add("other", SIMPLE);
        let ann = person("ann", Some(messages(1)));
        for (account, id) in [(0, "alice"), (1, "annie")] {
            let known = BTreeMap::from([(SenderId::literal(id), ann.clone())]);
            world.accounts[account].1.people = known;
        }
        world.disk.lags(Duration::from_millis(seed));
        world.live(async |life| {
            life.vendor.say("alice", "home", "one");
            other.say("annie", "den", "one");
            life.quiet().await;
            let texts = [life.vendor.texts("home"), other.texts("den")].concat();
            let answers = texts.iter().filter(|text| *text == "echo: one").count();
            assert_eq!((answers, texts.len()), (1, 2), "{texts:?}");
            assert_eq!(spent(life, &Payer::Person("ann".into())).await, of(1, 1));
        });
    }
}

#[test]
fn a_chat_has_a_budget_of_its_own_for_all_who_write_in_it() {
    let mut world = limited(Budgets { chat: messages(2), ..Budgets::default() });
    world.scope = Scope { groups: GroupSessions::PerMember, ..Scope::default() };
    world.live(async |life| {
        let all = life.vendor.group("all");
        for who in ["alice", "bob", "carol"] {
            life.vendor.say_in_group(who, "all", "hello");
            life.quiet().await;
        }
        let texts = life.vendor.texts_at(&all);
        assert_eq!(texts[..2], ["echo: hello", "echo: hello"]);
        assert!(texts[2].starts_with("This chat's budget of 2 messages a day"), "{texts:?}");
        assert_eq!(spent(life, &chat("all")).await, of(2, 2));
        assert_eq!(say(life, "carol", "alone").await, "echo: alone", "another chat");
    });
}

/// Something said in a thread of a channel, where each thread is a chat of its own.
fn in_thread(life: &Life, who: &str, thread: &str, text: &str) -> Inbound {
    let mut to = life.vendor.group(thread);
    to.chat.kind = ChatKind::Thread;
    Inbound {
        id: EventId::new(format!("{thread}: {text}")).unwrap(),
        at: life.now(),
        from: Sender::new(SenderId::new(who).unwrap()),
        to,
        source: Source { parent: Some(ChatId::literal("lab")), ..Source::default() },
        kind: InboundKind::Said(Message { text: text.into(), ..Message::default() }),
    }
}

/// Says something in a thread and waits for one more message there.
async fn say_in_thread(life: &Life, who: &str, thread: &str, text: &str) -> String {
    let said = in_thread(life, who, thread, text);
    let at = said.to.clone();
    let before = life.vendor.texts_at(&at).len();
    life.vendor.deliver(said);
    life.until("an answer", |vendor| vendor.texts_at(&at).len() > before).await;
    life.vendor.texts_at(&at).pop().unwrap()
}

#[test]
fn the_threads_of_a_channel_share_its_budget() {
    let mut world = limited(Budgets { chat: messages(2), ..Budgets::default() });
    world.live(async |life| {
        assert_eq!(say_in_thread(life, "alice", "t1", "one").await, "echo: one");
        let told = say_in_thread(life, "alice", "t2", "/whoami").await;
        assert!(told.contains("Left of this chat's budget today: 1 of 2 messages."), "{told}");
        assert_eq!(say_in_thread(life, "bob", "t2", "two").await, "echo: two");
        let told = say_in_thread(life, "carol", "t3", "three").await;
        assert!(told.starts_with("This chat's budget of 2 messages a day"), "{told}");
        assert_eq!(spent(life, &chat("lab")).await, of(2, 2));
        assert_eq!(spent(life, &chat("t1")).await, Spent::default());
        life.vendor.say_in_group("dave", "lab", "and here?");
        let lab = life.vendor.group("lab");
        life.until("a refusal", |vendor| !vendor.texts_at(&lab).is_empty()).await;
        assert!(life.vendor.texts_at(&lab)[0].starts_with("This chat's budget"));
    });
    world.live(async |life| {
        let told = say_in_thread(life, "alice", "t1", "after a restart").await;
        assert!(told.starts_with("This chat's budget of 2 messages a day"), "{told}");
        life.vendor.deliver(in_thread(life, "alice", "t4", "/background four"));
        let at = in_thread(life, "alice", "t4", "").to;
        let is_refused = |text: &String| text.contains("This chat's budget of 2 messages a day");
        life.until("a refusal", |vendor| vendor.texts_at(&at).iter().any(is_refused)).await;
    });
}

#[test]
fn a_thread_counts_for_its_channel_as_soon_as_it_is_known_to_belong_to_it() {
    let mut world = limited(Budgets { chat: messages(2), ..Budgets::default() });
    world.live(async |life| {
        let mut unknown = in_thread(life, "alice", "t1", "one");
        unknown.source.parent = None;
        let at = unknown.to.clone();
        life.vendor.deliver(unknown);
        life.until("an answer", |vendor| vendor.texts_at(&at).len() == 1).await;
        assert_eq!(spent(life, &chat("t1")).await, of(1, 1));
        assert_eq!(say_in_thread(life, "alice", "t1", "two").await, "echo: two");
        assert_eq!(spent(life, &chat("lab")).await, of(1, 1));
    });
}

#[test]
fn what_a_role_says_goes_before_what_everybody_may_and_a_change_holds_at_once() {
    let mut world = guests(messages(0));
    world.accounts[0].1.people =
        BTreeMap::from([(SenderId::literal("alice"), person("ann", Some(messages(1))))]);
    let free = Access { budgets: Budgets::default(), ..world.accounts[0].1.clone() };
    world.live(async |life| {
        assert!(say(life, "bob", "hello").await.starts_with("Your budget of 0 messages"));
        assert_eq!(say(life, "alice", "hello").await, "echo: hello");
        assert!(say(life, "alice", "again").await.starts_with("Your budget of 1 message a day"));
        life.gateway.set_access(&AccountId::literal("main"), free);
        assert_eq!(say(life, "bob", "hello").await, "echo: hello");
    });
}

#[test]
fn who_asks_is_told_who_they_are_and_what_is_left() {
    let mut world = limited(Budgets { chat: tokens(1_000), ..Budgets::default() });
    world.accounts[0].1.people =
        BTreeMap::from([(SenderId::literal("alice"), person("ann", Some(messages(3))))]);
    world.live(async |life| {
        say(life, "alice", "hello").await;
        let told = say(life, "alice", "/whoami").await;
        for part in [
            "I know you as ann, whose role is family.",
            "Left of your budget today: 2 of 3 messages.",
            "Left of this chat's budget today: 900 of 1.0k tokens.",
            "It begins anew on ",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(
            spent(life, &Payer::Person("ann".into())).await.messages,
            1,
            "a command is free"
        );
    });
    World::new(SIMPLE).live(async |life| {
        let told = say(life, "alice", "/whoami").await;
        assert!(!told.contains("budget") && !told.contains("I know you"), "{told}");
    });
}

#[test]
fn a_store_that_cannot_say_what_was_spent_lets_nobody_spend() {
    let mut world = guests(messages(1));
    world.live(async |life| {
        assert_eq!(say(life, "alice", "one").await, "echo: one");
        life.disk.fails(crate::world::Verb::Spent, 3);
        assert!(say(life, "alice", "two").await.starts_with("Your budget"));
        assert_eq!(spent(life, &sender("alice")).await, of(1, 1));
    });
}

#[test]
fn whenever_the_process_dies_each_message_and_step_is_counted_once() {
    for moment in 0.. {
        let mut world = guests(tokens(250));
        world.rules.busy = Busy::Queue;
        let vendor = world.vendor();
        vendor.say("alice", "home", "one");
        vendor.say("alice", "home", "two");
        vendor.say("bob", "den", "three");
        let end = world.live_and_die(moment, async |life| life.quiet().await);
        world.live(async |life| {
            life.quiet().await;
            let heard = spent(life, &sender("alice")).await;
            assert_eq!(heard.messages, 2, "dying at {moment}");
            // An answer that was cut off before it was durable is given again, and what it took until
            // then is not known: what is durable is counted, once.
            let answers =
                vendor.texts("home").iter().filter(|text| text.starts_with("echo")).count();
            assert!(heard.tokens <= 200 && heard.tokens >= 100, "dying at {moment}: {heard:?}");
            assert!(answers >= 1, "dying at {moment}");
            assert_eq!(spent(life, &chat("home")).await, heard, "dying at {moment}");
            assert_eq!(spent(life, &sender("bob")).await, of(1, 1), "dying at {moment}");
        });
        if end == End::Over {
            assert!(moment > 10, "{moment}");
            break;
        }
    }
}

#[test]
fn a_turn_without_a_budget_left_is_refused_after_a_restart_too() {
    // The first step spends all of it; the process dies wherever it can.
    for moment in 0.. {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let mut world = guests(tokens(50)).with_agent(agent(move |stage| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                stage.emit(stepped("step")).await;
                stage.emit(answered("never")).await;
            }
        }));
        let vendor = world.vendor();
        vendor.say("alice", "home", "work");
        let end = world.live_and_die(moment, async |life| life.quiet().await);
        world.live(async |life| {
            life.quiet().await;
            let texts = vendor.texts("home");
            assert!(!texts.iter().any(|text| text == "never"), "dying at {moment}: {texts:?}");
            let refusals = texts.iter().filter(|text| text.contains("Your budget of 50 tokens"));
            assert_eq!(refusals.count(), 1, "dying at {moment}: {texts:?}");
            assert_eq!(spent(life, &sender("alice")).await.messages, 1, "dying at {moment}");
        });
        if end == End::Over {
            break;
        }
    }
}

#[test]
fn a_role_narrows_the_tools_of_a_turn_and_what_is_taken_away_is_gone_at_once() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let mut world = World::new(SIMPLE).with_agent(agent(move |stage| {
        let gate = opened.clone();
        async move {
            let may = |tool: &str| stage.turn.tools.permits(tool);
            let first = (may("look"), may("pay"));
            stage.emit(stepped(&format!("{first:?}"))).await;
            gate.acquire().await.unwrap().forget();
            stage.emit(answered(&format!("{:?}", (may("look"), may("pay"))))).await;
        }
    }));
    let tools = Some(BTreeSet::from(["look".to_owned()]));
    let role = Role { name: "guest".into(), tools, ..Role::default() };
    let ann = Arc::new(Person { name: "ann".into(), role: Some(Arc::new(role)) });
    world.accounts[0].1.people = BTreeMap::from([(SenderId::literal("alice"), ann)]);
    let known = world.accounts[0].1.clone();
    let none = Role { name: "guest".into(), tools: Some(BTreeSet::new()), ..Role::default() };
    let nothing = Arc::new(Person { name: "ann".into(), role: Some(Arc::new(none)) });
    world.live(async |life| {
        assert_eq!(say(life, "bob", "hello").await, "(true, true)");
        gate.add_permits(1);
        assert_eq!(life.texts("home", 2).await[1], "(true, true)");
        assert_eq!(say(life, "alice", "hello").await, "(true, false)");
        let people = BTreeMap::from([(SenderId::literal("alice"), nothing)]);
        life.gateway.set_access(&AccountId::literal("main"), Access { people, ..known });
        gate.add_permits(1);
        assert_eq!(life.texts("home", 4).await[3], "(false, false)");
    });
}

#[test]
fn whoever_is_put_out_while_they_are_answered_has_no_tools_from_then_on() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let mut world = World::new(SIMPLE).with_agent(agent(move |stage| {
        let gate = opened.clone();
        async move {
            stage.emit(stepped(&format!("{}", stage.turn.tools.permits("pay")))).await;
            gate.acquire().await.unwrap().forget();
            stage.emit(answered(&format!("{}", stage.turn.tools.permits("pay")))).await;
        }
    }));
    world.accounts[0].1 = Access::only([SenderId::literal("alice")]);
    world.live(async |life| {
        assert_eq!(say(life, "alice", "hello").await, "true");
        life.gateway.set_access(&AccountId::literal("main"), Access::closed());
        gate.add_permits(1);
        assert_eq!(life.texts("home", 2).await[1], "false", "what was begun is finished without");
    });
}

#[test]
fn nothing_is_summarised_for_whoever_has_no_message_left() {
    let worked = Arc::new(AtomicUsize::new(0));
    let seen = worked.clone();
    let works = agent(move |stage| {
        let seen = seen.clone();
        async move {
            seen.fetch_add(1, Ordering::Relaxed);
            stage.emit(answered("done")).await;
        }
    });
    for (left, works_at_all) in [(2, 2), (1, 1)] {
        worked.store(0, Ordering::Relaxed);
        let mut world = guests(messages(left)).with_agent(works.clone());
        world.live(async |life| {
            life.vendor.say("alice", "home", "hello");
            life.texts("home", 1).await;
            life.vendor.say("alice", "home", "/compress");
            life.quiet().await;
            let texts = life.vendor.texts("home");
            assert_eq!(worked.load(Ordering::Relaxed), works_at_all, "{texts:?}");
            let is_told = texts.iter().any(|text| text.contains("used up"));
            assert_eq!(is_told, works_at_all == 1, "{texts:?}");
        });
    }
}
