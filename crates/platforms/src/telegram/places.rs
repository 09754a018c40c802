//! What is learnt about chats while listening: names of topics, and groups that got another id. None of
//! it can be asked for. Names are kept in memory, as many as fit; that a group has moved is written down,
//! because its conversations go on under the id that they began with.

use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use talaria_model::{ChatId, Inbound};

use super::decode::News;
use crate::wire::recent::Recent;

/// How many topics and groups are remembered.
const REMEMBERED: usize = 4096;

/// Where moves are written down.
const FILE: &str = "moved.json";

/// Topics and groups, shared by what hears and what speaks.
#[derive(Default)]
pub(super) struct Places {
    known: Mutex<Known>,
    /// Where moves are written down.
    file: Option<PathBuf>,
}

#[derive(Default)]
struct Known {
    topics: Bounded<(i64, i64), String>,
    /// From the old id to the new one.
    moved: Bounded<i64, i64>,
    /// From the new id to the old one.
    came_from: Bounded<i64, i64>,
}

impl Places {
    /// Those of an account, with the moves that were written down.
    pub(super) fn open(folder: &Path) -> Self {
        let file = folder.join(FILE);
        let mut known = Known::default();
        let kept = std::fs::read(&file).ok();
        let moves: Vec<(i64, i64)> =
            kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default();
        for (from, to) in moves.into_iter().rev() {
            known.moves(from, to);
        }
        Self { known: Mutex::new(known), file: Some(file) }
    }

    /// Remembers what an update says.
    pub(super) fn learn(&self, news: News) {
        let mut known = self.lock();
        if let Some((chat, thread, name)) = news.topic {
            let key = (chat, thread);
            if !news.is_first_name || known.topics.get(&key).is_none() {
                known.topics.put(key, name);
            }
        }
        if let Some((from, to)) = news.moved
            && known.moves(from, to) == Move::New
        {
            self.write(&known);
        }
    }

    /// A group has another id from here on.
    pub(super) fn moves(&self, from: i64, to: i64) {
        let mut known = self.lock();
        if known.moves(from, to) == Move::New {
            self.write(&known);
        }
    }

    fn write(&self, known: &Known) {
        let Some(file) = &self.file else { return };
        let moves: Vec<_> = known.moved.0.newest().collect();
        let written = serde_json::to_vec(&moves).map_err(std::io::Error::other).and_then(|moves| {
            let draft = file.with_extension("new");
            std::fs::write(&draft, moves)?;
            std::fs::rename(&draft, file)
        });
        if let Err(error) = written {
            tracing::warn!(%error, "that a group has another id is not written down");
        }
    }

    /// The id that a chat has by now.
    pub(super) fn present(&self, chat: i64) -> i64 {
        self.lock().moved.get(&chat).copied().unwrap_or(chat)
    }

    /// Adds what is known of the place of an event.
    pub(super) fn describe(&self, inbound: &mut Inbound) {
        let Ok(chat) = inbound.to.chat.id.as_str().parse::<i64>() else { return };
        let known = self.lock();
        let thread = inbound.to.thread.as_ref().and_then(|thread| thread.as_str().parse().ok());
        if let Some(thread) = thread {
            inbound.source.topic = known.topics.get(&(chat, thread)).cloned();
        }
        let before = known.came_from.get(&chat);
        inbound.source.moved_from = before.and_then(|id| ChatId::new(id.to_string()).ok());
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn moves(&mut self, from: i64, to: i64) -> Move {
        if from == to || self.moved.get(&from) == Some(&to) {
            return Move::Known;
        }
        self.moved.put(from, to);
        self.came_from.put(to, from);
        Move::New
    }
}

/// Whether it was known that a group has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    New,
    Known,
}

/// A map that forgets what was put into it first.
pub(super) struct Bounded<K, V>(Recent<K, V>);

impl<K: Clone + Eq + Hash, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self(Recent::keeping(REMEMBERED))
    }
}

impl<K: Clone + Eq + Hash, V> Bounded<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        self.0.insert(key, value);
    }

    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }
}
