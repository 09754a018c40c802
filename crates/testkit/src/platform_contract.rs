//! What every platform must do: `platform_contract!(name, Harness)`.
//!
//! A harness plays the vendor of one platform; the suite plays the gateway. It connects the account,
//! takes what arrives, commits it or does not, sends acts, and compares what both ends know.
#![allow(missing_docs, reason = "a test's name is its sentence")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use talaria_clock::SystemClock;
use talaria_model::{
    AccountId, Act, Address, Capabilities, ChatKind, Choice, ChoiceId, Choices, Content, Deletes,
    Draft, Drafts, Edits, FileId, FileRef, Files, Idempotency, Inbound, InboundKind, KnownBy,
    Marks, MessageId, Outbound, OutboundId, Pace, Progress, Reactions, Reading, Receipt,
    SenderKind, Seq, SessionId, Typing,
};
use talaria_platform::{
    Account, Arrival, Arrivals, Ask, Batch, ByteStream, Committed, Cursor, Fate, FileError,
    FileStore, Found, Incoming, Kept, Link, Need, Outgoing, Ports, Registration, Secrecy,
    SendError, Surface, Verdict, lower,
};

use crate::Past;
use tokio::sync::watch;

use crate::waiting::within;

/// Nothing here takes long; this only keeps a broken platform from hanging the suite.
const PATIENCE: Duration = Duration::from_secs(20);

/// The vendor of a platform, and the person in front of it.
#[async_trait(?Send)]
pub trait PlatformHarness: Sized {
    /// A vendor to which nothing was said and that has shown nothing.
    async fn open() -> Self;

    /// The platform.
    fn registration() -> Registration;

    /// Settings under which an account reaches this vendor, with as much switched on as there is.
    fn settings(&self) -> Value;

    /// The account's private folder.
    fn folder(&self) -> PathBuf;

    /// The gateway has connected. Takes what it needs to reach it, and whatever a person does who
    /// wants to read along; returns what the gateway hears.
    async fn attach(&mut self, incoming: Incoming) -> Arrivals;

    /// The person says something. The same number is the same event, delivered again. Completes when
    /// the person, or the vendor, knows what became of it.
    fn say(&mut self, number: u64, text: &str) -> BoxFuture<'static, Told>;

    /// The next thing that the vendor is asked to show, confirmed where it has to be.
    async fn shown(&mut self) -> Shown;

    /// Sends something broken: too long, not the protocol, an id that is none. Counts from zero;
    /// false when there is nothing more to try.
    async fn disturb(&mut self, number: usize) -> bool;

    /// Completes when nothing connects the gateway to the vendor and the person any more.
    async fn hung_up(&mut self);

    /// The vendor meets the next post with this, in the words that it documents. `Said::Never` where it has
    /// no such answer; a vendor that asks for a secret has most of them.
    fn trouble(&mut self, _: Trouble) -> Said {
        Said::Never
    }

    /// The vendor tells of a message that a program has posted, as an event of this number. `Said::Never`
    /// where it tells of none.
    fn echo(&mut self, _: u64, _: Whose) -> Said {
        Said::Never
    }

    /// As [`PlatformHarness::say`], but where several people are. None where there is no such place.
    fn say_in(&mut self, _: Spot, _: u64, _: &str) -> Option<BoxFuture<'static, Told>> {
        None
    }

    /// Where the last thing appeared that the vendor was asked to show.
    fn spot(&self) -> Option<Spot> {
        None
    }

    /// What the vendor was sent by way of files, each as it came, with whatever was around it. None where files
    /// are not sent but fetched, or only named.
    fn uploads(&self) -> Option<Vec<Vec<u8>>> {
        None
    }

    /// Somebody who is not the vendor calls a webhook: without a proof, or with one that is wrong or too old.
    /// Counts from zero. Returns the status that they got, or none when there is nothing more to try.
    async fn forge(&mut self, _: usize, _: Forged) -> Option<u16> {
        None
    }
}

/// Whether a vendor says something of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It does, and it will.
    Duly,
    /// There is no such thing.
    Never,
}

/// What a post can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Our credentials are not accepted any more.
    Unauthorized,
    /// The chat, or our place in it, is gone.
    Gone,
    /// We are to wait for [`ASKED_WAIT`].
    Wait,
    /// The text is too long.
    TooLong,
    /// The formatting is not accepted.
    Unreadable,
    /// The vendor, or what stands in front of it, is broken.
    Outage,
    /// The request was read, and the connection breaks without an answer.
    Cut,
}

/// How long a vendor asks us to wait.
pub const ASKED_WAIT: Duration = Duration::from_secs(17);

/// Whose message comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// One that we have posted.
    Ours,
    /// One of another program.
    AnotherBots,
}

/// A place of several people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// A group or a channel.
    Group,
    /// A thread or a topic in one.
    Thread,
}

/// What a forged call carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forged {
    /// An event as the vendor words it.
    Event,
    /// Something that cannot be read.
    Nonsense,
}

