//! The page itself, as it is served.

use super::super::assets;
use super::*;

async fn text(bench: &Bench, path: &str) -> String {
    let response = bench.ask(getting(path)).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    String::from_utf8(bytes_of(response).await.to_vec()).unwrap()
}

/// What stands between quotes after each `mark`.
fn quoted<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(mark).skip(1).filter_map(|rest| rest.split('"').next())
}

#[tokio::test(start_paused = true)]
async fn everything_the_page_refers_to_is_served() {
    let bench = Bench::new().await;
    let index = text(&bench, "/").await;
    for path in quoted(&index, "src=\"").chain(quoted(&index, "href=\"")) {
        assert!(assets::paths().any(|served| served == path), "{path}");
    }
    for path in assets::paths().filter(|path| path.ends_with(".js")) {
        for module in quoted(&text(&bench, path).await, "from \".") {
            assert!(assets::paths().any(|served| served == module), "{path} imports {module}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_page_needs_nothing_from_elsewhere_and_nothing_inline() {
    let bench = Bench::new().await;
    for path in assets::paths() {
        let text = text(&bench, path).await;
        let outside = text
            .split(['"', '\'', '(', ' '])
            .filter(|word| {
                word.starts_with("http:")
                    || word.starts_with("https:")
                    || word.starts_with("//") && word.len() > 2
            })
            .find(|word| *word != "http://www.w3.org/2000/svg");
        assert_eq!(outside, None, "{path}");
    }
    let index = text(&bench, "/").await;
    for inline in ["<style", " style=", " onclick=", " onload=", "javascript:"] {
        assert!(!index.contains(inline), "{inline}");
    }
    for script in index.split("<script").skip(1) {
        assert!(script.split('>').next().unwrap().contains("src="), "a script without a source");
    }
}

#[tokio::test(start_paused = true)]
async fn only_one_file_turns_text_into_markup() {
    let bench = Bench::new().await;
    for path in assets::paths().filter(|path| path.ends_with(".js")) {
        let text = text(&bench, path).await;
        for way in [
            "innerHTML",
            "outerHTML =",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
        ] {
            let expected = usize::from(way == "innerHTML" && path == "/dom.js");
            assert_eq!(text.matches(way).count(), expected, "{way} in {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_page_is_not_sent_twice() {
    let bench = Bench::new().await;
    for path in assets::paths() {
        let response = bench.ask(getting(path)).await;
        let tag = response.headers()[header::ETAG].clone();
        assert!(tag.to_str().unwrap().starts_with('"'), "a strong tag");
        let mut again = getting(path);
        again.headers_mut().insert(header::IF_NONE_MATCH, tag);
        let response = bench.ask(again).await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        assert!(bytes_of(response).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_there() {
    let bench = Bench::new().await;
    for path in ["/index.html", "/app.js.map", "/.env", "/favicon.ico", "/web/chat/app.js"] {
        assert_eq!(bench.status(getting(path)).await, StatusCode::NOT_FOUND, "{path}");
    }
}
