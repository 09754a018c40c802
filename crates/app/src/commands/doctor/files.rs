//! The home folder: who may read it, what was left behind in it, and whether there is room.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use talaria_admin::api::Status;
use talaria_machine::{Mode, Room, belongs_to_us, door, open_to};

use super::{Finding, Remedy};
use crate::home::{ELSEWHERE, Home, IN_ITS_PLACE, is_a_link};
use crate::locks::Locks;

/// How much room there should be, in bytes.
const ROOM: u64 = 500_000_000;

/// How much of the room there should be, in parts of a hundred.
const PART: u64 = 3;

pub(super) fn look(folder: &Home, status: Option<&Status>) -> Vec<Finding> {
    let home = folder.path();
    if let Some(obstacle) = folder.obstacle() {
        return vec![Finding::problem("home", obstacle).hint(ELSEWHERE)];
    }
    match fs::metadata(home) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![Finding::good(
                "home",
                format_args!("{} is not there yet", home.display()),
            )];
        }
        Err(error) => {
            return vec![
                Finding::problem(
                    "home",
                    format_args!("{} cannot be read: {error}", home.display()),
                )
                .hint(ELSEWHERE),
            ];
        }
    }
    let mut findings = Vec::new();
    // Who cannot be asked whose it is will not be able to use it either.
    if !belongs_to_us(home).unwrap_or(false) {
        findings.push(
            Finding::problem("home", format_args!("{} belongs to another user", home.display()))
                .hint("run talaria as that user, or set TALARIA_HOME to a folder of your own"),
        );
    }
    findings.extend(open_to_others(folder));
    findings.extend(links(folder));
    findings.extend(left_behind(folder, status));
    findings.extend(locks());
    findings.extend(room(home));
    if findings.is_empty() {
        findings.push(Finding::good("home", format_args!("{} is yours alone", home.display())));
    }
    findings
}

/// What others could read. What is in a folder that is closed to them is closed as well.
fn open_to_others(home: &Home) -> Vec<Finding> {
    let folder = home.path();
    let secret = [folder.to_owned(), folder.join("config.yaml"), folder.join(".env")];
    let is_open = |path: PathBuf| {
        let how = open_to(&path)?;
        let mode = Mode::of(&fs::symlink_metadata(&path).ok()?).for_us().bits();
        let text = format!("{} is open to others ({how})", path.display());
        Some(Finding::problem("home", text).remedy(Remedy::Close { path, mode }))
    };
    secret.into_iter().chain(home.ours()).filter_map(is_open).collect()
}

fn links(home: &Home) -> Vec<Finding> {
    let links = home.ours().filter(|path| path.is_symlink());
    links.map(|link| Finding::problem("home", is_a_link(&link)).hint(IN_ITS_PLACE)).collect()
}

/// What a process left behind that is gone.
fn left_behind(home: &Home, status: Option<&Status>) -> Vec<Finding> {
    // Whoever runs may be writing them.
    if status.is_some() || home.lock().is_err() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let socket = home.socket();
    if door::is_left_behind(&socket) {
        let text = format!("{} was left behind; nobody listens there", socket.display());
        findings.push(Finding::warning("home", text).remedy(Remedy::Remove { path: socket }));
    }
    let entries = fs::read_dir(home.path()).into_iter().flatten().flatten();
    let half = entries.map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == "next") && path.is_file()
    });
    for path in half {
        let text = format!("{} was left behind half-written", path.display());
        findings.push(Finding::warning("home", text).remedy(Remedy::Remove { path }));
    }
    findings
}

/// Locks of credentials whose holder is gone. They hold nobody up, and say something that is not so.
fn locks() -> Vec<Finding> {
    let locks = Locks::find(|name| std::env::var_os(name).map(Into::into));
    let stale = locks.map(|locks| locks.stale()).unwrap_or_default();
    let finding = |(path, account): (PathBuf, String)| {
        let text = format!("{} names account {account} of a gateway that is gone", path.display());
        Finding::warning("locks", text).remedy(Remedy::Clear { path })
    };
    stale.into_iter().map(finding).collect()
}

fn room(home: &Path) -> Option<Finding> {
    let Room { free, all } = talaria_machine::room(home)?;
    (free < ROOM && free * 100 < all * PART).then(|| {
        let text = format!("only {} MB are left on its disk", free / 1_000_000);
        Finding::problem("home", text)
            .hint("make room; what people say is not taken in while nothing can be written")
    })
}
