//! A process group.

use std::io;
use std::process::ExitStatus;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

#[derive(Debug)]
pub(super) struct Family {
    child: Child,
    /// Absent once it was ended: the number may be somebody else's then.
    group: Option<Pid>,
}

impl Family {
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Self { child, group })
    }

    pub(super) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    pub(super) fn end(&mut self) {
        if let Some(group) = self.group.take() {
            // Whoever is gone already needs no ending.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}
