//! `gateway.pid`: which process has the home.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use talaria_machine::{Mode, Process, command_line, replace, service};

use crate::home::Home;

/// Which process has a home, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) process: Process,
    pub(crate) kind: Kind,
    /// The words it was started with.
    pub(crate) argv: Vec<String>,
    pub(crate) version: String,
    /// Whether a manager of services starts it again when it ends and is not done.
    #[serde(default)]
    pub(crate) service: bool,
}

/// What a gateway lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A process of its own.
    TalariaGateway,
    /// A terminal chat, with which it ends.
    TalariaChat,
}

impl Record {
    /// Of this process.
    pub(crate) fn own(kind: Kind) -> Self {
        let argv = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { process: Process::own(), kind, argv, version, service: service::restarts_us() }
    }

    /// The process that has the home, if the record is of one that runs: the same number, the same start
    /// and the same words. Whoever else has the number now is somebody else.
    pub(crate) fn live(home: &Home) -> Option<Self> {
        let record = Self::read(home)?;
        let words = command_line(record.process.pid);
        let is_same = words.is_none_or(|words| words == record.argv);
        (record.process.is_alive() && is_same).then_some(record)
    }

    fn read(home: &Home) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path(home)).ok()?).ok()
    }
}

/// The record of this process, for as long as it lasts.
pub(crate) struct Recorded {
    home: Home,
    record: Record,
}

impl Recorded {
    /// Says that this process has the home. It holds the lock.
    pub(crate) fn write(home: &Home, kind: Kind) -> io::Result<Self> {
        let record = Record::own(kind);
        let bytes = serde_json::to_vec_pretty(&record)?;
        replace(&path(home), &bytes, Mode::PRIVATE)?;
        Ok(Self { home: home.clone(), record })
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if Record::read(&self.home).as_ref() == Some(&self.record) {
            let _ = std::fs::remove_file(path(&self.home));
        }
    }
}

fn path(home: &Home) -> PathBuf {
    home.path().join("gateway.pid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_a_process_for_as_long_as_it_is_that_process() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(Record::live(&home), None);
        let recorded = Recorded::write(&home, Kind::TalariaGateway).unwrap();
        assert_eq!(Record::live(&home).as_ref(), Some(&recorded.record));

        let stale = |change: &dyn Fn(&mut Record)| {
            let mut record = recorded.record.clone();
            change(&mut record);
            std::fs::write(path(&home), serde_json::to_vec(&record).unwrap()).unwrap();
            Record::live(&home)
        };
        if cfg!(target_os = "linux") {
            assert_eq!(stale(&|record| record.argv.push("--other".into())), None, "other words");
            assert_eq!(stale(&|record| record.process.start_time = Some(1)), None, "another start");
        }
        assert_eq!(stale(&|record| record.process.pid = 4_194_303), None, "nobody");
        std::fs::write(path(&home), "{").unwrap();
        assert_eq!(Record::live(&home), None, "no record");

        drop(recorded);
        assert!(path(&home).exists(), "somebody else's");
        drop(Recorded::write(&home, Kind::TalariaGateway).unwrap());
        assert!(!path(&home).exists());
    }
}
