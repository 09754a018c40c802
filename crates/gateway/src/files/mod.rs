//! Files that travel with messages, on disk: a folder for each kind, in it each file under the digest of
//! its bytes.
//!
//! Every file counts against one quota from its first byte on. What nothing names any more goes after a
//! day; when the quota is reached, so does what is only part of the past, the oldest first. What is
//! still needed never goes.
//!
//! Nothing that a sender says decides where a file lies. The folder is held open, so that neither a link
//! nor a folder that somebody puts in its place leads a file elsewhere; only this user can read it.

mod incoming;
mod names;
mod shelves;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use futures::StreamExt;
use sha2::{Digest, Sha256};
use talaria_clock::Clock;
use talaria_machine::Folder;
use talaria_model::{FileId, FileRef, Timestamp};
use talaria_platform::{ByteStream, FileError, FileStore};
use talaria_store::{Store, Use};
use tokio::fs;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

use incoming::{INCOMING, Incoming};
use names::{kind_of, plain_name, shown_by};
use shelves::{Place, Shelf, Shelved, Shelves};

/// Enough bytes to recognise any kind of file.
const SNIFF: usize = 8 * 1024;

/// A file this young may belong to something that is about to be written down: a message that is
/// being typed, an answer that is being worked on.
const YOUNG: Duration = Duration::from_secs(60 * 60);

/// How long a file is kept that nothing names: an upload that was never sent.
const UNNAMED: Duration = Duration::from_secs(24 * 60 * 60);

/// How often it is looked for what nothing names, beside when a file comes.
const TIDY_EVERY: Duration = Duration::from_secs(60 * 60);

/// How many files are looked at, with every file that is saved, to find those that nothing names.
const LOOKED_AT: usize = 64;

/// How many files are looked at to make room for one that is being saved. The next look goes on from
/// there: the oldest may be needed for years.
const LOOKED_AT_FOR_ROOM: usize = 1024;

/// A folder of files.
pub struct DiskFiles {
    folder: Arc<Folder>,
    limit: u64,
    quota: u64,
    shelves: Arc<Mutex<Shelves>>,
    /// Held while a file is put in its place or taken out of it.
    moving: Arc<tokio::sync::Mutex<()>>,
    temporary: AtomicU64,
    records: Option<Records>,
}

/// Who knows what files are needed for, and what time it is.
struct Records {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl DiskFiles {
    /// Uses `folder`, which is made if it does not exist. One file may have `limit` bytes, all
    /// together `quota`. Nothing is ever let go, unless `forgetting` says how.
    pub fn open(folder: PathBuf, limit: u64, quota: u64) -> io::Result<Self> {
        let held = Folder::make(&folder)?;
        let mut shelves = Shelves::default();
        for shelf in std::fs::read_dir(&folder)? {
            let shelf = shelf?;
            if shelf.file_type()?.is_dir() {
                let ours = Shelf::named(&shelf.file_name().to_string_lossy());
                for file in std::fs::read_dir(shelf.path())? {
                    let file = file?;
                    let found = file.metadata()?;
                    match (ours, digest(&file.file_name().to_string_lossy())) {
                        (Some(on), Some(id)) => {
                            let at = modified(&found)?;
                            shelves.put(id, Shelved { on, at }, found.len());
                        }
                        _ => shelves.used += found.len(),
                    }
                }
            } else if shelf.file_name().to_string_lossy().starts_with(INCOMING) {
                // Left behind by a run that ended while it received a file.
                std::fs::remove_file(shelf.path())?;
            } else {
                // Somebody else's. It takes room all the same.
                shelves.used += shelf.metadata()?.len();
            }
        }
        Ok(Self {
            folder: Arc::new(held),
            limit,
            quota,
            shelves: Arc::new(Mutex::new(shelves)),
            moving: Arc::default(),
            temporary: AtomicU64::new(0),
            records: None,
        })
    }

    /// Lets go of files that nothing in `store` needs.
    #[must_use]
    pub fn forgetting(self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { records: Some(Records { store, clock }), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        incoming::lock(&self.shelves)
    }

    async fn receive(&self, mut bytes: ByteStream) -> Result<Received, FileError> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let (mut incoming, file) = Incoming::begin(&self.folder, &self.shelves, number)?;
        let mut file = fs::File::from_std(file);
        let mut digest = Sha256::new();
        let mut head = Vec::new();
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk?;
            let more = chunk.len() as u64;
            if incoming.bytes() + more > self.limit {
                return Err(FileError::TooLarge { limit: self.limit });
            }
            if !incoming.widen(more, self.quota) {
                self.make_room(more).await;
                if !incoming.widen(more, self.quota) {
                    return Err(FileError::Full { quota: self.quota });
                }
            }
            let wanted = SNIFF.saturating_sub(head.len()).min(chunk.len());
            head.extend_from_slice(&chunk[..wanted]);
            digest.update(&chunk);
            file.write_all(&chunk).await?;
        }
        file.sync_all().await?;
        let digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let id = FileId::new(digest).expect("hex digits are an id");
        Ok(Received { id, incoming, head })
    }

    /// Gives a file that was received its name on a shelf. That is done to its end, whoever waits for it.
    async fn put_in_place(&self, incoming: Incoming, id: FileId, on: Shelf) -> io::Result<()> {
        let moving = self.moving.clone().lock_owned().await;
        off_the_runtime(move || {
            let shelf = incoming.put_in_place(id, on)?;
            drop(moving);
            // The name is as durable as the bytes only when its folder is synced too.
            shelf.sync()
        })
        .await
    }

