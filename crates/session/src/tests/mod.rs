//! Conversations as data: a script goes in, the decisions come out.

mod answering;
mod approval;
mod arriving;
mod busy;
mod chance;
mod commands;
mod elsewhere;
mod going_back;
mod lives;
mod recorded;
mod restarts;
mod several;
mod table;
mod voice;
mod why;

use std::sync::Arc;
use std::time::Duration;

use talaria_model::{
    AccountId, Act, Address, AgentEvent, Aim, Author, CallId, Chat, ChatId, ChatKind, Choice,
    ChoiceId, Cost, EarlierYes, EntryBody, EventId, Failure, FileId, FileRef, Inbound, InboundKind,
    Message, MessageId, Owner, Question, Sender, SenderId, Sending, Seq, SessionId, Shown, Source,
    Timestamp, ToolCall, Transcript, Understood, Usage, WITHHELD, Word, Work,
};

use crate::pairing::Code;
use crate::{
    Access, Acks, AfterStop, Authority, Busy, Caller, Closed, Effect, Ended, Event, Farewell, Mark,
    Passed, Past, Preferences, Reach, Recalled, ResumeReason, Rules, Scope, Session, SessionKey,
    Told,
};

pub(crate) fn said(who: &str, text: &str) -> Inbound {
    Inbound {
        id: EventId::literal("e"),
        at: Timestamp::default(),
        from: Sender::new(SenderId::new(who).unwrap()),
        to: Address {
            account: AccountId::literal("web"),
            chat: Chat { id: ChatId::literal("c"), kind: ChatKind::Dm },
            thread: None,
        },
        source: Source::default(),
        kind: InboundKind::Said(Message { text: text.into(), ..Message::default() }),
    }
}

/// A chat that is not the one where people talk.
fn elsewhere() -> Address {
    let chat = Chat { id: ChatId::literal("club"), kind: ChatKind::Group };
    Address { account: AccountId::literal("work"), chat, thread: None }
}

fn file(name: &str) -> FileRef {
    let id = FileId::new(name).unwrap();
    FileRef::new(id, name, "image/png", 1)
}

/// A turn is told at once what is said while it runs, and nobody is told of that.
fn steering() -> Rules {
    Rules { busy: Busy::Steer, ..quiet() }
}

fn queueing() -> Rules {
    Rules { busy: Busy::Queue, ..quiet() }
}

/// Nobody is told that something waits, and a stop is not the end of the conversation.
fn quiet() -> Rules {
    Rules { acks: Acks::Never, stop: AfterStop::Keep, ..Rules::default() }
}

/// A session being told things, one second apart.
struct Talk {
    session: Session,
    now: Timestamp,
    seq: u64,
    kind: ChatKind,
    /// Who may do what. Everybody has been let in by pairing.
    access: Access,
}

impl Talk {
    fn new(rules: Rules) -> Self {
        Self::among(ChatKind::Dm, rules)
    }

    /// In a chat of several people, or not.
    fn among(kind: ChatKind, rules: Rules) -> Self {
        let now = Timestamp::from_millis(1_794_735_000_000);
        let mut hello = said("alice", "");
        hello.to.chat.kind = kind;
        let scope = Scope { groups: crate::GroupSessions::Shared, ..Scope::default() };
        let key = SessionKey::of(&hello, scope);
        let session = Session::begin(key, hello.to, now, rules);
        Self { session, now, seq: 0, kind, access: Access::closed() }
    }

    /// The same on an account that listens to these.
    fn on(self, access: Access) -> Self {
        Self { access, ..self }
    }

    fn authority(&self, inbound: &Inbound) -> Authority {
        self.access.authority(Caller::of(inbound, Some(Reach::Everywhere)))
    }

    fn tell(&mut self, event: Event) -> Vec<Effect> {
        self.now = self.now + Duration::from_secs(1);
        // Every state that is reached must survive being stored.
        let stored = serde_json::to_string(&self.session).expect("a session serialises");
        let rules = self.session.rules.clone();
        let loaded: Session = serde_json::from_str(&stored).expect("a session deserialises");
        self.session = Session { rules, ..loaded };
        self.session.step(event, self.now)
    }

    fn arrive(&mut self, mut inbound: Inbound) -> Vec<Effect> {
        self.seq += 1;
        inbound.to.chat.kind = self.kind;
        let by = self.authority(&inbound);
        self.tell(Event::Arrived { seq: Seq(self.seq), inbound, overtaken: 0, by })
    }

    /// The process starts again, and everybody may do what they could before.
    fn restart(&mut self, ended: Ended) -> Vec<Effect> {
        self.tell(Event::Restarted { ended, unheard: None, yes: EarlierYes::Counts })
    }

