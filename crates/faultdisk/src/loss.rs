//! The disk after power was cut.
//!
//! What was synced is there. Of what was not, a pattern says what got there: the disk and the kernel
//! owe nobody an order.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::dice::Dice;
use crate::tape::{Event, FileNo, Tape};

/// What becomes of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// All of it got there: only the process died.
    Kept,
    /// None of it did.
    Dropped,
    /// Each sector of so many bytes got there or did not.
    Scattered {
        /// The size of a sector.
        sector: usize,
    },
    /// It got there in order up to some write, which is torn.
    Torn {
        /// The size of a sector.
        sector: usize,
    },
    /// The newest of it got there and the older did not.
    Newest,
    /// It got there in another order: an older write may stand above a newer one.
    Shuffled,
    /// The bytes got there and the sizes of the files did not.
    SizesLost,
    /// The sizes got there and the bytes did not: what is new reads as zeros.
    Hollow,
    /// The sizes got there and the bytes did not: what is new reads as whatever stood there before.
    Stale,
    /// The bytes got there and the names of the files did not.
    NamesLost,
    /// Each file has a pattern of its own.
    Mixed,
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 13] = [
        Self::Kept,
        Self::Dropped,
        Self::Scattered { sector: 512 },
        Self::Scattered { sector: 4096 },
        Self::Torn { sector: 512 },
        Self::Torn { sector: 4096 },
        Self::Newest,
        Self::Shuffled,
        Self::SizesLost,
        Self::Hollow,
        Self::Stale,
        Self::NamesLost,
        Self::Mixed,
    ];

    fn of_a_file(self, dice: &mut Dice) -> Self {
        match self {
            Self::Mixed => Self::ALL[dice.below(Self::ALL.len() - 1)],
            pattern => pattern,
        }
    }
}

/// A pattern and the chance in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// What becomes of what was not synced.
    pub pattern: Pattern,
    /// Decides what the pattern leaves open.
    pub seed: u64,
}

/// A sync that was answered and not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// There is none: the disk is honest.
    None,
    /// Every sync of a file whose name ends so.
    Files(&'static str),
    /// Every sync of the folder.
    Folder,
    /// Every sync.
    All,
}

/// The files that a power cut left; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    files: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// The files after a power cut when so many events had happened.
    pub fn of(tape: &Tape, moment: usize, loss: Loss, lie: Lie) -> Self {
        let mut platter = Platter::new(tape, loss);
        for event in &tape.events[..moment] {
            match event {
                Event::Write { file, offset, bytes } => {
                    platter.changed(*file, Change::Write { offset: *offset, bytes });
                }
                Event::Resize { file, size } => {
                    platter.changed(*file, Change::Resize { size: *size });
                }
                Event::Sync { file } => {
                    let honest = match lie {
                        Lie::None | Lie::Folder => true,
                        Lie::Files(ending) => !tape.name_of(*file).ends_with(ending),
                        Lie::All => false,
                    };
                    if honest {
                        platter.settle(*file, Pattern::Kept);
                    }
                }
                Event::SyncFailed { file } => platter.settle(*file, loss.pattern),
                Event::Link { name, file } => platter.unsynced_names.push((name, Some(*file))),
                Event::Unlink { name } => platter.unsynced_names.push((name, None)),
                Event::SyncFolder if matches!(lie, Lie::None | Lie::Files(_)) => {
                    platter.settle_names(Pattern::Kept);
                }
                Event::SyncFolder => {}
            }
        }
        platter.power_cut(loss.pattern)
    }

    /// The content of a file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// Writes the files into a folder.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        self.files.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
    }
}

enum Change<'a> {
    Write { offset: usize, bytes: &'a Arc<[u8]> },
    Resize { size: usize },
}

/// What is on the disk, and what is not there yet.
struct Platter<'a> {
    dice: Dice,
    names: BTreeMap<&'a str, FileNo>,
    unsynced_names: Vec<(&'a str, Option<FileNo>)>,
    contents: BTreeMap<FileNo, Vec<u8>>,
    unsynced: BTreeMap<FileNo, Vec<Change<'a>>>,
}

impl<'a> Platter<'a> {
    fn new(tape: &'a Tape, loss: Loss) -> Self {
        Self {
            dice: Dice::new(loss.seed),
            names: tape.names.iter().map(|(name, file)| (name.as_str(), *file)).collect(),
            unsynced_names: Vec::new(),
            contents: tape.contents.iter().map(|(file, bytes)| (*file, bytes.to_vec())).collect(),
            unsynced: BTreeMap::new(),
        }
    }

