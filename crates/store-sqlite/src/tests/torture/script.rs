//! What the store is asked to do while its disk is tortured: the lives of a few conversations, as the
//! gateway would write them, with everything that writes.

use futures::future::join_all;
use talaria_faultdisk::Dice;
use talaria_model::{
    Act, Content, Entry, MessageId, Outbound, OutboundId, Receipt, Seq, SessionId, Timestamp,
    TurnId,
};
use talaria_session::{Phase, Session, SessionKey};
use talaria_store::{
    Commit, Delivered, JournalChange, JournalState, SearchScope, Settlement, Store, StoreError,
};

use super::super::seen::Asked;
use super::super::{address, at, entry, hand, inbound, key, post, session, step};

/// Accounts and chats.
pub(super) const CHATS: [(&str, &str); 4] =
    [("one", "c"), ("one", "d"), ("two", "c"), ("two", "會議")];

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
    Prune(Timestamp),
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
            store.settle(id, settlement.clone()).await.map(|()| String::new())
        }
        Op::Prune(before) => store.prune(*before).await.map(|answer| format!("{answer:?}")),
        Op::Recover => store.recover().await.map(|answer| format!("{answer:?}")),
        Op::Close => store.close().await.map(|()| String::new()),
        Op::Search(scope, query) => {
            store.search(scope.clone(), query, 100).await.map(|answer| format!("{answer:?}"))
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
            let mut session = session(&key);
            session.id = life_of(&key);
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
    deliveries: u32,
    entries: u32,
    /// The newest event, which the platform may deliver again.
    last_event: Option<u64>,
}

impl Life {
    fn of(key: SessionKey) -> Self {
        let mut session = session(&key);
        session.id = life_of(&key);
        Self { session, deliveries: 0, entries: 0, last_event: None }
    }
}

fn life_of(key: &SessionKey) -> SessionId {
    SessionId::new(format!("life of {} {}", key.account, key.chat)).expect("a test's id")
}

/// A text that only this conversation has.
pub(super) fn canary(key: &SessionKey) -> String {
    format!("canary-{}-{}", key.account, key.chat)
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
        life.session.updated = now;
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
        life.session.updated = now;
        life.session.phase = Phase::Idle;
        life.session.title = format!("title at {}", now.as_millis());
        Op::Commit(Box::new(Commit {
            entries: entries.map(|entry| (life.session.id.clone(), entry)).to_vec(),
            outbox: posts.to_vec(),
            at: at(LATER + now.as_millis()),
            ..step(&life.session)
        }))
    }

    fn entry(&mut self, chat: usize) -> Entry {
        let life = &mut self.lives[chat];
        life.entries += 1;
        entry(life.entries, &format!("{} {}", canary(&life.session.key), life.entries))
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
    let keys: Vec<_> = CHATS.iter().map(|(account, chat)| key(account, chat)).collect();
    Asked {
        addresses: keys.iter().map(address).collect(),
        lives: keys.iter().map(life_of).collect(),
        queries: vec!["canary"],
        files: Vec::new(),
        keys,
    }
}
