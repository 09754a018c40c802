//! A backup is gone back to, and somebody tries what was good when it was taken: codes, buttons, rights,
//! cookies and links.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use futures::future::BoxFuture;
use talaria_testkit::Launch;

use super::field::{Field, login, token};
use super::office::{Office, Setup, choice, direct_chat};
use super::wire::Ask;

const ONCE: &str = "Approve once";
const HERE: &str = "Approve in this conversation";
const ALWAYS: &str = "Always approve exactly this";
const DENY: &str = "Deny";

/// Three are listed on one account; whoever else asks is given a code on both.
const PAIRS: Setup<'static> = Setup {
    work: "allow: [U1, U2, U3], unauthorized_dm_behavior: pair",
    club: "allow: [U1], unauthorized_dm_behavior: pair",
    sections: "",
    programs: "",
};

/// Somebody is let in by a code that is handed on to them.
async fn lets_in(office: &Office, who: &str) -> Result<()> {
    office.say(who, &office.issued("work").await?).await?;
    office.shown(&direct_chat(who), "Paired!", 1).await?;
    office.serves(who).await
}

async fn backed_up(office: &Office) -> Result<String> {
    let file = office.home.file("attack.tar.gz");
    let file = file.to_str().context("a path")?.to_owned();
    office.done(&["backup", "create", "--to", &file]).await?;
    Ok(file)
}

/// What a browser is answered that shows this cookie.
async fn shown_cookie(office: &Office, cookie: &str) -> Result<u16> {
    // A cookie is named after the port, which is another one after each start.
    let (_, port) = office.address().rsplit_once(':').context("a port")?;
    let cookie = format!("talaria-login-{port}={cookie}");
    Ok(office.ask(Ask::get("/api/state").with("cookie", &cookie)).await?.status)
}

/// ATK-145: what was used, denied, revoked or ended since a backup was taken is that after going back, once and
/// again; who may not try may not; and nothing is taken out of the record.
pub(super) fn nothing_comes_back_that_was_used_or_revoked(
    field: &Field,
) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        office.wants("note", &["noted"]);
        // All of this is good.
        for guest in ["U7", "U8"] {
            lets_in(&office, guest).await?;
        }
        let (asked, issued) = (office.code_for("U9").await?, office.issued("work").await?);
        office.say("U1", "note it").await?;
        let (_, open) = office.question("D1", 1).await?;
        for (who, at, label) in [("U2", "D2", ALWAYS), ("U3", "D3", HERE)] {
            office.say(who, "note it").await?;
            let (_, choices) = office.question(at, 1).await?;
            office.press((who, who), at, &choice(&choices, label)?).await?;
            office.came(at, 1).await?;
        }
        let ran = office.ran();
        ensure!(ran.lines().count() == 2, "it ran with {ran:?}");
        let (link, unused) = (office.done(&["open"]).await?, office.done(&["open"]).await?);
        let entered = office.ask(login(token(&link)?)).await?;
        let cookie = entered.header("set-cookie").context("a cookie")?;
        let cookie = cookie.split(['=', ';']).nth(1).context("its value")?.to_owned();
        ensure!(shown_cookie(&office, &cookie).await? == 200, "the login is not good");
        let backup = backed_up(&office).await?;

        // None of it is any more.
        office.done(&["pair", "approve", "work", &asked]).await?;
        office.say("U10", &issued).await?;
        office.shown("D10", "Paired!", 1).await?;
        office.done(&["pair", "revoke", "work", "U7"]).await?;
        office.press(("U1", "alice"), "D1", &choice(&open, DENY)?).await?;
        office.came("D1", 1).await?;
        let granted = office.done(&["approvals", "list"]).await?;
        let granted = granted.split_whitespace().next().context("an approval")?;
        office.done(&["approvals", "revoke", granted]).await?;
        for _ in 0..5 {
            office.refused(&["pair", "approve", "club", "ZZZZZZZZ"]).await?;
        }
        let mark = office.done(&["audit", "--verify"]).await?;
        let mark = mark.split_once("Mark: ").context("a mark")?.1.lines().next();
        let mark = mark.context("a mark")?.to_owned();

        let (office, told) = office.taken_back(&backup).await?;
        ensure!(told.contains("work:U7"), "the operator is not told who stays out: {told}");
        let (office, _) = office.taken_back(&backup).await?;
        for label in [ONCE, HERE, ALWAYS] {
            office.press(("U1", "alice"), "D1", &choice(&open, label)?).await?;
        }
        // The turn that asked hears that nobody answered.
        office.shown("D1", "nobody answered in time", 1).await?;
        for (who, at) in [("U2", "D2"), ("U3", "D3")] {
            office.say(who, "note it").await?;
            let (_, choices) = office.question(at, 2).await?;
            office.press((who, who), at, &choice(&choices, DENY)?).await?;
            office.came(at, 2).await?;
        }
        office.serves("U1").await?;
        ensure!(office.ran() == ran, "a yes came back: {}", office.ran());
        let refused = office.refused(&["pair", "approve", "work", &asked]).await?;
        ensure!(refused.contains("no open request"), "{refused}");
        let locked = office.refused(&["pair", "approve", "club", "ZZZZZZZZ"]).await?;
        ensure!(locked.contains("locked"), "going back unlocks: {locked}");
        let requests = office.model.requests();
        office.say("U7", "still there?").await?;
        for guess in ["U9", "U10", "U11"] {
            office.say(guess, &issued).await?;
        }
        office.serves("U8").await?;
        ensure!(office.model.requests() == requests + 1, "who was put out begins a turn");
        let listed = office.done(&["pair", "list", "work"]).await?;
        let guests = listed.lines().filter(|line| line.contains("let in")).count();
        ensure!(guests == 1 && listed.contains("U8"), "somebody came back: {listed}");
        ensure!(shown_cookie(&office, &cookie).await? == 401, "a login came back");
        let entered = office.ask(login(token(&unused)?)).await?;
        ensure!(entered.status == 401, "a link came back: {}", entered.status);
        office.done(&["audit", "--verify", "--seen", &mark]).await?;
        let recorded = office.done(&["audit"]).await?;
        ensure!(recorded.matches("went_back").count() == 2, "it is not recorded: {recorded}");
        Ok(())
    }
    .boxed()
}

/// A kill at any moment of going back: whoever was put out is out, and the gateway starts.
pub(super) fn a_kill_while_going_back_lets_nobody_in(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        for guest in ["U7", "U8"] {
            lets_in(&office, guest).await?;
        }
        let issued = office.issued("work").await?;
        let backup = backed_up(&office).await?;
        office.done(&["pair", "revoke", "work", "U7"]).await?;
        office.done(&["pair", "clear", "work"]).await?;
        office.done(&["stop"]).await?;
        for moment in 0..12 {
            let launch = Launch::new(&office.binary).arguments(&["backup", "restore", &backup]);
            let mut going = launch.start(office.home.path())?;
            let _ = tokio::time::timeout(Duration::from_millis(25 * moment), going.ended()).await;
            going.kill().await?;
            let listed = office.done(&["pair", "list", "work"]).await?;
            ensure!(!listed.contains("U7") && !listed.contains("code out"), "{moment}: {listed}");
            ensure!(listed.contains("U8"), "{moment}: {listed}");
        }
        let (office, _) = office.taken_back(&backup).await?;
        let requests = office.model.requests();
        for who in ["U7", "U9"] {
            office.say(who, &issued).await?;
        }
        office.serves("U8").await?;
        ensure!(office.model.requests() == requests + 1, "who was put out begins a turn");
        office.done(&["audit", "--verify"]).await.map(drop)
    }
    .boxed()
}
