//! The door through which commands of this user reach a gateway on the same machine.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;
use std::path::{Path, PathBuf};

pub use system::{Stream as DoorStream, address};

/// A door that is open. Only processes of this user, and of whoever can do everything anyway, get through.
pub struct Door {
    path: PathBuf,
    opened: system::Opened,
}

impl Door {
    /// Opens the door of this path. The caller knows that nobody else has it open, so whatever is there
    /// was left behind by a process that died.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), opened: system::Opened::open(path)? })
    }

    /// The next who comes in. An error is about one who did not, or that nobody can come in just now.
    pub async fn accept(&mut self) -> io::Result<DoorStream> {
        self.opened.accept().await
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        system::tidy(&self.path);
    }
}

/// Whether somebody has this door open whom this user can trust with what is said through it.
pub async fn answers(path: &Path) -> bool {
    system::answers(path).await
}

/// Whether a path is longer than that of a door can be.
pub fn is_too_long(path: &Path) -> bool {
    system::is_too_long(path)
}

/// Whether a process that died left something at this path which is no door any more.
pub fn is_left_behind(path: &Path) -> bool {
    system::is_left_behind(path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_door_answers_while_it_is_open_and_leaves_nothing_behind() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("door.sock");
        assert!(!answers(&path).await);
        let mut door = Door::open(&path).unwrap();
        let (came, answered) = tokio::join!(door.accept(), answers(&path));
        assert!(answered && came.is_ok());
        assert_eq!(door.path(), path);
        drop((came, door));
        // A pipe is gone when the runtime has heard that nothing is on its way any more.
        let gone = async {
            while answers(&path).await {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.expect("nobody answers");
        assert!(!is_left_behind(&path));
        Door::open(&path).unwrap();
    }

    #[tokio::test]
    async fn many_come_at_once_and_each_is_answered() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("door.sock");
        let mut door = Door::open(&path).unwrap();
        let serve = async {
            for _ in 0..4 {
                let mut stream = door.accept().await.unwrap();
                let mut byte = [0];
                stream.read_exact(&mut byte).await.unwrap();
                stream.write_all(&[byte[0] + 1]).await.unwrap();
            }
        };
        let ask = |byte: u8| {
            let path = &path;
            async move {
                let mut stream = system::connect(path).await.unwrap();
                stream.write_all(&[byte]).await.unwrap();
                let mut answer = [0];
                stream.read_exact(&mut answer).await.unwrap();
                answer[0]
            }
        };
        let ((), a, b, c, d) = tokio::join!(serve, ask(1), ask(2), ask(3), ask(4));
        assert_eq!([a, b, c, d], [2, 3, 4, 5]);
    }
}
