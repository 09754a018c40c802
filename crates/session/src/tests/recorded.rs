//! Rows as an earlier version stored them still say what they said.

use talaria_model::{
    Cost, EarlierYes, Entry, EntryBody, Giver, Inbound, Outbound, RoleId, SenderId,
};

use crate::pairing::GuestBook;
use crate::{Effect, Ended, Event, Life, Phase, Request, Session, SessionKey};

const IDLE: &str = r#"{"key":{"account":"telegram","kind":"dm","chat":"12345"},
    "id":"20261115_093000_0badcafe","lives":2,
    "at":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},
    "title":"A blue whale","phase":"idle","turns":3,"entries":6,"deliveries":3,
    "usage":{"input":100,"output":20,"cache_read":0,"cache_write":0,"reasoning":0},
    "begun":1,"updated":1300}"#;

const ASKING: &str = r#"{"key":{"account":"work-slack","kind":"group","chat":"C042",
    "thread":"topic","member":"alice"},"id":"19700101_000000_2568f518","lives":1,
    "at":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"title":"",
    "phase":{"asking":{"hand":{"turn":{"session":"19700101_000000_2568f518","number":1},
    "from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},
    "thread":"topic"},"seqs":[1],"steers":[{"seq":5,"from":{"id":"alice"},
    "to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},
    "message":{"text":"soon"}}],"started":["call-1"],
    "answered":{"question":{"call":"call-0","text":"Sure?","choices":[]},"answer":{"said":"yes"}},
    "delivery":1,"spoken":0,"deadline":1800001,"deaths":1},
    "question":{"call":"call-1","text":"Which one?","choices":[{"id":"a","label":"This"}]},
    "since":1400,"expires":8000}},"turns":1,"entries":1,"deliveries":1,
    "usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},
    "begun":1,"updated":1}"#;

/// People were let in by a role of which only that was kept, and a yes was known by an id.
const STANDING: &str = r#"{"key":{"account":"discord","kind":"group","chat":"c"},
    "id":"20261118_030000_0badcafe","lives":1,
    "at":{"account":"discord","chat":{"id":"c","kind":"group"}},"title":"",
    "phase":{"thinking":{"turn":{"session":"20261118_030000_0badcafe","number":1},
    "from":{"id":"carla"},"standing":"by_role","to":{"account":"discord","chat":{"id":"c","kind":"group"}},
    "seqs":[1],"steers":[{"seq":2,"from":{"id":"carla"},
    "to":{"account":"discord","chat":{"id":"c","kind":"group"}},"standing":"by_role",
    "message":{"text":"soon"}}],
    "answered":{"question":{"call":"call-0","text":"Sure?","choices":[]},"answer":{"said":"yes"},"by":"bob"},
    "delivery":1,"deadline":1800001}},
    "waiting":[{"seq":3,"from":{"id":"dora"},"to":{"account":"discord","chat":{"id":"c","kind":"group"}},
    "standing":"by_role","message":{"text":"me, too"}}],
    "asked":[{"seq":4,"from":{"id":"carla"},"standing":"by_role",
    "to":{"account":"discord","chat":{"id":"c","kind":"group"}},
    "request":{"left":{"said":"You are Carla.","standing":"by_role"}},"expires":9000}],
    "approved_here":[{"digest":"0101010101010101010101010101010101010101010101010101010101010101","by":"bob"}],
    "turns":1,"entries":1,"deliveries":1,
    "usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},
    "begun":1,"updated":1}"#;

fn session(json: &str) -> Session {
    serde_json::from_str(json).expect("an old session decodes")
}

#[test]
fn a_session_that_was_idle_is_idle() {
    let session = session(IDLE);
    assert_eq!(session.phase, Phase::Idle);
    assert_eq!(session.life, Life::Continuing);
    assert_eq!(session.cost, Cost::UNKNOWN);
    assert_eq!(session.key.to_string(), "agent:main:telegram:dm:12345");
    assert!(!session.is_restless());
}

#[test]
fn a_session_without_a_record_of_activity_goes_by_when_anything_happened() {
    let now = |millis| talaria_model::Timestamp::from_millis(millis);
    assert_eq!(session(IDLE).expired(now(86_400_000)), Some(crate::Expiry::Daily));
    assert_eq!(session(IDLE).expired(now(14_000_000)), None);
}

fn restarted() -> Event {
    Event::Restarted { ended: Ended::Cleanly, unheard: None, yes: EarlierYes::Counts }
}

