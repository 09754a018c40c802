//! The vendor behind an account, in memory: what people say, what it shows, how it misbehaves. It
//! outlives every gateway that connects to it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, stream};
use talaria_clock::{Clock, SystemClock};
use talaria_model::{
    AccountId, Act, Address, Capabilities, Chat, ChatId, ChatKind, ChoiceId, Content, Deletes,
    EventId, Idempotency, Inbound, InboundKind, Message, MessageId, Outbound, Receipt, Sender,
    SenderId, Timestamp,
};
use talaria_platform::{
    Account, Ack, Arrival, Arrivals, Batch, Committed, ConnectError, Cursor, Identity, Incoming,
    Link, LinkError, Outgoing, Ports, SendError, Spec, Startup, Surface, Verdict,
};
use tokio::sync::watch;

use super::points::Points;

/// What a resend says of itself.
pub(crate) const MARK: &str = "sent again after an interruption";

const SPEC: Spec = Spec {
    name: "scripted",
    label: "Scripted",
    about: "Does what a test says.",
    capabilities: Capabilities::PLAIN,
    identity: Identity::Anyone,
    startup: Startup::Always,
    guide: "",
};

/// A vendor. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Vendor(Arc<Office>);

struct Office {
    account: AccountId,
    can: Capabilities,
    hears: Hears,
    points: Points,
    state: Mutex<Truth>,
    changed: watch::Sender<u64>,
}

/// How the gateway hears from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hears {
    /// A stream that begins after a cursor.
    Stream,
    /// Requests, each of which waits for its acknowledgement.
    Requests,
}

/// What a vendor does with one act.
#[derive(Debug, Clone)]
pub(crate) enum Conduct {
    /// Shows it and says so.
    Shows,
    /// Shows it and says so, after a while.
    ShowsAfter(Duration),
    /// Shows it and says so, without naming the message.
    ShowsNameless,
    /// Shows it and never says so.
    ShowsSilently,
    /// Shows nothing and says nothing.
    LosesSilently,
    /// Shows nothing and says why.
    Refuses(SendError),
    /// Breaks down.
    Panics,
}

type Script = Box<dyn FnMut(&Outbound) -> Conduct + Send>;

/// Everything that happened at a vendor.
#[derive(Default)]
pub(crate) struct Truth {
    /// What people did, in order.
    pub(crate) happened: Vec<Inbound>,
    /// With which position a gateway connected, each time.
    pub(crate) connected: Vec<Option<u64>>,
    /// What became of each batch that was handed over.
    pub(crate) batches: Vec<HandedOver>,
    /// Everything it was asked to do, when, in order.
    pub(crate) acts: Vec<(Timestamp, Outbound)>,
    /// What people see, in the order in which it appeared.
    pub(crate) shown: Vec<Shown>,
    acknowledged: usize,
    posted: usize,
    script: Option<Script>,
    refuses: VecDeque<ConnectError>,
    connection: u64,
    lost: Option<LinkError>,
    connects: Connects,
    panics_on_next_arrival: bool,
}

/// What happens on the next connection.
#[derive(Default)]
enum Connects {
    #[default]
    Normally,
    Never,
    ByPanicking,
}

/// A batch that was handed to the gateway.
pub(crate) struct HandedOver {
    /// The events in it.
    pub(crate) events: Vec<EventId>,
    /// What the gateway said of it; none as long as it said nothing, and when it dropped it.
    pub(crate) verdicts: Option<Vec<Verdict>>,
}

/// A message as people see it.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) message: MessageId,
    pub(crate) to: Address,
    pub(crate) content: Content,
    /// The act that made it.
    pub(crate) by: talaria_model::OutboundId,
    /// How often it was changed.
    pub(crate) edits: usize,
}

impl Vendor {
    pub(crate) fn new(
        account: &'static str,
        can: Capabilities,
        hears: Hears,
        points: Points,
    ) -> Self {
        Self(Arc::new(Office {
            account: AccountId::literal(account),
            can,
            hears,
            points,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
        }))
    }

