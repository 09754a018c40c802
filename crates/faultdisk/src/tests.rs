//! The disk does what it says it does.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};
use tempfile::TempDir;

use crate::{Disk, Errno, Event, Fault, Image, Lie, Loss, Op, Pattern, Trouble};

fn open(folder: &Path, synchronous: &str) -> Connection {
    let conn = Connection::open(folder.join("some.db")).expect("opens");
    let settings = format!(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = {synchronous}; PRAGMA user_version"
    );
    conn.execute_batch(&settings).expect("sets");
    conn
}

fn write_ten(conn: &Connection) {
    conn.execute_batch("CREATE TABLE IF NOT EXISTS n (i INTEGER PRIMARY KEY)").expect("creates");
    for _ in 0..10 {
        conn.execute("INSERT INTO n DEFAULT VALUES", []).expect("inserts");
    }
}

/// How many rows a power cut left.
fn left(disk: &Disk, loss: Loss, lie: Lie) -> i64 {
    let tape = disk.tape();
    let folder = TempDir::new().expect("a folder");
    Image::of(&tape, tape.len(), loss, lie).write_to(folder.path()).expect("writes");
    let conn = Connection::open(folder.path().join("some.db")).expect("opens");
    conn.query_row("SELECT count(*) FROM n", [], |row| row.get(0)).unwrap_or(0)
}

fn losses() -> impl Iterator<Item = Loss> {
    Pattern::ALL.into_iter().zip(1..).map(|(pattern, seed)| Loss { pattern, seed })
}

#[test]
fn what_was_synced_survives_every_pattern() {
    let folder = TempDir::new().expect("a folder");
    let disk = Disk::watch(folder.path()).expect("is a folder");
    let conn = open(folder.path(), "full");
    write_ten(&conn);
    for loss in losses() {
        assert_eq!(left(&disk, loss, Lie::None), 10, "{loss:?}");
    }
    let dropped = Loss { pattern: Pattern::Dropped, seed: 0 };
    assert_eq!(left(&disk, dropped, Lie::All), 0);
    assert_eq!(left(&disk, dropped, Lie::Files("-wal")), 0);
    assert_eq!(left(&disk, dropped, Lie::Folder), 0);
}

#[test]
fn what_is_written_without_syncs_is_lost() {
    let folder = TempDir::new().expect("a folder");
    let disk = Disk::watch(folder.path()).expect("is a folder");
    let conn = open(folder.path(), "off");
    write_ten(&conn);
    let lost = losses().filter(|loss| left(&disk, *loss, Lie::None) < 10).count();
    assert!(lost >= 8, "{lost}");
    assert_eq!(left(&disk, Loss { pattern: Pattern::Kept, seed: 0 }, Lie::None), 10);
}

#[test]
fn what_was_there_before_counts_as_synced() {
    let folder = TempDir::new().expect("a folder");
    let conn = open(folder.path(), "off");
    write_ten(&conn);
    conn.close().expect("closes");
    let disk = Disk::watch(folder.path()).expect("is a folder");
    for loss in losses() {
        assert_eq!(left(&disk, loss, Lie::None), 10, "{loss:?}");
    }
}

#[test]
fn no_later_sync_brings_back_what_a_failed_one_left_out() {
    let folder = TempDir::new().expect("a folder");
    let disk = Disk::watch(folder.path()).expect("is a folder");
    let conn = open(folder.path(), "full");
    write_ten(&conn);
    disk.break_down(Fault::refusing(Op::Sync, Errno::Io).once_after(0));
    assert!(conn.execute("INSERT INTO n DEFAULT VALUES", []).is_err());
    let tape = disk.tape();
    let failed = tape.events().iter().rposition(|event| matches!(event, Event::SyncFailed { .. }));
    let failed = failed.expect("a sync failed");
    let log = |moment, pattern| {
        let image = Image::of(&tape, moment, Loss { pattern, seed: 0 }, Lie::None);
        image.file("some.db-wal").map(<[u8]>::len)
    };
    assert!(log(failed, Pattern::Kept) > log(failed, Pattern::Dropped));
    // Whoever syncs the same file again gets an answer, and not the bytes.
    let mut again = tape.clone();
    let Event::SyncFailed { file } = tape.events()[failed] else { unreachable!("found above") };
    again.events.push(Event::Sync { file });
    let lost = Loss { pattern: Pattern::Dropped, seed: 0 };
    let image = Image::of(&again, again.len(), lost, Lie::None);
    assert_eq!(image.file("some.db-wal").map(<[u8]>::len), log(failed, Pattern::Dropped));
}

#[test]
fn troubles_arrive_as_sqlite_knows_them_and_go_away() {
    let folder = TempDir::new().expect("a folder");
    let disk = Disk::watch(folder.path()).expect("is a folder");
    let conn = open(folder.path(), "full");
    write_ten(&conn);
    let short = Fault { trouble: Trouble::Short, ..Fault::refusing(Op::Write, Errno::NoSpace) };
    for (fault, code) in [
        (Fault::refusing(Op::Write, Errno::NoSpace), ErrorCode::DiskFull),
        (Fault::refusing(Op::Write, Errno::Quota), ErrorCode::SystemIoFailure),
        (Fault::refusing(Op::Sync, Errno::Io), ErrorCode::SystemIoFailure),
        (short, ErrorCode::DiskFull),
    ] {
        disk.break_down(fault);
        let refused = conn.execute("INSERT INTO n DEFAULT VALUES", []).expect_err("is refused");
        assert_eq!(refused.sqlite_error_code(), Some(code), "{fault:?}");
        disk.mend();
    }
    assert_eq!(disk.hits(), 4);
    conn.execute("INSERT INTO n DEFAULT VALUES", []).expect("inserts");
    assert_eq!(left(&disk, Loss { pattern: Pattern::Dropped, seed: 0 }, Lie::None), 11);
}

#[test]
fn a_folder_that_is_not_watched_is_left_alone() {
    let (watched, other) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let disk = Disk::watch(watched.path()).expect("is a folder");
    disk.break_down(Fault::refusing(Op::Write, Errno::Io));
    write_ten(&open(other.path(), "full"));
    assert!(disk.tape().is_empty());
    assert_eq!(disk.hits(), 0);
}
