//! What outlives a connection.

use std::any::Any;
use std::sync::{Arc, OnceLock};

/// What a connection of an account leaves to the next one, as long as the account is set up in the same way.
/// A restart forgets it.
#[derive(Clone, Default)]
pub struct Kept(Arc<OnceLock<Arc<dyn Any + Send + Sync>>>);

impl Kept {
    /// What was left, of the one type that a platform leaves; the first time it is empty.
    pub fn take_up<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let left = self.0.get_or_init(|| Arc::new(T::default())).clone();
        left.downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn who_comes_next_finds_what_was_left() {
        let kept = Kept::default();
        kept.take_up::<AtomicU64>().store(7, Ordering::Relaxed);
        assert_eq!(kept.clone().take_up::<AtomicU64>().load(Ordering::Relaxed), 7);
        assert_eq!(Kept::default().take_up::<AtomicU64>().load(Ordering::Relaxed), 0);
    }
}
