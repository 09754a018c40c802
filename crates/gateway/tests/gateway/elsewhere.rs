//! Messages to other chats than the one in which they are asked for: for whom, where, and what is known of
//! them there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use talaria_agent::{Agent, AsksFirst, Destination, Home};
use talaria_gateway::Steward;
use talaria_model::{
    AccountId, Address, Addressed, AgentEvent, CallId, Capabilities, ChatKind, Entry, EntryBody,
    Ids, InboundKind, Message, SenderId, Sending,
};
use talaria_platform::SendError;
use talaria_session::{Access, GroupSessions, Pause, Person, Role, RoomRules, Scope, Tiers};
use talaria_store::{AuditDeed, AuditRow, Audited, Store};

use crate::world::{Conduct, End, Hears, Life, SIMPLE, Vendor, Verb, World, agent, key, keyed};

/// A process that knows where messages can be sent.
#[derive(Default)]
struct Post {
    named: Mutex<Vec<Destination>>,
    homes: Mutex<Vec<Address>>,
    /// Why no home can be kept.
    broken: Option<&'static str>,
}

#[async_trait]
impl Steward for Post {
    fn models(&self) -> Vec<String> {
        Vec::new()
    }
    fn model(&self, name: &str) -> Result<String, String> {
        Err(name.to_owned())
    }
    fn homes(&self) -> Vec<Home> {
        let home = |at: &Address| Home {
            at: at.clone(),
            name: None,
            ids: Ids::Needed,
            platform: "sim".into(),
        };
        self.homes.lock().unwrap().iter().map(home).collect()
    }
    fn destinations(&self) -> Vec<Destination> {
        self.named.lock().unwrap().clone()
    }
    async fn set_home(&self, at: &Address) -> Result<(), String> {
        match self.broken {
            Some(why) => Err(why.to_owned()),
            None => {
                self.homes.lock().unwrap().push(at.clone());
                Ok(())
            }
        }
    }
    fn paused(&self) -> Vec<AccountId> {
        Vec::new()
    }
    async fn keep_paused(&self, _: &AccountId, _: Pause) -> Result<(), String> {
        Ok(())
    }
    fn discreet<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text.into()
    }
    async fn reload(&self, _: &str) -> Result<String, String> {
        Err("no".into())
    }
    async fn restart(&self) -> Result<(), String> {
        Err("no".into())
    }
    async fn run(&self, _: &str) -> Result<String, String> {
        Err("no".into())
    }
}

fn place(name: &str, to: Address) -> Destination {
    Destination { name: name.into(), about: None, to, asks: AsksFirst::No }
}

/// What each turn sees of the places that it may send to.
type Seen = Arc<Mutex<Vec<Vec<String>>>>;

/// Sends what it is told to this place, whatever it may, and answers `sent`. Everybody else is echoed.
fn sending(to: Address, seen: &Seen) -> Arc<dyn Agent> {
    let seen = seen.clone();
    agent(move |stage| {
        let (to, seen) = (to.clone(), seen.clone());
        async move {
            let Some(text) = stage.said().strip_prefix("send ").map(str::to_owned) else {
                let heard = stage.turn.entries.iter().rev().find_map(|entry| match &entry.body {
                    EntryBody::Said { heard, text, .. } => {
                        Some(heard.clone().unwrap_or(text.clone()))
                    }
                    _ => None,
                });
                return stage.finish(&format!("heard: {}", heard.unwrap_or_default())).await;
            };
            let places = stage.turn.elsewhere.places().into_iter().map(|place| place.name);
            seen.lock().unwrap().push(places.collect());
            let (call, output) = (CallId::literal("c"), String::new());
            let sends = vec![Sending { to, text }];
            let called = AgentEvent::Called {
                call,
                output,
                files: vec![],
                sends,
                failed: false,
                refused: None,
            };
            // What returned before a restart is not called again.
            let returned = |entry: &Entry| matches!(entry.body, EntryBody::Returned { .. });
            if !stage.turn.entries.iter().any(returned) {
                stage.emit(called).await;
            }
            stage.finish("sent").await;
        }
    })
}

