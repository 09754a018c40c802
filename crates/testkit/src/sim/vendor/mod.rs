//! The vendor behind an account, in memory: what people say, how it reaches us, what is shown, how it
//! all goes wrong. It outlives every gateway that connects to it and keeps its own truth.

mod hears;
mod mouth;
mod shelf;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use talaria_model::{
    AccountId, Act, Address, Capabilities, Chat, ChatId, ChatKind, ChoiceId, Content, Draft,
    EventId, Ids, Inbound, InboundKind, Message, MessageId, Outbound, OutboundId, Progress, Sender,
    SenderId, Source, Timestamp,
};
use talaria_platform::{
    Account, Bursts, ConnectError, Identity, Incoming, Link, LinkError, Ports, Pulse, SendError,
    Senders, Spec, Startup, Surface, Verdict,
};
use tokio::sync::watch;

use super::Ground;
use super::points::Alive;
use crate::Dice;

pub use hears::Hears;
pub use shelf::Handing;

/// What a resend says of itself.
pub const MARK: &str = "sent again after an interruption";

/// What it says where messages are short.
pub const SHORT_MARK: &str = "(again)";

const SPEC: Spec = Spec {
    name: "scripted",
    label: "Scripted",
    about: "Does what a test says.",
    capabilities: Capabilities::PLAIN,
    note: None,
    bursts: Bursts::NONE,
    ids: Ids::Needed,
    identity: Identity::Anyone,
    senders: Senders::ANY,
    startup: Startup::Always,
    asks: &[],
    guide: "",
};

/// A vendor. Clones are the same one.
#[derive(Clone)]
pub struct Vendor(Arc<Desk>);

struct Desk {
    account: AccountId,
    can: Capabilities,
    hears: Hears,
    bursts: Bursts,
    ground: Ground,
    state: Mutex<Truth>,
    changed: watch::Sender<u64>,
}

/// What a vendor does with one act.
#[derive(Debug, Clone)]
pub enum Conduct {
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

/// What a vendor makes of the way events go to the gateway.
#[derive(Debug, Clone)]
pub struct Habits {
    /// How many events it hands over at once.
    pub batch: usize,
    /// Whether events overtake each other, where nothing numbers them.
    pub reorders: bool,
    /// Delivers one in so many again although it was acknowledged; none when zero.
    pub repeats: u64,
    /// Loses one in so many of our acknowledgements; none when zero.
    pub deaf: u64,
    /// How many times it repeats a request that was not acknowledged; then the event is gone.
    pub patience: u32,
    /// How long it keeps events that nobody fetched.
    pub retention: Duration,
}

impl Default for Habits {
    fn default() -> Self {
        let retention = Duration::from_secs(24 * 60 * 60);
        Self { batch: 16, reorders: false, repeats: 0, deaf: 0, patience: u32::MAX, retention }
    }
}

/// Whether the vendor can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// It can.
    #[default]
    Open,
    /// Connections break at once.
    Refused,
    /// Nothing gets through, and nobody says so.
    Silent,
}

type Script = Box<dyn FnMut(&Outbound) -> Conduct + Send>;

