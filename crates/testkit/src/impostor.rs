//! A server that says who it is, and for whom nobody vouches.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Made once for 127.0.0.1 and localhost, signed by itself, and good until the next century: it is refused for
/// who signed it and for nothing else. Its key is no secret.
const CERTIFICATE: &[u8] = include_bytes!("impostor/certificate.der");
const KEY: &[u8] = include_bytes!("impostor/key.der");

/// Speaks TLS with a certificate that it made itself, on this machine.
pub struct Impostor {
    /// Where.
    pub address: SocketAddr,
    counts: Arc<Counts>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    asked: AtomicUsize,
    believed: AtomicUsize,
}

impl Impostor {
    /// One that answers whoever comes.
    pub async fn open() -> anyhow::Result<Self> {
        let config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_slice(CERTIFICATE)],
                PrivatePkcs8KeyDer::from(KEY).into(),
            )?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let seen = counts.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.asked.fetch_add(1, Ordering::SeqCst);
                let (acceptor, seen) = (acceptor.clone(), seen.clone());
                tokio::spawn(async move {
                    // It comes to an end only once the other side has taken the certificate.
                    let accepted = acceptor.accept(stream).await;
                    if accepted.is_ok() {
                        seen.believed.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        Ok(Self { address, counts, serving })
    }

    /// How many came.
    pub fn asked(&self) -> usize {
        self.counts.asked.load(Ordering::SeqCst)
    }

    /// How many went on to say something.
    pub fn believed(&self) -> usize {
        self.counts.believed.load(Ordering::SeqCst)
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
