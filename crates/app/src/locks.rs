//! One gateway for each credential on a machine: two that use the same bot would take each other's
//! messages. The operating system's lock dies with its process; what is written in the file only says who
//! holds it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use talaria_machine::{Private, Process, make_for_us};
use talaria_model::{AccountId, Secret};
use talaria_platform::{ConnectError, Credential};

/// The longest record that is ours.
const LARGEST: u64 = 64 * 1024;

/// Where locks are kept, for all gateways of this user.
#[derive(Clone)]
pub(crate) struct Locks {
    folder: PathBuf,
    /// What this process has claimed: an account that is connected anew has the lock already.
    claims: Arc<Mutex<HashMap<PathBuf, Weak<Claim>>>>,
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    /// When the process began, in the kernel's own unit, so that a later process with the same number is
    /// not taken for it.
    started: Option<u64>,
    command: String,
    home: PathBuf,
    account: String,
}

/// A lock that is taken once and then held until its account is set up otherwise or taken out.
pub(crate) struct Claim {
    path: PathBuf,
    scope: &'static str,
    holder: Holder,
    held: Mutex<Option<File>>,
}

/// The locks of everything that an account is known by: all of them, or none.
pub(crate) struct Claims(Vec<(String, Arc<Claim>)>);

/// Whether a lock was taken by this try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Anew,
    Before,
}

impl Locks {
    /// `TALARIA_GATEWAY_LOCK_DIR`, else a folder for state of this user.
    pub(crate) fn find(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let given = |name| variable(name).filter(|path| path.is_absolute());
        let folder = given("TALARIA_GATEWAY_LOCK_DIR").or_else(|| {
            let state = given("XDG_STATE_HOME")
                .or_else(|| Some(given("HOME")?.join(".local").join("state")))
                .or_else(|| given("LOCALAPPDATA"))?;
            Some(state.join("talaria").join("gateway-locks"))
        })?;
        Some(Self { folder, claims: Arc::default() })
    }

    /// Locks that nobody holds and that name somebody, with the account that they name.
    pub(crate) fn stale(&self) -> Vec<(PathBuf, String)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let stale = |path: PathBuf| {
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            let file = File::open(&path).ok().filter(|_| is_lock)?;
            file.try_lock().ok()?;
            let mut text = String::new();
            file.take(LARGEST).read_to_string(&mut text).ok()?;
            let holder = serde_json::from_str::<Holder>(&text).ok()?;
            Some((path, holder.account))
        };
        entries.filter_map(|entry| stale(entry.path())).collect()
    }

    /// The locks of an account's credentials.
    pub(crate) fn claims(
        &self,
        scope: &'static str,
        credentials: &[Credential],
        account: &AccountId,
        home: &Path,
    ) -> Claims {
        let claim = |Credential { name, secret }: &Credential| {
            (name.clone(), self.claim(scope, secret, account, home))
        };
        let mut claims: Vec<_> = credentials.iter().map(claim).collect();
        // Whoever wants the same ones takes them in the same order, so that one of the two gets them all.
        claims.sort_by(|(_, one), (_, other)| one.path.cmp(&other.path));
        Claims(claims)
    }

    /// The lock of a credential. Platforms do not share credentials, so each is a scope of its own.
    fn claim(
        &self,
        scope: &'static str,
        credential: &Secret,
        account: &AccountId,
        home: &Path,
    ) -> Arc<Claim> {
        let mut digest = Sha256::new();
        digest.update(scope.as_bytes());
        digest.update([0]);
        digest.update(credential.expose().as_bytes());
        let mut name = format!("{scope}-");
        for byte in &digest.finalize()[..16] {
            let _ = write!(name, "{byte:02x}");
        }
        let pid = std::process::id();
        let words: Vec<_> =
            std::env::args_os().map(|it| it.to_string_lossy().into_owned()).collect();
        let holder = Holder {
            pid,
            started: began(pid),
            command: words.join(" "),
            home: home.to_owned(),
            account: account.to_string(),
        };
        let path = self.folder.join(format!("{name}.lock"));
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|_, claim| claim.strong_count() > 0);
        let ours = claims.get(&path).and_then(Weak::upgrade);
        if let Some(ours) = ours.filter(|ours| ours.holder == holder) {
            return ours;
        }
        let claim = Arc::new(Claim { path: path.clone(), scope, holder, held: Mutex::default() });
        claims.insert(path, Arc::downgrade(&claim));
        claim
    }
}

