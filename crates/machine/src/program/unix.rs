//! A file is a program by its mode, and a process can become another program.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{AccessFlags, access};

use super::Again;

/// What Python's own program is called.
pub const PYTHON: &str = "python3";

pub(super) const MAKE: &str = "make it so with chmod u+x";

pub(super) fn may_run(path: &Path) -> bool {
    access(path, AccessFlags::X_OK).is_ok()
}

pub(super) fn names(name: &str) -> impl Iterator<Item = String> {
    [name.to_owned()].into_iter()
}

pub(super) fn become_program(command: &mut Command) -> Again {
    Again::Failed(command.exec())
}
