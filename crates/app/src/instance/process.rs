//! What the operating system tells about a process.

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process, told from another one that gets its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// When it started, as the operating system counts; none where it does not tell.
    #[serde(default)]
    pub(crate) start_time: Option<u64>,
}

impl Process {
    /// This one.
    pub(crate) fn own() -> Self {
        let pid = std::process::id();
        Self { pid, start_time: stat(pid).map(|stat| stat.start_time) }
    }

    /// Whether it runs. Where the operating system does not tell when it started, another one with its
    /// number is taken for it.
    pub(crate) fn is_alive(&self) -> bool {
        match stat(self.pid) {
            Some(stat) => {
                let is_same = self.start_time.is_none_or(|start| start == stat.start_time);
                is_same && !stat.is_over
            }
            None if cfg!(target_os = "linux") => false,
            None => nix::sys::signal::kill(self.raw(), None).is_ok(),
        }
    }

    /// As it is named to the operating system.
    pub(crate) fn raw(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.pid).unwrap_or(i32::MAX))
    }
}

/// The words that a process was started with, where the operating system tells.
pub(crate) fn command_line(pid: u32) -> Option<Vec<String>> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0);
    let mut words: Vec<_> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    // Every word ends with a zero.
    words.pop();
    (!words.is_empty()).then_some(words)
}

/// Who started a process, where the operating system tells.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.parent)
}

struct Stat {
    is_over: bool,
    parent: u32,
    start_time: u64,
}

/// What Linux tells; see proc_pid_stat(5).
fn stat(pid: u32) -> Option<Stat> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Stat> {
    // The name of the program is in parentheses and may contain some.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        is_over: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_be_named_like_anything() {
        let line = "42 (a) Z b) S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987 0";
        let stat = parse(line).unwrap();
        assert_eq!((stat.is_over, stat.parent, stat.start_time), (false, 7, 987));
        assert!(parse("42 (a) Z 7 42 42 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 987 0").unwrap().is_over);
        assert!(parse("42 (a) S").is_none() && parse("").is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_number_that_was_given_to_another_process_is_not_the_same_process() {
        let own = Process::own();
        assert!(own.is_alive());
        let earlier = Process { start_time: own.start_time.map(|start| start - 1), ..own };
        assert!(!earlier.is_alive());
        assert!(Process { start_time: None, ..own }.is_alive(), "as far as is known");
        assert!(command_line(own.pid).is_some_and(|words| !words.is_empty()));
    }
}
