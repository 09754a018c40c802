//! How a browser proves that it belongs to the operator: a token that works once.
//!
//! Any process of the same user can make a token, because a token is nothing but a file named after
//! its digest in a folder that only this user can enter. Removing that file is what uses it up, and
//! a file can be removed only once.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use talaria_clock::Clock;
use talaria_machine::{create_for_us, sync_folder};
use talaria_model::Timestamp;
use talaria_platform::Peer;

use super::pass::{KEY, private_folder};

/// Where tokens are, in the folder of the account.
const LOGINS: &str = "logins";

/// What the folder of a web account has of who is logged in. It is of this moment: whoever copies the folder
/// leaves it out, and whoever puts a copy in its place ends it with [`end_logins`].
pub const OF_THE_MOMENT: [&str; 2] = [KEY, LOGINS];

/// How long a token can be used.
const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Tokens that can be used at the same time. A further one ends the oldest.
const OUTSTANDING: usize = 16;

/// Wrong tokens of one peer in `WINDOW` before a further one is too many and somebody hears of it. A right one
/// is let in however many there were.
const WRONG_TOKENS: usize = 10;

/// The same from everybody together, and the most that is remembered.
const WRONG_TOKENS_OF_ALL: usize = 300;
const WINDOW: Duration = Duration::from_secs(60);

/// Makes a login token for the web account that keeps its files in `folder`. Put it behind
/// `#login=` in the page's address. It works once, within ten minutes, and needs no running gateway.
pub fn mint_login(folder: &Path) -> io::Result<String> {
    let folder = folder.join(LOGINS);
    private_folder(&folder)?;
    let token = BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
    let path = folder.join(digest(&token));
    let file = create_for_us(&path)?;
    // The file's own time serves as the present, so that all ages are measured by one clock.
    sweep(&folder, &path, file.metadata()?.modified()?)?;
    Ok(token)
}

/// Ends every login of the web account that keeps its files in `folder`, and every token, while no gateway
/// serves it. The next one that does begins with a key of its own.
pub fn end_logins(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    forget(&folder.join(KEY))?;
    match fs::remove_dir_all(folder.join(LOGINS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    sync_folder(folder)
}

/// What became of a login.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Login {
    /// The token was good and is used up.
    Granted,
    /// No such token.
    Wrong,
    /// No such token, and there have been too many of those lately.
    TooOften(Rebuff),
}

/// What whoever has tried too often gets to hear.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rebuff {
    /// How long until one more is not too many.
    pub(super) wait: Duration,
    pub(super) notice: Notice,
}

/// Whether somebody should hear that too many are tried. Once in `WINDOW` is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    /// Nobody has heard it yet.
    Due,
    /// It is known.
    Taken,
}

/// Where tokens are handed in.
pub(super) struct Door {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    wrong: Mutex<Wrong>,
    noticed: Mutex<Option<Timestamp>>,
}

impl Door {
    pub(super) fn new(folder: &Path, clock: Arc<dyn Clock>) -> Self {
        Self {
            folder: folder.join(LOGINS),
            clock,
            wrong: Mutex::default(),
            noticed: Mutex::default(),
        }
    }

    /// Uses a token up.
    pub(super) fn hand_in(&self, token: &str, peer: Option<Peer>) -> Login {
        // Every token is looked at, however many were wrong. Behind a proxy everybody is one peer, so that a
        // limit before the look would let any stranger shut the operator out, and it would keep nobody out
        // who guesses at 256 random bits. A look is one hash of the few bytes that a login may have and one
        // question about a file; how many there are is bounded where connections and refusals are.
        if self.claim(token) {
            return Login::Granted;
        }
        match self.count(peer) {
            Ok(()) => Login::Wrong,
            Err(wait) => Login::TooOften(Rebuff { wait, notice: self.notice() }),
        }
    }

    /// Counts a wrong token, unless it is one too many.
    fn count(&self, peer: Option<Peer>) -> Result<(), Duration> {
        let now = self.clock.now();
        // Held throughout, so that attempts made at the same moment cannot all be the last one.
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        room(&mut wrong, peer, now)?;
        wrong.push_back((peer, now));
        Ok(())
    }

