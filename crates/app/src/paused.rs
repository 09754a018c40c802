//! Which accounts are not to be connected before somebody says so, kept in the home folder.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use talaria_machine::{Mode, replace};
use talaria_model::AccountId;
use talaria_session::Pause;

use crate::exit::Halt;
use crate::home::Home;

/// The longest file that can be ours.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The paused accounts, in memory and on disk.
pub(crate) struct PausedAccounts {
    path: PathBuf,
    kept: Mutex<BTreeSet<AccountId>>,
    /// Those that wait for the configuration to be right. A later run finds out anew.
    held: Mutex<BTreeSet<AccountId>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Written {
    paused: BTreeSet<AccountId>,
}

impl PausedAccounts {
    /// Reads what is kept in a home. A file that is not there holds nothing.
    pub(crate) fn open(home: &Home) -> Result<Self, Halt> {
        let path = home.paused();
        let kept = read(&path).map_err(|error| {
            Halt::failed(format_args!("cannot read {}: {error}", path.display()))
                .hint("correct it, or remove it and pause the accounts again")
        })?;
        Ok(Self { path, kept: Mutex::new(kept), held: Mutex::default() })
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<AccountId> {
        self.lock().union(&self.held()).cloned().collect()
    }

    /// Pauses these for as long as the configuration is wrong, or until somebody resumes them.
    pub(crate) fn hold(&self, accounts: &BTreeSet<AccountId>) {
        self.held().extend(accounts.iter().cloned());
    }

    /// The configuration is right about this one. Says whether it was held, and nobody else has paused it.
    pub(crate) fn release(&self, account: &AccountId) -> bool {
        self.held().remove(account) && !self.lock().contains(account)
    }

    /// Remembers whether an account is paused. Returns once that is on disk.
    pub(crate) fn keep(&self, account: &AccountId, pause: Pause) -> io::Result<()> {
        let mut kept = self.lock();
        let mut next = kept.clone();
        let changed = match pause {
            Pause::Pause => next.insert(account.clone()),
            Pause::Resume => next.remove(account),
        };
        if pause == Pause::Resume {
            self.held().remove(account);
        }
        if changed {
            let written = serde_json::to_vec_pretty(&Written { paused: next.clone() })?;
            replace(&self.path, &written, Mode::PRIVATE)?;
            *kept = next;
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<AccountId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AccountId>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &PathBuf) -> io::Result<BTreeSet<AccountId>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
        Ok(about) if about.len() > LARGEST => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => Ok(serde_json::from_slice::<Written>(&fs::read(path)?)?.paused),
    }
}
