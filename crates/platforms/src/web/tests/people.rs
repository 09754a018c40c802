//! Who is let in elsewhere, decided on the page, and what is recorded of the page itself.

use talaria_model::{Reach, SenderId};
use talaria_platform::{Asking, Decided, Decision, DeskError, Guest, Lobby, Peer, Visit};

use super::*;

const CODE: &str = "ABCD2345";

/// A desk at which Ann asks and Ben is a guest, and which notes what it is asked to do.
#[derive(Default)]
pub(super) struct FrontDesk {
    decided: Mutex<Vec<(AccountId, Decision)>>,
    visits: Mutex<Vec<Visit>>,
    is_down: Mutex<bool>,
}

impl FrontDesk {
    fn check(&self) -> Result<(), DeskError> {
        match *self.is_down.lock().unwrap() {
            true => Err(DeskError::Unavailable("the disk is full".into())),
            false => Ok(()),
        }
    }

    pub(super) fn decided(&self) -> Vec<(AccountId, Decision)> {
        self.decided.lock().unwrap().clone()
    }

    fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap().clone()
    }
}

#[async_trait]
impl Desk for FrontDesk {
    async fn lobbies(&self) -> Result<Vec<Lobby>, DeskError> {
        self.check()?;
        let guest = |number: i64| Guest {
            sender: SenderId::new(format!("ben-{number}")).unwrap(),
            name: None,
            since: Timestamp::from_millis(number),
            by: "web:operator".into(),
            reach: Reach::Everywhere,
        };
        Ok(vec![Lobby {
            account: AccountId::literal("telegram"),
            platform: "Telegram",
            asking: vec![Asking {
                sender: SenderId::literal("77"),
                name: Some("<b>Ann</b>".into()),
                asked: Timestamp::from_millis(5),
                expires: Timestamp::from_millis(3_600_005),
            }],
            codes: Vec::new(),
            guests: (0..203).rev().map(guest).collect(),
            locked_until: None,
        }])
    }

    async fn decide(&self, account: &AccountId, decision: Decision) -> Result<Decided, DeskError> {
        self.check()?;
        if account.as_str() != "telegram" {
            return Err(DeskError::NoAccount(account.clone()));
        }
        self.decided.lock().unwrap().push((account.clone(), decision.clone()));
        match decision {
            Decision::Approve(code, _) if code != CODE => {
                Err(DeskError::Refused("No open request has that code.".into()))
            }
            Decision::Approve(..) => {
                Ok(Decided { told: r"`77` (a\_b) is let in on `telegram`.".into(), code: None })
            }
            Decision::Issue(_) => {
                Ok(Decided { told: format!("Pairing code: `{CODE}`."), code: Some(CODE.into()) })
            }
            Decision::Revoke(_) | Decision::Clear => {
                Ok(Decided { told: "Done.".into(), code: None })
            }
        }
    }

    async fn record(&self, visit: Visit) -> Result<(), DeskError> {
        self.check()?;
        self.visits.lock().unwrap().push(visit);
        Ok(())
    }
}

fn approve(code: &str) -> Value {
    json!({ "verb": "approve", "code": code, "reach": "direct" })
}

const TELEGRAM: &str = "/api/people/telegram";

#[tokio::test(start_paused = true)]
async fn the_page_is_told_who_asks_and_who_was_let_in_and_never_more_than_it_can_show() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let people = json_of(bench.ask(browser.get("/api/people")).await).await;
    let account = &people["accounts"][0];
    assert_eq!(account["account"], "telegram");
    assert_eq!(account["platform"], "Telegram");
    let ann = json!({ "sender": "77", "name": "<b>Ann</b>", "asked": 5, "expires": 3_600_005 });
    assert_eq!(account["asking"], json!([ann]));
    let guests = account["guests"].as_array().unwrap();
    assert_eq!((guests.len(), &account["others"]), (200, &json!(3)));
    let latest = json!({
        "sender": "ben-202", "name": null, "since": 202, "by": "web:operator", "reach": "everywhere",
    });
    assert_eq!(guests[0], latest);
}

#[tokio::test(start_paused = true)]
async fn nobody_who_is_not_logged_in_learns_or_decides_anything() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    assert_eq!(bench.status(getting("/api/people")).await, StatusCode::UNAUTHORIZED);
    assert_eq!(bench.status(posting(TELEGRAM, &approve(CODE))).await, StatusCode::UNAUTHORIZED);
    let forged = [
        Browser { token: String::new(), ..browser.clone() },
        Browser { token: "AAAA".into(), ..browser.clone() },
    ];
    for forged in forged {
        let status = bench.status(forged.post(TELEGRAM, &approve(CODE))).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
    }
    for (name, value) in [
        (header::ORIGIN, "https://evil.example"),
        (http::HeaderName::from_static("sec-fetch-site"), "cross-site"),
    ] {
        for mut request in [browser.get("/api/people"), browser.post(TELEGRAM, &approve(CODE))] {
            request.headers_mut().insert(name.clone(), value.parse().unwrap());
            assert_eq!(bench.status(request).await, StatusCode::FORBIDDEN, "{value}");
        }
    }
    let mut elsewhere = browser.post(TELEGRAM, &approve(CODE));
    elsewhere.headers_mut().insert(header::HOST, "evil.example".parse().unwrap());
    assert_eq!(bench.status(elsewhere).await, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(bench.desk.decided(), []);
}

