//! Opens the two doors, the HTTP listener and the local one, and serves them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use axum::middleware;
use axum::serve::ListenerExt;
use talaria_gateway::Gateway;
use talaria_machine::door::{self, Door};
use tokio::net::{TcpListener, TcpSocket};

use crate::listener::Local;
use crate::metrics::{Instruments, Vitals};
use crate::probes::{self, Probes};
use crate::readers::Reach;
use crate::serve::{Limits, serve};
use crate::{api, http, local, metrics};

/// What only the program around the gateway can do.
#[async_trait]
pub trait Operator: Send + Sync {
    /// The model that answers, as people write it.
    fn model(&self) -> String;

    /// Who listens to voice messages and who speaks answers; none where nobody does.
    fn voice(&self) -> Option<String>;

    /// What is wrong with the configuration's files, while an older configuration applies.
    fn wrong_configuration(&self) -> Option<String>;

    /// The hooks that are not used.
    fn refused_hooks(&self) -> Vec<api::RefusedHook>;

    /// What the configuration says and the gateway goes on without until it is restarted.
    fn waits_for_restart(&self) -> Vec<api::WaitingChange>;

    /// What reading the configuration again would do. The error is what is wrong with it.
    async fn plan(&self) -> Result<api::ConfigPlan, String>;

    /// Reads the configuration again, in somebody's name. The error is what is wrong with it; nothing changed
    /// then. It is done to its end, whether or not somebody still waits for that.
    async fn reload(&self, by: &str) -> Result<api::Reloaded, String>;

    /// Ends the program as if it had been asked to by a signal.
    fn stop(&self);

    /// Ends the program and starts it again. The error is why that is not done.
    async fn restart(&self) -> Result<(), String>;

    /// Whether it was asked to end.
    fn is_ending(&self) -> bool;

    /// What everybody needs to read the metrics, where it is set.
    fn metrics_token(&self) -> Option<String>;

    /// What it knows of itself.
    fn vitals(&self) -> Vitals;
}

/// The two doors, open and not yet served.
pub struct Doors {
    http: TcpListener,
    local: Door,
}

/// Why a door could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another program listens there.
    #[error("{address} is taken by another program")]
    Taken {
        /// Where.
        address: SocketAddr,
    },
    /// The operating system does not let us listen there.
    #[error("cannot listen on {address}: {source}")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The local door could not be made.
    #[error("cannot make the local socket {}: {source}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl OpenError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Taken { .. } => {
                "choose another port with `http.listen` in config.yaml, or TALARIA_HTTP__LISTEN"
            }
            Self::Refused { .. } => "check `http.listen` in config.yaml",
            Self::Socket { path, .. } if door::is_too_long(path) => {
                "the path is too long for a socket; set TALARIA_HOME to a shorter one"
            }
            Self::Socket { .. } => "check that the home folder is on a local disk and writable",
        }
    }
}

/// Connections that wait at the door. Whoever finds no room to wait tries again after a second.
const WAITING: u32 = 4096;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A port that the last run listened on a moment ago is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

impl Doors {
    /// Opens both. The caller holds the lock on the home folder, so a socket that is already there
    /// was left behind by a run that died.
    pub async fn open(address: SocketAddr, socket: &Path) -> Result<Self, OpenError> {
        let http = listen(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => OpenError::Taken { address },
            _ => OpenError::Refused { address, source },
        })?;
        let failed = |source| OpenError::Socket { path: socket.to_owned(), source };
        Ok(Self { http, local: Door::open(socket).map_err(failed)? })
    }

    /// Where the HTTP listener is; the port is known even when it was left open.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.http.local_addr()
    }

    /// Serves both until `ended`.
    pub async fn serve(
        self,
        gateway: Gateway,
        operator: Arc<dyn Operator>,
        ended: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = self.address()?.to_string();
        let (clock, limits) = (gateway.clock().clone(), Limits::default());
        let reach = Reach::of(self.address()?.ip(), gateway.hosts());
        let instruments =
            Instruments { gateway: gateway.clone(), operator: operator.clone(), reach };
        let probes = Probes::new(&gateway, operator.clone());
        let started = || middleware::from_fn_with_state(gateway.clone(), probes::once_started);
        let pages = http::routes(gateway.routes()).layer(started());
        let pages = pages.merge(probes.clone().in_a_word()).merge(metrics::routes(instruments));
        let desk = local::Desk {
            gateway: gateway.clone(),
            operator,
            probes: probes.clone(),
            http: address,
        };
        let desk = local::routes(desk).layer(started()).merge(probes.in_detail());
        let http = self.http.tap_io(|stream| {
            // Small answers should not wait for more to send.
            let _ = stream.set_nodelay(true);
        });
        let local = Local::new(self.local, clock.clone());
        tokio::select! {
            never = serve(http, pages, clock.clone(), limits) => match never {},
            never = serve(local, desk, clock, limits) => match never {},
            () = ended => {}
        }
        Ok(())
    }
}
