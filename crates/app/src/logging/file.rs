//! The log in files: one that is written, and older ones behind it. Together they never take more room than
//! was granted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use talaria_machine::{Identity, Private};

use crate::home::Home;

/// The smallest file: a few of the longest lines fit.
const SMALLEST: u64 = 64 * 1024;

/// Where the log of a home is, the file that is written first and then from newer to older.
pub(crate) fn files(home: &Home) -> impl Iterator<Item = PathBuf> + use<> {
    let folder = home.logs();
    (0..).map(move |age| path(&folder, age)).take_while(|path| path.exists())
}

fn path(folder: &Path, age: u32) -> PathBuf {
    match age {
        0 => folder.join("gateway.log"),
        _ => folder.join(format!("gateway.log.{age}")),
    }
}

/// Writes lines to the file, and begins another one when it is full.
pub(super) struct Files {
    folder: PathBuf,
    count: u32,
    limit: u64,
    open: Option<Open>,
}

struct Open {
    file: File,
}

impl Open {
    fn is_at(&self, path: &Path) -> bool {
        Identity::of(&self.file).is_ok_and(|own| Identity::at(path).is_ok_and(|there| there == own))
    }

    /// Whether a line of this length is one too many. Somebody who could not start may have added one.
    fn is_full(&self, length: u64, limit: u64) -> io::Result<bool> {
        let size = self.file.metadata()?.len();
        Ok(size > 0 && size.saturating_add(length) > limit)
    }
}

impl Files {
    /// At most `count` files, of at most `limit` bytes each. Only one process may have them at a time.
    pub(super) fn new(home: &Home, count: u32, limit: u64) -> Self {
        Self { folder: home.logs(), count, limit: limit.max(SMALLEST), open: None }
    }

    /// Writes one line. A disk that does not take it costs that line and nothing else.
    pub(super) fn write(&mut self, line: &[u8]) {
        // It may be on a disk that is full at the moment; then the next line opens it anew.
        let _ = self.try_to_write(line);
    }

    fn try_to_write(&mut self, line: &[u8]) -> io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let current = match self.open.take() {
            // Somebody may have moved it or removed it.
            Some(current) if current.is_at(&path(&self.folder, 0)) => current,
            _ => self.open()?,
        };
        let is_full = current.is_full(length, self.limit)?;
        let mut current = if is_full { self.begin_another()? } else { current };
        current.file.write_all(line)?;
        self.open = Some(current);
        Ok(())
    }

    /// Adds one line to files that may be another process's, as long as there is room: only whoever has the
    /// home begins another file.
    pub(super) fn add(&self, line: &[u8]) {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let added =
            self.open().and_then(|mut current| match current.is_full(length, self.limit)? {
                true => Ok(()),
                false => current.file.write_all(line),
            });
        // A disk that does not take it costs that line and nothing else.
        let _ = added;
    }

    fn open(&self) -> io::Result<Open> {
        fs::create_dir_all(&self.folder)?;
        let path = path(&self.folder, 0);
        let file = OpenOptions::new().append(true).create(true).private().open(path)?;
        Ok(Open { file })
    }

    fn begin_another(&self) -> io::Result<Open> {
        // Those beyond the count are from before it was made smaller.
        for age in (self.count - 1).. {
            match fs::remove_file(path(&self.folder, age)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                removed => removed?,
            }
        }
        for age in (1..self.count).rev() {
            match fs::rename(path(&self.folder, age - 1), path(&self.folder, age)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved?,
            }
        }
        self.open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize) -> String {
        format!("{n:05} {}\n", "x".repeat(1000))
    }

    #[test]
    fn files_take_the_room_that_was_granted_and_the_newest_lines_are_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let mut log = Files::new(&home, 3, 0);
        for n in 0..1000 {
            log.write(line(n).as_bytes());
        }
        let found: Vec<_> = files(&home).collect();
        assert_eq!(found.len(), 3);
        let texts = found.iter().rev().map(|path| fs::read_to_string(path).unwrap());
        let text: String = texts.collect();
        assert!(text.len() as u64 <= 3 * SMALLEST, "{}", text.len());
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() > 2 * 60, "{}", lines.len());
        for (kept, n) in lines.iter().zip(1000 - lines.len()..) {
            assert_eq!(*kept, line(n).trim_end());
        }

        // Fewer files from now on, and what is there already counts.
        let mut log = Files::new(&home, 1, 0);
        for n in 0..100 {
            log.write(line(n).as_bytes());
        }
        assert_eq!(files(&home).count(), 1);
    }

    #[test]
    fn what_another_process_adds_counts_and_moves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let (mut log, guest) = (Files::new(&home, 3, 0), Files::new(&home, 3, 0));
        log.write(b"first\n");
        for n in 0..1000 {
            guest.add(line(n).as_bytes());
        }
        assert_eq!(files(&home).count(), 1);
        let size = fs::metadata(home.logs().join("gateway.log")).unwrap().len();
        assert!(size > SMALLEST / 2 && size <= SMALLEST, "{size}");
        for n in 0..3 {
            log.write(line(n).as_bytes());
        }
        assert_eq!(files(&home).count(), 2, "whose home it is begins another");
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost_and_the_next_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(home.logs(), "in the way").unwrap();
        let mut log = Files::new(&home, 2, 0);
        log.write(b"lost\n");
        fs::remove_file(home.logs()).unwrap();
        log.write(b"kept\n");
        assert_eq!(fs::read_to_string(home.logs().join("gateway.log")).unwrap(), "kept\n");
        fs::rename(home.logs().join("gateway.log"), home.logs().join("aside")).unwrap();
        log.write(b"elsewhere\n");
        assert_eq!(fs::read_to_string(home.logs().join("gateway.log")).unwrap(), "elsewhere\n");
        assert_eq!(fs::read_to_string(home.logs().join("aside")).unwrap(), "kept\n");
    }
}