impl Claims {
    /// Takes all locks that are not held already. Where one is somebody else's, it is named, and what was
    /// taken by this try is given back: nobody waits for an account that is not connected.
    pub(crate) fn take(&self) -> Result<(), ConnectError> {
        let mut anew = Vec::new();
        for (name, claim) in &self.0 {
            match claim.take() {
                Ok(Taken::Anew) => anew.push(claim),
                Ok(Taken::Before) => {}
                Err(error) => {
                    anew.into_iter().for_each(|claim| claim.give_back());
                    return Err(named(name, error));
                }
            }
        }
        Ok(())
    }
}

fn named(name: &str, error: ConnectError) -> ConnectError {
    match error {
        ConnectError::Refused { problem, hint } => {
            ConnectError::Refused { problem: format!("{name}: {problem}"), hint }
        }
        error => error,
    }
}

impl Claim {
    /// Takes the lock, unless it is held already.
    fn take(&self) -> Result<Taken, ConnectError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() {
            return Ok(Taken::Before);
        }
        *held = Some(self.lock()?);
        Ok(Taken::Anew)
    }

    fn give_back(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = held.take() {
            // While it is still ours: nobody is to be named who holds nothing. If it stays, the next holder
            // writes over it.
            let _ = file.set_len(0);
        }
    }

    fn lock(&self) -> Result<File, ConnectError> {
        let broken = |error: io::Error| ConnectError::Refused {
            problem: format!("cannot use the lock {}: {error}", self.path.display()),
            hint: "check that folder, or set TALARIA_GATEWAY_LOCK_DIR to one that you can write to"
                .into(),
        };
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        make_for_us(folder).map_err(broken)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .private()
            .no_link()
            .open(&self.path)
            .map_err(broken)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.taken(&mut file)),
            Err(TryLockError::Error(error)) => return Err(broken(error)),
        }
        // Whatever was written there is of a process that is gone.
        let record = serde_json::to_vec(&self.holder).map_err(io::Error::other).map_err(broken)?;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(&record))
            .map_err(broken)?;
        Ok(file)
    }

    fn taken(&self, file: &mut File) -> ConnectError {
        let mut text = String::new();
        let read = file.take(LARGEST).read_to_string(&mut text);
        let holder = read.ok().and_then(|_| serde_json::from_str::<Holder>(&text).ok());
        // Between taking the lock and writing the record, the record is of somebody before.
        let holder = holder.filter(|holder| began(holder.pid) == holder.started);
        let (scope, ours) = (self.scope, self.holder.pid);
        let (who, hint) = match holder {
            Some(Holder { pid, account, .. }) if pid == ours => (
                format!("account {account} of this gateway"),
                "remove one of the two accounts".to_owned(),
            ),
            Some(Holder { pid, account, home, command, .. }) => (
                format!(
                    "process {pid} (`{}`), as account {account} of {}",
                    command.escape_debug(),
                    home.display()
                ),
                format!("end that gateway, or give this account a {scope} bot of its own"),
            ),
            None => (
                "another gateway of this user".to_owned(),
                format!("end it, or give this account a {scope} bot of its own"),
            ),
        };
        let hint = format!("{hint}; it is tried again every 5 minutes");
        ConnectError::Refused {
            problem: format!("this {scope} credential is in use by {who}"),
            hint,
        }
    }
}