    pub(crate) fn account(&self) -> AccountId {
        self.0.account.clone()
    }

    pub(crate) fn can(&self) -> Capabilities {
        self.0.can
    }

    /// The account that reaches this vendor.
    pub(crate) fn open(&self) -> Account {
        let vendor = self.clone();
        Account::new(SPEC, self.0.can, move |ports| vendor.clone().connect(ports).boxed())
    }

    async fn connect(self, ports: Ports) -> Result<Link, ConnectError> {
        let position = ports.cursor.map(|cursor| cursor.0.parse().expect("our own cursor"));
        let refused = {
            let mut truth = self.lock();
            truth.connected.push(position);
            let known = usize::try_from(position.unwrap_or(0)).expect("small");
            truth.acknowledged = truth.acknowledged.max(known);
            truth.refuses.pop_front()
        };
        self.bump();
        if let Some(error) = refused {
            return Err(error);
        }
        let connects = std::mem::take(&mut self.lock().connects);
        match connects {
            Connects::Normally => {}
            Connects::Never => return std::future::pending().await,
            Connects::ByPanicking => panic!("the test says so"),
        }
        let connection = self.lock().connection;
        let outgoing = Arc::new(Mouth { vendor: self.clone(), clock: ports.clock, connection });
        let arrivals = self.clone().arrivals(position.unwrap_or(0), connection);
        let incoming = match self.0.hears {
            Hears::Stream => Incoming::Stream(arrivals),
            Hears::Requests => {
                Incoming::Served { on: Surface::Webhook, routes: axum::Router::new(), arrivals }
            }
        };
        Ok(Link { incoming, outgoing })
    }

    fn arrivals(self, from: u64, connection: u64) -> Arrivals {
        // A vendor that calls us remembers by itself what it has already handed over.
        let next = match self.0.hears {
            Hears::Stream => usize::try_from(from).expect("small"),
            Hears::Requests => self.lock().batches.iter().map(|batch| batch.events.len()).sum(),
        };
        stream::unfold((self, next), move |(vendor, next)| async move {
            let mut changed = vendor.0.changed.subscribe();
            loop {
                {
                    let mut truth = vendor.lock();
                    if truth.connection != connection {
                        let reason = "hung up".to_owned();
                        let lost = truth.lost.take().unwrap_or(LinkError::Lost { reason });
                        drop(truth);
                        return Some((Err(lost), (vendor, next)));
                    }
                    if std::mem::take(&mut truth.panics_on_next_arrival) {
                        drop(truth);
                        panic!("the test says so");
                    }
                    if next < truth.happened.len() {
                        let most = if vendor.0.hears == Hears::Stream { 16 } else { 1 };
                        let events: Vec<Inbound> =
                            truth.happened[next..].iter().take(most).cloned().collect();
                        let ids = events.iter().map(|event| event.id.clone()).collect();
                        let place = truth.batches.len();
                        truth.batches.push(HandedOver { events: ids, verdicts: None });
                        drop(truth);
                        let next = next + events.len();
                        let told = vendor.clone();
                        let ack = Ack::with(move |Committed(verdicts)| {
                            let mut truth = told.lock();
                            truth.batches[place].verdicts = Some(verdicts);
                            truth.acknowledged = truth.acknowledged.max(next);
                            drop(truth);
                            told.bump();
                        });
                        let cursor =
                            (vendor.0.hears == Hears::Stream).then(|| Cursor(next.to_string()));
                        let batch = Batch { events, cursor, ack };
                        return Some((Ok(Arrival::Batch(batch)), (vendor, next)));
                    }
                }
                if changed.changed().await.is_err() {
                    return None;
                }
            }
        })
        .boxed()
    }

    /// Somebody says something in a chat with us alone.
    pub(crate) fn say(&self, who: &str, chat: &str, text: &str) -> EventId {
        let message = Message { text: text.into(), ..Message::default() };
        self.does(who, self.dm(chat), InboundKind::Said(message))
    }