    /// Lets go of what nothing has named for a day, again and again for as long as it is polled, so that it goes
    /// whether another file comes or not.
    pub async fn keep_tidy(&self) -> Infallible {
        let Some(records) = &self.records else { return std::future::pending().await };
        loop {
            records.clock.sleep(TIDY_EVERY).await;
            // All of them once around, a few at a time.
            loop {
                self.tidy().await;
                if self.lock().looked_at.is_none() {
                    break;
                }
            }
        }
    }

    /// Lets go of what nothing has named for a day, among the next few files.
    async fn tidy(&self) {
        let Some(records) = &self.records else { return };
        let then = before(records.clock.now(), UNNAMED);
        let places = {
            let mut shelves = self.lock();
            let places = shelves.older_than(then, shelves.looked_at.as_ref(), LOOKED_AT);
            // At the end it begins anew.
            shelves.looked_at = places.last().filter(|_| places.len() == LOOKED_AT).cloned();
            places
        };
        self.let_go(records, places, Use::None, u64::MAX).await;
    }

    /// Lets go of the oldest files that nothing needs at present, until there is room for so many
    /// bytes.
    async fn make_room(&self, bytes: u64) {
        let Some(records) = &self.records else { return };
        let then = before(records.clock.now(), YOUNG);
        let places = {
            let mut shelves = self.lock();
            let from = shelves.looked_at_for_room.take();
            let mut places = shelves.older_than(then, from.as_ref(), LOOKED_AT_FOR_ROOM);
            if let Some(from) = from {
                // At the end it begins anew, as far as it has not looked yet.
                let rest = LOOKED_AT_FOR_ROOM - places.len();
                let first = shelves.older_than(then, None, rest);
                places.extend(first.into_iter().take_while(|place| *place <= from));
            }
            shelves.looked_at_for_room =
                places.last().filter(|_| places.len() == LOOKED_AT_FOR_ROOM).cloned();
            places
        };
        self.let_go(records, places, Use::Past, bytes).await;
    }

    /// Lets go of those of these files that are kept for nothing more urgent than this, until so many
    /// bytes are free.
    async fn let_go(&self, records: &Records, places: Vec<Place>, most: Use, bytes: u64) {
        for places in places.chunks(LOOKED_AT) {
            let ids: Vec<FileId> = places.iter().map(|(_, id)| id.clone()).collect();
            let uses = match records.store.uses(&ids).await {
                Ok(uses) => uses,
                Err(error) => return tracing::warn!(%error, "no file is let go"),
            };
            for ((at, id), used) in places.iter().zip(uses) {
                if self.has_room(bytes) {
                    return;
                }
                if used <= most
                    && let Err(error) = self.remove(*at, id).await
                {
                    tracing::warn!(file = %id, %error, "a file cannot be let go");
                }
            }
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.lock().used.checked_add(bytes).is_some_and(|used| used <= self.quota)
    }

    /// Removes a file, unless it was saved once more since. That is done to its end, whoever waits for it.
    async fn remove(&self, at: Timestamp, id: &FileId) -> io::Result<()> {
        let moving = self.moving.clone().lock_owned().await;
        let shelved = self.lock().shelved.get(id).copied();
        let Some(Shelved { on, .. }) = shelved.filter(|shelved| shelved.at == at) else {
            return Ok(());
        };
        let (folder, shelves, id) = (self.folder.clone(), self.shelves.clone(), id.clone());
        off_the_runtime(move || {
            let _moving = moving;
            let shelf = folder.folder(OsStr::new(on.name(&id)));
            match shelf.and_then(|shelf| shelf.remove(OsStr::new(id.as_str()))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            incoming::lock(&shelves).take(&id);
            tracing::info!(file = %id, "a file is no longer kept");
            Ok(())
        })
        .await
    }
}

fn digest(name: &str) -> Option<FileId> {
    let is_digest = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| FileId::new(name).ok()).flatten()
}

/// A disk may take its time, and nobody else should.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn modified(file: &std::fs::Metadata) -> io::Result<Timestamp> {
    let since = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

fn before(now: Timestamp, time: Duration) -> Timestamp {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}

struct Received {
    id: FileId,
    incoming: Incoming,
    head: Vec<u8>,
}

#[async_trait]
impl FileStore for DiskFiles {
    async fn save(
        &self,
        name: &str,
        mime: Option<&str>,
        bytes: ByteStream,
    ) -> Result<FileRef, FileError> {
        self.tidy().await;
        let Received { id, incoming, head } = self.receive(bytes).await?;
        let size = incoming.bytes();
        let on = Shelf::of(shown_by(&head).unwrap_or_default());
        self.put_in_place(incoming, id.clone(), on).await?;
        Ok(FileRef::new(id, plain_name(name), kind_of(&head, mime), size))
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        let on = self.lock().shelf(id).ok_or(FileError::Missing)?;
        let (folder, id) = (self.folder.clone(), id.clone());
        let opened = off_the_runtime(move || {
            folder.folder(OsStr::new(on.name(&id)))?.read(OsStr::new(id.as_str()))
        });
        match opened.await {
            Ok(file) => Ok(ReaderStream::new(fs::File::from_std(file)).boxed()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FileError::Missing),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
