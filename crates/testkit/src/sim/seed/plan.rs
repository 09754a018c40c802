//! What a seed switches on, and what happens when.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use talaria_model::{
    Act, Address, Bucket, Capabilities, Choices, Deletes, Drafts, Edits, Files, Idempotency,
    Markup, Media, Outbound, Pace, SenderId, TextLimit, ThreadId, Typing, Unit,
};
use talaria_platform::{FetchError, SendError};
use talaria_session::{Access, Acks, Busy, GroupSessions, Rules, Scope, ThreadSessions};

use super::hooks::Doorkeeper;
use super::people::{Saying, Speech};
use crate::sim::{Conduct, Habits, Handing, Hears, Moment, Moods, Moody, Reach, World};
use crate::{Dice, Token};

/// What happens at a time that was fixed beforehand.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Somebody says something.
    Speak(Speech),
    /// The process is killed, so many moments from then.
    Kill(Option<Moment>),
    /// The process is stopped, with so much time to finish.
    Stop(Duration),
    /// Nothing runs for a while, and nobody noticed.
    Pause(Duration),
    /// Somebody sets the clock.
    Jump(i64),
    /// The disk is full for a while.
    Full(Duration),
    /// A connection breaks.
    HangUp(usize),
    /// A vendor cannot be reached, or can again.
    Reach(usize, Reach),
    /// Somebody else polls.
    Rival(usize, Duration),
    /// A vendor forgets its sessions.
    Invalidate(usize),
}

/// What is switched on.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct Weather {
    pub(super) deaths: bool,
    pub(super) stops: bool,
    pub(super) pauses: bool,
    pub(super) jumps: bool,
    pub(super) disk_fails: bool,
    pub(super) disk_lies: bool,
    pub(super) disk_slow: bool,
    pub(super) disk_full: bool,
    pub(super) repeats: bool,
    pub(super) reorders: bool,
    pub(super) deaf: bool,
    pub(super) impatient: bool,
    pub(super) hang_ups: bool,
    pub(super) partitions: bool,
    pub(super) rivals: bool,
    pub(super) throttles: bool,
    pub(super) silence: bool,
    pub(super) refusals: bool,
    pub(super) nameless: bool,
    pub(super) vendor_panics: bool,
    pub(super) model_fails: bool,
    pub(super) model_garbles: bool,
    pub(super) model_panics: bool,
    pub(super) poison: bool,
    pub(super) tools: bool,
    pub(super) questions: bool,
    pub(super) commands: bool,
    pub(super) long: bool,
    pub(super) files: bool,
    pub(super) strangers: bool,
    pub(super) replays: bool,
    pub(super) groups: bool,
    pub(super) little_room: bool,
    pub(super) queues: bool,
    pub(super) looks_back: bool,
    pub(super) media: bool,
    pub(super) media_fails: bool,
    pub(super) paced: bool,
    pub(super) finds: bool,
    pub(super) fresh: bool,
    pub(super) forwards: bool,
    pub(super) approvals: bool,
    pub(super) hooks: bool,
}

impl fmt::Display for Weather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = format!("{self:?}");
        let on = all.trim_start_matches("Weather { ").trim_end_matches(" }").split(", ");
        let on = on.filter_map(|switch| switch.strip_suffix(": true")).collect::<Vec<_>>();
        write!(f, "switched on: {}", on.join(", "))
    }
}

