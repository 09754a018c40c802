//! `loopback`: your own program is the vendor.
//!
//! The gateway connects to an address and speaks lines of JSON, as `wire.rs` declares them. Tests,
//! benchmarks and home-made bridges use it; it can be told to behave like platforms that edit, that
//! recognise repeats, or that can do next to nothing.

mod events;
mod outgoing;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use talaria_model::{
    Capabilities, ChatKind, Choices, Drafts, Edits, Files, Idempotency, Ids, Markup, TextLimit,
    Unit,
};
use talaria_platform::{
    Bursts, ConnectError, Identity, Incoming, Link, Platform, Ports, Pulse, Senders, Spec, Startup,
};

pub use wire::{
    ActReply, ActRequest, Event, FromGateway, Hello, Place, Role, WireAct, WireChoice, WireFile,
};

/// The platform.
pub struct Loopback;

/// How an account is set up.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where your program listens, such as `127.0.0.1:7700`.
    address: String,
    /// The longest message your program takes, in characters.
    #[serde(default = "usual_limit")]
    text_limit: u32,
    /// How many milliseconds have to pass between two edits of a message. Leave it out if messages
    /// cannot be edited.
    #[serde(default)]
    edits_every: Option<u64>,
    /// Whether your program shows a message once that it receives twice with the same id.
    #[serde(default)]
    keyed: bool,
    /// How many buttons fit under a message. None: choices become a numbered list.
    #[serde(default)]
    buttons: u8,
}

fn usual_limit() -> u32 {
    4096
}

impl Platform for Loopback {
    const SPEC: Spec = Spec {
        name: "loopback",
        label: "Loopback",
        about: "Lines of JSON to a program of your own.",
        capabilities: Capabilities {
            text: TextLimit { max: 4096, unit: Unit::Chars },
            markup: Markup::Markdown,
            ..Capabilities::PLAIN
        },
        note: None,
        // What the program behind it makes of an id, only that program knows.
        bursts: Bursts::NONE,
        ids: Ids::Needed,
        identity: Identity::Anyone,
        senders: Senders::ANY,
        startup: Startup::Configured,
        asks: &[],
        guide: include_str!("guide.md"),
    };

    type Settings = Settings;

    fn capabilities(settings: &Settings, _: ChatKind) -> Capabilities {
        Capabilities {
            text: TextLimit { max: settings.text_limit.max(16), unit: Unit::Chars },
            edits: settings
                .edits_every
                .map_or(Edits::Never, |every| Edits::Every(Duration::from_millis(every))),
            drafts: Drafts::Never,
            choices: match settings.buttons {
                0 => Choices::Numbered,
                max => Choices::Buttons { max, id: 512 },
            },
            files: Files::UpTo(25 * 1024 * 1024),
            idempotency: if settings.keyed {
                Idempotency::Keyed(Duration::from_secs(24 * 60 * 60))
            } else {
                Idempotency::None
            },
            ..Self::SPEC.capabilities
        }
    }

    async fn connect(settings: Settings, ports: Ports) -> Result<Link, ConnectError> {
        let arrivals = events::connect(&settings.address, &ports).await?;
        let outgoing = outgoing::Acts::new(settings.address, ports.account, ports.clock);
        Ok(Link {
            incoming: Incoming::Stream(arrivals),
            outgoing: Arc::new(outgoing),
            library: None,
            pulse: Pulse::Unknown,
        })
    }
}
