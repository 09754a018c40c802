//! Programs on this machine: which files are some, and how this one starts itself again.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use system::PYTHON;

/// Whether a file is one that this user may run.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file()) && system::may_run(path)
}

/// Why a file is not one that this user may run, and what makes it one.
pub fn make_program() -> &'static str {
    system::MAKE
}

/// The program of this name in a folder, if there is one: whatever Windows puts behind it.
pub fn program_in(folder: &Path, name: &str) -> Option<PathBuf> {
    system::names(name).map(|name| folder.join(name)).find(|path| path.exists())
}

/// The program that a person means who types this, if there is one that this user may run.
pub fn find_program(typed: &str) -> Option<PathBuf> {
    let runs = |folder: &Path, name: &str| {
        system::names(name).map(|name| folder.join(name)).find(|path| is_program(path))
    };
    if typed.contains(std::path::is_separator) {
        return runs(Path::new(""), typed);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find_map(|folder| runs(&folder, typed))
}

/// What became of a program that was to take the place of this one.
#[derive(Debug)]
pub enum Again {
    /// It runs beside this one, which has to end.
    Beside,
    /// It cannot be started.
    Failed(io::Error),
}

/// Becomes another program. Where the operating system cannot do that, it is started beside this one.
pub fn become_program(command: &mut Command) -> Again {
    system::become_program(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_name_as_a_shell_finds_it() {
        let shell = if cfg!(windows) { "cmd" } else { "sh" };
        let found = find_program(shell).unwrap();
        assert!(is_program(&found), "{}", found.display());
        assert_eq!(find_program(&found.to_string_lossy()), Some(found.clone()), "by its path");
        assert_eq!(program_in(found.parent().unwrap(), shell), Some(found));
        assert_eq!(find_program("no-program-is-called-so"), None);
    }

    #[test]
    fn a_folder_and_a_text_are_no_programs() {
        let place = tempfile::tempdir().unwrap();
        let text = place.path().join("text");
        std::fs::write(&text, "hello").unwrap();
        assert!(!is_program(&text) && !is_program(place.path()));
    }
}