impl Weather {
    fn throw(dice: &mut Dice) -> Self {
        // Some days are calm, some are wild: each fault is switched on by itself.
        let wildness = *dice.pick(&[8, 4, 3, 2]);
        let mut on = |many: u64| dice.one_in(many);
        Self {
            deaths: on(2),
            stops: on(4),
            pauses: on(2 * wildness),
            jumps: on(3 * wildness),
            disk_fails: on(wildness),
            disk_lies: on(2 * wildness),
            disk_slow: on(wildness),
            disk_full: on(wildness),
            repeats: on(wildness),
            reorders: on(wildness),
            deaf: on(wildness),
            impatient: on(2 * wildness),
            hang_ups: on(wildness),
            partitions: on(wildness),
            rivals: on(wildness),
            throttles: on(wildness),
            silence: on(wildness),
            refusals: on(2 * wildness),
            nameless: on(3 * wildness),
            vendor_panics: on(3 * wildness),
            model_fails: on(wildness),
            model_garbles: on(wildness),
            model_panics: on(3 * wildness),
            poison: on(24),
            tools: on(2),
            questions: on(3),
            commands: on(3),
            long: on(3),
            files: on(3),
            strangers: on(3),
            replays: on(3),
            groups: on(2),
            little_room: on(3),
            queues: on(3),
            looks_back: on(3),
            media: on(3),
            media_fails: on(2),
            paced: on(3),
            finds: on(3),
            fresh: on(2),
            forwards: on(3),
            approvals: on(3),
            hooks: on(4),
        }
    }
}

/// A vendor as the seed wants it.
struct Shop {
    name: String,
    can: Capabilities,
    hears: Hears,
    listed: bool,
    people: Vec<String>,
}

/// Everything that a seed decides beforehand.
pub(super) struct Plan {
    pub(super) weather: Weather,
    pub(super) steps: Vec<(Duration, Step)>,
    pub(super) poisoned: Option<Token>,
    shops: Vec<Shop>,
    messages: u64,
}

impl Plan {
    pub(super) fn throw(dice: &mut Dice) -> Self {
        let weather = Weather::throw(dice);
        let shops = 1 + dice.below(3) * u64::from(dice.one_in(2));
        let shops = (0..shops).map(|n| Shop::throw(n, &weather, dice)).collect();
        let messages = match dice.below(50) {
            0 => 200 + dice.below(200),
            1..10 => 40 + dice.below(40),
            _ => 4 + dice.below(20),
        };
        Self { weather, steps: Vec::new(), poisoned: None, shops, messages }
    }

    pub(super) fn vendors(&self) -> usize {
        self.shops.len()
    }

    /// Makes the world as the seed wants it, and decides what happens in it.
    pub(super) fn furnish(&mut self, world: &mut World, dice: &mut Dice) {
        let weather = self.weather.clone();
        for shop in &self.shops {
            let vendor = world.add_hearing(&shop.name, shop.can, shop.hears);
            let habits = Habits {
                batch: *dice.pick(&[1, 3, 16, 100]),
                reorders: weather.reorders,
                repeats: if weather.repeats { 3 } else { 0 },
                deaf: if weather.deaf { 4 } else { 0 },
                patience: if weather.impatient { 3 } else { u32::MAX },
                retention: Duration::from_secs(24 * 60 * 60),
            };
            vendor.has_habits(habits, dice.split());
            let mut conduct = conduct(&weather, shop.can, dice.split());
            vendor.behaves(move |outbound| conduct(outbound));
            vendor.hands_out(handing(&weather, dice.split()));
            if weather.finds {
                vendor.lets_look();
            }
            let listed = shop.people.iter().map(|who| SenderId::new(who.as_str()).expect("an id"));
            let access = &mut world.accounts.last_mut().expect("just added").1;
            if shop.listed {
                *access = Access::only(listed);
            } else if weather.approvals {
                // Who only came in with everybody may approve nothing.
                access.listed = listed.collect();
            }
        }
        world.scope = Scope {
            groups: *dice.pick(&[GroupSessions::PerMember, GroupSessions::Shared]),
            threads: *dice.pick(&[ThreadSessions::PerMember, ThreadSessions::Shared]),
        };
        world.rules = Rules {
            question_limit: Duration::from_secs(600),
            busy: *dice.pick(&[Busy::Interrupt, Busy::Queue, Busy::Steer]),
            acks: *dice.pick(&[Acks::Sent, Acks::Sent, Acks::Never]),
            ..Rules::default()
        };
        if weather.fresh {
            let after = Duration::from_millis(*dice.pick(&[500, 1500, 4000]));
            world.manner.streaming.fresh_final_after = Some(after);
        }
        if weather.little_room {
            world.limits.inbox = 1 + dice.below(3) as usize;
            world.limits.outbox = 1 + dice.below(2) as usize;
            world.rules.room = 1 + dice.below(3) as usize;
            world.limits.turns_at_once = 1 + dice.below(3) as usize;
            world.limits.lingering = 0;
        }
        let rate = |on: bool, many: u64| if on { many } else { 0 };
        world.disk.is_moody(Moody {
            fails: rate(weather.disk_fails, 12),
            lies: rate(weather.disk_lies, 15),
            lag: Duration::from_millis(if weather.disk_slow { 1 + dice.below(80) } else { 0 }),
            dice: dice.split(),
        });
        if let Some(model) = &world.model {
            let moods = Moods {
                cuts: rate(weather.model_fails, 6),
                limits: rate(weather.model_fails, 8),
                garbles: rate(weather.model_garbles, 6),
                restarts: rate(weather.model_fails, 8),
                panics: rate(weather.model_panics, 12),
                pace: Duration::from_millis(*dice.pick(&[20, 100, 400, 900])),
                filler: 14,
            };
            model.has_moods(moods, dice.split());
            if weather.poison {
                let token = Token(1 + dice.below(self.messages.min(10)));
                self.poisoned = Some(token);
                model.is_killed_by(token, u32::MAX);
            }
        }
        if weather.hooks {
            world.watcher = Arc::new(Doorkeeper::new(Arc::new(world.clock.clone()), dice.split()));
        }
        self.schedule(dice);
    }

