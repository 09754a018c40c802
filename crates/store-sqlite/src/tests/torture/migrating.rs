//! Power that is lost while the store is brought to a later version.

use std::path::Path;

use rusqlite::Connection;
use talaria_faultdisk::{Dice, Disk, Image, Lie, Loss, Pattern};

use super::super::recorded::{dump, recorded};
use super::images;
use super::record::folder;
use crate::open::{MIGRATIONS, open_migrated};

/// Two steps such as a later version may have: one adds, the other builds a table anew.
const LATER: [&str; 2] = [
    "ALTER TABLE account ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
     CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;
     INSERT INTO note (text) SELECT inbound FROM journal;",
    "CREATE TABLE entry_again (
         position INTEGER PRIMARY KEY,
         life INTEGER NOT NULL,
         number INTEGER NOT NULL,
         at INTEGER NOT NULL,
         summary INTEGER NOT NULL,
         rewound INTEGER NOT NULL,
         entry TEXT NOT NULL,
         length INTEGER NOT NULL
     ) STRICT;
     INSERT INTO entry_again
         SELECT position, life, number, at, summary, rewound, entry, length(entry) FROM entry;
     DROP TABLE entry;
     ALTER TABLE entry_again RENAME TO entry;
     CREATE INDEX entry_standing ON entry (life) WHERE rewound = 0;",
];

fn steps() -> Vec<&'static str> {
    MIGRATIONS.iter().chain(&LATER).copied().collect()
}

/// The version of a database and everything in it, which is nothing before the first version.
fn whole(file: &Path) -> (usize, String) {
    let conn = Connection::open(file).expect("opens");
    let sound: String =
        conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(sound, "ok");
    let version: i64 =
        conn.pragma_query_value(None, "user_version", |row| row.get(0)).expect("reads");
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).expect("reads");
    let content = if tables == 0 { String::new() } else { dump(&conn) };
    let ours = |line: &&str| !line.starts_with("INSERT INTO meta VALUES ('epoch'");
    let content = content.lines().filter(ours).collect::<Vec<_>>().join("\n");
    (usize::try_from(version).expect("counts up"), content)
}

/// Makes a database of a version: the recorded one, or none.
fn make(file: &Path, sql: Option<&str>) {
    if let Some(sql) = sql {
        let conn = Connection::open(file).expect("opens");
        conn.execute_batch(sql).expect("is SQL");
        conn.close().expect("closes");
    }
}

fn torture(from: usize, sql: Option<&str>) -> usize {
    let steps = steps();
    let mut expected = vec![String::new(); steps.len() + 1];
    for version in from..=steps.len() {
        let folder = folder();
        let file = folder.path().join("state.db");
        make(&file, sql);
        if version > 0 {
            drop(open_migrated(&file, &steps[..version]).expect("opens"));
        }
        expected[version] = whole(&file).1;
    }
    let watched = folder();
    make(&watched.path().join("state.db"), sql);
    let disk = Disk::watch(watched.path()).expect("is a folder");
    drop(open_migrated(&watched.path().join("state.db"), &steps).expect("opens"));
    let tape = disk.tape();
    let mut dice = Dice::new(from as u64);
    let mut seen = vec![0; steps.len() + 1];
    for moment in tape.boundaries() {
        for pattern in Pattern::ALL {
            if images().is_none() && dice.coin() {
                continue;
            }
            let loss = Loss { pattern, seed: dice.roll() };
            let image = Image::of(&tape, moment, loss, Lie::None);
            let found = folder();
            let file = found.path().join("state.db");
            image.write_to(found.path()).expect("writes");
            let (version, content) = whole(&file);
            assert_eq!(content, expected[version], "{moment} {loss:?}: version {version} is whole");
            seen[version] += 1;

            let again = folder();
            let file = again.path().join("state.db");
            image.write_to(again.path()).expect("writes");
            drop(open_migrated(&file, &steps).expect("opens"));
            let (version, content) = whole(&file);
            assert_eq!((version, &content), (steps.len(), &expected[steps.len()]), "{loss:?}");
        }
    }
    assert!(seen[from..].iter().all(|many| *many > 0), "every version was found: {seen:?}");
    seen.iter().sum()
}

#[test]
fn power_lost_while_migrating_leaves_a_whole_version_and_the_next_open_goes_on() {
    let mut images = torture(0, None);
    for (version, sql) in recorded() {
        images += torture(version, Some(&sql));
    }
    println!("{images} images of power lost while migrating");
}
