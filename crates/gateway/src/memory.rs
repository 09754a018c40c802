//! What was said in a conversation, kept for as long as its lane is in memory: whoever says one thing
//! after the other does not have the transcript read for each.

use talaria_model::{Entry, EntryBody, SessionId};
use talaria_session::Session;
use talaria_store::Commit;

/// How much of a conversation is kept, in bytes of text. A longer one is read from the store for each
/// turn, which then takes little of the time that its model needs.
const MOST: usize = 16 * 1024;

/// Everything that an agent reads of one life of a conversation, or nothing.
#[derive(Default)]
pub(crate) struct Memory {
    life: Option<Life>,
}

struct Life {
    id: SessionId,
    entries: Vec<Entry>,
    /// Bytes of text in them.
    size: usize,
}

/// What a step does to the life of the conversation that it leaves.
pub(crate) struct Change {
    /// What it appends.
    pub(crate) recorded: Vec<Entry>,
    /// Whether the step takes something back or copies something.
    rewrites: bool,
}

impl Change {
    pub(crate) fn of(commit: &Commit) -> Self {
        let here = commit.entries.iter().filter(|(life, _)| *life == commit.session.id);
        Self {
            recorded: here.map(|(_, entry)| entry.clone()).collect(),
            rewrites: !commit.rewinds.is_empty() || commit.branch.is_some(),
        }
    }
}

impl Memory {
    /// What an agent reads of a life once a step is written, if that is known here and an agent reads
    /// so much.
    pub(crate) fn with(&self, next: &Session, change: &Change, limit: usize) -> Option<Vec<Entry>> {
        let past = match &self.life {
            _ if change.rewrites => return None,
            Some(life) if life.id == next.id => life.entries.as_slice(),
            _ if is_all(next, change) => &[],
            _ => return None,
        };
        let whole = past.iter().chain(&change.recorded).cloned();
        (past.len() + change.recorded.len() < limit).then(|| whole.collect())
    }

    /// Takes in a step that was written.
    pub(crate) fn follow(&mut self, next: &Session, change: Change) {
        let known = self.life.take().filter(|life| life.id == next.id && !change.rewrites);
        let begins = || is_all(next, &change).then(|| Life::new(next.id.clone()));
        let Some(mut life) = known.or_else(begins) else { return };
        life.size += change.recorded.iter().map(size).sum::<usize>();
        // A summary stands in the place of what was said before; which part of it, the store knows.
        let sums_up = |entry: &Entry| matches!(entry.body, EntryBody::Summary { .. });
        if life.size <= MOST && !change.recorded.iter().any(sums_up) {
            life.entries.extend(change.recorded);
            self.life = Some(life);
        }
    }
}

impl Life {
    fn new(id: SessionId) -> Self {
        Self { id, entries: Vec::new(), size: 0 }
    }
}

/// Whether a life has no more entries than a step has just recorded in it.
fn is_all(next: &Session, change: &Change) -> bool {
    !change.rewrites && next.entries as usize == change.recorded.len()
}

/// What there is to read in an entry, in bytes, and something for what surrounds it.
fn size(entry: &Entry) -> usize {
    const BESIDES: usize = 256;
    BESIDES
        + match &entry.body {
            EntryBody::Said { text, heard, .. } => {
                text.len() + heard.as_ref().map_or(0, String::len)
            }
            EntryBody::Answered { text, calls, reasoning, .. } => {
                let calls: usize = calls.iter().map(|call| call.arguments.len()).sum();
                text.len() + calls + reasoning.as_ref().map_or(0, String::len)
            }
            EntryBody::Returned { output, .. } => output.len(),
            EntryBody::Aside { text, .. }
            | EntryBody::Noticed { text, .. }
            | EntryBody::Summary { text, .. } => text.len(),
        }
}
