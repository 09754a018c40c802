//! Sockets that take a bounded number of connections, from whom they should.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at the same time, on each listener. Further ones wait in the operating system's queue.
const CONNECTIONS: usize = 512;

/// A TCP listener.
pub(crate) struct Tcp {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Tcp {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(CONNECTIONS)) }
    }
}

impl Listener for Tcp {
    type Io = Counted<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        let place = place(&self.places).await;
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        // Small answers should not wait for more to send.
        let _ = stream.set_nodelay(true);
        (Counted { stream, _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A socket in the home folder. Only processes of the same user get through.
pub(crate) struct Local {
    listener: UnixListener,
    path: PathBuf,
    user: u32,
    places: Arc<Semaphore>,
}

impl Local {
    pub(crate) fn new(listener: UnixListener, path: PathBuf, user: u32) -> Self {
        Self { listener, path, user, places: Arc::new(Semaphore::new(CONNECTIONS)) }
    }
}

impl Listener for Local {
    type Io = Counted<UnixStream>;
    type Addr = PathBuf;

    async fn accept(&mut self) -> (Self::Io, PathBuf) {
        loop {
            let place = place(&self.places).await;
            let (stream, _) = Listener::accept(&mut self.listener).await;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.user => {
                    return (Counted { stream, _place: place }, self.path.clone());
                }
                _ => tracing::warn!("refused a local connection of another user"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<PathBuf> {
        Ok(self.path.clone())
    }
}

async fn place(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    places.clone().acquire_owned().await.expect("the semaphore is never closed")
}

/// A connection that gives its place back when it ends.
pub(crate) struct Counted<S> {
    stream: S,
    _place: OwnedSemaphorePermit,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
