//! What is learnt about chats while listening: names of topics, and groups that got another id. None of
//! it can be asked for, and none of it has to be known: it is kept in memory, as much as fits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use talaria_model::{ChatId, Inbound};

use super::decode::News;

/// How many topics and groups are remembered.
const REMEMBERED: usize = 4096;

/// Topics and groups, shared by what hears and what speaks.
#[derive(Default)]
pub(super) struct Places(Mutex<Known>);

#[derive(Default)]
struct Known {
    topics: Bounded<(i64, i64), String>,
    /// From the old id to the new one.
    moved: Bounded<i64, i64>,
    /// From the new id to the old one.
    came_from: Bounded<i64, i64>,
}

impl Places {
    /// Remembers what an update says.
    pub(super) fn learn(&self, news: News) {
        let mut known = self.lock();
        if let Some((chat, thread, name)) = news.topic {
            let key = (chat, thread);
            if !news.is_first_name || known.topics.get(&key).is_none() {
                known.topics.put(key, name);
            }
        }
        if let Some((from, to)) = news.moved {
            known.moves(from, to);
        }
    }

    /// A group has another id from here on.
    pub(super) fn moves(&self, from: i64, to: i64) {
        self.lock().moves(from, to);
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
        inbound.source.alt_chat = before.and_then(|id| ChatId::new(id.to_string()).ok());
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn moves(&mut self, from: i64, to: i64) {
        if from != to {
            self.moved.put(from, to);
            self.came_from.put(to, from);
        }
    }
}

/// A map that forgets what was put into it first.
pub(super) struct Bounded<K, V> {
    values: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Clone + Eq + std::hash::Hash, V> Bounded<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        if self.values.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }

    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        let value = self.values.remove(key)?;
        self.order.retain(|other| other != key);
        Some(value)
    }
}
