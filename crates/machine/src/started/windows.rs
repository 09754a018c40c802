//! A job object. The program is put into it before its first instruction runs, and whoever is in it ends
//! with its last handle, so also when this process dies.

use std::io;
use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

#[derive(Debug)]
pub(super) struct Family(Box<dyn ChildWrapper>);

impl Family {
    pub(super) fn start(command: Command) -> io::Result<Self> {
        let mut wrapped = CommandWrap::from(command);
        // The order counts: a job learns from what comes before it that it ends with its handle.
        wrapped.wrap(KillOnDrop).wrap(JobObject);
        Ok(Self(wrapped.spawn()?))
    }

    pub(super) fn stdin(&mut self) -> Option<ChildStdin> {
        self.0.stdin().take()
    }

    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout().take()
    }

    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.0.stderr().take()
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        // The job's own wait is for everybody in it.
        self.0.inner_mut().wait().await
    }

    pub(super) fn end(&mut self) {
        // Whoever is gone already needs no ending.
        let _ = self.0.start_kill();
    }
}
