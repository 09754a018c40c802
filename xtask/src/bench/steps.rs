//! How long a session takes for one step: conversations in which people speak, interrupt and give
//! commands while an agent calls tools and answers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use talaria_model::{
    AccountId, Address, AgentEvent, CallId, Chat, ChatId, ChatKind, Cost, EventId, Inbound,
    InboundKind, Message, Sender, SenderId, Seq, Source, Timestamp, ToolCall, Usage,
};
use talaria_session::{Access, Caller, Event, Rules, Scope, Session, SessionKey};

const SESSIONS: u64 = 1_000;

/// How long steps took, in order of length.
pub(super) fn take() -> Result<Vec<Duration>> {
    let mut stage = Stage { seq: 0, times: Vec::new() };
    for number in 0..SESSIONS {
        stage.converse(number)?;
    }
    stage.times.sort();
    Ok(stage.times)
}

struct Stage {
    seq: u64,
    times: Vec<Duration>,
}

impl Stage {
    fn converse(&mut self, number: u64) -> Result<()> {
        let chat = Chat { id: ChatId::new(format!("chat-{number}"))?, kind: ChatKind::Dm };
        let account = AccountId::literal("main");
        let to = Address { account, chat, thread: None };
        let from = Sender::new(SenderId::new(format!("person-{number}"))?);
        let key = SessionKey::between(&from, &to, Source::default().known_by, Scope::default());
        let begun = Timestamp::from_millis(1_700_000_000_000);
        let mut session = Session::begin(key, to.clone(), begun, Rules::default());
        let words = "a question of a usual length, with a few details of what is wanted ".repeat(3);
        for turn in 0..10 {
            self.arrives(&mut session, &from, &to, &words)?;
            self.works(&mut session, "let me look")?;
            if turn % 3 == 0 {
                // Another message cuts the answer short.
                self.arrives(&mut session, &from, &to, &words)?;
                let said = "half an answer".to_owned();
                let failure = talaria_model::Failure::Stopped;
                let (usage, cost) = (usage(), Cost::known(900));
                self.reports(&mut session, AgentEvent::Failed { failure, said, usage, cost })?;
            }
            let (files, reasoning, usage, cost) = (Vec::new(), None, usage(), Cost::known(900));
            let text = words.clone();
            self.reports(
                &mut session,
                AgentEvent::Finished { text, files, reasoning, usage, cost },
            )?;
            self.arrives(&mut session, &from, &to, "/status")?;
        }
        Ok(())
    }

    fn works(&mut self, session: &mut Session, text: &str) -> Result<()> {
        let id = CallId::literal("call");
        let call = ToolCall { id: id.clone(), tool: "look".into(), arguments: "{}".into() };
        let (text, calls, reasoning) = (text.to_owned(), vec![call], None);
        let (files, usage, cost) = (Vec::new(), usage(), Cost::known(900));
        self.reports(session, AgentEvent::Stepped { text, files, calls, reasoning, usage, cost })?;
        self.reports(session, AgentEvent::Calling { call: id.clone(), unasked: None })?;
        let (output, files, failed) = ("what was seen ".repeat(50), Vec::new(), false);
        self.reports(
            session,
            AgentEvent::Called {
                call: id,
                output,
                files,
                sends: Vec::new(),
                failed,
                refused: None,
            },
        )
    }

    fn arrives(
        &mut self,
        session: &mut Session,
        from: &Sender,
        to: &Address,
        text: &str,
    ) -> Result<()> {
        self.seq += 1;
        let inbound = Inbound {
            id: EventId::new(format!("event-{}", self.seq))?,
            at: Timestamp::from_millis(0),
            from: from.clone(),
            to: to.clone(),
            source: Source::default(),
            kind: InboundKind::Said(Message { text: text.to_owned(), ..Message::default() }),
        };
        let by = Access::everyone().authority(Caller::of(&inbound, None));
        self.step(session, Event::Arrived { seq: Seq(self.seq), inbound, overtaken: 0, by });
        Ok(())
    }

    fn reports(&mut self, session: &mut Session, event: AgentEvent) -> Result<()> {
        let turn = session.hand().context("a turn is in hand")?.turn.clone();
        self.step(session, Event::Agent { turn, event });
        Ok(())
    }

    fn step(&mut self, session: &mut Session, event: Event) {
        let now = Timestamp::from_millis(1_700_000_000_000 + self.seq as i64 * 60_000);
        let begun = Instant::now();
        let effects = session.step(event, now);
        self.times.push(begun.elapsed());
        drop(std::hint::black_box(effects));
    }
}

fn usage() -> Usage {
    Usage { input: 1_000, output: 100, ..Usage::default() }
}
