//! What the operating system tells about a process, and how one is ended.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;

use serde::{Deserialize, Serialize};

pub use system::{command_line, parent};

/// A process, told from another one that gets its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, as the operating system counts; none where it does not tell.
    #[serde(default)]
    pub start_time: Option<u64>,
}

/// What became of telling a process something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It was told.
    Somebody,
    /// There is no such process.
    Nobody,
    /// This operating system has no way to tell a process that it is to end.
    Unheard,
}

impl Process {
    /// This one.
    pub fn own() -> Self {
        Self::numbered(std::process::id())
    }

    /// The one that has this number, if any has.
    pub fn numbered(pid: u32) -> Self {
        Self { pid, start_time: system::began(pid) }
    }

    /// Whether it runs. Where the operating system does not tell when it started, another one with its
    /// number is taken for it.
    pub fn is_alive(&self) -> bool {
        system::is_alive(self)
    }

    /// Asks it to end in good order.
    pub fn ask_to_end(&self) -> io::Result<Told> {
        if self.is_alive() { system::ask_to_end(self) } else { Ok(Told::Nobody) }
    }

    /// Ends it at once.
    pub fn kill(&self) -> io::Result<Told> {
        if self.is_alive() { system::kill(self) } else { Ok(Told::Nobody) }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[cfg(any(target_os = "linux", windows))]
    fn a_number_that_was_given_to_another_process_is_not_the_same_process() {
        let own = Process::own();
        assert!(own.is_alive());
        let earlier = Process { start_time: own.start_time.map(|start| start - 1), ..own };
        assert!(!earlier.is_alive());
        assert_eq!(earlier.kill().unwrap(), Told::Nobody, "it is not ended for another one");
        assert!(Process { start_time: None, ..own }.is_alive(), "as far as is known");
    }

    #[test]
    fn whoever_is_killed_is_gone() {
        let waits = if cfg!(windows) { ("cmd", ["/c", "pause"]) } else { ("sh", ["-c", "read x"]) };
        let mut command = Command::new(waits.0);
        let mut child = command.args(waits.1).stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::numbered(child.id());
        assert!(process.is_alive());
        assert_eq!(process.kill().unwrap(), Told::Somebody);
        assert!(!child.wait().unwrap().success());
        assert!(!process.is_alive());
        assert_eq!(process.kill().unwrap(), Told::Nobody);
    }
}
