//! Thousands of guesses at pairing codes, by ever new names: nobody gets in, little is said and written
//! down, and people are answered meanwhile. The book itself stands a million (`session::pairing`).

use std::time::Duration;

use talaria_gateway::Paired;
use talaria_model::{AccountId, SenderId};
use talaria_session::{Access, PairWish, Reach, Strangers};
use talaria_store::{Clue, Store};

use crate::world::{SIMPLE, World};

const ROUNDS: usize = 20;
const GUESSES: usize = 150;

/// Another one each time, and never one that was made: those have digits in them.
fn guess(number: usize) -> String {
    let letter = |place: usize| char::from(b'A' + (number >> (place * 3) & 7) as u8);
    (0..8).map(letter).collect()
}

#[test]
fn thousands_of_guesses_let_nobody_in_and_nobody_waits_for_them() {
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 =
        Access { strangers: Strangers::Ignore, ..Access::only([SenderId::literal("alice")]) };
    world.live(async |life| {
        let main = AccountId::literal("main");
        let issue = PairWish::Issue(Reach::Everywhere);
        let mut handed_on = String::new();
        for round in 0..ROUNDS {
            let issued = life.gateway.pair(&main, &issue, "operator").await;
            let Ok(Paired::Code(code)) = issued else { panic!("{issued:?}") };
            for number in round * GUESSES..(round + 1) * GUESSES {
                let eve = format!("eve-{number}");
                life.vendor.say(&eve, &eve, &guess(number));
            }
            life.vendor.say("alice", "home", "hello");
            assert_eq!(life.texts("home", round + 1).await[round], "echo: hello");
            life.quiet().await;
            let book = life.disk.guests(&main).await.expect("reads").book;
            assert_eq!((book.guests().count(), book.issued(life.now()).count()), (0, 0));
            handed_on = code.expose().to_owned();
        }
        life.vendor.say("late", "late", &handed_on);
        life.quiet().await;
        let said = life.vendor.truth(|truth| truth.acts.len());
        assert_eq!(said, ROUNDS, "strangers were told nothing, and neither who came too late");
        let counts = life.disk.counts().await.expect("reads");
        assert_eq!((counts.denied, counts.sessions), (1_000, 1), "{counts:?}");
        let record = life.disk.audited(0, 1_000).await.expect("reads").len();
        assert_eq!(record, 1 + 2 * ROUNDS, "Alice, and each code that was made and was void");
        let issued = life.gateway.pair(&main, &issue, "operator").await;
        let Ok(Paired::Code(code)) = issued else { panic!("{issued:?}") };
        life.vendor.say("ann", "ann", code.expose());
        assert_eq!(life.texts("ann", 1).await[0], "Paired! You are let in; say what you need.");
    });
}

#[test]
fn a_flood_of_strangers_is_kept_in_short_little_by_little_and_none_of_it_is_forgotten() {
    const WRITTEN_DOWN: usize = 1_000;
    const IN_SHORT: usize = 1_500;
    let mut world = World::new(SIMPLE);
    world.accounts[0].1 =
        Access { strangers: Strangers::Ignore, ..Access::only([SenderId::literal("alice")]) };
    world.live(async |life| {
        let said: Vec<_> = (0..WRITTEN_DOWN + IN_SHORT)
            .map(|number| life.vendor.say("eve", "eve", &guess(number)))
            .collect();
        life.until("it is heard", |vendor| vendor.is_heard()).await;
        let kept = async || {
            let mut kept = 0;
            for event in &said[WRITTEN_DOWN..] {
                let clue = Clue::Id(event.as_str().to_owned());
                kept += life.disk.unanswered(&clue, 1).await.expect("reads").len();
            }
            kept
        };
        let mut steps = Vec::new();
        while kept().await < IN_SHORT {
            let before = kept().await;
            life.pass(Duration::from_millis(50)).await;
            steps.push(kept().await - before);
            assert!(steps.len() < 100, "the rest is never kept: {steps:?}");
        }
        let most = steps.iter().max().copied().unwrap_or_default();
        assert!(most <= 250, "so many at once keep the store from others: {steps:?}");
    });
}