    fn schedule(&mut self, dice: &mut Dice) {
        let weather = self.weather.clone();
        let mut at = Duration::ZERO;
        for _ in 0..self.messages {
            at += match dice.below(6) {
                0 | 1 => Duration::ZERO,
                2 => Duration::from_millis(dice.below(200)),
                3 => Duration::from_secs(dice.below(40)),
                _ => Duration::from_millis(dice.below(4000)),
            };
            let shop = dice.below(self.shops.len() as u64) as usize;
            let speech = self.shops[shop].speech(shop, &weather, dice);
            self.steps.push((at, Step::Speak(speech)));
        }
        let span = u64::try_from(at.as_millis()).unwrap_or(u64::MAX) + 4000;
        let when = |dice: &mut Dice| Duration::from_millis(dice.below(span));
        let vendors = self.shops.len() as u64;
        let mut add = |dice: &mut Dice, step: Step| {
            let at = when(dice);
            self.steps.push((at, step));
        };
        if weather.deaths {
            for _ in 0..1 + dice.below(4) {
                let moment = match dice.below(3) {
                    0 => None,
                    1 => Some(Moment::Numbered(dice.below(40) as usize)),
                    _ => Some(Moment::Poll(dice.below(300) as usize)),
                };
                add(dice, Step::Kill(moment));
            }
        }
        if weather.stops {
            for _ in 0..1 + dice.below(2) {
                let grace = Duration::from_millis(dice.below(3000));
                add(dice, Step::Stop(grace));
            }
        }
        if weather.pauses {
            let pause = Duration::from_secs(*dice.pick(&[30, 600, 7200]));
            add(dice, Step::Pause(pause));
        }
        if weather.jumps {
            let hours = *dice.pick(&[-2, -1, 1, 2]);
            add(dice, Step::Jump(hours * 60 * 60 * 1000));
        }
        if weather.disk_full {
            let time = Duration::from_millis(dice.below(60_000));
            add(dice, Step::Full(time));
        }
        for vendor in 0..vendors as usize {
            if weather.hang_ups {
                for _ in 0..1 + dice.below(3) {
                    let at = when(dice);
                    self.steps.push((at, Step::HangUp(vendor)));
                }
            }
            if weather.partitions {
                let from = when(dice);
                let until = from + Duration::from_millis(dice.below(120_000));
                let reach = *dice.pick(&[Reach::Refused, Reach::Silent]);
                self.steps.push((from, Step::Reach(vendor, reach)));
                self.steps.push((until, Step::Reach(vendor, Reach::Open)));
            }
            match self.shops[vendor].hears {
                Hears::Poll if weather.rivals => {
                    let time = Duration::from_secs(1 + dice.below(60));
                    self.steps.push((when(dice), Step::Rival(vendor, time)));
                }
                Hears::Sequence if weather.rivals => {
                    self.steps.push((when(dice), Step::Invalidate(vendor)));
                }
                _ => {}
            }
        }
        // Stable, so that what was thrown first happens first.
        self.steps.sort_by_key(|(at, _)| *at);
    }
}

