//! Clocks that are set keep nobody waiting.

use super::*;

#[test]
fn a_clock_that_is_set_back_delays_neither_the_alarm_nor_the_next_connection() {
    let (mut world, other) = watched();
    world.live(async |life| {
        let elapsed = || life.ground.time.elapsed();
        life.vendor.say("alice", "home", "before");
        life.texts("home", 1).await;
        for round in 1..=2 {
            let deaf = elapsed();
            life.vendor.forgets_listeners();
            life.pass_seconds(20).await;
            life.clock.jump(AN_HOUR_BACK);
            while connections(&life.vendor) == round {
                life.pass(Duration::from_millis(100)).await;
            }
            let took = elapsed() - deaf;
            // Looked at every tenth of a second.
            assert!(took <= Duration::from_millis(60_100), "rebuilt after {took:?}");
            life.pass_seconds(40).await;
            let told = other.texts("operator");
            assert_eq!(told.len(), round, "{told:?}");
            let seconds = told[round - 1].split("deaf for ").nth(1).unwrap();
            let seconds: u64 = seconds.split(' ').next().unwrap().parse().unwrap();
            assert!((20..=90).contains(&seconds), "{told:?}");
            // The same is told again after an hour of true time.
            life.pass_seconds(61 * 60).await;
        }
    });
}

#[test]
fn a_clock_that_is_set_back_does_not_make_an_account_wait_for_what_is_long_ago() {
    let away = || ConnectError::Unreachable { reason: "away".into() };
    World::new(SIMPLE).live(async |life| {
        let elapsed = || life.ground.time.elapsed();
        let is_back = async |within: Duration| {
            let begun = elapsed();
            while life.account().state != AccountState::Connected {
                life.pass(Duration::from_millis(100)).await;
            }
            let took = elapsed() - begun;
            assert!(took <= within, "{took:?}");
        };
        for n in 0..10 {
            life.vendor.say("alice", "home", &format!("{n}"));
            life.pass_seconds(20).await;
            life.vendor.hangs_up([]);
            life.pass_seconds(1).await;
        }
        life.pass_seconds(11 * 60).await;
        life.clock.jump(AN_HOUR_BACK);
        life.vendor.say("alice", "home", "hello");
        life.pass_seconds(1).await;
        // One connection that ends, after ten that are long forgotten.
        life.vendor.hangs_up([]);
        life.pass(Duration::from_millis(10)).await;
        is_back(Duration::from_secs(2)).await;
        // While it waits for its next try.
        life.vendor.say("alice", "home", "hello again");
        life.pass_seconds(1).await;
        life.vendor.hangs_up(std::iter::repeat_with(away).take(5));
        life.pass_seconds(5).await;
        life.clock.jump(AN_HOUR_BACK);
        is_back(Duration::from_secs(70)).await;
    });
}
