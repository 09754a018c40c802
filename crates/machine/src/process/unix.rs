//! Signals, and what Linux tells under `/proc`.

use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;

use super::{Process, Told};

pub(super) fn began(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_time)
}

pub(super) fn is_alive(process: &Process) -> bool {
    match stat(process.pid) {
        Some(stat) => {
            let is_same = process.start_time.is_none_or(|start| start == stat.start_time);
            is_same && !stat.is_over
        }
        None if cfg!(target_os = "linux") => false,
        None => send(raw(process), None).is_ok(),
    }
}

pub(super) fn ask_to_end(process: &Process) -> io::Result<Told> {
    tell(process, Signal::SIGTERM)
}

pub(super) fn kill(process: &Process) -> io::Result<Told> {
    tell(process, Signal::SIGKILL)
}

fn tell(process: &Process, signal: Signal) -> io::Result<Told> {
    match send(raw(process), signal) {
        Ok(()) => Ok(Told::Somebody),
        Err(Errno::ESRCH) => Ok(Told::Nobody),
        Err(error) => Err(error.into()),
    }
}

fn raw(process: &Process) -> Pid {
    Pid::from_raw(i32::try_from(process.pid).unwrap_or(i32::MAX))
}

/// The words that a process was started with, where the operating system tells.
pub fn command_line(pid: u32) -> Option<Vec<String>> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0);
    let mut words: Vec<_> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    // Every word ends with a zero.
    words.pop();
    (!words.is_empty()).then_some(words)
}

/// Who started a process, where the operating system tells.
pub fn parent(pid: u32) -> Option<u32> {
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
    fn the_words_of_a_process_are_told() {
        assert!(command_line(std::process::id()).is_some_and(|words| !words.is_empty()));
    }
}
