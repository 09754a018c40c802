//! Getting in, and staying in.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::web::{OF_THE_MOMENT, end_logins};

fn outstanding(bench: &Bench) -> usize {
    fs::read_dir(bench.folder.path().join("logins")).unwrap().count()
}

#[tokio::test(start_paused = true)]
async fn a_token_works_once() {
    let bench = Bench::new().await;
    let token = mint_login(bench.folder.path()).unwrap();
    assert_eq!(bench.hand_in(&token).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(bench.hand_in(&token).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_token_expires_after_ten_minutes() {
    let bench = Bench::new().await;
    let (early, late) =
        (mint_login(bench.folder.path()).unwrap(), mint_login(bench.folder.path()).unwrap());
    tokio::time::advance(Duration::from_secs(9 * 60)).await;
    assert_eq!(bench.hand_in(&early).await.status(), StatusCode::NO_CONTENT);
    tokio::time::advance(Duration::from_secs(2 * 60)).await;
    assert_eq!(bench.hand_in(&late).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_seventeenth_token_ends_the_oldest() {
    let bench = Bench::new().await;
    let oldest = mint_login(bench.folder.path()).unwrap();
    // File systems date files in steps; five minutes leave no doubt which is the oldest.
    for file in fs::read_dir(bench.folder.path().join("logins")).unwrap() {
        let file = fs::File::open(file.unwrap().path()).unwrap();
        let made = file.metadata().unwrap().modified().unwrap();
        file.set_modified(made - Duration::from_secs(300)).unwrap();
    }
    for _ in 0..15 {
        mint_login(bench.folder.path()).unwrap();
    }
    assert_eq!(outstanding(&bench), 16);
    let newest = mint_login(bench.folder.path()).unwrap();
    assert_eq!(outstanding(&bench), 16);
    assert_eq!(bench.hand_in(&oldest).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(bench.hand_in(&newest).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn expired_tokens_are_swept_away() {
    let bench = Bench::new().await;
    mint_login(bench.folder.path()).unwrap();
    for file in fs::read_dir(bench.folder.path().join("logins")).unwrap() {
        let file = fs::File::open(file.unwrap().path()).unwrap();
        let made = file.metadata().unwrap().modified().unwrap();
        file.set_modified(made - Duration::from_secs(11 * 60)).unwrap();
    }
    mint_login(bench.folder.path()).unwrap();
    assert_eq!(outstanding(&bench), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_never_written_down_and_others_cannot_look() {
    let bench = Bench::new().await;
    let token = mint_login(bench.folder.path()).unwrap();
    assert_eq!(token.len(), 43, "256 bits");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let logins = bench.folder.path().join("logins");
    assert_eq!(mode(&logins), 0o700);
    for file in fs::read_dir(&logins).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600);
        assert!(!path.to_str().unwrap().contains(&token));
        assert!(fs::read(&path).unwrap().is_empty());
    }
    assert_eq!(mode(&bench.folder.path().join("login.key")), 0o600);
}

#[tokio::test(start_paused = true)]
async fn the_cookie_is_out_of_reach_for_scripts_and_other_sites() {
    let bench = Bench::new().await;
    let token = mint_login(bench.folder.path()).unwrap();
    let response = bench.hand_in(&token).await;
    let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
    let (name_and_value, attributes) = cookie.split_once("; ").unwrap();
    assert!(name_and_value.starts_with("talaria-login-8790="));
    assert_eq!(attributes, "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict");
}

/// What the page is called behind a proxy that speaks HTTPS.
const NAME: &str = "talaria.example";

/// A browser that has logged in by way of that proxy, and the cookie as it was set.
async fn logged_in_encrypted(bench: &Bench) -> (Browser, String) {
    let token = mint_login(bench.folder.path()).unwrap();
    let login = with(posting("/api/login", &json!({ "token": token })), "host", NAME);
    let login = with(login, "origin", "https://talaria.example");
    let response = bench.ask(with(login, "sec-fetch-site", "same-origin")).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let set = response.headers()[header::SET_COOKIE].to_str().unwrap().to_owned();
    let cookie = set.split(';').next().unwrap().to_owned();
    (Browser { cookie, token: String::new() }, set)
}

#[tokio::test(start_paused = true)]
async fn over_https_the_cookie_is_for_this_host_alone_and_never_goes_in_the_clear() {
    let bench = Bench::named(&[NAME]).await;
    let (mut browser, set) = logged_in_encrypted(&bench).await;
    let (name_and_value, attributes) = set.split_once("; ").unwrap();
    assert!(name_and_value.starts_with("__Host-talaria-login="), "{set}");
    assert_eq!(attributes, "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure");
    let read = with(browser.get("/api/state"), "host", NAME);
    let state = json_of(bench.ask(with(read, "sec-fetch-site", "same-origin")).await).await;
    browser.token = state["csrf"].as_str().unwrap().to_owned();
    // It ends as it began: a browser lets nothing but an encrypted cookie replace this one.
    let logout = with(browser.post("/api/logout", &json!({})), "host", NAME);
    let ended = bench.ask(with(logout, "origin", "https://talaria.example")).await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    let removed = "__Host-talaria-login=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure";
    assert_eq!(ended.headers()[header::SET_COOKIE], removed);
}

#[tokio::test(start_paused = true)]
async fn atk_070_over_https_a_cookie_that_anybody_could_have_planted_is_no_login() {
    let bench = Bench::named(&[NAME]).await;
    let (browser, _) = logged_in_encrypted(&bench).await;
    let value = browser.cookie.split_once('=').unwrap().1;
    let planted = Browser { cookie: format!("talaria-login={value}"), ..browser.clone() };
    for (name, said) in [
        ("sec-fetch-site", "same-origin"),
        ("origin", "https://talaria.example"),
        ("x-forwarded-proto", "https"),
    ] {
        let asked =
            |browser: &Browser| with(with(browser.get("/api/state"), "host", NAME), name, said);
        assert_eq!(bench.status(asked(&planted)).await, StatusCode::UNAUTHORIZED, "{name}");
        assert_eq!(bench.status(asked(&browser)).await, StatusCode::OK, "{name}");
        // One that was planted beside it does not keep the operator out.
        let both =
            Browser { cookie: format!("talaria-login=x; {}", browser.cookie), ..browser.clone() };
        assert_eq!(bench.status(asked(&both)).await, StatusCode::OK, "{name}");
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Asks for something, and keeps the cookie that comes with the answer.
async fn use_once(bench: &Bench, browser: &mut Browser) -> (StatusCode, bool) {
    let response = bench.ask(browser.get("/api/state")).await;
    let set =
        response.headers().get(header::SET_COOKIE).map(|set| set.to_str().unwrap().to_owned());
    if let Some(set) = &set {
        browser.cookie = set.split(';').next().unwrap().to_owned();
    }
    (response.status(), set.is_some())
}

#[tokio::test(start_paused = true)]
async fn atk_070_a_login_that_is_not_used_for_a_week_is_over() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    tokio::time::advance(7 * DAY - Duration::from_secs(1)).await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::OK);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_used_lasts_until_its_last_day_and_no_longer() {
    let bench = Bench::new().await;
    let mut browser = bench.login().await;
    let last = bench.now() + 30 * DAY;
    for _ in 0..4 {
        tokio::time::advance(7 * DAY - Duration::from_secs(2)).await;
        assert_eq!(use_once(&bench, &mut browser).await, (StatusCode::OK, true));
        // Once is enough for a day.
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(use_once(&bench, &mut browser).await, (StatusCode::OK, false));
    }
    tokio::time::advance(last.since(bench.now()) - Duration::from_secs(1)).await;
    assert_eq!(use_once(&bench, &mut browser).await, (StatusCode::OK, false));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(use_once(&bench, &mut browser).await, (StatusCode::UNAUTHORIZED, false));
}

#[tokio::test(start_paused = true)]
async fn a_login_is_prolonged_once_a_day_and_as_the_same_one() {
    let bench = Bench::new().await;
    let mut browser = bench.login().await;
    tokio::time::advance(DAY - Duration::from_secs(1)).await;
    assert_eq!(use_once(&bench, &mut browser).await, (StatusCode::OK, false));
    tokio::time::advance(Duration::from_secs(1)).await;
    let before = browser.clone();
    assert_eq!(use_once(&bench, &mut browser).await, (StatusCode::OK, true));
    assert_ne!(before.cookie, browser.cookie);
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::OK);
    let mut bench = bench;
    let said = bench.committing(browser.say("hi"), journalled()).await;
    assert_eq!(said.0, StatusCode::OK, "the page's token goes on with it");
}

#[tokio::test(start_paused = true)]
async fn logging_out_prolongs_nothing() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    tokio::time::advance(2 * DAY).await;
    let longer = bench.ask(browser.get("/api/state")).await;
    let longer = longer.headers()[header::SET_COOKIE].to_str().unwrap();
    let longer =
        Browser { cookie: longer.split(';').next().unwrap().to_owned(), ..browser.clone() };
    let ended = bench.ask(browser.post("/api/logout", &json!({}))).await;
    let removed = "talaria-login-8790=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict";
    assert_eq!(ended.headers()[header::SET_COOKIE], removed);
    for browser in [browser, longer] {
        assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_survives_a_restart() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let mut bench = bench.restarted().await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::OK);
    let (status, _, _) = bench.committing(browser.say("hi"), journalled()).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn no_login_and_no_token_outlasts_the_end_of_all() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let token = mint_login(bench.folder.path()).unwrap();
    end_logins(bench.folder.path()).unwrap();
    for left in OF_THE_MOMENT {
        assert!(!bench.folder.path().join(left).exists(), "{left}");
    }
    let bench = bench.restarted().await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
    assert_eq!(bench.hand_in(&token).await.status(), StatusCode::UNAUTHORIZED);
    let again = bench.login().await;
    assert_eq!(bench.status(again.get("/api/state")).await, StatusCode::OK);
    let nowhere = bench.folder.path().join("nowhere");
    end_logins(&nowhere).unwrap();
    assert!(!nowhere.exists(), "where nobody is logged in, nothing is to be ended");
}

#[tokio::test(start_paused = true)]
async fn a_login_ends_after_its_days() {
    let bench = Bench::with(Settings { session_days: 2 }).await;
    let browser = bench.login().await;
    tokio::time::advance(Duration::from_secs(2 * 24 * 60 * 60 - 60)).await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::OK);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn a_changed_cookie_is_no_login() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let (name, value) = browser.cookie.split_once('=').unwrap();
    for index in 0..value.len() {
        let mut changed = value.to_owned();
        let other = if &value[index..=index] == "A" { "E" } else { "A" };
        changed.replace_range(index..=index, other);
        let changed = Browser { cookie: format!("{name}={changed}"), ..browser.clone() };
        let status = bench.status(changed.get("/api/state")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "byte {index}");
    }
    for cookie in [format!("{name}="), name.to_owned(), format!("{name}={}", &value[1..])] {
        let changed = Browser { cookie, ..browser.clone() };
        assert_eq!(bench.status(changed.get("/api/state")).await, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cookie_of_another_gateway_on_the_same_host_does_not_hide_ours() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    for line in
        ["talaria-login-9999=x; {}", "{}; talaria-login-9999=x", "talaria-login-8790=junk; {}"]
    {
        let cookie = line.replace("{}", &browser.cookie);
        let shared = Browser { cookie, ..browser.clone() };
        assert_eq!(bench.status(shared.get("/api/state")).await, StatusCode::OK, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_others_could_read_or_that_is_cut_short_is_replaced() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let path = bench.folder.path().join("login.key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let bench = bench.restarted().await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
    let browser = bench.login().await;
    fs::write(&path, b"short").unwrap();
    let bench = bench.restarted().await;
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
    assert_eq!(fs::read(&path).unwrap().len(), 32);
}