    fn agent(&mut self, event: AgentEvent) -> Vec<Effect> {
        let turn = self.session.hand().expect("a turn is in hand").turn.clone();
        self.tell(Event::Agent { turn, event })
    }

    /// One line of a script: `alice: words`, `alice sends a.png: caption`, `alice speaks: words`, `alice plays: words` (of somebody else),
    /// `alice passes on: words`, `alice said early: words`, `press: id`,
    /// `agent: verb words`, `told 3: words`, `restart`, `crash`, `later: seconds`, `away: seconds`.
    fn line(&mut self, line: &str) -> Vec<Effect> {
        let (who, what) = line.split_once(": ").unwrap_or((line, ""));
        match who.split(' ').collect::<Vec<_>>().as_slice() {
            ["stop", "button"] => {
                self.arrive(Inbound { kind: InboundKind::Stopped, ..said("alice", "") })
            }
            ["press"] => {
                let choice = ChoiceId::new(what).expect("a choice");
                self.arrive(Inbound { kind: InboundKind::Pressed(choice), ..said("alice", "") })
            }
            [who, "presses"] => {
                let choice = ChoiceId::new(what).expect("a choice");
                self.arrive(Inbound { kind: InboundKind::Pressed(choice), ..said(who, "") })
            }
            ["restart"] => self.restart(Ended::Cleanly),
            ["leave"] => self.tell(Event::Leaving {
                reason: ResumeReason::RestartTimeout,
                farewell: Farewell::Said,
            }),
            ["crash"] => self.restart(Ended::Abruptly),
            ["put", "away"] => self.tell(Event::PutAway),
            ["later"] => {
                self.now = self.now + Duration::from_secs(what.parse().expect("seconds"));
                self.tell(Event::Woke)
            }
            ["away"] => {
                self.now = self.now + Duration::from_secs(what.parse().expect("seconds"));
                Vec::new()
            }
            ["side", side, "over"] => {
                let side = side.parse().expect("a number");
                self.tell(Event::Passed(Passed::SideOver(side)))
            }
            ["passed", "stop"] => self.tell(Event::Passed(Passed::Stop)),
            ["told", seq] => {
                let told = match what.split_once(' ') {
                    Some(("model", name)) => Told::Model(name.into()),
                    Some(("said", text)) => {
                        let inbound = said("alice", text);
                        let InboundKind::Said(message) = inbound.kind else { unreachable!() };
                        Told::Said(vec![Recalled { from: inbound.from, message, heard: None }])
                    }
                    Some(("life", id)) => Told::Life(Box::new(past(id))),
                    Some(("code", code)) => Told::Code {
                        text: format!("Pairing code: `{WITHHELD}`."),
                        code: Code::read(code).expect("a code"),
                    },
                    Some(("spoken", name)) => Told::Spoken(file(name)),
                    Some(("elsewhere", id)) => Told::Elsewhere(Box::new(past(id))),
                    _ => Told::Text(what.into()),
                };
                let seq = Seq(seq.parse().expect("a number"));
                self.tell(Event::Told { seq, told })
            }
            ["agent"] => {
                let event = report(what);
                self.agent(event)
            }
            // Nobody understands an empty recording.
            [who, verb @ ("speaks" | "plays")] => {
                let mut inbound = said(who, "");
                if let InboundKind::Said(message) = &mut inbound.kind {
                    let owner = if *verb == "speaks" { Owner::Sender } else { Owner::Answered };
                    let recording = FileRef { shown: Shown::Voice, owner, ..file("v.ogg") };
                    message.transcripts = vec![Transcript {
                        of: recording.id.clone(),
                        said: match what {
                            "" => Understood::Nothing("nothing was said".into()),
                            words => Understood::Words(words.into()),
                        },
                        owner: recording.owner,
                    }];
                    message.files = vec![recording];
                }
                self.arrive(inbound)
            }
            [who, "sends", name] => {
                let mut inbound = said(who, what);
                if let InboundKind::Said(message) = &mut inbound.kind {
                    message.files = vec![file(name)];
                }
                self.arrive(inbound)
            }
            [who, "passes", "on"] => {
                let mut inbound = said(who, what);
                if let InboundKind::Said(message) = &mut inbound.kind {
                    message.forwarded = Some(Author::Unknown);
                }
                self.arrive(inbound)
            }
            [who, "said", "early"] => {
                let mut inbound = said(who, what);
                if let InboundKind::Said(message) = &mut inbound.kind {
                    message.aim = Aim::TooEarly;
                }
                self.arrive(inbound)
            }
            [who] => self.arrive(said(who, what)),
            _ => panic!("unknown line {line}"),
        }
    }

