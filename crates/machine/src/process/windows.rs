//! Handles of processes.

use std::io;

use super::{Process, Told};
use crate::windows::process::Opened;

pub(super) fn began(pid: u32) -> Option<u64> {
    Opened::to_look(pid).ok()?.began().ok()
}

pub(super) fn is_alive(process: &Process) -> bool {
    let Ok(opened) = Opened::to_look(process.pid) else { return false };
    // Whoever holds a handle keeps the number of a process that is over.
    let is_same = process.start_time.is_none_or(|start| opened.began().is_ok_and(|it| it == start));
    is_same && !opened.is_over()
}

/// A process without a window can be told nothing by another one that does not share its console.
pub(super) fn ask_to_end(_: &Process) -> io::Result<Told> {
    Ok(Told::Unheard)
}

pub(super) fn kill(process: &Process) -> io::Result<Told> {
    match Opened::to_end(process.pid) {
        Ok(opened) => opened.end().map(|()| Told::Somebody),
        Err(_) if !process.is_alive() => Ok(Told::Nobody),
        Err(error) => Err(error),
    }
}

/// Windows shows the words of a process only to who reads its memory.
pub fn command_line(_: u32) -> Option<Vec<String>> {
    None
}

/// A number that says who started a process may be somebody else's by now.
pub fn parent(_: u32) -> Option<u32> {
    None
}
