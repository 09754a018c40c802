//! What the store is asked to do while its disk is tortured: the lives of a few conversations, as the
//! gateway would write them, with everything that writes.

use std::sync::Arc;

use futures::future::join_all;
use talaria_faultdisk::Dice;
use talaria_model::{
    Act, Content, Cost, Entry, EntryBody, FileId, FileRef, MessageId, Outbound, OutboundId,
    Receipt, Seq, SessionId, Source, Timestamp, TurnId, Usage,
};
use talaria_session::{Origin, Phase, Retired, Session, SessionKey};
use talaria_store::{
    Branch, Commit, Delivered, Dropped, JournalChange, JournalState, Owner, Retirement, Rewind,
    SearchScope, Settlement, Store, StoreError, Wanted,
};

use super::super::seen::Asked;
use super::super::{address, alice, at, entry, hand, inbound, key, post, session, step};

/// Accounts and chats.
pub(super) const CHATS: [(&str, &str); 4] =
    [("one", "c"), ("one", "d"), ("two", "c"), ("two", "會議")];

/// Lives that a conversation has at most.
const LIVES: u32 = 3;

const FILES: u32 = 3;

/// Parcels are decided so much later than rows arrive, so that one prune forgets rows and the next
/// parcels: each is then one transaction.
const LATER: i64 = 1_000_000;

#[derive(Debug, Clone)]
pub(super) enum Op {
    Admit(Delivered),
    Commit(Box<Commit>),
    Preview(Outbound),
    Attempt(OutboundId),
    Settle(OutboundId, Settlement),
    Tell(Outbound, Timestamp),
    Rename(SessionId, String),
    PutAway(SessionId),
    Prune(Timestamp),
    ForgetEntries(Timestamp),
    /// What is present stays.
    ForgetLives(Timestamp),
    Shrink,
    Recover,
    Close,
    /// Takes entries up into the index and asks it.
    Search(SearchScope, &'static str),
}

/// Asks a store, and says what it answered.
pub(super) async fn ask(store: &dyn Store, op: &Op) -> Result<String, StoreError> {
    match op {
        Op::Admit(delivered) => {
            store.admit(delivered.clone()).await.map(|answer| format!("{answer:?}"))
        }
        Op::Commit(commit) => store.commit((**commit).clone()).await.map(|()| String::new()),
        Op::Preview(outbound) => store.preview(outbound).await.map(|()| String::new()),
        Op::Attempt(id) => store.attempt(id).await.map(|answer| format!("{answer:?}")),
        Op::Settle(id, settlement) => {
            store.settle(id, settlement.clone(), at(1)).await.map(|()| String::new())
        }
        Op::Tell(notice, at) => store.tell(notice, *at).await.map(|()| String::new()),
        Op::Rename(life, title) => store.rename(life, title).await.map(|()| String::new()),
        Op::PutAway(life) => store.put_away(life).await.map(|answer| format!("{answer:?}")),
        Op::Prune(before) => store.prune(*before).await.map(|answer| format!("{answer:?}")),
        Op::ForgetEntries(before) => {
            store.forget_entries(*before).await.map(|answer| format!("{answer:?}"))
        }
        Op::ForgetLives(since) => {
            let spare = CHATS.map(|(account, chat)| key(account, chat));
            store.forget_lives(*since, &spare).await.map(|answer| format!("{answer:?}"))
        }
        // How much is given back is the disk's business.
        Op::Shrink => store.shrink().await.map(|_| String::new()),
        Op::Recover => store.recover().await.map(|answer| format!("{answer:?}")),
        Op::Close => store.close().await.map(|()| String::new()),
        Op::Search(scope, query) => {
            let wanted = Wanted::new(scope.clone(), *query, 100);
            store.search(&wanted).await.map(|answer| format!("{answer:?}"))
        }
    }
}

/// Asks for all of it at once.
pub(super) async fn ask_together(store: &dyn Store, ops: &[Op]) -> Vec<Result<String, StoreError>> {
    join_all(ops.iter().map(|op| ask(store, op))).await
}

/// Something that is done before the next thing is.
#[derive(Debug, Clone)]
pub(super) enum Scene {
    /// Asked for at once. They are written in this order.
    Together(Vec<Op>),
    /// The log is carried over into the file, in this way.
    CarryOver(&'static str),
    /// The store is let go and opened again.
    Restart,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    pub(super) scenes: Vec<Scene>,
}

impl Script {
    /// Every write, in order.
    pub(super) fn ops(&self) -> impl Iterator<Item = &Op> {
        self.scenes.iter().flat_map(|scene| match scene {
            Scene::Together(ops) => ops.as_slice(),
            Scene::CarryOver(_) | Scene::Restart => &[],
        })
    }

