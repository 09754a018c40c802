//! Work for a disk, beside everything that must not wait for one.

/// Does something that may take as long as a disk does, on a thread that nobody else needs. None if it broke
/// down.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
