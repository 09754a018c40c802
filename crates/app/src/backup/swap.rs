//! Goes back to a backup: everything of it takes its place, or nothing does.
//!
//! What is to come is unpacked and checked beside what is there. Then a plan is written; from that moment
//! on it will be carried out, by this process or, if it dies, by the next one that uses the home. What is
//! replaced is moved into a folder of its own and never deleted.
//!
//! What the backup would bring back that has been used, revoked or ended since is taken out of it before the
//! plan is written, so that it is never in its place. Logins are not even that: they end with going back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use talaria_admin::guests::OPERATOR;
use talaria_clock::{Clock, SystemClock};
use talaria_machine::{Identity, Mode, disk, replace, sync_folder};
use talaria_platforms::web::end_logins;
use talaria_store_sqlite::{Going, WentBack, go_back_to};

use super::listed::newly_listed;
use super::unpack::{Checked, Wanted, names, unpack};
use super::workshop::{clear, private};
use super::{ACCOUNTS, GOES_WITH_STATE, STATE};
use crate::exit::Halt;
use crate::home::Home;

const INCOMING: &str = "incoming";
const PLAN: &str = "plan.json";

/// What a home is after it went back.
#[derive(Debug, Serialize)]
pub(crate) struct Restored {
    /// The backup.
    #[serde(flatten)]
    pub(crate) from: Checked,
    /// Where that is which was replaced; none when there was nothing.
    pub(crate) replaced: Option<PathBuf>,
    /// What of the database did not come back; none when the backup has none.
    pub(crate) void: Option<WentBack>,
    /// Whom its settings let in, and those that they replace do not.
    pub(crate) listed: Vec<String>,
}

/// What has to be moved, once it has been decided.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    /// The folder in the home that takes what is replaced.
    replaced: String,
    /// What comes, each with a place in the home.
    comes: Vec<String>,
    /// What goes without a successor.
    goes: Vec<String>,
}

/// One move, from and to.
type Move = (PathBuf, PathBuf);

/// Puts a backup into the place of what a home keeps. No gateway may use it meanwhile.
pub(crate) fn restore(home: &Home, file: &Path) -> Result<Restored, Halt> {
    home.prepare()?;
    let lock = home.lock().map_err(|halt| match halt.exit {
        crate::exit::Exit::AlreadyRunning => {
            halt.hint("end the gateway with `talaria stop`, then go back")
        }
        _ => halt,
    })?;
    let cannot = |error: io::Error| {
        Halt::failed(format_args!("cannot go back in {}: {error}", home.path().display()))
            .hint("what was there is still there")
    };
    let staging = home.restoring();
    clear(&staging).map_err(cannot)?;
    let incoming = staging.join(INCOMING);
    private(&incoming).map_err(cannot)?;
    let from = unpack(file, &incoming, Wanted::Everything).map_err(|refusal| {
        let _ = clear(&staging);
        refusal.halt(file)
    })?;
    let cleared = |_: &Halt| {
        let _ = clear(&staging);
    };
    let listed = newly_listed(home.path(), &incoming);
    let void = make_void(home, &incoming, &from, &listed).inspect_err(cleared)?;
    let plan = prepare(home, &incoming).inspect_err(cleared)?;
    let text = serde_json::to_vec_pretty(&plan).map_err(Halt::failed)?;
    replace(&staging.join(PLAN), &text, Mode::PRIVATE).map_err(cannot)?;
    carry_out(home, &plan).map_err(unfinished)?;
    drop(lock);
    let replaced = Some(home.path().join(&plan.replaced)).filter(|folder| folder.exists());
    Ok(Restored { from, replaced, void, listed })
}