    /// The beginning of another life.
    pub(super) fn of_a_next_life() -> Self {
        let mut script = Self::default();
        script.one(Op::Recover);
        for (number, (account, chat)) in (1..).zip(CHATS) {
            let key = key(account, chat);
            let session = begun(&key);
            let events =
                vec![(key.clone(), inbound(&key, "of the next life"), JournalState::Unread)];
            let cursor = Some("next".to_owned());
            let account = key.account;
            script.one(Op::Admit(Delivered { account, events, cursor, at: at(LATER) }));
            let said = vec![(session.id.clone(), entry(number, "of the next life"))];
            let outbox = vec![post(&session.id, &session.at, 1_000, 0)];
            let commit = Commit { entries: said, outbox, at: at(LATER), ..step(&session) };
            script.one(Op::Commit(Box::new(commit)));
        }
        script.one(Op::Close);
        script
    }

    /// The same, with nothing asked for at once.
    pub(super) fn one_by_one(self) -> Self {
        let alone = |scene| match scene {
            Scene::Together(ops) => ops.into_iter().map(|op| Scene::Together(vec![op])).collect(),
            scene => vec![scene],
        };
        Self { scenes: self.scenes.into_iter().flat_map(alone).collect() }
    }

    fn one(&mut self, op: Op) {
        self.scenes.push(Scene::Together(vec![op]));
    }

    /// So many exchanges.
    pub(super) fn of(exchanges: u32, seed: u64) -> Self {
        let mut author = Author {
            dice: Dice::new(seed),
            now: 1,
            last_seq: 0,
            lives: CHATS.map(|(account, chat)| Life::of(key(account, chat))),
            script: Self::default(),
        };
        author.script.one(Op::Recover);
        for number in 0..exchanges {
            author.exchange(number);
        }
        author.script.one(Op::Close);
        author.script
    }
}

struct Life {
    session: Session,
    number: u32,
    deliveries: u32,
    entries: u32,
    /// The newest event, which the platform may deliver again.
    last_event: Option<u64>,
}

impl Life {
    fn of(key: SessionKey) -> Self {
        Self { session: begun(&key), number: 0, deliveries: 0, entries: 0, last_event: None }
    }

    /// Another life begins; says which one is over.
    fn go_on(&mut self, why: Retired) -> Retirement {
        let past = Retirement { past: self.session.past(), why };
        self.number += 1;
        self.session.id = life_of(&self.session.key, self.number);
        self.session.lives += 1;
        past
    }
}

/// A session that alice began, in its first life.
fn begun(key: &SessionKey) -> Session {
    let mut session = session(key);
    session.id = life_of(key, 0);
    let origin = Origin { from: alice(), at: session.at.clone(), source: Source::default() };
    session.origin = Some(Arc::new(origin));
    session
}

fn chat_of(key: &SessionKey) -> &str {
    key.chat.as_ref().expect("a test's chat").as_str()
}

fn life_of(key: &SessionKey, number: u32) -> SessionId {
    let (chat, side) = (chat_of(key), key.side.unwrap_or(0));
    SessionId::new(format!("life {number} of {} {chat} {side}", key.account)).expect("a test's id")
}

/// The lives that a conversation may have.
pub(super) fn lives_of(key: &SessionKey) -> Vec<SessionId> {
    let many = if key.side.is_none() { LIVES } else { 1 };
    (0..many).map(|number| life_of(key, number)).collect()
}

fn beside(key: &SessionKey) -> SessionKey {
    SessionKey { side: Some(1), ..key.clone() }
}

/// A text that only this chat has.
pub(super) fn canary(key: &SessionKey) -> String {
    format!("canary-{}-{}", key.account, chat_of(key))
}

fn file(number: u32) -> FileRef {
    let id = FileId::new(format!("file {number}")).expect("a test's id");
    FileRef::new(id, "a", "text/plain", 1)
}

struct Author {
    dice: Dice,
    now: i64,
    last_seq: u64,
    lives: [Life; CHATS.len()],
    script: Script,
}

impl Author {
    fn now(&mut self) -> Timestamp {
        self.now += 1;
        at(self.now)
    }

