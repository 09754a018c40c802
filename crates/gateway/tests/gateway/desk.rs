//! The operator's desk: who gets it, and what is decided at it.

use std::sync::Arc;

use talaria_model::{AccountId, Reach, SenderId};
use talaria_platform::{Decision, Desk, DeskError, Peer, Visit};
use talaria_session::{Access, Strangers};
use talaria_store::{AuditDeed, Store, broken_at};

use crate::world::{Life, SIMPLE, World};

/// An account on which strangers are given codes, and one that is the operator's own.
fn world() -> World {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 = Access { strangers: Strangers::Pair, ..Access::only([]) };
    world.add("page", SIMPLE).is_operators();
    world.accounts[1].1 = Access::own();
    world
}

fn main_account() -> AccountId {
    AccountId::literal("main")
}

async fn desk(life: &Life) -> Arc<dyn Desk> {
    let page = &life.vendors[1];
    life.until("the page is connected", |_| page.desk().is_some()).await;
    page.desk().expect("it was lent")
}

/// What a stranger is told who writes, and the code in it.
async fn code_for(life: &Life, who: &str) -> String {
    life.vendor.say(who, who, "hello");
    let told = life.texts(who, 1).await;
    told[0].split('`').nth(1).expect("a code is marked").to_owned()
}

#[test]
fn who_is_approved_at_the_desk_is_heard_with_the_next_message_and_that_is_recorded() {
    world().live(async |life| {
        let desk = desk(life).await;
        let code = code_for(life, "ann").await;
        let lobbies = desk.lobbies().await.expect("reads");
        assert_eq!(lobbies.len(), 1, "nobody can be let in on the operator's own account");
        assert_eq!(lobbies[0].account, main_account());
        let asking: Vec<_> = lobbies[0].asking.iter().map(|one| one.sender.as_str()).collect();
        assert_eq!(asking, ["ann"]);
        let typed = format!("{}-{} ", &code[..4].to_lowercase(), &code[4..]);
        let decision = Decision::Approve(typed, Reach::Direct);
        let decided = desk.decide(&main_account(), decision).await.expect("lets in");
        assert_eq!(decided.told, "`ann` is let in on `main`, in direct chats.");
        assert_eq!(life.texts("ann", 2).await[1], "Paired! You are let in; say what you need.");
        life.vendor.say("ann", "ann", "are you there?");
        assert_eq!(life.texts("ann", 3).await[2], "echo: are you there?");
        let lobbies = desk.lobbies().await.expect("reads");
        assert!(lobbies[0].asking.is_empty());
        assert_eq!(lobbies[0].guests[0].by, "page:operator");

        let revoke = Decision::Revoke(SenderId::literal("ann"));
        let decided = desk.decide(&main_account(), revoke).await.expect("puts out");
        let told = "`ann` is not heard on `main` any more, unless a list names them. A stranger is answered once in \
                    ten minutes at most: who asked lately waits for another code.";
        assert_eq!(decided.told, told);
        life.vendor.say("ann", "ann", "and now?");
        life.quiet().await;
        assert_eq!(life.vendor.texts("ann").len(), 3, "nobody answers");

        let rows = life.disk.audited(0, 10).await.expect("reads");
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.audited.deed, row.audited.actor.as_str(), row.audited.subject.as_str()))
            .collect();
        let expected = [
            (AuditDeed::LetIn, "page:operator", "main:ann"),
            (AuditDeed::PutOut, "page:operator", "main:ann"),
        ];
        assert_eq!(told, expected);
    });
}

#[test]
fn a_code_that_is_made_at_the_desk_lets_in_who_says_it() {
    world().live(async |life| {
        let desk = desk(life).await;
        let decision = Decision::Issue(Reach::Everywhere);
        let decided = desk.decide(&main_account(), decision).await.expect("makes one");
        let code = decided.code.expect("there is a code");
        assert!(decided.told.contains(&code), "{}", decided.told);
        life.vendor.say("ben", "ben", &code);
        assert_eq!(life.texts("ben", 1).await[0], "Paired! You are let in; say what you need.");
        let cleared = desk.decide(&main_account(), Decision::Clear).await.expect("clears");
        assert_eq!(cleared.told, "No request or code is open, and pairing is not locked.");
        code_for(life, "ann").await;
        let cleared = desk.decide(&main_account(), Decision::Clear).await.expect("clears");
        assert_eq!(
            cleared.told,
            "One request or code is void, and pairing is not locked. A stranger is answered once in ten minutes \
             at most: who asked lately waits for another code."
        );
    });
}