/// Finishes going back where a process died over it. Everybody who uses a home calls this first.
pub(crate) fn settle(home: &Home) -> Result<(), Halt> {
    let place = home.restoring().join(PLAN);
    if !place.exists() {
        return Ok(());
    }
    let _lock = home.lock().map_err(|_| {
        Halt::failed("this home is just being taken back to a backup").hint("try again in a moment")
    })?;
    let text = match fs::read(&place) {
        Ok(text) => text,
        // Whoever held the lock has finished it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unfinished(error)),
    };
    let plan: Plan = serde_json::from_slice(&text).map_err(|error| unfinished(error.into()))?;
    carry_out(home, &plan).map_err(unfinished)
}

fn unfinished(error: io::Error) -> Halt {
    Halt::failed(format_args!("going back to a backup is not finished: {error}"))
        .hint("mend that; any command of talaria then finishes it")
}

/// Takes out of the database that came what must not come back.
fn make_void(
    home: &Home,
    incoming: &Path,
    from: &Checked,
    listed: &[String],
) -> Result<Option<WentBack>, Halt> {
    let state = incoming.join(STATE);
    if !state.exists() {
        return Ok(None);
    }
    let taken = from.about.created.as_str();
    let going = Going { by: OPERATOR, taken, listed, at: SystemClock.now() };
    go_back_to(&state, home.path(), going)
        .map(Some)
        .map_err(|error| Halt::failed(&error).hint(error.hint()))
}

/// Decides what is moved.
fn prepare(home: &Home, incoming: &Path) -> Result<Plan, Halt> {
    sync_all(incoming).map_err(Halt::failed)?;
    let mut comes: Vec<String> = names(incoming)
        .map_err(Halt::failed)?
        .into_iter()
        .filter_map(|name| name.into_os_string().into_string().ok())
        .collect();
    comes.sort_unstable();
    let device = Identity::at(home.path()).map_err(Halt::failed)?.disk;
    for name in &comes {
        let place = home.path().join(name);
        if disk(&place).is_ok_and(|found| found != device) {
            return Err(Halt::failed(format_args!("{} is on a disk of its own", place.display()))
                .hint("unmount it, go back, then move what came onto that disk"));
        }
    }
    let goes = match comes.iter().any(|name| name == STATE) {
        true => GOES_WITH_STATE.map(str::to_owned).to_vec(),
        false => Vec::new(),
    };
    Ok(Plan { replaced: replaced(home), comes, goes })
}

/// A name that is not taken.
fn replaced(home: &Home) -> String {
    let now = jiff::Timestamp::from_millisecond(SystemClock.now().as_millis()).unwrap_or_default();
    let name = format!("replaced-{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let taken = |name: &String| home.path().join(name).exists();
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name)
}

fn carry_out(home: &Home, plan: &Plan) -> io::Result<()> {
    let replaced = home.path().join(&plan.replaced);
    private(&replaced)?;
    // Everything old is away before anything new comes: a log must not meet another database.
    away(home, plan).iter().try_for_each(|(from, to)| carry(from, to))?;
    end_all_logins(home)?;
    moves_in(home, plan).iter().try_for_each(|(from, to)| carry(from, to))?;
    for folder in [&replaced, home.path()] {
        sync_folder(folder)?;
    }
    fs::remove_file(home.restoring().join(PLAN))?;
    clear(&home.restoring())?;
    // There may have been nothing to replace.
    let _ = fs::remove_dir(&replaced);
    sync_folder(home.path())
}

/// Ends every login, of those who are logged in as of those who were: on the accounts that come, and on
/// those that stay because the backup has none.
fn end_all_logins(home: &Home) -> io::Result<()> {
    for accounts in [home.restoring().join(INCOMING), home.path().to_owned()] {
        let accounts = accounts.join(ACCOUNTS);
        let folders = match names(&accounts) {
            Err(error) if is_no_folder(&error) => continue,
            folders => folders?,
        };
        for folder in folders.iter().map(|name| accounts.join(name)).filter(|it| it.is_dir()) {
            end_logins(&folder)?;
        }
    }
    Ok(())
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Moves something that may have been moved already.
fn carry(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io::Error::new(error.kind(), format!("{}: {error}", from.display())))
        }
        _ => Ok(()),
    }
}

