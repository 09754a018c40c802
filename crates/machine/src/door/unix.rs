//! A socket in the home folder.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};

/// Somebody who came in.
pub type Stream = UnixStream;

/// Operating systems take no longer paths for sockets.
const LONGEST: usize = 100;

/// What a program is told that speaks through the door.
pub fn address(path: &Path) -> &Path {
    path
}

pub(super) struct Opened {
    listener: UnixListener,
    user: u32,
}

impl Opened {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, user: nix::unistd::geteuid().as_raw() })
    }

    pub(super) async fn accept(&mut self) -> io::Result<Stream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.user => return Ok(stream),
                _ => tracing::warn!("refused a local connection of another user"),
            }
        }
    }
}

/// Left behind, it would only make the next client wait for nobody.
pub(super) fn tidy(path: &Path) {
    let _ = fs::remove_file(path);
}

/// A socket nobody listens on was left behind by a run that died.
pub(super) async fn answers(path: &Path) -> bool {
    UnixStream::connect(path).await.is_ok()
}

pub(super) fn is_too_long(path: &Path) -> bool {
    path.as_os_str().len() > LONGEST
}

pub(super) fn is_left_behind(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}
