//! Files that travel with messages, on disk: a folder for each kind, in it each file under the digest of
//! its bytes.
//!
//! Every file counts against one quota from its first byte on. What nothing names any more goes after a
//! day; when the quota is reached, so does what is only part of the past, the oldest first. What is
//! still needed never goes.
//!
//! Nothing that a sender says decides where a file lies. The folder is held open, so that neither a link
//! nor a folder that somebody puts in its place leads a file elsewhere; only this user can read it.

mod names;
mod shelves;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    shelves: Mutex<Shelves>,
    /// Held while a file is put in its place or taken out of it.
    moving: tokio::sync::Mutex<()>,
    temporary: AtomicU64,
    records: Option<Records>,
}

/// Who knows what files are needed for, and what time it is.
struct Records {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

/// What a file is called while it is being received.
const INCOMING: &str = "incoming-";

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
            shelves: Mutex::new(shelves),
            moving: tokio::sync::Mutex::default(),
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
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn receive(&self, to: &str, mut bytes: ByteStream) -> Result<Received<'_>, FileError> {
        let mut file = fs::File::from_std(self.folder.create(OsStr::new(to))?);
        let mut digest = Sha256::new();
        let mut head = Vec::new();
        let mut room = Room { files: self, bytes: 0 };
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk?;
            let more = chunk.len() as u64;
            if room.bytes + more > self.limit {
                return Err(FileError::TooLarge { limit: self.limit });
            }
            if !room.widen(more) {
                self.make_room(more).await;
                if !room.widen(more) {
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
        Ok(Received { id, room, head })
    }

    /// Gives a file that was received its name on a shelf, unless it is on another one already.
    async fn put_in_place(
        &self,
        from: &str,
        id: &FileId,
        on: Shelf,
        room: Room<'_>,
    ) -> io::Result<()> {
        let moving = self.moving.lock().await;
        let on = self.lock().shelf(id).unwrap_or(on);
        let (folder, from, id_of) = (self.folder.clone(), from.to_owned(), id.clone());
        let (shelf, at) = off_the_runtime(move || {
            let name = OsStr::new(id_of.as_str());
            let shelf = folder.make_folder(OsStr::new(on.name(&id_of)))?;
            // Also over an equal one, which is then as young as this one.
            folder.rename(OsStr::new(&from), &shelf, name)?;
            let at = modified(&shelf.read(name)?.metadata()?)?;
            Ok((shelf, at))
        })
        .await?;
        let size = room.bytes;
        drop(room);
        self.lock().put(id.clone(), Shelved { on, at }, size);
        drop(moving);
        // The name is as durable as the bytes only when its folder is synced too.
        off_the_runtime(move || shelf.sync()).await
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

    /// Removes a file, unless it was saved once more since.
    async fn remove(&self, at: Timestamp, id: &FileId) -> io::Result<()> {
        let _moving = self.moving.lock().await;
        let shelved = self.lock().shelved.get(id).copied();
        let Some(Shelved { on, .. }) = shelved.filter(|shelved| shelved.at == at) else {
            return Ok(());
        };
        let (folder, id_of) = (self.folder.clone(), id.clone());
        let removed = off_the_runtime(move || {
            folder.folder(OsStr::new(on.name(&id_of)))?.remove(OsStr::new(id_of.as_str()))
        });
        match removed.await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.lock().take(id);
        tracing::info!(file = %id, "a file is no longer kept");
        Ok(())
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

/// Bytes of the quota that are set aside for a file that is being received. Dropping it gives them
/// back.
struct Room<'a> {
    files: &'a DiskFiles,
    bytes: u64,
}

impl Room<'_> {
    /// Sets more aside, if there is any.
    fn widen(&mut self, more: u64) -> bool {
        let mut shelves = self.files.lock();
        let fits = shelves.used.checked_add(more).is_some_and(|used| used <= self.files.quota);
        if fits {
            shelves.used += more;
            self.bytes += more;
        }
        fits
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.files.lock().used -= self.bytes;
    }
}

struct Received<'a> {
    id: FileId,
    room: Room<'a>,
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
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{INCOMING}{}-{number}", std::process::id());
        let received = match self.receive(&temporary, bytes).await {
            Ok(received) => received,
            Err(error) => {
                // It may not even exist; what is left is removed at the next start.
                let _ = self.folder.remove(OsStr::new(&temporary));
                return Err(error);
            }
        };
        let Received { id, room, head } = received;
        let size = room.bytes;
        let on = Shelf::of(shown_by(&head).unwrap_or_default());
        if let Err(error) = self.put_in_place(&temporary, &id, on, room).await {
            let _ = self.folder.remove(OsStr::new(&temporary));
            return Err(error.into());
        }
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
