//! A program that was started, and all that it starts.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;
use std::process::ExitStatus;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// A program that was started, and all that it starts. Dropping it ends them all.
#[derive(Debug)]
pub struct Started(system::Family);

impl Started {
    /// Starts a program. Whatever it starts belongs to it from its first moment.
    pub fn start(command: Command) -> io::Result<Self> {
        system::Family::start(command).map(Self)
    }

    /// Where it is told something, the first time; if that was asked for.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.0.stdin()
    }

    /// What it prints, the first time; if that was asked for.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout()
    }

    /// What it complains about, the first time; if that was asked for.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.0.stderr()
    }

    /// Completes when the program itself has ended. What it started may go on.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Ends all of it.
    pub fn end(&mut self) {
        self.0.end();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::AsyncReadExt;

    use super::*;

    /// A shell that has another one wait for a line that never comes.
    fn shell() -> Command {
        let (program, words) = match cfg!(windows) {
            true => ("cmd", ["/c", "echo begun & cmd /c set /p line= & echo over"]),
            false => ("sh", ["-c", "echo begun; sh -c 'read line'; echo over"]),
        };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// Ends by one way, and then hears all that was printed: a pipe ends when nobody holds it any more.
    async fn printed_when_ended(end: fn(Started)) -> String {
        let mut started = Started::start(shell()).unwrap();
        let (_kept_open, mut stdout) = (started.stdin().unwrap(), started.stdout().unwrap());
        let mut begun = [0; 5];
        stdout.read_exact(&mut begun).await.unwrap();
        end(started);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).await.unwrap();
        format!("{}{rest}", String::from_utf8_lossy(&begun))
    }

    #[tokio::test]
    async fn what_it_started_ends_with_it() {
        let printed = printed_when_ended(|mut started| {
            started.end();
            // Once more ends nobody else.
            started.end();
        });
        assert_eq!(printed.await.trim(), "begun");
        assert_eq!(printed_when_ended(drop).await.trim(), "begun");
    }

    #[tokio::test]
    async fn a_program_says_how_it_ended() {
        let (program, words) = match cfg!(windows) {
            true => ("cmd", ["/c", "exit 3"]),
            false => ("sh", ["-c", "exit 3"]),
        };
        let mut command = Command::new(program);
        command.args(words);
        let mut started = Started::start(command).unwrap();
        assert_eq!(started.wait().await.unwrap().code(), Some(3));
        assert!(Started::start(Command::new("no-program-is-called-so")).is_err());
    }
}