impl Shop {
    fn throw(number: u64, weather: &Weather, dice: &mut Dice) -> Self {
        let hears = *dice.pick(&[
            Hears::Stream,
            Hears::Requests,
            Hears::Poll,
            Hears::Envelopes,
            Hears::Sequence,
        ]);
        let (edits, drafts) = *dice.pick(&[
            (Edits::Never, Drafts::Never),
            (Edits::Every(Duration::from_secs(1)), Drafts::Never),
            (Edits::Every(Duration::from_millis(200)), Drafts::Never),
            (Edits::Never, Drafts::Every(Duration::from_millis(300))),
        ]);
        // Nobody knows how old a preview of an earlier life is, so only a key that is recognised for a
        // day can be relied on where there are previews.
        let day = Idempotency::Keyed(Duration::from_secs(24 * 60 * 60));
        let idempotency = match hears {
            _ if edits != Edits::Never => *dice.pick(&[Idempotency::None, day]),
            // When somebody sets the clock, nobody knows how old a key is.
            _ if weather.jumps => *dice.pick(&[Idempotency::None, day]),
            Hears::Stream => day,
            _ => *dice.pick(&[
                Idempotency::None,
                Idempotency::None,
                day,
                Idempotency::Keyed(Duration::from_secs(300)),
            ]),
        };
        let can = Capabilities {
            text: TextLimit { max: *dice.pick(&[200, 300, 1000, 4000]), unit: Unit::Chars },
            markup: *dice.pick(&[
                Markup::Plain,
                Markup::Markdown,
                Markup::Entities,
                Markup::Discord,
            ]),
            edits,
            drafts,
            choices: *dice.pick(&[
                Choices::Numbered,
                Choices::Numbered,
                Choices::Buttons { max: 4, id: 64 },
                // Too little for any id of ours.
                Choices::Buttons { max: 4, id: 41 },
            ]),
            typing: *dice.pick(&[
                Typing::Never,
                Typing::Fades(Duration::from_secs(5)),
                Typing::Stays(Duration::from_secs(100)),
            ]),
            files: *dice.pick(&[Files::Never, Files::UpTo(1000)]),
            deletes: *dice.pick(&[Deletes::Never, Deletes::Anytime]),
            pace: match weather.paced {
                true => Pace { account: bucket(dice), chat: bucket(dice), edits: bucket(dice) },
                false => Pace::FREE,
            },
            idempotency,
            ..Capabilities::PLAIN
        };
        let people = (0..1 + dice.below(4)).map(|n| format!("person{number}{n}")).collect();
        Self { name: format!("account{number}"), can, hears, listed: weather.strangers, people }
    }

