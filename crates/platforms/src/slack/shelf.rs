//! What was learnt and may be forgotten: a map with a bound and a date on everything.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_model::Timestamp;

/// Keeps at most so many things; the one put first goes first.
#[derive(Debug)]
pub(super) struct Shelf<K, V> {
    most: usize,
    kept: Mutex<Kept<K, V>>,
}

#[derive(Debug)]
struct Kept<K, V> {
    things: HashMap<K, (V, Timestamp)>,
    order: VecDeque<K>,
}

impl<K: Eq + Hash + Clone, V: Clone> Shelf<K, V> {
    pub(super) fn of(most: usize) -> Self {
        let kept = Kept { things: HashMap::new(), order: VecDeque::new() };
        Self { most, kept: Mutex::new(kept) }
    }

    /// What is known and not too old.
    pub(super) fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let kept = self.lock();
        let (thing, until) = kept.things.get(key)?;
        (now < *until).then(|| thing.clone())
    }

    /// Keeps something for so long.
    pub(super) fn put(&self, key: K, thing: V, now: Timestamp, keep: Duration) {
        let mut kept = self.lock();
        if kept.things.insert(key.clone(), (thing, now + keep)).is_none() {
            kept.order.push_back(key);
        }
        while kept.things.len() > self.most {
            let Some(oldest) = kept.order.pop_front() else { break };
            kept.things.remove(&oldest);
        }
    }

    pub(super) fn forget(&self, key: &K) {
        let mut kept = self.lock();
        if kept.things.remove(key).is_some() {
            kept.order.retain(|other| other != key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_bound_and_forgets_what_is_old() {
        let shelf = Shelf::of(2);
        let at = Timestamp::from_millis;
        for (number, key) in ["a", "b", "a", "c"].into_iter().enumerate() {
            shelf.put(key, number, at(0), Duration::from_secs(1));
        }
        assert_eq!(shelf.get(&"a", at(0)), None, "the first to come is the first to go");
        assert_eq!(shelf.get(&"b", at(999)), Some(1));
        assert_eq!(shelf.get(&"c", at(1000)), None, "too old");
        shelf.forget(&"b");
        assert_eq!(shelf.get(&"b", at(0)), None);
    }
}