    fn changed(&mut self, file: FileNo, change: Change<'a>) {
        self.unsynced.entry(file).or_default().push(change);
    }

    fn settle(&mut self, file: FileNo, pattern: Pattern) {
        let changes = self.unsynced.remove(&file).unwrap_or_default();
        let content = self.contents.entry(file).or_default();
        let pattern = pattern.of_a_file(&mut self.dice);
        lose(content, &changes, pattern, &mut self.dice);
    }

    fn settle_names(&mut self, pattern: Pattern) {
        for (name, file) in std::mem::take(&mut self.unsynced_names) {
            let there = match pattern {
                Pattern::Kept => true,
                Pattern::Dropped | Pattern::NamesLost => false,
                _ => self.dice.coin(),
            };
            match file {
                Some(file) if there => drop(self.names.insert(name, file)),
                None if there => drop(self.names.remove(name)),
                _ => {}
            }
        }
    }

    fn power_cut(mut self, pattern: Pattern) -> Image {
        let files: Vec<FileNo> = self.unsynced.keys().copied().collect();
        for file in files {
            self.settle(file, pattern);
        }
        self.settle_names(pattern);
        let content = |file: &FileNo| self.contents.get(file).cloned().unwrap_or_default();
        let files = self.names.iter().map(|(name, file)| ((*name).to_owned(), content(file)));
        Image { files: files.collect() }
    }
}

fn lose(content: &mut Vec<u8>, changes: &[Change<'_>], pattern: Pattern, dice: &mut Dice) {
    match pattern {
        Pattern::Kept | Pattern::NamesLost | Pattern::Mixed => {
            changes.iter().for_each(|change| apply(content, change));
        }
        Pattern::Dropped => {}
        Pattern::Scattered { sector } => {
            for change in changes {
                match change {
                    Change::Write { offset, bytes } => {
                        for (offset, bytes) in sectors(*offset, bytes, sector) {
                            if dice.coin() {
                                write(content, offset, bytes);
                            }
                        }
                    }
                    Change::Resize { .. } if dice.coin() => apply(content, change),
                    Change::Resize { .. } => {}
                }
            }
        }
        Pattern::Torn { sector } => {
            let torn = dice.below(changes.len());
            changes.iter().take(torn).for_each(|change| apply(content, change));
            if let Some(Change::Write { offset, bytes }) = changes.get(torn) {
                let pieces: Vec<_> = sectors(*offset, bytes, sector).collect();
                let there = dice.below(pieces.len() + 1);
                pieces[..there].iter().for_each(|(offset, bytes)| write(content, *offset, bytes));
            }
        }
        Pattern::Newest => {
            let lost = dice.below(changes.len());
            changes.iter().skip(lost).for_each(|change| apply(content, change));
        }
        Pattern::Shuffled => {
            let mut order: Vec<usize> = (0..changes.len()).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, dice.below(last + 1));
            }
            let there = dice.below(order.len() + 1);
            order[..there].iter().for_each(|change| apply(content, &changes[*change]));
        }
        Pattern::SizesLost => {
            let size = content.len();
            for change in changes {
                if let Change::Write { offset, bytes } = change {
                    write(content, *offset, bytes);
                }
            }
            content.truncate(size);
        }
        Pattern::Hollow | Pattern::Stale => {
            for change in changes {
                let size = match change {
                    Change::Write { offset, bytes } => content.len().max(offset + bytes.len()),
                    Change::Resize { size } => *size,
                };
                content.truncate(size);
                while content.len() < size {
                    let old = if pattern == Pattern::Stale { dice.roll() } else { 0 };
                    let many = (size - content.len()).min(8);
                    content.extend_from_slice(&old.to_le_bytes()[..many]);
                }
            }
        }
    }
}

/// A write, cut where sectors end.
fn sectors(start: usize, bytes: &[u8], sector: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut offset = start;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let many = (sector - offset % sector).min(rest.len());
        let (piece, remaining) = rest.split_at(many);
        let at = offset;
        (offset, rest) = (offset + many, remaining);
        (many > 0).then_some((at, piece))
    })
}

fn apply(content: &mut Vec<u8>, change: &Change<'_>) {
    match change {
        Change::Write { offset, bytes } => write(content, *offset, bytes),
        Change::Resize { size } => content.resize(*size, 0),
    }
}

fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if content.len() < offset {
        content.resize(offset, 0);
    }
    let over = bytes.len().min(content.len() - offset);
    content[offset..offset + over].copy_from_slice(&bytes[..over]);
    content.extend_from_slice(&bytes[over..]);
}
