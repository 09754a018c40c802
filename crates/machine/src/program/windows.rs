//! A file is a program by the end of its name.

use std::path::Path;
use std::process::Command;

use super::Again;

/// What Python's own program is called.
pub const PYTHON: &str = "python";

pub(super) const MAKE: &str = "its name has to end with .exe, .cmd or .bat";

/// What can be started without another program. What else a shell knows, a shell has to be named for.
const ENDINGS: [&str; 4] = ["exe", "com", "cmd", "bat"];

pub(super) fn may_run(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.contains(&ending.as_str())
}

pub(super) fn names(name: &str) -> impl Iterator<Item = String> {
    let own = [name.to_owned()].into_iter();
    own.chain(ENDINGS.map(|ending| format!("{name}.{ending}")))
}

pub(super) fn become_program(command: &mut Command) -> Again {
    match command.spawn() {
        Ok(_) => Again::Beside,
        Err(error) => Again::Failed(error),
    }
}
