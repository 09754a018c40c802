//! Files that travel with messages, on disk, named by the digest of their bytes.
//!
//! Every file counts against one quota from its first byte on. What nothing names any more goes after a
//! day; when the quota is reached, so does what is only part of the past, the oldest first. What is
//! still needed never goes.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use futures::StreamExt;
use sha2::{Digest, Sha256};
use talaria_clock::Clock;
use talaria_model::{FileId, FileRef, Timestamp};
use talaria_platform::{ByteStream, FileError, FileStore};
use talaria_store::{Store, Use};
use tokio::fs;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

/// Enough bytes to recognise any kind of file.
const SNIFF: usize = 8 * 1024;

/// A file this young may belong to something that is about to be written down: a message that is
/// being typed, an answer that is being worked on.
const YOUNG: Duration = Duration::from_secs(60 * 60);

/// How long a file is kept that nothing names: an upload that was never sent.
const UNNAMED: Duration = Duration::from_secs(24 * 60 * 60);

/// How many files are looked at, with every file that is saved, to find those that nothing names.
const LOOKED_AT: usize = 64;

/// How many files are looked at to make room for one that is being saved. The next look goes on from
/// there: the oldest may be needed for years.
const LOOKED_AT_FOR_ROOM: usize = 1024;

/// A folder of files.
pub struct DiskFiles {
    folder: PathBuf,
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

/// What is there. The oldest comes first.
#[derive(Default)]
struct Shelves {
    files: BTreeMap<Place, u64>,
    ages: BTreeMap<FileId, Timestamp>,
    /// Bytes, of files that are being received too.
    used: u64,
    /// Where the next look for what nothing names begins.
    looked_at: Option<Place>,
    /// Where the next look for room begins.
    looked_at_for_room: Option<Place>,
}

/// What a file is called while it is being received.
const INCOMING: &str = "incoming-";

type Place = (Timestamp, FileId);

impl Shelves {
    fn put(&mut self, id: FileId, at: Timestamp, size: u64) {
        self.take(&id);
        self.files.insert((at, id.clone()), size);
        self.ages.insert(id, at);
        self.used += size;
    }

    fn take(&mut self, id: &FileId) {
        if let Some(at) = self.ages.remove(id)
            && let Some(size) = self.files.remove(&(at, id.clone()))
        {
            self.used -= size;
        }
    }

    /// Some of the files that are older than that, from a place on.
    fn older_than(&self, then: Timestamp, after: Option<&Place>, many: usize) -> Vec<Place> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let places = self.files.range((from, Bound::Unbounded)).map(|(place, _)| place);
        places.take_while(|(at, _)| *at < then).take(many).cloned().collect()
    }
}

