//! A named pipe that only this user, the owner of the home folder, the system and the machine's
//! administrators can open. All pipes of a machine are in one place, so its name is made of its path.

use std::ffi::OsString;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use futures::FutureExt;
use futures::future::select_all;
use sha2::{Digest, Sha256};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;

use crate::private::{is_trusted, list_for};
use crate::windows::access::{List, of_file, own, owner_of_pipe};

/// Somebody who came in.
pub type Stream = NamedPipeServer;

/// How many can come at the same moment. Whoever finds none waiting for them is refused.
const WAITING: usize = 8;

/// What a program is told that speaks through the door: the name of the pipe.
pub fn address(path: &Path) -> OsString {
    let folder = path.parent().unwrap_or(path);
    // However somebody writes the path of a folder, it is one folder.
    let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let spelled = format!("{}\\{name}", real.to_string_lossy()).to_lowercase();
    let mut pipe = String::from(r"\\.\pipe\talaria-");
    for byte in &Sha256::digest(spelled.as_bytes())[..16] {
        let _ = write!(pipe, "{byte:02x}");
    }
    pipe.into()
}

pub(super) struct Opened {
    address: OsString,
    list: List,
    waiting: Vec<NamedPipeServer>,
}

impl Opened {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // A service runs as an account of its own; the person whose files these are reaches it, and it
        // them.
        let list = list_for(&of_file(&folder(path))?)?;
        let mut opened = Self { address: address(path), list, waiting: Vec::new() };
        // The first one fails if somebody else has a pipe of this name.
        for number in 0..WAITING {
            let pipe = opened.another(ServerOptions::new().first_pipe_instance(number == 0))?;
            opened.waiting.push(pipe);
        }
        Ok(opened)
    }

    #[allow(unsafe_code, reason = "tokio takes a list of who is let in only as a pointer")]
    fn another(&self, options: &ServerOptions) -> io::Result<NamedPipeServer> {
        let options = options.clone();
        self.list.with(|attributes| {
            // SAFETY: it points to a SECURITY_ATTRIBUTES that outlives the call.
            unsafe { options.create_with_security_attributes_raw(&self.address, attributes) }
        })
    }

    pub(super) async fn accept(&mut self) -> io::Result<Stream> {
        let coming = self.waiting.iter().map(|pipe| pipe.connect().boxed());
        let (came, index, _) = select_all(coming).await;
        let next = self.another(&ServerOptions::new())?;
        let pipe = std::mem::replace(&mut self.waiting[index], next);
        came.map(|()| pipe)
    }
}

/// A pipe is gone with its last handle.
pub(super) fn tidy(_: &Path) {}

/// The name of a pipe is of one length, however long its path is.
pub(super) fn is_too_long(_: &Path) -> bool {
    false
}

pub(super) fn is_left_behind(_: &Path) -> bool {
    false
}

/// Another user could have made a pipe of this name while no gateway runs, to hear what is said to one: it
/// has to belong to somebody who could read the home folder anyway.
pub(super) async fn answers(path: &Path) -> bool {
    let pipe = match ClientOptions::new().open(address(path)) {
        Ok(pipe) => pipe,
        Err(error) => return error.raw_os_error() == Some(ERROR_PIPE_BUSY.cast_signed()),
    };
    let is_known = |sid: &str| {
        own().is_ok_and(|own| is_trusted(sid, own))
            || of_file(&folder(path)).is_ok_and(|access| access.owner == sid)
    };
    owner_of_pipe(&pipe).is_ok_and(|owner| is_known(&owner))
}

fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

#[cfg(test)]
pub(super) async fn connect(
    path: &Path,
) -> io::Result<tokio::net::windows::named_pipe::NamedPipeClient> {
    ClientOptions::new().open(address(path))
}

#[cfg(test)]
mod tests {
    use super::super::Door;
    use super::*;

    #[tokio::test]
    async fn a_second_process_cannot_open_the_same_door() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("door.sock");
        let _door = Door::open(&path).unwrap();
        assert!(Door::open(&path).is_err());
        Door::open(&place.path().join("other.sock")).unwrap();
    }

    #[test]
    fn a_folder_has_one_door_however_its_path_is_written() {
        let place = tempfile::tempdir().unwrap();
        let plain = place.path().join("door.sock");
        let around = place.path().join(".").join("DOOR.sock");
        assert_eq!(address(&plain), address(&around));
        assert_ne!(address(&plain), address(&place.path().join("x/door.sock")));
    }
}