struct Scene {
    world: World,
    other: Vendor,
    seen: Seen,
    post: Arc<Post>,
}

/// Alice is an administrator of the first account; the family is a chat on another one.
fn scene() -> Scene {
    scene_in(World::new(SIMPLE), SIMPLE)
}

/// The same, in a world where the other account can do this.
fn scene_in(mut world: World, can: Capabilities) -> Scene {
    let other = world.add("other", can);
    let (seen, family) = (Seen::default(), other.dm("family"));
    let named = Mutex::new(vec![place("family", family.clone())]);
    let homes = Mutex::new(vec![other.dm("operator"), world.vendor().dm("home")]);
    let post = Arc::new(Post { named, homes, broken: None });
    world.steward = post.clone();
    world.accounts[0].1 = Access::only([SenderId::literal("alice"), SenderId::literal("ben")]);
    let world = world.with_agent(sending(family, &seen));
    Scene { world, other, seen, post }
}

/// Alice alone is an administrator, and Ben has this role.
fn gated(granted: &[&str]) -> Access {
    let tiers = Arc::new(Tiers { admins: [SenderId::literal("alice")].into(), ..Tiers::default() });
    let destinations = Some(granted.iter().map(|&name| name.to_owned()).collect());
    let role = Role { name: "friend".into(), destinations, ..Role::default() };
    let ben = Person { name: "Ben".into(), role: Some(Arc::new(role)) };
    Access {
        direct: RoomRules { tiers, ..RoomRules::default() },
        people: BTreeMap::from([(SenderId::literal("ben"), Arc::new(ben))]),
        ..Access::only([SenderId::literal("alice"), SenderId::literal("ben")])
    }
}

async fn says(life: &Life, who: &str, text: &str) {
    life.vendor.say(who, "home", text);
    life.quiet().await;
}

#[test]
fn a_message_arrives_where_it_was_sent_and_the_answer_where_it_was_asked_for() {
    let Scene { mut world, other, seen, .. } = scene();
    world.live(async |life| {
        says(life, "alice", "send Dinner at eight").await;
        assert_eq!(other.texts("family"), ["Dinner at eight"]);
        assert_eq!(life.vendor.texts("home"), ["sent"]);
    });
    // Where one is already is nowhere else.
    assert_eq!(*seen.lock().unwrap(), [["family", "other"]]);
}

#[test]
fn another_chat_of_the_same_account_is_another_place() {
    let Scene { mut world, seen, post, .. } = scene();
    let shed = world.vendor().dm("shed");
    *post.named.lock().unwrap() = vec![place("shed", shed.clone())];
    world = world.with_agent(sending(shed, &seen));
    world.live(async |life| {
        says(life, "alice", "send Dinner at eight").await;
        assert_eq!(life.vendor.texts("shed"), ["Dinner at eight"]);
    });
    assert_eq!(*seen.lock().unwrap(), [["shed", "other"]]);
}

#[test]
fn what_a_role_does_not_grant_is_neither_offered_nor_sent() {
    for (who, granted, expected) in [
        ("alice", &[][..], &["family", "other"][..]),
        ("ben", &["family"], &["family"]),
        ("ben", &["other"], &["other"]),
        ("ben", &[], &[]),
    ] {
        let Scene { mut world, other, seen, .. } = scene();
        world.accounts[0].1 = gated(granted);
        world.live(async |life| {
            says(life, who, "send Dinner").await;
            assert_eq!(seen.lock().unwrap().concat(), expected, "{who} {granted:?}");
            // The agent of these tests tries all the same.
            let arrives = expected.contains(&"family");
            assert_eq!(!other.texts("family").is_empty(), arrives, "{who} {granted:?}");
        });
    }
}