    /// Somebody says something in a group.
    pub(crate) fn say_in_group(&self, who: &str, chat: &str, text: &str) -> EventId {
        let message = Message { text: text.into(), ..Message::default() };
        self.does(who, self.group(chat), InboundKind::Said(message))
    }

    pub(crate) fn press(&self, who: &str, chat: &str, choice: &ChoiceId) -> EventId {
        self.does(who, self.dm(chat), InboundKind::Pressed(choice.clone()))
    }

    pub(crate) fn press_stop(&self, who: &str, chat: &str) -> EventId {
        self.does(who, self.dm(chat), InboundKind::Stopped)
    }

    pub(crate) fn dm(&self, chat: &str) -> Address {
        self.address(chat, ChatKind::Dm)
    }

    pub(crate) fn group(&self, chat: &str) -> Address {
        self.address(chat, ChatKind::Group)
    }

    fn address(&self, chat: &str, kind: ChatKind) -> Address {
        let chat = Chat { id: ChatId::new(chat).expect("a chat"), kind };
        Address { account: self.account(), chat, thread: None }
    }

    fn does(&self, who: &str, to: Address, kind: InboundKind) -> EventId {
        let number = self.lock().happened.len() + 1;
        self.deliver(Inbound {
            id: EventId::new(format!("event-{number}")).expect("an id"),
            at: Timestamp::default(),
            from: Sender { id: SenderId::new(who).expect("a sender"), name: None },
            to,
            kind,
        })
    }

    /// Hands this to the gateway, whatever it is.
    pub(crate) fn deliver(&self, inbound: Inbound) -> EventId {
        let id = inbound.id.clone();
        self.lock().happened.push(inbound);
        self.bump();
        id
    }

    /// Delivers an event once more.
    pub(crate) fn repeat(&self, id: &EventId) {
        let again = self.lock().happened.iter().find(|event| event.id == *id).cloned();
        self.deliver(again.expect("it happened"));
    }

    /// Decides about each act from here on.
    pub(crate) fn behaves(&self, script: impl FnMut(&Outbound) -> Conduct + Send + 'static) {
        self.lock().script = Some(Box::new(script));
    }

    /// Treats the next posts and edits like this, one after the other, and then behaves.
    pub(crate) fn first(&self, conducts: impl IntoIterator<Item = Conduct>) {
        let mut conducts: VecDeque<_> = conducts.into_iter().collect();
        self.behaves(move |outbound| match outbound.act {
            Act::Typing | Act::Draft(_) => Conduct::Shows,
            _ => conducts.pop_front().unwrap_or(Conduct::Shows),
        });
    }

    /// Somebody removes every message of ours.
    pub(crate) fn wipe(&self) {
        self.lock().shown.clear();
        self.bump();
    }

    /// Breaks the connection; the next attempts to connect end like this.
    pub(crate) fn hangs_up(&self, then_refuses: impl IntoIterator<Item = ConnectError>) {
        let mut truth = self.lock();
        truth.connection += 1;
        truth.refuses.extend(then_refuses);
        drop(truth);
        self.bump();
    }

    /// Ends the connection for this reason.
    pub(crate) fn ends_with(&self, lost: LinkError) {
        self.lock().lost = Some(lost);
        self.hangs_up([]);
    }

    pub(crate) fn panics_on_next_connection(&self) {
        self.lock().connects = Connects::ByPanicking;
    }

    pub(crate) fn hangs_while_connecting(&self) {
        self.lock().connects = Connects::Never;
    }

    pub(crate) fn panics_on_next_arrival(&self) {
        self.lock().panics_on_next_arrival = true;
        self.bump();
    }

    /// The texts that can be read in a chat with us alone.
    pub(crate) fn texts(&self, chat: &str) -> Vec<String> {
        self.texts_at(&self.dm(chat))
    }

    pub(crate) fn texts_at(&self, to: &Address) -> Vec<String> {
        let truth = self.lock();
        let shown = truth.shown.iter().filter(|shown| shown.to == *to);
        shown.map(|shown| shown.content.text.clone()).collect()
    }

