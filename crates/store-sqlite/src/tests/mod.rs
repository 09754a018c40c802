//! The suite of the contract, and what is particular to SQLite.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use talaria_store::Store;
use talaria_store::contract::Harness;
use tempfile::TempDir;

use crate::SqliteStore;

/// Opens the store in a folder of its own, and again in a copy of that folder taken while the store
/// is still open: what a process finds whose predecessor was killed.
#[derive(Default)]
struct Killed {
    folders: Mutex<Vec<TempDir>>,
}

#[async_trait]
impl Harness for Killed {
    async fn open(&self) -> Arc<dyn Store> {
        let folder = TempDir::new().expect("a folder");
        let mut folders = self.folders.lock().expect("no test panics while it holds this");
        if let Some(before) = folders.last() {
            copy(before.path(), folder.path());
        }
        let store = SqliteStore::open(folder.path()).expect("opens");
        folders.push(folder);
        Arc::new(store)
    }
}

/// Everything but the shared memory, which does not survive a machine.
fn copy(from: &Path, to: &Path) {
    for file in ["state.db", "state.db-wal", "search.db", "search.db-wal"] {
        if from.join(file).exists() {
            fs::copy(from.join(file), to.join(file)).expect("copies");
        }
    }
}

talaria_store::store_contract!(on_sqlite, Killed::default());