    fn play(&mut self, script: &str) -> Vec<Effect> {
        script.split(" / ").map(|line| self.line(line)).last().unwrap_or_default()
    }
}

/// What the agent reports: `finishes words`, `steps words`, `calls id`, `returns id`, …
fn report(what: &str) -> AgentEvent {
    let (verb, words) = what.split_once(' ').unwrap_or((what, ""));
    let text = words.to_owned();
    let usage = Usage { input: 100, output: 10, ..Usage::default() };
    let cost = Cost::known(1_000);
    let call = || CallId::new(words).expect("an id");
    match verb {
        "finishes" => AgentEvent::Finished { text, files: vec![], reasoning: None, usage, cost },
        "steps" => {
            let (files, calls) = (vec![], vec![]);
            AgentEvent::Stepped { text, files, calls, reasoning: None, usage, cost }
        }
        "wants" => {
            let arguments = r#"{"a":1}"#.to_owned();
            let calls =
                vec![ToolCall { id: CallId::literal("w"), tool: words.to_owned(), arguments }];
            let (text, files) = (String::new(), vec![]);
            AgentEvent::Stepped { text, files, calls, reasoning: None, usage, cost }
        }
        "calls" => AgentEvent::Calling { call: call(), unasked: None },
        "took" => AgentEvent::Took { seqs: vec![Seq(words.parse().expect("a number"))] },
        "asks" => AgentEvent::Asked(question(words)),
        "begs" => AgentEvent::Asked(approval::question(words)),
        "sends" => {
            let (output, files) = (String::new(), vec![]);
            let sends = vec![Sending { to: elsewhere(), text }];
            AgentEvent::Called {
                call: CallId::literal("s"),
                output,
                files,
                sends,
                failed: false,
                refused: None,
            }
        }
        "returns" => {
            let (output, files, sends) = (String::new(), vec![], vec![]);
            AgentEvent::Called { call: call(), output, files, sends, failed: false, refused: None }
        }
        "works" => AgentEvent::Working(match words {
            "beside" => Work::SubWork,
            "compressing" => Work::Compression,
            _ => Work::Plain,
        }),
        "compressed" => {
            let upto = words.parse().expect("a number");
            AgentEvent::Compressed { after: 0, upto, text: "all of it".into(), usage, cost }
        }
        "declines" => AgentEvent::NotCompressed { why: text, usage, cost },
        "stopped" => AgentEvent::Failed { failure: Failure::Stopped, said: text, usage, cost },
        "fails" => {
            let (failure, said) = (Failure::Model(text), String::new());
            AgentEvent::Failed { failure, said, usage, cost }
        }
        verb => panic!("unknown verb {verb}"),
    }
}

fn question(text: &str) -> Question {
    let choice = |id, label: &str| Choice { id: ChoiceId::literal(id), label: label.into() };
    Question {
        call: CallId::literal("call"),
        text: text.into(),
        choices: vec![choice("q1", "Yes"), choice("q2", "No")],
        approval: None,
    }
}

fn past(id: &str) -> Past {
    Past {
        id: SessionId::new(id).unwrap(),
        title: "Whales".into(),
        turns: 7,
        copied: 0,
        entries: 20,
        deliveries: 9,
        usage: Usage::default(),
        cost: Cost::FREE,
        prompt: 5,
        preferences: Preferences { model: Some("m".into()), ..Preferences::default() },
        marks: [1, 18].map(|entry| Mark { entry, by: None, said: String::new() }).into(),
        speakers: Arc::default(),
        begun: Timestamp::from_millis(1),
        active: Timestamp::from_millis(2),
    }
}