#[test]
fn nobody_who_came_in_with_everybody_has_anything_sent() {
    let Scene { mut world, other, seen, .. } = scene();
    world.accounts[0].1 = Access::everyone();
    world.live(async |life| {
        says(life, "zoe", "send Dinner").await;
        assert_eq!(other.texts("family"), [""; 0]);
    });
    assert_eq!(*seen.lock().unwrap(), [[""; 0]]);
}

#[test]
fn what_is_not_a_destination_any_more_is_not_written_to() {
    let Scene { mut world, other, post, .. } = scene();
    world.live(async |life| {
        post.named.lock().unwrap().clear();
        says(life, "alice", "send Dinner").await;
        assert_eq!(other.texts("family"), [""; 0]);
        let failed = life.transcript("home").await.into_iter().any(|recorded| {
            let body = recorded.entry.body;
            matches!(body, EntryBody::Returned { failed: true, output, .. } if output.contains("Nothing was sent"))
        });
        assert!(failed);
    });
}

#[test]
fn whoever_answers_there_is_understood() {
    let Scene { mut world, other, .. } = scene();
    world.live(async |life| {
        says(life, "alice", "send Dinner at eight?").await;
        other.say("zoe", "family", "I will be there");
        life.quiet().await;
        let texts = other.texts("family");
        assert!(texts[1].contains("\"Dinner at eight?\"") && texts[1].ends_with("I will be there"));
        let recorded = life.disk.transcript(&key(&other.dm("family")), None, 10).await.unwrap();
        let is_it = |body: &EntryBody| matches!(body, EntryBody::Noticed { text, .. } if text == "Dinner at eight?");
        assert!(recorded.iter().any(|recorded| is_it(&recorded.entry.body)), "{recorded:?}");
    });
}

#[test]
fn where_each_person_has_a_conversation_of_their_own_none_is_begun_for_it() {
    let Scene { mut world, other, seen, post } = scene();
    world.scope = Scope { groups: GroupSessions::PerMember, ..Scope::default() };
    let club = other.group("club");
    *post.named.lock().unwrap() = vec![place("club", club.clone())];
    let mut world = world.with_agent(sending(club.clone(), &seen));
    world.live(async |life| {
        says(life, "alice", "send Dinner").await;
        assert_eq!(other.texts_at(&club), ["Dinner"]);
        let counts = life.disk.counts().await.unwrap();
        assert_eq!(counts.sessions, 1, "{counts:?}");
    });
}

#[test]
fn what_does_not_arrive_there_is_told_where_it_was_asked_for() {
    let Scene { mut world, other, .. } = scene();
    other.behaves(|_| Conduct::Refuses(SendError::Gone { reason: "thrown out".into() }));
    world.live(async |life| {
        says(life, "alice", "send Dinner").await;
        let texts = life.vendor.texts("home");
        let told = texts.iter().find(|text| text.contains("did not arrive"));
        assert!(told.is_some_and(|told| told.contains("`other/family`")), "{texts:?}");
        says(life, "alice", "and now?").await;
        let texts = life.vendor.texts("home");
        assert!(texts.last().unwrap().contains("did not arrive there"), "{texts:?}");
    });
}

#[test]
fn a_thread_that_was_only_written_to_is_none_that_we_have_a_part_in() {
    let Scene { world, other, seen, post } = scene();
    let mut thread = other.group("thread");
    thread.chat.kind = ChatKind::Thread;
    *post.named.lock().unwrap() = vec![place("thread", thread.clone())];
    let mut world = world.with_agent(sending(thread.clone(), &seen));
    world.live(async |life| {
        let says_there = async |text: &str, addressed| {
            let message = Message { text: text.into(), addressed, ..Message::default() };
            other.does("zoe", thread.clone(), InboundKind::Said(message));
            life.quiet().await;
            other.texts_at(&thread).len()
        };
        says(life, "alice", "send Dinner").await;
        assert_eq!(says_there("nice", Addressed::ToOthers).await, 1, "nobody called us");
        assert_eq!(says_there("you there?", Addressed::ToUs).await, 2);
        assert_eq!(says_there("and me?", Addressed::ToOthers).await, 3);
    });
}