/// What a person knows about what they said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It is safe.
    Safe,
    /// It is not, and has to be said again.
    TryAgain,
}

/// Something that a vendor was asked to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What kind of thing.
    pub kind: Kind,
    /// The name that its vendor gave it, or has for what is changed. What passes by has none.
    pub id: Option<String>,
    /// The text, in whatever form the vendor gets it.
    pub text: String,
}

/// What kind of thing a vendor was asked to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A new message.
    Post,
    /// A change of one.
    Edit,
    /// An answer as far as it has grown.
    Draft,
    /// That somebody is typing.
    Typing,
}

/// A stream, and whether anybody holds it: for vendors that see nothing of a gateway that has gone.
pub fn watched(arrivals: Arrivals) -> (Arrivals, watch::Receiver<bool>) {
    struct Held(watch::Sender<bool>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.send_replace(false);
        }
    }
    let (sender, held) = watch::channel(true);
    let state = (arrivals, Held(sender));
    let watched = stream::unfold(state, |(mut arrivals, held)| async move {
        let next = arrivals.next().await?;
        Some((next, (arrivals, held)))
    });
    (watched.boxed(), held)
}

/// Runs the suite in a module of that name.
#[macro_export]
macro_rules! platform_contract {
    ($module:ident, $harness:ty) => {
        mod $module {
            use super::*;

            $crate::platform_contract! { tests $harness =>
                what_it_says_about_itself_is_complete
                capabilities_do_not_contradict_themselves
                settings_with_an_unknown_field_are_refused_naming_it
                settings_without_a_required_field_are_refused_naming_it
                an_event_says_where_it_happened_and_who_caused_it
                the_same_event_has_the_same_id_and_another_one_has_not
                a_sender_is_told_only_after_the_commit
                a_sender_whose_message_was_not_stored_is_told_to_try_again
                a_message_that_was_not_stored_can_be_delivered_again
                a_post_is_shown_under_a_name_that_stays
                what_lower_yields_is_shown
                growing_answers_and_edits_are_shown_where_they_can_be
                files_of_an_answer_that_grew_by_edits_are_shown
                text_to_be_read_as_it_is_is_shown_as_it_is
                a_post_can_be_looked_for_before_and_after
                signs_and_removals_are_taken_where_they_can_be
                each_trouble_has_the_fate_that_its_vendor_means
                what_programs_say_is_not_taken_for_a_person
                an_answer_goes_to_where_it_was_asked_for
                a_file_arrives_with_all_its_bytes
                whoever_cannot_prove_to_be_the_vendor_is_refused_unread
                broken_input_does_not_stop_what_comes_after
                dropping_the_link_ends_everything
            }
        }
    };
    (tests $harness:ty => $($test:ident)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                $crate::platform_contract::$test::<$harness>().await;
            }
        )*
    };
}

/// The gateway's end of a connection.
struct Connection {
    arrivals: Arrivals,
    outgoing: Arc<dyn Outgoing>,
    hears: Hears,
    /// Whether the vendor calls us, and has to prove that it is the one.
    is_webhook: bool,
}

/// How events reach the gateway, which decides what it means not to have stored one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hears {
    /// The gateway hangs up and begins again after the last stored position.
    Stream,
    /// The gateway drops the acknowledgement.
    Requests,
}

fn account_id() -> AccountId {
    AccountId::literal("contract-7")
}

fn account<H: PlatformHarness>(harness: &H) -> Account {
    H::registration().open(harness.settings()).expect("the settings of the harness fit")
}

async fn connect<H: PlatformHarness>(harness: &mut H, cursor: Option<Cursor>) -> Connection {
    connect_with(harness, cursor, Shelf::default()).await
}

async fn connect_with<H: PlatformHarness>(
    harness: &mut H,
    cursor: Option<Cursor>,
    shelf: Shelf,
) -> Connection {
    let ports = Ports {
        account: account_id(),
        clock: Arc::new(SystemClock),
        files: Arc::new(shelf),
        archive: Arc::new(Past::default()),
        menu: Arc::new([]),
        desk: None,
        hosts: Arc::default(),
        folder: harness.folder(),
        cursor,
        kept: Kept::default(),
    };
    let account = account(harness);
    let link = within(PATIENCE, "a connection", account.connect(ports)).await;
    let Link { incoming, outgoing, .. } =
        link.unwrap_or_else(|error| panic!("it does not connect: {error}"));
    let hears = match &incoming {
        Incoming::Stream(_) => Hears::Stream,
        Incoming::Served { .. } => Hears::Requests,
        Incoming::Nothing => panic!("the suite is for platforms that hear"),
    };
    let is_webhook = matches!(&incoming, Incoming::Served { on: Surface::Webhook, .. });
    let arrivals = within(PATIENCE, "the vendor", harness.attach(incoming)).await;
    Connection { arrivals, outgoing, hears, is_webhook }
}

