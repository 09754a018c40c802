//! A script played on a disk that is watched, and what a sound store looks like after each write.

use std::fmt::Debug;
use std::path::Path;

use rusqlite::Connection;
use talaria_faultdisk::{Disk, Fault, Image, Tape};
use talaria_store::{MemoryStore, Store, StoreError};
use tempfile::TempDir;

use super::super::recorded::dump;
use super::super::seen::seen;
use super::script::{Op, Scene, Script, ask, ask_together, asked};
use crate::{OpenError, SqliteStore};

/// A folder that costs no real syncs, where there is one.
pub(super) fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder")
}

/// Every row of a store, but for what tells it from every other.
pub(super) fn rows(folder: &Path) -> String {
    let conn = Connection::open(folder.join("state.db")).expect("opens");
    let lines = dump(&conn);
    let ours = |line: &&str| !line.starts_with("INSERT INTO meta VALUES ('epoch'");
    lines.lines().filter(ours).collect::<Vec<_>>().join("\n")
}

/// What a store holds and says after each number of writes.
pub(super) struct Expected {
    pub(super) rows: Vec<String>,
    pub(super) seen: Vec<Vec<String>>,
    pub(super) answers: Vec<String>,
}

impl Expected {
    /// As a sound disk has it, and memory says it.
    pub(super) async fn of(script: &Script) -> Self {
        let folder = folder();
        let (memory, asked) = (MemoryStore::new(), asked());
        let store = SqliteStore::open(folder.path()).expect("opens");
        let mut expected = Self {
            rows: vec![rows(folder.path())],
            seen: vec![seen(&memory, &asked).await],
            answers: Vec::new(),
        };
        for op in script.ops() {
            let answer = ask(&store, op).await.expect("a sound disk takes it");
            assert_eq!(ask(&memory, op).await.as_ref(), Ok(&answer), "{op:?}");
            expected.rows.push(rows(folder.path()));
            expected.seen.push(seen(&memory, &asked).await);
            expected.answers.push(answer);
        }
        expected
    }

    /// As a sound disk has it that begins with these files.
    pub(super) async fn from(image: &Image, script: &Script) -> Self {
        let (folder, asked) = (folder(), asked());
        image.write_to(folder.path()).expect("writes");
        let store = SqliteStore::open(folder.path()).expect("opens");
        let mut expected = Self {
            rows: vec![rows(folder.path())],
            seen: vec![seen(&store, &asked).await],
            answers: Vec::new(),
        };
        for op in script.ops() {
            expected.answers.push(ask(&store, op).await.expect("a sound disk takes it"));
            expected.rows.push(rows(folder.path()));
            expected.seen.push(seen(&store, &asked).await);
        }
        expected
    }
}

/// What happened to the disk while a script was played.
pub(super) struct Recording {
    pub(super) tape: Tape,
    /// The moments at which each write was asked for, and answered with success.
    pub(super) writes: Vec<(usize, usize)>,
    /// How often the store said that it cannot write.
    pub(super) refused: usize,
    /// How many calls to the disk did not go well.
    pub(super) hits: u64,
}

impl Recording {
    /// How many writes a power cut at this moment must not undo, and how many it may leave.
    pub(super) fn bounds(&self, moment: usize) -> (usize, usize) {
        let count = |pick: fn(&(usize, usize)) -> usize| {
            self.writes.iter().take_while(|write| pick(write) <= moment).count()
        };
        (count(|write| write.1), count(|write| write.0))
    }
}

/// Plays a script on a sound disk.
pub(super) async fn record(script: &Script, expected: &Expected) -> Recording {
    play(script, expected, &Image::default(), |_| Vec::new()).await
}

/// Plays a script, beginning with these files. Before each scene the disk may break down; it is mended when the scene is over,
/// and then whatever was refused is asked for again and has to succeed.
pub(super) async fn play(
    script: &Script,
    expected: &Expected,
    from: &Image,
    breaks: impl Fn(usize) -> Vec<Fault>,
) -> Recording {
    let folder = folder();
    from.write_to(folder.path()).expect("writes");
    let disk = Disk::watch(folder.path()).expect("is a folder");
    let mut store = SqliteStore::open(folder.path()).expect("opens");
    let mut writes = Vec::new();
    let mut refused = 0;
    for (number, scene) in script.scenes.iter().enumerate() {
        let faults = breaks(number);
        let broken = !faults.is_empty();
        faults.into_iter().for_each(|fault| disk.break_down(fault));
        match scene {
            Scene::Together(ops) => {
                let asked_at = disk.now();
                let answers = ask_together(&store, ops).await;
                let answered_at = disk.now();
                if let Ok(counts) = store.counts().await {
                    let counts = format!("counts: {:?}", Ok::<_, StoreError>(counts));
                    let mut possible = writes.len()..=writes.len() + ops.len();
                    assert!(possible.any(|number| expected.seen[number][0] == counts), "{counts}");
                }
                disk.mend();
                for (op, answer) in ops.iter().zip(answers) {
                    if answer.is_err() {
                        refused += 1;
                    }
                    let wanted = &expected.answers[writes.len()];
                    let done = settle(&store, op, answer, wanted, broken).await;
                    let acknowledged = if done == Done::AtOnce { answered_at } else { disk.now() };
                    writes.push((asked_at, acknowledged));
                }
                if broken {
                    assert_eq!(rows(folder.path()), expected.rows[writes.len()], "{ops:?}");
                }
            }
            Scene::CarryOver(how) => {
                let carried = Connection::open(folder.path().join("state.db")).and_then(|conn| {
                    conn.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()))
                });
                disk.mend();
                assert!(carried.is_ok() || broken, "{carried:?}");
            }
            Scene::Restart => {
                drop(store);
                store = match SqliteStore::open(folder.path()) {
                    Ok(store) => store,
                    Err(error) => {
                        assert!(broken, "{error}");
                        assert!(
                            matches!(
                                error,
                                OpenError::Unwritable { .. } | OpenError::Folder { .. }
                            ),
                            "trouble with the disk is no damage: {error}"
                        );
                        refused += 1;
                        disk.mend();
                        SqliteStore::open(folder.path()).expect("opens when the disk is mended")
                    }
                };
                disk.mend();
            }
        }
    }
    assert_eq!(Some(&seen(&store, &asked()).await), expected.seen.last());
    drop(store);
    let writes = writes_in_order(writes);
    Recording { tape: disk.tape(), writes, refused, hits: disk.hits() }
}

/// A write that was asked for together with others counts as acknowledged when those before it are:
/// a store that lost one of them lost the order.
fn writes_in_order(mut writes: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut latest = 0;
    for (_, acknowledged) in &mut writes {
        latest = latest.max(*acknowledged);
        *acknowledged = latest;
    }
    writes
}

#[derive(PartialEq, Eq)]
enum Done {
    AtOnce,
    Again,
}

async fn settle(
    store: &dyn Store,
    op: &Op,
    answer: Result<String, StoreError>,
    wanted: &str,
    broken: bool,
) -> Done {
    let agrees = |answer: &dyn Debug| format!("{answer:?}") == format!("{:?}", wanted.to_owned());
    match answer {
        Ok(answer) => {
            assert!(broken || agrees(&answer), "{op:?}: {answer}");
            Done::AtOnce
        }
        Err(error) => {
            assert!(broken, "{op:?}: {error}");
            assert!(
                matches!(error, StoreError::Unavailable { .. }),
                "trouble with the disk is no damage: {op:?}: {error}"
            );
            let again = ask(store, op).await;
            assert!(again.is_ok(), "the disk is mended, and {op:?} gets {again:?}");
            Done::Again
        }
    }
}
