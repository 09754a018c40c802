//! Chats that will not take anything any more, until something is heard from them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talaria_model::Address;

/// How many are known. What comes on top of them is tried, and refused, each time.
const KNOWN: usize = 4096;

/// The chats of an account that have refused us for good, each with the reason.
#[derive(Debug, Default)]
pub(crate) struct Silenced(Mutex<HashMap<Address, String>>);

impl Silenced {
    /// It has just refused.
    pub(crate) fn add(&self, to: Address, reason: String) {
        let mut known = self.lock();
        if known.len() < KNOWN || known.contains_key(&to) {
            known.insert(to, reason);
        }
    }

    /// Why nothing is sent there.
    pub(crate) fn reason(&self, to: &Address) -> Option<String> {
        self.lock().get(to).cloned()
    }

    /// Something was heard from there: whatever stood in the way, in this thread or another, may be
    /// over.
    pub(crate) fn hears(&self, from: &Address) {
        let mut known = self.lock();
        if !known.is_empty() {
            known.retain(|to, _| to.chat.id != from.chat.id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