#[test]
fn what_was_sent_is_in_the_record_without_its_words() {
    let Scene { mut world, .. } = scene();
    world.live(async |life| {
        says(life, "alice", "send Dinner at eight").await;
        let record = life.disk.audited(0, 100).await.unwrap();
        let is_it = |row: &&AuditRow| row.audited.deed == AuditDeed::MessageSent;
        let rows: Vec<_> = record.iter().filter(is_it).map(|row| &row.audited).collect();
        let [Audited { actor, subject, detail, .. }] = rows[..] else { panic!("{rows:?}") };
        assert_eq!((actor.as_str(), subject.as_str()), ("main:alice", "other/family"));
        assert!(!detail.contains("Dinner") && detail.len() > 64, "{detail}");
    });
}

#[test]
fn a_death_at_any_moment_sends_it_once() {
    for moment in 0.. {
        // Both vendors know a repeat by its key, and the first keeps what was said until it is read.
        let world = World::hearing(keyed(SIMPLE), Hears::Poll);
        let Scene { mut world, other, .. } = scene_in(world, keyed(SIMPLE));
        world.vendor().say("alice", "home", "send Dinner");
        let play = async |life: &Life| {
            life.texts("home", 1).await;
            life.quiet().await;
            assert_eq!(life.vendor.texts("home"), ["sent"], "died at {moment}");
            assert_eq!(other.texts("family"), ["Dinner"], "died at {moment}");
        };
        if world.live_and_die(moment, play) == End::Over {
            assert!(moment > 15, "there are moments to die at: {moment}");
            break;
        }
        world.live(play);
    }
}

/// What the record says of settings that were changed.
async fn changes(life: &Life) -> Vec<String> {
    let rows = life.disk.audited(0, 10).await.unwrap();
    let changed = rows.into_iter().filter(|row| row.audited.deed == AuditDeed::SettingsChanged);
    changed
        .map(|AuditRow { audited: Audited { actor, subject, detail, .. }, .. }| {
            format!("{actor} {subject}: {detail}")
        })
        .collect()
}

#[test]
fn a_home_is_changed_only_where_that_is_recorded() {
    let Scene { mut world, post, .. } = scene();
    let before = post.homes.lock().unwrap().clone();
    world.live(async |life| {
        life.disk.fails(Verb::Audit, 1);
        life.vendor.say("alice", "den", "/sethome");
        let told = life.texts("den", 1).await;
        assert_eq!(told, ["I could not record that, so the home stays where it was."]);
        assert_eq!(*post.homes.lock().unwrap(), before);
        assert_eq!(changes(life).await, [""; 0]);
        life.vendor.say("alice", "den", "/sethome");
        let told = life.texts("den", 2).await;
        assert!(told[1].starts_with("This chat is the home"), "{told:?}");
        assert_eq!(post.homes.lock().unwrap().last(), Some(&life.vendor.dm("den")));
        assert_eq!(changes(life).await, ["main:alice main: home: den"]);
    });
}

#[test]
fn a_home_that_could_not_be_kept_is_recorded_as_such() {
    let Scene { mut world, .. } = scene();
    let broken = Some("The disk is full.");
    world.steward = Arc::new(Post { broken, ..Post::default() });
    world.live(async |life| {
        life.vendor.say("alice", "den", "/sethome");
        assert_eq!(life.texts("den", 1).await, ["The disk is full."]);
        let expected = [
            "main:alice main: home: den",
            "main:alice main: home: not den, which could not be kept",
        ];
        assert_eq!(changes(life).await, expected);
    });
}
