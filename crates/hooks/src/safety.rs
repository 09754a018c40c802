//! Whether somebody else could have put words into a hook's mouth.

use std::path::Path;

use talaria_machine::{Doubt, doubt};

/// Says what is wrong with a file or folder whose content this user is about to run.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let found = doubt(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let Some(doubt) = found else { return Ok(()) };
    let (path, remedy) = (path.display(), doubt.remedy());
    Err(match doubt {
        Doubt::Foreign => format!("{path} belongs to another user; {remedy}"),
        Doubt::Writable => format!("others may write to {path}; {remedy}"),
    })
}
