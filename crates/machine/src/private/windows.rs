//! Owners and lists of who is let in. A folder that is made here lets in this user, the system and the
//! machine's administrators, and nobody by inheritance from above; what is made in it inherits that.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ADD_FILE, FILE_APPEND_DATA, FILE_ATTRIBUTE_DIRECTORY, FILE_DELETE_CHILD,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_READ_DATA, FILE_WRITE_DATA, WRITE_DAC, WRITE_OWNER,
};

use super::{Doubt, Mode};
use crate::windows::access::{Access, List, Sid, of_file, own};

/// Accounts that everybody has; see "Well-known SIDs" in Microsoft's documentation.
const SYSTEM: &str = "S-1-5-18";
const ADMINISTRATORS: &str = "S-1-5-32-544";

/// Of services, each of which an administrator has installed.
const SERVICES: &str = "S-1-5-80-";

/// Whoever makes something, or has it: stands in lists for somebody who is told besides.
const CREATOR: &str = "S-1-3-";

const GENERIC: u32 = 0xf000_0000;
const READ: u32 = FILE_READ_DATA | GENERIC;
const WRITE: u32 =
    FILE_WRITE_DATA | FILE_APPEND_DATA | DELETE | WRITE_DAC | WRITE_OWNER | 0x5000_0000;

/// To put something else into a folder, or the folder itself elsewhere. That others may make folders in it
/// does not matter: the root of a disk lets everybody do that.
const REPLACE: u32 =
    FILE_ADD_FILE | FILE_DELETE_CHILD | DELETE | WRITE_DAC | WRITE_OWNER | 0x5000_0000;

/// Windows has no modes. What stands for one is what a file gets elsewhere that is only for its owner.
pub(super) fn mode(found: &Metadata) -> u32 {
    if found.file_attributes() & FILE_ATTRIBUTE_DIRECTORY != 0 { 0o700 } else { 0o600 }
}

pub(super) fn give(_: Mode, _: &File) -> io::Result<()> {
    Ok(())
}

pub(super) fn made_as(options: &mut OpenOptions, _: Mode) -> &mut OpenOptions {
    options
}

pub(super) fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

pub(super) fn make_for_us(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).create(folder)?;
    close(folder)
}

pub(super) fn close_new(path: &Path) -> io::Result<()> {
    close(path)
}

pub(super) fn belongs_to_us(path: &Path) -> io::Result<bool> {
    Ok(Seen::at(path)?.is_ours())
}

pub(super) fn open_to(path: &Path, _: &Metadata) -> Option<String> {
    let seen = Seen::at(path).ok()?;
    let others = seen.others(READ | WRITE);
    (!others.is_empty()).then(|| format!("to {}", others.join(", ")))
}

pub(super) fn close(path: &Path) -> io::Result<()> {
    list_for(&of_file(path)?)?.give(path)
}

/// The list of something that stands like this: for its owner, this user, the system, the machine's
/// administrators, and services that are let in already.
pub(crate) fn list_for(access: &Access) -> io::Result<List> {
    let granted = access.granted.iter().flatten().map(|granted| &granted.to);
    let services = granted.filter(|to| to.starts_with(SERVICES));
    let own = own()?;
    let mut accounts = vec![own.as_str(), "SY", "BA"];
    for account in services.chain([&access.owner]) {
        if !accounts.contains(&account.as_str()) {
            accounts.push(account);
        }
    }
    let entry = |who: &str| format!("(A;OICI;FA;;;{who})");
    // Who makes something with it is its owner: not the administrators whom they may be one of.
    List::read(&format!("O:{own}D:P{}", accounts.into_iter().map(entry).collect::<String>()))
}

pub(super) fn close_command(path: &Path, _: Mode) -> String {
    let path = path.display();
    format!(
        "icacls \"{path}\" /inheritance:r /grant:r \"%USERNAME%:(OI)(CI)F\" \
         \"*{SYSTEM}:(OI)(CI)F\" \"*{ADMINISTRATORS}:(OI)(CI)F\""
    )
}

pub(super) fn remedy(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Foreign => "make it yours with takeown",
        Doubt::Writable => "take that away with icacls",
    }
}

pub(super) fn doubt(path: &Path) -> io::Result<Option<Doubt>> {
    let path = fs::canonicalize(path)?;
    let seen = Seen::at(&path)?;
    let rights = if path.is_dir() { REPLACE } else { WRITE };
    Ok(match () {
        () if !seen.is_ours() => Some(Doubt::Foreign),
        () if !seen.others(rights).is_empty() => Some(Doubt::Writable),
        () => None,
    })
}