impl Connection {
    /// The next batch, or why there will be none.
    async fn next(&mut self) -> Result<Batch, String> {
        loop {
            match self.arrivals.next().await {
                Some(Ok(Arrival::Batch(batch) | Arrival::Found(batch)))
                    if batch.events.is_empty() => {}
                Some(Ok(Arrival::Batch(batch) | Arrival::Found(batch))) => return Ok(batch),
                Some(Ok(Arrival::Alive | Arrival::Brought)) => {}
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err("the stream ended".into()),
            }
        }
    }

    /// What arrives when something is said, before anybody is told anything.
    async fn batch(&mut self, told: &mut BoxFuture<'static, Told>) -> Batch {
        let batch = tokio::select! {
            biased;
            told = told => panic!("{told:?} before anybody could store it"),
            batch = self.next() => batch,
            () = waited() => panic!("nothing arrives"),
        };
        batch.unwrap_or_else(|error| panic!("no event but {error}"))
    }

    /// Says that a batch is safe, and listens on as a gateway does.
    async fn commit(&mut self, batch: Batch, told: BoxFuture<'static, Told>) -> (Inbound, Told) {
        let Batch { mut events, ack, .. } = batch;
        ack.committed(Committed(events.iter().map(|_| Verdict::Journalled(Seq(1))).collect()));
        let told = tokio::select! {
            told = told => told,
            more = self.next() => panic!("something else arrived: {:?}", more.map(|b| b.events)),
            () = waited() => panic!("nobody was told that it is safe"),
        };
        (events.remove(0), told)
    }

    /// Something is said and stored.
    async fn hear<H: PlatformHarness>(
        &mut self,
        harness: &mut H,
        number: u64,
        text: &str,
    ) -> Inbound {
        let mut told = harness.say(number, text);
        let batch = self.batch(&mut told).await;
        assert_eq!(batch.events.len(), 1, "one thing was said");
        let (inbound, told) = self.commit(batch, told).await;
        assert_eq!(told, Told::Safe);
        inbound
    }

    /// Sends an act, while the vendor shows it.
    async fn send<H: PlatformHarness>(
        &self,
        harness: &mut H,
        outbound: &Outbound,
    ) -> (Result<Receipt, SendError>, Shown) {
        let both = async { tokio::join!(self.outgoing.send(outbound), harness.shown()) };
        within(PATIENCE, format!("{:?} is shown", outbound.act), both).await
    }
}

async fn hung_up<H: PlatformHarness>(harness: &mut H) {
    within(PATIENCE, "everything is closed", harness.hung_up()).await;
}

async fn waited() {
    tokio::time::sleep(PATIENCE).await;
}

fn act(to: &Address, delivery: u32, act: Act) -> Outbound {
    let session = SessionId::literal("20261115_093000_0badcafe");
    Outbound { id: OutboundId { session, delivery, part: 0 }, to: to.clone(), act }
}

fn post(to: &Address, delivery: u32, text: &str) -> Outbound {
    act(to, delivery, Act::Post(Content::text(text)))
}

fn text_of(inbound: &Inbound) -> &str {
    match &inbound.kind {
        InboundKind::Said(message) => &message.text,
        kind => panic!("something was said, and it arrived as {kind:?}"),
    }
}

pub async fn what_it_says_about_itself_is_complete<H: PlatformHarness>() {
    let registration = H::registration();
    let spec = registration.spec;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    assert!(!spec.name.is_empty() && spec.name.chars().all(plain), "{:?}", spec.name);
    assert!(!spec.label.is_empty());
    assert!(spec.about.ends_with('.'), "one sentence: {:?}", spec.about);
    assert!(spec.guide.starts_with("# "), "a guide has a title");
    if let Some(note) = spec.note {
        assert!(note.ends_with('.') && !note.contains('\n'), "a sentence or two: {note:?}");
        assert!(note.chars().count() <= 400, "it is part of every prompt: {note:?}");
    }
    let schema = (registration.schema)().to_value();
    assert_eq!(schema["additionalProperties"], json!(false), "unknown settings are refused");
    for (name, setting) in schema["properties"].as_object().into_iter().flatten() {
        let help = setting["description"].as_str().unwrap_or_default();
        assert!(!help.is_empty(), "the setting {name} says what it is for");
    }
    for ask in spec.asks {
        let Ask { setting, question, variable, .. } = *ask;
        let property = &schema["properties"][setting];
        assert!(property.is_object(), "{setting} is asked and is no setting");
        assert!(!question.is_empty() && !question.ends_with([':', '?']), "{question:?}");
        let prefix = format!("{}_", spec.name.to_uppercase().replace('-', "_"));
        let shouted = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let fits = variable.starts_with(&prefix) && variable.chars().all(shouted);
        assert!(fits, "the variable {variable:?} begins with {prefix}");
        let described = property.to_string();
        let is_secret = described.contains("writeOnly") || described.contains("$defs/Secret");
        assert_eq!(
            ask.secrecy == Secrecy::Secret,
            is_secret,
            "{setting} is kept as it is declared"
        );
        let is_required = schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name == setting));
        assert_eq!(ask.need == Need::Required, is_required, "{setting} is as needed as declared");
    }
}