    /// Somebody says something and is answered.
    fn exchange(&mut self, number: u32) {
        let chat = self.dice.below(CHATS.len());
        let first = self.last_seq + 1;
        let many = 1 + self.dice.below(3) as u64;
        let admit = self.admit(chat, many);
        let turn = TurnId { session: self.lives[chat].session.id.clone(), number };
        let begun = self.begin(chat, first..first + many, &turn);
        // Two conversations at once share a commit.
        let other = (chat + 1) % CHATS.len();
        let beside = self.admit(other, 1);
        self.script.one(admit);
        self.script.scenes.push(Scene::Together(vec![begun, beside]));

        let parts = 1 + self.dice.below(3) as u16;
        self.lives[chat].deliveries += 1;
        let posts: Vec<Outbound> = (0..parts).map(|part| self.post(chat, part)).collect();
        if self.dice.coin() {
            let shown = Some(MessageId::new(format!("m{number}")).expect("a test's id"));
            self.script.one(Op::Preview(posts[0].clone()));
            self.script.one(Op::Settle(posts[0].id.clone(), Settlement::Previewed(shown)));
        }
        let answered = self.answer(chat, &posts);
        self.script.one(answered);
        for post in &posts {
            let settlement = self.settlement(number);
            self.script.one(Op::Attempt(post.id.clone()));
            self.script.one(Op::Settle(post.id.clone(), settlement));
        }
        self.change_lives(chat, other, number);
        self.now();
        match number % 7 {
            1 => self.script.scenes.push(Scene::CarryOver("PASSIVE")),
            2 => {
                let scope = SearchScope::Conversation(self.lives[chat].session.key.clone());
                self.script.one(Op::Search(scope, "canary"));
            }
            3 => {
                self.script.one(Op::Prune(at(self.now)));
                self.script.one(Op::Prune(at(LATER + self.now)));
                // What is forgotten would be journalled again.
                self.lives.iter_mut().for_each(|life| life.last_event = None);
            }
            4 => self.script.scenes.push(Scene::CarryOver("RESTART")),
            5 => {
                self.script.one(Op::Close);
                self.script.one(Op::Recover);
            }
            6 => {
                self.script.scenes.push(Scene::Restart);
                self.script.one(Op::Recover);
            }
            _ => {}
        }
    }

    /// What happens to lives: they are taken back in part, branch off, give way, are summed up, handed
    /// on and forgotten.
    fn change_lives(&mut self, chat: usize, other: usize, number: u32) {
        let may_go_on = self.lives[chat].number + 1 < LIVES;
        match number % 5 {
            0 => self.rewind(chat),
            1 if may_go_on => self.branch(chat),
            1 => self.rewind(chat),
            2 => self.hand_on(other),
            3 => self.sum_up(chat, number),
            4 if may_go_on => self.begin_anew(chat),
            _ => self.forget(chat),
        }
    }

    fn rewind(&mut self, chat: usize) {
        let last = self.lives[chat].entries;
        let said = self.entry(chat);
        let session = self.lives[chat].session.id.clone();
        let rewind =
            Rewind { session, from: last.saturating_sub(1), upto: last, by: Some(alice().id) };
        let commit = Commit { rewinds: vec![rewind], ..self.record(chat, said) };
        self.script.one(Op::Commit(Box::new(commit)));
    }

