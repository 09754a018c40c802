//! What was registered with a vendor, as a digest on disk: so that it is done again only when it differs.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Something that is registered.
pub(crate) struct Registered {
    file: PathBuf,
    digest: String,
}

impl Registered {
    /// What is to be registered, and the name under which that is written down in an account's folder.
    pub(crate) fn new(folder: &Path, name: &str, what: &Value) -> Self {
        let digest = Sha256::digest(what.to_string());
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { file: folder.join(name), digest }
    }

    /// Whether it was registered like this before.
    pub(crate) async fn is_known(&self) -> bool {
        let kept = tokio::fs::read_to_string(&self.file).await;
        kept.is_ok_and(|kept| kept == self.digest)
    }

    /// Writes down that it is. What cannot be written down is done again the next time, which changes
    /// nothing.
    pub(crate) async fn remember(&self) {
        let draft = self.file.with_extension("new");
        let written = async {
            if let Some(folder) = self.file.parent() {
                tokio::fs::create_dir_all(folder).await?;
            }
            tokio::fs::write(&draft, &self.digest).await?;
            tokio::fs::rename(&draft, &self.file).await
        };
        if let Err(error) = written.await {
            tracing::warn!(%error, "it cannot be written down what is registered");
        }
    }
}
