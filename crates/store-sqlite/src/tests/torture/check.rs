//! Whether what a power cut left is what the store promises.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rusqlite::Connection;
use talaria_faultdisk::{Image, Lie, Loss};
use talaria_store::{Admitted, Delivered, Store};

use super::super::seen::seen;
use super::super::{at, inbound, key};
use super::record::{Expected, Recording, folder, rows};
use super::script::{CHATS, asked};
use crate::SqliteStore;
use talaria_store::JournalState;

/// What is wrong with an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Complaint {
    /// It does not open.
    Unopenable(String),
    /// SQLite finds it unsound.
    Corrupt(String),
    /// What was acknowledged is gone.
    Missing { acknowledged: usize, found: usize },
    /// It is no state that the store ever was in.
    Half(String),
    /// Its rows are right, and it says something else.
    Says(String),
    /// The store does not go on from here.
    Stuck(String),
}

/// A power cut to look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) moment: usize,
    pub(super) loss: Loss,
    pub(super) look: Look,
}

/// How closely an image is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// At every row.
    Rows,
    /// Also at everything the store says, at search, and at whether it goes on from there.
    Everything,
}

/// What was found in many images.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) images: usize,
    pub(super) complaints: Vec<(Cut, Complaint)>,
}

impl Findings {
    pub(super) fn add(&mut self, other: Self) {
        self.images += other.images;
        self.complaints.extend(other.complaints);
    }

    pub(super) fn count(&self, pick: impl Fn(&Complaint) -> bool) -> usize {
        self.complaints.iter().filter(|(_, complaint)| pick(complaint)).count()
    }

    /// Shows the first complaint.
    #[track_caller]
    pub(super) fn expect_none(&self) {
        if let Some((cut, complaint)) = self.complaints.first() {
            let many = self.complaints.len();
            panic!("{many} of {} images are wrong; {cut:?}: {complaint:?}", self.images);
        }
    }
}

/// Makes the images and looks at them, on two threads.
pub(super) fn look_at(
    recording: &Recording,
    expected: &Expected,
    cuts: &[Cut],
    lie: Lie,
) -> Findings {
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                while let Some(cut) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let image = Image::of(&recording.tape, cut.moment, cut.loss, lie);
                    let bounds = recording.bounds(cut.moment);
                    if let Err(complaint) =
                        runtime.block_on(check(&image, expected, bounds, cut.look))
                    {
                        let mut complaints = complaints.lock().expect("nobody panics");
                        complaints.push((*cut, complaint));
                    }
                }
            });
        }
    });
    Findings { images: cuts.len(), complaints: complaints.into_inner().expect("nobody panics") }
}

async fn check(
    image: &Image,
    expected: &Expected,
    (acknowledged, asked_for): (usize, usize),
    look: Look,
) -> Result<(), Complaint> {
    let folder = folder();
    image.write_to(folder.path()).expect("writes");
    let store = SqliteStore::open(folder.path())
        .map_err(|error| Complaint::Unopenable(error.to_string()))?;
    sound(folder.path())?;
    let found = rows(folder.path());
    let is_here = |number: &usize| expected.rows[*number] == found;
    let Some(number) = (acknowledged..=asked_for).find(is_here) else {
        return Err(match (0..expected.rows.len()).rev().find(is_here) {
            Some(found) => Complaint::Missing { acknowledged, found },
            None => Complaint::Half(difference(&expected.rows[acknowledged], &found)),
        });
    };
    if look == Look::Everything {
        let says = seen(&store, &asked()).await.join("\n");
        let wanted = expected.seen[number].join("\n");
        if says != wanted {
            return Err(Complaint::Says(difference(&wanted, &says)));
        }
        goes_on(&store).await?;
        drop(store);
        sound(folder.path())?;
    }
    Ok(())
}

fn sound(folder: &std::path::Path) -> Result<(), Complaint> {
    let corrupt = |error: rusqlite::Error| Complaint::Corrupt(error.to_string());
    let conn = Connection::open(folder.join("state.db")).map_err(corrupt)?;
    let found: String =
        conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(corrupt)?;
    if found != "ok" {
        return Err(Complaint::Corrupt(found));
    }
    let strays: i64 = conn
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        .map_err(corrupt)?;
    if strays > 0 {
        return Err(Complaint::Corrupt(format!("{strays} rows lead nowhere")));
    }
    Ok(())
}

/// The next life begins, takes something in once, and keeps it.
async fn goes_on(store: &SqliteStore) -> Result<(), Complaint> {
    let stuck = |error: talaria_store::StoreError| Complaint::Stuck(error.to_string());
    store.recover().await.map_err(stuck)?;
    let key = key(CHATS[0].0, CHATS[0].1);
    let delivered = Delivered {
        account: key.account.clone(),
        events: vec![(key.clone(), inbound(&key, "after the cut"), JournalState::Unread)],
        cursor: None,
        at: at(9_000_000),
    };
    let first = store.admit(delivered.clone()).await.map_err(stuck)?;
    let again = store.admit(delivered).await.map_err(stuck)?;
    match (&first[..], &again[..]) {
        ([Admitted::Journalled(first)], [Admitted::Repeated(again)]) if first == again => {}
        _ => return Err(Complaint::Stuck(format!("{first:?}, then {again:?}"))),
    }
    store.close().await.map_err(stuck)
}

/// The first line in which two texts differ.
fn difference(wanted: &str, found: &str) -> String {
    let mut found = found.lines();
    for wanted in wanted.lines() {
        let found = found.next().unwrap_or("nothing");
        if wanted != found {
            let short = |line: &str| line.chars().take(300).collect::<String>();
            return format!("not {} but {}", short(wanted), short(found));
        }
    }
    format!("more: {:?}", found.next())
}
