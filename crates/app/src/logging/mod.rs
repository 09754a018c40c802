//! Where the log goes: to standard error, so that standard output stays for answers, and to files. A line has
//! no secrets in it, and whatever it repeats of what others said cannot look like another line. A panic is a
//! line like any other.

mod file;
mod panics;
mod queue;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

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
use self::queue::{Queue, Waiting};
use crate::discretion::Discretion;
use crate::home::Home;
use crate::plain::{plain, turns_text};

pub(crate) use self::file::files;

/// The longest line, in bytes. Whoever says more is cut.
const LONGEST: usize = 16 * 1024;

/// How long the last lines have to be written.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// The log of a gateway. What is logged is written before it is dropped, within reason.
pub(crate) struct Log {
    seen: Arc<Queue>,
    kept: Option<Kept>,
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
    Log { seen, kept }
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
        .with_writer(Discreet { discretion: discretion.clone(), to })
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
        lines::layer().with_writer(Discreet { discretion: discretion.clone(), to }).json()
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
    let record = serde_json::json!({
        "timestamp": rfc3339(SystemClock.now()),
        "level": "WARN",
        "fields": { "message": LOST, "lines": lines },
        "target": module_path!(),
    });
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
        let line = harmless(&clean);
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

/// A line without what turns text around or ends a line elsewhere than in ours, and not without end. Such
/// characters are written as JSON writes them, which is as readable in plain text.
fn harmless(line: &str) -> Cow<'_, str> {
    let is_odd = |c: char| matches!(c, '\u{80}'..='\u{9f}') || turns_text(c);
    if !line.contains(is_odd) && line.len() <= LONGEST {
        return Cow::Borrowed(line);
    }
    let mut written = String::with_capacity(line.len().min(LONGEST));
    for c in line.chars() {
        if written.len() >= LONGEST {
            written.push_str("…\n");
            break;
        }
        match is_odd(c) {
            true => written.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => written.push(c),
        }
    }
    Cow::Owned(written)
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

    #[test]
    fn a_line_is_not_turned_around_and_not_endless() {
        assert_eq!(harmless("plain é 漢\n"), "plain é 漢\n");
        assert_eq!(harmless("a\u{202e}b\u{2028}c\u{85}d\n"), "a\\u202eb\\u2028c\\u0085d\n");
        let long = harmless(&"x".repeat(LONGEST + 1)).into_owned();
        assert_eq!(long.len(), LONGEST + "…\n".len());
        assert!(long.ends_with("…\n"));
        assert!(matches!(harmless(&"x".repeat(LONGEST)), Cow::Borrowed(_)));
    }
}
