//! Every point at which a process can die, in every small story there is: it dies there, starts again,
//! and everything is brought to its end and judged. Then once more with a second death in the life
//! after.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use talaria_model::{
    Address, Capabilities, Choices, Deletes, Drafts, Files as MayHaveFiles, InboundKind, MediaKind,
    Message, MessageId, SenderId, TextLimit, Unit,
};
use talaria_platform::Bursts;
use talaria_session::{Access, Busy};

use super::check::{Circumstances, Invariant, Origin, Problem, problems};
use super::{EDITING, End, Handing, Hears, Keeps, Life, SIMPLE, Verb, World, keyed};
use crate::{Token, mentioned};

/// A small story.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// What it is about.
    pub name: &'static str,
    /// What people do, and when, in milliseconds.
    acts: &'static [(u64, Does)],
    /// Whether somebody answers when asked.
    answers: Answers,
    /// When the gateway is stopped and started again with an account that hears fewer people.
    reload_at: Option<u64>,
    /// What becomes of something said while a turn runs.
    busy: Busy,
}

/// What a person does.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// Says this in their own chat, with a token of its own.
    Says(&'static str),
    /// Says something for a turn of its own.
    Queues,
    /// Says something for a turn beside the conversation.
    Beside,
    /// Gives a command.
    Commands(&'static str),
    /// Sends a file.
    Sends,
    /// Sends a file that stays with the vendor until it is asked for.
    Leaves,
    /// Sends a part of an album.
    AddsPicture,
    /// Changes the last file that was left.
    Changes,
    /// Presses stop.
    Stops,
    /// Somebody whom the account does not hear after a reload says something.
    Strangers,
    /// Somebody says this in a group.
    TellsAll(&'static str, &'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Yes,
    No,
}

/// How fast the disk is. A slow one lets other things happen in between, all the more where there is
/// room for one thing in memory only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    Fast,
    Slow,
    /// What is written can be read long before the writer hears of it.
    Stalling,
}

/// The platforms on which every story is told.
const PLATFORMS: [(&str, Capabilities, Hears, Disk); 9] = {
    let can = Capabilities { files: MayHaveFiles::UpTo(1000), ..SIMPLE };
    let small = Capabilities { text: TextLimit { max: 260, unit: Unit::Chars }, ..can };
    let buttons = Capabilities { choices: Choices::Buttons { max: 4, id: 64 }, ..small };
    let editing = Capabilities { edits: EDITING.edits, ..small };
    // Every answer is old when it is whole, and posted anew.
    let deleting = Capabilities { deletes: Deletes::Anytime, ..editing };
    let drafting = Capabilities { drafts: Drafts::Every(Duration::from_millis(300)), ..small };
    [
        ("plain-poll", small, Hears::Poll, Disk::Fast),
        ("keyed-sync", keyed(buttons), Hears::Stream, Disk::Fast),
        ("editing-webhook", editing, Hears::Requests, Disk::Fast),
        ("editing-keyed-envelopes", keyed(editing), Hears::Envelopes, Disk::Fast),
        ("drafting-sequence", drafting, Hears::Sequence, Disk::Fast),
        ("deleting-poll", deleting, Hears::Poll, Disk::Fast),
        ("plain-webhook-slow", small, Hears::Requests, Disk::Slow),
        ("editing-poll-slow", editing, Hears::Poll, Disk::Slow),
        ("plain-envelopes-stalling", small, Hears::Envelopes, Disk::Stalling),
    ]
};

/// As some of them deliver what people send as one.
const BURSTS: Bursts = Bursts {
    split_at: Some(4000),
    text: Duration::from_secs(1),
    album: Duration::from_millis(800),
    pictures: Duration::from_millis(800),
};

/// Every story.
pub const SCENARIOS: &[Scenario] = &[
    told("plain reply", &[(500, Does::Says(""))]),
    told("seven parts", &[(500, Does::Says("long"))]),
    told("file in", &[(500, Does::Sends)]),
    told("file to be fetched", &[(500, Does::Leaves)]),
    told(
        "files and words in between",
        &[(500, Does::Leaves), (600, Does::Says("")), (700, Does::Leaves), (5000, Does::Leaves)],
    ),
    told(
        "stop while a file is fetched",
        &[(500, Does::Leaves), (600, Does::Commands("/stop")), (2000, Does::Says(""))],
    ),
    told(
        "album part by part",
        &[(500, Does::AddsPicture), (700, Does::AddsPicture), (900, Does::AddsPicture)],
    ),
    told("changed before it is read", &[(500, Does::Leaves), (600, Does::Changes)]),
    told("file out", &[(500, Does::Says("draw"))]),
    told("pure tool", &[(500, Does::Says("look"))]),
    told("idempotent tool", &[(500, Does::Says("put"))]),
    told("queryable tool", &[(500, Does::Says("check"))]),
    told("unsafe tool", &[(500, Does::Says("pay"))]),
    told("question", &[(500, Does::Says("choose"))]),
    Scenario { answers: Answers::No, ..told("question expires", &[(500, Does::Says("choose"))]) },
    told("approval", &[(500, Does::Says("spend"))]),
    Scenario { answers: Answers::No, ..told("approval expires", &[(500, Does::Says("spend"))]) },
    told(
        "stop while asked to approve",
        &[(500, Does::Says("spend")), (4200, Does::Commands("/stop")), (5000, Does::Says(""))],
    ),
    told("turn deadline", &[(500, Does::Says("hang")), (1000, Does::Says(""))]),
    told("stop early", &[(500, Does::Says("")), (1200, Does::Commands("/stop"))]),
    told("stop before the end", &[(500, Does::Says("")), (3999, Does::Commands("/stop"))]),
    told("stop at the end", &[(500, Does::Says("")), (4000, Does::Commands("/stop"))]),
    told("stop a long answer", &[(500, Does::Says("long")), (6500, Does::Commands("/stop"))]),
    told("stop a tool", &[(500, Does::Says("pay")), (3800, Does::Stops), (4100, Does::Says(""))]),
    told(
        "new conversation",
        &[(500, Does::Says("")), (1700, Does::Commands("/new")), (1800, Does::Says(""))],
    ),
    Scenario {
        busy: Busy::Queue,
        ..told(
            "coalesced",
            &[
                (500, Does::Says("")),
                (500, Does::Says("")),
                (500, Does::Says("look")),
                (501, Does::Says("")),
            ],
        )
    },
    Scenario {
        busy: Busy::Steer,
        ..told(
            "steered",
            &[
                (500, Does::Says("look")),
                (1500, Does::Says("")),
                (4000, Does::Says("")),
                (6000, Does::Says("")),
            ],
        )
    },
    told(
        "interrupted",
        &[
            (500, Does::Says("look")),
            (1500, Does::Says("")),
            (5000, Does::Says("pay")),
            (9300, Does::Says("")),
        ],
    ),
    told(
        "queued",
        &[(500, Does::Says("")), (900, Does::Queues), (1000, Does::Queues), (1700, Does::Says(""))],
    ),
    told(
        "taken back",
        &[
            (500, Does::Says("")),
            (9000, Does::Commands("/undo")),
            (9500, Does::Says("")),
            (18000, Does::Commands("/retry")),
        ],
    ),
    told(
        "branched",
        &[
            (500, Does::Says("")),
            (9000, Does::Commands("/branch")),
            (9500, Does::Says("")),
            (18000, Does::Commands("/resume 1")),
        ],
    ),
    told("beside", &[(500, Does::Says("")), (900, Does::Beside), (1200, Does::Says(""))]),
    told(
        "two at once in a group",
        &[
            (500, Does::TellsAll("alice", "long")),
            (1000, Does::TellsAll("bob", "long")),
            (1009, Does::TellsAll("carol", "look")),
        ],
    ),
    Scenario {
        reload_at: Some(2500),
        ..told(
            "reload",
            &[
                (500, Does::Says("look")),
                (2000, Does::Strangers),
                (4000, Does::Strangers),
                (4500, Does::Says("")),
            ],
        )
    },
];

const fn told(name: &'static str, acts: &'static [(u64, Does)]) -> Scenario {
    Scenario { name, acts, answers: Answers::Yes, reload_at: None, busy: Busy::Interrupt }
}

/// How often a process died on the way, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The story.
    pub scenario: &'static str,
    /// The platform.
    pub platform: &'static str,
    /// The number of the point in each life that ended early.
    pub at: Vec<usize>,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at: Vec<String> = self.at.iter().map(usize::to_string).collect();
        write!(
            f,
            "--scenario '{}' --platform {} --die {}",
            self.scenario,
            self.platform,
            at.join(",")
        )
    }
}