/// Everything that happened at a vendor.
#[derive(Default)]
pub struct Truth {
    /// What people did, in order.
    pub happened: Vec<Inbound>,
    /// How far each of it got.
    pub mail: Vec<Mail>,
    /// With which position a gateway connected, each time.
    pub connected: Vec<Option<String>>,
    /// What became of each batch that was handed over.
    pub batches: Vec<HandedOver>,
    /// Everything it was asked to do, when, in order.
    pub acts: Vec<(Timestamp, Outbound)>,
    /// What people see, in the order in which it appeared.
    pub shown: Vec<Shown>,
    /// Acts of which the gateway cannot know whether they were carried out.
    pub doubtful: BTreeMap<OutboundId, u32>,
    /// Acts that were refused for good.
    pub refused: BTreeSet<OutboundId>,
    /// Files that were asked for, in order.
    pub asked_for: Vec<String>,
    shelf: BTreeMap<String, bytes::Bytes>,
    keeper: Option<shelf::Keeper>,
    /// Chats of which it was said that they are gone.
    pub gone: BTreeSet<String>,
    /// The chats in which somebody seems to work on an answer.
    pub works: BTreeSet<String>,
    /// How far people see their messages to be, where they are shown it.
    pub marks: BTreeMap<MessageId, Progress>,
    /// What can be seen of answers that are no messages, and since when.
    pub drafts: BTreeMap<OutboundId, (Draft, Timestamp)>,
    /// What each act was first shown as, and when, as long as repeats are recognised. A message that is
    /// taken away leaves its key behind.
    keys: BTreeMap<(OutboundId, u32), (MessageId, Timestamp)>,
    finds: bool,
    is_operators: bool,
    /// What the gateway lent beyond the ordinary.
    desk: Option<Arc<dyn talaria_platform::Desk>>,
    in_groups: Option<Capabilities>,
    changes: u64,
    posted: usize,
    script: Option<Script>,
    habits: Habits,
    dice: Option<Dice>,
    reach: Reach,
    refuses: VecDeque<ConnectError>,
    connection: u64,
    sequence: u64,
    /// Somebody has heard something and said so.
    introduced: bool,
    lost: Option<LinkError>,
    foreign_until: Option<Timestamp>,
    connects: Connects,
    panics_on_next_arrival: bool,
    /// How often somebody has begun to listen.
    pub listeners: u64,
    listening: u64,
    /// How many have listened at the same time at most.
    pub most_listening: u64,
    /// Listeners up to this one are told nothing any more.
    ignored: u64,
}

/// How far an event got.
#[derive(Debug, Clone)]
pub struct Mail {
    /// When it happened.
    pub at: Timestamp,
    /// Whether we told the vendor that it is safe.
    pub acknowledged: bool,
    /// Whether the vendor gave up on it, or never owed it to us.
    pub gone: bool,
    tries: u32,
    due: Timestamp,
    handed: Option<(u64, Timestamp)>,
    /// Whether the vendor has thought of telling it once more after it was acknowledged.
    considered: bool,
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
pub struct HandedOver {
    /// The events in it.
    pub events: Vec<EventId>,
    /// What the gateway said of it; none as long as it said nothing, and when it dropped it.
    pub verdicts: Option<Vec<Verdict>>,
}

/// A message as people see it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The vendor's name for it.
    pub message: MessageId,
    /// Where it stands.
    pub to: Address,
    /// What it says.
    pub content: Content,
    /// The act that made it.
    pub by: OutboundId,
    /// How often it was changed.
    pub edits: usize,
    /// Whether it ever said of itself that it may be a repeat.
    pub was_marked: bool,
    /// When it appeared.
    pub at: Timestamp,
    /// Its place among all changes at this vendor: when it began to say what it says.
    pub changed: u64,
}

impl Shown {
    /// Whether it says of itself that it may be a repeat.
    pub fn is_marked(&self) -> bool {
        is_marked(&self.content)
    }
}

/// Whether something says of itself that it may be a repeat.
fn is_marked(content: &Content) -> bool {
    content.text.contains(MARK) || content.text.starts_with(SHORT_MARK)
}

impl Vendor {
    /// A vendor where nothing has happened yet.
    pub fn new(account: &str, can: Capabilities, hears: Hears, ground: Ground) -> Self {
        Self::bursting(account, can, hears, Bursts::NONE, ground)
    }

    /// A vendor that delivers in parts what people send as one.
    pub fn bursting(
        account: &str,
        can: Capabilities,
        hears: Hears,
        bursts: Bursts,
        ground: Ground,
    ) -> Self {
        Self(Arc::new(Desk {
            account: AccountId::new(account).expect("an account"),
            can,
            hears,
            bursts,
            ground,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
        }))
    }

