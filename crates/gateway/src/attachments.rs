//! The files of messages, for the agent.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use talaria_agent::Attachments;
use talaria_model::FileRef;
use talaria_platform::FileStore;

/// Files in the gateway's own store.
pub struct StoredAttachments(pub Arc<dyn FileStore>);

#[async_trait]
impl Attachments for StoredAttachments {
    async fn load(&self, file: &FileRef, limit: u64) -> Option<Vec<u8>> {
        if file.size > limit {
            return None;
        }
        let mut bytes = Vec::new();
        let mut stream = self.0.read(&file.id).await.ok()?;
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk.ok()?);
        }
        Some(bytes)
    }

    async fn save(&self, name: &str, mime: &str, bytes: Vec<u8>) -> Result<FileRef, String> {
        let bytes = stream::iter([Ok(Bytes::from(bytes))]).boxed();
        self.0.save(name, Some(mime), bytes).await.map_err(|error| error.to_string())
    }
}