pub(super) fn others_replace_in(folder: &Path) -> io::Result<bool> {
    let seen = Seen::at(folder)?;
    Ok(!seen.is_ours() || !seen.others(REPLACE).is_empty())
}

/// Whether an account is this user's, or of whoever can do everything anyway.
pub(crate) fn is_trusted(sid: &str, own: &str) -> bool {
    sid == own || sid == SYSTEM || sid == ADMINISTRATORS || sid.starts_with(SERVICES)
}

/// Who may do what with something, as this user sees it.
struct Seen {
    access: Access,
    own: &'static Sid,
}

impl Seen {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { access: of_file(path)?, own: own()? })
    }

    /// A service runs as an account of its own on files of a person, who has let it in by name.
    fn is_ours(&self) -> bool {
        let granted = self.access.granted.iter().flatten();
        is_trusted(&self.access.owner, self.own) || granted.into_iter().any(|it| it.to == *self.own)
    }

    /// Everybody else who is let do any of this.
    fn others(&self, rights: u32) -> Vec<String> {
        let Some(granted) = &self.access.granted else { return vec!["Everyone".to_owned()] };
        let is_other = |sid: &str| {
            !is_trusted(sid, self.own) && !sid.starts_with(CREATOR) && sid != self.access.owner
        };
        let others = granted.iter().filter(|it| it.rights & rights != 0 && is_other(&it.to));
        let mut names: Vec<_> = others.map(|it| name(&it.to)).collect();
        names.dedup();
        names
    }
}

/// As people know an account, where all know it by the same name.
fn name(sid: &str) -> String {
    match sid {
        "S-1-1-0" => "Everyone",
        "S-1-5-11" => "Authenticated Users",
        "S-1-5-32-545" => "Users",
        "S-1-5-32-546" => "Guests",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{doubt, open_to};
    use super::*;
    use crate::windows::access::Grant;

    const ANN: &str = "S-1-5-21-1-2-3-1001";
    const BOB: &str = "S-1-5-21-1-2-3-1002";

    fn seen(owner: &str, granted: &[(&str, u32)]) -> Seen {
        let own: &'static Sid = Box::leak(Box::new(ANN.to_owned()));
        let granted =
            granted.iter().map(|(to, rights)| Grant { to: (*to).into(), rights: *rights });
        Seen { access: Access { owner: owner.into(), granted: Some(granted.collect()) }, own }
    }

    #[test]
    fn whoever_can_do_everything_anyway_is_not_others() {
        let all = u32::MAX;
        let ours =
            seen(ANN, &[(ANN, all), (SYSTEM, all), (ADMINISTRATORS, all), ("S-1-5-80-1", all)]);
        assert!(ours.is_ours() && ours.others(READ | WRITE).is_empty());
        assert_eq!(seen(ANN, &[("S-1-1-0", FILE_READ_DATA)]).others(READ), ["Everyone"]);
        assert!(seen(ANN, &[("S-1-1-0", FILE_READ_DATA)]).others(WRITE).is_empty());
        assert_eq!(seen(ANN, &[(BOB, FILE_WRITE_DATA)]).others(WRITE), [BOB]);
        let unlisted = Seen { access: Access { owner: ANN.into(), granted: None }, own: ours.own };
        assert_eq!(unlisted.others(READ), ["Everyone"], "no list lets everybody in");
    }

    #[test]
    fn somebody_who_has_let_us_in_by_name_is_not_a_stranger() {
        assert!(!seen(BOB, &[(BOB, u32::MAX), ("S-1-1-0", u32::MAX)]).is_ours());
        let let_in = seen(BOB, &[(BOB, u32::MAX), (ANN, u32::MAX)]);
        assert!(let_in.is_ours() && let_in.others(READ | WRITE).is_empty());
    }

    #[test]
    fn what_is_open_to_everybody_is_told_and_closed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("open");
        fs::create_dir(&folder).unwrap();
        List::read("D:P(A;OICI;FA;;;WD)").unwrap().give(&folder).unwrap();
        assert_eq!(open_to(&folder).as_deref(), Some("to Everyone"));
        assert_eq!(doubt(&folder).unwrap(), Some(Doubt::Writable));
        close(&folder).unwrap();
        assert_eq!((open_to(&folder), doubt(&folder).unwrap()), (None, None));
    }
}