    fn speech(&self, vendor: usize, weather: &Weather, dice: &mut Dice) -> Speech {
        let stranger = weather.strangers && dice.one_in(6);
        let who = match stranger {
            true => "stranger".to_owned(),
            false => dice.pick(&self.people).clone(),
        };
        let account = || talaria_model::AccountId::new(self.name.as_str()).expect("an account");
        let chat = |id: &str, kind| talaria_model::Chat {
            id: talaria_model::ChatId::new(id).expect("a chat"),
            kind,
        };
        let at = if weather.groups && dice.one_in(2) {
            let thread = dice.one_in(3).then(|| ThreadId::literal("thread"));
            Address {
                account: account(),
                chat: chat("group", talaria_model::ChatKind::Group),
                thread,
            }
        } else {
            let chat = chat(&format!("dm-{who}"), talaria_model::ChatKind::Dm);
            Address { account: account(), chat, thread: None }
        };
        let mut sayings = vec![Saying::Words(""); 4];
        if weather.tools {
            sayings
                .extend(["pay", "put", "check", "look", "draw", "pay and look"].map(Saying::Words));
        }
        if weather.questions {
            sayings.extend(["choose", "wonder"].map(Saying::Words));
        }
        if weather.approvals {
            sayings.extend(["spend", "spend", "spend and look"].map(Saying::Words));
        }
        if weather.long {
            sayings.push(Saying::Words("long"));
        }
        if weather.files {
            sayings.push(Saying::WithFile);
        }
        if weather.media {
            sayings.extend([Saying::WithMedia, Saying::WithMedia]);
        }
        if weather.replays {
            sayings.push(Saying::Replay);
        }
        if weather.queues {
            sayings.extend(["/queue", "/queue", "/steer", "/background"].map(Saying::By));
        }
        if weather.forwards {
            sayings.extend(["/stop", "/new", "/queue", "1"].map(Saying::PassedOn));
        }
        if weather.looks_back {
            let commands = [
                "/undo",
                "/undo 3",
                "/retry",
                "/branch",
                "/resume 1",
                "/resume 2",
                "/sessions",
                "/history",
                "/search hello",
                "/title A title",
                "/usage",
            ];
            sayings.extend(commands.map(Saying::Command));
        }
        if weather.commands {
            let commands = ["/stop", "/new", "/status", "/help", "/nope", "/stop"];
            sayings.extend(commands.map(Saying::Command));
            sayings.push(Saying::Stop);
        }
        Speech { vendor, who, at, what: dice.pick(&sayings).clone() }
    }
}

fn bucket(dice: &mut Dice) -> Option<Bucket> {
    let (burst, every) = *dice.pick(&[(1, 200), (2, 1000), (5, 500), (0, 0)]);
    (burst > 0).then(|| Bucket { burst, every: Duration::from_millis(every) })
}

/// How a vendor treats what it is asked to do.
fn handing(weather: &Weather, mut dice: Dice) -> impl FnMut(&Media) -> Handing + Send + use<> {
    let fails = weather.media_fails;
    move |_| match dice.below(if fails { 10 } else { 4 }) {
        0 => Handing::HandsAfter(Duration::from_millis(dice.below(4000))),
        1..4 => Handing::Hands,
        4 => Handing::Breaks,
        5 => Handing::Stalls,
        6 => Handing::Never,
        7 => Handing::Refuses(FetchError::Refused { reason: "too old".into() }),
        8 => Handing::Panics,
        _ => Handing::Refuses(FetchError::Unreachable { reason: "no route".into() }),
    }
}

fn conduct(
    weather: &Weather,
    can: Capabilities,
    mut dice: Dice,
) -> impl FnMut(&Outbound) -> Conduct + Send + use<> {
    let weather = weather.clone();
    move |outbound| {
        let counts = matches!(outbound.act, Act::Post(_) | Act::Edit { .. });
        if weather.throttles && dice.one_in(6) {
            let after = Duration::from_millis(dice.below(8000));
            return Conduct::Refuses(match dice.one_in(4) {
                true => SendError::Halted { after },
                false => SendError::Throttled { after },
            });
        }
        if weather.throttles && dice.one_in(12) {
            return Conduct::Refuses(SendError::Unreachable { reason: "no route".into() });
        }
        if weather.silence && counts && dice.one_in(8) {
            return if dice.one_in(2) { Conduct::ShowsSilently } else { Conduct::LosesSilently };
        }
        if weather.refusals && counts && dice.one_in(12) {
            let reason = "no".to_owned();
            let refusal = match dice.below(3) {
                0 => SendError::Gone { reason },
                1 => SendError::Rejected { reason },
                _ => SendError::Unreadable { reason },
            };
            return Conduct::Refuses(refusal);
        }
        // Who can change messages knows their names.
        if weather.nameless
            && can.edits == Edits::Never
            && matches!(outbound.act, Act::Post(_))
            && dice.one_in(6)
        {
            return Conduct::ShowsNameless;
        }
        if weather.vendor_panics && dice.one_in(20) {
            return Conduct::Panics;
        }
        match dice.below(5) {
            0 => Conduct::ShowsAfter(Duration::from_millis(dice.below(1500))),
            _ => Conduct::Shows,
        }
    }
}
