//! Where the log goes: to standard error, so that standard output stays for answers, and to files. A line has
//! no secrets in it, and whatever it repeats of what others said cannot look like another line. A panic is a
//! line like any other.

mod file;
mod line;
mod panics;
mod queue;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_clock::{Clock, SystemClock, rfc3339};
use talaria_config::{LogFormat, LogLevel, LogSettings};
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt as lines, registry};

use self::file::Files;
use self::line::harmless;
use self::queue::{Queue, Waiting};
use crate::discretion::Discretion;
use crate::home::Home;
use crate::plain::plain;

pub(crate) use self::file::files;

/// How long the last lines have to be written.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// The log of a gateway. What is logged is written before it is dropped, within reason.
pub(crate) struct Log {
    seen: Arc<Queue>,
    kept: Option<Kept>,
    discretion: Arc<Discretion>,
}

struct Kept {
    lines: Arc<Queue>,
    /// What is not written yet.
    unwritten: Option<(Waiting, Files)>,
}

impl Log {
    /// Writes files from here on, beginning with what was logged before. The home must be ours: two who
    /// write there would move each other's files.
    pub(crate) fn keep(&mut self) {
        let unwritten = self.kept.as_mut().and_then(|kept| kept.unwritten.take());
        if let Some((lines, mut files)) = unwritten {
            let written = lines.write_with("log", lost_json, move |line| files.write(line));
            if let Err(error) = written {
                tracing::error!(%error, "no log is kept in files");
            }
        }
    }
}

/// Leaves in the files why a gateway has not started, behind what is there. Where it came to no log, because
/// its configuration is wrong, the files are the usual ones.
pub(crate) fn not_started(home: &Home, mut log: Option<Log>, problem: &str) {
    let problem = match &log {
        Some(log) => log.discretion.clean(problem),
        None => Cow::Borrowed(problem),
    };
    let line = record("ERROR", json!({ "message": "it has not started", "problem": problem }));
    let lines = match log.as_mut().map(|log| log.kept.as_mut()) {
        // Nobody wants files.
        Some(None) => return,
        Some(Some(kept)) => match kept.unwritten.take() {
            None => kept.lines.clone(),
            Some((_, files)) => as_a_guest(files),
        },
        None => {
            let usual = LogSettings::default();
            as_a_guest(Files::new(home, usual.files, usual.file_size.bytes()))
        }
    };
    lines.put(harmless(&line, LogFormat::Json).into_owned().into_bytes());
    lines.flush(LAST_WORDS);
}

/// Lines for files that may be another process's.
fn as_a_guest(files: Files) -> Arc<Queue> {
    let (lines, waiting) = queue::queue();
    // Without a thread there is one line less.
    let _ = waiting.write_with("log", lost_json, move |line| files.add(line));
    Arc::new(lines)
}

impl Drop for Log {
    fn drop(&mut self) {
        self.seen.flush(LAST_WORDS);
        if let Some(Kept { lines, unwritten: None }) = &self.kept {
            lines.flush(LAST_WORDS);
        }
    }
}

/// Starts logging for a gateway. Libraries are heard from warnings on.
pub(crate) fn start(home: &Home, settings: &LogSettings, discretion: &Arc<Discretion>) -> Log {
    let level = match settings.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let (seen, lines) = queue::queue();
    let note = match settings.format {
        LogFormat::Text => lost_text,
        LogFormat::Json => lost_json,
    };
    let seen = Arc::new(seen);
    let shown = lines.write_with("log to stderr", note, |line| {
        // Nobody reads it any more.
        let _ = io::stderr().lock().write_all(line);
    });
    let kept = (settings.files > 0).then(|| {
        let (lines, unwritten) = queue::queue();
        let files = Files::new(home, settings.files, settings.file_size.bytes());
        Kept { lines: Arc::new(lines), unwritten: Some((unwritten, files)) }
    });
    let to = match &shown {
        Ok(()) => Destination::Queue(seen.clone()),
        Err(_) => Destination::Stderr,
    };
    let files = kept.as_ref().map(|kept| kept.lines.clone());
    begin(level, settings.format, discretion, to, files);
    Log { seen, kept, discretion: discretion.clone() }
}

