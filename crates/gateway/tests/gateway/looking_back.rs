//! What people are shown of what was said before: their own, and nothing that others are to read.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::{Elsewhere, Memory, Recall, ToolScope};
use talaria_clock::{Clock, SystemClock};
use talaria_gateway::StoreRecall;
use talaria_model::{
    Author, CallId, EntryBody, InboundKind, Message, Quote, Sender, SenderId, SessionId, TurnId,
};
use talaria_session::{Beside, GroupSessions};
use talaria_store::{Commit, SearchScope, Store};

use crate::world::{EDITING, Life, SIMPLE, World, agent, key};

/// Somebody says something in a chat with us alone; the last thing that can be read afterwards.
async fn tells(life: &Life, who: &str, chat: &str, text: &str) -> String {
    let before = life.vendor.texts(chat).len();
    life.vendor.say(who, chat, text);
    life.texts(chat, before + 1).await.pop().unwrap()
}

/// The same in a group.
async fn tells_group(life: &Life, who: &str, text: &str) -> String {
    let at = life.vendor.group("all");
    let before = life.vendor.texts_at(&at).len();
    life.vendor.say_in_group(who, "all", text);
    life.until("an answer", |vendor| vendor.texts_at(&at).len() > before).await;
    life.vendor.texts_at(&at).pop().unwrap()
}

/// What the agent remembers of a word in a life, in alice's name.
async fn remembered(life: &Life, of: SessionId, word: &str) -> Vec<String> {
    memories(life, of, word).await.into_iter().map(|memory| memory.excerpt).collect()
}

async fn memories(life: &Life, of: SessionId, word: &str) -> Vec<Memory> {
    let recall = StoreRecall { store: Arc::new(life.disk.clone()), operator_accounts: Vec::new() };
    let scope = ToolScope {
        call: CallId::literal("c"),
        turn: TurnId { session: of, number: 99 },
        from: Sender::new(SenderId::literal("alice")),
        at: life.vendor.dm("home"),
        elsewhere: Elsewhere::default(),
    };
    recall.search(&scope, word, 5).await.expect("the store answers")
}

async fn present(life: &Life, chat: &str) -> talaria_session::Session {
    let session = life.disk.load(&key(&life.vendor.dm(chat))).await;
    session.expect("the store answers").expect("there is one")
}

#[test]
fn a_search_never_finds_itself_however_often_it_is_made() {
    World::new(SIMPLE).live(async |life| {
        tells(life, "alice", "home", "quince jam").await;
        for _ in 0..10 {
            let found = tells(life, "alice", "home", "/search quince").await;
            let lines: Vec<&str> = found.lines().collect();
            assert_eq!(lines.len(), 2, "{found}");
            assert!(lines.iter().all(|line| line.ends_with("**quince** jam")), "{found}");
        }
        life.quiet().await;
        let session = present(life, "home").await;
        let mut found = remembered(life, session.id, "quince").await;
        found.sort();
        assert_eq!(found, ["echo: quince jam", "quince jam"]);
    });
}

#[test]
fn what_somebody_passed_on_is_not_remembered_as_theirs() {
    World::new(SIMPLE).live(async |life| {
        let forwarded = Some(Author::Named("Eve".into()));
        let message = Message { text: "quince jam".into(), forwarded, ..Message::default() };
        life.vendor.does("alice", life.vendor.dm("home"), InboundKind::Said(message));
        life.texts("home", 1).await;
        let passed_on = "alice, passing on words of Eve";
        let history = tells(life, "alice", "home", "/history").await;
        assert!(history.contains(&format!("**{passed_on}**: quince jam")), "{history}");
        let session = present(life, "home").await;
        let found = memories(life, session.id, "quince").await;
        assert!(found.iter().any(|memory| memory.who == passed_on), "{found:?}");
        // So it is when it is said again.
        tells(life, "alice", "home", "/retry").await;
        let history = tells(life, "alice", "home", "/history").await;
        assert!(history.contains(&format!("**{passed_on}**: quince jam")), "{history}");
    });
}

#[test]
fn lives_are_listed_and_gone_back_to_by_number_and_by_id() {
    World::new(SIMPLE).live(async |life| {
        let says = async |text: &str| tells(life, "alice", "home", text).await;
        says("plan the garden").await;
        life.pass_seconds(1).await;
        says("/new").await;
        says("plan the house").await;
        let listed = says("/sessions").await;
        let lines: Vec<&str> = listed.lines().collect();
        assert!(lines[0].starts_with("1. plan the house — one turn, "), "{listed}");
        assert!(lines[0].ends_with(" — you are here"), "{listed}");
        assert!(lines[1].starts_with("2. plan the garden — one turn, "), "{listed}");
        assert!(lines[1].ends_with('`'), "{listed}");

        let which = says("/resume plan").await;
        assert!(which.starts_with("Which of these do you mean?"), "{which}");
        let choices: Vec<&str> = which.lines().filter(|line| line.contains("plan the")).collect();
        assert!(choices.len() == 2 && choices.iter().all(|line| line.starts_with("- ")), "{which}");
        let garden = choices.iter().find(|line| line.contains("garden")).unwrap();
        let id = garden.split('`').nth(1).unwrap();
        life.pass_seconds(1).await;
        assert_eq!(says(&format!("/resume {id}")).await, "Back in “plan the garden”.");
        assert_eq!(
            says("/history").await,
            "**alice**: plan the garden\n\n**Agent**: echo: plan the garden"
        );
        assert_eq!(says("/resume 2").await, "Back in “plan the house”.");
        assert_eq!(says("/resume plan the house").await, "That is the conversation you are in.");
        assert_eq!(
            says("/resume nothing").await,
            "You have no conversation called `nothing`. `/sessions` lists them."
        );
    });
}

