//! Where things go that nobody asked for in a chat, one place for each account, kept in the home folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use talaria_machine::{Mode, replace};
use talaria_model::{AccountId, Address};

/// The longest file that can be ours.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The homes, in memory and on disk.
pub(crate) struct Homes {
    path: PathBuf,
    kept: Mutex<BTreeMap<AccountId, Address>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Written {
    homes: Vec<Address>,
}

impl Homes {
    /// Reads what is kept in this file. One that is not there holds nothing.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let written = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Written::default(),
            Err(error) => return Err(error),
            Ok(about) if about.len() > LARGEST => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(_) => serde_json::from_slice(&fs::read(&path)?)?,
        };
        let kept = written.homes.into_iter().map(|at| (at.account.clone(), at)).collect();
        Ok(Self { path, kept: Mutex::new(kept) })
    }

    /// All of them, by account.
    pub(crate) fn all(&self) -> Vec<Address> {
        self.lock().values().cloned().collect()
    }

    /// Makes this the home of its account. Returns once that is on disk.
    pub(crate) fn set(&self, at: &Address) -> io::Result<()> {
        let mut kept = self.lock();
        let mut next = kept.clone();
        next.insert(at.account.clone(), at.clone());
        let written = Written { homes: next.values().cloned().collect() };
        replace(&self.path, &serde_json::to_vec_pretty(&written)?, Mode::PRIVATE)?;
        *kept = next;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AccountId, Address>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use talaria_model::{Chat, ChatId, ChatKind};

    fn place(account: &'static str, chat: &'static str) -> Address {
        Address {
            account: AccountId::literal(account),
            chat: Chat { id: ChatId::literal(chat), kind: ChatKind::Group },
            thread: None,
        }
    }

    #[test]
    fn a_home_is_remembered_by_the_next_run_and_each_account_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homes.json");
        let homes = Homes::open(path.clone()).unwrap();
        assert_eq!(homes.all(), []);
        homes.set(&place("work", "first")).unwrap();
        homes.set(&place("work", "second")).unwrap();
        homes.set(&place("club", "room")).unwrap();
        let expected = [place("club", "room"), place("work", "second")];
        assert_eq!(homes.all(), expected);
        assert_eq!(Homes::open(path.clone()).unwrap().all(), expected);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!folder.path().join("homes.json.next").exists());
    }

    #[test]
    fn a_file_that_is_not_ours_is_not_taken_for_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("homes.json");
        fs::write(&path, "{").unwrap();
        assert!(Homes::open(path).is_err());
    }
}
