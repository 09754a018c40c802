//! A pipe that a program prints into and that we read.

use std::io::{self, PipeWriter};

/// The end of a pipe that we read.
#[cfg(unix)]
pub type Output = tokio::net::unix::pipe::Receiver;

/// The end of a pipe that we read. Windows reads such a pipe on a thread, until nobody holds its other end.
#[cfg(windows)]
pub type Output = tokio::fs::File;

/// A pipe. Its other end may be given to a program twice, so that what it prints stays in its order.
pub fn output() -> io::Result<(Output, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    #[cfg(unix)]
    let reader = Output::from_owned_fd(reader.into())?;
    #[cfg(windows)]
    let reader = Output::from_std(std::os::windows::io::OwnedHandle::from(reader).into());
    Ok((reader, writer))
}
