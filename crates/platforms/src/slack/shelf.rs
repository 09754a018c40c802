//! What was learnt and may be forgotten: a map with a bound and a date on everything.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_model::Timestamp;

use crate::wire::recent::Recent;

/// Keeps at most so many things; the one put first goes first.
#[derive(Debug)]
pub(super) struct Shelf<K, V>(Mutex<Recent<K, (V, Timestamp)>>);

impl<K: Eq + Hash + Clone, V: Clone> Shelf<K, V> {
    pub(super) fn of(most: usize) -> Self {
        Self(Mutex::new(Recent::keeping(most)))
    }

    /// What is known and not too old.
    pub(super) fn get(&self, key: &K, now: Timestamp) -> Option<V> {
        let kept = self.lock();
        let (thing, until) = kept.get(key)?;
        (now < *until).then(|| thing.clone())
    }

    /// Keeps something for so long.
    pub(super) fn put(&self, key: K, thing: V, now: Timestamp, keep: Duration) {
        self.lock().insert(key, (thing, now + keep));
    }

    pub(super) fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Recent<K, (V, Timestamp)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    }
}
