//! What a session's prompts begin with, kept from turn to turn.
//!
//! A provider finds a prompt in its cache again only if every byte from the first one on is the same.
//! Here the beginning is kept as it was sent: the instructions with the description of the place,
//! which may have changed meanwhile, and the conversation with its pictures and files, which need not
//! be read again and may be gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_model::{CallId, SessionId, Timestamp, TurnId};

use crate::prompt::PICTURE_SIZE;
use crate::{Part, PromptMessage};

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixLimits {
    /// Sessions.
    pub sessions: usize,
    /// Bytes of all of them together.
    pub bytes: usize,
    /// How long one is kept that nobody uses. Providers forget sooner.
    pub idle: Duration,
}

impl Default for PrefixLimits {
    fn default() -> Self {
        Self { sessions: 128, bytes: 128 * 1024 * 1024, idle: Duration::from_secs(3600) }
    }
}

/// The beginnings of the prompts of all sessions. One that is in use is never thrown away, even if
/// that takes more room than there should be.
#[derive(Default)]
pub struct Prefixes {
    limits: PrefixLimits,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_session: HashMap<SessionId, Slot>,
    bytes: usize,
    /// Counts uses, because two of them may happen in the same millisecond.
    uses: u64,
}

#[derive(Default)]
struct Slot {
    signature: u64,
    prefix: Option<Arc<Prefix>>,
    bytes: usize,
    used: Timestamp,
    use_number: u64,
    in_use: u32,
    /// When a summary could not be written.
    failed: Option<Timestamp>,
}

/// What a session's prompts begin with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix {
    /// The instructions, and where the conversation takes place.
    pub(crate) system: Option<Arc<str>>,
    /// The chat's own instructions, as they stand in there.
    pub(crate) instructions: Option<Arc<str>>,
    /// The entries that `said` is made of.
    pub(crate) entries: Vec<Seen>,
    /// The conversation up to there.
    pub(crate) said: Conversation,
}

/// An entry that has become part of a prompt. Entries do not change, so this tells it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) number: u32,
    pub(crate) at: Timestamp,
}

/// A conversation on its way into a prompt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<PromptMessage>,
    /// Calls whose results have not come yet.
    pub(crate) unanswered: Vec<CallId>,
    /// The turn of the last entry.
    pub(crate) turn: Option<TurnId>,
}

impl Prefixes {
    /// Keeps as much as `limits` says.
    pub fn new(limits: PrefixLimits) -> Self {
        Self { limits, slots: Mutex::default() }
    }