/// What became of one telling.
pub struct Told {
    /// The deaths.
    pub death: Death,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What happened, as far as it was kept.
    pub log: Vec<String>,
    /// How many points the last life had.
    pub points: usize,
    /// How many of the deaths took place.
    pub died: usize,
}

/// The names of the platforms.
pub fn platforms() -> impl Iterator<Item = &'static str> {
    PLATFORMS.iter().map(|(name, ..)| *name)
}

/// The story of that name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// Tells the story with deaths at these points of its first lives.
    pub fn tell(&self, platform: &str, at: &[usize], keeps: Keeps) -> Told {
        let (platform, can, hears, disk) =
            PLATFORMS.iter().find(|(name, ..)| *name == platform).copied().unwrap_or(PLATFORMS[0]);
        let mut world = World::empty(keeps).with_model();
        world.add_bursting("main", can, hears, BURSTS);
        // Who only came in with everybody may approve nothing.
        world.accounts[0].1.listed = [SenderId::literal("alice")].into();
        if disk == Disk::Stalling {
            world.disk.answers_late(Verb::Commit, Duration::from_secs(2));
        }
        if disk != Disk::Fast {
            world.disk.lags(Duration::from_millis(3));
            world.limits.outbox = 1;
            world.limits.inbox = 1;
        }
        world.manner.streaming.fresh_final_after = Some(Duration::from_secs(1));
        world.rules.question_limit = Duration::from_secs(60);
        world.rules.approvals.limit = Duration::from_secs(60);
        world.rules.turn_limit = Duration::from_secs(90);
        world.rules.busy = self.busy;
        let mut telling = Telling {
            scenario: *self,
            next: 0,
            said: Circumstances::default(),
            asked: BTreeSet::new(),
            reloaded: self.reload_at.is_none(),
            last: 0,
            left: Message::default(),
        };
        let mut deaths = at.iter();
        let mut died = 0;
        let mut rested = Ok(());
        loop {
            let death = deaths.next();
            let mut turnout = None;
            let end = match death {
                Some(moment) => world
                    .live_and_die(*moment, async |life| turnout = Some(telling.play(life).await)),
                None => {
                    world.live_dangerously(async |life| turnout = Some(telling.play(life).await))
                }
            };
            match (end, turnout) {
                (End::Died, _) => {
                    died += 1;
                    telling.said.deaths += 1;
                }
                (End::Over, Some(Ended::ForReload)) => {
                    telling.said.stops += 1;
                    telling.reloaded = true;
                    world.accounts[0].1 = Access::only([SenderId::literal("alice")]);
                }
                (End::Over, Some(Ended::Rested)) => break,
                (End::Over, Some(Ended::Restless(counts))) => {
                    rested = Err(Problem { breaks: Invariant::Live, what: counts });
                    break;
                }
                (End::Over, None) => unreachable!("a life that is over was played"),
            }
        }
        let points = world.ground.points.passed();
        let mut problems = problems(&world, &telling.said);
        problems.extend(rested.err());
        if self.reload_at.is_some() {
            // Who was heard before the reload was rightly heard.
            problems.retain(|problem| problem.breaks != Invariant::Authority);
        }
        let death = Death { scenario: self.name, platform, at: at.to_vec() };
        Told { death, problems, log: world.ground.log.lines(), points, died }
    }
}

