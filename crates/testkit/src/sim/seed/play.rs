//! A story as it is told, over as many lives as it takes.

use std::time::Duration;

use super::people::People;
use super::plan::{Plan, Step};
use crate::Dice;
use crate::sim::{Conduct, Habits, Handing, Life, Model, Reach, WallClock};
use talaria_platform::ConnectError;
use talaria_store::Store;

/// A plan, and how far it is.
pub(super) struct Story {
    pub(super) plan: Plan,
    pub(super) people: People,
    pub(super) deaths: u32,
    pub(super) stops: u32,
    dice: Dice,
    next: usize,
    faults: usize,
    /// By how much the rest of the plan is late.
    late: Duration,
}

/// How a life turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turnout {
    /// It died.
    Died,
    /// It was stopped.
    Stopped,
    /// The plan is through.
    Over,
}

impl Story {
    pub(super) fn new(plan: Plan, mut dice: Dice) -> Self {
        let people = People::new(dice.split(), plan.vendors());
        Self { plan, people, deaths: 0, stops: 0, dice, next: 0, faults: 0, late: Duration::ZERO }
    }

    pub(super) fn died(&mut self) {
        self.deaths += 1;
    }

    pub(super) fn stopped(&mut self) {
        self.stops += 1;
    }

    pub(super) fn faults(&self) -> usize {
        self.faults
    }

    /// How long nothing runs. People go on talking in the meantime, or wait.
    pub(super) fn between_lives(&mut self) -> Duration {
        let time = match self.dice.below(8) {
            0 => Duration::from_secs(self.dice.below(4000)),
            1 | 2 => Duration::from_secs(self.dice.below(60)),
            _ => Duration::from_millis(self.dice.below(2000)),
        };
        if self.dice.one_in(2) {
            self.late += time;
        }
        time
    }

    /// Goes on with the plan until it is through or the life ends.
    pub(super) async fn play(&mut self, life: &Life, clock: &WallClock) -> Turnout {
        while let Some((at, step)) = self.plan.steps.get(self.next).cloned() {
            if !self.wait_until(life, at + self.late).await {
                continue;
            }
            self.next += 1;
            if !matches!(step, Step::Speak(_)) {
                self.faults += 1;
                life.ground.log.note(format_args!("→ {step:?}"));
            }
            match step {
                Step::Speak(speech) => {
                    let vendor = &life.vendors[speech.vendor];
                    self.people.speak(vendor, &life.files, &speech);
                }
                Step::Kill(None) => {
                    life.ground.points.die();
                    std::future::pending::<()>().await;
                }
                Step::Kill(Some(moment)) => life.ground.points.die_in(moment),
                Step::Stop(grace) => {
                    life.gateway.stop(grace).await;
                    return Turnout::Stopped;
                }
                Step::Pause(time) => tokio::time::advance(time).await,
                Step::Jump(millis) => clock.jump(millis),
                Step::Full(time) => life.disk.is_full(time),
                Step::HangUp(vendor) => {
                    let away = || ConnectError::Unreachable { reason: "away".into() };
                    let times = self.dice.below(3) as usize;
                    life.vendors[vendor].hangs_up(std::iter::repeat_with(away).take(times));
                }
                Step::Reach(vendor, reach) => life.vendors[vendor].is(reach),
                Step::Rival(vendor, time) => life.vendors[vendor].is_heard_by_another(time),
                Step::Invalidate(vendor) => life.vendors[vendor].invalidates_sessions(),
            }
        }
        Turnout::Over
    }

    /// Waits for a moment, while people react to what they see. Says whether it has come.
    async fn wait_until(&mut self, life: &Life, at: Duration) -> bool {
        let mut bell = life.ground.bell.subscribe();
        self.people.look(life);
        self.people.act(life);
        let now = life.ground.time.elapsed();
        if at <= now {
            return true;
        }
        let until = self.people.next().map_or(at, |next| next.min(at));
        tokio::select! {
            biased;
            _ = bell.changed() => {}
            () = tokio::time::sleep(until.saturating_sub(now)) => {}
        }
        false
    }

    /// Nothing goes wrong from here on.
    pub(super) fn heal(&mut self, life: &Life, model: &Option<Model>) {
        life.disk.heals();
        for vendor in &life.vendors {
            if vendor.reach() != Reach::Open {
                vendor.is(Reach::Open);
            }
            vendor.has_habits(Habits::default(), self.dice.split());
            vendor.behaves(|_| Conduct::Shows);
            vendor.hands_out(|_| Handing::Hands);
        }
        if let Some(model) = model {
            model.heals();
        }
    }

    /// Waits until there is nothing to do, and a little longer. Says what there still is when that
    /// takes too long.
    pub(super) async fn rest(&mut self, life: &Life, limit: Duration) -> Result<(), String> {
        let end = life.ground.time.elapsed() + limit;
        loop {
            if self.people.next().is_none() && life.is_quiet().await {
                let until = life.ground.time.elapsed() + Duration::from_secs(90);
                while !self.wait_until(life, until).await {}
                if self.people.next().is_none() && life.is_quiet().await {
                    return Ok(());
                }
            }
            if self.wait_until(life, end).await {
                let counts = life.disk.counts().await.unwrap_or_default();
                let heard: Vec<_> = life
                    .vendors
                    .iter()
                    .map(|vendor| (vendor.account(), vendor.is_heard()))
                    .collect();
                return Err(format!("{counts:?}, heard: {heard:?}"));
            }
        }
    }
}
