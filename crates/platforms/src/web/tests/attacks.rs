//! What must not work, named after the attack.

use futures::channel::mpsc;
use talaria_platform::{ConnectError, Hurry, Peer};

use super::*;

/// Every way to ask for something, logged in, with a body that would be accepted.
fn every_request(browser: &Browser) -> Vec<Request<Body>> {
    let conversation = |verb: &str| format!("/api/conversations/{CHAT}/{verb}");
    let event = json!({ "id": "event-0001" });
    let press = json!({ "id": "event-0001", "choice": "c1" });
    vec![
        browser.get("/api/state"),
        browser.get("/api/conversations"),
        browser.get(&conversation("history")),
        browser.get("/api/search?q=x"),
        browser.get("/api/files/00ff"),
        browser.get("/api/events"),
        browser.get("/api/people"),
        browser.say("hello"),
        browser.post(&conversation("press"), &press),
        browser.post(&conversation("stop"), &event),
        browser.post("/api/files", &event),
        browser.post("/api/people/telegram", &json!({ "verb": "issue", "reach": "direct" })),
        browser.post("/api/logout", &json!({})),
    ]
}

fn without(mut request: Request<Body>, name: &str) -> Request<Body> {
    request.headers_mut().remove(name);
    request
}

#[tokio::test(start_paused = true)]
async fn atk_003_another_site_cannot_open_the_event_stream() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "http://127.0.0.1:9999"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let request = with(browser.get("/api/events"), name, value);
        assert_eq!(bench.status(request).await, StatusCode::FORBIDDEN, "{name}: {value}");
    }
}

