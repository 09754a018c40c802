//! What both ways of listening share: updates become events, and what cannot is counted.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use talaria_clock::Clock;

use super::albums::Albums;
use super::decode::{self, Decoded, Event, Us};
use super::places::Places;

/// The updates that are asked for. The others are not sent at all.
pub(super) const HEARD: [&str; 5] =
    ["message", "edited_message", "channel_post", "callback_query", "stopped_message_generation"];

/// Turns updates into events.
pub(super) struct Ears {
    pub(super) us: Us,
    pub(super) places: Arc<Places>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) memory: Mutex<Memory>,
}

/// What is remembered from one update to the next.
#[derive(Default)]
pub(super) struct Memory {
    albums: Albums,
    skipped: u64,
}

/// What an update comes to.
pub(super) enum Heard {
    Event(Box<Event>),
    /// Nobody has to store anything; a press is to be answered all the same.
    Nothing {
        press: Option<String>,
    },
}

impl Ears {
    pub(super) fn hear(&self, number: i64, update: &RawValue) -> Heard {
        let (decoded, news) = decode::decode(number, update, &self.us, self.clock.now());
        self.places.learn(news);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        match decoded {
            Decoded::Event(mut event) => {
                self.places.describe(&mut event.inbound);
                memory.albums.address(&mut event);
                Heard::Event(event)
            }
            Decoded::Nothing { press } => Heard::Nothing { press },
            Decoded::Senseless(reason) => {
                memory.skipped += 1;
                let skipped = memory.skipped;
                let account = &self.us.account;
                tracing::warn!(%account, number, reason, skipped, "skipped an update");
                Heard::Nothing { press: None }
            }
        }
    }
}