pub async fn capabilities_do_not_contradict_themselves<H: PlatformHarness>() {
    let harness = H::open().await;
    let account = account(&harness);
    let kinds =
        [ChatKind::Dm, ChatKind::Group, ChatKind::Channel, ChatKind::Thread, ChatKind::Forum];
    let of_chats = kinds.map(|kind| account.can(kind));
    for can in of_chats.into_iter().chain([H::registration().spec.capabilities]) {
        let Pace { account, chat, edits: changes } = can.pace;
        for bucket in [account, chat, changes].into_iter().flatten() {
            assert!(bucket.burst > 0 && !bucket.every.is_zero(), "no limit is no bucket");
        }
        if changes.is_some() {
            assert_ne!(can.edits, Edits::Never, "what cannot be changed is not counted");
        }
        let Capabilities { text, edits, drafts, choices, typing, files, reply_within, .. } = can;
        assert!(text.max > 0, "a message holds something");
        if let Choices::Buttons { max, id } = choices {
            assert!(max > 0, "no buttons is `Numbered`");
            assert!(id >= 41, "a digest fits on a button");
        }
        assert!(files != Files::UpTo(0), "no files is `Never`");
        assert!(can.idempotency != Idempotency::Keyed(Duration::ZERO), "no key is `None`");
        assert!(typing.time() != Some(Duration::ZERO), "what fades at once is never seen");
        assert!(edits != Edits::Every(Duration::ZERO), "somebody has to read it in between");
        assert!(drafts != Drafts::Every(Duration::ZERO), "somebody has to read it in between");
        assert!(reply_within != Some(Duration::ZERO), "an answer takes time");
    }
}

pub async fn settings_with_an_unknown_field_are_refused_naming_it<H: PlatformHarness>() {
    let harness = H::open().await;
    let mut settings = harness.settings();
    settings["no_such_setting"] = json!(true);
    match H::registration().open(settings) {
        Ok(_) => panic!("an unknown setting was taken"),
        Err(error) => {
            assert!(error.to_string().contains("no_such_setting"), "{error}");
        }
    }
}

pub async fn settings_without_a_required_field_are_refused_naming_it<H: PlatformHarness>() {
    let harness = H::open().await;
    let asks = H::registration().spec.asks;
    for ask in asks.iter().filter(|ask| ask.need == Need::Required) {
        let mut settings = harness.settings();
        let removed = settings.as_object_mut().and_then(|fields| fields.remove(ask.setting));
        assert!(removed.is_some(), "the harness has {}", ask.setting);
        match H::registration().open(settings) {
            Ok(_) => panic!("an account without {} was taken", ask.setting),
            Err(error) => assert!(error.to_string().contains(ask.setting), "{error}"),
        }
    }
}

pub async fn an_event_says_where_it_happened_and_who_caused_it<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let first = connection.hear(&mut harness, 1, "good *morning* ☀").await;
    let second = connection.hear(&mut harness, 2, "/stop").await;
    assert_eq!(text_of(&first), "good *morning* ☀", "as it was typed");
    assert_eq!(text_of(&second), "/stop", "commands are for the session to recognise");
    for inbound in [&first, &second] {
        assert_eq!(inbound.to.account, account_id(), "an event names its own account");
    }
    assert_eq!(first.from, second.from, "a person is the same person");
    assert_eq!(first.from.kind, SenderKind::Person, "and no program");
    assert_eq!(first.to, second.to, "a chat is the same chat");
    assert_eq!(first.source, second.source, "of which the same is known");
    if first.to.chat.kind != ChatKind::Dm {
        let known_by = first.source.known_by;
        assert_eq!(known_by, KnownBy::Chat, "a chat of several people always has an id");
    }
}

pub async fn the_same_event_has_the_same_id_and_another_one_has_not<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let first = connection.hear(&mut harness, 1, "hello").await;
    let again = connection.hear(&mut harness, 1, "hello").await;
    let other = connection.hear(&mut harness, 2, "hello").await;
    assert_eq!(first.id, again.id);
    assert_ne!(first.id, other.id);
    drop(connection);
    hung_up(&mut harness).await;
    let mut connection = connect(&mut harness, None).await;
    let later = connection.hear(&mut harness, 1, "hello").await;
    assert_eq!(first.id, later.id, "over another connection, too");
}

pub async fn a_sender_is_told_only_after_the_commit<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let mut told = harness.say(1, "hello");
    let batch = connection.batch(&mut told).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        let early = futures::poll!(&mut told);
        assert!(early.is_pending(), "{early:?} before anybody has stored it");
    }
    let (_, told) = connection.commit(batch, told).await;
    assert_eq!(told, Told::Safe);
}

pub async fn a_sender_whose_message_was_not_stored_is_told_to_try_again<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let mut told = harness.say(1, "hello");
    drop(connection.batch(&mut told).await);
    if connection.hears == Hears::Stream {
        drop(connection);
    }
    let told = within(PATIENCE, "some word about it", told).await;
    assert_eq!(told, Told::TryAgain);
}

