//! What a disk can answer instead of doing what it is asked.

use std::ffi::c_int;
use std::time::Duration;

use rusqlite::ffi;

/// A call to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Open a file.
    Open,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Cut a file.
    Truncate,
    /// Bring a file to the disk.
    Sync,
    /// Delete a file.
    Delete,
    /// Map the memory that connections share.
    Share,
}

/// Whose calls are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Every file of the folder.
    All,
    /// Files whose name ends so.
    Ending(&'static str),
}

impl Files {
    fn hold(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Ending(ending) => name.ends_with(ending),
        }
    }
}

/// An error of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// The device does not answer.
    Io,
    /// There is no space.
    NoSpace,
    /// The user's share of the space is used up.
    Quota,
    /// The file system can only be read.
    ReadOnly,
}

/// What happens instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The call is refused.
    Refused(Errno),
    /// Half of a write is done, and then there is no space.
    Short,
    /// The call is done, after this long.
    Slow(Duration),
}

/// Which of the calls are hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// All of them, until the disk is mended.
    UntilMended,
    /// After so many calls that go well, so many that do not.
    Calls {
        /// These go well.
        spared: u32,
        /// Then these do not.
        hit: u32,
    },
}

/// Calls that do not go well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which calls.
    pub op: Op,
    /// To which files.
    pub files: Files,
    /// What happens.
    pub trouble: Trouble,
    /// When.
    pub span: Span,
}

impl Fault {
    /// All such calls to all files are refused until the disk is mended.
    pub fn refusing(op: Op, errno: Errno) -> Self {
        let trouble = Trouble::Refused(errno);
        Self { op, files: Files::All, trouble, span: Span::UntilMended }
    }

    /// Only on files whose name ends so.
    pub fn on(self, ending: &'static str) -> Self {
        Self { files: Files::Ending(ending), ..self }
    }

    /// Only one call, after so many that go well.
    pub fn once_after(self, spared: u32) -> Self {
        Self { span: Span::Calls { spared, hit: 1 }, ..self }
    }

    /// Whether a call is hit. Counts it.
    pub(crate) fn meets(&mut self, op: Op, name: &str) -> Option<Trouble> {
        if self.op != op || !self.files.hold(name) {
            return None;
        }
        match &mut self.span {
            Span::UntilMended => Some(self.trouble),
            Span::Calls { spared, hit } => match (*spared, *hit) {
                (0, 0) => None,
                (0, _) => {
                    *hit -= 1;
                    Some(self.trouble)
                }
                _ => {
                    *spared -= 1;
                    None
                }
            },
        }
    }
}

/// What SQLite's layer for Unix makes of an error: only a write that finds no space says that the
/// disk is full.
pub(crate) fn code(op: Op, errno: Errno) -> c_int {
    match (op, errno) {
        (Op::Write, Errno::NoSpace) => ffi::SQLITE_FULL,
        (Op::Open, _) => ffi::SQLITE_CANTOPEN,
        (Op::Read, _) => ffi::SQLITE_IOERR_READ,
        (Op::Write, _) => ffi::SQLITE_IOERR_WRITE,
        (Op::Truncate, _) => ffi::SQLITE_IOERR_TRUNCATE,
        (Op::Sync, _) => ffi::SQLITE_IOERR_FSYNC,
        (Op::Delete, _) => ffi::SQLITE_IOERR_DELETE,
        (Op::Share, Errno::ReadOnly) => ffi::SQLITE_READONLY,
        (Op::Share, _) => ffi::SQLITE_IOERR_SHMMAP,
    }
}
