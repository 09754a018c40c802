//! Pairing codes: guessed, spread, asked for without end, used twice, at another account, across a crash.

use anyhow::{Result, ensure};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use super::field::Field;
use super::office::{Office, Setup, direct_chat};

const PAIRS: Setup<'static> = Setup {
    work: "allow: [U1], unauthorized_dm_behavior: pair",
    club: "allow: [U1], unauthorized_dm_behavior: pair",
    sections: "",
    programs: "",
};

/// A code that is surely wrong, another one for each number.
fn wrong(number: usize, right: &str) -> String {
    let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let letter = |place: usize| char::from(letters[number / 32_usize.pow(place as u32) % 32]);
    let guess: String = "ZZZZ".chars().chain((0..4).map(letter)).collect();
    if guess == right { "YYYYYYYY".to_owned() } else { guess }
}

/// ATK-060: five wrong codes, and nobody listens: not to who guesses, and not at the operator's keyboard.
pub(super) fn five_wrong_codes_are_the_last(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        let issued = office.issued("work").await?;
        let guesses = async {
            for number in 0..5 {
                office.say("U7", &wrong(number, &issued)).await?;
            }
            // Right, and too late.
            office.say("U7", &issued).await
        };
        office.nothing_comes_of(&["D7"], "U1", guesses).await?;
        // It is still good for whom it was meant.
        office.say("U8", &issued).await?;
        office.shown("D8", "Paired!", 1).await?;
        let code = office.code_for("U9").await?;
        for number in 0..5 {
            office.refused(&["pair", "approve", "work", &wrong(number, &code)]).await?;
        }
        let locked = office.refused(&["pair", "approve", "work", &code]).await?;
        ensure!(locked.contains("locked"), "it is not locked: {locked}");
        let office = office.killed(None).await?;
        let locked = office.refused(&["pair", "approve", "work", &code]).await?;
        ensure!(locked.contains("locked"), "a restart unlocks it: {locked}");
        office.nothing_comes_of(&["D9", "D7"], "U1", office.say("U7", &issued)).await
    }
    .boxed()
}

/// ATK-061: a hundred wrong codes by whomever, and what is out is void.
pub(super) fn guesses_of_many_void_the_code(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        let issued = office.issued("work").await?;
        for number in 0..100 {
            office.say(&format!("U1{number:03}"), &wrong(number, &issued)).await?;
        }
        office.say("U7", &issued).await?;
        office.serves("U1").await?;
        let listed = office.done(&["pair", "list"]).await?;
        ensure!(!listed.contains("is let in"), "somebody was let in: {listed}");
        ensure!(!office.told_anywhere().contains("Paired!"), "{}", office.told_anywhere());
        let recorded = office.done(&["audit"]).await?;
        ensure!(recorded.contains("locked_out"), "it is not recorded: {recorded}");
        Ok(())
    }
    .boxed()
}

/// ATK-062: three may ask; the fourth pushes nobody out, and nobody is answered twice.
pub(super) fn a_flood_of_requests_changes_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        let first = office.code_for("U701").await?;
        office.code_for("U702").await?;
        office.code_for("U703").await?;
        for number in 704..724 {
            office.say(&format!("U{number}"), "and me").await?;
        }
        office.shown("D723", "Too many people ask", 1).await?;
        let before = office.told_anywhere();
        for number in 701..724 {
            office.say(&format!("U{number}"), "and again").await?;
        }
        let asked = office.model.requests();
        ensure!(office.told_anywhere() == before, "they are answered again");
        office.serves("U1").await?;
        ensure!(office.model.requests() == asked + 1, "a stranger began a turn");
        let listed = office.done(&["pair", "list"]).await?;
        ensure!(listed.matches("asks").count() == 3, "more than three ask: {listed}");
        office.done(&["pair", "approve", "work", &first]).await?;
        office.serves("U701").await
    }
    .boxed()
}

/// ATK-063: a code lets in one, once, on its own account.
pub(super) fn a_code_lets_in_one(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        // What was approved is used up.
        let code = office.code_for("U7").await?;
        office.done(&["pair", "approve", "work", &code]).await?;
        office.refused(&["pair", "approve", "work", &code]).await?;
        let issued = office.issued("work").await?;
        let many: Vec<String> = (800..810).map(|number| format!("U{number}")).collect();
        for said in join_all(many.iter().map(|who| office.say(who, &issued))).await {
            said?;
        }
        office.serves("U1").await?;
        let welcomed = || {
            many.iter().filter(|who| {
                office.told(&direct_chat(who)).iter().any(|text| text.contains("Paired!"))
            })
        };
        office.until("somebody is let in", || (welcomed().count() > 0).then_some(())).await?;
        office.say("U9", &issued).await?;
        office.serves("U1").await?;
        ensure!(welcomed().count() == 1, "{} were let in by one code", welcomed().count());
        let listed = office.done(&["pair", "list"]).await?;
        ensure!(listed.matches("is let in").count() <= 2, "{listed}");
        Ok(())
    }
    .boxed()
}

/// A code of one account opens no other.
pub(super) fn a_code_is_of_one_account(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        let (issued, code) = (office.issued("work").await?, office.code_for("U7").await?);
        office.refused(&["pair", "approve", "club", &code]).await?;
        office.happens_at("club", office.direct("U8", &issued)).await?;
        office.serves("U1").await?;
        let listed = office.done(&["pair", "list", "club"]).await?;
        ensure!(!listed.contains("is let in"), "{listed}");
        ensure!(!office.told("D8").iter().any(|text| text.contains("Paired!")), "it opened club");
        office.done(&["pair", "approve", "work", &code]).await.map(drop)
    }
    .boxed()
}

/// A kill between a request and its approval loses nothing, and neither does one right after it.
pub(super) fn a_kill_loses_no_request(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let office = Office::open(&field.binary, PAIRS).await?;
        let (issued, code) = (office.issued("work").await?, office.code_for("U7").await?);
        let office = office.killed(None).await?;
        office.done(&["pair", "approve", "work", &code]).await?;
        let office = office.killed(None).await?;
        office.shown("D7", "Paired!", 1).await?;
        office.serves("U7").await?;
        office.refused(&["pair", "approve", "work", &code]).await?;
        office.say("U8", &issued).await?;
        office.shown("D8", "Paired!", 1).await?;
        let office = office.killed(None).await?;
        office.say("U9", &issued).await?;
        office.serves("U8").await?;
        ensure!(
            !office.told("D9").concat().contains("Paired!"),
            "a used code lets in after a kill"
        );
        office.done(&["pair", "revoke", "work", "U7"]).await?;
        let office = office.killed(None).await?;
        office.nothing_comes_of(&["D7"], "U1", office.say("U7", "still there?")).await
    }
    .boxed()
}
