//! How a conversation looks in a terminal. Makes the text to write; never writes.

use talaria_model::{Choice, FileRef, OutboundId};
use talaria_platforms::terminal::wire::{Posted, Said};
use talaria_render::{Colour, Style, visible};

use super::growing::{Growing, Grown, rendered, style};
use super::live::{Live, Size};
use super::socket::size;

/// Files that can be saved by number. The oldest are forgotten.
const FILES: usize = 100;

/// What stands before what a person says.
pub(super) const MARK: &str = "› ";

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    /// Characters, one after the other: a pipe, a file, a terminal that can do no more.
    Plain,
    /// Formatted text, and lines that change.
    Rich {
        /// Of the screen.
        size: Size,
        /// Whether it may be coloured.
        colour: Colour,
    },
}

impl Display {
    /// Whether it may be coloured.
    pub(super) fn colour(self) -> Colour {
        match self {
            Self::Plain => Colour::Off,
            Self::Rich { colour, .. } => colour,
        }
    }
}

/// The conversation as it is being written down.
#[derive(Debug)]
pub(super) struct Paper {
    ink: Ink,
    files: Vec<FileRef>,
    forgotten: usize,
}

#[derive(Debug)]
enum Ink {
    Plain,
    Rich(Box<Rich>),
}

#[derive(Debug)]
struct Rich {
    style: Style,
    live: Live,
    growing: Option<Growing>,
    /// What `growing` looks like so far.
    draft: String,
    /// Whether the live lines are what they should be.
    shown: Shown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    UpToDate,
    Stale,
}

impl Paper {
    pub(super) fn on(display: Display) -> Self {
        let ink = match display {
            Display::Plain => Ink::Plain,
            Display::Rich { size, colour } => Ink::Rich(Box::new(Rich {
                style: style(size.columns, colour),
                live: Live::on(size),
                growing: None,
                draft: String::new(),
                shown: Shown::Stale,
            })),
        };
        Self { ink, files: Vec::new(), forgotten: 0 }
    }

    /// Takes the screen as it is from here on. What is on it stays as it is.
    pub(super) fn fit(&mut self, display: Display) {
        if let (Ink::Rich(rich), Display::Rich { size, colour }) = (&mut self.ink, display) {
            rich.style = style(size.columns, colour);
            rich.live.fit(size);
        }
    }

    /// Shows that an answer is being worked on, and what there is of it.
    pub(super) fn work(&mut self) -> String {
        match &mut self.ink {
            Ink::Plain => String::new(),
            Ink::Rich(rich) => rich.redraw(),
        }
    }

    /// Shows an answer so far.
    pub(super) fn draft(&mut self, id: &OutboundId, text: &str) -> String {
        self.keep_draft(id, text);
        self.work()
    }

    /// Takes note of an answer so far, to be shown later.
    pub(super) fn keep_draft(&mut self, id: &OutboundId, text: &str) {
        let Ink::Rich(rich) = &mut self.ink else { return };
        if !rich.growing.as_ref().is_some_and(|growing| growing.is(id)) {
            rich.growing = Some(Growing::begin(id.clone(), rich.style));
        }
        rich.draft = text.to_owned();
        rich.shown = Shown::Stale;
    }

    /// Takes what may still change off the screen, so that something else can stand there.
    pub(super) fn pause(&mut self) -> String {
        match &mut self.ink {
            Ink::Plain => String::new(),
            Ink::Rich(rich) => rich.print(&[]),
        }
    }

    /// What the gateway said, whole.
    pub(super) fn posted(&mut self, posted: &Posted) -> String {
        let choices = posted.choices.iter().enumerate();
        let choices = choices.map(|(index, Choice { label, .. })| (index + 1, one_line(label)));
        match &mut self.ink {
            Ink::Plain => {
                let mut text = visible(&posted.text).trim_end().to_owned();
                text.push('\n');
                for (number, label) in choices {
                    text.push_str(&format!("{number}. {label}\n"));
                }
                text
            }
            Ink::Rich(rich) => {
                let mut lines = rich.finish(posted);
                lines.extend(choices.map(|(number, label)| {
                    format!("  {} {label}", rich.paint(&format!("{number}."), CYAN))
                }));
                lines.push(String::new());
                rich.print(&lines)
            }
        }
    }

    /// What came along, with the number under which it can be saved.
    pub(super) fn files(&mut self, files: &[FileRef]) -> String {
        let mut text = String::new();
        for file in files {
            if self.files.len() == FILES {
                self.files.remove(0);
                self.forgotten += 1;
            }
            self.files.push(file.clone());
            let number = self.forgotten + self.files.len();
            let name = one_line(&file.name);
            text.push_str(&self.note(&format!("📎 {name} ({}) — /save {number}", size(file.size))));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// The file with this number.
    pub(super) fn file(&self, number: usize) -> Option<&FileRef> {
        self.files.get(number.checked_sub(self.forgotten + 1)?)
    }

    /// What a person said, somewhere else or some time ago.
    pub(super) fn said(&mut self, said: &Said) -> String {
        let text = visible(&said.text);
        let files = said.files.iter().map(|file| format!("📎 {}", one_line(&file.name)));
        let lines: Vec<String> = text.trim_end().lines().map(str::to_owned).chain(files).collect();
        let lines: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(index, line)| {
                let before = if index == 0 { MARK } else { "  " };
                format!("{}{line}", self.painted(before, CYAN))
            })
            .collect();
        self.lines(&lines)
    }

    /// A word of the terminal's own.
    pub(super) fn note(&mut self, text: &str) -> String {
        let text = visible(text);
        let lines: Vec<String> = text.lines().map(|line| self.painted(line, DIM)).collect();
        self.lines(&lines)
    }

    fn lines(&mut self, lines: &[String]) -> String {
        match &mut self.ink {
            Ink::Plain => lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect(),
            Ink::Rich(rich) => rich.print(lines),
        }
    }

    fn painted(&self, text: &str, attribute: &str) -> String {
        match &self.ink {
            Ink::Plain => text.to_owned(),
            Ink::Rich(rich) => rich.paint(text, attribute),
        }
    }
}

const DIM: &str = "2";
const CYAN: &str = "36";

impl Rich {
    /// Prints lines for good, and takes what may still change off the screen.
    fn print(&mut self, lines: &[String]) -> String {
        self.shown = Shown::Stale;
        self.live.draw(lines, &[])
    }

    fn redraw(&mut self) -> String {
        if std::mem::replace(&mut self.shown, Shown::UpToDate) == Shown::UpToDate {
            return String::new();
        }
        let Grown { finished, mut live } = match &mut self.growing {
            Some(growing) => growing.grow(&self.draft),
            None => Grown::default(),
        };
        if live.is_empty() {
            live.push(self.paint("…", DIM));
        }
        self.live.draw(&finished, &live)
    }

    /// The lines of an answer that are not printed yet.
    fn finish(&mut self, posted: &Posted) -> Vec<String> {
        let id = posted.id.as_ref();
        let growing = self.growing.take_if(|growing| id.is_some_and(|id| growing.is(id)));
        match growing {
            Some(mut growing) => growing.finish(&posted.text),
            None => rendered(&posted.text, self.style),
        }
    }

    fn paint(&self, text: &str, attribute: &str) -> String {
        match self.style.colour {
            Colour::On => format!("\x1b[{attribute}m{text}\x1b[0m"),
            Colour::Off => text.to_owned(),
        }
    }
}

/// Text from somebody else that must stay on its line.
fn one_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}