    fn branch(&mut self, chat: usize) {
        let life = &mut self.lives[chat];
        let (from, upto) = (life.session.id.clone(), life.entries.saturating_sub(1));
        let retired = Some(life.go_on(Retired::Branched));
        let branch = Some(Branch { from, to: life.session.id.clone(), upto });
        let said = self.entry(chat);
        let commit = Commit { retired, branch, ..self.record(chat, said) };
        self.script.one(Op::Commit(Box::new(commit)));
    }

    fn begin_anew(&mut self, chat: usize) {
        let life = &mut self.lives[chat];
        let over = life.session.id.clone();
        let retired = Some(life.go_on(Retired::New));
        (life.entries, life.session.title) = (0, String::new());
        let said = self.entry(chat);
        let commit = Commit { retired, ..self.record(chat, said) };
        self.script.one(Op::PutAway(over.clone()));
        self.script.one(Op::Commit(Box::new(commit)));
        let title = format!("{} again", canary(&self.lives[chat].session.key));
        self.script.one(Op::Rename(over, title));
    }

    /// The newest row of a conversation is done in the background, and those before it by nobody.
    fn hand_on(&mut self, chat: usize) {
        let newest = Seq(self.last_seq);
        let said = self.entry(chat);
        let side = beside(&self.lives[chat].session.key);
        let forwarded = vec![(newest, side.clone())];
        let dropped = Some(Dropped { before: newest, reason: "stopped".into() });
        let commit = Commit { forwarded, dropped, ..self.record(chat, said) };
        self.script.one(Op::Commit(Box::new(commit)));
        let session = begun(&side);
        let done = entry(1, &format!("{} beside", canary(&side)));
        let commit = Commit {
            journal: vec![JournalChange { seq: newest, state: JournalState::Handled }],
            entries: vec![(session.id.clone(), Entry { at: self.now(), ..done })],
            ..step(&session)
        };
        self.script.one(Op::Commit(Box::new(commit)));
    }

    fn sum_up(&mut self, chat: usize, number: u32) {
        let mut summary = self.entry(chat);
        summary.body = EntryBody::Summary {
            after: 1,
            upto: summary.number.saturating_sub(3),
            text: format!("{} in short", canary(&self.lives[chat].session.key)),
            usage: Usage::default(),
            cost: Cost::known(1),
        };
        let commit = self.record(chat, summary);
        self.script.one(Op::Commit(Box::new(commit)));
        let Session { id, at: to, .. } = &self.lives[chat].session;
        let notice = post(id, to, 10_000 + number, 0);
        self.script.one(Op::Tell(notice, at(LATER + self.now)));
    }

    fn forget(&mut self, chat: usize) {
        let said = self.entry(chat);
        let commit = self.record(chat, said);
        self.script.one(Op::Commit(Box::new(commit)));
        self.script.one(Op::ForgetLives(at(self.now)));
        self.script.one(Op::ForgetEntries(at(self.now - 30)));
        self.script.one(Op::Shrink);
    }

    /// A step that records something.
    fn record(&mut self, chat: usize, said: Entry) -> Commit {
        let now = self.now();
        let life = &mut self.lives[chat];
        (life.session.updated, life.session.active) = (now, now);
        let entries = vec![(life.session.id.clone(), said)];
        Commit { entries, at: at(LATER + now.as_millis()), ..step(&life.session) }
    }

    fn admit(&mut self, chat: usize, many: u64) -> Op {
        let now = self.now();
        let life = &mut self.lives[chat];
        let key = life.session.key.clone();
        let mut events = Vec::new();
        if let Some(again) = life.last_event.filter(|_| self.dice.coin()) {
            events.push((key.clone(), inbound(&key, &again.to_string()), JournalState::Unread));
        }
        for _ in 0..many {
            self.last_seq += 1;
            let mut inbound = inbound(&key, &self.last_seq.to_string());
            if let talaria_model::InboundKind::Said(message) = &mut inbound.kind {
                message.text = format!("{} {}", canary(&key), self.last_seq);
                message.files = vec![file(self.last_seq as u32 % FILES)];
            }
            events.push((key.clone(), inbound, JournalState::Unread));
        }
        life.last_event = Some(self.last_seq);
        let cursor = Some(self.last_seq.to_string());
        Op::Admit(Delivered { account: key.account, events, cursor, at: now })
    }

