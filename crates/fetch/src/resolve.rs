//! From a name to addresses, each of them judged. The connection is made to what comes out of here, so
//! there is no second answer that could differ.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Name, Resolving};

use crate::rules::{Ground, Unwelcome};

/// The most addresses that a name may have.
const MOST: usize = 64;

/// Knows the addresses of names.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a host.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own resolver.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect())
    }
}

/// A resolver that hands out nothing that is not welcome.
pub(crate) struct Judged {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) ground: Ground,
    pub(crate) judges: Judges,
}

/// Whose addresses are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judges {
    /// Everybody's.
    Everyone,
    /// Those of the hosts that may be asked. The only other name there can be is that of the proxy, which
    /// the operator chose.
    Only(Vec<String>),
}

impl Judges {
    fn judges(&self, name: &str) -> bool {
        match self {
            Self::Everyone => true,
            Self::Only(hosts) => hosts.iter().any(|host| host == name),
        }
    }
}

impl reqwest::dns::Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, ground) = (self.resolver.clone(), self.ground);
        let is_judged = self.judges.judges(name.as_str());
        Box::pin(async move {
            let addresses = resolver.addresses(name.as_str()).await?;
            if addresses.len() > MOST {
                return Err(Unwelcome("the host has too many addresses").into());
            }
            // One that is not welcome spoils all: whoever answers so means us to take it.
            for address in addresses.iter().filter(|_| is_judged) {
                ground.judge(*address).inspect_err(|reason| {
                    tracing::warn!(host = name.as_str(), %address, %reason, "not connected to");
                })?;
            }
            let found = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as reqwest::dns::Addrs)
        })
    }
}