/// When a process began, as the operating system counts. None where that is not known, or it is gone.
fn began(pid: u32) -> Option<u64> {
    Process::numbered(pid).start_time
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn locks(folder: &Path) -> Locks {
        Locks { folder: folder.join("locks"), claims: Arc::default() }
    }

    fn claim(locks: &Locks, scope: &'static str, token: &str, account: &'static str) -> Arc<Claim> {
        let home = Path::new("/home/ann/.talaria");
        locks.claim(scope, &Secret::new(token), &AccountId::literal(account), home)
    }

    fn refused(claim: &Claim) -> (String, String) {
        match claim.take() {
            Err(ConnectError::Refused { problem, hint }) => (problem, hint),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_account_that_is_set_up_anew_has_the_lock_already() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(folder.path());
        let old = claim(&locks, "telegram", "secret", "work");
        old.take().unwrap();
        claim(&locks, "telegram", "secret", "work").take().unwrap();
        assert!(claim(&locks, "telegram", "secret", "club").take().is_err(), "another account");
        drop(old);
        claim(&locks, "telegram", "secret", "club").take().unwrap();
    }

    #[test]
    fn a_credential_is_used_by_one_account() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(folder.path());
        let first = claim(&locks, "telegram", "42:canary", "work");
        first.take().unwrap();
        first.take().unwrap();
        let second = claim(&locks, "telegram", "42:canary", "club");
        let (problem, hint) = refused(&second);
        assert_eq!(problem, "this telegram credential is in use by account work of this gateway");
        assert!(hint.starts_with("remove one of the two accounts"), "{hint}");
        claim(&locks, "telegram", "43:other", "other").take().unwrap();
        claim(&locks, "discord", "42:canary", "elsewhere").take().unwrap();
        drop(first);
        second.take().expect("whoever is gone holds nothing");
        for file in fs::read_dir(&locks.folder).unwrap() {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            let text = fs::read_to_string(file.path()).unwrap();
            assert!(!format!("{text}{:?}", file.file_name()).contains("canary"), "{text}");
        }
    }

    fn claims(locks: &Locks, tokens: &[&str], account: &'static str) -> Claims {
        let tokens = tokens.iter().copied().map(Secret::new).collect();
        let credentials = Credential::each_of("bot_token", tokens);
        let home = Path::new("/home/ann/.talaria");
        locks.claims("slack", &credentials, &AccountId::literal(account), home)
    }

    #[test]
    fn an_account_has_all_of_its_credentials_or_none() {
        // Whichever of the two comes first.
        for (number, taken) in [(1, "xoxb-a"), (2, "xoxb-b")] {
            let folder = tempfile::tempdir().unwrap();
            let locks = locks(folder.path());
            let other = claims(&locks, &[taken], "club");
            other.take().unwrap();
            let both = claims(&locks, &["xoxb-a", "xoxb-b"], "work");
            let error = both.take().unwrap_err();
            let ConnectError::Refused { problem, .. } = error else { panic!("{error}") };
            let expected = format!(
                "bot_token ({number} of 2): this slack credential is in use by account club of this gateway"
            );
            assert_eq!(problem, expected);
            assert_eq!(locks.stale(), [], "who holds nothing is not named");
            let free = if taken == "xoxb-a" { "xoxb-b" } else { "xoxb-a" };
            claims(&locks, &[free], "third").take().expect("it was given back");
            drop(other);
            both.take().expect("both are free");
            assert!(claims(&locks, &["xoxb-a"], "club").take().is_err());
            assert!(claims(&locks, &["xoxb-b"], "club").take().is_err());
        }
    }

    #[test]
    fn what_an_account_has_already_is_not_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(folder.path());
        let before = claims(&locks, &["xoxb-a"], "work");
        before.take().unwrap();
        let other = claims(&locks, &["xoxb-b"], "club");
        other.take().unwrap();
        claims(&locks, &["xoxb-a", "xoxb-b"], "work").take().unwrap_err();
        assert!(claims(&locks, &["xoxb-a"], "third").take().is_err(), "it is still connected");
    }

    #[test]
    fn whoever_holds_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(folder.path());
        let held = claim(&locks, "telegram", "42:x", "work");
        held.take().unwrap();
        let ours = held.holder.clone();
        let write =
            |holder: &Holder| fs::write(&held.path, serde_json::to_vec(holder).unwrap()).unwrap();
        // The process that started this one is there for as long as this one.
        let parent = std::os::unix::process::parent_id();
        let command = "talaria\u{1b}[2J run".to_owned();
        write(&Holder { pid: parent, started: began(parent), command, ..ours.clone() });
        let (problem, hint) = refused(&claim(&locks, "telegram", "42:x", "club"));
        let expected = format!(
            "this telegram credential is in use by process {parent} (`talaria\\u{{1b}}[2J run`), \
             as account work of /home/ann/.talaria"
        );
        assert_eq!(problem, expected);
        assert!(
            hint.starts_with("end that gateway, or give this account a telegram bot"),
            "{hint}"
        );
        // A record of a process that is gone, or is another one by now, names nobody.
        write(&Holder { pid: parent, started: Some(1), ..ours });
        let unknown = "this telegram credential is in use by another gateway of this user";
        assert_eq!(refused(&claim(&locks, "telegram", "42:x", "club")).0, unknown);
        fs::write(&held.path, "{").unwrap();
        assert_eq!(refused(&claim(&locks, "telegram", "42:x", "club")).0, unknown);
    }

    #[test]
    fn a_record_that_was_left_behind_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(folder.path());
        let claim = claim(&locks, "telegram", "42:x", "work");
        fs::create_dir_all(&locks.folder).unwrap();
        fs::write(&claim.path, "x".repeat(10_000)).unwrap();
        claim.take().unwrap();
        let holder: Holder = serde_json::from_slice(&fs::read(&claim.path).unwrap()).unwrap();
        assert_eq!(holder, claim.holder);
    }

    #[test]
    fn a_folder_that_cannot_be_used_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("locks"), "").unwrap();
        let (_, hint) = refused(&claim(&locks(folder.path()), "telegram", "42:x", "work"));
        assert!(hint.contains("TALARIA_GATEWAY_LOCK_DIR"), "{hint}");
        let locks = Locks { folder: folder.path().to_owned(), claims: Arc::default() };
        let linked = claim(&locks, "telegram", "42:x", "work");
        std::os::unix::fs::symlink(folder.path().join("target"), &linked.path).unwrap();
        refused(&linked);
        assert!(!folder.path().join("target").exists());
    }

    #[test]
    fn locks_are_where_state_is_kept() {
        let find = |known: &[(&str, &str)]| {
            let known: Vec<_> = known
                .iter()
                .map(|(name, path)| ((*name).to_owned(), PathBuf::from(path)))
                .collect();
            let variable = move |name: &str| {
                known.iter().find(|(known, _)| known == name).map(|(_, path)| path.clone())
            };
            Locks::find(variable).map(|locks| locks.folder)
        };
        let home = ("HOME", "/home/ann");
        let state = ("XDG_STATE_HOME", "/state");
        let chosen = ("TALARIA_GATEWAY_LOCK_DIR", "/locks");
        assert_eq!(find(&[home, state, chosen]), Some("/locks".into()));
        assert_eq!(find(&[home, state]), Some("/state/talaria/gateway-locks".into()));
        let usual: PathBuf = "/home/ann/.local/state/talaria/gateway-locks".into();
        assert_eq!(find(&[home]), Some(usual.clone()));
        assert_eq!(find(&[home, ("XDG_STATE_HOME", "relative")]), Some(usual));
        assert_eq!(find(&[]), None);
    }
}
