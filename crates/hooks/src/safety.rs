//! Whether somebody else could have put words into a hook's mouth.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Says what is wrong with a file or folder whose content this user is about to run.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let found = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let own = nix::unistd::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        let path = path.display();
        return Err(format!("{path} belongs to another user; make it yours with chown"));
    }
    if found.mode() & 0o022 != 0 {
        let path = path.display();
        return Err(format!("others may write to {path}; take that away with chmod go-w"));
    }
    Ok(())
}
