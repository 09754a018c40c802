//! Where the log goes: to standard error, so that standard output stays for answers. A line has no secrets
//! in it, and whatever it repeats of what others said cannot look like another line.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use talaria_config::{LogFormat, LogLevel, LogSettings};
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::discretion::Discretion;

/// The longest line, in bytes. Whoever says more is cut.
const LONGEST: usize = 16 * 1024;

/// Starts logging. Libraries are heard from warnings on.
pub(crate) fn start(settings: &LogSettings, discretion: &Arc<Discretion>) {
    let level = match settings.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    begin(level, settings.format, discretion);
}

/// Logs errors only, for commands that talk to a person.
pub(crate) fn quiet(discretion: &Arc<Discretion>) {
    begin(LevelFilter::ERROR, LogFormat::Text, discretion);
}

fn begin(level: LevelFilter, format: LogFormat, discretion: &Arc<Discretion>) {
    let ours = level.into_level().map_or("off".to_owned(), |level| level.to_string());
    let filter = EnvFilter::builder()
        .with_default_directive(level.min(LevelFilter::WARN).into())
        .parse_lossy(format!("talaria={ours}"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Discreet { discretion: discretion.clone() })
        .with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Text => {
            let fields = debug_fn(field).delimited(" ");
            lines.with_target(false).compact().fmt_fields(fields).init();
        }
        LogFormat::Json => lines.json().init(),
    }
}

/// Writes one field of a line. Control characters are written out: they could end the line, or tell a
/// terminal to do something.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    let value = format!("{value:?}");
    value.chars().try_for_each(|c| match c.is_control() {
        true => write!(writer, "{}", c.escape_default()),
        false => writer.write_char(c),
    })
}

/// Standard error, without secrets.
struct Discreet {
    discretion: Arc<Discretion>,
}

struct Line<'a>(&'a Discretion);

impl<'a> MakeWriter<'a> for Discreet {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(&self.discretion)
    }
}

impl Write for Line<'_> {
    /// A whole line at a time, as they are made.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        io::stderr().lock().write_all(harmless(&self.0.clean(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// A line without what turns text around or ends a line elsewhere than in ours, and not without end. Such
/// characters are written as JSON writes them, which is as readable in plain text.
fn harmless(line: &str) -> Cow<'_, str> {
    let is_odd = |c: char| matches!(c, '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
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
