//! Answers that are spoken, behind the written ones.
//!
//! A session asks for it when it has answered, and says so in what it keeps: what a death cuts off is
//! asked for again, and the recording goes out with the commit that ends the asking. Nobody waits for
//! it, and nothing is said if it cannot be done: what is written says it all.

use std::sync::Arc;
use std::time::Duration;

use talaria_agent::{Attachments, Recording, Speaker, VoiceError};
use talaria_model::{Address, FileRef, Files, Shown};
use talaria_session::Told;
use tokio::sync::Semaphore;

use crate::StoredAttachments;
use crate::hearing::TRIES;
use crate::shared::Shared;
use crate::tasks::{Panicked, calm};

/// What speaks.
#[derive(Clone)]
pub struct Mouth {
    /// Who speaks.
    pub speaker: Arc<dyn Speaker>,
    /// The most of an answer that is spoken, in characters.
    pub longest: usize,
    /// How long it may take until an answer is spoken.
    pub patience: Duration,
    /// Answers that are spoken at the same time.
    pub at_once: usize,
}

/// The same in a gateway that runs.
pub(crate) struct Speaking {
    mouth: Mouth,
    places: Semaphore,
}

impl Speaking {
    pub(crate) fn new(mouth: Mouth) -> Self {
        Self { places: Semaphore::new(mouth.at_once), mouth }
    }
}

/// An answer, spoken, if it can be heard there.
pub(crate) async fn speak(shared: &Shared, at: &Address, text: &str) -> Told {
    let Some(speaking) = &shared.speaking else { return Told::Unspoken };
    let Files::UpTo(most) = shared.capabilities(at).files else { return Told::Unspoken };
    let words = talaria_render::aloud(&talaria_render::parse(text), speaking.mouth.longest);
    if words.is_empty() {
        return Told::Unspoken;
    }
    let spoken = tokio::select! {
        biased;
        spoken = record(shared, speaking, &words) => spoken,
        () = shared.clock.sleep(speaking.mouth.patience) => Err("it took too long".to_owned()),
    };
    match spoken {
        Ok(file) if file.size > most => {
            tracing::warn!(size = file.size, "a spoken answer is larger than its platform takes");
            Told::Unspoken
        }
        Ok(file) => Told::Spoken(file),
        Err(reason) => {
            tracing::warn!(reason, "an answer was not spoken");
            Told::Unspoken
        }
    }
}

async fn record(shared: &Shared, speaking: &Speaking, words: &str) -> Result<FileRef, String> {
    let mut backoff = shared.spread.backoff();
    let mut tries = 0;
    let Recording { name, mime, bytes } = loop {
        let place = speaking.places.acquire().await;
        let tried = calm(speaking.mouth.speaker.speak(words)).await;
        drop(place);
        tries += 1;
        let after = match tried {
            Ok(Ok(recording)) if recording.bytes.is_empty() => {
                return Err("there is no sound in it".into());
            }
            Ok(Ok(recording)) => break recording,
            Ok(Err(VoiceError::Refused { reason })) => return Err(reason),
            Ok(Err(VoiceError::Unavailable { reason, .. })) if tries == TRIES => {
                return Err(reason);
            }
            Ok(Err(VoiceError::Unavailable { after, .. })) => after,
            Err(Panicked) => return Err("something went wrong inside me".into()),
        };
        shared.clock.sleep(after.unwrap_or_default().max(backoff.next())).await;
    };
    let file = StoredAttachments(shared.files.clone()).save(&name, &mime, bytes).await?;
    Ok(FileRef { shown: Shown::Voice, ..file })
}
