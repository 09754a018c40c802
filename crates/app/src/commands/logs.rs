//! `talaria logs`: what the gateway wrote about itself, also when none runs.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use talaria_clock::{Clock, SystemClock};
use talaria_machine::Identity;

use crate::cli::{LogsOptions, Severity};
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::logging;
use crate::plain::plain;

/// How often it is looked whether there is more.
const LOOK: Duration = Duration::from_millis(200);

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A line that is longer is none of ours.
const LONGEST: usize = 1024 * 1024;

pub(crate) async fn logs(home: &Home, options: LogsOptions) -> Result<Exit, Halt> {
    let paths: Vec<_> = logging::files(home).collect();
    let Some(newest) = paths.first() else {
        let problem = format!("there is no log in {}", home.logs().display());
        return Err(Halt::failed(problem)
            .hint("a gateway writes one while it runs, unless `log.files` is 0"));
    };
    let wanted = Wanted::new(&options);
    let mut current = Tail::open(newest).map_err(unreadable)?;
    let mut last = current.last(options.lines, &wanted).map_err(unreadable)?;
    for older in paths.iter().skip(1) {
        let missing = options.lines.saturating_sub(last.len());
        if missing == 0 {
            break;
        }
        let mut lines = match Tail::open(older) {
            Ok(mut tail) => tail.last(missing, &wanted).map_err(unreadable)?,
            // It went just now, to make room.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(unreadable(error)),
        };
        lines.append(&mut last);
        last = lines;
    }
    for line in last {
        say!("{}", shown(&line, options.json));
    }
    if !options.follow {
        return Ok(Exit::Done);
    }
    loop {
        SystemClock.sleep(LOOK).await;
        let mut lines = Vec::new();
        let mut take = |line: String| lines.push(line);
        current.each(&mut take).map_err(unreadable)?;
        // Another file may have begun; what came last into this one is read already.
        if let Ok(mut next) = Tail::open(newest)
            && next.identity != current.identity
        {
            current.each(&mut take).map_err(unreadable)?;
            next.each(&mut take).map_err(unreadable)?;
            current = next;
        }
        for line in lines.iter().filter(|line| wanted.is(line)) {
            say!("{}", shown(line, options.json));
        }
    }
}

fn unreadable(error: io::Error) -> Halt {
    Halt::failed(format_args!("cannot read the log: {error}"))
}

/// Which lines are shown.
struct Wanted {
    level: Option<Severity>,
    since: Option<jiff::Timestamp>,
}

impl Wanted {
    fn new(options: &LogsOptions) -> Self {
        let since = options.since.map(|ago| {
            let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
            let then = SystemClock.now().as_millis().saturating_sub(ago);
            jiff::Timestamp::from_millisecond(then).unwrap_or(jiff::Timestamp::MIN)
        });
        Self { level: options.level, since }
    }

    fn is(&self, line: &str) -> bool {
        if self.level.is_none() && self.since.is_none() {
            return true;
        }
        // What cannot be read may be just what somebody looks for.
        let Some(record) = Record::read(line) else { return true };
        self.level.is_none_or(|least| record.level <= least)
            && self.since.is_none_or(|since| {
                jiff::Timestamp::from_str(&record.timestamp).is_ok_and(|at| at >= since)
            })
    }
}

/// One line of the log.
#[derive(Debug, Deserialize)]
struct Record {
    timestamp: String,
    level: Severity,
    #[serde(default)]
    fields: Map<String, Value>,
}

impl Record {
    fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// A line as it is shown: for people, or for programs as it is.
fn shown(line: &str, json: bool) -> String {
    if json {
        return line.to_owned();
    }
    let Some(record) = Record::read(line) else { return plain(line).into_owned() };
    let mut text = format!("{} {:>5}", record.timestamp, record.level.word());
    for (name, value) in &record.fields {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push(' ');
        if name != "message" {
            text.push_str(name);
            text.push('=');
        }
        text.push_str(&plain(&value));
    }
    text
}

/// A file of the log, read up to where it ends at the moment.
struct Tail {
    file: File,
    identity: Identity,
    /// The beginning of a line whose end is not there yet.
    rest: Vec<u8>,
}

impl Tail {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let identity = Identity::of(&file)?;
        Ok(Self { file, identity, rest: Vec::new() })
    }

    /// The last so many lines that are wanted.
    fn last(&mut self, count: usize, wanted: &Wanted) -> io::Result<VecDeque<String>> {
        let mut last = VecDeque::new();
        self.each(&mut |line| {
            if count > 0 && wanted.is(&line) {
                if last.len() == count {
                    last.pop_front();
                }
                last.push_back(line);
            }
        })?;
        Ok(last)
    }

    /// Every line that has been added.
    fn each(&mut self, take: &mut dyn FnMut(String)) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = self.file.read(&mut chunk)?;
            if read == 0 {
                return Ok(());
            }
            for part in chunk[..read].split_inclusive(|byte| *byte == b'\n') {
                self.rest.extend_from_slice(part);
                if let Some(line) = self.rest.strip_suffix(b"\n") {
                    take(String::from_utf8_lossy(line).into_owned());
                    self.rest.clear();
                } else if self.rest.len() > LONGEST {
                    self.rest.clear();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"timestamp":"2026-11-16T04:00:00.5Z","level":"WARN","fields":{"message":"cannot connect","account":"tg","tries":3,"name":"eve\n2026 ERROR all is lost\u001b[2J"},"target":"talaria_gateway"}"#;

    #[test]
    fn a_record_is_one_line_for_people_and_untouched_for_programs() {
        assert_eq!(
            shown(LINE, false),
            "2026-11-16T04:00:00.5Z  WARN cannot connect account=tg tries=3 \
             name=eve\\n2026 ERROR all is lost\\u{1b}[2J"
        );
        assert_eq!(shown(LINE, true), LINE);
        assert_eq!(shown("something else\u{1b}[2J", false), "something else\\u{1b}[2J");
    }

    #[test]
    fn what_is_less_or_older_is_left_out() {
        let at = |time: &str| jiff::Timestamp::from_str(time).unwrap();
        let wanted = |level, since| Wanted { level, since }.is(LINE);
        assert!(wanted(None, None));
        assert!(wanted(Some(Severity::Warn), None) && wanted(Some(Severity::Info), None));
        assert!(!wanted(Some(Severity::Error), None));
        assert!(wanted(None, Some(at("2026-11-16T04:00:00Z"))));
        assert!(!wanted(None, Some(at("2026-11-16T04:00:01Z"))));
        for level in [None, Some(Severity::Error)] {
            assert!(Wanted { level, since: Some(at("2026-11-16T04:00:01Z")) }.is("no record"));
        }
    }

    #[test]
    fn a_line_is_read_when_its_end_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.log");
        std::fs::write(&path, "one\ntwo\nthr").unwrap();
        let mut tail = Tail::open(&path).unwrap();
        let everything = Wanted { level: None, since: None };
        assert_eq!(tail.last(1, &everything).unwrap(), ["two"]);
        std::fs::write(&path, "one\ntwo\nthree\nfour\n").unwrap();
        assert_eq!(tail.last(9, &everything).unwrap(), ["three", "four"]);
    }
}
