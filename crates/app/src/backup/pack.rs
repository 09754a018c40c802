//! Writes a backup. Nothing is held up by it: the database is copied as one moment left it, and what
//! belongs to it is read afterwards, so that no file is missing that the copy names.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use talaria_clock::{Clock, SystemClock};
use talaria_machine::{Mode, create_for_us};
use talaria_platforms::web::OF_THE_MOMENT;

use super::workshop::{Workshop, private};
use super::{
    ABOUT, ACCOUNTS, About, FORMAT, Hashing, KEPT, MANIFEST, MOST_MEMBERS, Manifest, Member, STATE,
};
use crate::exit::{Exit, Halt};
use crate::home::Home;

/// What was written.
#[derive(Debug, Serialize)]
pub(crate) struct Packed {
    /// Where it is.
    pub(crate) file: PathBuf,
    /// How large it is.
    pub(crate) bytes: u64,
    /// How many files of the home are in it.
    pub(crate) members: usize,
    /// The version of the database in it.
    pub(crate) schema: Option<i32>,
    /// What is not in it although it would be kept, and why.
    pub(crate) left_out: Vec<String>,
}

/// Writes everything that a home keeps into one new file.
pub(crate) fn pack(home: &Home, to: Option<PathBuf>) -> Result<Packed, Halt> {
    if !home.path().exists() {
        return Err(Halt::failed(format_args!("there is no home at {}", home.path().display()))
            .hint("set TALARIA_HOME to the home that you mean"));
    }
    home.prepare()?;
    let now =
        jiff::Timestamp::from_millisecond(SystemClock.now().as_millis()).map_err(Halt::failed)?;
    let target = match to {
        Some(path) => std::path::absolute(&path).map_err(Halt::failed)?,
        None => home.backups().join(format!("talaria-{}.tar.gz", now.strftime("%Y%m%dT%H%M%SZ"))),
    };
    if target.exists() {
        return Err(Halt::new(
            Exit::Misused,
            format_args!("{} is there already", target.display()),
        )
        .hint("name another file; a backup never replaces one"));
    }
    let workshop = Workshop::open(home)?;
    if home.backups() == target.parent().unwrap_or(&target) {
        private(&home.backups()).map_err(Halt::failed)?;
    }
    let copy = workshop.folder().join(STATE);
    let schema = match home.path().join(STATE).exists() {
        true => Some(
            talaria_store_sqlite::copy(home.path(), &copy)
                .map_err(|error| Halt::failed(&error).hint(error.hint()))?,
        ),
        false => None,
    };
    let about = About {
        format: FORMAT,
        talaria: env!("CARGO_PKG_VERSION").to_owned(),
        schema,
        created: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    };
    let part = beside(&target);
    let written = write(home, &part, &copy, about).and_then(|(members, left_out)| {
        fs::rename(&part, &target)?;
        sync_folder(&target)?;
        Ok(Packed {
            bytes: fs::metadata(&target)?.len(),
            file: target.clone(),
            members,
            schema,
            left_out,
        })
    });
    written.map_err(|error| {
        // Half a backup is none.
        let _ = fs::remove_file(&part);
        Halt::failed(format_args!("{} cannot be written: {error}", target.display()))
            .hint("see whether there is room and that you may write there, then try again")
    })
}

fn beside(target: &Path) -> PathBuf {
    let mut name = target.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(".part");
    target.with_file_name(name)
}

fn sync_folder(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), talaria_machine::sync_folder)
}

type Archive = tar::Builder<GzEncoder<BufWriter<File>>>;

fn write(home: &Home, part: &Path, copy: &Path, about: About) -> io::Result<(usize, Vec<String>)> {
    // Nobody else is at work, so what stands there was left behind by a run that died.
    match fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = create_for_us(part)?;
    let packed = GzEncoder::new(BufWriter::new(file), Compression::fast());
    let mut writing =
        Writing { archive: tar::Builder::new(packed), members: Vec::new(), left_out: Vec::new() };
    writing.text(ABOUT, &about)?;
    if about.schema.is_some() {
        writing.file(STATE.to_owned(), copy)?;
    }
    for name in KEPT {
        writing.take(home.path(), name)?;
    }
    let Writing { archive, members, left_out } = writing;
    let many = members.len();
    let mut rest = Writing { archive, members: Vec::new(), left_out: Vec::new() };
    rest.text(MANIFEST, &Manifest { about, members })?;
    let mut file = rest.archive.into_inner()?.finish()?;
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok((many, left_out))
}

struct Writing {
    archive: Archive,
    members: Vec<Member>,
    left_out: Vec<String>,
}

impl Writing {
    fn text(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(value)?;
        let mut header = header(text.len() as u64, 0o600);
        self.archive.append_data(&mut header, name, text.as_slice())
    }

    /// Takes a file, or a folder with all that is in it.
    fn take(&mut self, home: &Path, name: &str) -> io::Result<()> {
        let mut open = vec![name.to_owned()];
        while let Some(path) = open.pop() {
            if is_of_the_moment(&path) {
                continue;
            }
            let place = home.join(&path);
            // Whoever keeps the settings elsewhere means what is in them.
            let look =
                if path == name { fs::metadata(&place) } else { fs::symlink_metadata(&place) };
            let found = match look {
                Ok(found) => found,
                // What is gone by now was not kept.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(named(&place, &error)),
            };
            if found.is_file() {
                self.file(path, &place)?;
            } else if found.is_dir() {
                let mut inside = Vec::new();
                for entry in fs::read_dir(&place).map_err(|error| named(&place, &error))? {
                    match entry?.file_name().into_string() {
                        Ok(below) => inside.push(format!("{path}/{below}")),
                        Err(_) => {
                            self.left_out.push(format!("a file in {path} whose name is not UTF-8"))
                        }
                    }
                }
                inside.sort_unstable_by(|one, other| other.cmp(one));
                open.append(&mut inside);
            } else {
                self.left_out.push(format!("{path}, which is no file"));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: String, place: &Path) -> io::Result<()> {
        let file = match File::open(place) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(named(place, &error)),
        };
        if self.members.len() >= MOST_MEMBERS {
            return Err(io::Error::other(format!("there are more than {MOST_MEMBERS} files")));
        }
        let found = file.metadata()?;
        let mut header = header(found.len(), Mode::of(&found).for_us().bits());
        let mut reading = Hashing::new(Whole { from: file.take(found.len()), left: found.len() });
        self.archive
            .append_data(&mut header, format!("{}/{path}", super::HOME), &mut reading)
            .map_err(|error| named(place, &error))?;
        self.members.push(reading.member(path));
        Ok(())
    }
}

/// Whether something says who is logged in, which no later moment is to learn from a backup.
fn is_of_the_moment(path: &str) -> bool {
    let mut parts = path.split('/');
    let (folder, _, name) = (parts.next(), parts.next(), parts.next());
    folder == Some(ACCOUNTS) && name.is_some_and(|name| OF_THE_MOMENT.contains(&name))
}

fn header(size: u64, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_entry_type(tar::EntryType::Regular);
    header
}

fn named(place: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", place.display()))
}

/// Insists on as many bytes as were announced.
struct Whole<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.left -= read as u64;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::other("it was cut short while it was copied"));
        }
        Ok(read)
    }
}
