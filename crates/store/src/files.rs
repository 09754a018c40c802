//! Which files a store's rows hold on to.

use talaria_model::{Act, EntryBody, FileId, FileRef, Inbound, InboundKind};

/// What a file is kept for; the greatest is the most urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// Nothing names it.
    None,
    /// It was part of something that is over: somebody may want to see it once more.
    Past,
    /// Something that is not over needs it: a message that no turn has answered, an entry of a
    /// conversation with a turn in hand or of one that such a conversation branched off, a parcel that has not arrived.
    Present,
}

/// The files that came with an event.
pub fn files_of_inbound(inbound: &Inbound) -> impl Iterator<Item = &FileId> {
    ids(match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => &message.files,
        InboundKind::Pressed(_) | InboundKind::Stopped => &[],
    })
}

/// The files that an act takes along.
pub fn files_of_act(act: &Act) -> impl Iterator<Item = &FileId> {
    ids(match act {
        Act::Post(content) | Act::Edit { content, .. } => &content.files,
        Act::Draft(draft) => &draft.content.files,
        Act::Delete { .. } | Act::React { .. } | Act::Mark { .. } => &[],
        Act::Typing | Act::Rest => &[],
    })
}

/// The files that an entry names.
pub fn files_of_entry(body: &EntryBody) -> impl Iterator<Item = &FileId> {
    ids(match body {
        EntryBody::Said { files, .. }
        | EntryBody::Aside { files, .. }
        | EntryBody::Answered { files, .. }
        | EntryBody::Noticed { files, .. }
        | EntryBody::Returned { files, .. } => files,
        EntryBody::Summary { .. } => &[],
    })
}

fn ids(files: &[FileRef]) -> impl Iterator<Item = &FileId> {
    files.iter().map(|file| &file.id)
}
