//! Requests that platforms send.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use talaria_testkit::vendors::slack::{event, said, ts};
use talaria_testkit::{Home, Launch};

use super::field::{
    CLUB_SECRET, Field, JSON, MISCONFIGURED, WORK_SECRET, ended, now, signature, signed,
};
use super::wire::Ask;

/// ATK-027: a platform that cannot prove itself is not listened to.
pub(super) fn without_a_secret_there_is_no_door(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let config = "accounts: {slack: {bot_token: xoxb-alone, allow: [U1]}}\n";
        is_not_started(field, config).await
    }
    .boxed()
}

/// A gateway whose Slack cannot prove itself listens nowhere, and says what is missing.
async fn is_not_started(field: &Field, config: &str) -> Result<()> {
    let home = Home::empty()?;
    home.write("config.yaml", config)?;
    let (code, output) = ended(Launch::new(&field.binary).start(home.path())?).await?;
    ensure!(
        code == MISCONFIGURED && output.contains("signing_secret"),
        "it ended with {code}: {output}"
    );
    ensure!(!output.contains("is ready"), "it listens: {output}");
    Ok(())
}

/// ATK-028, ATK-033: what is not signed, badly or twice, is refused, all of it alike, and leaves no trace: what is
/// genuine is heard behind it, under the same name.
pub(super) fn what_is_not_signed_is_refused(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let body = said(field.fresh(), "not signed").to_string();
        let (at, bytes) = (now(), body.as_bytes());
        let right = signature(WORK_SECRET, at, bytes);
        let plain = || Ask::post("/in/work", bytes).with("content-type", JSON);
        let timed = || plain().with("x-slack-request-timestamp", &at.to_string());
        let upper = format!("v0={}", right[3..].to_uppercase());
        let asked = field.model.requests();
        let mut answers = Vec::new();
        for ask in [
            plain(),
            timed(),
            plain().with("x-slack-signature", &right),
            timed().with("x-slack-signature", ""),
            timed().with("x-slack-signature", "v0="),
            timed().with("x-slack-signature", &right[..right.len() - 2]),
            timed().with("x-slack-signature", &right[3..]),
            timed().with("x-slack-signature", &upper),
            timed().with("x-slack-signature", &right.replace("v0=", "v1=")),
            timed().with("x-slack-signature", &signature(CLUB_SECRET, at, bytes)),
            timed().with("x-slack-signature", &signature("", at, bytes)),
            timed().with("x-slack-signature", &right).with("x-slack-signature", &right),
            timed().with("x-slack-signature", &right).with("x-slack-signature", "v0=00"),
            timed().with("x-slack-signature", &right).with("x-slack-request-timestamp", "1"),
        ] {
            let answer = field.ask(ask.clone()).await?;
            ensure!(answer.status == 401, "{ask:?} got {}", answer.status);
            answers.push(answer.body);
        }
        answers.dedup();
        ensure!(answers.len() == 1, "answers tell forgeries apart: {answers:?}");
        let genuine = field.ask(signed("work", WORK_SECRET, now(), bytes)).await?;
        ensure!(genuine.status == 200, "what is genuine got {}", genuine.status);
        let answered = field.model.until_requests(asked + 1);
        tokio::time::timeout(Duration::from_secs(30), answered).await.context("it is not heard")?;
        let turns = field.model.requests() - asked;
        ensure!(turns == 1, "{turns} turns began instead of 1");
        Ok(())
    }
    .boxed()
}

/// ATK-029: the signature is over the bytes as they came.
pub(super) fn the_bytes_are_what_is_signed(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let at = now();
        let body =
            format!("{}  ", event(json!({ "type": "unknown", "text": "grüße 漢 \u{1f600}" })));
        let genuine = field.ask(signed("work", WORK_SECRET, at, body.as_bytes())).await?;
        ensure!(genuine.status == 200, "what is genuine got {}", genuine.status);
        let value: serde_json::Value = serde_json::from_str(&body)?;
        let again = value.to_string();
        ensure!(again != body, "the body has another spelling");
        let signature = signature(WORK_SECRET, at, body.as_bytes());
        let spelled = Ask::post("/in/work", again.as_bytes())
            .with("content-type", JSON)
            .with("x-slack-request-timestamp", &at.to_string())
            .with("x-slack-signature", &signature);
        let answer = field.ask(spelled).await?;
        ensure!(answer.status == 401, "the same in other bytes got {}", answer.status);
        Ok(())
    }
    .boxed()
}