enum Ended {
    Rested,
    Restless(String),
    ForReload,
}

struct Telling {
    scenario: Scenario,
    next: usize,
    said: Circumstances,
    asked: BTreeSet<String>,
    reloaded: bool,
    last: u64,
    /// The last message with a file to be fetched.
    left: Message,
}

impl Telling {
    async fn play(&mut self, life: &Life) -> Ended {
        let end = life.ground.time.elapsed() + Duration::from_secs(60 * 60);
        let mut quiet_since = None;
        loop {
            let mut bell = life.ground.bell.subscribe();
            self.answer(life);
            let now = life.ground.time.elapsed();
            if let Some(at) = self.scenario.reload_at.filter(|_| !self.reloaded)
                && now >= Duration::from_millis(at)
            {
                life.gateway.stop(Duration::from_millis(100)).await;
                return Ended::ForReload;
            }
            let due = self.scenario.acts.get(self.next).map(|(at, _)| Duration::from_millis(*at));
            if due.is_some_and(|due| due <= now) {
                self.act(life);
                continue;
            }
            let quiet = due.is_none() && self.reloaded && life.is_quiet().await;
            quiet_since = if quiet { quiet_since.or(Some(now)) } else { None };
            if quiet_since.is_some_and(|since| now >= since + Duration::from_secs(5)) {
                life.gateway.stop(Duration::from_secs(1)).await;
                return Ended::Rested;
            }
            if now >= end {
                use talaria_store::Store;
                let counts = life.disk.counts().await.unwrap_or_default();
                return Ended::Restless(format!("no rest within an hour: {counts:?}"));
            }
            let reload =
                self.scenario.reload_at.filter(|_| !self.reloaded).map(Duration::from_millis);
            let rest = quiet_since.map(|since| since + Duration::from_secs(5));
            let until = [due, reload, rest].into_iter().flatten().min().unwrap_or(end);
            tokio::select! {
                biased;
                _ = bell.changed() => {}
                () = tokio::time::sleep(until.saturating_sub(now)) => {}
            }
        }
    }