    /// How many sessions are kept.
    pub fn len(&self) -> usize {
        self.slots().by_session.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes that takes.
    pub fn bytes(&self) -> usize {
        self.slots().bytes
    }

    /// Throws away what nobody has used for too long. Returns how many.
    pub fn sweep(&self, now: Timestamp) -> usize {
        let mut slots = self.slots();
        let idle = |slot: &Slot| slot.in_use == 0 && now.since(slot.used) >= self.limits.idle;
        let old: Vec<SessionId> = slots
            .by_session
            .iter()
            .filter(|(_, slot)| idle(slot))
            .map(|(id, _)| id.clone())
            .collect();
        for session in &old {
            slots.remove(session);
        }
        old.len()
    }

    /// Forgets a session whose life is over.
    pub fn forget(&self, session: &SessionId) {
        self.slots().remove(session);
    }

    /// Takes a session's beginning into use. What was made under another signature is forgotten.
    pub(crate) fn borrow(
        self: &Arc<Self>,
        session: &SessionId,
        signature: u64,
        now: Timestamp,
    ) -> Lease {
        let mut slots = self.slots();
        if slots.by_session.get(session).is_some_and(|slot| slot.signature != signature) {
            slots.clear(session);
        }
        slots.uses += 1;
        let use_number = slots.uses;
        let slot = slots.by_session.entry(session.clone()).or_default();
        slot.signature = signature;
        slot.used = now;
        slot.use_number = use_number;
        slot.in_use += 1;
        let prefix = slot.prefix.clone();
        slots.make_room(&self.limits);
        Lease { prefixes: self.clone(), session: session.clone(), signature, prefix }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    fn remove(&mut self, session: &SessionId) {
        if let Some(slot) = self.by_session.remove(session) {
            self.bytes -= slot.bytes;
        }
    }

    /// Forgets what was made, but not who is using it.
    fn clear(&mut self, session: &SessionId) {
        if let Some(slot) = self.by_session.get_mut(session) {
            self.bytes -= std::mem::take(&mut slot.bytes);
            slot.prefix = None;
        }
    }

    fn make_room(&mut self, limits: &PrefixLimits) {
        while self.by_session.len() > limits.sessions || self.bytes > limits.bytes {
            let unused = self.by_session.iter().filter(|(_, slot)| slot.in_use == 0);
            let Some(oldest) = unused.min_by_key(|(_, slot)| slot.use_number) else { return };
            let oldest = oldest.0.clone();
            self.remove(&oldest);
        }
    }
}

/// A session's beginning in use. Dropping it ends the use.
pub(crate) struct Lease {
    prefixes: Arc<Prefixes>,
    session: SessionId,
    signature: u64,
    pub(crate) prefix: Option<Arc<Prefix>>,
}

impl Lease {
    /// Keeps a beginning for the turns to come.
    pub(crate) fn keep(&mut self, prefix: Prefix) {
        let prefix = Arc::new(prefix);
        let bytes = prefix.bytes();
        self.prefix = Some(prefix.clone());
        let mut slots = self.prefixes.slots();
        let Some(slot) = slots.by_session.get_mut(&self.session) else { return };
        // Somebody else may be using the session under another signature meanwhile.
        if slot.signature != self.signature {
            return;
        }
        let before = std::mem::replace(&mut slot.bytes, bytes);
        slot.prefix = Some(prefix);
        slots.bytes = slots.bytes - before + bytes;
        slots.make_room(&self.prefixes.limits);
    }

    /// When a summary could not be written, if that was so.
    pub(crate) fn failed(&self) -> Option<Timestamp> {
        self.prefixes.slots().by_session.get(&self.session).and_then(|slot| slot.failed)
    }

    /// Remembers that a summary could not be written, or that one could.
    pub(crate) fn set_failed(&self, failed: Option<Timestamp>) {
        if let Some(slot) = self.prefixes.slots().by_session.get_mut(&self.session) {
            slot.failed = failed;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut slots = self.prefixes.slots();
        if let Some(slot) = slots.by_session.get_mut(&self.session) {
            slot.in_use = slot.in_use.saturating_sub(1);
        }
        slots.make_room(&self.prefixes.limits);
    }
}

impl Prefix {
    fn bytes(&self) -> usize {
        let said: usize = self.said.messages.iter().map(size).sum();
        let length = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        length(&self.system)
            + length(&self.instructions)
            + said
            + self.entries.len() * size_of::<Seen>()
    }
}

/// How many bytes a message takes here.
fn size(message: &PromptMessage) -> usize {
    length(message, |base64| base64.len()) + size_of::<PromptMessage>()
}

/// About how many characters a message takes of a prompt.
pub(crate) fn weight(message: &PromptMessage) -> usize {
    length(message, |_| PICTURE_SIZE)
}

fn length(message: &PromptMessage, picture: impl Fn(&str) -> usize) -> usize {
    match message {
        PromptMessage::User(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.len(),
                Part::Image { base64, .. } => picture(base64),
            })
            .sum(),
        PromptMessage::Assistant { text, calls, reasoning } => {
            let calls: usize =
                calls.iter().map(|call| call.arguments.len() + call.tool.len()).sum();
            text.len() + calls + reasoning.as_ref().map_or(0, String::len)
        }
        PromptMessage::ToolResult { output, .. } => output.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PrefixLimits =
        PrefixLimits { sessions: 3, bytes: 10_000, idle: Duration::from_secs(3600) };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn session(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    fn prefix(bytes: usize) -> Prefix {
        let messages = vec![PromptMessage::User(vec![Part::Text("x".repeat(bytes))])];
        Prefix { said: Conversation { messages, ..Conversation::default() }, ..Prefix::default() }
    }

    fn use_once(prefixes: &Arc<Prefixes>, name: &str, now: Timestamp) -> bool {
        let mut lease = prefixes.borrow(&session(name), 1, now);
        let hit = lease.prefix.is_some();
        lease.keep(prefix(100));
        hit
    }

    #[test]
    fn the_one_that_was_not_used_for_longest_goes_first() {
        let prefixes = Arc::new(Prefixes::new(LIMITS));
        for name in ["a", "b", "c", "a", "d"] {
            use_once(&prefixes, name, at(0));
        }
        assert_eq!(prefixes.len(), 3);
        assert!(use_once(&prefixes, "a", at(0)));
        assert!(!use_once(&prefixes, "b", at(0)));
    }

    #[test]
    fn one_in_use_is_never_thrown_away() {
        let prefixes = Arc::new(Prefixes::new(LIMITS));
        let leases: Vec<Lease> = ["a", "b", "c", "d", "e"]
            .map(|name| {
                let mut lease = prefixes.borrow(&session(name), 1, at(0));
                lease.keep(prefix(100));
                lease
            })
            .into();
        assert_eq!(prefixes.len(), 5);
        assert_eq!(prefixes.sweep(at(10_000)), 0);
        drop(leases);
        assert_eq!(prefixes.len(), 3);
    }

    #[test]
    fn what_is_not_used_for_an_hour_goes() {
        let prefixes = Arc::new(Prefixes::new(LIMITS));
        use_once(&prefixes, "a", at(0));
        use_once(&prefixes, "b", at(3000));
        assert_eq!(prefixes.sweep(at(3599)), 0);
        assert_eq!(prefixes.sweep(at(3600)), 1);
        assert!(use_once(&prefixes, "b", at(3600)));
    }

    #[test]
    fn another_signature_finds_nothing() {
        let prefixes = Arc::new(Prefixes::new(LIMITS));
        use_once(&prefixes, "a", at(0));
        assert!(prefixes.borrow(&session("a"), 2, at(0)).prefix.is_none());
        assert!(prefixes.borrow(&session("a"), 2, at(0)).prefix.is_none());
        assert_eq!(prefixes.bytes(), 0);
    }

    #[test]
    fn all_together_take_no_more_room_than_allowed() {
        let prefixes = Arc::new(Prefixes::new(LIMITS));
        for name in ["a", "b"] {
            prefixes.borrow(&session(name), 1, at(0)).keep(prefix(6000));
        }
        assert_eq!(prefixes.len(), 1);
        assert!(prefixes.bytes() <= 10_000);
        prefixes.forget(&session("b"));
        assert_eq!((prefixes.len(), prefixes.bytes()), (0, 0));
    }

    #[test]
    fn the_same_is_counted_once() {
        let prefixes = Arc::new(Prefixes::new(LIMITS));
        use_once(&prefixes, "a", at(0));
        let bytes = prefixes.bytes();
        use_once(&prefixes, "a", at(0));
        assert_eq!(prefixes.bytes(), bytes);
    }
}
