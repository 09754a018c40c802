//! Owners and modes.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::{Doubt, Mode};

/// What others may do.
const OTHERS: u32 = 0o077;

/// That others may write.
const OTHERS_WRITE: u32 = 0o022;

/// In a folder with this bit, nobody replaces the files of others.
const STICKY: u32 = 0o1000;

pub(super) fn mode(found: &Metadata) -> u32 {
    found.mode() & 0o777
}

pub(super) fn give(mode: Mode, file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode.bits()))
}

pub(super) fn made_as(options: &mut OpenOptions, mode: Mode) -> &mut OpenOptions {
    options.mode(mode.bits())
}

pub(super) fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(nix::libc::O_NOFOLLOW)
}

pub(super) fn make_for_us(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// It was made with its mode.
pub(super) fn close_new(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn belongs_to_us(path: &Path) -> io::Result<bool> {
    belongs_to(path, own())
}

/// Whether a file or folder belongs to the user of this number.
pub fn belongs_to(path: &Path, user: u32) -> io::Result<bool> {
    Ok(fs::metadata(path)?.uid() == user)
}

pub(super) fn open_to(_: &Path, found: &Metadata) -> Option<String> {
    let mode = mode(found);
    (mode & OTHERS != 0).then(|| format!("mode {mode:03o}"))
}

pub(super) fn close(path: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.mode() & 0o700;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

pub(super) fn close_command(path: &Path, mode: Mode) -> String {
    format!("chmod {:o} {}", mode.bits(), path.display())
}

pub(super) fn remedy(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Foreign => "make it yours with chown",
        Doubt::Writable => "take that away with chmod go-w",
    }
}

pub(super) fn doubt(path: &Path) -> io::Result<Option<Doubt>> {
    let found = fs::metadata(path)?;
    Ok(match () {
        () if !is_trusted(&found) => Some(Doubt::Foreign),
        () if found.mode() & OTHERS_WRITE != 0 => Some(Doubt::Writable),
        () => None,
    })
}

pub(super) fn others_replace_in(folder: &Path) -> io::Result<bool> {
    let found = fs::metadata(folder)?;
    let is_sticky = found.mode() & STICKY != 0;
    Ok((found.mode() & OTHERS_WRITE != 0 && !is_sticky) || !is_trusted(&found))
}

/// Whether it is ours, or of whoever can do everything anyway.
fn is_trusted(found: &Metadata) -> bool {
    found.uid() == own() || found.uid() == 0
}

fn own() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// The number of the user who started this process.
pub fn user_number() -> u32 {
    nix::unistd::getuid().as_raw()
}

/// The number of the user who is called this, by name or by number, if there is one.
pub fn user_called(name: &str) -> Option<u32> {
    let by_name = nix::unistd::User::from_name(name).ok().flatten();
    by_name.map(|user| user.uid.as_raw()).or_else(|| name.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::super::{Private, close, doubt, open_to, replaceable_in};
    use super::*;

    #[test]
    fn what_others_may_do_is_found_and_taken_away() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, "").unwrap();
        let set = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        for (mode, opened, doubted) in [
            (0o600, None, None),
            (0o644, Some("mode 644"), None),
            (0o660, Some("mode 660"), Some(Doubt::Writable)),
            (0o602, Some("mode 602"), Some(Doubt::Writable)),
        ] {
            set(mode);
            assert_eq!(open_to(&path).as_deref(), opened, "{mode:o}");
            assert_eq!(doubt(&path).unwrap(), doubted, "{mode:o}");
            close(&path).unwrap();
            assert_eq!(Mode::of(&path.metadata().unwrap()), Mode::PRIVATE);
        }
    }

    #[test]
    fn a_folder_that_others_write_to_is_told_unless_it_is_sticky() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap().join("folder");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("file");
        let set = |mode| fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        for (mode, expected) in [(0o755, false), (0o777, true), (0o775, true), (0o1777, false)] {
            set(mode);
            let found = replaceable_in(&path).unwrap();
            assert_eq!(found.as_deref(), expected.then_some(folder.as_path()), "{mode:o}");
        }
    }

    #[test]
    fn a_link_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let (target, link) = (place.path().join("target"), place.path().join("link"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let opened = OpenOptions::new().write(true).create(true).no_link().open(&link);
        assert!(opened.is_err() && !target.exists());
    }
}
