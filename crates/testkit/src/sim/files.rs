//! The files of a world: as durable as its disk, and in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use talaria_model::{FileId, FileRef};
use talaria_platform::{ByteStream, FileError, FileStore};

use super::points::{Alive, Points};

/// Files by their content. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Files {
    kept: Arc<Mutex<BTreeMap<FileId, Bytes>>>,
    points: Points,
}

impl Files {
    /// No files yet. Keeping one is something that survives.
    pub fn new(points: Points) -> Self {
        Self { kept: Arc::default(), points }
    }

    /// Puts a file there, as somebody does who is not the gateway.
    pub fn put(&self, name: &str, bytes: &[u8]) -> FileRef {
        let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let id = FileId::new(format!("file-{digest:016x}")).expect("an id");
        let size = bytes.len() as u64;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(id.clone(), Bytes::copy_from_slice(bytes));
        FileRef::new(id, name, "text/plain", size)
    }

    /// What is in it.
    pub fn content(&self, id: &FileId) -> Option<Bytes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

#[async_trait]
impl FileStore for Files {
    async fn save(
        &self,
        name: &str,
        _: Option<&str>,
        mut bytes: ByteStream,
    ) -> Result<FileRef, FileError> {
        let mut whole = Vec::new();
        while let Some(chunk) = bytes.next().await {
            whole.extend_from_slice(&chunk?);
        }
        self.points.pass(format!("before keeping file {name}")).await;
        let file = self.put(name, &whole);
        self.points.pass(format!("after keeping file {name}")).await;
        Ok(file)
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        if self.points.alive() == Alive::No {
            return std::future::pending().await;
        }
        let bytes = self.content(id).ok_or(FileError::Missing)?;
        Ok(stream::iter([Ok(bytes)]).boxed())
    }
}
