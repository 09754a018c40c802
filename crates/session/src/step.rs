//! What a session does with each event: one flat match and its verbs.

use talaria_model::{
    Act, AgentEvent, Answer, ChoiceId, Content, Entry, EntryBody, Extent, Failure, Inbound,
    InboundKind, Outbound, OutboundId, Question, Sender, Seq, Timestamp, TurnId, Word,
};

use crate::command::{self, Command, Parsed};
use crate::session::{Answered, Phase, Session, TurnInHand, Waiting};
use crate::{Closed, Effect, Ended, Event, Start};

/// A turn during which the process died this often is set aside.
const DEATHS_UNTIL_QUARANTINE: u8 = 3;

impl Session {
    /// Takes in one event and says what is to be done. The state it leaves and the effects it
    /// returns are made durable together.
    pub fn step(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        self.updated = now;
        let mut effects = Vec::new();
        match event {
            Event::Arrived { seq, inbound } => self.arrived(seq, inbound, now, &mut effects),
            Event::Agent { turn, event } => {
                // Late words from a turn that is over change nothing.
                if self.hand().is_some_and(|hand| hand.turn == turn) {
                    self.agent(event, now, &mut effects);
                }
            }
            Event::Stumbled { over } => self.stumbled(over, now, &mut effects),
            Event::Woke => self.woke(now, &mut effects),
            Event::Restarted { ended } => self.restarted(ended, now, &mut effects),
        }
        effects
    }

    fn arrived(&mut self, seq: Seq, inbound: Inbound, now: Timestamp, effects: &mut Vec<Effect>) {
        self.at = inbound.to.clone();
        match inbound.kind {
            InboundKind::Stopped => {
                effects.push(Effect::Close { seq, closed: Closed::Handled });
                self.stop(now, effects);
            }
            InboundKind::Pressed(choice) => self.pressed(seq, inbound.from, choice, now, effects),
            InboundKind::Said(message) => match command::parse(&message.text) {
                Parsed::Command(command) => {
                    effects.push(Effect::Close { seq, closed: Closed::Handled });
                    self.aside(inbound.from, message.text, now, effects);
                    self.obey(command, now, effects);
                }
                Parsed::Unknown(name) => {
                    effects.push(Effect::Close { seq, closed: Closed::Handled });
                    let notice = format!("There is no command `/{name}`. Try `/help`.");
                    self.aside(inbound.from, message.text.clone(), now, effects);
                    self.notice(notice, now, effects);
                }
                Parsed::Words => {
                    let said = Waiting { seq, from: inbound.from, to: inbound.to, message };
                    self.said(said, now, effects);
                }
            },
        }
    }

    fn said(&mut self, said: Waiting, now: Timestamp, effects: &mut Vec<Effect>) {
        match &mut self.phase {
            Phase::Idle => {
                self.waiting.push_back(said);
                self.start_next(now, effects);
            }
            // Not past what the same person said before and has to wait behind somebody else.
            Phase::Thinking(hand)
                if hand.from.id == said.from.id
                    && !self.waiting.iter().any(|before| before.from.id == said.from.id) =>
            {
                effects.push(Effect::Take(said.seq));
                effects.push(steer(&hand.turn, &said));
                hand.steers.push(said);
            }
            Phase::Asking { question, hand, .. } if hand.from.id == said.from.id => {
                let answer = understood(question, &said.message.text);
                effects.push(Effect::Close { seq: said.seq, closed: Closed::Handled });
                self.answered(said.from, said.message.text, answer, now, effects);
            }
            // A turn acts in the name of the one who asked. Somebody else's words wait for a turn of
            // their own.
            Phase::Thinking(_) | Phase::Asking { .. } | Phase::Stopping(_) => {
                effects.push(Effect::Take(said.seq));
                self.waiting.push_back(said);
            }
        }
    }

