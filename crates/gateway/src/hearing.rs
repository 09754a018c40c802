//! Voice messages: what was said in them, written down before anybody answers.
//!
//! It happens where files are fetched, behind the commit of the message and before the session hears of
//! it, and is recorded with the message: once. What cannot be understood is named in what the model
//! reads, and a recording holds up its own conversation and nobody else's, for a bounded time.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::{Attachments, Recording, Transcriber, VoiceError};
use talaria_model::{
    Addressed, FileRef, Inbound, InboundKind, Message, Shown, Transcript, Understood,
};
use tokio::sync::Semaphore;

use crate::StoredAttachments;
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};

/// How often a recording is tried.
pub(crate) const TRIES: u32 = 3;

/// The most of what was said in one recording, in characters.
const LONGEST: usize = 50_000;

/// What listens to voice messages.
#[derive(Clone)]
pub struct Ears {
    /// Who writes them down.
    pub transcriber: Arc<dyn Transcriber>,
    /// What is listened to.
    pub listens: Listens,
    /// Bytes of one recording.
    pub largest: u64,
    /// How long a message waits until its recordings are written down.
    pub patience: Duration,
    /// Recordings that are written down at the same time.
    pub at_once: usize,
}

/// What is listened to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Listens {
    /// Nothing.
    #[default]
    Never,
    /// Voice messages.
    ToVoice,
    /// Voice messages, and every other sound that comes with a message.
    ToAllSound,
}

impl Listens {
    /// Whether something in an event has to be written down before its session hears of it. What people
    /// say to each other is nobody's business.
    pub(crate) fn is_due(self, inbound: &Inbound) -> bool {
        match &inbound.kind {
            InboundKind::Said(message) => self.next(message).is_some(),
            _ => false,
        }
    }

    /// The first recording that nobody has listened to.
    pub(crate) fn next(self, message: &Message) -> Option<&FileRef> {
        let is_heard = |file: &&FileRef| match self {
            Self::Never => false,
            Self::ToVoice => file.shown == Shown::Voice,
            Self::ToAllSound => file.shown == Shown::Voice || file.mime.starts_with("audio/"),
        };
        let is_new = |file: &&FileRef| {
            !message.transcripts.iter().any(|transcript| transcript.of == file.id)
        };
        let is_ours = message.addressed == Addressed::ToUs;
        message.files.iter().filter(is_heard).find(is_new).filter(|_| is_ours)
    }
}

/// The same in a gateway that runs.
pub(crate) struct Hearing {
    ears: Ears,
    places: Semaphore,
}

impl Hearing {
    pub(crate) fn new(ears: Ears) -> Self {
        Self { places: Semaphore::new(ears.at_once), ears }
    }

    pub(crate) fn listens(&self) -> Listens {
        self.ears.listens
    }
}

/// Writes down what was said in the recordings of a message.
pub(crate) async fn listen(shared: &Shared, message: &mut Message) {
    let Some(hearing) = &shared.hearing else { return };
    let until = shared.clock.now() + hearing.ears.patience;
    while let Some(file) = hearing.ears.listens.next(message) {
        let left = until.since(shared.clock.now());
        let said = tokio::select! {
            biased;
            said = understand(shared, hearing, file) => said,
            () = shared.clock.sleep(left) => Understood::Nothing("it took too long".into()),
        };
        if let Understood::Nothing(reason) = &said {
            tracing::warn!(reason, "a voice message was not understood");
        }
        let (of, owner) = (file.id.clone(), file.owner);
        message.transcripts.push(Transcript { of, said, owner });
    }
}

/// Leaves the recordings of a message alone, and says why.
pub(crate) fn leave(shared: &Shared, message: &mut Message, why: &str) {
    while let Some(file) = shared.listens().next(message) {
        let (of, owner) = (file.id.clone(), file.owner);
        let said = Understood::Nothing(why.to_owned());
        message.transcripts.push(Transcript { of, said, owner });
    }
}

async fn understand(shared: &Shared, hearing: &Hearing, file: &FileRef) -> Understood {
    let nothing = |reason: &str| Understood::Nothing(reason.to_owned());
    let ears = &hearing.ears;
    if file.size > ears.largest {
        return nothing("the recording is too large");
    }
    let files = StoredAttachments(shared.files.clone());
    let mut backoff = shared.spread.backoff();
    let mut tries = 0;
    loop {
        let place = hearing.places.acquire().await;
        // Not before there is a place: recordings that wait are not to fill the memory.
        let Some(bytes) = files.load(file, ears.largest).await else {
            return nothing("the recording is no longer kept");
        };
        let recording = Recording { name: file.name.clone(), mime: file.mime.clone(), bytes };
        let tried = calm(ears.transcriber.transcribe(&recording)).await;
        drop((recording, place));
        tries += 1;
        let after = match tried {
            Ok(Ok(words)) if words.trim().is_empty() => return nothing("nothing was said"),
            Ok(Ok(words)) => {
                return Understood::Words(words.trim().chars().take(LONGEST).collect());
            }
            Ok(Err(VoiceError::Refused { reason })) => return nothing(&reason),
            Ok(Err(VoiceError::Unavailable { reason, .. })) if tries == TRIES => {
                return nothing(&reason);
            }
            Ok(Err(VoiceError::Unavailable { after, .. })) => after,
            Err(Panicked) => return nothing("something went wrong inside me"),
        };
        shared.clock.sleep(after.unwrap_or_default().max(backoff.next())).await;
    }
}
