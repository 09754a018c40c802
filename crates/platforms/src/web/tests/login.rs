//! Getting in, and staying in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

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
    assert_eq!(attributes, "Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict");
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
