//! Secrets of ours that somebody says: no row, transcript or model has them, and nobody is told them.

use std::borrow::Cow;

use talaria_model::{Inbound, InboundKind, Transcript, Understood};
use talaria_platform::Worded;

use crate::shared::Shared;

/// Takes out of a message what must not be said, from whatever came with it.
pub(crate) fn mend(shared: &Shared, inbound: &mut Inbound) {
    let (InboundKind::Said(message) | InboundKind::Edited(message)) = &mut inbound.kind else {
        return;
    };
    let quoted = message.quote.iter_mut().chain(&mut message.cited).map(|quote| &mut quote.text);
    let overheard = message.overheard.iter_mut().map(|overheard| &mut overheard.text);
    let spoken = message.transcripts.iter_mut().map(|Transcript { said, .. }| match said {
        Understood::Words(text) | Understood::Nothing(text) => text,
    });
    let media = message.media.iter_mut().filter_map(|media| media.name.as_mut());
    let files = message.files.iter_mut().map(|file| &mut file.name);
    let missing = message.unfetched.iter_mut();
    let missing = missing.flat_map(|file| file.name.iter_mut().chain([&mut file.reason]));
    let named = media.chain(files).chain(missing);
    for text in quoted.chain(overheard).chain(spoken).chain(named).chain([&mut message.text]) {
        clean(shared, text);
    }
}

/// The most of a platform's words about a failure, in characters.
const LONGEST_TOLD: usize = 500;

/// What a platform says about a failure, as it may be recorded, shown and told to people. It is cut once secrets
/// are taken out, because nobody knows one by its first half.
pub(crate) fn told<E: Worded>(shared: &Shared, mut error: E) -> E {
    for words in error.words() {
        clean(shared, words);
        if let Some((end, _)) = words.char_indices().nth(LONGEST_TOLD) {
            words.truncate(end);
            words.push('…');
        }
    }
    error
}

fn clean(shared: &Shared, text: &mut String) {
    if let Cow::Owned(clean) = shared.steward.discreet(text) {
        *text = clean;
    }
}