pub async fn a_message_that_was_not_stored_can_be_delivered_again<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let stored = connection.hear(&mut harness, 1, "stored").await;
    let mut told = harness.say(2, "lost");
    let lost = connection.batch(&mut told).await;
    let (id, cursor) = (lost.events[0].id.clone(), lost.cursor.clone());
    drop(lost);
    if connection.hears == Hears::Stream {
        drop(connection);
        within(PATIENCE, "some word about it", told).await;
        hung_up(&mut harness).await;
        assert!(cursor.is_some(), "a stream has a position to begin at again");
        connection = connect(&mut harness, None).await;
    } else {
        within(PATIENCE, "some word about it", told).await;
    }
    let again = connection.hear(&mut harness, 2, "lost").await;
    assert_eq!(again.id, id);
    assert_ne!(again.id, stored.id);
}

pub async fn a_post_is_shown_under_a_name_that_stays<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    let mut ids = Vec::new();
    for outbound in
        [post(&to, 1, "good morning"), post(&to, 1, "good morning"), post(&to, 2, "bye")]
    {
        let (sent, shown) = connection.send(&mut harness, &outbound).await;
        let receipt = sent.unwrap_or_else(|error| panic!("not sent: {error}"));
        assert_eq!(shown.kind, Kind::Post);
        let Act::Post(content) = &outbound.act else { continue };
        assert!(shown.text.contains(&content.text), "{:?}", shown.text);
        let id = shown.id.expect("whoever shows a post gives it a name");
        let told = receipt.message.as_ref().map(MessageId::as_str);
        assert_eq!(told, Some(id.as_str()), "the receipt says under which name");
        ids.push(id);
    }
    assert_ne!(ids[0], ids[2], "another act has another name");
    let recognises = account(&harness).can(ChatKind::Dm).idempotency != Idempotency::None;
    assert_eq!(ids[0] == ids[1], recognises, "an act is shown once exactly where that is promised");
}

pub async fn what_lower_yields_is_shown<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let can = account(&harness).can(ChatKind::Dm);
    let mut connection = connect(&mut harness, None).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    let choice = |n: usize| Choice {
        id: ChoiceId::new(format!("call-1.{n}")).expect("an id"),
        label: format!("Answer {n} & <more>"),
    };
    let file =
        FileRef::new(FileId::new("ab".repeat(32)).expect("an id"), "notes.txt", "text/plain", 12);
    let max = can.text.max as usize;
    let contents = [
        Content::text("**bold**, `code`, [link](https://example.org), <b>not HTML</b> & 𝄞"),
        Content::text("```rust\nfn main() {}\n```"),
        Content::text("word ".repeat((max / 5).clamp(1, 20_000))),
        Content::text("ä𝄞 ".repeat(((max + 10) / 3).clamp(1, 20_000))),
        Content { choices: (1..=3).map(choice).collect(), ..Content::text("Which?") },
        Content { choices: (1..=10).map(choice).collect(), ..Content::text("Which of many?") },
        Content { files: vec![file.clone()], ..Content::text("Here it is.") },
        Content { files: vec![file], ..Content::default() },
    ];
    for (number, content) in (1..).zip(contents) {
        for outbound in lower(act(&to, number, Act::Post(content)), &can) {
            let (sent, shown) = connection.send(&mut harness, &outbound).await;
            sent.unwrap_or_else(|error| panic!("{outbound:?} is not taken: {error}"));
            assert_eq!(shown.kind, Kind::Post, "{outbound:?}");
        }
    }
}

pub async fn growing_answers_and_edits_are_shown_where_they_can_be<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let can = account(&harness).can(ChatKind::Dm);
    let mut connection = connect(&mut harness, None).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    if can.typing != Typing::Never {
        let (sent, shown) = connection.send(&mut harness, &act(&to, 1, Act::Typing)).await;
        assert!(sent.is_ok(), "{sent:?}");
        assert_eq!(shown.kind, Kind::Typing);
    }
    if let Typing::Stays(_) = can.typing {
        let (sent, shown) = connection.send(&mut harness, &act(&to, 1, Act::Rest)).await;
        assert!(sent.is_ok(), "what stays can be taken back: {sent:?}");
        assert_eq!((shown.kind, shown.text.as_str()), (Kind::Typing, ""));
    }
    if can.drafts != Drafts::Never {
        for text in ["once", "once upon"] {
            let draft = act(&to, 1, Act::Draft(Content::text(text).into()));
            let (sent, shown) = connection.send(&mut harness, &draft).await;
            assert!(sent.is_ok(), "{sent:?}");
            assert_eq!(shown.kind, Kind::Draft);
            assert!(shown.text.contains(text), "{shown:?}");
        }
        let doing = Some("searching".to_owned());
        let wordless = act(&to, 1, Act::Draft(Draft { doing, ..Draft::default() }));
        let (sent, shown) = connection.send(&mut harness, &wordless).await;
        assert!(sent.is_ok(), "what the agent does can be shown before it writes: {sent:?}");
        assert_eq!(shown.kind, Kind::Draft);
    }
    let (sent, shown) = connection.send(&mut harness, &post(&to, 1, "once upon a time")).await;
    assert_eq!(shown.kind, Kind::Post, "the answer replaces its draft");
    if can.edits != Edits::Never {
        let receipt = sent.unwrap_or_else(|error| panic!("not sent: {error}"));
        let message = receipt.message.expect("what can be edited has a name");
        let content = Content::text("once upon another time");
        let edit = act(&to, 1, Act::Edit { message: message.clone(), content });
        let (sent, shown) = connection.send(&mut harness, &edit).await;
        assert!(sent.is_ok(), "{sent:?}");
        assert_eq!(shown.kind, Kind::Edit);
        assert_eq!(shown.id.as_deref(), Some(message.as_str()), "it is the same message");
        assert!(shown.text.contains("another time"), "{shown:?}");
    }
}

