//! Reads a backup. Nothing in it is trusted: what it may contain is a short list of names, plain files
//! only, and all of it has to be what its manifest says.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use talaria_machine::{Mode, Private};
use talaria_store_sqlite::OpenError;

use super::workshop::{Workshop, private};
use super::{
    ABOUT, About, FORMAT, HOME, Hashing, KEPT, LONGEST_ABOUT, LONGEST_MANIFEST, MANIFEST,
    MOST_MEMBERS, Manifest, Member, STATE,
};
use crate::exit::Halt;
use crate::home::Home;

/// The most that may stand between the last member and the end of the stream, in bytes.
const LONGEST_PADDING: u64 = 1 << 20;

/// How many times its own size a backup may unfold to. What a home keeps shrinks to a tenth or so.
const MOST_UNFOLDED: u64 = 200;

/// What any backup may unfold to, in bytes.
const ALWAYS_UNFOLDED: u64 = 1 << 30;

/// What is left free on a disk, in bytes: others need it, too.
const LEFT_FREE: u64 = 64 << 20;

/// A backup that is whole.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    /// What it is of.
    #[serde(flatten)]
    pub(crate) about: About,
    /// How many files of the home are in it.
    pub(crate) members: usize,
    /// How large they are.
    pub(crate) bytes: u64,
}

/// Why a file is not accepted as a backup.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not a backup of this program: {0}")]
    Foreign(&'static str),
    #[error("it was written by a later version of the program ({0})")]
    Newer(String),
    #[error("it contains {0:?}, which no backup contains")]
    Unexpected(String),
    #[error("{0:?} in it is {1}")]
    Damaged(String, String),
    #[error("it was cut short")]
    CutShort,
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Newer { found, known, .. } => Self::Newer(versions(found, known)),
            OpenError::Foreign { .. } => damaged(STATE, "no database of this program"),
            OpenError::Damaged { reason, .. } => damaged(STATE, format!("damaged: {reason}")),
            other => damaged(STATE, other.to_string()),
        }
    }
}

fn damaged(member: impl Into<String>, how: impl Into<String>) -> Refusal {
    Refusal::Damaged(member.into(), how.into())
}

fn versions(found: i32, known: i32) -> String {
    format!("database version {found}; this one knows versions up to {known}")
}

impl Refusal {
    pub(super) fn halt(&self, file: &Path) -> Halt {
        let halt = Halt::failed(format_args!("{} is refused: {self}", file.display()));
        halt.hint(match self {
            Self::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                "name the file that `talaria backup create` printed"
            }
            Self::Newer(_) => {
                "go back to it with the version of talaria that wrote it, or a later one; nothing was changed"
            }
            _ => "take another backup, or another copy of this one; nothing was changed",
        })
    }
}

/// Checks a backup to its last byte, the database in it included.
pub(crate) fn verify(home: &Home, file: &Path) -> Result<Checked, Halt> {
    let check = |folder: &Path| unpack(file, folder, Wanted::State).map_err(|why| why.halt(file));
    if home.path().exists() {
        home.prepare()?;
        let workshop = Workshop::open(home)?;
        return check(workshop.folder());
    }
    // Whoever only looks does not make a home.
    let folder = tempfile::tempdir().map_err(Halt::failed)?;
    check(folder.path())
}

/// What is written to the folder while a backup is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Only what cannot be checked otherwise.
    State,
    Everything,
}

/// Reads a backup into a folder that is there and empty, and checks it.
pub(super) fn unpack(file: &Path, folder: &Path, wanted: Wanted) -> Result<Checked, Refusal> {
    let file = File::open(file)?;
    let room = talaria_machine::room(folder).map(|room| room.free);
    let mut bounds = Bounds::new(file.metadata()?.len(), room);
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    let mut found: HashMap<String, Member> = HashMap::new();
    let mut about: Option<About> = None;
    let mut manifest: Option<Manifest> = None;
    for entry in archive.entries()? {
        let mut entry = entry.map_err(cut_short)?;
        if manifest.is_some() {
            return Err(Refusal::Foreign("there is something behind its end"));
        }
        let path = entry.path()?.into_owned();
        let shown = path.display().to_string();
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(Refusal::Unexpected(format!("{shown}, which is no plain file")));
        }
        if path == Path::new(ABOUT) && about.is_none() {
            about = Some(announced(&mut entry)?);
            continue;
        }
        if about.is_none() {
            return Err(Refusal::Foreign("it does not begin like one"));
        }
        if path == Path::new(MANIFEST) {
            manifest = Some(json(&mut entry, LONGEST_MANIFEST)?);
            continue;
        }
        let member = place(&path).ok_or_else(|| Refusal::Unexpected(shown.clone()))?;
        if found.len() >= MOST_MEMBERS {
            return Err(Refusal::Foreign("it has too many members"));
        }
        if found.contains_key(&member) {
            return Err(damaged(member, "there twice"));
        }
        let is_written = wanted == Wanted::Everything || member == STATE;
        bounds.take(&member, entry.size(), is_written)?;
        let executable = entry.header().mode()? & 0o100;
        let mut reading = Hashing::new(&mut entry);
        if is_written {
            write(&mut reading, &folder.join(&member), 0o600 | executable).map_err(cut_short)?;
        } else {
            io::copy(&mut reading, &mut io::sink()).map_err(cut_short)?;
        }
        let member = reading.member(member);
        found.insert(member.path.clone(), member);
    }
    end(&mut archive.into_inner())?;
    let (Some(about), Some(manifest)) = (about, manifest) else { return Err(Refusal::CutShort) };
    let (members, bytes) = compare(&about, manifest, found)?;
    let state = folder.join(STATE);
    if about.schema.is_some() {
        talaria_store_sqlite::inspect(&state)?;
    }
    Ok(Checked { about, members, bytes })
}