fn print(effect: &Effect) -> String {
    match effect {
        Effect::Take(seq) => format!("take {seq}"),
        Effect::Bind { seq, turn } => format!("bind {seq} to turn {}", turn.number),
        Effect::Close { seq, closed } => match closed {
            Closed::Handled => format!("close {seq}"),
            Closed::Ignored(why) => format!("ignore {seq}: {why}"),
            Closed::Denied(why) => format!("deny {seq}: {why}"),
            Closed::Quarantined(_) => format!("quarantine {seq}"),
        },
        Effect::Conceal { seq, words } => format!("conceal {seq}: {words}"),
        Effect::Forward { seq, to } => format!("forward {seq} to {to}"),
        Effect::DropUnread { before, .. } => format!("drop unread before {before}"),
        Effect::Record { entry, .. } => match &entry.body {
            EntryBody::Said { from, text, files, .. } => {
                let files: String = files.iter().map(|file| format!(" +{}", file.name)).collect();
                format!("record {}: {text}{files}", from.id)
            }
            EntryBody::Aside { from, text, files, .. } => {
                let files: String = files.iter().map(|file| format!(" +{}", file.name)).collect();
                format!("record aside {}: {text}{files}", from.id)
            }
            EntryBody::Answered { text, .. } => format!("record answer: {text}"),
            EntryBody::Returned { output, .. } => format!("record result: {output}"),
            EntryBody::Noticed { text, .. } => {
                format!("record notice: {}", text.lines().next().unwrap_or_default())
            }
            EntryBody::Summary { after, upto, text, .. } => {
                format!("record summary of {after} to {upto}: {text}")
            }
        },
        Effect::Rewind { from, upto, by, .. } => format!("rewind {from} to {upto} by {by}"),
        Effect::Branch { upto, .. } => format!("branch up to {upto}"),
        Effect::Retire { past, why } => format!("retire {:?}: {why:?}", past.title),
        Effect::Post(outbound) => match &outbound.act {
            Act::Post(content) => format!(
                "post {}: {}{}",
                outbound.id.delivery,
                content.text.replace('\n', " ").chars().take(60).collect::<String>(),
                content.files.iter().map(|file| format!(" +{}", file.name)).collect::<String>()
            ),
            act => format!("post {}: {act:?}", outbound.id.delivery),
        },
        Effect::Send(outbound) => format!(
            "send {} to {}: {}",
            outbound.id.delivery,
            outbound.to.chat.id,
            match &outbound.act {
                Act::Post(content) => content.text.clone(),
                act => format!("{act:?}"),
            }
        ),
        Effect::Replace(replacement) => format!(
            "replace {} by {}: {}",
            replacement.of.delivery, replacement.id.delivery, replacement.otherwise.text
        ),
        Effect::Attest(attested) => format!("attest {:?}", attested.what),
        Effect::Grant(grant) => format!("grant {:?} to {}", grant.digest, grant.sender),
        Effect::Start(start) => format!(
            "start turn {}{}{}{}",
            start.turn.number,
            if start.task.is_answer() { "" } else { ", compress" },
            if start.asked.is_some() { ", asked" } else { "" },
            start.started.iter().map(|call| format!(", started {call}")).collect::<String>()
        ),
        Effect::Tell { turn, word } => match word {
            Word::Steer(steer) => {
                let text = steer.heard.as_ref().unwrap_or(&steer.message.text);
                format!("tell turn {}: steer: {text}", turn.number)
            }
            Word::Answer { answer, files, .. } => {
                let files: String = files.iter().map(|file| format!(" +{}", file.name)).collect();
                format!("tell turn {}: {answer:?}{files}", turn.number)
            }
            Word::Stop => format!("tell turn {}: stop", turn.number),
        },
        Effect::Abandon(turn) => format!("abandon turn {}", turn.number),
        Effect::Ask { seq, request, .. } => format!("ask {seq}: {request:?}"),
        Effect::Pass { to, passed } => format!("pass {to}: {passed:?}"),
    }
}

fn printed(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(print).collect()
}

/// Plays a script whose lines are separated by ` / ` and compares the effects of its last line.
#[track_caller]
fn check_with(rules: Rules, script: &str, expected: &[&str]) {
    let last = Talk::new(rules).play(script);
    assert_eq!(printed(&last), expected, "after {script:?}");
}

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    check_with(quiet(), script, expected);
}

/// The texts that the last line of a script posts.
fn posted(effects: &[Effect]) -> Vec<String> {
    let text = |effect: &Effect| match effect {
        Effect::Post(outbound) => match &outbound.act {
            Act::Post(content) => Some(content.text.clone()),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(text).collect()
}

/// What the model reads of what was said.
fn heard(effects: &[Effect]) -> Vec<String> {
    let heard = |effect: &Effect| match effect {
        Effect::Record { entry, .. } => match &entry.body {
            EntryBody::Said { text, heard, .. } => {
                Some(heard.clone().unwrap_or_else(|| text.clone()))
            }
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(heard).collect()
}

/// A message with everything a platform can tell.
fn told_of(inbound: &mut Inbound, id: &'static str) {
    if let InboundKind::Said(message) = &mut inbound.kind {
        message.id = Some(MessageId::literal(id));
    }
}

fn rules_with(change: impl FnOnce(&mut Rules)) -> Rules {
    let mut rules = quiet();
    change(&mut rules);
    rules
}

#[test]
fn a_session_is_cheap_to_copy() {
    let mut talk = Talk::new(Rules::default());
    talk.play("alice: hello / agent: finishes hi");
    assert!(std::mem::size_of::<Session>() <= 1_280, "{}", std::mem::size_of::<Session>());
    assert!(Arc::ptr_eq(&talk.session.rules, &talk.session.clone().rules));
}