#[test]
fn wrong_codes_lock_the_desk_like_any_other_way_to_approve() {
    world().live(async |life| {
        let desk = desk(life).await;
        let code = code_for(life, "ann").await;
        let decide = async |code: &str| {
            desk.decide(&main_account(), Decision::Approve(code.into(), Reach::Direct)).await
        };
        let no_code =
            DeskError::Refused("That is no code: a code has 8 letters and digits.".to_owned());
        assert_eq!(decide("hello").await, Err(no_code));
        for left in ["4 more wrong ones", "3 more wrong ones", "2 more wrong ones", "one more wrong one"] {
            let told = format!(
                "No open request has that code; {left} and the account is locked for an hour."
            );
            assert_eq!(decide("WRXNG234").await, Err(DeskError::Refused(told)));
        }
        let locked = Err(DeskError::Refused(
            "Too many wrong codes: pairing is locked until the hour is over; `talaria pair clear ACCOUNT` or \
             `/pair clear` ends that, and a code that you make and hand on works all the same."
                .to_owned(),
        ));
        assert_eq!(decide("WRXNG234").await, locked);
        assert_eq!(decide(&code).await, locked, "not even the right one");
        assert!(desk.lobbies().await.expect("reads")[0].locked_until.is_some());
        let rows = life.disk.audited(0, 10).await.expect("reads");
        let deeds: Vec<_> = rows.iter().map(|row| row.audited.deed).collect();
        assert_eq!(deeds, [AuditDeed::LockedOut]);
    });
}

#[test]
fn nobody_is_let_in_on_an_account_that_is_the_operators_or_is_not_there() {
    world().live(async |life| {
        let desk = desk(life).await;
        for account in ["page", "nowhere"] {
            let account = AccountId::literal(account);
            let decided = desk.decide(&account, Decision::Issue(Reach::Direct)).await;
            assert_eq!(decided, Err(DeskError::NoAccount(account)));
        }
    });
}

#[test]
fn only_who_is_the_operators_by_platform_and_by_rules_gets_a_desk() {
    for (is_operators, access, gets_one) in [
        (true, Access::own(), true),
        (true, Access::everyone(), false),
        (false, Access::own(), false),
        (false, Access::everyone(), false),
        (false, Access::only([SenderId::literal("operator")]), false),
    ] {
        let mut world = World::new(SIMPLE);
        if is_operators {
            world.vendor().is_operators();
        }
        world.accounts[0].1 = access;
        world.live(async |life| {
            life.until("it is connected", |vendor| {
                vendor.truth(|truth| !truth.connected.is_empty())
            })
            .await;
            assert_eq!(life.vendor.desk().is_some(), gets_one);
        });
    }
}

#[test]
fn visits_are_in_the_record() {
    world().live(async |life| {
        let desk = desk(life).await;
        let peer = Some(Peer::of([192, 0, 2, 7].into()));
        for visit in [Visit::LoggedIn(peer), Visit::Rebuffed(peer), Visit::LoggedOut] {
            desk.record(visit).await.expect("records");
        }
        let rows = life.disk.audited(0, 10).await.expect("reads");
        assert_eq!(broken_at(None, &rows), None);
        let told: Vec<_> = rows
            .iter()
            .map(|row| {
                let talaria_store::Audited { actor, deed, subject, detail } = &row.audited;
                format!("{actor} {} {subject} {detail}", deed.as_str())
            })
            .collect();
        let expected = [
            "page:operator logged_in page from 192.0.2.7",
            "gateway logins_refused page from 192.0.2.7",
            "page:operator logged_out page everywhere",
        ];
        assert_eq!(told, expected);
    });
}

#[test]
fn a_desk_that_outlives_its_gateway_decides_nothing() {
    let mut world = world();
    let left = world.live(async |life| desk(life).await);
    world.live(async |life| {
        let decided = left.decide(&main_account(), Decision::Clear).await;
        assert!(matches!(decided, Err(DeskError::Unavailable(_))), "{decided:?}");
        life.quiet().await;
    });
}
