//! What a program is told of our environment, and what holds for all that this process leaves behind.

use std::ffi::OsString;

/// What a program is told of our environment. Everything else may be a secret, or change what the program
/// does.
#[cfg(unix)]
pub const PASSED_ON: [&str; 9] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// What a program is told of our environment. Everything else may be a secret, or change what the program
/// does. Without `SystemRoot`, hardly a program on Windows finds its libraries.
#[cfg(windows)]
pub const PASSED_ON: [&str; 19] = [
    "PATH",
    "PATHEXT",
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "ProgramData",
    "ProgramFiles",
    "CommonProgramFiles",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "USERPROFILE",
    "USERNAME",
    "APPDATA",
    "LOCALAPPDATA",
    "TEMP",
    "TMP",
    "LANG",
    "TZ",
];

/// Where a program is told that it may put what it does not keep.
#[cfg(unix)]
pub const SCRATCH: [&str; 1] = ["TMPDIR"];

/// Where a program is told that it may put what it does not keep.
#[cfg(windows)]
pub const SCRATCH: [&str; 2] = ["TEMP", "TMP"];

/// The environment of a program, to be set after `env_clear`.
pub fn environment() -> impl Iterator<Item = (&'static str, OsString)> {
    PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// Whatever is written is for this user alone, and what is in memory is not written down when we die.
#[cfg(unix)]
pub fn keep_to_ourselves() {
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    // Where the system does not let us, it is no reason not to run.
    let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
}

/// Nothing has to be done here: a file inherits who may read it from its folder, and a folder of ours is
/// closed when it is made. Windows writes no memory down unless an administrator has asked it to.
#[cfg(windows)]
pub fn keep_to_ourselves() {}

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
}