/// As the gateway does it: the first message takes the place of the preview, the rest follows it.
pub async fn files_of_an_answer_that_grew_by_edits_are_shown<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let can = account(&harness).can(ChatKind::Dm);
    let mut connection = connect(&mut harness, None).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    if can.edits == Edits::Never || can.files == Files::Never {
        return;
    }
    let (sent, _) = connection.send(&mut harness, &post(&to, 1, "Here")).await;
    let receipt = sent.unwrap_or_else(|error| panic!("not sent: {error}"));
    let mut preview = receipt.message;
    let file =
        FileRef::new(FileId::new("ab".repeat(32)).expect("an id"), "notes.txt", "text/plain", 12);
    let content = Content { files: vec![file], ..Content::text("Here it is.") };
    let mut texts = Vec::new();
    for mut outbound in lower(act(&to, 1, Act::Post(content)), &can) {
        if let (Some(message), Act::Post(content)) = (preview.take(), outbound.act.clone()) {
            outbound.act = Act::Edit { message, content };
        }
        let (sent, shown) = connection.send(&mut harness, &outbound).await;
        sent.unwrap_or_else(|error| panic!("{outbound:?} is not taken: {error}"));
        texts.push(shown.text.replace('\\', ""));
    }
    assert!(texts[0].contains("Here it is."), "{texts:?}");
    // Nobody keeps this file any more, which people are told; or they are told when they ask for it.
    let is_shown = texts.len() > 1 || texts[0].contains("notes.txt");
    assert!(is_shown, "the file, or what became of it, is shown: {texts:?}");
}

pub async fn text_to_be_read_as_it_is_is_shown_as_it_is<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    let plain = Content { reading: Reading::AsItIs, ..Content::text("2 * 3 * 4 and a_b_c") };
    let (sent, shown) = connection.send(&mut harness, &act(&to, 1, Act::Post(plain))).await;
    assert!(sent.is_ok(), "{sent:?}");
    let text = shown.text.replace('\\', "");
    assert!(text.contains("2 * 3 * 4 and a_b_c"), "{text:?}");
}

pub async fn a_post_can_be_looked_for_before_and_after<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    let outbound = post(&to, 1, "good morning");
    let found = within(PATIENCE, "a look", connection.outgoing.find(&outbound)).await;
    assert!(!matches!(found, Ok(Found::Shown(_))), "nothing was posted: {found:?}");
    let (sent, _) = connection.send(&mut harness, &outbound).await;
    let receipt = sent.unwrap_or_else(|error| panic!("not sent: {error}"));
    let found = within(PATIENCE, "a look", connection.outgoing.find(&outbound)).await;
    match found {
        Ok(Found::Shown(found)) => assert_eq!(found.message, receipt.message),
        Ok(Found::Unknown) => {}
        other => panic!("it is there: {other:?}"),
    }
}

pub async fn signs_and_removals_are_taken_where_they_can_be<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let can = account(&harness).can(ChatKind::Dm);
    let mut connection = connect(&mut harness, None).await;
    let heard = connection.hear(&mut harness, 1, "hello").await;
    let to = heard.to.clone();
    let take = |outbound: Outbound| {
        let outgoing = connection.outgoing.clone();
        async move {
            let sent = within(PATIENCE, "an answer", outgoing.send(&outbound)).await;
            sent.unwrap_or_else(|error| panic!("{outbound:?} is not taken: {error}"));
        }
    };
    let InboundKind::Said(said) = &heard.kind else { panic!("something was said") };
    if let Some(message) = &said.id {
        if can.marks == Marks::Shown {
            for progress in [Progress::Seen, Progress::Done, Progress::Nothing] {
                take(act(&to, 1, Act::Mark { message: message.clone(), progress })).await;
            }
        }
        if can.reactions == Reactions::Emoji {
            let emoji = "👍".to_owned();
            take(act(&to, 1, Act::React { message: message.clone(), emoji })).await;
        }
    }
    if can.deletes == Deletes::Anytime {
        let (sent, _) = connection.send(&mut harness, &post(&to, 1, "wrong")).await;
        let receipt = sent.unwrap_or_else(|error| panic!("not sent: {error}"));
        let message = receipt.message.expect("what can be removed has a name");
        for _ in 0..2 {
            // What is gone already is gone.
            take(act(&to, 1, Act::Delete { message: message.clone() })).await;
        }
        let anew = Content { anew: 1, ..Content::text("right") };
        let (sent, shown) = connection.send(&mut harness, &act(&to, 1, Act::Post(anew))).await;
        assert!(sent.is_ok(), "{sent:?}");
        assert_eq!(shown.kind, Kind::Post, "what was removed can be said again");
    }
}

