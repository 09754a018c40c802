//! What a program gets that we start, and how it ends.

use std::ffi::OsString;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// What a program is told of our environment. Everything else may be a secret, or change what the program
/// does.
pub const PASSED_ON: [&str; 9] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// The environment of a program, to be set after `env_clear`.
pub fn environment() -> impl Iterator<Item = (&'static str, OsString)> {
    PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// A program that was started in a process group of its own, and all that it started. Dropping it ends
/// them all.
#[derive(Debug)]
pub struct Group(
    /// Absent once it was ended: the number may be somebody else's then.
    Option<Pid>,
);

impl Group {
    /// The group of a program, by the id of its process.
    pub fn of(process: Option<u32>) -> Self {
        Self(process.and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }

    /// Ends all of it.
    pub fn end(&mut self) {
        if let Some(group) = self.0.take() {
            // Whoever is gone already needs no ending.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_no_more_than_it_needs() {
        for (name, _) in environment() {
            assert!(PASSED_ON.contains(&name), "{name}");
        }
        for dangerous in
            ["LD_PRELOAD", "GIT_SSH_COMMAND", "NODE_OPTIONS", "PYTHONSTARTUP", "BASH_ENV"]
        {
            assert!(!PASSED_ON.contains(&dangerous));
        }
    }

    #[test]
    fn a_group_without_a_process_ends_nobody() {
        let mut nobody = Group::of(None);
        nobody.end();
        assert!(nobody.0.is_none());
    }
}
