//! The last few things that were learned: bounded, and the oldest is forgotten first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A map that keeps the newest entries only.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    entries: HashMap<K, V>,
    order: VecDeque<K>,
    most: usize,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub(crate) fn keeping(most: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), most }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.entries.insert(key.clone(), value).is_some() {
            return;
        }
        self.order.push_back(key);
        while self.order.len() > self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.entries.remove(key)?;
        self.order.retain(|kept| kept != key);
        Some(value)
    }

    /// The newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = (&K, &V)> {
        self.order.iter().rev().filter_map(|key| Some((key, self.entries.get(key)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut recent = Recent::keeping(2);
        for key in 1..=3 {
            recent.insert(key, key * 10);
        }
        recent.insert(3, 31);
        assert_eq!(recent.get(&1), None);
        assert_eq!(recent.newest().collect::<Vec<_>>(), [(&3, &31), (&2, &20)]);
        assert_eq!(recent.remove(&3), Some(31));
        recent.insert(4, 40);
        assert_eq!(recent.get(&2), Some(&20), "what was removed takes no place");
    }
}