    fn begin(&mut self, chat: usize, rows: std::ops::Range<u64>, turn: &TurnId) -> Op {
        let now = self.now();
        let said = self.entry(chat);
        let life = &mut self.lives[chat];
        (life.session.updated, life.session.active) = (now, now);
        life.session.phase = Phase::Thinking(hand(&life.session));
        let journal = rows.map(|seq| {
            let state = match seq % 5 {
                0 => JournalState::Denied("not on the list".into()),
                1 => JournalState::Handled,
                _ => JournalState::Bound(turn.clone()),
            };
            JournalChange { seq: Seq(seq), state }
        });
        Op::Commit(Box::new(Commit {
            journal: journal.collect(),
            entries: vec![(life.session.id.clone(), said)],
            at: at(LATER + now.as_millis()),
            ..step(&life.session)
        }))
    }

    fn answer(&mut self, chat: usize, posts: &[Outbound]) -> Op {
        let now = self.now();
        let entries = [self.entry(chat), self.entry(chat)];
        let life = &mut self.lives[chat];
        (life.session.updated, life.session.active) = (now, now);
        life.session.phase = Phase::Idle;
        life.session.turns += 1;
        life.session.title = format!("title at {} {}", now.as_millis(), canary(&life.session.key));
        Op::Commit(Box::new(Commit {
            entries: entries.map(|entry| (life.session.id.clone(), entry)).to_vec(),
            outbox: posts.to_vec(),
            at: at(LATER + now.as_millis()),
            ..step(&life.session)
        }))
    }

    fn entry(&mut self, chat: usize) -> Entry {
        let now = self.now();
        let life = &mut self.lives[chat];
        life.entries += 1;
        let text = format!("{} {}", canary(&life.session.key), life.entries);
        let mut entry = Entry { at: now, ..entry(life.entries, &text) };
        if let EntryBody::Said { files, .. } = &mut entry.body {
            files.push(file(life.entries % FILES));
        }
        entry
    }

    /// Some are longer than a page, so that a step is more than one write to the disk.
    fn post(&mut self, chat: usize, part: u16) -> Outbound {
        let life = &self.lives[chat];
        let mut post = post(&life.session.id, &life.session.at, life.deliveries, part);
        let long = if self.dice.below(3) == 0 { self.dice.below(12_000) } else { 100 };
        let text = format!("{} {}", canary(&life.session.key), "x".repeat(long));
        post.act = Act::Post(Content::text(text));
        post
    }

    fn settlement(&mut self, number: u32) -> Settlement {
        let message = Some(MessageId::new(format!("m{number}")).expect("a test's id"));
        match self.dice.below(8) {
            0 => Settlement::Again { at: at(self.now + 5) },
            1 => Settlement::Unsure,
            2 => Settlement::Plain,
            3 => Settlement::Undeliverable { reason: "the chat is gone".into() },
            _ => Settlement::Delivered(Receipt { message, at: at(self.now) }),
        }
    }
}

/// What can be asked about afterwards.
pub(super) fn asked() -> Asked {
    let chats: Vec<_> = CHATS.iter().map(|(account, chat)| key(account, chat)).collect();
    let keys: Vec<_> = chats.iter().flat_map(|key| [key.clone(), beside(key)]).collect();
    let owner = |account| Owner::Person { account: key(account, "c").account, person: alice().id };
    Asked {
        addresses: chats.iter().map(address).collect(),
        lives: keys.iter().flat_map(lives_of).collect(),
        owners: ["one", "two"].map(owner).to_vec(),
        queries: vec!["canary"],
        files: (0..FILES).map(|number| file(number).id).collect(),
        keys,
    }
}
