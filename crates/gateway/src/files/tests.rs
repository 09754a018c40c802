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
async fn each_kind_has_a_folder_of_its_own_and_equal_bytes_are_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
    for (head, declared, shelf) in [
        (&b"\x89PNG\r\n\x1a\n rest"[..], Some("text/html"), "images"),
        (b"OggS\0\0 rest", Some("audio/ogg"), "audio"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", None, "videos"),
        (b"%PDF-1.7", Some("image/png"), "documents"),
        (b"hello", Some("image/png"), "documents"),
        (b"hello", Some("audio/ogg"), "documents"),
        (b"../../escape", Some("../x"), "documents"),
    ] {
        let file = files.save("a", declared, bytes(&[head])).await.expect("saves");
        let path = folder.path().join(shelf).join(file.id.as_str());
        assert!(path.is_file(), "{declared:?} in {shelf}");
        assert_eq!(contents(&files, &file.id).await, head);
    }
    let used = files.lock().used;
    let again = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
    assert_eq!(again.lock().used, used);
    assert_eq!(again.lock().files.len(), 6);
}

#[tokio::test]
async fn a_file_is_found_where_an_unsorted_home_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
    let file = files.save("a", None, bytes(&[b"hello"])).await.expect("saves");
    let digits = folder.path().join(&file.id.as_str()[..2]);
    std::fs::rename(folder.path().join("documents"), &digits).expect("is unsorted");
    let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
    assert_eq!(contents(&files, &file.id).await, b"hello");
    files.save("b", None, bytes(&[b"hello"])).await.expect("saves");
    assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 1, "it stays one file");
    let at = files.lock().shelved[&file.id].at;
    files.remove(at, &file.id).await.expect("removes");
    assert!(!digits.join(file.id.as_str()).exists());
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

#[tokio::test]
async fn whoever_stops_receiving_leaves_nothing_behind_and_takes_no_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = DiskFiles::open(folder.path().into(), 100, 15).expect("opens");
    let listed = || std::fs::read_dir(folder.path()).expect("lists").count();
    for _ in 0..3 {
        let begun = bytes(&[b"1234567890"]).chain(stream::pending()).boxed();
        let written = async {
            while files.lock().used < 10 || listed() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = files.save("a", None, begun) => panic!("it never ends"),
            () = written => {}
        }
        assert_eq!((files.lock().used, listed()), (0, 0));
    }
    files.save("b", None, bytes(&[b"1234567890"])).await.expect("fits");
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
    let at = files.lock().shelved[&file.id].at;
    let path = folder.path().join("documents").join(file.id.as_str());
    let old = std::fs::File::options().write(true).open(&path).expect("opens");
    old.set_modified(UNIX_EPOCH + Duration::from_secs(1)).expect("is old");
    let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
    assert_eq!(files.lock().shelved[&file.id].at, Timestamp::from_millis(1000));
    files.save("a", None, bytes(&[b"again"])).await.expect("saves");
    assert!(files.lock().shelved[&file.id].at >= at);
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
        let shelf = folder.path().join("documents");
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

#[tokio::test(start_paused = true)]
async fn what_nothing_names_goes_after_a_day_whether_another_file_comes_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = MemoryStore::new();
    let files = forgetful(&folder, 100_000, &store, Duration::ZERO);
    let named = files.save("named", None, bytes(&[b"named"])).await.expect("saves");
    mention(&store, &named, JournalState::Handled).await;
    for number in 0..=LOOKED_AT {
        let bytes = stream::iter([Ok(Bytes::from(number.to_string()))]).boxed();
        files.save("a", None, bytes).await.expect("saves");
    }
    let kept_for = async |time: Duration| {
        assert!(tokio::time::timeout(time, files.keep_tidy()).await.is_err(), "it goes on");
        files.lock().files.len()
    };
    assert_eq!(kept_for(DAY - TIDY_EVERY).await, LOOKED_AT + 2, "they are young");
    assert_eq!(kept_for(3 * TIDY_EVERY).await, 1);
    assert!(is_kept(&files, &named).await);
}

#[tokio::test]
async fn an_id_that_is_a_path_finds_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = DiskFiles::open(folder.path().into(), 10, 15).expect("opens");
    let id = FileId::literal("../../../../etc/passwd");
    assert!(matches!(files.read(&id).await, Err(FileError::Missing)));
}

#[tokio::test]
async fn files_are_for_this_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("files");
    let files = DiskFiles::open(folder.clone(), 100, 1000).expect("opens");
    let file = files.save("a", None, bytes(&[b"private"])).await.expect("saves");
    let shelf = folder.join("documents");
    let mode =
        |path: &std::path::Path| path.metadata().expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&shelf), 0o700);
    assert_eq!(mode(&shelf.join(file.id.as_str())), 0o600);
}

#[tokio::test]
async fn a_link_in_the_folder_leads_nowhere() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().expect("a folder");
    let secret = home.path().join("secret");
    std::fs::write(&secret, "secret").expect("writes");
    let folder = home.path().join("files");
    let id = FileId::new("ab".repeat(32)).expect("an id");
    std::fs::create_dir_all(folder.join("images")).expect("a shelf");
    symlink(&secret, folder.join("images").join(id.as_str())).expect("links");
    let files = DiskFiles::open(folder.clone(), 100, 1000).expect("opens");
    assert!(files.read(&id).await.is_err(), "a file is a link");
    // The shelf of what is about to be saved is a link to somebody else's folder.
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    files.save("a", None, bytes(&[b"hello"])).await.expect("saves");
    let shelf = folder.join("documents");
    std::fs::remove_dir_all(&shelf).expect("removes");
    symlink(&elsewhere, &shelf).expect("links");
    assert!(files.save("a", None, bytes(&[b"hello"])).await.is_err());
    assert_eq!(std::fs::read_dir(&elsewhere).expect("lists").count(), 0);
    assert!(DiskFiles::open(shelf, 100, 1000).is_err(), "the folder itself is a link");
}
