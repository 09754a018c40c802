//! Files that travel with messages, on disk, named by the digest of their bytes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use sha2::{Digest, Sha256};
use talaria_model::{FileId, FileRef};
use talaria_platform::{ByteStream, FileError, FileStore};
use tokio::fs;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

/// Enough bytes to recognise any kind of file.
const SNIFF: usize = 8 * 1024;

/// A folder of files.
pub struct DiskFiles {
    folder: PathBuf,
    limit: u64,
    quota: u64,
    used: AtomicU64,
    temporary: AtomicU64,
}

impl DiskFiles {
    /// Uses `folder`, which is made if it does not exist. One file may have `limit` bytes, all
    /// together `quota`.
    pub fn open(folder: PathBuf, limit: u64, quota: u64) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let mut used = 0;
        for shelf in std::fs::read_dir(&folder)? {
            let shelf = shelf?;
            if shelf.file_type()?.is_dir() {
                for file in std::fs::read_dir(shelf.path())? {
                    used += file?.metadata()?.len();
                }
            } else {
                // Left behind by a run that ended while it received a file.
                std::fs::remove_file(shelf.path())?;
            }
        }
        let (used, temporary) = (AtomicU64::new(used), AtomicU64::new(0));
        Ok(Self { folder, limit, quota, used, temporary })
    }

    fn path(&self, id: &FileId) -> Option<PathBuf> {
        let name = id.as_str();
        let is_digest = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then(|| self.folder.join(&name[..2]).join(name))
    }

    async fn receive(&self, to: &Path, mut bytes: ByteStream) -> Result<Received, FileError> {
        let mut file = fs::File::create_new(to).await?;
        let mut digest = Sha256::new();
        let mut head = Vec::new();
        let mut size = 0;
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk?;
            size += chunk.len() as u64;
            if size > self.limit {
                return Err(FileError::TooLarge { limit: self.limit });
            }
            if self.used.load(Ordering::Relaxed) + size > self.quota {
                return Err(FileError::Full { quota: self.quota });
            }
            let wanted = SNIFF.saturating_sub(head.len()).min(chunk.len());
            head.extend_from_slice(&chunk[..wanted]);
            digest.update(&chunk);
            file.write_all(&chunk).await?;
        }
        file.sync_all().await?;
        let digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let id = FileId::new(digest).expect("hex digits are an id");
        Ok(Received { id, size, head })
    }
}

struct Received {
    id: FileId,
    size: u64,
    head: Vec<u8>,
}

#[async_trait]
impl FileStore for DiskFiles {
    async fn save(
        &self,
        name: &str,
        mime: Option<&str>,
        bytes: ByteStream,
    ) -> Result<FileRef, FileError> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("incoming-{}-{number}", std::process::id()));
        let received = match self.receive(&temporary, bytes).await {
            Ok(received) => received,
            Err(error) => {
                // It may not even exist; what is left is removed at the next start.
                let _ = fs::remove_file(&temporary).await;
                return Err(error);
            }
        };
        let Received { id, size, head } = received;
        let path = self.path(&id).expect("a digest has a place");
        let shelf = path.parent().expect("a file lies on a shelf");
        fs::create_dir_all(shelf).await?;
        let known = fs::try_exists(&path).await?;
        fs::rename(&temporary, &path).await?;
        if !known {
            // The name is as durable as the bytes only when its folder is synced too.
            fs::File::open(shelf).await?.sync_all().await?;
            self.used.fetch_add(size, Ordering::Relaxed);
        }
        let mime = infer::get(&head)
            .map(|kind| kind.mime_type())
            .or(mime)
            .unwrap_or("application/octet-stream")
            .to_owned();
        Ok(FileRef { id, name: plain_name(name), mime, size })
    }

    async fn read(&self, id: &FileId) -> Result<ByteStream, FileError> {
        let path = self.path(id).ok_or(FileError::Missing)?;
        match fs::File::open(path).await {
            Ok(file) => Ok(ReaderStream::new(file).boxed()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FileError::Missing),
            Err(error) => Err(error.into()),
        }
    }
}

/// A name for people to read: no folders, no control characters, not endless.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|c| !c.is_control()).take(120).collect();
    match plain.trim().trim_start_matches('.') {
        "" => "file".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures::stream;

    fn bytes(chunks: &[&'static [u8]]) -> ByteStream {
        stream::iter(chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk))).collect::<Vec<_>>())
            .boxed()
    }

    async fn contents(files: &DiskFiles, id: &FileId) -> Vec<u8> {
        let mut whole = Vec::new();
        let mut stream = files.read(id).await.expect("the file is there");
        while let Some(chunk) = stream.next().await {
            whole.extend_from_slice(&chunk.expect("it can be read"));
        }
        whole
    }

    #[tokio::test]
    async fn a_file_comes_back_as_it_was_and_equal_files_are_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        let first = files.save("a.txt", None, bytes(&[b"hello ", b"world"])).await.expect("saves");
        let again = files.save("b.txt", None, bytes(&[b"hello world"])).await.expect("saves");
        assert_eq!(first.id, again.id);
        assert_eq!((first.size, first.name.as_str()), (11, "a.txt"));
        assert_eq!(contents(&files, &first.id).await, b"hello world");
        assert_eq!(files.used.load(Ordering::Relaxed), 11);
    }

    #[tokio::test]
    async fn the_kind_is_what_the_bytes_are_not_what_was_claimed() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 100, 1000).expect("opens");
        let png = files
            .save("x.html", Some("text/html"), bytes(&[b"\x89PNG\r\n\x1a\n rest"]))
            .await
            .expect("saves");
        assert_eq!(png.mime, "image/png");
    }

    #[tokio::test]
    async fn too_much_is_refused_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 10, 15).expect("opens");
        let large = files.save("a", None, bytes(&[b"12345", b"6789012"])).await;
        assert!(matches!(large, Err(FileError::TooLarge { limit: 10 })));
        files.save("a", None, bytes(&[b"1234567890"])).await.expect("fits");
        let full = files.save("b", None, bytes(&[b"abcdefgh"])).await;
        assert!(matches!(full, Err(FileError::Full { quota: 15 })));
        let left = std::fs::read_dir(folder.path()).expect("lists").count();
        assert_eq!(left, 1, "only the shelf of the file that was kept");
    }

    #[tokio::test]
    async fn an_id_that_is_a_path_finds_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = DiskFiles::open(folder.path().into(), 10, 15).expect("opens");
        let id = FileId::literal("../../../../etc/passwd");
        assert!(matches!(files.read(&id).await, Err(FileError::Missing)));
    }

    #[test]
    fn names_are_for_reading_only() {
        for (given, kept) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("c:\\x\\y.txt", "y.txt"),
            (".bashrc", "bashrc"),
            ("a\u{7}b", "ab"),
            ("", "file"),
            ("..", "file"),
        ] {
            assert_eq!(plain_name(given), kept);
        }
    }
}