#[tokio::test(start_paused = true)]
async fn atk_005_nothing_changes_on_behalf_of_another_site() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    for request in [
        with(browser.say("hi"), "origin", "https://evil.example"),
        with(browser.say("hi"), "origin", "http://localhost:8790"),
        with(browser.say("hi"), "origin", "null"),
        with(browser.say("hi"), "sec-fetch-site", "cross-site"),
        with(browser.say("hi"), "sec-fetch-site", "same-site"),
        without(browser.say("hi"), "x-talaria-csrf"),
        with(browser.say("hi"), "x-talaria-csrf", ""),
        with(browser.say("hi"), "x-talaria-csrf", "AAAA"),
    ] {
        assert_eq!(bench.status(request).await, StatusCode::FORBIDDEN);
    }
    // A form of another site can send only these kinds of content.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let request = with(browser.say("hi"), "content-type", kind);
        assert_eq!(bench.status(request).await, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
    }
    assert!(bench.arrivals.next().now_or_never().is_none(), "nothing reached the gateway");
    let own = with(browser.say("hi"), "origin", "http://127.0.0.1:8790");
    let own = with(own, "sec-fetch-site", "same-origin");
    assert_eq!(bench.committing(own, journalled()).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn atk_005_the_token_of_one_login_is_worth_nothing_with_another() {
    let bench = Bench::new().await;
    let (one, other) = (bench.login().await, bench.login().await);
    let mixed = Browser { cookie: one.cookie, token: other.token };
    assert_eq!(bench.status(mixed.say("hi")).await, StatusCode::FORBIDDEN);
}

#[tokio::test(start_paused = true)]
async fn atk_005_a_login_cannot_be_made_by_another_site() {
    let bench = Bench::new().await;
    let token = mint_login(bench.folder.path()).unwrap();
    let request = || posting("/api/login", &json!({ "token": token }));
    for (name, value) in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
        assert_eq!(bench.status(with(request(), name, value)).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(bench.status(request()).await, StatusCode::NO_CONTENT, "the token was not used up");
}

#[tokio::test(start_paused = true)]
async fn atk_006_a_name_that_is_not_ours_is_refused() {
    let bench = Bench::named(&["talaria.example"]).await;
    for host in [
        "evil.example",
        "127.0.0.1.evil.example:8790",
        "localhost.evil.example",
        "0.0.0.0",
        "",
        "a b",
    ] {
        for path in ["/", "/app.js", "/api/state", "/nothing"] {
            let request = with(getting(path), "host", host);
            assert_eq!(
                bench.status(request).await,
                StatusCode::MISDIRECTED_REQUEST,
                "{host} {path}"
            );
        }
    }
    for host in [
        "localhost",
        "localhost:8790",
        "127.0.0.1",
        "[::1]:8790",
        "talaria.example",
        "TALARIA.example:443",
    ] {
        assert_eq!(bench.status(with(getting("/"), "host", host)).await, StatusCode::OK, "{host}");
    }
    let mut two_hosts = getting("/");
    two_hosts.headers_mut().append("host", "127.0.0.1".parse().unwrap());
    assert_eq!(bench.status(two_hosts).await, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(bench.status(without(getting("/"), "host")).await, StatusCode::MISDIRECTED_REQUEST);
    let absolute = with(getting("http://evil.example/"), "host", HOST);
    assert_eq!(bench.status(absolute).await, StatusCode::MISDIRECTED_REQUEST);
    let twice_the_same = with(getting(&format!("http://{HOST}/")), "host", HOST);
    assert_eq!(bench.status(twice_the_same).await, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn atk_006_a_host_setting_that_is_not_a_name_is_an_error_that_names_it() {
    for name in ["", "https://talaria.example", "talaria.example:443", "*", "a/b"] {
        let folder = TempDir::new().unwrap();
        let shelf = Arc::new(Shelf::default());
        let ports = Ports {
            account: AccountId::literal("web"),
            clock: Arc::new(FakeClock::starting(Timestamp::default())),
            files: shelf.clone(),
            archive: shelf,
            menu: Arc::new([]),
            desk: None,
            hosts: Arc::new([name.to_owned()]),
            folder: folder.path().to_owned(),
            cursor: None,
            kept: Kept::default(),
        };
        match Web::connect(Settings::default(), ports).await {
            Err(ConnectError::Refused { problem, .. }) => {
                assert!(problem.contains("allowed_hosts"), "{problem}");
            }
            _ => panic!("`{name}` was accepted"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn atk_007_a_client_cannot_say_who_it_is() {
    let mut bench = Bench::new().await;
    let browser = bench.login().await;
    for extra in [("role", json!("admin")), ("from", json!("somebody")), ("account", json!("x"))] {
        let mut body = json!({ "id": "message-1", "text": "hi" });
        body[extra.0] = extra.1;
        let request = browser.post(&say_path(), &body);
        assert_eq!(bench.status(request).await, StatusCode::BAD_REQUEST, "{}", extra.0);
    }
    let (_, _, inbound) = bench.committing(browser.say("hi"), journalled()).await;
    assert_eq!(inbound.from.id.as_str(), "operator");
    assert_eq!(inbound.to, at(CHAT));
}

#[tokio::test(start_paused = true)]
async fn atk_008_a_token_that_is_nearly_right_is_wrong() {
    let bench = Bench::new().await;
    let token = mint_login(bench.folder.path()).unwrap();
    let swapped: String = token
        .chars()
        .map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect();
    let nearly = [
        String::new(),
        " ".into(),
        token[1..].into(),
        token[..token.len() - 1].into(),
        format!("{token} "),
        format!("{token}\0"),
        swapped,
        "../login.key".into(),
    ];
    for wrong in nearly {
        assert_eq!(bench.hand_in(&wrong).await.status(), StatusCode::UNAUTHORIZED, "{wrong:?}");
    }
    assert_eq!(bench.hand_in(&token).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn atk_009_forwarding_headers_give_no_authority() {
    let bench = Bench::new().await;
    for (name, value) in [
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-user", "operator"),
        ("x-real-ip", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1;host=localhost"),
        ("authorization", "Bearer operator"),
    ] {
        let request = with(getting("/api/state"), name, value);
        assert_eq!(bench.status(request).await, StatusCode::UNAUTHORIZED, "{name}");
    }
    let spoofed = with(getting("/"), "host", "evil.example");
    let spoofed = with(spoofed, "x-forwarded-host", "localhost");
    assert_eq!(bench.status(spoofed).await, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn atk_010_no_spelling_of_a_path_gets_past_the_guard() {
    let bench = Bench::new().await;
    for path in [
        "//api/state",
        "/api//state",
        "/api/%73tate",
        "/api/state/",
        "/api/state;x",
        "/api/./state",
        "/x/../api/state",
        "/x/%2e%2e/api/state",
        "/api%2fstate",
        "/API/state",
        "/api/state.",
        "/api",
        "/api/",
        "/healthz/../api/state",
    ] {
        let status = bench.status(getting(path)).await;
        assert!(
            matches!(status, StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED),
            "{path}: {status}"
        );
    }
    let browser = bench.login().await;
    for path in [
        "/api//state",
        "/api/%73tate",
        "/api/state/",
        "/API/state",
        "/api/conversations/%2e%2e/history",
        "/api/conversations/chat%2d0001/history",
        "/api/conversations/a/history",
    ] {
        assert_eq!(bench.status(browser.get(path)).await, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn atk_012_a_conversation_id_names_nothing_outside_this_account() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    bench.ask(browser.get("/api/conversations/telegram-12345/history")).await;
    let asked = bench.shelf.asked.lock().unwrap();
    assert!(asked.iter().all(|at| at.account.as_str() == "web" && at.chat.kind == ChatKind::Dm));
}

#[tokio::test(start_paused = true)]
async fn atk_013_guessing_is_rebuffed_for_a_minute() {
    let bench = Bench::new().await;
    for _ in 0..10 {
        assert_eq!(bench.hand_in("wrong").await.status(), StatusCode::UNAUTHORIZED);
    }
    tokio::time::advance(Duration::from_secs(20)).await;
    let refused = bench.hand_in("wrong").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "40");
    // A second credential beside it does not help.
    let wrong = posting("/api/login", &json!({ "token": "wrong" }));
    let decorated = with(wrong, "cookie", "talaria-login=x");
    assert_eq!(bench.status(decorated).await, StatusCode::TOO_MANY_REQUESTS);
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(bench.hand_in("wrong").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn atk_013_whoever_guesses_behind_the_same_proxy_does_not_shut_the_operator_out() {
    let bench = Bench::new().await;
    let (before, token) = (bench.login().await, mint_login(bench.folder.path()).unwrap());
    for _ in 0..1_000 {
        bench.hand_in("wrong").await;
    }
    assert_eq!(bench.hand_in("wrong").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(bench.hand_in(&token).await.status(), StatusCode::NO_CONTENT);
    // It was used up all the same, and makes no room for further guesses.
    assert_eq!(bench.hand_in(&token).await.status(), StatusCode::TOO_MANY_REQUESTS);
    let fresh = bench.login().await;
    for browser in [before, fresh] {
        assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::OK);
    }
}

/// A login whose body never ends.
fn endless_login() -> Request<Body> {
    let mut request = posting("/api/login", &json!({}));
    *request.body_mut() = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    request
}

#[tokio::test(start_paused = true)]
async fn atk_013_a_login_is_listened_to_for_no_more_than_a_token() {
    let bench = Bench::new().await;
    let large = || posting("/api/login", &json!({ "token": "x".repeat(5000) }));
    assert_eq!(bench.status(large()).await, StatusCode::PAYLOAD_TOO_LARGE);
    for _ in 0..20 {
        bench.hand_in("wrong").await;
    }
    assert_eq!(bench.status(large()).await, StatusCode::PAYLOAD_TOO_LARGE);
    // Whether it is a right one shows only when it is there.
    assert_eq!(bench.status(endless_login()).now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn only_the_body_of_somebody_who_is_logged_in_may_take_its_time() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let hurried = async |mut request: Request<Body>| {
        let hurry = Hurry::default();
        request.extensions_mut().insert(hurry.clone());
        bench.ask(request).await;
        !hurry.is_waived()
    };
    assert!(!hurried(browser.post("/api/files", &json!({}))).await);
    assert!(hurried(posting("/api/files", &json!({}))).await, "no login");
    assert!(hurried(posting("/api/login", &json!({ "token": "wrong" }))).await, "a login");
    let forged = without(browser.post("/api/files", &json!({})), "x-talaria-csrf");
    assert!(hurried(forged).await, "another page");
}

#[tokio::test(start_paused = true)]
async fn atk_014_nobody_shuts_the_operator_out_alone_and_all_together_have_a_budget() {
    let bench = Bench::new().await;
    let from = |number: u32, token: &str| {
        let mut request = posting("/api/login", &json!({ "token": token }));
        request.extensions_mut().insert(Peer::of(std::net::Ipv4Addr::from_bits(number).into()));
        request
    };
    for _ in 0..50 {
        bench.ask(from(1, "wrong")).await;
    }
    assert_eq!(bench.status(from(1, "wrong")).await, StatusCode::TOO_MANY_REQUESTS);
    let token = mint_login(bench.folder.path()).unwrap();
    assert_eq!(bench.status(from(2, &token)).await, StatusCode::NO_CONTENT);
    let mut told = 0;
    for peer in 3..1_000 {
        told += u32::from(bench.status(from(peer, "wrong")).await == StatusCode::UNAUTHORIZED);
    }
    assert_eq!(told, 290, "beside the ten of the first");
    for peer in [1, 2, 1_000] {
        let token = mint_login(bench.folder.path()).unwrap();
        assert_eq!(bench.status(from(peer, &token)).await, StatusCode::NO_CONTENT, "{peer}");
    }
}

#[tokio::test(start_paused = true)]
async fn atk_013_right_tokens_are_not_counted_as_guesses() {
    let bench = Bench::new().await;
    for _ in 0..30 {
        bench.login().await;
    }
}

#[tokio::test(start_paused = true)]
async fn atk_015_attempts_at_the_same_moment_share_one_budget() {
    let bench = Bench::new().await;
    let attempts = (0..50).map(|_| bench.hand_in("wrong"));
    let answers = futures::future::join_all(attempts).await;
    let told = answers.iter().filter(|one| one.status() == StatusCode::UNAUTHORIZED).count();
    assert_eq!(told, 10);
}

#[tokio::test(start_paused = true)]
async fn atk_015_a_token_raced_by_many_lets_one_in() {
    let bench = Bench::new().await;
    let token = mint_login(bench.folder.path()).unwrap();
    let answers = futures::future::join_all((0..8).map(|_| bench.hand_in(&token))).await;
    let let_in = answers.iter().filter(|one| one.status() == StatusCode::NO_CONTENT).count();
    assert_eq!(let_in, 1);
}

#[tokio::test(start_paused = true)]
async fn atk_017_logging_out_ends_every_login_and_every_stream() {
    let bench = Bench::new().await;
    let (one, other) = (bench.login().await, bench.login().await);
    let mut page = Page::open(&bench, &other).await;
    let answer = bench.ask(one.post("/api/logout", &json!({}))).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    let cleared = answer.headers()[header::SET_COOKIE].to_str().unwrap();
    assert!(cleared.starts_with("talaria-login-8790=;") && cleared.contains("Max-Age=0"));
    assert!(bytes_of(answer).await.is_empty(), "it arrives, and whole");
    assert_eq!(page.next().await, None);
    for browser in [one, other] {
        assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
    }
    bench.login().await;
}

#[tokio::test(start_paused = true)]
async fn atk_017_no_stream_that_is_being_opened_misses_that_every_login_is_ended() {
    for looks in 0.. {
        let bench = Bench::new().await;
        let (stolen, own) = (bench.login().await, bench.login().await);
        let (routes, logout) = (bench.routes.clone(), own.post("/api/logout", &json!({})));
        bench.clock.behind(looks, move || {
            let answer = routes.oneshot(logout).now_or_never().expect("nothing is waited for");
            assert_eq!(answer.unwrap().status(), StatusCode::NO_CONTENT);
        });
        let mut page = Page::reading(bench.ask(stolen.get("/api/events")).await);
        if bench.clock.is_due() {
            assert!(looks > 0, "opening a stream takes a look at the clock");
            break;
        }
        assert_eq!(page.next().now_or_never(), Some(None), "behind {looks} looks at the clock");
    }
}

/// How a login comes to its end.
#[derive(Debug, Clone, Copy)]
enum End {
    LoggedOut,
    Expired,
}

impl End {
    async fn come(self, bench: &Bench, browser: &Browser) {
        match self {
            Self::LoggedOut => {
                let logout = browser.post("/api/logout", &json!({}));
                assert_eq!(bench.status(logout).await, StatusCode::NO_CONTENT);
            }
            Self::Expired => tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await,
        }
    }
}

/// Everything that somebody who is logged in can say.
fn everything_said(browser: &Browser) -> Vec<Request<Body>> {
    let said = every_request(browser).into_iter().filter(|request| {
        *request.method() == Method::POST && request.uri().path() != "/api/logout"
    });
    said.map(|request| with(request, "x-file-name", "notes.txt")).collect()
}

#[tokio::test(start_paused = true)]
async fn atk_017_what_is_still_being_said_when_the_login_ends_is_not_heard() {
    let kinds = everything_said(&Bench::new().await.login().await).len();
    for (kind, end, is_finished) in (0..kinds).flat_map(|kind| {
        let ends = [End::LoggedOut, End::Expired];
        ends.into_iter().flat_map(move |end| [true, false].map(|finished| (kind, end, finished)))
    }) {
        let mut bench = Bench::with(Settings { session_days: 1 }).await;
        let browser = bench.login().await;
        let (head, body) = everything_said(&browser).remove(kind).into_parts();
        let what = format!("{} {end:?}, finished: {is_finished}", head.uri);
        let words = to_bytes(body, usize::MAX).await.unwrap();
        let (rest, coming) = mpsc::unbounded::<Result<Bytes, std::io::Error>>();
        let request = Request::from_parts(head, Body::from_stream(coming));
        let mut answer = bench.routes.clone().oneshot(request);
        assert!((&mut answer).now_or_never().is_none(), "{what}: there is more to come");
        end.come(&bench, &browser).await;
        if is_finished {
            rest.unbounded_send(Ok(words)).unwrap();
            rest.close_channel();
        }
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{what}: it is waited for")).unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{what}");
        assert!(bench.arrivals.next().now_or_never().is_none(), "{what}");
        assert!(bench.shelf.files.lock().unwrap().is_empty(), "{what}");
        assert_eq!(bench.desk.decided(), [], "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn atk_017_a_download_breaks_off_with_its_login() {
    for end in [End::LoggedOut, End::Expired] {
        let bench = Bench::with(Settings { session_days: 1 }).await;
        let browser = bench.login().await;
        let file = FileId::literal("00ff");
        let bytes = Bytes::from_static(b"a file of many pieces");
        bench.shelf.files.lock().unwrap().insert(file, bytes);
        let answer = bench.ask(browser.get("/api/files/00ff")).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let mut pieces = answer.into_body().into_data_stream();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "a");
        end.come(&bench, &browser).await;
        // An end like any other would make what there is of it the whole file.
        assert!(pieces.next().await.unwrap().is_err(), "{end:?}");
        assert!(pieces.next().await.is_none(), "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn atk_017_a_stream_ends_with_its_login() {
    let bench = Bench::with(Settings { session_days: 1 }).await;
    let browser = bench.login().await;
    let mut page = Page::open(&bench, &browser).await;
    tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
    assert_eq!(page.next().await, None);
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn atk_018_a_credential_in_an_address_is_refused() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    for path in ["/?token=x", "/?login=x", "/api/state?access_token=x", "/api/search?q=a&TOKEN=x"] {
        assert_eq!(bench.status(browser.get(path)).await, StatusCode::BAD_REQUEST, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn atk_020_who_is_not_logged_in_learns_nothing() {
    let bench = Bench::new().await;
    let nobody = Browser { cookie: "talaria-login-8790=AAAA".into(), token: "AAAA".into() };
    for request in every_request(&nobody) {
        let what = format!("{} {}", request.method(), request.uri());
        let response = bench.ask(request).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{what}");
        assert_eq!(&bytes_of(response).await[..], br#"{"error":"log in first"}"#, "{what}");
    }
    for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::POST] {
        let request = nobody.builder(method.clone(), "/").body(Body::empty()).unwrap();
        assert_eq!(bench.status(request).await, StatusCode::UNAUTHORIZED, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn atk_021_every_answer_carries_the_protective_headers() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut requests = every_request(&browser);
    requests.extend(["/", "/app.js", "/nothing", "/api/nothing", "/%00"].map(getting));
    requests.push(with(getting("/"), "host", "evil.example"));
    for request in requests {
        let what = format!("{} {}", request.method(), request.uri());
        let api = request.uri().path().starts_with("/api");
        // Whatever waits for the gateway is refused in the end, and that answer counts as well.
        let response = bench.ask(request).await;
        let header =
            |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let policy = header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'"), "{what}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{what}: {policy}");
        assert!(!policy.contains("unsafe"), "{what}: {policy}");
        assert_eq!(header("x-content-type-options"), Some("nosniff"), "{what}");
        assert_eq!(header("referrer-policy"), Some("no-referrer"), "{what}");
        assert_eq!(header("cross-origin-opener-policy"), Some("same-origin"), "{what}");
        if api {
            assert_eq!(header("cache-control"), Some("no-store"), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn atk_022_what_is_too_large_is_not_read() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let large = browser.say(&"x".repeat(300 * 1024));
    assert_eq!(bench.status(large).await, StatusCode::PAYLOAD_TOO_LARGE);
    let declared = browser
        .builder(Method::POST, "/api/files")
        .header("x-talaria-csrf", &browser.token)
        .header("x-file-name", "big")
        .header(header::CONTENT_LENGTH, 26 * 1024 * 1024)
        .body(Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()))
        .unwrap();
    assert_eq!(bench.status(declared).await, StatusCode::PAYLOAD_TOO_LARGE);
    let packed = with(browser.say("hi"), "content-encoding", "gzip");
    assert_eq!(bench.status(packed).await, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test(start_paused = true)]
async fn atk_022_only_so_many_pages_are_open_at_once() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut pages = Vec::new();
    for _ in 0..32 {
        pages.push(Page::open(&bench, &browser).await);
    }
    let one_more = || bench.status(browser.get("/api/events"));
    assert_eq!(one_more().await, StatusCode::SERVICE_UNAVAILABLE);
    pages.pop();
    assert_eq!(one_more().await, StatusCode::OK);
}