    /// Its account.
    pub fn account(&self) -> AccountId {
        self.0.account.clone()
    }

    /// What it can do.
    pub fn can(&self) -> Capabilities {
        self.0.can
    }

    /// How the gateway hears from it.
    pub fn hears(&self) -> Hears {
        self.0.hears
    }

    /// The account that reaches this vendor.
    pub fn open(&self) -> Account {
        let vendor = self.clone();
        let (can, in_groups) = (self.0.can, self.lock().in_groups);
        let identity = match self.lock().is_operators {
            true => Identity::Operator,
            false => Identity::Anyone,
        };
        let spec = Spec { bursts: self.0.bursts, identity, ..SPEC };
        Account::new(spec, can, move |ports| vendor.clone().connect(ports).boxed())
            .able(|kind| if kind == ChatKind::Dm { can } else { in_groups.unwrap_or(can) })
    }

    async fn connect(self, ports: Ports) -> Result<Link, ConnectError> {
        if self.0.ground.points.alive() == Alive::No {
            return std::future::pending().await;
        }
        let cursor = ports.cursor.map(|cursor| cursor.0);
        self.0.ground.log.note(format_args!("{} connects at {cursor:?}", self.0.account));
        let (refused, reach, connects) = {
            let mut truth = self.lock();
            truth.connected.push(cursor.clone());
            truth.desk = ports.desk;
            let refused = truth.refuses.pop_front();
            (refused, truth.reach, std::mem::take(&mut truth.connects))
        };
        self.bump();
        let away = || ConnectError::Unreachable { reason: "no route".into() };
        match (refused, reach, connects) {
            (Some(error), ..) => return Err(error),
            (None, Reach::Refused, _) => return Err(away()),
            (None, Reach::Silent, _) | (None, _, Connects::Never) => {
                return std::future::pending().await;
            }
            (None, _, Connects::ByPanicking) => panic!("the test says so"),
            (None, Reach::Open, Connects::Normally) => {}
        }
        let client = self.begin_listening(cursor.as_deref());
        let outgoing = Arc::new(mouth::Mouth {
            vendor: self.clone(),
            clock: ports.clock,
            files: ports.files,
            connection: client.connection,
        });
        let arrivals = self.clone().arrivals(client);
        let incoming = match self.0.hears {
            Hears::Requests => {
                Incoming::Served { on: Surface::Webhook, routes: axum::Router::new(), arrivals }
            }
            _ => Incoming::Stream(arrivals),
        };
        let library = Some(Arc::new(shelf::Shelf(self.clone())) as _);
        // Only a poll comes to an end when nothing happens.
        let pulse = match self.0.hears {
            Hears::Poll => Pulse::USUAL,
            _ => Pulse::Unknown,
        };
        Ok(Link { incoming, outgoing, library, pulse })
    }

    /// Somebody says something in a chat with us alone.
    pub fn say(&self, who: &str, chat: &str, text: &str) -> EventId {
        let message = Message { text: text.into(), ..Message::default() };
        self.does(who, self.dm(chat), InboundKind::Said(message))
    }

    /// Somebody says something in a chat with us alone, in a message that has a name.
    pub fn say_as(&self, who: &str, chat: &str, text: &str, name: &str) -> EventId {
        let id = MessageId::new(name).ok();
        let message = Message { id, text: text.into(), ..Message::default() };
        self.does(who, self.dm(chat), InboundKind::Said(message))
    }

    /// Somebody says something in a group.
    pub fn say_in_group(&self, who: &str, chat: &str, text: &str) -> EventId {
        let message = Message { text: text.into(), ..Message::default() };
        self.does(who, self.group(chat), InboundKind::Said(message))
    }