/// ATK-030, ATK-031: a replay is acknowledged and does nothing, whatever its headers look like and however the
/// same is spelled.
pub(super) fn a_replay_does_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let asked = field.model.requests();
        let body = said(field.fresh(), "say it once").to_string();
        let at = now();
        let first = field.ask(signed("work", WORK_SECRET, at, body.as_bytes())).await?;
        ensure!(first.status == 200, "the first got {}", first.status);
        let answered = field.model.until_requests(asked + 1);
        tokio::time::timeout(Duration::from_secs(30), answered).await.context("no turn began")?;
        let value: serde_json::Value = serde_json::from_str(&body)?;
        let mut renamed = value.clone();
        renamed["event_id"] = json!("EvOther");
        let spellings = [
            body.clone(),
            format!(" {body}\r\n"),
            serde_json::to_string_pretty(&value)?,
            body.replace("say it once", "\\u0073ay it on\\u0063e"),
            renamed.to_string(),
        ];
        for (later, spelling) in (0..).zip(spellings) {
            ensure!(later == 0 || spelling != body, "it is spelled as before: {spelling}");
            let retry = signed("work", WORK_SECRET, at + later, spelling.as_bytes());
            let retry = retry.with("x-slack-retry-num", &later.to_string());
            let answer = field.ask(retry).await?;
            ensure!(answer.status == 200, "{spelling} got {}", answer.status);
        }
        // What comes behind it has begun its turn by the time that is told.
        let last = said(field.fresh(), "and then this").to_string();
        field.ask(signed("work", WORK_SECRET, now(), last.as_bytes())).await?;
        let answered = field.model.until_requests(asked + 2);
        tokio::time::timeout(Duration::from_secs(30), answered).await.context("no turn began")?;
        let turns = field.model.requests() - asked;
        ensure!(turns == 2, "{turns} turns began instead of 2");
        Ok(())
    }
    .boxed()
}

/// ATK-032: what is older than five minutes may be somebody's recording.
pub(super) fn a_recording_is_refused(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let body = said(32, "long ago").to_string();
        for at in [now() - 310, now() - 86_400, now() + 310, 0, -1, i64::MAX] {
            let answer = field.ask(signed("work", WORK_SECRET, at, body.as_bytes())).await?;
            ensure!(answer.status == 401, "{at} got {}", answer.status);
        }
        Ok(())
    }
    .boxed()
}

/// ATK-035: headers of proxies change nothing of what is verified, nor whose secret it is verified by.
pub(super) fn forwarded_hosts_change_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let body = event(json!({ "type": "unknown", "text": "from elsewhere" })).to_string();
        let by = |ask: Ask| {
            ask.with("x-forwarded-host", "hooks.slack.com")
                .with("x-forwarded-proto", "https")
                .with("x-forwarded-prefix", "/in/club")
                .with("x-forwarded-uri", "/in/club")
                .with("x-original-url", "/in/club")
                .with("x-rewrite-url", "/in/club")
                .with("forwarded", "host=hooks.slack.com;proto=https")
        };
        for (secret, status) in [("", 401), (CLUB_SECRET, 401), (WORK_SECRET, 200)] {
            let answer = field.ask(by(signed("work", secret, now(), body.as_bytes()))).await?;
            ensure!(answer.status == status, "signed with {secret:?} it got {}", answer.status);
        }
        Ok(())
    }
    .boxed()
}

/// ATK-036: what is signed for one account is nothing to another.
pub(super) fn an_account_has_its_own_secret(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let body = said(36, "for the club").to_string();
        for (account, secret) in [("work", CLUB_SECRET), ("club", WORK_SECRET)] {
            let answer = field.ask(signed(account, secret, now(), body.as_bytes())).await?;
            ensure!(answer.status == 401, "{account} got {}", answer.status);
        }
        let nobody = field.ask(signed("nobody", WORK_SECRET, now(), body.as_bytes())).await?;
        ensure!(nobody.status == 404, "an unknown account got {}", nobody.status);
        Ok(())
    }
    .boxed()
}

/// ATK-040: strange JSON breaks nothing.
pub(super) fn strange_json_breaks_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        let keys: Vec<_> = (0..10_000).map(|number| format!("\"k{number}\":1")).collect();
        for body in [
            deep.clone(),
            format!("{{\"type\":\"event_callback\",\"event\":{deep}}}"),
            format!("{{{}}}", keys.join(",")),
            "{\"type\":\"event_callback\",\"type\":\"url_verification\"}".to_owned(),
            "{\"type\":1e999}".to_owned(),
            "{\"type\":\"\\ud800\"}".to_owned(),
            "\u{feff}{}".to_owned(),
            String::new(),
        ] {
            let answer = field.ask(signed("work", WORK_SECRET, now(), body.as_bytes())).await?;
            ensure!(answer.status < 500, "{:.40} got {}", body, answer.status);
        }
        let mut broken = said(40, "x").to_string().into_bytes();
        broken.extend_from_slice(b"\xff\xfe");
        let answer = field.ask(signed("work", WORK_SECRET, now(), &broken)).await?;
        ensure!(answer.status < 500, "what is no text got {}", answer.status);
        field.is_well().await
    }
    .boxed()
}