#[tokio::test(start_paused = true)]
async fn every_decision_reaches_the_desk_and_is_answered_in_its_words() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let decide = async |wish: Value| {
        let response = bench.ask(browser.post(TELEGRAM, &wish)).await;
        (response.status(), json_of(response).await)
    };
    let wrong = decide(approve("WRONG234")).await;
    let told = json!({ "error": "No open request has that code." });
    assert_eq!(wrong, (StatusCode::CONFLICT, told));
    let right = decide(approve(CODE)).await;
    assert_eq!(right, (StatusCode::OK, json!({ "told": "77 (a_b) is let in on telegram." })));
    let issued = decide(json!({ "verb": "issue", "reach": "everywhere" })).await;
    let told = json!({ "told": format!("Pairing code: {CODE}."), "code": CODE });
    assert_eq!(issued, (StatusCode::OK, told));
    let done = (StatusCode::OK, json!({ "told": "Done." }));
    assert_eq!(decide(json!({ "verb": "revoke", "sender": "77" })).await, done);
    assert_eq!(decide(json!({ "verb": "clear" })).await, done);
    let decided: Vec<_> = bench.desk.decided().into_iter().map(|(_, decision)| decision).collect();
    let expected = [
        Decision::Approve("WRONG234".into(), Reach::Direct),
        Decision::Approve(CODE.into(), Reach::Direct),
        Decision::Issue(Reach::Everywhere),
        Decision::Revoke(SenderId::literal("77")),
        Decision::Clear,
    ];
    assert_eq!(decided, expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_decision_is_refused_before_the_desk_hears_of_it() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    let cases = [
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({ "verb": "burn" }), StatusCode::BAD_REQUEST),
        (json!({ "verb": "clear", "reach": "direct" }), StatusCode::BAD_REQUEST),
        (json!({ "verb": "approve", "code": CODE }), StatusCode::BAD_REQUEST),
        (json!({ "verb": "issue", "reach": "moon" }), StatusCode::BAD_REQUEST),
        (json!({ "verb": "revoke", "sender": "" }), StatusCode::BAD_REQUEST),
        (json!({ "verb": "revoke", "sender": "a\nb" }), StatusCode::BAD_REQUEST),
        (json!({ "verb": "revoke", "sender": "x".repeat(513) }), StatusCode::BAD_REQUEST),
        (approve(&"A".repeat(5000)), StatusCode::PAYLOAD_TOO_LARGE),
    ];
    for (wish, expected) in cases {
        assert_eq!(bench.status(browser.post(TELEGRAM, &wish)).await, expected, "{wish}");
    }
    let elsewhere = browser.post("/api/people/nowhere", &approve(CODE));
    assert_eq!(bench.status(elsewhere).await, StatusCode::NOT_FOUND);
    assert_eq!(bench.desk.decided(), []);
}

#[tokio::test(start_paused = true)]
async fn a_page_without_a_desk_has_nobody_to_let_in() {
    let bench = Bench::new().await.without_a_desk().await;
    let browser = bench.login().await;
    assert_eq!(bench.status(browser.get("/api/people")).await, StatusCode::NOT_FOUND);
    let decided = browser.post(TELEGRAM, &approve(CODE));
    assert_eq!(bench.status(decided).await, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_desk_that_does_not_answer_is_said_so_and_nothing_is_decided() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    *bench.desk.is_down.lock().unwrap() = true;
    for request in [browser.get("/api/people"), browser.post(TELEGRAM, &approve(CODE))] {
        assert_eq!(bench.status(request).await, StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(bench.desk.decided(), []);
}

#[tokio::test(start_paused = true)]
async fn who_comes_and_goes_is_recorded() {
    let bench = Bench::new().await;
    let peer = Peer::of([192, 0, 2, 1].into());
    let token = mint_login(bench.folder.path()).unwrap();
    let mut login = posting("/api/login", &json!({ "token": token }));
    login.extensions_mut().insert(peer);
    assert_eq!(bench.status(login).await, StatusCode::NO_CONTENT);
    assert_eq!(bench.hand_in("wrong").await.status(), StatusCode::UNAUTHORIZED);
    let browser = bench.login().await;
    let logout = browser.post("/api/logout", &json!({}));
    assert_eq!(bench.status(logout).await, StatusCode::NO_CONTENT);
    let expected = [Visit::LoggedIn(Some(peer)), Visit::LoggedIn(None), Visit::LoggedOut];
    assert_eq!(bench.desk.visits(), expected);
}

#[tokio::test(start_paused = true)]
async fn refused_logins_are_recorded_once_in_a_minute() {
    let bench = Bench::new().await;
    let guess = async |times: usize| {
        for _ in 0..times {
            bench.hand_in("wrong").await;
        }
    };
    guess(10).await;
    assert_eq!(bench.desk.visits(), [], "wrong tokens alone are nobody's news");
    guess(500).await;
    assert_eq!(bench.desk.visits(), [Visit::Rebuffed(None)]);
    tokio::time::advance(Duration::from_secs(60)).await;
    guess(500).await;
    assert_eq!(bench.desk.visits().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_comes_in_without_a_record_and_everybody_can_be_sent_away_without_one() {
    let bench = Bench::new().await;
    let browser = bench.login().await;
    *bench.desk.is_down.lock().unwrap() = true;
    let token = mint_login(bench.folder.path()).unwrap();
    let refused = bench.hand_in(&token).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(!refused.headers().contains_key(header::SET_COOKIE));
    let logout = browser.post("/api/logout", &json!({}));
    assert_eq!(bench.status(logout).await, StatusCode::NO_CONTENT);
    assert_eq!(bench.status(browser.get("/api/state")).await, StatusCode::UNAUTHORIZED);
}