#[test]
fn a_turn_that_was_in_hand_goes_on() {
    let mut session = session(ASKING);
    let at = talaria_model::Timestamp::from_millis(2_000);
    let effects = session.step(restarted(), at);
    let Some(Effect::Start(start)) = effects.first() else { panic!("{effects:?}") };
    assert_eq!(start.asked.as_ref().map(|question| question.text.as_str()), Some("Which one?"));
    assert_eq!(effects.len(), 3, "the answer and the steer are told again");

    let Phase::Asking { hand, .. } = self::session(ASKING).phase else { panic!("{ASKING}") };
    let mut session = Session { phase: Phase::Thinking(hand), ..self::session(ASKING) };
    let late = talaria_model::Timestamp::from_millis(900_000_000);
    assert_eq!(session.wake_at(), Some(talaria_model::Timestamp::from_millis(1_800_001)));
    let effects = session.step(restarted(), late);
    assert!(matches!(effects.first(), Some(Effect::Start(_))), "{effects:?}");
}

#[test]
fn who_was_let_in_by_a_role_that_was_not_kept_has_none() {
    let session = session(STANDING);
    let hand = session.hand().expect("a turn is in hand");
    let none: &[RoleId] = &[];
    assert_eq!((hand.roles.as_slice(), hand.steers[0].roles.as_slice()), (none, none));
    assert_eq!((hand.steers.len(), session.waiting.len(), session.asked.len()), (1, 1, 1));
    assert_eq!(session.waiting[0].roles, none);
    assert_eq!(session.asked[0].roles, none);
    assert_eq!(session.asked[0].request, Request::Left { said: "You are Carla.".into() });
    let stored = serde_json::to_string(&session).expect("it serialises");
    assert!(!stored.contains("standing"), "{stored}");

    let book = r#"{"issued":[{"id":"1","by":"discord:carla","admin":{"sender":"carla","standing":"by_role"},
        "reach":"direct","expires":9000,"code":{"salt":"00","digest":"00"}}]}"#;
    let mut book: GuestBook = serde_json::from_str(book).expect("an old book decodes");
    let codes = |book: &GuestBook| book.issued(talaria_model::Timestamp::default()).count();
    assert_eq!(codes(&book), 1);
    book.void(|issuer, _| !issuer.roles.is_empty());
    assert_eq!(codes(&book), 0, "its issuer has no role");
}

#[test]
fn a_yes_that_was_stored_by_an_id_is_known_by_it() {
    let session = session(STANDING);
    let bob = Giver::known_by_id(SenderId::literal("bob"));
    assert_eq!(session.approved[0].by, bob);
    let answered = session.hand().and_then(|hand| hand.answered.as_ref());
    assert_eq!(answered.expect("it was answered").by, Some(bob));
    let Phase::Asking { hand, .. } = self::session(ASKING).phase else { panic!("{ASKING}") };
    assert_eq!(hand.answered.expect("it was answered").by, None, "nobody had to decide");
}

#[test]
fn journal_rows_entries_and_parcels_decode() {
    let row = r#"{"id":"event 1","at":1,"from":{"id":"alice","name":"Alice"},"to":{"account":"telegram",
        "chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"hi","reply_to":"m0"}}}"#;
    let inbound: Inbound = serde_json::from_str(row).expect("an old row decodes");
    assert!(inbound.source.is_empty());
    assert_eq!(
        SessionKey::of(&inbound, Default::default()).to_string(),
        "agent:main:telegram:dm:12345"
    );

    for body in [
        r#"{"said":{"from":{"id":"alice"},"text":"What is a blue whale?"}}"#,
        r#"{"aside":{"from":{"id":"alice"},"text":"/help"}}"#,
        r#"{"answered":{"text":"Blue whales sing.","usage":{"input":1},"sent":{"session":"s","delivery":1,
            "part":0}}}"#,
        r#"{"returned":{"call":"c","output":"x"}}"#,
        r#"{"noticed":{"text":"x","sent":{"session":"s","delivery":1,"part":0}}}"#,
    ] {
        let entry = format!(r#"{{"number":1,"at":1,"body":{body}}}"#);
        let entry: Entry = serde_json::from_str(&entry).expect("an old entry decodes");
        if let EntryBody::Answered { cost, .. } = entry.body {
            assert_eq!(cost, Cost::UNKNOWN);
        }
    }

    let parcel = r#"{"id":{"session":"s","delivery":1,"part":0},"to":{"account":"web",
        "chat":{"id":"c","kind":"dm"}},"act":{"draft":{"text":"so far"}}}"#;
    let parcel: Outbound = serde_json::from_str(parcel).expect("an old draft decodes");
    let stored = serde_json::to_string(&parcel).expect("it serialises");
    assert!(stored.contains(r#""draft":{"text":"so far"}"#), "{stored}");
}

#[test]
fn a_key_without_a_chat_or_with_a_side_comes_back() {
    let key = SessionKey { side: Some(3), chat: None, ..session(IDLE).key };
    let stored = serde_json::to_string(&key).expect("it serialises");
    assert_eq!(serde_json::from_str::<SessionKey>(&stored).expect("it decodes"), key);
}