impl DiskFiles {
    /// Uses `folder`, which is made if it does not exist. One file may have `limit` bytes, all
    /// together `quota`. Nothing is ever let go, unless `forgetting` says how.
    pub fn open(folder: PathBuf, limit: u64, quota: u64) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let mut shelves = Shelves::default();
        for shelf in std::fs::read_dir(&folder)? {
            let shelf = shelf?;
            if shelf.file_type()?.is_dir() {
                for file in std::fs::read_dir(shelf.path())? {
                    let file = file?;
                    let found = file.metadata()?;
                    match digest(&file.file_name().to_string_lossy()) {
                        Some(id) => shelves.put(id, modified(&found)?, found.len()),
                        None => shelves.used += found.len(),
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
            folder,
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

    fn path(&self, id: &FileId) -> Option<PathBuf> {
        let name = digest(id.as_str())?;
        Some(self.folder.join(&name.as_str()[..2]).join(name.as_str()))
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn receive(&self, to: &Path, mut bytes: ByteStream) -> Result<Received<'_>, FileError> {
        let mut file = fs::File::create_new(to).await?;
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

    /// Gives a file that was received its name.
    async fn put_in_place(&self, from: &Path, id: &FileId, room: Room<'_>) -> io::Result<()> {
        let path = self.path(id).expect("a digest has a place");
        let shelf = path.parent().expect("a file lies on a shelf");
        fs::create_dir_all(shelf).await?;
        let moving = self.moving.lock().await;
        // Also over an equal one, which is then as young as this one.
        fs::rename(from, &path).await?;
        let at = modified(&fs::metadata(&path).await?)?;
        let size = room.bytes;
        drop(room);
        self.lock().put(id.clone(), at, size);
        drop(moving);
        // The name is as durable as the bytes only when its folder is synced too.
        fs::File::open(shelf).await?.sync_all().await
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
        if self.lock().ages.get(id) != Some(&at) {
            return Ok(());
        }
        if let Some(path) = self.path(id) {
            match fs::remove_file(path).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
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
        let temporary = self.folder.join(format!("{INCOMING}{}-{number}", std::process::id()));
        let received = match self.receive(&temporary, bytes).await {
            Ok(received) => received,
            Err(error) => {
                // It may not even exist; what is left is removed at the next start.
                let _ = fs::remove_file(&temporary).await;
                return Err(error);
            }
        };
        let Received { id, room, head } = received;
        let size = room.bytes;
        if let Err(error) = self.put_in_place(&temporary, &id, room).await {
            let _ = fs::remove_file(&temporary).await;
            return Err(error.into());
        }
        let mime = kind_of(&head, mime).to_owned();
        Ok(FileRef::new(id, plain_name(name), mime, size))
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        let path = self.path(id).ok_or(FileError::Missing)?;
        match fs::File::open(path).await {
            Ok(file) => Ok(ReaderStream::new(file).boxed()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FileError::Missing),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a file is: as its bytes show, else as declared. Whoever is shown a picture needs one, so nothing
/// is a picture by declaration but what is drawn in text.
fn kind_of<'a>(head: &[u8], declared: Option<&'a str>) -> &'a str {
    let is_picture = |mime: &&str| mime.starts_with("image/") && !mime.starts_with("image/svg");
    infer::get(head)
        .map(|kind| kind.mime_type())
        .or(declared.filter(|mime| !is_picture(mime)))
        .unwrap_or("application/octet-stream")
}

/// A name for people to read: no folders, no control characters, not endless.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|c| !c.is_control()).take(120).collect();
    match plain.trim().trim_start_matches('.') {
        "" => "file".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures::stream;
    use talaria_clock::FakeClock;
    use talaria_model::{
        AccountId, Address, Chat, ChatId, ChatKind, EventId, Inbound, InboundKind, Message, Sender,
        SenderId, Seq, Source,
    };
    use talaria_session::{Scope, SessionKey};
    use talaria_store::{Admitted, Delivered, JournalState, MemoryStore};

    fn bytes(chunks: &[&'static [u8]]) -> ByteStream {
        stream::iter(chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk))).collect::<Vec<_>>())
            .boxed()
    }

    async fn contents(files: &DiskFiles, id: &FileId) -> Vec<u8> {
        let mut whole = Vec::new();
        let mut stream = files.read(id).await.expect("the file is there");
        while let Some(chunk) = stream.next().await {
            whole.extend_from_slice(&chunk.expect("it can be read"));
        }
        whole
    }

    #[tokio::test]
    async fn a_file_comes_back_as_it_was_and_equal_files_are_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        let first = files.save("a.txt", None, bytes(&[b"hello ", b"world"])).await.expect("saves");
        let again = files.save("b.txt", None, bytes(&[b"hello world"])).await.expect("saves");
        assert_eq!(first.id, again.id);
        assert_eq!((first.size, first.name.as_str()), (11, "a.txt"));
        assert_eq!(contents(&files, &first.id).await, b"hello world");
        assert_eq!(files.lock().used, 11);
    }

    #[tokio::test]
    async fn the_kind_is_what_the_bytes_are_not_what_was_claimed() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        let png = files
            .save("x.html", Some("text/html"), bytes(&[b"\x89PNG\r\n\x1a\n rest"]))
            .await
            .expect("saves");
        assert_eq!(png.mime, "image/png");
    }

    #[tokio::test]
    async fn too_much_is_refused_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 10, 15).expect("opens");
        let large = files.save("a", None, bytes(&[b"12345", b"6789012"])).await;
        assert!(matches!(large, Err(FileError::TooLarge { limit: 10 })));
        files.save("a", None, bytes(&[b"1234567890"])).await.expect("fits");
        let full = files.save("b", None, bytes(&[b"abcdefgh"])).await;
        assert!(matches!(full, Err(FileError::Full { quota: 15 })));
        let left = std::fs::read_dir(folder.path()).expect("lists").count();
        assert_eq!(left, 1, "only the shelf of the file that was kept");
    }

    /// Names a file as a message would.
    async fn mention(store: &MemoryStore, file: &FileRef, state: JournalState) -> Seq {
        let inbound = Inbound {
            id: EventId::new(file.id.as_str()).expect("an id"),
            at: Timestamp::default(),
            from: Sender::new(SenderId::literal("alice")),
            to: Address {
                account: AccountId::literal("main"),
                chat: Chat { id: ChatId::literal("home"), kind: ChatKind::Dm },
                thread: None,
            },
            kind: InboundKind::Said(Message { files: vec![file.clone()], ..Message::default() }),
            source: Source::default(),
        };
        let key = SessionKey::of(&inbound, Scope::default());
        let (account, at) = (key.account.clone(), Timestamp::default());
        let batch = Delivered { account, events: vec![(key, inbound, state)], cursor: None, at };
        match store.admit(batch).await.expect("admits")[..] {
            [Admitted::Journalled(seq)] => seq,
            ref other => panic!("{other:?}"),
        }
    }

    /// Files in a folder, at a moment that long after they are saved.
    fn forgetful(
        folder: &tempfile::TempDir,
        quota: u64,
        store: &MemoryStore,
        after: Duration,
    ) -> DiskFiles {
        let probe = folder.path().join("probe");
        std::fs::write(&probe, "").expect("writes");
        let now = modified(&probe.metadata().expect("is there")).expect("has an age");
        let clock = Arc::new(FakeClock::starting(now + after));
        let files = DiskFiles::open(folder.path().into(), 100, quota).expect("opens");
        files.forgetting(Arc::new(store.clone()), clock)
    }

    async fn is_kept(files: &DiskFiles, file: &FileRef) -> bool {
        match files.read(&file.id).await {
            Ok(_) => true,
            Err(FileError::Missing) => false,
            Err(error) => panic!("{error}"),
        }
    }

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[tokio::test]
    async fn uploads_at_the_same_time_cannot_exceed_the_quota_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 100, 100).expect("opens");
        let upload = |number: usize| {
            let files = &files;
            async move {
                // Chunk by chunk, so that all of them are on their way before one is through.
                let chunks = (0..10).map(move |chunk| Ok(Bytes::from(format!("{number}:{chunk}"))));
                let bytes = stream::iter(chunks)
                    .then(|chunk| async {
                        tokio::task::yield_now().await;
                        chunk
                    })
                    .boxed();
                files.save("a", None, bytes).await
            }
        };
        let saved = futures::future::join_all((0..9).map(upload)).await;
        let kept = saved.iter().filter(|saved| saved.is_ok()).count() as u64;
        assert!(kept <= 3, "{kept} files of 30 bytes do not fit into 100");
        assert_eq!(files.lock().used, kept * 30, "what was set aside in vain is given back");
        let on_disk = DiskFiles::open(folder.path().into(), 100, 100).expect("opens").lock().used;
        assert_eq!(on_disk, kept * 30);
    }

    #[tokio::test]
    async fn a_file_that_nothing_names_goes_after_a_day() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = MemoryStore::new();
        let files = forgetful(&folder, 1000, &store, Duration::ZERO);
        let unnamed = files.save("a", None, bytes(&[b"unnamed"])).await.expect("saves");
        let named = files.save("b", None, bytes(&[b"named"])).await.expect("saves");
        mention(&store, &named, JournalState::Handled).await;
        let denied = files.save("c", None, bytes(&[b"denied"])).await.expect("saves");
        mention(&store, &denied, JournalState::Denied("no".into())).await;

        let files = forgetful(&folder, 1000, &store, DAY / 2);
        files.save("d", None, bytes(&[b"new"])).await.expect("saves");
        assert!(is_kept(&files, &unnamed).await, "it may be sent yet");
        let files = forgetful(&folder, 1000, &store, DAY + YOUNG);
        files.save("d", None, bytes(&[b"new"])).await.expect("saves");
        assert!(!is_kept(&files, &unnamed).await);
        assert!(!is_kept(&files, &denied).await);
        assert!(is_kept(&files, &named).await);
        assert_eq!(files.lock().used, "named".len() as u64 + "new".len() as u64);
    }

    #[tokio::test]
    async fn a_full_store_makes_room_by_what_is_past_and_never_by_what_is_needed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = MemoryStore::new();
        let files = forgetful(&folder, 30, &store, Duration::ZERO);
        let needed = files.save("a", None, bytes(&[b"needed----"])).await.expect("saves");
        mention(&store, &needed, JournalState::Unread).await;
        let past = files.save("b", None, bytes(&[b"past------"])).await.expect("saves");
        mention(&store, &past, JournalState::Handled).await;
        let also = files.save("c", None, bytes(&[b"also past-"])).await.expect("saves");
        mention(&store, &also, JournalState::Handled).await;
        let full = files.save("d", None, bytes(&[b"new-------"])).await;
        assert!(matches!(full, Err(FileError::Full { .. })), "all of them are young");

        let files = forgetful(&folder, 30, &store, 2 * YOUNG);
        let new = files.save("d", None, bytes(&[b"new-------"])).await.expect("there is room");
        mention(&store, &new, JournalState::Unread).await;
        assert!(is_kept(&files, &needed).await && is_kept(&files, &new).await);
        let left = [is_kept(&files, &past).await, is_kept(&files, &also).await];
        assert_eq!(left.iter().filter(|kept| **kept).count(), 1, "no more than it takes");
        let newer = files.save("e", None, bytes(&[b"newer-----"])).await.expect("there is room");
        mention(&store, &newer, JournalState::Unread).await;
        let full = files.save("f", None, bytes(&[b"!"])).await;
        assert!(matches!(full, Err(FileError::Full { quota: 30 })), "everything is needed");
        assert!(is_kept(&files, &needed).await);
    }

    #[tokio::test]
    async fn a_file_that_is_saved_once_more_is_young_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        let file = files.save("a", None, bytes(&[b"again"])).await.expect("saves");
        let at = files.lock().ages[&file.id];
        let path = files.path(&file.id).expect("a place");
        let old = std::fs::File::options().write(true).open(&path).expect("opens");
        old.set_modified(UNIX_EPOCH + Duration::from_secs(1)).expect("is old");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        assert_eq!(files.lock().ages[&file.id], Timestamp::from_millis(1000));
        files.save("a", None, bytes(&[b"again"])).await.expect("saves");
        assert!(files.lock().ages[&file.id] >= at);
        files.remove(Timestamp::from_millis(1000), &file.id).await.expect("changes nothing");
        assert!(is_kept(&files, &file).await, "it is not the one that was looked at");
        assert_eq!(files.lock().used, 5);
    }

    #[tokio::test]
    async fn what_a_crash_left_of_an_upload_is_gone_after_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("incoming-1-0"), "half a file").expect("writes");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        assert_eq!(files.lock().used, 0);
        assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 0);
    }

    #[tokio::test]
    async fn what_somebody_else_put_there_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("notes.txt"), "mine").expect("writes");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        assert_eq!(files.lock().used, 4);
        assert!(folder.path().join("notes.txt").exists());
    }

    #[tokio::test]
    async fn what_is_past_goes_however_much_is_needed_that_is_older() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = MemoryStore::new();
        let old = UNIX_EPOCH + DAY;
        let mut all = Vec::new();
        for number in 0..=LOOKED_AT_FOR_ROOM {
            let id = FileId::new(format!("{number:064x}")).expect("an id");
            let shelf = folder.path().join(&id.as_str()[..2]);
            std::fs::create_dir_all(&shelf).expect("a shelf");
            std::fs::write(shelf.join(id.as_str()), "x").expect("writes");
            let file = std::fs::File::options().write(true).open(shelf.join(id.as_str()));
            file.expect("opens").set_modified(old).expect("is old");
            let file = FileRef::new(id, "f", "text/plain", 1);
            let is_last = number == LOOKED_AT_FOR_ROOM;
            let state = if is_last { JournalState::Handled } else { JournalState::Unread };
            mention(&store, &file, state).await;
            all.push(file);
        }
        let quota = all.len() as u64;
        let files = forgetful(&folder, quota, &store, Duration::ZERO);
        let full = files.save("new", None, bytes(&[b"n"])).await;
        assert!(matches!(full, Err(FileError::Full { .. })), "it has not looked that far");
        files.save("new", None, bytes(&[b"n"])).await.expect("there is room");
        assert!(!is_kept(&files, all.last().expect("some")).await);
        assert!(is_kept(&files, &all[0]).await);
    }

    #[tokio::test]
    async fn no_more_files_are_looked_at_than_there_is_time_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = MemoryStore::new();
        let files = DiskFiles::open(folder.path().into(), 100, 100_000).expect("opens");
        for number in 0..3 * LOOKED_AT {
            let bytes = stream::iter([Ok(Bytes::from(number.to_string()))]).boxed();
            files.save("a", None, bytes).await.expect("saves");
        }
        let files = forgetful(&folder, 100_000, &store, DAY + YOUNG);
        for round in 1..=3 {
            files.tidy().await;
            assert_eq!(files.lock().files.len(), (3 - round) * LOOKED_AT);
        }
        files.tidy().await;
        assert_eq!(files.lock().files.len(), 0);
        assert_eq!(files.lock().used, 0);
    }

    #[tokio::test]
    async fn an_id_that_is_a_path_finds_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 10, 15).expect("opens");
        let id = FileId::literal("../../../../etc/passwd");
        assert!(matches!(files.read(&id).await, Err(FileError::Missing)));
    }

    #[test]
    fn names_are_for_reading_only() {
        for (given, kept) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("c:\\x\\y.txt", "y.txt"),
            (".bashrc", "bashrc"),
            ("a\u{7}b", "ab"),
            ("", "file"),
            ("..", "file"),
        ] {
            assert_eq!(plain_name(given), kept);
        }
    }
}
