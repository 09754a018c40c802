//! What a message lacks that is still at its platform: its files, and what surrounds it.
//!
//! A message is in the journal before anything is fetched for it, and its session hears of it
//! afterwards. What cannot be had in time is named in what the model reads; a file that does not come
//! holds up its own conversation and nobody else's, for a bounded time.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use talaria_clock::Clock;
use talaria_model::{
    AccountId, FileRef, Inbound, InboundKind, Media, MediaKind, Message, SenderId, Seq, Shown,
    Timestamp, Unfetched,
};
use talaria_platform::{ByteStream, FetchError, FileError, Surroundings};
use talaria_session::{Deed, SessionKey, is_control};
use talaria_store::StoreError;

use crate::accounts::ConnectedAccount;
use crate::bursts::Heard;
use crate::hearing::{self, Listens};
use crate::lane::events::{authority, deny};
use crate::shared::Shared;
use crate::shares::{Shares, TooMany};
use crate::spending::{self, Means};
use crate::tasks::{Panicked, calm};
use crate::{bystanders, denials, discretion, passing, scrutiny};

/// For how many messages of a conversation files are fetched at the same time.
const AHEAD: usize = 4;

/// How many files of a message are fetched at the same time.
const AT_ONCE: usize = 4;

/// The most files of one message.
const MOST_FILES: usize = 32;

/// How often a file is tried.
const TRIES: u32 = 5;

/// How long a platform may pause in the middle of a file.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a platform may take to tell what surrounds a message.
const LOOKING_AROUND: Duration = Duration::from_secs(5);

/// Whether something has to be fetched before a session hears of an event, a recording written down, or
/// somebody asked.
pub(crate) fn is_due(inbound: &Inbound, listens: Listens) -> bool {
    let has_more = match &inbound.kind {
        InboundKind::Said(message) | InboundKind::Edited(message) => {
            !message.media.is_empty() || message.surroundings.is_some()
        }
        InboundKind::Pressed(_) | InboundKind::Stopped => false,
    };
    has_more || listens.is_due(inbound) || scrutiny::is_due(inbound)
}

/// A message that waited, with what there is to be had. None when nobody answers it; that is on record.
pub(crate) type Fetched = Option<Inbound>;

/// The messages of a lane whose files are on their way. Dropping it leaves them where they are.
#[derive(Default)]
pub(crate) struct Fetches(Vec<(Seq, Fetch)>);

// Never locked: a lane that waits for the disk is looked at by nobody else, but has to be able to be.
type Fetch = Mutex<BoxFuture<'static, Fetched>>;