/// ATK-041: a challenge is answered to whoever knows the secret.
pub(super) fn a_challenge_needs_the_secret(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let body = json!({ "type": "url_verification", "challenge": "echo-me", "token": "x" });
        let body = body.to_string();
        let stranger = field.ask(Ask::post("/in/work", body.as_bytes()).with("content-type", JSON));
        let stranger = stranger.await?;
        ensure!(stranger.status == 401, "a stranger got {}", stranger.status);
        ensure!(!stranger.body.contains("echo-me"), "it is echoed");
        let genuine = field.ask(signed("work", WORK_SECRET, now(), body.as_bytes())).await?;
        ensure!(genuine.status == 200 && genuine.body.contains("echo-me"), "{genuine:?}");
        Ok(())
    }
    .boxed()
}

/// ATK-045, ATK-046, ATK-050: whatever a stranger sends begins nothing.
pub(super) fn strangers_begin_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let asked = field.model.requests();
        // Of two with the same name the second would begin nothing anyway, whoever sent it.
        let message = |user: serde_json::Value| {
            let mut said = said(field.fresh(), "let me in");
            said["event"]["user"] = user;
            said
        };
        let mention = |user: &str| {
            event(json!({ "type": "app_mention", "channel": "C1", "user": user,
                "text": "<@UBOT> hi", "ts": ts(field.fresh()), "team": "T1" }))
        };
        let say = |body: serde_json::Value| async move {
            let body = body.to_string();
            let status =
                field.ask(signed("work", WORK_SECRET, now(), body.as_bytes())).await?.status;
            ensure!(status < 500, "{body} got {status}");
            Ok(())
        };
        for body in [
            message(json!("U666")),
            message(json!("")),
            message(json!(null)),
            message(json!("u1")),
            message(json!("U1 ")),
            message(json!("U")),
            message(json!("U11")),
            message(json!("XU1")),
            mention("U666"),
            event(json!({ "type": "reaction_added", "user": "U666", "reaction": "thumbsup",
                "item": { "type": "message", "channel": "D1", "ts": "1700000030.000200" } })),
            event(json!({ "type": "message", "subtype": "message_changed", "channel": "D1",
                "channel_type": "im", "message": { "user": "U666", "text": "changed",
                "ts": ts(field.fresh()) } })),
        ] {
            say(body).await?;
        }
        // Whoever is let in is answered behind all of it, to what is no different otherwise.
        for body in [message(json!("U1")), mention("U1")] {
            say(body).await?;
        }
        let answered = field.model.until_requests(asked + 2);
        tokio::time::timeout(Duration::from_secs(30), answered).await.context("no turn began")?;
        let turns = field.model.requests() - asked;
        ensure!(turns == 2, "{turns} turns began instead of 2");
        Ok(())
    }
    .boxed()
}

/// ATK-034: what has no id is nobody's message, and an id of somebody else's suppresses nothing.
pub(super) fn an_id_suppresses_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let asked = field.model.requests();
        let mut genuine = said(field.fresh(), "hear me");
        let ts = genuine["event"]["ts"].clone();
        for (channel, ts) in [("D9", ts.clone()), ("D1", json!(null)), ("D1", json!("")), ("D1", json!("\n"))] {
            for user in ["U666", "U1"].into_iter().skip(usize::from(channel == "D1")) {
                let mut forged = event(json!({ "type": "message", "channel": channel,
                    "channel_type": "im", "user": user, "text": "not me", "ts": ts, "team": "T1" }));
                forged["event_id"] = json!("EvSame");
                if channel == "D9" && user == "U1" {
                    continue;
                }
                let body = forged.to_string();
                let status = field.ask(signed("work", WORK_SECRET, now(), body.as_bytes())).await?.status;
                ensure!(status < 500, "{forged} got {status}");
            }
        }
        genuine["event_id"] = json!("EvSame");
        let body = genuine.to_string();
        field.ask(signed("work", WORK_SECRET, now(), body.as_bytes())).await?;
        let answered = field.model.until_requests(asked + 1);
        tokio::time::timeout(Duration::from_secs(30), answered).await.context("it was suppressed")?;
        let turns = field.model.requests() - asked;
        ensure!(turns == 1, "{turns} turns began instead of 1");
        Ok(())
    }
    .boxed()
}

/// ATK-037: a secret that can be guessed is none.
pub(super) fn a_short_secret_is_refused(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for secret in ["short", "fifteen-letters"] {
            let config = format!(
                "accounts: {{slack: {{bot_token: xoxb-1, signing_secret: {secret}, base_url: \
                 'http://127.0.0.1:1/', allow: [U1]}}}}\n"
            );
            is_not_started(field, &config).await?;
        }
        Ok(())
    }
    .boxed()
}
