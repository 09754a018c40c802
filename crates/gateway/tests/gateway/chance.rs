//! Everything at once, by chance: people, faults of the vendor and of the disk, deaths and clean stops.
//! Each seed switches some of it on. In the end everything heals, and what people see is judged.

use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_model::{Act, Capabilities, Drafts, Idempotency, Typing};
use talaria_platform::{ConnectError, SendError};

use crate::world::{Conduct, EDITING, Life, MARK, SIMPLE, Verb, World, agent, keyed};

/// Chance that is the same every time (xorshift).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// What is switched on.
#[derive(Debug)]
struct Weather {
    can: Capabilities,
    chats: u64,
    messages: u64,
    deaths: u64,
    clean_stops: u64,
    throttles: bool,
    silence: bool,
    hang_ups: bool,
    disk_fails: bool,
    disk_lags: bool,
    little_room: bool,
}

fn weather(dice: &mut Dice) -> Weather {
    let drafting = Capabilities { drafts: Drafts::Every(Duration::from_millis(300)), ..SIMPLE };
    let typing = Capabilities { typing: Typing::Fades(Duration::from_secs(5)), ..EDITING };
    let can = [SIMPLE, EDITING, drafting, typing][dice.below(4) as usize];
    let can = if dice.one_in(2) { keyed(can) } else { can };
    let (deaths, clean_stops) = (dice.below(3), dice.below(3));
    let is_keyed = can.idempotency != Idempotency::None;
    Weather {
        can,
        chats: 1 + dice.below(4),
        messages: 5 + dice.below(30),
        deaths,
        clean_stops,
        throttles: dice.one_in(2),
        // Where repeats are not recognised, an answer whose outcome is unknown twice is given up; an
        // end in the middle of sending and a silence would be two.
        silence: dice.one_in(2) && (is_keyed || deaths + clean_stops == 0),
        hang_ups: dice.one_in(2),
        disk_fails: dice.one_in(2),
        disk_lags: dice.one_in(2),
        little_room: dice.one_in(2),
    }
}

/// People talk, and things go wrong around them.
async fn talk(life: &Life, weather: &Weather, dice: &mut Dice, from: u64, until: u64) {
    for n in from..until {
        let chat = dice.below(weather.chats);
        life.vendor.say("alice", &format!("chat-{chat}"), &format!("tok{n:03}"));
        life.pass(Duration::from_millis(dice.below(1500))).await;
        if weather.hang_ups && dice.one_in(8) {
            let away = || ConnectError::Unreachable { reason: "away".into() };
            let times = dice.below(3) as usize;
            life.vendor.hangs_up(std::iter::repeat_with(away).take(times));
        }
        if weather.disk_fails && dice.one_in(6) {
            let verbs = [
                Verb::Admit,
                Verb::Commit,
                Verb::Load,
                Verb::Unread,
                Verb::History,
                Verb::Preview,
                Verb::Attempt,
                Verb::Settle,
                Verb::Parcels,
            ];
            let verb = verbs[dice.below(verbs.len() as u64) as usize];
            life.disk.fails(verb, 1 + dice.below(3) as usize);
        }
    }
}

fn vendor_behaves(world: &World, weather: &Weather, seed: u64) {
    let mut dice = Dice::new(seed ^ 0xabcd);
    let (throttles, silence) = (weather.throttles, weather.silence);
    let mut silent = std::collections::BTreeSet::new();
    world.vendor().behaves(move |outbound| {
        if throttles && dice.one_in(6) {
            let after = Duration::from_millis(dice.below(3000));
            return Conduct::Refuses(SendError::Throttled { after });
        }
        if throttles && dice.one_in(12) {
            return Conduct::Refuses(SendError::Unreachable { reason: "no route".into() });
        }
        let counts = matches!(outbound.act, Act::Post(_) | Act::Edit { .. });
        if silence && counts && dice.one_in(6) && silent.insert(outbound.id.clone()) {
            return if dice.one_in(2) { Conduct::ShowsSilently } else { Conduct::LosesSilently };
        }
        match dice.below(4) {
            0 => Conduct::ShowsAfter(Duration::from_millis(dice.below(400))),
            _ => Conduct::Shows,
        }
    });
}