#[test]
fn what_was_said_in_private_is_shown_to_nobody_else_and_nowhere_else() {
    for groups in [GroupSessions::Shared, GroupSessions::PerMember] {
        let mut world = World::new(SIMPLE);
        world.scope.groups = groups;
        world.live(async |life| {
            tells(life, "alice", "home", "my secret is quince").await;
            let nothing = "You have no conversation called `my secret`. `/sessions` lists them.";
            assert_eq!(tells(life, "bob", "bobs", "/resume my secret").await, nothing);
            assert_eq!(tells(life, "bob", "bobs", "/search quince").await, "Nothing was found.");
            for who in ["alice", "bob"] {
                assert_eq!(tells_group(life, who, "/resume my secret").await, nothing);
                assert_eq!(tells_group(life, who, "/search quince").await, "Nothing was found.");
                let listed = tells_group(life, who, "/sessions").await;
                assert!(!listed.contains("secret"), "{listed}");
                let said = tells_group(life, who, "/history").await;
                assert_eq!(said, "Nothing has been said here yet.");
            }
            let found = tells(life, "alice", "elsewhere", "/search quince").await;
            assert!(found.contains("my secret is **quince**"), "her own, in another chat: {found}");
            let resumed = tells(life, "alice", "elsewhere", "/resume my secret").await;
            assert_eq!(resumed, "You are in a copy of “my secret is quince”.");
        });
    }
}

#[test]
fn what_runs_beside_a_group_remembers_what_was_said_in_it() {
    let mut world = World::new(SIMPLE);
    world.scope.groups = GroupSessions::Shared;
    world.live(async |life| {
        tells_group(life, "alice", "quince jam").await;
        tells_group(life, "alice", "/background look").await;
        life.quiet().await;
        let lives = life.disk.lives(&SearchScope::Everything, None, 10).await.unwrap();
        let beside = lives.into_iter().find(|life| life.key.side == Some(1)).unwrap();
        assert_eq!(remembered(life, beside.past.id, "quince").await.len(), 2);
    });
}

#[test]
fn a_message_that_is_answered_again_is_read_as_it_was_the_first_time() {
    World::new(SIMPLE).live(async |life| {
        let quote = Some(Quote::new("shall we?", Author::Us));
        let message = Message { text: "yes".into(), quote, ..Message::default() };
        life.vendor.does("alice", life.vendor.dm("home"), InboundKind::Said(message));
        life.texts("home", 1).await;
        tells(life, "alice", "home", "/retry").await;
        life.quiet().await;
        let heard: Vec<Option<String>> = life
            .transcript("home")
            .await
            .into_iter()
            .filter_map(|recorded| match recorded.entry.body {
                EntryBody::Said { heard, .. } => Some(heard),
                _ => None,
            })
            .collect();
        assert!(heard.last().unwrap().as_ref().is_some_and(|heard| heard.contains("shall we?")));
    });
}

#[test]
fn a_new_conversation_leaves_what_could_be_read_of_the_last_answer() {
    let slow = agent(|stage| async move {
        for text in ["Once", "Once upon a time there was"] {
            SystemClock.sleep(Duration::from_secs(1)).await;
            stage.show(text);
        }
        std::future::pending().await
    });
    World::new(EDITING).with_agent(slow).live(async |life| {
        life.vendor.say("alice", "home", "tell me a story");
        life.pass_seconds(60).await;
        assert_eq!(life.vendor.texts("home"), ["Once upon a time there was ▉"]);
        life.vendor.say("alice", "home", "/new");
        life.quiet().await;
        let texts = life.texts("home", 2).await;
        assert_eq!(texts[0], "Once upon a time there was\n\n*Stopped.*");
        assert!(texts[1].starts_with("A new conversation."), "{texts:?}");
    });
}

#[test]
fn a_task_whose_end_nobody_heard_of_does_not_count_for_long() {
    World::new(SIMPLE).live(async |life| {
        tells(life, "alice", "home", "/background look").await;
        life.quiet().await;
        life.pass_seconds(60).await;
        // As a process leaves it that dies before the conversation hears that the task is done.
        let mut session = present(life, "home").await;
        assert!(session.background.is_empty());
        session.background.push(Beside { side: 1, since: life.now() });
        life.disk.commit(Commit::of(session, life.now())).await.expect("commits");
        let status = tells(life, "alice", "home", "/status").await;
        assert!(status.contains("one task in the background"), "{status}");
        life.pass_seconds(1).await;
        let status = tells(life, "alice", "home", "/status").await;
        assert!(!status.contains("background"), "{status}");
    });
}

#[test]
fn what_is_in_memory_is_not_forgotten() {
    World::new(SIMPLE).live(async |life| {
        tells(life, "alice", "home", "hello").await;
        life.quiet().await;
        let all = life.now() + Duration::from_secs(1);
        let spare = life.gateway.sessions_in_memory();
        assert_eq!(spare, [key(&life.vendor.dm("home"))]);
        assert_eq!(life.disk.forget_lives(all, &spare).await, Ok(0));
        life.pass_seconds(60).await;
        let spare = life.gateway.sessions_in_memory();
        assert_eq!(spare, []);
        assert_eq!(life.disk.forget_lives(all, &spare).await, Ok(1));
        let status = tells(life, "alice", "home", "/status").await;
        assert!(status.contains("0 turns"), "{status}");
    });
}
