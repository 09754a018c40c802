//! Somebody who watches a story: takes as long as the dice say, drops some of what is said, and changes none
//! of it, so that whoever judges the story knows the words.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use talaria_clock::Clock;
use talaria_gateway::{Arriving, Commanded, Decided, Happening, Order, Watcher};
use talaria_model::Inbound;

use crate::Dice;

/// Why nobody answers what was dropped.
pub(in crate::sim) const DROPPED_BY_HOOK: &str = "the hook of the story dropped it";

pub(super) struct Doorkeeper {
    clock: Arc<dyn Clock>,
    dice: Mutex<Dice>,
}

impl Doorkeeper {
    pub(super) fn new(clock: Arc<dyn Clock>, dice: Dice) -> Self {
        Self { clock, dice: Mutex::new(dice) }
    }

    async fn think(&self) {
        let time = self.throw(|dice| match dice.below(4) {
            0 => Duration::from_secs(10),
            1 => Duration::from_millis(dice.below(3000)),
            _ => Duration::ZERO,
        });
        self.clock.sleep(time).await;
    }

    fn throw<T>(&self, throw: impl FnOnce(&mut Dice) -> T) -> T {
        throw(&mut self.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Watcher for Doorkeeper {
    fn watches(&self) -> bool {
        true
    }

    fn happened(&self, _: &Happening) {}

    fn judges_arrivals(&self) -> bool {
        true
    }

    fn judges(&self, _: &Order<'_>) -> bool {
        true
    }

    fn arrived(&self, _: &'static str, _: &Inbound) {}

    async fn arriving(&self, _: &'static str, _: &Inbound) -> Decided<Arriving> {
        self.think().await;
        match self.throw(|dice| dice.one_in(10)) {
            true => Arriving::Dropped(DROPPED_BY_HOOK.to_owned()).into(),
            false => Arriving::Goes.into(),
        }
    }

    fn ordered(&self, _: &Order<'_>) {}

    async fn commanded(&self, _: &Order<'_>) -> Decided<Commanded> {
        self.think().await;
        Commanded::Goes.into()
    }
}