/// Logs errors only and writes no file, for commands that talk to a person.
pub(crate) fn quiet(discretion: &Arc<Discretion>) {
    begin(LevelFilter::ERROR, LogFormat::Text, discretion, Destination::Stderr, None);
}

fn begin(
    level: LevelFilter,
    format: LogFormat,
    discretion: &Arc<Discretion>,
    to: Destination,
    files: Option<Arc<Queue>>,
) {
    let ours = level.into_level().map_or("off".to_owned(), |level| level.to_string());
    let filter = EnvFilter::builder()
        .with_default_directive(level.min(LevelFilter::WARN).into())
        .parse_lossy(format!("talaria={ours}"));
    let seen = lines::layer()
        .with_writer(Discreet { discretion: discretion.clone(), format, to })
        .with_ansi(io::stderr().is_terminal());
    let seen = match format {
        LogFormat::Text => {
            let fields = debug_fn(field).delimited(" ");
            seen.with_target(false).compact().fmt_fields(fields).boxed()
        }
        LogFormat::Json => seen.json().boxed(),
    };
    let kept = files.map(|files| {
        let to = Destination::Queue(files);
        let format = LogFormat::Json;
        lines::layer().with_writer(Discreet { discretion: discretion.clone(), format, to }).json()
    });
    registry().with(filter).with(seen).with(kept).init();
    panics::report();
}

const LOST: &str =
    "lines of the log were lost, because they came faster than they could be written";

fn lost_text(lines: u64) -> String {
    format!("{} WARN {LOST} lines={lines}\n", rfc3339(SystemClock.now()))
}

fn lost_json(lines: u64) -> String {
    record("WARN", json!({ "message": LOST, "lines": lines }))
}

/// A line of the files that no subscriber makes.
fn record(level: &str, fields: Value) -> String {
    let timestamp = rfc3339(SystemClock.now());
    let target = module_path!();
    let record =
        json!({ "timestamp": timestamp, "level": level, "fields": fields, "target": target });
    format!("{record}\n")
}

/// Writes one field of a line. Control characters are written out: they could end the line, or tell a
/// terminal to do something.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    writer.write_str(&plain(&format!("{value:?}")))
}

/// Where lines go, without secrets.
struct Discreet {
    discretion: Arc<Discretion>,
    format: LogFormat,
    to: Destination,
}

enum Destination {
    Stderr,
    Queue(Arc<Queue>),
}

struct Line<'a>(&'a Discreet);

impl<'a> MakeWriter<'a> for Discreet {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

impl Write for Line<'_> {
    /// A whole line at a time, as they are made.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let clean = self.0.discretion.clean(&text);
        let line = harmless(&clean, self.0.format);
        match &self.0.to {
            Destination::Stderr => io::stderr().lock().write_all(line.as_bytes())?,
            Destination::Queue(queue) => queue.put(line.into_owned().into_bytes()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.0.to {
            Destination::Stderr => io::stderr().lock().flush(),
            Destination::Queue(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_others_said_cannot_look_like_another_line() {
        let page = Page::default();
        let writer = page.clone();
        let lines = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .compact()
            .fmt_fields(debug_fn(field).delimited(" "))
            .finish();
        tracing::subscriber::with_default(lines, || {
            let name = "eve\n2026 ERROR all is lost\r\u{1b}[2J\u{7f}\u{9b}x";
            tracing::info!(%name, plain = name, "said {name}");
        });
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.ends_with('\n'));
        assert!(!text.trim_end().contains(char::is_control), "{text:?}");
        assert!(text.contains("INFO said eve\\n2026"), "{text}");
        assert!(text.contains("name=eve\\n2026 ERROR all is lost\\r"), "{text}");
    }
}