    /// Whether everything that happened has been acknowledged.
    pub(crate) fn is_heard(&self) -> bool {
        let truth = self.lock();
        truth.acknowledged == truth.happened.len()
    }

    pub(crate) fn truth<T>(&self, read: impl FnOnce(&Truth) -> T) -> T {
        read(&self.lock())
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    fn bump(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Truth> {
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

struct Mouth {
    vendor: Vendor,
    clock: Arc<dyn Clock>,
    connection: u64,
}

#[async_trait]
impl Outgoing for Mouth {
    async fn send(&self, outbound: &Outbound) -> Result<Receipt, SendError> {
        let durable = !matches!(outbound.act, Act::Typing | Act::Draft(_));
        if durable {
            self.vendor.0.points.pass(&format!("sending {}", outbound.id)).await;
        }
        let conduct = {
            let mut truth = self.vendor.lock();
            if truth.connection != self.connection {
                return Err(SendError::Unreachable { reason: "hung up".into() });
            }
            truth.acts.push((self.clock.now(), outbound.clone()));
            truth.script.as_mut().map_or(Conduct::Shows, |script| script(outbound))
        };
        self.vendor.bump();
        let unconfirmed = || Err(SendError::Unconfirmed { reason: "silence".into() });
        if let Conduct::ShowsAfter(wait) = conduct {
            SystemClock.sleep(wait).await;
        }
        let sent = match conduct {
            Conduct::Shows | Conduct::ShowsAfter(_) => {
                self.show(outbound).map(|message| Receipt { message, at: self.clock.now() })
            }
            Conduct::ShowsNameless => {
                self.show(outbound).map(|_| Receipt { message: None, at: self.clock.now() })
            }
            Conduct::ShowsSilently => self.show(outbound).and_then(|_| unconfirmed()),
            Conduct::LosesSilently => unconfirmed(),
            Conduct::Refuses(error) => Err(error),
            Conduct::Panics => panic!("the test says so"),
        };
        self.vendor.bump();
        if durable {
            self.vendor.0.points.pass(&format!("sent {}", outbound.id)).await;
        }
        sent
    }
}

impl Mouth {
    fn show(&self, outbound: &Outbound) -> Result<Option<MessageId>, SendError> {
        let can = self.vendor.0.can;
        let mut truth = self.vendor.lock();
        match &outbound.act {
            Act::Typing | Act::Draft(_) => Ok(None),
            Act::Post(content) => {
                fits(content, &can)?;
                let keyed = can.idempotency != Idempotency::None;
                if let Some(known) =
                    truth.shown.iter().find(|shown| keyed && shown.by == outbound.id)
                {
                    return Ok(Some(known.message.clone()));
                }
                truth.posted += 1;
                let message = MessageId::new(format!("m{}", truth.posted)).expect("an id");
                truth.shown.push(Shown {
                    message: message.clone(),
                    to: outbound.to.clone(),
                    content: content.clone(),
                    by: outbound.id.clone(),
                    edits: 0,
                });
                Ok(Some(message))
            }
            Act::Edit { message, content } => {
                fits(content, &can)?;
                let shown = truth.shown.iter_mut().find(|shown| shown.message == *message);
                let no_such = || SendError::Rejected { reason: "no such message".into() };
                let shown = shown.ok_or_else(no_such)?;
                shown.content = content.clone();
                shown.edits += 1;
                Ok(Some(message.clone()))
            }
            Act::Delete { message } if can.deletes == Deletes::Anytime => {
                truth.shown.retain(|shown| shown.message != *message);
                Ok(None)
            }
            Act::Delete { .. } | Act::React { .. } => {
                Err(SendError::Rejected { reason: "cannot do that".into() })
            }
        }
    }
}

/// A vendor counts for itself.
fn fits(content: &Content, can: &Capabilities) -> Result<(), SendError> {
    let length = content.text.chars().count();
    if length > can.text.max as usize {
        return Err(SendError::Rejected { reason: format!("{length} characters are too many") });
    }
    Ok(())
}