/// What is wrong with what people see.
fn problems(world: &World, weather: &Weather) -> Vec<String> {
    let vendor = world.vendor();
    let mut problems = Vec::new();
    for chat in 0..weather.chats {
        let to = vendor.dm(&format!("chat-{chat}"));
        let said: Vec<String> = vendor.truth(|truth| {
            let said = truth.happened.iter().filter(|event| event.to == to);
            said.filter_map(|event| match &event.kind {
                talaria_model::InboundKind::Said(message) => Some(message.text.clone()),
                _ => None,
            })
            .collect()
        });
        let shown = vendor.texts_at(&to);
        let whole = |text: &str| text.contains("done");
        let marked = |text: &str| text.contains(MARK);
        let mut firsts = Vec::new();
        for token in &said {
            let answers: Vec<usize> =
                (0..shown.len()).filter(|place| shown[*place].contains(token.as_str())).collect();
            match answers.iter().find(|place| whole(&shown[**place])) {
                Some(place) => firsts.push(*place),
                None => problems.push(format!("{token} is not answered")),
            }
            let copies =
                answers.iter().filter(|place| whole(&shown[**place]) && !marked(&shown[**place]));
            if copies.count() > 1 {
                problems.push(format!("{token} is answered twice, unmarked"));
            }
            for half in answers.iter().filter(|place| !whole(&shown[**place])) {
                let later = &shown[half + 1..];
                if !later
                    .iter()
                    .any(|text| text.contains(token.as_str()) && whole(text) && marked(text))
                {
                    problems.push(format!("half an answer to {token} stays"));
                }
            }
        }
        if !firsts.is_sorted() {
            problems.push(format!("answered out of order in {chat}: {said:?}"));
        }
        if !problems.is_empty() {
            problems.push(format!("what can be read: {shown:#?}"));
            return problems;
        }
    }
    problems
}

fn run(seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let weather = weather(&mut dice);
    let mut world = World::new(weather.can).with_agent(agent(|stage| async move {
        let answer = stage.echo();
        for end in [8, 20, 30] {
            let end = answer.floor_char_boundary(end.min(answer.len()));
            stage.show(&format!("{} and so the story goes on", &answer[..end]));
            SystemClock.sleep(Duration::from_millis(700)).await;
        }
        stage.finish(&format!("{answer} and so the story goes on. done")).await;
    }));
    if weather.little_room {
        world.limits.inbox = 1 + dice.below(3) as usize;
        world.limits.outbox = 1 + dice.below(2) as usize;
        world.rules.room = 1 + dice.below(3) as usize;
        world.limits.turns_at_once = 1 + dice.below(3) as usize;
        world.limits.lingering = 0;
    }
    vendor_behaves(&world, &weather, seed);
    if weather.disk_lags {
        world.disk.lags(Duration::from_millis(1 + dice.below(40)));
    }
    let lives = weather.deaths + weather.clean_stops + 1;
    let per_life = weather.messages.div_ceil(lives);
    let mut deaths = weather.deaths;
    for number in 0..lives - 1 {
        let (from, until) = (number * per_life, (number + 1) * per_life);
        let mut inside = Dice::new(dice.below(u64::MAX));
        let dies = deaths > 0 && (dice.one_in(2) || deaths + number == lives - 1);
        if dies {
            deaths -= 1;
            let moment = dice.below(120) as usize;
            world.live_and_die(moment, async |life| {
                talk(life, &weather, &mut inside, from, until).await;
                life.pass(Duration::from_secs(5)).await;
            });
        } else {
            world.live(async |life| {
                talk(life, &weather, &mut inside, from, until).await;
                life.gateway.stop(Duration::from_millis(inside.below(3000))).await;
            });
        }
    }
    let mut inside = Dice::new(dice.below(u64::MAX));
    world.live(async |life| {
        talk(life, &weather, &mut inside, (lives - 1) * per_life, weather.messages).await;
        // Everything heals.
        for verb in [Verb::Admit, Verb::Commit, Verb::Load, Verb::Unread, Verb::Attempt] {
            life.disk.fails(verb, 0);
        }
        life.vendor.behaves(|_| Conduct::Shows);
        life.quiet().await;
    });
    let problems = problems(&world, &weather);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("seed {seed}: {problems:#?}\n{weather:#?}"))
}

/// `SEED=…` runs one of them again.
#[test]
fn whatever_happens_everybody_is_answered_once_and_in_order() {
    let seeds = match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..300,
    };
    let failures: Vec<String> = seeds.filter_map(|seed| run(seed).err()).collect();
    let count = failures.len();
    assert!(count == 0, "{count} seeds end badly, such as: {}", failures[0]);
}