    fn act(&mut self, life: &Life) {
        let (_, does) = self.scenario.acts[self.next];
        self.next += 1;
        let vendor = &life.vendor;
        let home = vendor.dm("home");
        match does {
            Does::Says("") => {
                _ = {
                    let text = format!("hello {}", self.token("alice", home.clone()));
                    vendor.say("alice", "home", &text)
                }
            }
            Does::Says(verb) => {
                _ = {
                    let text = format!("please {verb} {}", self.token("alice", home.clone()));
                    vendor.say("alice", "home", &text)
                }
            }
            Does::Queues => {
                _ = {
                    let text = format!("/queue hello {}", self.token("alice", home.clone()));
                    vendor.say("alice", "home", &text)
                }
            }
            Does::Beside => {
                _ = {
                    let text = format!("/background hello {}", self.token("alice", home.clone()));
                    vendor.say("alice", "home", &text)
                }
            }
            Does::Commands(command) => _ = vendor.say("alice", "home", command),
            Does::Sends => {
                let (token, inside) =
                    (self.token("alice", home.clone()), self.token("alice", home.clone()));
                let file = life.files.put("note.txt", format!("inside is {inside}").as_bytes());
                let text = format!("a file {token}");
                let message = Message { text, files: vec![file], ..Message::default() };
                vendor.does("alice", home, InboundKind::Said(message));
            }
            Does::Leaves => {
                let (token, inside) =
                    (self.token("alice", home.clone()), self.token("alice", home.clone()));
                let inside = format!("inside is {inside}");
                let media = vendor.keep(MediaKind::Document, "note.txt", inside.as_bytes());
                let mut asked = 0;
                vendor.hands_out(move |_| {
                    asked += 1;
                    match asked % 2 {
                        1 => Handing::HandsAfter(Duration::from_millis(300)),
                        _ => Handing::Breaks,
                    }
                });
                let text = format!("a file {token}");
                let id = MessageId::new(format!("m{token}")).expect("an id");
                let message =
                    Message { id: Some(id), text, media: vec![media], ..Message::default() };
                self.left = message.clone();
                vendor.does("alice", home, InboundKind::Said(message));
            }
            Does::AddsPicture => {
                let text = format!("a picture {}", self.token("alice", home.clone()));
                let media = vec![vendor.keep(MediaKind::Photo, "a.png", b"a picture")];
                let album = Some("album".into());
                let message = Message { text, media, album, ..Message::default() };
                vendor.does("alice", home, InboundKind::Said(message));
            }
            Does::Changes => {
                let Message { id, text, .. } = self.left.clone();
                let text = format!("{text}, changed");
                let message = Message { id, text, ..Message::default() };
                vendor.does("alice", home, InboundKind::Edited(message));
            }
            Does::Stops => _ = vendor.press_stop("alice", "home"),
            Does::Strangers => {
                _ = {
                    let token = self.token("mallory", vendor.dm("elsewhere"));
                    vendor.say("mallory", "elsewhere", &format!("hello {token}"))
                }
            }
            Does::TellsAll(who, verb) => {
                _ = {
                    let token = self.token(who, vendor.group("all"));
                    vendor.say_in_group(who, "all", &format!("please {verb} {token}"))
                }
            }
        }
    }

    fn token(&mut self, who: &'static str, at: Address) -> Token {
        self.last += 1;
        let token = Token(self.last);
        self.said.said.insert(token, Origin { from: SenderId::literal(who), at });
        token
    }

    fn answer(&mut self, life: &Life) {
        if self.scenario.answers == Answers::No {
            return;
        }
        let questions: Vec<_> = life.vendor.truth(|truth| {
            let asks = truth.shown.iter().filter(|shown| {
                let text = &shown.content.text;
                text.contains("Which one") || text.contains("May I call")
            });
            asks.map(|shown| shown.content.clone()).collect()
        });
        for question in questions {
            let about = format!("{:?}", mentioned(&question.text));
            if self.asked.insert(about) {
                match question.choices.first() {
                    Some(choice) => life.vendor.press("alice", "home", &choice.id),
                    None => life.vendor.say("alice", "home", "1"),
                };
            }
        }
    }
}