/// What a backup may unfold to. A few bytes can stand for more than a disk holds, and each member says how
/// large it is before it comes.
#[derive(Debug, PartialEq, Eq)]
struct Bounds {
    /// What may still be read.
    readable: u64,
    /// What may still be written, where that is known.
    writable: Option<u64>,
}

impl Bounds {
    fn new(packed: u64, room: Option<u64>) -> Self {
        let readable = packed.saturating_mul(MOST_UNFOLDED).max(ALWAYS_UNFOLDED);
        Self { readable, writable: room.map(|room| room.saturating_sub(LEFT_FREE)) }
    }

    fn take(&mut self, member: &str, size: u64, is_written: bool) -> Result<(), Refusal> {
        let unfolds = || damaged(member, "larger than anything that was packed into so little");
        self.readable = self.readable.checked_sub(size).ok_or_else(unfolds)?;
        if let Some(writable) = self.writable.as_mut().filter(|_| is_written) {
            let full = || damaged(member, "larger than the room on the disk of the home");
            *writable = writable.checked_sub(size).ok_or_else(full)?;
        }
        Ok(())
    }
}

/// Reads what follows the archive to the end of the stream, whose checksum stands there.
fn end(rest: &mut impl Read) -> Result<(), Refusal> {
    let padding = io::copy(&mut rest.take(LONGEST_PADDING), &mut io::sink()).map_err(cut_short)?;
    match padding < LONGEST_PADDING {
        true => Ok(()),
        false => Err(Refusal::Foreign("there is something behind its end")),
    }
}

fn announced(from: &mut impl Read) -> Result<About, Refusal> {
    let about: About = json(from, LONGEST_ABOUT)?;
    let known = talaria_store_sqlite::schema();
    if about.format > FORMAT || about.schema.is_some_and(|schema| schema > known) {
        let schema = about.schema.unwrap_or_default();
        return Err(Refusal::Newer(format!(
            "talaria {}, {}",
            about.talaria,
            versions(schema, known)
        )));
    }
    Ok(about)
}

fn json<T: DeserializeOwned>(from: &mut impl Read, most: u64) -> Result<T, Refusal> {
    let value = serde_json::from_reader(BufReader::new(from.take(most)));
    value.map_err(|error| match error.classify() {
        serde_json::error::Category::Io => cut_short(error.into()),
        _ => Refusal::Foreign("what it says about itself cannot be read"),
    })
}

fn cut_short(error: io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Refusal::CutShort,
        // What the decoder says of bytes that are no stream of its kind.
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            damaged("the stream", "damaged")
        }
        _ => Refusal::Unreadable(error),
    }
}

/// Where a member belongs in a home; none when no member is there.
fn place(path: &Path) -> Option<String> {
    let mut parts = path.components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    if parts.next()?? != HOME {
        return None;
    }
    let parts: Vec<&str> = parts.collect::<Option<_>>()?;
    let known = match parts.as_slice() {
        [] => false,
        [STATE] => true,
        [first, ..] => KEPT.contains(first),
    };
    known.then(|| parts.join("/"))
}

fn write(from: &mut impl Read, to: &Path, mode: u32) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        private(folder)?;
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).made_as(Mode::from_bits(mode)).open(to)?;
    io::copy(from, &mut file)?;
    file.sync_all()
}

/// What is there has to be what the manifest says, no more and no less.
fn compare(
    about: &About,
    manifest: Manifest,
    mut found: HashMap<String, Member>,
) -> Result<(usize, u64), Refusal> {
    if manifest.about != *about
        || manifest.members.iter().any(|member| member.path == STATE) != about.schema.is_some()
    {
        return Err(Refusal::Foreign("its beginning and its end do not agree"));
    }
    let (members, mut bytes) = (manifest.members.len(), 0_u64);
    for listed in manifest.members {
        match found.remove(&listed.path) {
            None => return Err(damaged(listed.path, "missing")),
            Some(member) if member != listed => {
                return Err(damaged(listed.path, "not what it was when it was taken"));
            }
            Some(member) => bytes = bytes.saturating_add(member.size),
        }
    }
    match found.into_keys().next() {
        Some(path) => Err(damaged(path, "not in its list")),
        None => Ok((members, bytes)),
    }
}

/// The folders and files directly in a folder.
pub(super) fn names(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_unfolds_to_so_much_and_fills_no_disk() {
        let mut bounds = Bounds::new(1 << 30, Some(LEFT_FREE + 100));
        assert_eq!(bounds.readable, MOST_UNFOLDED << 30);
        bounds.take("a", 1 << 40, false).unwrap_err();
        bounds.take("files/a", 1 << 35, false).unwrap();
        bounds.take("state.db", 60, true).unwrap();
        assert!(bounds.take("state.db", 41, true).unwrap_err().to_string().contains("room"));
        bounds.take("state.db", 40, true).unwrap();
        assert_eq!(Bounds::new(7, None), Bounds { readable: ALWAYS_UNFOLDED, writable: None });
        let mut unknown = Bounds::new(7, None);
        unknown.take("state.db", ALWAYS_UNFOLDED, true).unwrap();
        unknown.take("state.db", 1, true).unwrap_err();
    }
}