impl Fetches {
    /// Fetches for what overtakes and for the first of what waits, and leaves off where nobody waits any
    /// more.
    pub(crate) fn keep_up<'a>(
        &mut self,
        shared: &Arc<Shared>,
        key: &SessionKey,
        overtaking: impl Iterator<Item = &'a (Seq, Inbound)>,
        waiting: impl Iterator<Item = &'a Heard>,
    ) {
        let listens = shared.listens();
        // What overtakes others waits for nobody's files.
        let asked_about = overtaking.filter(|(_, inbound)| scrutiny::is_due(inbound));
        let asked_about: Vec<(Seq, &Inbound)> =
            asked_about.map(|(seq, inbound)| (*seq, inbound)).collect();
        let waiting = waiting.filter(|heard| is_due(&heard.inbound, listens));
        let waiting: Vec<(Seq, &Inbound)> =
            waiting.map(|heard| (heard.seq, &heard.inbound)).collect();
        let is_in =
            |due: &[(Seq, &Inbound)], seq: Seq| due.iter().any(|(wanted, _)| *wanted == seq);
        // What has begun goes on as long as somebody waits for it, wherever that stands by now.
        self.0.retain(|(seq, _)| is_in(&asked_about, *seq) || is_in(&waiting, *seq));
        let ahead = self.0.iter().filter(|(seq, _)| is_in(&waiting, *seq)).count();
        let is_new = |(seq, _): &(Seq, &Inbound)| !self.0.iter().any(|(begun, _)| begun == seq);
        let more = waiting.into_iter().filter(is_new).take(AHEAD.saturating_sub(ahead));
        // Of what overtakes others, one at a time is asked about, beside what waits.
        let is_asking = self.0.iter().any(|(seq, _)| is_in(&asked_about, *seq));
        let first = asked_about.into_iter().filter(is_new).take(usize::from(!is_asking));
        let new: Vec<_> = first.chain(more).collect();
        for (seq, inbound) in new {
            let fetch = fetch(shared.clone(), key.clone(), seq, inbound.clone()).boxed();
            self.0.push((seq, Mutex::new(fetch)));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next message that has what there is to be had of its files. Never ends while there is none.
    pub(crate) async fn next(&mut self) -> (Seq, Fetched) {
        poll_fn(|task| {
            for place in 0..self.0.len() {
                let fetch = self.0[place].1.get_mut().unwrap_or_else(PoisonError::into_inner);
                if let Poll::Ready(fetched) = fetch.poll_unpin(task) {
                    let (seq, _) = self.0.remove(place);
                    return Poll::Ready((seq, fetched));
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The message with what it lacked; its files are durable, and so is what was made of it.
async fn fetch(shared: Arc<Shared>, key: SessionKey, seq: Seq, mut inbound: Inbound) -> Fetched {
    // It may have waited for long, behind others or over a restart.
    if turned_away(&shared, &key, seq, &inbound).await {
        return None;
    }
    if scrutiny::is_due(&inbound) {
        if let Some(why) = scrutiny::ask(&shared, &key, &mut inbound).await {
            drop_row(&shared, seq, inbound, &why).await;
            return None;
        }
        // Somebody who was asked may have written something else.
        discretion::mend(&shared, &mut inbound);
        // What was decided is kept before the rest is fetched, so that nobody is asked twice for the sake of
        // a file; and what overtakes others waits for no file.
        write(&shared, seq, &inbound, None).await;
        if is_control(&inbound) {
            return Some(inbound);
        }
        if turned_away(&shared, &key, seq, &inbound).await {
            return None;
        }
    }
    let account = inbound.to.account.clone();
    let asked_about = inbound.clone();
    let mut keeps = false;
    if let InboundKind::Said(message) | InboundKind::Edited(message) = &mut inbound.kind {
        message.surroundings = None;
        keeps = !message.media.is_empty() || shared.listens().is_due(&asked_about);
        let around = look_around(&shared, &asked_about);
        let taken = async {
            take_in(&shared, &account, &asked_about.from.id, message).await;
            listen(&shared, &key, &asked_about, message).await;
        };
        let (around, ()) = tokio::join!(around, taken);
        around.put_into(&mut inbound);
        discretion::mend(&shared, &mut inbound);
        // As they are heard at this moment: it may have waited for long.
        if let Some(account) = shared.accounts.get(&account) {
            bystanders::judge(&account, &mut inbound);
        }
        if turned_away(&shared, &key, seq, &inbound).await {
            return None;
        }
    }
    // What surrounds a message can be asked for again as long as its session has not heard of it. Only files
    // and what was said in them are worth waiting for the disk.
    if keeps {
        write(&shared, seq, &inbound, None).await;
    }
    Some(inbound)
}

/// Why the sender of something is not heard any more; none if they are.
fn unheard(shared: &Shared, inbound: &Inbound) -> Option<&'static str> {
    let by = authority(shared, [inbound]);
    (!by.may(Deed::Speak)).then(|| by.rule.reason())
}

/// Whether a row is denied because its sender was put out meanwhile. Nobody is asked about it then, and nothing
/// fetched for it.
async fn turned_away(shared: &Shared, key: &SessionKey, seq: Seq, inbound: &Inbound) -> bool {
    let why = unheard(shared, inbound);
    if let Some(why) = why {
        deny(shared, key, &[seq], why).await;
    }
    why.is_some()
}

/// Has the recordings of a message written down, if anything is left to answer it with: that costs the operator
/// money, and what is refused would be refused after it.
async fn listen(shared: &Shared, key: &SessionKey, inbound: &Inbound, message: &mut Message) {
    // Nobody listens to who was put out while their recording came.
    if shared.listens().next(message).is_none() || unheard(shared, inbound).is_some() {
        return;
    }
    match spending::means(shared, key, inbound).await {
        Means::Left => hearing::listen(shared, message).await,
        Means::UsedUp => hearing::leave(shared, message, "nothing is left to answer it with"),
    }
}

/// Nobody answers this row; an excerpt of it is kept, as of everything that nobody answers.
async fn drop_row(shared: &Shared, seq: Seq, mut inbound: Inbound, why: &str) {
    denials::excerpt(&mut inbound);
    write(shared, seq, &inbound, Some(why)).await;
    tracing::info!(account = %inbound.to.account, why, "dropped");
    passing::dropped(shared, seq);
}

/// Writes what became of a message while it waited, and why nobody answers it if nobody does, however long
/// the store takes.
async fn write(shared: &Shared, seq: Seq, inbound: &Inbound, ignored: Option<&str>) {
    let mut backoff = shared.spread.backoff();
    loop {
        let written = match ignored {
            Some(why) => shared.store.ignore(seq, inbound, why).await,
            None => shared.store.amend(seq, inbound).await,
        };
        match written {
            Err(error @ StoreError::Unavailable { .. }) => {
                tracing::warn!(%error, "what became of a message cannot be written down yet");
                shared.clock.sleep(backoff.next()).await;
            }
            // After a restart it happens once more, which is no reason to wait.
            Err(error) => {
                return tracing::error!(%error, "what became of a message cannot be written down");
            }
            Ok(()) => return,
        }
    }
}

/// What surrounds a message, as far as its platform tells it in time.
async fn look_around(shared: &Shared, inbound: &Inbound) -> Surroundings {
    let (InboundKind::Said(message) | InboundKind::Edited(message)) = &inbound.kind else {
        return Surroundings::default();
    };
    let account = shared.accounts.get(&inbound.to.account);
    let (Some(_), Some(account)) = (&message.surroundings, account) else {
        return Surroundings::default();
    };
    let asked = async {
        account.connected().await;
        let _place = account.fetches.acquire().await.ok()?;
        let library = account.library()?;
        match calm(library.surroundings(inbound)).await {
            Ok(Ok(around)) => Some(around),
            Ok(Err(error)) => {
                let error = discretion::told(shared, error);
                tracing::warn!(account = %account.id, %error, "what surrounds a message is not told");
                None
            }
            Err(Panicked) => None,
        }
    };
    tokio::select! {
        biased;
        around = asked => around.unwrap_or_default(),
        () = shared.clock.sleep(LOOKING_AROUND) => Surroundings::default(),
    }
}

/// Puts files in the place of media, in their order.
async fn take_in(shared: &Shared, account: &AccountId, sender: &SenderId, message: &mut Message) {
    let mut media = std::mem::take(&mut message.media);
    let beyond = media.split_off(media.len().min(MOST_FILES));
    let allowance = Arc::new(Allowance::new(shared.limits.message_files));
    let fetch = |place: usize| -> BoxFuture<'_, (usize, Result<FileRef, String>)> {
        let media = &media[place];
        one(shared, account, sender, media, &allowance).map(move |outcome| (place, outcome)).boxed()
    };
    let fetches: Vec<_> = (0..media.len()).map(fetch).collect();
    let mut fetches = stream::iter(fetches).buffer_unordered(AT_ONCE);
    let mut outcomes: Vec<Option<Result<FileRef, String>>> = vec![None; media.len()];
    let mut patience = shared.clock.sleep(shared.limits.fetch_time);
    loop {
        tokio::select! {
            biased;
            fetched = fetches.next() => match fetched {
                Some((place, outcome)) => outcomes[place] = Some(outcome),
                None => break,
            },
            () = &mut patience => break,
        }
    }
    drop(fetches);
    let late = || Err("it took too long".to_owned());
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(late));
    let too_many = || Err(format!("a message may have {MOST_FILES} files"));
    let outcomes = outcomes.chain(beyond.iter().map(|_| too_many()));
    for (media, outcome) in media.iter().chain(&beyond).zip(outcomes) {
        match outcome {
            Ok(file) => message.files.push(file),
            Err(reason) => {
                tracing::warn!(%account, kind = media.kind.noun(), reason, "a file was not fetched");
                let (kind, name) = (media.kind, media.name.clone());
                message.unfetched.push(Unfetched { kind, name, reason });
            }
        }
    }
}

/// Why a file is not there.
enum Failed {
    /// It may be the next time.
    ForNow(String),
    /// It never will.
    ForGood(String),
}

async fn one(
    shared: &Shared,
    account: &AccountId,
    sender: &SenderId,
    media: &Media,
    allowance: &Arc<Allowance>,
) -> Result<FileRef, String> {
    let Some(account) = shared.accounts.get(account) else {
        return Err("its account is not configured any more".into());
    };
    let mut backoff = shared.spread.backoff();
    let mut tries = 0;
    loop {
        account.connected().await;
        let place = account.fetches.acquire().await;
        let tried = calm(attempt(shared, &account, sender, media, allowance)).await;
        drop(place);
        match tried {
            Ok(Ok(file)) => return Ok(file),
            Ok(Err(Failed::ForGood(reason))) => return Err(reason),
            Ok(Err(Failed::ForNow(reason))) => {
                tries += 1;
                if tries == TRIES {
                    return Err(reason);
                }
            }
            Err(Panicked) => return Err("something went wrong inside me".into()),
        }
        shared.clock.sleep(backoff.next()).await;
    }
}

async fn attempt(
    shared: &Shared,
    account: &ConnectedAccount,
    sender: &SenderId,
    media: &Media,
    allowance: &Arc<Allowance>,
) -> Result<FileRef, Failed> {
    let largest = shared.limits.file;
    if media.size.is_some_and(|size| size > largest) {
        return Err(Failed::ForGood(too_large(largest)));
    }
    let Some(library) = account.library() else {
        return Err(match account.outgoing() {
            Some(_) => Failed::ForGood("the platform does not hand out files".into()),
            None => Failed::ForNow("the connection was lost".into()),
        });
    };
    let fetched = library.fetch(media).await;
    let bytes = fetched.map_err(|error| match discretion::told(shared, error) {
        FetchError::Refused { reason } => Failed::ForGood(reason),
        FetchError::Unreachable { reason } => Failed::ForNow(reason),
    })?;
    let share = Arc::new(Share {
        of: allowance.clone(),
        taken: AtomicU64::new(0),
        person: (shared.shares.clone(), account.id.clone(), sender.clone()),
    });
    let bytes = watched(bytes, shared.clock.clone(), share.clone());
    let name = media.name.as_deref().unwrap_or_default();
    match shared.files.save(name, media.mime.as_deref(), bytes).await {
        Ok(file) => Ok(FileRef {
            name: media.name.as_ref().map_or_else(|| called(media.kind, &file.mime), |_| file.name),
            shown: if media.kind == MediaKind::Voice { Shown::Voice } else { Shown::Natural },
            id: file.id,
            mime: file.mime,
            size: file.size,
            owner: media.owner,
        }),
        Err(error) => {
            share.give_back();
            Err(match error {
                _ if allowance.is_spent.load(Ordering::Relaxed) => {
                    Failed::ForGood(TooMany.to_string())
                }
                _ if allowance.is_exceeded.load(Ordering::Relaxed) => Failed::ForGood(format!(
                    "the files of a message may have {} together",
                    megabytes(shared.limits.message_files)
                )),
                FileError::TooLarge { limit } => Failed::ForGood(too_large(limit)),
                FileError::Full { .. } => Failed::ForGood("there is no room for it".into()),
                FileError::Missing => Failed::ForNow("it was not kept".into()),
                FileError::Broken(error) => Failed::ForNow(error.to_string()),
            })
        }
    }
}

/// How many bytes all files of a message may still have.
struct Allowance {
    left: AtomicU64,
    is_exceeded: AtomicBool,
    /// Whoever sends them has sent too much today.
    is_spent: AtomicBool,
}

impl Allowance {
    fn new(bytes: u64) -> Self {
        let (is_exceeded, is_spent) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { left: AtomicU64::new(bytes), is_exceeded, is_spent }
    }
}

/// What one file has taken of it.
struct Share {
    of: Arc<Allowance>,
    taken: AtomicU64,
    person: (Arc<Shares>, AccountId, SenderId),
}

impl Share {
    fn take(&self, bytes: u64, now: Timestamp) -> io::Result<()> {
        let (shares, account, sender) = &self.person;
        if let Err(error) = shares.take(account, sender, bytes, now) {
            self.of.is_spent.store(true, Ordering::Relaxed);
            return Err(io::Error::other(error));
        }
        let less = |left: u64| left.checked_sub(bytes);
        if self.of.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            self.of.is_exceeded.store(true, Ordering::Relaxed);
            return Err(io::Error::other("too many bytes in one message"));
        }
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self) {
        self.of.left.fetch_add(self.taken.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The bytes, and an error where they pause too long or are too many.
fn watched(bytes: ByteStream, clock: Arc<dyn Clock>, share: Arc<Share>) -> ByteStream {
    let watched = stream::unfold(Some((bytes, clock, share)), |state| async move {
        let (mut bytes, clock, share) = state?;
        let chunk = tokio::select! {
            biased;
            chunk = bytes.next() => chunk?,
            () = clock.sleep(LONGEST_PAUSE) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the platform stopped sending it"))
            }
        };
        let now = clock.now();
        match chunk.and_then(|chunk| share.take(chunk.len() as u64, now).map(|()| chunk)) {
            Ok(chunk) => Some((Ok(chunk), Some((bytes, clock, share)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    watched.boxed()
}

/// A name for a file that has none.
fn called(kind: MediaKind, mime: &str) -> String {
    let ending = match mime {
        "image/jpeg" => ".jpg",
        "image/png" => ".png",
        "image/gif" => ".gif",
        "image/webp" => ".webp",
        "video/mp4" => ".mp4",
        "video/webm" => ".webm",
        "audio/ogg" => ".ogg",
        "audio/mpeg" => ".mp3",
        "audio/mp4" | "audio/m4a" => ".m4a",
        "application/pdf" => ".pdf",
        "text/plain" => ".txt",
        _ => "",
    };
    format!("{}{ending}", kind.noun().replace(' ', "-"))
}

fn too_large(limit: u64) -> String {
    format!("it is larger than {}", megabytes(limit))
}

fn megabytes(bytes: u64) -> String {
    match bytes / 1_000_000 {
        0 => format!("{bytes} bytes"),
        whole => format!("{whole} MB"),
    }
}