    fn notice(&self) -> Notice {
        let now = self.clock.now();
        let mut noticed = self.noticed.lock().unwrap_or_else(PoisonError::into_inner);
        if noticed.is_some_and(|at| now.since(at) < WINDOW) {
            return Notice::Taken;
        }
        *noticed = Some(now);
        Notice::Due
    }

    fn claim(&self, token: &str) -> bool {
        let path = self.folder.join(digest(token));
        let Ok(made) = fs::metadata(&path).and_then(|file| file.modified()) else { return false };
        // Whoever removes the file has the login; everybody else comes too late.
        fs::remove_file(&path).is_ok() && fresh(made, self.now())
    }

    fn now(&self) -> SystemTime {
        let millis = u64::try_from(self.clock.now().as_millis()).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }
}

/// What somebody has tried without success lately.
type Wrong = VecDeque<(Option<Peer>, Timestamp)>;

/// Whether there is room for one more; otherwise how long until there is.
fn room(wrong: &mut Wrong, peer: Option<Peer>, now: Timestamp) -> Result<(), Duration> {
    while wrong.front().is_some_and(|(_, at)| now.since(*at) >= WINDOW) {
        wrong.pop_front();
    }
    let mut own = wrong.iter().filter(|(whose, _)| *whose == peer);
    let oldest = match wrong.len() >= WRONG_TOKENS_OF_ALL {
        true => wrong.front(),
        false if own.clone().count() >= WRONG_TOKENS => own.next(),
        false => None,
    };
    match oldest {
        Some((_, oldest)) => Err(WINDOW.saturating_sub(now.since(*oldest))),
        None => Ok(()),
    }
}

/// Whether a token made then is still good. One from the far future was made under a wrong clock
/// and would otherwise be good for ever.
fn fresh(made: SystemTime, now: SystemTime) -> bool {
    match now.duration_since(made) {
        Ok(age) => age < LIFETIME,
        Err(ahead) => ahead.duration() < LIFETIME,
    }
}

/// Ends what has expired, and the oldest of what is too many beside `newest`.
fn sweep(folder: &Path, newest: &Path, now: SystemTime) -> io::Result<()> {
    let mut others = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        // Another process may use a token up while we look.
        let Ok(made) = fs::metadata(&path).and_then(|file| file.modified()) else { continue };
        if !fresh(made, now) {
            forget(&path)?;
        } else if path != newest {
            others.push((made, path));
        }
    }
    others.sort();
    let surplus = (others.len() + 1).saturating_sub(OUTSTANDING);
    others.iter().take(surplus).try_for_each(|(_, path)| forget(path))
}

fn forget(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Only the digest of a token is ever written down.
fn digest(token: &str) -> String {
    use std::fmt::Write;
    Sha256::digest(token.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes all text");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_fresh_for_its_time_whichever_way_the_clock_is_wrong() {
        let (made, moment) = (SystemTime::UNIX_EPOCH + 10 * LIFETIME, Duration::from_millis(1));
        assert!(fresh(made, made));
        for (apart, is_fresh) in [(LIFETIME - moment, true), (LIFETIME, false)] {
            assert_eq!(fresh(made, made + apart), is_fresh, "{apart:?} later");
            assert_eq!(fresh(made, made - apart), is_fresh, "{apart:?} before it was made");
        }
    }

    #[test]
    fn what_is_gone_is_forgotten_and_what_cannot_be_removed_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "").unwrap();
        forget(&token).unwrap();
        assert!(!token.exists());
        forget(&token).unwrap();
        fs::create_dir(&token).unwrap();
        assert!(forget(&token).is_err());
    }

    #[test]
    fn logins_that_cannot_be_ended_are_said() {
        let folder = tempfile::tempdir().unwrap();
        end_logins(&folder.path().join("nothing")).unwrap();
        end_logins(folder.path()).unwrap();
        // No folder, so that nothing in it can be removed.
        fs::write(folder.path().join(LOGINS), "").unwrap();
        assert!(end_logins(folder.path()).is_err());
    }
}
