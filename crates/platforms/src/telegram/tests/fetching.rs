//! Files that came with messages.

use axum::body::Bytes;
use futures::TryStreamExt;
use talaria_model::{Media, MediaKind, Owner};
use talaria_platform::FetchError;

use super::vendor::{TOKEN, refusal};
use super::*;

fn media(handle: &str, size: Option<u64>) -> Media {
    let owner = Owner::Sender;
    Media { handle: handle.into(), kind: MediaKind::Document, name: None, mime: None, size, owner }
}

async fn fetched(bench: &Bench, media: &Media) -> Result<Vec<u8>, FetchError> {
    let bytes = bench.library.fetch(media).await?;
    let pieces: Vec<Bytes> = bytes.try_collect().await.unwrap();
    Ok(pieces.concat())
}

#[tokio::test]
async fn a_file_is_asked_for_and_fetched() {
    let bench = Bench::open().await;
    let stored = ("documents/file_1.pdf".to_owned(), b"%PDF".to_vec());
    bench.vendor.truth().files.insert("f".into(), stored);
    assert_eq!(fetched(&bench, &media("f", Some(4))).await.unwrap(), b"%PDF");
}

#[tokio::test]
async fn what_telegram_does_not_hand_out_is_not_asked_for() {
    let bench = Bench::open().await;
    let refused = fetched(&bench, &media("f", Some(20 * 1024 * 1024 + 1))).await;
    assert!(matches!(refused, Err(FetchError::Refused { .. })), "{refused:?}");
    assert!(bench.vendor.asked("getFile").is_empty());
    bench.vendor.fault("getFile", refusal(400, "Bad Request: file is too big"));
    let refused = fetched(&bench, &media("f", None)).await;
    assert!(matches!(refused, Err(FetchError::Refused { .. })), "{refused:?}");
    let later = fetched(&bench, &media("f", None)).await;
    assert!(matches!(later, Err(FetchError::Unreachable { .. })), "{later:?}");
}

#[tokio::test]
async fn a_path_cannot_lead_elsewhere() {
    let bench = Bench::open().await;
    for path in ["../secret", "a/../../b", "/etc/passwd", "a//b", "."] {
        bench.vendor.truth().files.insert("f".into(), (path.into(), vec![]));
        let refused = fetched(&bench, &media("f", None)).await;
        assert!(refused.is_err(), "{path}");
    }
}

#[tokio::test]
async fn a_server_on_this_machine_names_files_on_its_disk() {
    let vendor = Vendor::open().await;
    let disk = TempDir::new().unwrap();
    let folder = disk.path().join(TOKEN).join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    let inside = folder.join("file_0.pdf");
    let outside = disk.path().join("secret");
    std::fs::write(&inside, b"%PDF").unwrap();
    std::fs::write(&outside, b"secret").unwrap();
    let mut with = vendor.settings();
    with["local_mode"] = json!(true);
    let bench = Bench::connect(vendor, with, None).await;
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let climbing = folder.join("../../secret");
    for (handle, path) in
        [("in", path(&inside)), ("out", path(&outside)), ("climbing", path(&climbing))]
    {
        bench.vendor.truth().files.insert(handle.into(), (path, vec![]));
    }
    let large = media("in", Some(1024 * 1024 * 1024));
    assert_eq!(fetched(&bench, &large).await.unwrap(), b"%PDF", "up to 2 GB");
    for handle in ["out", "climbing"] {
        let refused = fetched(&bench, &media(handle, None)).await;
        assert!(matches!(refused, Err(FetchError::Refused { .. })), "{refused:?}");
    }
    let too_large = media("in", Some(3 * 1024 * 1024 * 1024));
    assert!(matches!(fetched(&bench, &too_large).await, Err(FetchError::Refused { .. })));
}
