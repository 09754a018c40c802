//! A platform that takes every request and answers none any more, in real time.

use std::time::Duration;

use serde_json::Value;
use talaria_clock::{Clock, SystemClock};
use talaria_testkit::scripted::{Fault, Reply};
use talaria_testkit::vendors::{Verb, telegram};
use talaria_testkit::{VendorSettings, within};

use crate::rig::{HANGS, Rig, run};

/// How long anybody may be unheard before something is done about it.
const LONGEST: Duration = Duration::from_secs(60);

fn says<'a>(text: &'a str) -> impl Fn(&telegram::Truth) -> bool + 'a {
    let is_it = move |message: &Value| message["text"].as_str().is_some_and(|it| it.contains(text));
    move |truth| truth.messages.values().any(is_it)
}

#[tokio::test]
async fn a_platform_that_goes_silent_is_noticed_connected_anew_and_told_of_within_a_minute() {
    let telegram = telegram::Vendor::open().await;
    telegram.truth().keeps_time = true;
    let mut rig =
        Rig::new(VendorSettings::default(), &["allow_admin_from: [operator-person]"]).await;
    let before = std::fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let account = format!(
        "accounts:\n  family:\n    platform: telegram\n    token: \"{}\"\n    base_url: \"{}\"\n    \
         allow: [7]\n",
        telegram::TOKEN,
        telegram.url
    );
    rig.home.write("config.yaml", &before.replace("accounts:\n", &account)).unwrap();
    rig.start().await;
    rig.vendor.say_plainly("operator", "/sethome");
    rig.until("a home", |truth| truth.shown_in("operator").count() == 1).await;

    // The poll that is under way hears this, and the one after it never comes to an end.
    let mut polls = 0;
    telegram.conduct(move |act| {
        polls += u32::from(act.verb == Verb::Listen);
        (act.verb == Verb::Listen && polls == 1).then_some(Fault::Instead(Reply::Silence))
    });
    let connected = telegram.asked("getMe").len();
    telegram.push(telegram.said(7, "the last that is heard"));
    within(HANGS, "an answer", telegram.until(says("the last that is heard"))).await;
    let silent = SystemClock.mark();
    telegram.push(telegram.said(7, "is anybody there?"));
    let answered = telegram.until(says("is anybody there?"));
    within(LONGEST, "what was said in the gap to be answered", answered).await;
    let took = SystemClock.mark().since(silent);
    assert!(took > Duration::from_secs(30), "nobody was deaf: {took:?}");
    assert_eq!(telegram.asked("getMe").len(), connected + 1, "it was connected anew, once");

    rig.until("word of it", |truth| truth.shown_in("operator").count() == 2).await;
    let told = rig.vendor.read(|truth| truth.shown_in("operator").last().unwrap().text.clone());
    assert!(told.contains("`family` was connected but deaf for"), "{told}");
    let log = rig.process().output();
    assert!(log.contains("connected, but deaf; another connection is made"), "{log}");
    let (_, output) = run(rig.home.path(), &["platforms"]).await;
    let family = output.lines().find(|line| line.starts_with("family"));
    assert!(family.is_some_and(|line| line.contains("connected")), "{output}");
    let (_, metrics) = run(rig.home.path(), &["metrics"]).await;
    for counted in ["{account=\"family\"} 1\n", "{account=\"bench\"} 0\n"] {
        let line = format!("talaria_account_deafnesses_total{counted}");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}