pub async fn broken_input_does_not_stop_what_comes_after<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let mut number = 1;
    let kept = connection.hear(&mut harness, number, "before").await;
    for disturbance in 0.. {
        if !within(PATIENCE, "a disturbance", harness.disturb(disturbance)).await {
            assert!(disturbance > 2, "there is something to try");
            break;
        }
        number += 1;
        if connection.hears == Hears::Stream {
            // A stream that has become unreadable may end. It must say so.
            let ended = within(PATIENCE, "the end of a broken stream", connection.next()).await;
            if let Ok(batch) = ended {
                panic!("disturbance {disturbance} was taken for {:?}", batch.events);
            }
            drop(connection);
            hung_up(&mut harness).await;
            connection = connect(&mut harness, None).await;
        }
        let after = connection.hear(&mut harness, number, "after").await;
        assert_eq!(text_of(&after), "after", "disturbance {disturbance}");
        assert_ne!(after.id, kept.id);
    }
}

pub async fn dropping_the_link_ends_everything<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    let (sent, _) = connection.send(&mut harness, &post(&to, 1, "good morning")).await;
    assert!(sent.is_ok(), "{sent:?}");
    drop(connection);
    hung_up(&mut harness).await;
    // And it can be had again.
    let mut connection = connect(&mut harness, None).await;
    assert_eq!(text_of(&connection.hear(&mut harness, 2, "again").await), "again");
}

/// Whether a vendor knows us by a secret, and so can refuse us.
fn is_remote<H: PlatformHarness>() -> bool {
    H::registration().spec.asks.iter().any(|ask| ask.secrecy == Secrecy::Secret)
}

pub async fn each_trouble_has_the_fate_that_its_vendor_means<H: PlatformHarness>() {
    let troubles = [
        Trouble::Wait,
        Trouble::TooLong,
        Trouble::Unreadable,
        Trouble::Outage,
        Trouble::Cut,
        Trouble::Gone,
        Trouble::Unauthorized,
    ];
    let mut met = Vec::new();
    for trouble in troubles {
        let mut harness = H::open().await;
        let mut connection = connect(&mut harness, None).await;
        let to = connection.hear(&mut harness, 1, "hello").await.to;
        if harness.trouble(trouble) == Said::Never {
            continue;
        }
        met.push(trouble);
        let outbound = post(&to, 1, "good *morning*");
        let sent = connection.outgoing.send(&outbound);
        let error = match within(PATIENCE, format!("{trouble:?}"), sent).await {
            Ok(receipt) => panic!("{trouble:?} was taken for {receipt:?}"),
            Err(error) => error,
        };
        let is_meant = match (trouble, error.fate()) {
            (Trouble::Wait, Fate::Retry { after: Some(after) }) => {
                after >= ASKED_WAIT && after <= ASKED_WAIT + Duration::from_secs(1)
            }
            (Trouble::Gone, _) => matches!(error, SendError::Gone { .. }),
            (Trouble::Unauthorized, fate) => fate == Fate::Suspend,
            // As plain text it can be shorter.
            (Trouble::TooLong, fate) => matches!(fate, Fate::Drop | Fate::Plain),
            (Trouble::Unreadable, fate) => fate == Fate::Plain,
            // It may have been done all the same.
            (Trouble::Outage | Trouble::Cut, fate) => fate == Fate::Unsure,
            (Trouble::Wait, _) => false,
        };
        assert!(is_meant, "{trouble:?} became {error:?}");
        assert!(!error.to_string().contains("good"), "{error} tells what was said");
    }
    if is_remote::<H>() {
        for trouble in [Trouble::Wait, Trouble::Cut, Trouble::Gone, Trouble::Unauthorized] {
            assert!(met.contains(&trouble), "every vendor has an answer for {trouble:?}");
        }
    }
}

pub async fn what_programs_say_is_not_taken_for_a_person<H: PlatformHarness>() {
    for whose in [Whose::Ours, Whose::AnotherBots] {
        let mut harness = H::open().await;
        let mut connection = connect(&mut harness, None).await;
        connection.hear(&mut harness, 1, "before").await;
        if harness.echo(2, whose) == Said::Never {
            continue;
        }
        let mut told = harness.say(3, "after");
        loop {
            let batch = connection.batch(&mut told).await;
            let is_after = |inbound: &Inbound| match &inbound.kind {
                InboundKind::Said(message) => message.text == "after",
                _ => false,
            };
            let programs = batch.events.iter().filter(|inbound| !is_after(inbound));
            for inbound in programs {
                assert_ne!(whose, Whose::Ours, "we hear ourselves: {inbound:?}");
                assert_eq!(inbound.from.kind, SenderKind::Bot, "{inbound:?}");
            }
            if batch.events.iter().any(is_after) {
                connection.commit(batch, told).await;
                break;
            }
            let Batch { events, ack, .. } = batch;
            ack.committed(Committed(events.iter().map(|_| Verdict::Denied).collect()));
        }
    }
}