    fn pressed(
        &mut self,
        seq: Seq,
        from: Sender,
        choice: ChoiceId,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        let label = match &self.phase {
            Phase::Asking { question, hand, .. } if hand.from.id == from.id => question
                .choices
                .iter()
                .find(|offered| offered.id == choice)
                .map(|offered| offered.label.clone()),
            _ => None,
        };
        match label {
            Some(label) => {
                effects.push(Effect::Close { seq, closed: Closed::Handled });
                self.answered(from, label, Answer::Chosen(choice), now, effects);
            }
            None => {
                let closed = Closed::Ignored("the question is not open any more");
                effects.push(Effect::Close { seq, closed });
                self.notice("That question is not open any more.".into(), now, effects);
            }
        }
    }

    fn answered(
        &mut self,
        from: Sender,
        text: String,
        answer: Answer,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        self.aside(from, text, now, effects);
        self.resume(answer, now, effects);
    }

    /// From asking back to thinking. The time spent waiting does not count against the turn.
    fn resume(&mut self, answer: Answer, now: Timestamp, effects: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Asking { mut hand, question, since, .. } => {
                hand.deadline = hand.deadline + now.since(since);
                let word = Word::Answer(answer.clone());
                effects.push(Effect::Tell { turn: hand.turn.clone(), word });
                hand.answered = Some(Answered { question, answer });
                self.phase = Phase::Thinking(hand);
            }
            other => self.phase = other,
        }
    }

    fn obey(&mut self, command: Command, now: Timestamp, effects: &mut Vec<Effect>) {
        match command {
            Command::Help => self.notice(command::help(), now, effects),
            Command::Stop => self.stop(now, effects),
            Command::Status => {
                let text = self.status();
                self.notice(text, now, effects);
            }
            Command::New => {
                self.abandon(now, effects);
                self.begin_again(now);
                self.notice("A new conversation. I remember nothing of the last one, but it stays searchable.".into(), now, effects);
            }
        }
    }

    fn stop(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => self.notice("Nothing is running.".into(), now, effects),
            Phase::Thinking(hand) | Phase::Asking { hand, .. } | Phase::Stopping(hand) => {
                effects.push(Effect::Tell { turn: hand.turn.clone(), word: Word::Stop });
                let dropped = hand.steers.len() + self.waiting.len();
                self.phase = Phase::Stopping(hand);
                self.drop_waiting(effects);
                if dropped > 0 {
                    let text = match dropped {
                        1 => "Stopping. One message that was waiting is dropped.".to_owned(),
                        n => format!("Stopping. {n} messages that were waiting are dropped."),
                    };
                    self.notice(text, now, effects);
                }
            }
        }
    }

    /// Ends the turn in hand without waiting for the agent.
    fn abandon(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.drop_waiting(effects);
        let Some(hand) = self.hand().cloned() else { return };
        effects.push(Effect::Abandon(hand.turn.clone()));
        self.fail(Failure::Stopped, String::new(), now, effects);
    }

    fn drop_waiting(&mut self, effects: &mut Vec<Effect>) {
        let steers = match &mut self.phase {
            Phase::Idle => Vec::new(),
            Phase::Thinking(hand) | Phase::Stopping(hand) | Phase::Asking { hand, .. } => {
                std::mem::take(&mut hand.steers)
            }
        };
        for said in steers.into_iter().chain(self.waiting.drain(..)) {
            let closed = Closed::Ignored("dropped by a stop");
            effects.push(Effect::Close { seq: said.seq, closed });
        }
    }

    fn agent(&mut self, event: AgentEvent, now: Timestamp, effects: &mut Vec<Effect>) {
        match event {
            AgentEvent::Stepped { text, calls, reasoning, usage } => {
                self.usage += usage;
                let sent = self.speak(Content::text(text.clone()), effects);
                let (files, extent) = (Vec::new(), Extent::Whole);
                let body =
                    EntryBody::Answered { text, files, calls, reasoning, usage, sent, extent };
                self.record(body, now, effects);
            }
            AgentEvent::Calling { call } => {
                if let Some(hand) = self.hand_mut() {
                    hand.started.push(call);
                }
            }
            AgentEvent::Called { call, output, files, failed } => {
                if let Some(hand) = self.hand_mut() {
                    hand.started.retain(|started| *started != call);
                    hand.answered.take_if(|answered| answered.question.call == call);
                }
                self.record(EntryBody::Returned { call, output, files, failed }, now, effects);
            }
            AgentEvent::Asked(question) => self.ask(question, now, effects),
            AgentEvent::Took { seqs } => self.took(&seqs, now, effects),
            AgentEvent::Finished { text, files, reasoning, usage } => {
                self.usage += usage;
                let silent = text.trim().is_empty() && files.is_empty();
                if silent && self.hand().is_some_and(|hand| hand.spoken == 0) {
                    let failure = Failure::Model("The model returned an empty answer.".into());
                    return self.fail(failure, String::new(), now, effects);
                }
                let content =
                    Content { text: text.clone(), files: files.clone(), ..Content::default() };
                let sent = self.speak(content, effects);
                let calls = Vec::new();
                let extent = Extent::Whole;
                let body =
                    EntryBody::Answered { text, files, calls, reasoning, usage, sent, extent };
                self.record(body, now, effects);
                self.over(now, effects);
            }
            AgentEvent::Failed { failure, said } => self.fail(failure, said, now, effects),
        }
    }

    fn ask(&mut self, question: Question, now: Timestamp, effects: &mut Vec<Effect>) {
        let content = Content {
            text: question.text.clone(),
            choices: question.choices.clone(),
            ..Content::default()
        };
        if let Some(sent) = self.speak(content, effects) {
            let (text, choices) = (question.text.clone(), question.choices.clone());
            self.record(EntryBody::Noticed { text, choices, sent }, now, effects);
        }
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Thinking(hand) => {
                let hand = TurnInHand { answered: None, ..hand };
                let expires = now + self.rules.question_limit;
                self.phase = Phase::Asking { hand, question, since: now, expires };
            }
            // A turn that is stopping gets no answer any more.
            other => self.phase = other,
        }
    }

    fn took(&mut self, seqs: &[Seq], now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(hand) = self.hand_mut() else { return };
        let turn = hand.turn.clone();
        let (taken, left) =
            std::mem::take(&mut hand.steers).into_iter().partition(|said| seqs.contains(&said.seq));
        hand.steers = left;
        hand.spoken = 0;
        let taken: Vec<Waiting> = taken;
        hand.seqs.extend(taken.iter().map(|said| said.seq));
        for said in taken {
            self.bind(said, &turn, now, effects);
        }
    }

    /// The turn ends without a whole answer: what was said stays, and the reason is given.
    fn fail(&mut self, failure: Failure, said: String, now: Timestamp, effects: &mut Vec<Effect>) {
        let reason = failure.to_string();
        let kept = said.trim_end();
        let text = if kept.is_empty() { reason.clone() } else { format!("{kept}\n\n*{reason}*") };
        let sent = self.speak(Content::text(text.clone()), effects);
        let body = match (kept.is_empty(), sent) {
            (false, sent) => EntryBody::Answered {
                text,
                files: Vec::new(),
                calls: Vec::new(),
                reasoning: None,
                usage: Default::default(),
                sent,
                extent: Extent::BrokenOff,
            },
            (true, Some(sent)) => EntryBody::Noticed { text: reason, choices: Vec::new(), sent },
            (true, None) => return self.over(now, effects),
        };
        self.record(body, now, effects);
        self.over(now, effects);
    }

    /// The turn is over: what it did not take up is next.
    fn over(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        if let Phase::Thinking(hand) | Phase::Stopping(hand) | Phase::Asking { hand, .. } = phase {
            for said in hand.steers.into_iter().rev() {
                self.waiting.push_front(said);
            }
        }
        self.start_next(now, effects);
    }

    /// Everything that waits for the same answer becomes one turn.
    fn start_next(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(first) = self.waiting.front() else { return };
        let (from, to) = (first.from.clone(), first.to.clone());
        self.turns += 1;
        self.deliveries += 1;
        let turn = TurnId { session: self.id.clone(), number: self.turns };
        let deadline = now + self.rules.turn_limit;
        let mut hand = TurnInHand {
            turn: turn.clone(),
            from: from.clone(),
            to: to.clone(),
            seqs: Vec::new(),
            steers: Vec::new(),
            started: Vec::new(),
            answered: None,
            delivery: self.deliveries,
            spoken: 0,
            deadline,
            deaths: 0,
        };
        while self.waiting.front().is_some_and(|said| said.from.id == from.id && said.to == to) {
            if let Some(said) = self.waiting.pop_front() {
                hand.seqs.push(said.seq);
                self.bind(said, &turn, now, effects);
            }
        }
        self.phase = Phase::Thinking(hand);
        effects.push(Effect::Start(Start {
            turn,
            from,
            to,
            deadline,
            started: Vec::new(),
            asked: None,
        }));
    }

    fn bind(&mut self, said: Waiting, turn: &TurnId, now: Timestamp, effects: &mut Vec<Effect>) {
        effects.push(Effect::Bind { seq: said.seq, turn: turn.clone() });
        if self.title.is_empty() {
            self.title = title(&said.message.text);
        }
        let Waiting { from, message, .. } = said;
        let body = EntryBody::Said { from, text: message.text, files: message.files };
        self.record_in(Some(turn.clone()), body, now, effects);
    }

    fn woke(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        match &self.phase {
            Phase::Asking { expires, .. } if *expires <= now => {
                self.resume(Answer::Expired, now, effects);
            }
            Phase::Thinking(hand) | Phase::Stopping(hand) if hand.deadline <= now => {
                let minutes = self.rules.turn_limit.as_secs() / 60;
                effects.push(Effect::Abandon(hand.turn.clone()));
                self.fail(Failure::TimedOut { minutes }, String::new(), now, effects);
            }
            _ => {}
        }
    }

    fn restarted(&mut self, ended: Ended, now: Timestamp, effects: &mut Vec<Effect>) {
        if let Phase::Thinking(hand) = &mut self.phase {
            // The time during which nothing ran is not the turn's.
            hand.deadline = now + self.rules.turn_limit;
            hand.deaths += u8::from(ended == Ended::Abruptly);
            if hand.deaths >= DEATHS_UNTIL_QUARANTINE {
                return self.quarantine(now, effects);
            }
        }
        match &self.phase {
            Phase::Idle => self.start_next(now, effects),
            Phase::Thinking(hand) => again(hand, hand.deadline, None, effects),
            Phase::Asking { hand, question, since, .. } => {
                let deadline = hand.deadline + now.since(*since);
                again(hand, deadline, Some(question.clone()), effects);
                self.woke(now, effects);
            }
            Phase::Stopping(_) => self.fail(Failure::Stopped, String::new(), now, effects),
        }
    }

    /// Sets aside what we cannot deal with, and says so.
    fn stumbled(
        &mut self,
        over: Option<(Seq, Inbound)>,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        match over {
            Some((seq, inbound)) => {
                self.at = inbound.to;
                let closed = Closed::Quarantined("its session panicked three times over it");
                effects.push(Effect::Close { seq, closed });
                let text =
                    "Something went wrong inside me over your last message; I have set it aside.";
                self.notice(text.into(), now, effects);
            }
            None => {
                let Some(hand) = self.hand() else { return };
                effects.push(Effect::Abandon(hand.turn.clone()));
                let text = "Something went wrong inside me; the log has the details.";
                self.fail(Failure::Model(text.into()), String::new(), now, effects);
            }
        }
    }

    fn quarantine(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(hand) = self.hand() else { return };
        for seq in hand.seqs.clone() {
            let closed = Closed::Quarantined("the process died three times during its turn");
            effects.push(Effect::Close { seq, closed });
        }
        let failure = Failure::Model(
            "I was interrupted three times while working on this and have set it aside.".into(),
        );
        self.fail(failure, String::new(), now, effects);
    }

    /// Delivers what the turn says, under the delivery that its preview already has.
    fn speak(&mut self, content: Content, effects: &mut Vec<Effect>) -> Option<OutboundId> {
        if content.text.trim().is_empty() && content.files.is_empty() {
            return None;
        }
        let session = self.id.clone();
        let next = self.deliveries + 1;
        let hand = self.hand_mut()?;
        let id = OutboundId { session, delivery: hand.delivery, part: 0 };
        hand.delivery = next;
        hand.spoken += 1;
        let to = hand.to.clone();
        self.deliveries = next;
        effects.push(Effect::Post(Outbound { id: id.clone(), to, act: Act::Post(content) }));
        Some(id)
    }

    /// The gateway says something itself.
    fn notice(&mut self, text: String, now: Timestamp, effects: &mut Vec<Effect>) {
        self.deliveries += 1;
        let sent = OutboundId { session: self.id.clone(), delivery: self.deliveries, part: 0 };
        let act = Act::Post(Content::text(text.clone()));
        effects.push(Effect::Post(Outbound { id: sent.clone(), to: self.at.clone(), act }));
        let body = EntryBody::Noticed { text, choices: Vec::new(), sent };
        self.record_in(None, body, now, effects);
    }

    fn aside(&mut self, from: Sender, text: String, now: Timestamp, effects: &mut Vec<Effect>) {
        self.record(EntryBody::Aside { from, text }, now, effects);
    }

    fn record(&mut self, body: EntryBody, now: Timestamp, effects: &mut Vec<Effect>) {
        let turn = self.hand().map(|hand| hand.turn.clone());
        self.record_in(turn, body, now, effects);
    }

    fn record_in(
        &mut self,
        turn: Option<TurnId>,
        body: EntryBody,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        self.entries += 1;
        let entry = Entry { number: self.entries, at: now, turn, body };
        effects.push(Effect::Record { session: self.id.clone(), entry });
    }

    fn hand_mut(&mut self) -> Option<&mut TurnInHand> {
        match &mut self.phase {
            Phase::Idle => None,
            Phase::Thinking(hand) | Phase::Stopping(hand) | Phase::Asking { hand, .. } => {
                Some(hand)
            }
        }
    }

    fn status(&self) -> String {
        let doing = match &self.phase {
            Phase::Idle => "idle",
            Phase::Thinking(_) => "working on an answer",
            Phase::Asking { .. } => "waiting for your answer",
            Phase::Stopping(_) => "stopping",
        };
        format!(
            "Conversation `{}`: {doing}. {}, {} in, {} out, {} waiting.",
            self.id,
            counted(self.turns.into(), "turn"),
            counted(self.usage.input + self.usage.cache_read + self.usage.cache_write, "token"),
            counted(self.usage.output, "token"),
            counted(self.waiting.len() as u64, "message"),
        )
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Lets a turn go on, and tells it again what it had not taken up. A question that was answered is
/// open to the agent until it hears the answer once more.
fn again(
    hand: &TurnInHand,
    deadline: Timestamp,
    asked: Option<Question>,
    effects: &mut Vec<Effect>,
) {
    let answered = hand.answered.as_ref();
    effects.push(Effect::Start(Start {
        turn: hand.turn.clone(),
        from: hand.from.clone(),
        to: hand.to.clone(),
        deadline,
        started: hand.started.clone(),
        asked: asked.or_else(|| answered.map(|answered| answered.question.clone())),
    }));
    effects.extend(answered.map(|answered| Effect::Tell {
        turn: hand.turn.clone(),
        word: Word::Answer(answered.answer.clone()),
    }));
    effects.extend(hand.steers.iter().map(|said| steer(&hand.turn, said)));
}

fn steer(turn: &TurnId, said: &Waiting) -> Effect {
    let word =
        Word::Steer { seq: said.seq, from: said.from.clone(), message: said.message.clone() };
    Effect::Tell { turn: turn.clone(), word }
}

/// What a person means who types instead of pressing: a number, a label, or something of their own.
fn understood(question: &Question, text: &str) -> Answer {
    let text = text.trim();
    let by_number = text
        .trim_end_matches(['.', ')'])
        .parse::<usize>()
        .ok()
        .and_then(|number| question.choices.get(number.checked_sub(1)?));
    let by_label =
        || question.choices.iter().find(|choice| choice.label.trim().eq_ignore_ascii_case(text));
    match by_number.or_else(by_label) {
        Some(choice) => Answer::Chosen(choice.id.clone()),
        None => Answer::Said(text.to_owned()),
    }
}

/// The first line of what was said first, cut at a word.
fn title(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= LONGEST {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LONGEST).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{}…", whole.trim_end())
}