/// What has not gone yet. Something has come already where nothing waits to come any more.
fn away(home: &Home, plan: &Plan) -> Vec<Move> {
    let incoming = home.restoring().join(INCOMING);
    let waits = plan.comes.iter().filter(|name| incoming.join(name).exists());
    let there = |name: &&String| home.path().join(name).symlink_metadata().is_ok();
    let to = |name: &String| (home.path().join(name), home.path().join(&plan.replaced).join(name));
    plan.goes.iter().chain(waits).filter(there).map(to).collect()
}

fn moves_in(home: &Home, plan: &Plan) -> Vec<Move> {
    let incoming = home.restoring().join(INCOMING);
    plan.comes.iter().map(|name| (incoming.join(name), home.path().join(name))).collect()
}

/// Makes a folder and all folders in it durable; their files are already.
fn sync_all(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all(&entry.path())?;
        }
    }
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMES: [&str; 4] = ["accounts/web/kept", "config.yaml", "files/one", "state.db"];
    const LOGIN: &str = "accounts/web/login.key";

    /// A home that is about to go back, with its plan written.
    fn decided(folder: &Path) -> (Home, Plan) {
        let home = Home::at(folder);
        let incoming = home.restoring().join(INCOMING);
        for (place, text) in [(home.path().to_owned(), "old"), (incoming.clone(), "new")] {
            for folder in ["files", "accounts/web"] {
                fs::create_dir_all(place.join(folder)).expect("makes a folder");
            }
            for name in COMES.iter().chain([&LOGIN]) {
                fs::write(place.join(name), text).expect("writes");
            }
        }
        fs::write(home.path().join("state.db-wal"), "old").expect("writes");
        fs::write(home.path().join("gateway.lock"), "").expect("writes");
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let plan = Plan {
            replaced: "replaced".into(),
            comes: names(&["accounts", "config.yaml", "files", "state.db", "hooks"]),
            goes: names(&GOES_WITH_STATE),
        };
        fs::create_dir_all(incoming.join("hooks")).expect("makes a folder");
        let text = serde_json::to_vec(&plan).expect("encodes");
        fs::write(home.restoring().join(PLAN), text).expect("writes");
        (home, plan)
    }

    #[test]
    fn a_death_at_any_moment_leaves_all_of_the_backup() {
        let mut dead = 0;
        loop {
            let folder = tempfile::tempdir().expect("a folder");
            let (home, plan) = decided(folder.path());
            private(&home.path().join(&plan.replaced)).expect("makes a folder");
            let moves: Vec<Move> =
                away(&home, &plan).into_iter().chain(moves_in(&home, &plan)).collect();
            for (from, to) in &moves[..dead] {
                carry(from, to).expect("moves");
            }
            settle(&home).expect("finishes");
            for name in COMES {
                let read = |place: &Path| fs::read_to_string(place.join(name)).expect("reads");
                assert_eq!(read(home.path()), "new", "{name} after {dead} moves");
                assert_eq!(read(&home.path().join("replaced")), "old", "{name} after {dead} moves");
            }
            assert!(!home.path().join("state.db-wal").exists(), "after {dead} moves");
            assert!(!home.path().join(LOGIN).exists(), "after {dead} moves");
            assert!(home.path().join("hooks").is_dir(), "after {dead} moves");
            assert!(!home.restoring().exists(), "after {dead} moves");
            if dead == moves.len() {
                return;
            }
            dead += 1;
        }
    }

    #[test]
    fn what_was_not_decided_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (home, _) = decided(folder.path());
        fs::remove_file(home.restoring().join(PLAN)).expect("removes");
        settle(&home).expect("finishes");
        for name in COMES.iter().chain([&LOGIN]) {
            assert_eq!(fs::read_to_string(home.path().join(name)).expect("reads"), "old");
        }
    }
}
