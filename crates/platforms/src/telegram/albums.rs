//! Albums: several messages that people sent as one. Telegram delivers them one by one and says which
//! belong together; the gateway puts them together.

use talaria_model::{Addressed, InboundKind};

use super::decode::Event;
use super::places::Bounded;

/// Albums of which a part was said to us. Only one part has the caption that names us.
#[derive(Default)]
pub(super) struct Albums {
    to_us: Bounded<String, ()>,
}

impl Albums {
    /// What is said to us in one part of an album is said to us in all of them.
    pub(super) fn address(&mut self, event: &mut Event) {
        let Some(album) = name(event) else { return };
        let InboundKind::Said(message) = &mut event.inbound.kind else { return };
        match message.addressed {
            Addressed::ToUs => self.to_us.put(album, ()),
            Addressed::ToOthers if self.to_us.get(&album).is_some() => {
                message.addressed = Addressed::ToUs;
            }
            Addressed::ToOthers | Addressed::ToAnotherBot => {}
        }
    }
}

/// Album numbers are unique in their chat only.
fn name(event: &Event) -> Option<String> {
    event.album.as_ref().map(|album| format!("{} {album}", event.inbound.to.chat.id))
}
