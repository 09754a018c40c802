//! Whatever is done, in whatever order, with whatever crashes: SQLite shows what memory shows.

use std::sync::Arc;

use proptest::prelude::*;
use talaria_model::{
    AccountId, Act, ChatId, Cost, Entry, EntryBody, FileId, FileRef, InboundKind, MessageId,
    Receipt, Sender, SenderId, Seq, SessionId, Source, TurnId, Usage,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::pairing::{Chance, GuestBook};
use talaria_session::{Joins, Life, Origin, Phase, Retired, Strangers, Waiting};
use talaria_store::contract::Harness;
use talaria_store::{
    AuditDeed, Audited, Branch, Commit, Delivered, Dropped, GuestChange, JournalChange,
    JournalState, MemoryStore, Owner, Retirement, Rewind, Settlement, Spending, Store, StoreError,
};

use super::seen::{Asked, seen};
use super::{Killed, address, alice, at, entry, hand, inbound, key, post, session, step};

const CHATS: [(&str, &str); 4] = [("one", "c"), ("one", "d"), ("two", "c"), ("two", "會議")];
const TEXTS: [&str; 6] =
    ["the blue whale", "Blue whales sing", "bluebird", "我们明天开会议吗", "a -> b", "naïve"];

const FILES: usize = 3;

#[derive(Debug, Clone)]
enum Op {
    Admit { account: usize, events: Vec<(usize, u8, u8)>, cursor: Option<u8> },
    Step(Steps),
    Preview(Part),
    Attempt(Part),
    Settle(Part, u8),
    Recover,
    Close,
    Restart,
    Prune(u8),
    ForgetLives(u8, Option<usize>),
    ForgetEntries(u8),
    Shrink,
    Rename(usize, u8),
    PutAway(usize, u8),
    Tell { chat: usize, delivery: u32 },
    Deny(Vec<u8>),
    Ignore(u8),
    Guests { account: usize, read: u8, seed: u8 },
    Audit(u8),
}

/// Lives that a chat may have in a test.
const LIVES: u8 = 4;

const PEOPLE: [&str; 2] = ["alice", "bob"];

#[derive(Debug, Clone)]
struct Steps {
    chat: usize,
    life: u8,
    /// Whose life it claims to be.
    of: usize,
    thinking: bool,
    waiting: bool,
    begun_by: Option<usize>,
    stands: u8,
    journal: Vec<(u8, u8)>,
    forwarded: Option<(u8, usize)>,
    dropped: Option<u8>,
    retired: Option<u8>,
    branch: Option<(usize, u8, u8, u32)>,
    rewinds: Vec<(u8, u32, u32)>,
    entries: Vec<(u8, usize, u32)>,
    outbox: Vec<(u32, u16, usize)>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    chat: usize,
    life: u8,
    delivery: u32,
    part: u16,
}

fn chat() -> impl Strategy<Value = usize> {
    0..CHATS.len()
}

fn part() -> impl Strategy<Value = Part> {
    (chat(), 0..LIVES, 1..4u32, 0..2u16).prop_map(|(chat, life, delivery, part)| Part {
        chat,
        life,
        delivery,
        part,
    })
}

fn steps() -> impl Strategy<Value = Steps> {
    let whose = prop_oneof![20 => Just(None), 1 => chat().prop_map(Some)];
    let rarely = |many: u8| prop_oneof![4 => Just(None), 1 => (0..many).prop_map(Some)];
    let forwarded = prop_oneof![4 => Just(None), 1 => (1..20u8, chat()).prop_map(Some)];
    let branch = (chat(), 0..LIVES, 0..LIVES, 0..9u32);
    let branch = prop_oneof![3 => Just(None), 1 => branch.prop_map(Some)];
    (
        (chat(), 0..LIVES, whose, prop::option::of(0..PEOPLE.len()), 0..8u8),
        (any::<bool>(), any::<bool>()),
        (prop::collection::vec((1..20u8, 0..7u8), 0..3), forwarded, rarely(20)),
        (rarely(LIVES), branch, prop::collection::vec((0..LIVES, 0..9u32, 0..9u32), 0..2)),
        prop::collection::vec((0..LIVES, 0..=TEXTS.len(), 1..9u32), 0..4),
        prop::collection::vec((1..4u32, 0..2u16, chat()), 0..3),
    )
        .prop_map(|(who, (thinking, waiting), rows, past, entries, outbox)| {
            let (chat, life, whose, begun_by, stands) = who;
            let (journal, forwarded, dropped) = rows;
            let (retired, branch, rewinds) = past;
            Steps {
                chat,
                life,
                of: whose.unwrap_or(chat),
                thinking,
                waiting,
                begun_by,
                stands,
                journal,
                forwarded,
                dropped,
                retired,
                branch,
                rewinds,
                entries,
                outbox,
            }
        })
}

fn op() -> impl Strategy<Value = Op> {
    let admit = (
        0..2usize,
        prop::collection::vec((0..2usize, 0..12u8, 0..7u8), 0..4),
        prop::option::of(0..9u8),
    );
    prop_oneof![
        6 => admit.prop_map(|(account, events, cursor)| Op::Admit { account, events, cursor }),
        14 => steps().prop_map(Op::Step),
        3 => part().prop_map(Op::Preview),
        4 => part().prop_map(Op::Attempt),
        6 => (part(), 0..7u8).prop_map(|(part, how)| Op::Settle(part, how)),
        1 => Just(Op::Recover),
        1 => Just(Op::Close),
        1 => Just(Op::Restart),
        1 => (0..40u8).prop_map(Op::Prune),
        1 => (0..40u8, prop::option::of(chat())).prop_map(|(back, spare)| Op::ForgetLives(back, spare)),
        1 => (0..40u8).prop_map(Op::ForgetEntries),
        1 => Just(Op::Shrink),
        1 => (chat(), 0..LIVES).prop_map(|(chat, life)| Op::Rename(chat, life)),
        1 => (chat(), 0..LIVES).prop_map(|(chat, life)| Op::PutAway(chat, life)),
        2 => prop::collection::vec(0..12u8, 0..3).prop_map(Op::Deny),
        2 => (0..12u8).prop_map(Op::Ignore),
        2 => (0..2usize, 0..4u8, any::<u8>())
            .prop_map(|(account, read, seed)| Op::Guests { account, read, seed }),
        1 => any::<u8>().prop_map(Op::Audit),
        1 => (chat(), 90..93u32).prop_map(|(chat, delivery)| Op::Tell { chat, delivery }),
    ]
}

fn life(chat: usize, number: u8) -> SessionId {
    SessionId::new(format!("life {number} of {chat}")).expect("a test's id")
}

fn journal_state(code: u8) -> JournalState {
    match code {
        0 => JournalState::Unread,
        1 => JournalState::Taken,
        2 => JournalState::Bound(TurnId { session: life(0, 0), number: 1 }),
        3 => JournalState::Handled,
        4 => JournalState::Ignored("nothing".into()),
        5 => JournalState::Denied("no".into()),
        _ => JournalState::Quarantined("bad".into()),
    }
}

fn settlement(code: u8, now: i64) -> Settlement {
    let message = Some(MessageId::new(format!("m{now}")).expect("a test's id"));
    match code {
        0 => Settlement::Delivered(Receipt { message, at: at(now) }),
        1 => Settlement::Previewed(message),
        2 => Settlement::Previewed(None),
        3 => Settlement::Again { at: at(now + 5) },
        4 => Settlement::Plain,
        5 => Settlement::Unsure,
        6 => Settlement::Vanished,
        _ => Settlement::Abandoned { reason: "late".into() },
    }
}

fn commit(steps: &Steps, now: i64) -> Commit {
    let key = key(CHATS[steps.chat].0, CHATS[steps.chat].1);
    let mut session = session(&key);
    session.id = life(steps.of, steps.life);
    (session.updated, session.active) = (at(now), at(now));
    session.title = format!("title at {now}");
    (session.turns, session.entries) = (u32::from(steps.stands), steps.entries.len() as u32);
    session.usage = Usage { input: now.unsigned_abs(), ..Usage::default() };
    session.cost = Cost::known(1);
    session.life = match steps.stands {
        1 => Life::Suspended,
        2 => Life::Finalized,
        _ => Life::Continuing,
    };
    session.origin = steps.begun_by.map(|who| {
        let from = Sender::new(SenderId::literal(PEOPLE[who]));
        Arc::new(Origin { from, at: address(&key), source: Source::default() })
    });
    if steps.thinking {
        session.phase = Phase::Thinking(hand(&session));
    }
    if steps.waiting {
        let message = Default::default();
        session.waiting.push_back(Waiting {
            seq: Seq(1),
            from: alice(),
            to: address(&key),
            roles: Vec::new(),
            message,
            joins: Joins::Burst,
            paid: Default::default(),
        });
    }
    let change = |(seq, state): &(u8, u8)| JournalChange {
        seq: Seq(u64::from(*seq)),
        state: journal_state(*state),
    };
    let record = |(of, text, number): &(u8, usize, u32)| {
        let mut entry = entry(*number, TEXTS.get(*text).copied().unwrap_or_default());
        if *text == TEXTS.len() {
            let (after, upto) = (number / 3, number / 2);
            let (usage, cost) = (Usage::default(), Cost::default());
            entry.body = EntryBody::Summary { after, upto, text: "in short".into(), usage, cost };
        }
        if let EntryBody::Said { files, .. } = &mut entry.body {
            files.push(file(text % FILES));
        }
        (life(steps.chat, *of), Entry { at: at(now), ..entry })
    };
    let past = |number: &u8| {
        let mut past = session.past();
        past.id = life(steps.chat, *number);
        Retirement { past, why: Retired::New }
    };
    let branch = |(chat, from, to, upto): &(usize, u8, u8, u32)| Branch {
        from: life(*chat, *from),
        to: life(steps.chat, *to),
        upto: *upto,
    };
    let rewind = |(of, from, upto): &(u8, u32, u32)| Rewind {
        session: life(steps.chat, *of),
        from: *from,
        upto: *upto,
        by: Some(SenderId::literal("alice")),
    };
    let forward =
        |(seq, to): &(u8, usize)| (Seq(u64::from(*seq)), super::key(CHATS[*to].0, CHATS[*to].1));
    let drop = |before: &u8| Dropped { before: Seq(u64::from(*before)), reason: "dropped".into() };
    let outbox = |(delivery, part, to): &(u32, u16, usize)| {
        let to = address(&super::key(CHATS[*to].0, CHATS[*to].1));
        let mut outbound = post(&life(steps.chat, steps.life), &to, *delivery, *part);
        if let Act::Post(content) = &mut outbound.act {
            content.files = vec![file(*delivery as usize % FILES)];
        }
        outbound
    };
    Commit {
        journal: steps.journal.iter().map(change).collect(),
        forwarded: steps.forwarded.iter().map(forward).collect(),
        dropped: steps.dropped.as_ref().map(drop),
        retired: steps.retired.as_ref().map(past),
        branch: steps.branch.as_ref().map(branch),
        rewinds: steps.rewinds.iter().map(rewind).collect(),
        entries: steps.entries.iter().map(record).collect(),
        outbox: steps.outbox.iter().map(outbox).collect(),
        spending: steps.entries.iter().map(|_| spending(steps.chat)).collect(),
        at: at(now),
        ..step(&session)
    }
}

/// Who speaks in a chat spends something.
fn spending(chat: usize) -> Spending {
    let (account, chat) = CHATS[chat];
    let payer = Payer::Chat(AccountId::literal(account), ChatId::literal(chat));
    let spent = Spent { messages: 1, tokens: 10, micros: 2 };
    Spending { day: Day::numbered(0), payer, spent }
}

async fn apply(store: &dyn Store, op: &Op, now: i64) -> String {
    let outbound = |part: &Part| {
        let to = address(&key(CHATS[part.chat].0, CHATS[part.chat].1));
        post(&life(part.chat, part.life), &to, part.delivery, part.part)
    };
    match op {
        Op::Admit { account, events, cursor } => {
            let event = |(chat, event, state): &(usize, u8, u8)| {
                // An event belongs to one chat, whenever it comes.
                let (account, chat) = CHATS[account * 2 + (chat + usize::from(*event)) % 2];
                let key = key(account, chat);
                let mut inbound = inbound(&key, &event.to_string());
                if let InboundKind::Said(message) = &mut inbound.kind {
                    message.files = vec![file(usize::from(*event) % FILES)];
                }
                (key, inbound, journal_state(*state))
            };
            let delivered = Delivered {
                account: key(CHATS[account * 2].0, "c").account,
                events: events.iter().map(event).collect(),
                cursor: cursor.map(|cursor| cursor.to_string()),
                at: at(now),
            };
            format!("{:?}", store.admit(delivered).await)
        }
        // A step may be refused for several reasons, of which each store names the first it finds.
        Op::Step(steps) => match store.commit(commit(steps, now)).await {
            Err(StoreError::Damaged { .. }) => "refused".into(),
            committed => format!("{committed:?}"),
        },
        Op::Preview(part) => format!("{:?}", store.preview(&outbound(part)).await),
        Op::Attempt(part) => format!("{:?}", store.attempt(&outbound(part).id).await),
        Op::Settle(part, how) => {
            format!("{:?}", store.settle(&outbound(part).id, settlement(*how, now), at(now)).await)
        }
        Op::Recover => format!("{:?}", store.recover().await),
        Op::Close => format!("{:?}", store.close().await),
        Op::Restart => String::new(),
        Op::Tell { chat, delivery } => {
            let to = address(&key(CHATS[*chat].0, CHATS[*chat].1));
            let notice = post(&life(*chat, 0), &to, *delivery, 0);
            format!("{:?}", store.tell(&notice, at(now)).await)
        }
        Op::Prune(back) => format!("{:?}", store.prune(at(now - i64::from(*back))).await),
        Op::ForgetLives(back, spare) => {
            let spare: Vec<_> =
                spare.iter().map(|chat| key(CHATS[*chat].0, CHATS[*chat].1)).collect();
            let forgotten = store.forget_lives(at(now - i64::from(*back)), &spare).await;
            format!("{forgotten:?}")
        }
        Op::ForgetEntries(back) => {
            format!("{:?}", store.forget_entries(at(now - i64::from(*back))).await)
        }
        Op::Shrink => format!("{:?}", store.shrink().await.map(drop)),
        Op::Rename(chat, number) => {
            let title = format!("title at {now}");
            format!("{:?}", store.rename(&life(*chat, *number), &title).await)
        }
        Op::PutAway(chat, number) => {
            format!("{:?}", store.put_away(&life(*chat, *number)).await)
        }
        Op::Deny(rows) => {
            let rows: Vec<_> = rows.iter().map(|seq| Seq(u64::from(*seq))).collect();
            format!("{:?}", store.deny(&rows, "put out").await)
        }
        Op::Ignore(seq) => {
            let rest = inbound(&key("one", "c"), "rest");
            format!("{:?}", store.ignore(Seq(u64::from(*seq)), &rest, "dropped").await)
        }
        Op::Guests { account, read, seed } => {
            let chat = key(["one", "two"][*account], "c");
            let mut book = GuestBook::default();
            let asks = (&alice(), &address(&chat));
            book.said(asks, "hello", Strangers::Pair, Chance([*seed; 32]), at(now));
            let to = address(&chat);
            let letter = post(&SessionId::literal("pairing"), &to, u32::from(*seed), 0);
            let change = GuestChange {
                account: chat.account,
                read: u64::from(*read),
                book,
                outbox: vec![letter],
                audited: vec![audited(*seed)],
                at: at(now),
            };
            format!("{:?}", store.keep_guests(change).await)
        }
        Op::Audit(seed) => {
            format!("{:?}", store.audit(at(now), vec![audited(*seed), audited(1)]).await)
        }
    }
}

fn audited(seed: u8) -> Audited {
    Audited {
        actor: "operator".into(),
        deed: AuditDeed::ALL[usize::from(seed) % AuditDeed::ALL.len()],
        subject: seed.to_string(),
        detail: String::new(),
    }
}

fn asked() -> Asked {
    let keys: Vec<_> = CHATS.iter().map(|(account, chat)| key(account, chat)).collect();
    Asked {
        addresses: keys.iter().map(address).collect(),
        lives: (0..CHATS.len())
            .flat_map(|chat| (0..LIVES).map(move |number| life(chat, number)))
            .collect(),
        owners: CHATS
            .iter()
            .flat_map(|(account, _)| PEOPLE.map(|who| (*account, who)))
            .map(|(account, who)| Owner::Person {
                account: key(account, "c").account,
                person: SenderId::literal(who),
            })
            .collect(),
        queries: vec!["blue", "whale blue", "whal", "bird", "会议", "->", "NAIVE", "e"],
        files: (0..=FILES).map(|number| file(number).id).collect(),
        keys,
    }
}

/// One of a few files; the last one named anywhere is `FILES - 1`.
fn file(number: usize) -> FileRef {
    let id = FileId::new(format!("file {number}")).expect("a test's id");
    FileRef::new(id, "a", "text/plain", 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn sqlite_and_memory_show_the_same(ops in prop::collection::vec(op(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (harness, memory, asked) = (Killed::default(), MemoryStore::new(), asked());
            let mut sqlite = harness.open().await;
            for (now, op) in (1..).zip(&ops) {
                if matches!(op, Op::Restart) {
                    prop_assert_eq!(seen(&*sqlite, &asked).await, seen(&memory, &asked).await);
                    sqlite = harness.open().await;
                }
                let (one, other) =
                    (apply(&*sqlite, op, now).await, apply(&memory, op, now).await);
                prop_assert_eq!(one, other, "{:?}", op);
            }
            prop_assert_eq!(seen(&*sqlite, &asked).await, seen(&memory, &asked).await);
            Ok(())
        })?;
    }
}
