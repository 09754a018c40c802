//! Files in and out.

use super::*;

fn uploading(browser: &Browser, name: &str, body: impl Into<Body>) -> Request<Body> {
    browser
        .builder(Method::POST, "/api/files")
        .header("x-talaria-csrf", &browser.token)
        .header("x-file-name", name)
        .header(header::CONTENT_TYPE, "image/png")
        .body(body.into())
        .unwrap()
}

async fn kept(bench: &Bench, browser: &Browser, body: &'static [u8]) -> String {
    let response = bench.ask(uploading(browser, "x", body)).await;
    json_of(response).await["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_file_goes_up_travels_with_a_message_and_comes_down_again() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    let response = bench.ask(uploading(&browser, "%C3%9Cber%20uns.txt", "content")).await;
    assert_eq!(response.status(), StatusCode::OK);
    let file = json_of(response).await;
    assert_eq!((&file["name"], &file["size"]), (&json!("Über uns.txt"), &json!(7)));
    let body = json!({ "id": "message-1", "text": "", "files": [file] });
    let message = browser.post(&say_path(), &body);
    let (status, _, inbound) = bench.committing(message, journalled()).await;
    assert_eq!(status, StatusCode::OK);
    let talaria_model::InboundKind::Said(message) = inbound.kind else { panic!() };
    assert_eq!(message.files[0].name, "Über uns.txt");
    let path = format!("/api/files/{}?name=%C3%9Cber%20uns.txt", message.files[0].id);
    let response = bench.ask(browser.get(&path)).await;
    let disposition = response.headers()[header::CONTENT_DISPOSITION].to_str().unwrap();
    assert_eq!(disposition, "attachment; filename*=UTF-8''%C3%9Cber%20uns.txt");
    assert_eq!(&bytes_of(response).await[..], b"content");
}

#[tokio::test(start_paused = true)]
async fn only_pictures_are_shown_and_only_by_their_bytes() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    for (bytes, mime, placement) in [
        (&b"\x89PNG\r\n\x1a\n---"[..], "image/png", "inline"),
        (b"\xff\xd8\xff\xe0------", "image/jpeg", "inline"),
        (b"GIF89a--------", "image/gif", "inline"),
        (b"RIFF\x01\x02\x03\x04WEBP-", "image/webp", "inline"),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
            "application/octet-stream",
            "attachment",
        ),
        (b"<script>alert(1)</script>", "application/octet-stream", "attachment"),
        (b"%PDF-1.7", "application/octet-stream", "attachment"),
        (b"", "application/octet-stream", "attachment"),
    ] {
        let id = kept(&bench, &browser, bytes).await;
        let response = bench.ask(browser.get(&format!("/api/files/{id}?name=x.png"))).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap();
        assert_eq!(header("content-type"), mime);
        assert!(header("content-disposition").starts_with(placement));
        assert!(header("content-security-policy").starts_with("sandbox; default-src 'none'"));
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(&bytes_of(response).await[..], bytes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_cannot_break_out_of_its_header() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let id = kept(&bench, &browser, b"bytes").await;
    let path = format!("/api/files/{id}?name=a%22%0d%0aSet-Cookie:%20x=y;%20../../b.txt");
    let response = bench.ask(browser.get(&path)).await;
    let disposition = response.headers()[header::CONTENT_DISPOSITION].to_str().unwrap();
    assert_eq!(disposition, "attachment; filename*=UTF-8''b.txt");
    assert!(!response.headers().contains_key(header::SET_COOKIE));
}

#[tokio::test(start_paused = true)]
async fn a_body_without_a_length_is_cut_off_at_the_limit() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let piece = Bytes::from(vec![0; 1024 * 1024]);
    let endless = stream::repeat(piece).map(Ok::<_, std::io::Error>);
    let request = uploading(&browser, "endless", Body::from_stream(endless));
    assert_eq!(bench.status(request).await, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(start_paused = true)]
async fn a_file_needs_a_name_and_an_unknown_one_is_not_there() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut nameless = uploading(&browser, "x", "content");
    nameless.headers_mut().remove("x-file-name");
    assert_eq!(bench.status(nameless).await, StatusCode::BAD_REQUEST);
    let garbled = uploading(&browser, "%ff%fe", "content");
    assert_eq!(bench.status(garbled).await, StatusCode::BAD_REQUEST);
    assert_eq!(bench.status(browser.get("/api/files/00ff")).await, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_uploads_run_at_once() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let stuck = || {
        let body = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        Box::pin(bench.ask(uploading(&browser, "stuck", body)))
    };
    let mut running = [stuck(), stuck(), stuck(), stuck()];
    for upload in &mut running {
        assert!(upload.now_or_never().is_none());
    }
    let one_more = || bench.status(uploading(&browser, "x", "content"));
    assert_eq!(one_more().await, StatusCode::SERVICE_UNAVAILABLE);
    drop(running);
    assert_eq!(one_more().await, StatusCode::OK);
}