    /// Somebody presses a button.
    pub fn press(&self, who: &str, chat: &str, choice: &ChoiceId) -> EventId {
        self.does(who, self.dm(chat), InboundKind::Pressed(choice.clone()))
    }

    /// Somebody presses stop.
    pub fn press_stop(&self, who: &str, chat: &str) -> EventId {
        self.does(who, self.dm(chat), InboundKind::Stopped)
    }

    /// A chat with us alone.
    pub fn dm(&self, chat: &str) -> Address {
        self.address(chat, ChatKind::Dm)
    }

    /// A group.
    pub fn group(&self, chat: &str) -> Address {
        self.address(chat, ChatKind::Group)
    }

    fn address(&self, chat: &str, kind: ChatKind) -> Address {
        let chat = Chat { id: ChatId::new(chat).expect("a chat"), kind };
        Address { account: self.account(), chat, thread: None }
    }

    /// Somebody does something somewhere.
    pub fn does(&self, who: &str, to: Address, kind: InboundKind) -> EventId {
        let number = self.lock().happened.len() + 1;
        self.deliver(Inbound {
            id: EventId::new(format!("event-{number}")).expect("an id"),
            at: self.0.ground.time.now(),
            from: Sender::new(SenderId::new(who).expect("a sender")),
            to,
            source: Source::default(),
            kind,
        })
    }

    /// Hands this to the gateway, whatever it is.
    pub fn deliver(&self, inbound: Inbound) -> EventId {
        let id = inbound.id.clone();
        let at = self.0.ground.time.now();
        let what = match &inbound.kind {
            InboundKind::Said(message) | InboundKind::Edited(message) => message.text.as_str(),
            InboundKind::Pressed(choice) => choice.as_str(),
            InboundKind::Stopped => "stop",
        };
        let (account, chat) = (&self.0.account, &inbound.to.chat.id);
        self.0
            .ground
            .log
            .note(format_args!("{account} {id}: {} in {chat}: {what:.80}", inbound.from.id));
        let mut truth = self.lock();
        truth.happened.push(inbound);
        truth.mail.push(Mail {
            at,
            acknowledged: false,
            gone: false,
            tries: 0,
            due: at,
            handed: None,
            considered: false,
        });
        drop(truth);
        self.bump();
        id
    }

    /// Delivers an event once more.
    pub fn repeat(&self, id: &EventId) {
        let again = self.lock().happened.iter().find(|event| event.id == *id).cloned();
        self.deliver(again.expect("it happened"));
    }

    /// Decides about each act from here on.
    pub fn behaves(&self, script: impl FnMut(&Outbound) -> Conduct + Send + 'static) {
        self.lock().script = Some(Box::new(script));
    }

    /// Treats the next posts and edits like this, one after the other, and then behaves.
    pub fn first(&self, conducts: impl IntoIterator<Item = Conduct>) {
        let mut conducts: VecDeque<_> = conducts.into_iter().collect();
        self.behaves(move |outbound| match outbound.act {
            Act::Typing | Act::Rest | Act::Draft(_) => Conduct::Shows,
            _ => conducts.pop_front().unwrap_or(Conduct::Shows),
        });
    }

    /// What it can do where there are several people, from the next life on.
    pub fn can_in_groups(&self, can: Capabilities) {
        self.lock().in_groups = Some(can);
    }

    /// Tells whoever asks what can be seen of an act, from here on.
    pub fn lets_look(&self) {
        self.lock().finds = true;
    }

    /// Only the operator can write there, from the next life on.
    pub fn is_operators(&self) {
        self.lock().is_operators = true;
    }

    /// The desk that the gateway lent, if it did.
    pub fn desk(&self) -> Option<Arc<dyn talaria_platform::Desk>> {
        self.lock().desk.clone()
    }

    /// How events go from here on.
    pub fn has_habits(&self, habits: Habits, dice: Dice) {
        let mut truth = self.lock();
        truth.habits = habits;
        truth.dice = Some(dice);
    }

