//! Secrets of ours that somebody says: no row, transcript or model has them.

use std::borrow::Cow;

use talaria_model::{Inbound, InboundKind, Transcript, Understood};

use crate::shared::Shared;

/// Takes out of a message what must not be said, from whatever came with it.
pub(crate) fn mend(shared: &Shared, inbound: &mut Inbound) {
    let (InboundKind::Said(message) | InboundKind::Edited(message)) = &mut inbound.kind else {
        return;
    };
    let quoted = message.quote.iter_mut().map(|quote| &mut quote.text);
    let overheard = message.overheard.iter_mut().map(|overheard| &mut overheard.text);
    let spoken = message.transcripts.iter_mut().map(|Transcript { said, .. }| match said {
        Understood::Words(text) | Understood::Nothing(text) => text,
    });
    for text in quoted.chain(overheard).chain(spoken).chain([&mut message.text]) {
        if let Cow::Owned(clean) = shared.steward.discreet(text) {
            *text = clean;
        }
    }
}
