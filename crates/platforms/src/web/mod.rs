//! The web chat: a page served by the gateway itself, for the operator.
//!
//! A browser logs in with a single-use token, says things by posting them, and hears by an event
//! stream. What was said is kept by the archive; this folder remembers nothing but who is logged in.
//! Who is let in elsewhere is decided at the desk, which the gateway lends to the operator's own pages.

mod assets;
mod cookie;
mod encode;
mod feed;
mod files;
mod guard;
mod login;
mod pass;
mod people;
mod read;
mod refusal;
mod routes;
mod say;
mod stream;
mod term;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use talaria_clock::Clock;
use talaria_model::{
    AccountId, Act, Address, Capabilities, Chat, ChatId, ChatKind, Choices, Deletes, Drafts, Edits,
    Files, Idempotency, Ids, Marks, Markup, MessageId, Outbound, Pace, Reactions, Receipt,
    TextLimit, Typing, Unit, Whispers,
};
use talaria_platform::{
    Archive, Arrival, Bursts, ConnectError, Desk, FileStore, Identity, Incoming, Link, MenuItem,
    Outgoing, Platform, Ports, Pulse, SendError, Senders, Spec, Startup, Surface,
};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use encode::PageEvent;
use feed::Feed;
use guard::Hosts;
use login::Door;
use pass::Passes;

pub use login::{OF_THE_MOMENT, end_logins, mint_login};

/// The largest file a browser may upload.
const LARGEST_FILE: u64 = 25 * 1024 * 1024;

/// What handlers have received and the gateway has not taken yet. When it is full, the browser is
/// asked to try again.
const ARRIVALS_WAITING: usize = 64;

/// Uploads at the same time. More are asked to try again.
const UPLOADS_AT_ONCE: usize = 4;

/// The web chat.
pub struct Web;

/// How the web chat is reached.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Days until a browser has to log in again, from 1 to 365. One that is not used for a week has to
    /// sooner.
    #[schemars(range(min = 1, max = 365))]
    pub session_days: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { session_days: 30 }
    }
}

impl Platform for Web {
    const SPEC: Spec = Spec {
        name: "web",
        label: "Web chat",
        about: "A page on this machine to talk to the agent from a browser.",
        capabilities: Capabilities {
            text: TextLimit { max: 256 * 1024, unit: Unit::Bytes },
            markup: Markup::Markdown,
            edits: Edits::Every(Duration::from_millis(100)),
            drafts: Drafts::Every(Duration::from_millis(80)),
            deletes: Deletes::Anytime,
            choices: Choices::Buttons { max: 12, id: 512 },
            reactions: Reactions::Never,
            marks: Marks::Never,
            whispers: Whispers::Never,
            pace: Pace::FREE,
            typing: Typing::Fades(Duration::from_secs(5)),
            files: Files::UpTo(LARGEST_FILE),
            reply_within: None,
            // The page recognises every id it has ever shown.
            idempotency: Idempotency::Keyed(Duration::from_secs(10 * 365 * 24 * 60 * 60)),
        },
        note: Some(
            "The person reads on a web page: tables, highlighted code, pictures and links all work, \
             and a button copies what you write as Markdown.",
        ),
        // The page makes up the ids of its conversations and nobody can be mentioned in them.
        bursts: Bursts::NONE,
        ids: Ids::Hideable,
        identity: Identity::Operator,
        senders: Senders::ANY,
        startup: Startup::Always,
        asks: &[],
        guide: include_str!("guide.md"),
    };

    type Settings = Settings;

    fn capabilities(_: &Settings, _: ChatKind) -> Capabilities {
        Self::SPEC.capabilities
    }

    async fn connect(settings: Settings, ports: Ports) -> Result<Link, ConnectError> {
        let hosts = Hosts::new(&ports.hosts)?;
        if !(1..=365).contains(&settings.session_days) {
            return Err(ConnectError::Refused {
                problem: format!("session_days is {}", settings.session_days),
                hint: "set session_days to a number from 1 to 365".into(),
            });
        }
        let lifetime = Duration::from_secs(u64::from(settings.session_days) * 24 * 60 * 60);
        let passes =
            Passes::open(&ports.folder, lifetime, ports.clock.clone()).map_err(|error| {
                ConnectError::Refused {
                    problem: format!("the login key cannot be kept: {error}"),
                    hint: format!("make {} writable for this user", ports.folder.display()),
                }
            })?;
        let (heard, arrivals) = mpsc::channel(ARRIVALS_WAITING);
        let site = Arc::new(Site {
            hosts,
            passes,
            door: Door::new(&ports.folder, ports.clock.clone()),
            feed: Feed::new(ports.clock.clone()),
            heard,
            uploads: Semaphore::new(UPLOADS_AT_ONCE),
            account: ports.account,
            clock: ports.clock,
            files: ports.files,
            archive: ports.archive,
            menu: ports.menu,
            desk: ports.desk,
        });
        Ok(Link {
            incoming: Incoming::Served {
                on: Surface::Root,
                routes: routes::routes(site.clone()),
                arrivals: ReceiverStream::new(arrivals).map(Ok).boxed(),
            },
            outgoing: site,
            library: None,
            pulse: Pulse::Unknown,
        })
    }
}

/// Everything a request may touch.
struct Site {
    account: AccountId,
    clock: Arc<dyn Clock>,
    files: Arc<dyn FileStore>,
    archive: Arc<dyn Archive>,
    menu: Arc<[MenuItem]>,
    desk: Option<Arc<dyn Desk>>,
    hosts: Hosts,
    passes: Passes,
    door: Door,
    feed: Feed,
    heard: mpsc::Sender<Arrival>,
    uploads: Semaphore,
}

impl Site {
    fn address(&self, chat: ChatId) -> Address {
        let chat = Chat { id: chat, kind: ChatKind::Dm };
        Address { account: self.account.clone(), chat, thread: None }
    }
}

/// Shows acts to whoever has the page open. What nobody sees is not lost: a page that opens later
/// reads the archive.
#[async_trait]
impl Outgoing for Site {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let now = self.clock.now();
        let conversation = &outbound.to.chat.id;
        let mut message = None;
        match &outbound.act {
            Act::Post(content) => {
                let id = outbound.id.to_string();
                message = MessageId::new(id.as_str()).ok();
                self.feed.settle(conversation, &outbound.id);
                self.feed.publish(|| PageEvent::posted(conversation, &outbound.id, content, now));
            }
            Act::Draft(draft) if draft.is_blank() => {
                self.feed.settle(conversation, &outbound.id);
                self.feed.publish(|| PageEvent::undrafted(conversation, &outbound.id));
            }
            Act::Draft(draft) => self.feed.draft(conversation, &outbound.id, draft),
            Act::Edit { message, content } => {
                self.feed.publish(|| PageEvent::edited(conversation, message, content));
            }
            Act::Delete { message } => {
                self.feed.publish(|| PageEvent::deleted(conversation, message));
            }
            Act::Typing => self.feed.publish(|| PageEvent::typing(conversation)),
            // It fades.
            Act::Rest => {}
            Act::React { .. } | Act::Mark { .. } => {
                return Err(SendError::Rejected { reason: "the page shows no reactions".into() });
            }
        }
        Ok(Receipt { message, at: now })
    }
}
