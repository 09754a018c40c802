//! Who pauses an account, and what that lasts through.

use super::*;

#[test]
fn a_paused_account_stays_so_after_a_restart_and_loses_nothing() {
    let (mut world, _) = watched();
    let main = AccountId::literal("main");
    world.live(async |life| {
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        life.gateway.pause(&main, Pause::Pause, "operator").await.unwrap();
        assert_eq!(
            life.gateway.tried(&main, Duration::from_secs(60)).await,
            Some(AccountState::Paused)
        );
        life.vendor.say("alice", "home", "while it is paused");
        life.pass_seconds(60 * 60).await;
        assert_eq!(life.vendor.texts("home").len(), 1);
        let nobody = AccountId::literal("nobody");
        let refused = life.gateway.pause(&nobody, Pause::Pause, "operator").await;
        assert_eq!(refused, Err(PauseError::NoAccount("nobody".into())));
    });
    world.live(async |life| {
        life.gateway.first_connections().await;
        life.pass_seconds(60 * 60).await;
        assert_eq!(life.account().state, AccountState::Paused);
        assert_eq!(connections(&life.vendor), 1);
        life.gateway.pause(&main, Pause::Resume, "operator").await.unwrap();
        assert_eq!(life.texts("home", 2).await[1], "echo: while it is paused");
    });
    world.live(async |life| {
        life.vendor.say("alice", "home", "after");
        assert_eq!(life.texts("home", 3).await[2], "echo: after");
    });
}

#[test]
fn an_administrator_pauses_another_account_from_a_chat_and_not_their_own() {
    let (mut world, other) = watched();
    world.accounts[0].1 = talaria_session::Access::own();
    world.live(async |life| {
        life.vendor.say("alice", "home", "/platforms pause other");
        assert!(life.texts("home", 1).await[0].contains("is paused"));
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Paused);
        life.vendor.say("alice", "home", "/platforms");
        assert!(life.texts("home", 2).await[1].contains("other (scripted): paused"));
        life.vendor.say("alice", "home", "/platforms resume other");
        life.texts("home", 3).await;
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        life.vendor.say("alice", "home", "/platforms pause main");
        assert!(life.texts("home", 4).await[3].contains("talaria platforms pause main"));
        assert_eq!(life.account().state, AccountState::Connected);
        other.say("bob", "home", "/platforms pause main");
        life.pass_seconds(1).await;
        assert!(other.texts("home")[0].contains("for administrators"), "{:?}", other.texts("home"));
    });
}

/// People who are heard on an account, each with the name that the operator knows them by.
fn known(people: &[(&'static str, &str)]) -> Access {
    let person = |(id, name): &(&'static str, &str)| {
        let person = Person { name: (*name).to_owned(), role: None };
        (SenderId::literal(id), Arc::new(person))
    };
    let listed = people.iter().map(|(id, _)| SenderId::literal(id));
    Access { people: people.iter().map(person).collect(), ..Access::only(listed) }
}

#[test]
fn an_administrator_of_one_account_does_not_pause_the_operator_s_own_page() {
    let (mut world, other) = watched();
    // That somebody is known on the page by the same name makes no difference.
    world.accounts[0].1 = Access { people: known(&[("bob", "Bob")]).people, ..Access::own() };
    world.accounts[1].1 = known(&[("bob", "Bob")]);
    world.live(async |life| {
        for verb in ["pause", "resume"] {
            other.say("bob", "home", &format!("/platforms {verb} main"));
        }
        life.quiet().await;
        let texts = other.texts("home");
        assert_eq!(texts.len(), 2, "{texts:?}");
        for text in texts {
            assert!(text.contains("not known as an administrator of main"), "{text}");
        }
        assert_eq!(life.account().state, AccountState::Connected);
        let rows = life.disk.audited(0, 10).await.unwrap();
        assert!(rows.iter().all(|row| row.audited.subject != "main"), "{rows:?}");
    });
}

#[test]
fn who_is_an_administrator_of_two_accounts_pauses_either_and_nobody_else_does() {
    let (mut world, other) = watched();
    world.accounts[0].1 = known(&[("ann", "Ann"), ("bob", "Ben")]);
    world.accounts[1].1 = known(&[("anna", "Ann"), ("bob", "Bob")]);
    world.live(async |life| {
        // Their id is somebody's on the other account, too, but not theirs.
        other.say("bob", "home", "/platforms pause main");
        life.quiet().await;
        assert!(other.texts("home")[0].contains("not known as an administrator of main"));
        assert_eq!(life.account().state, AccountState::Connected);
        other.say("anna", "den", "/platforms pause main");
        life.quiet().await;
        assert!(other.texts("den")[0].contains("is paused"), "{:?}", other.texts("den"));
        assert_eq!(life.account().state, AccountState::Paused);
    });
}

#[test]
fn what_cannot_be_recorded_is_not_paused() {
    let (mut world, other) = watched();
    world.accounts[0].1 = Access::own();
    world.live(async |life| {
        life.disk.fails(Verb::Audit, 1);
        life.vendor.say("alice", "home", "/platforms pause other");
        let told = life.texts("home", 1).await.remove(0);
        assert!(told.contains("cannot be recorded"), "{told}");
        life.pass_seconds(1).await;
        assert_eq!(status(life, "other").state, AccountState::Connected);
        other.say("alice", "home", "still there?");
        life.quiet().await;
        assert_eq!(other.texts("home"), ["echo: still there?"]);
        life.vendor.say("alice", "home", "/platforms pause other");
        assert!(life.texts("home", 2).await[1].contains("is paused"));
        let rows = life.disk.audited(0, 10).await.unwrap();
        assert_eq!(rows.last().unwrap().audited.detail, "paused");
    });
}