pub async fn an_answer_goes_to_where_it_was_asked_for<H: PlatformHarness>() {
    for spot in [Spot::Group, Spot::Thread] {
        let mut harness = H::open().await;
        let mut connection = connect(&mut harness, None).await;
        let direct = connection.hear(&mut harness, 1, "hello").await.to;
        let Some(mut told) = harness.say_in(spot, 2, "and here") else { continue };
        let batch = connection.batch(&mut told).await;
        let (inbound, told) = connection.commit(batch, told).await;
        assert_eq!(told, Told::Safe);
        assert!(text_of(&inbound).contains("and here"), "{inbound:?}");
        assert_ne!(inbound.to, direct, "it is another place");
        assert_ne!(inbound.to.chat.kind, ChatKind::Dm, "of several people");
        // An address is stored between a question and its answer.
        let kept = serde_json::to_string(&inbound.to).expect("an address is data");
        let kept: Address = serde_json::from_str(&kept).expect("and can be read back");
        assert_eq!(kept, inbound.to);
        let (sent, shown) = connection.send(&mut harness, &post(&kept, 1, "good morning")).await;
        assert!(sent.is_ok(), "{sent:?}");
        assert_eq!(shown.kind, Kind::Post);
        assert_eq!(harness.spot(), Some(spot), "the answer is where the question was");
    }
}

pub async fn a_file_arrives_with_all_its_bytes<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let can = account(&harness).can(ChatKind::Dm);
    // Every byte, ends of lines, and what could be taken for the end of a form.
    let mut bytes: Vec<u8> = (0..=u8::MAX).cycle().take(70_001).collect();
    bytes.extend_from_slice(b"\r\n--boundary--\r\n\r\n\0");
    let id = FileId::new("cd".repeat(32)).expect("an id");
    let size = bytes.len() as u64;
    let file = FileRef::new(id.clone(), "all bytes.bin", "application/octet-stream", size);
    let shelf = Shelf(Some((id, bytes.clone())));
    let mut connection = connect_with(&mut harness, None, shelf).await;
    let to = connection.hear(&mut harness, 1, "hello").await.to;
    if can.files == Files::Never {
        return;
    }
    let Some(before) = harness.uploads() else {
        assert!(!is_remote::<H>(), "a vendor that takes files is sent them");
        return;
    };
    let content = Content { files: vec![file], ..Content::text("Here it is.") };
    for outbound in lower(act(&to, 1, Act::Post(content)), &can) {
        let sent = within(PATIENCE, "a file", connection.outgoing.send(&outbound)).await;
        sent.unwrap_or_else(|error| panic!("{outbound:?} is not taken: {error}"));
    }
    let uploads = harness.uploads().unwrap_or_default();
    let arrived = uploads[before.len()..].iter();
    let whole = arrived.filter(|upload| upload.windows(bytes.len()).any(|part| part == bytes));
    assert_eq!(whole.count(), 1, "it arrives once, byte for byte");
}

pub async fn whoever_cannot_prove_to_be_the_vendor_is_refused_unread<H: PlatformHarness>() {
    let mut harness = H::open().await;
    let mut connection = connect(&mut harness, None).await;
    if !connection.is_webhook {
        return;
    }
    let mut tried = 0;
    loop {
        let mut statuses = Vec::new();
        for forged in [Forged::Event, Forged::Nonsense] {
            let call = harness.forge(tried, forged);
            statuses.extend(within(PATIENCE, "a refusal, not an event", call).await);
        }
        let [event, nonsense] = statuses[..] else { break };
        assert!(matches!(event, 401 | 403), "forgery {tried} got {event}");
        assert_eq!(event, nonsense, "forgery {tried} was read before it was refused");
        tried += 1;
    }
    assert!(tried > 1, "no proof and a wrong one are tried");
    let after = connection.hear(&mut harness, 1, "after").await;
    assert_eq!(text_of(&after), "after", "nothing of it arrived");
}

/// At most one file.
#[derive(Default)]
struct Shelf(Option<(FileId, Vec<u8>)>);

#[async_trait]
impl FileStore for Shelf {
    async fn save(&self, _: &str, _: Option<&str>, _: ByteStream) -> Result<FileRef, FileError> {
        Err(FileError::Full { quota: 0 })
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        match &self.0 {
            Some((kept, bytes)) if kept == id => {
                // In pieces, as from a disk.
                let pieces: Vec<_> = bytes.chunks(16 * 1024).map(Bytes::copy_from_slice).collect();
                Ok(stream::iter(pieces.into_iter().map(Ok)).boxed())
            }
            _ => Err(FileError::Missing),
        }
    }
}