    /// Whether it can be reached from here on.
    pub fn is(&self, reach: Reach) {
        self.0.ground.log.note(format_args!("{} is {reach:?}", self.0.account));
        let now = self.0.ground.time.now();
        let mut truth = self.lock();
        truth.tried_in_vain(self.0.hears, now);
        if truth.reach != Reach::Open {
            // What was connected has noticed nothing, and neither side believes in it.
            truth.connection += 1;
        }
        truth.reach = reach;
        drop(truth);
        self.bump();
    }

    /// Whether it can be reached.
    pub fn reach(&self) -> Reach {
        self.lock().reach
    }

    /// Somebody removes every message of ours.
    pub fn wipe(&self) {
        self.lock().shown.clear();
        self.bump();
    }

    /// Breaks the connection; the next attempts to connect end like this.
    pub fn hangs_up(&self, then_refuses: impl IntoIterator<Item = ConnectError>) {
        self.0.ground.log.note(format_args!("{} hangs up", self.0.account));
        let mut truth = self.lock();
        truth.connection += 1;
        truth.refuses.extend(then_refuses);
        drop(truth);
        self.bump();
    }

    /// Ends the connection for this reason.
    pub fn ends_with(&self, lost: LinkError) {
        self.lock().lost = Some(lost);
        self.hangs_up([]);
    }

    /// Somebody else listens in our place until then; polls are refused.
    pub fn is_heard_by_another(&self, time: Duration) {
        self.0.ground.log.note(format_args!("{} is polled by another", self.0.account));
        let until = self.0.ground.time.now() + time;
        self.lock().foreign_until = Some(until);
        self.bump();
    }

    /// Forgets its sessions: none can be resumed.
    pub fn invalidates_sessions(&self) {
        self.0.ground.log.note(format_args!("{} invalidates its session", self.0.account));
        self.lock().sequence += 1;
        self.hangs_up([]);
    }

    /// Tells whoever listens nothing any more, although they are connected. Whoever connects anew is told
    /// everything.
    pub fn forgets_listeners(&self) {
        self.0.ground.log.note(format_args!("{} forgets who listens", self.0.account));
        let mut truth = self.lock();
        truth.ignored = truth.listeners;
        drop(truth);
        self.bump();
    }

    /// Breaks down when it is connected next.
    pub fn panics_on_next_connection(&self) {
        self.lock().connects = Connects::ByPanicking;
    }

    /// Does not answer when it is connected next.
    pub fn hangs_while_connecting(&self) {
        self.lock().connects = Connects::Never;
    }

    /// Breaks down when it is listened to next.
    pub fn panics_on_next_arrival(&self) {
        self.lock().panics_on_next_arrival = true;
        self.bump();
    }

    /// The texts that can be read in a chat with us alone.
    pub fn texts(&self, chat: &str) -> Vec<String> {
        self.texts_at(&self.dm(chat))
    }

    /// The texts that can be read there.
    pub fn texts_at(&self, to: &Address) -> Vec<String> {
        let truth = self.lock();
        let shown = truth.shown.iter().filter(|shown| shown.to == *to);
        shown.map(|shown| shown.content.text.clone()).collect()
    }

    /// Whether everything that happened has been acknowledged, or will never be asked for again.
    pub fn is_heard(&self) -> bool {
        self.lock().mail.iter().all(|mail| mail.acknowledged || mail.gone)
    }

    /// Looks at what happened.
    pub fn truth<T>(&self, read: impl FnOnce(&Truth) -> T) -> T {
        read(&self.lock())
    }

    /// Changes whenever something happens.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    fn bump(&self) {
        self.0.changed.send_modify(|count| *count += 1);
        self.0.ground.bell.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Truth> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Truth {
    fn one_in(&mut self, many: u64) -> bool {
        many > 0 && self.dice.as_mut().is_some_and(|dice| dice.below(many) == 0)
    }
}
