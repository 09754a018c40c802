//! How a turn begins, what its agent reports, how it ends.

use std::sync::Arc;

use talaria_model::{
    About, Address, AgentEvent, Attended, Because, Consent, Content, Cost, EntryBody, Extent,
    Failure, FileRef, Message, Notify as Aloudness, OutboundId, RoleId, Sender, Sending, Seq, Task,
    TurnId, Usage, Used, Word, Work,
};

use super::Step;
use super::aloud::medium;
use super::say::shortened;
use super::words::shares_turn;
use crate::event::{Effect, Passed, Start};
use crate::heard::{
    heard, interrupt_note, lost_note, reset_note, resume_note, sent_note, skills_note, speaker,
};
use crate::life::{Activity, During, Happening, Life, ResetReason};
use crate::reset::{Expiry, Notify};
use crate::session::{Footer, Joins, Mark, Note, Phase, Session, TurnInHand, Waiting};
use crate::voice::Medium;
use crate::{Continuity, Retired, reply};

/// How many turns can be undone.
const MOST_MARKS: usize = 32;

/// The most that is kept of what began a turn, to tell which one is undone.
const LONGEST_MARK: usize = 60;

/// What the model is told of a message to another chat for which it is too late.
const UNSENT: &str = "Nothing was sent: you were stopped before.";

/// How many messages one turn sends to other chats. Whoever asks for something names a few; a model that
/// goes round in circles, or does what somebody else's text wants, would send hundreds.
const MOST_SENDS: u32 = 8;

/// What the model is told of the next one.
const TOO_MANY_SENDS: &str = "Nothing was sent: 8 messages to other chats are the most for one request, and you have \
                              sent them. Tell the person what is left; they can ask for more.";

impl Step<'_> {
    /// Everything that waits for the same answer becomes one turn. `expiry` says whether the
    /// conversation was over before any of it was said.
    pub(super) fn start_next(&mut self, expiry: Option<Expiry>) {
        if self.session.waiting.is_empty() {
            return;
        }
        let past = self.activity();
        if self.happened(Happening::Spoken(expiry)) == Continuity::Another
            && let Life::AutoReset { reason, .. } = self.session.life
        {
            self.renew(self.session.life, Retired::Reset(reason));
            self.tell_of_reset(reason, past);
        }
        let group = self.next_group();
        let asker = Asker::of(&group[0]);
        self.begin_turn(said_at_once(group), Task::Answer, asker, None);
    }

    /// The turn in hand has done nothing that stays and is taken again over what began it and its rest.
    fn take_again(&mut self) {
        let Some(before) = self.put_down() else { return };
        let group = self.next_group();
        let (from, to) = (before.from.clone(), before.to.clone());
        let asker = Asker { from, to, roles: before.roles.clone() };
        self.begin_turn(said_at_once(group), Task::Answer, asker, Some(before));
    }

    /// What waits for the same answer.
    fn next_group(&mut self) -> Vec<Waiting> {
        let waiting = &mut self.session.waiting;
        let mut group = Vec::from_iter(waiting.pop_front());
        while let Some(said) = waiting.pop_front_if(|said| shares_turn(&group[0], said)) {
            group.push(said);
        }
        group
    }

    /// Begins a turn; `before` is the one that it takes again.
    pub(super) fn begin_turn(
        &mut self,
        mut group: Vec<Saying>,
        task: Task,
        asker: Asker,
        before: Option<TurnInHand>,
    ) {
        let Asker { from, to, roles } = asker;
        let is_first = self.session.turns == 0;
        let is_new = before.is_none();
        self.session.turns += 1;
        self.session.deliveries += 1;
        let turn = TurnId { session: self.session.id.clone(), number: self.session.turns };
        let prompts = group.iter().rev().find_map(|said| said.message.channel_prompt.clone());
        let skills = group.iter().find(|said| is_first && !said.message.skills.is_empty());
        let mut hand = TurnInHand {
            turn: turn.clone(),
            from,
            roles,
            to,
            seqs: group.iter().flat_map(|said| said.seqs.iter().copied()).collect(),
            answers: group.iter().find_map(|said| said.message.id.clone()),
            medium: medium(&group),
            steers: Vec::new(),
            started: Vec::new(),
            told_of: None,
            answered: None,
            channel_prompt: prompts,
            skills: skills.map(|said| said.message.skills.clone()).unwrap_or_default(),
            delivery: self.session.deliveries,
            spoken: 0,
            sends: 0,
            began: self.now,
            heard: self.now,
            work: if task.is_answer() { Work::Plain } else { Work::Compression },
            during: During::Words,
            done: Activity::None,
            usage: Usage::default(),
            cost: Cost::FREE,
            deadline: self.now + self.session.rules.turn_limit,
            deaths: 0,
            left: None,
            resumed: None,
            excused: false,
            task,
        };
        let mut again = before.as_ref().map(|before| About::Again(before.turn.clone()));
        if let Some(before) = before {
            hand.seqs.splice(..0, before.seqs);
            hand.answers = before.answers.or(hand.answers);
            hand.channel_prompt = hand.channel_prompt.or(before.channel_prompt);
            hand.skills = before.skills;
            if hand.medium.is_writing() {
                hand.medium = before.medium;
            }
            hand.began = before.began;
            hand.usage = before.usage;
            hand.cost = before.cost;
            hand.deaths = before.deaths;
        }
        let mut notes = Vec::new();
        if hand.task.is_answer() {
            self.session.channel_prompt.clone_from(&hand.channel_prompt);
            if is_new {
                self.mark(&hand, &group);
                self.add_overheard(&mut group);
                notes = self.notes();
                notes.extend(skills_note(&hand.skills));
            }
        }
        for said in group {
            self.bind(said, &turn, &std::mem::take(&mut notes));
            if let Some(again) = again.take() {
                self.concerning(again);
            }
        }
        self.effects.push(start(self.session, &hand, hand.deadline));
        self.session.phase = Phase::Thinking(hand);
    }

    /// What was overheard is read once, unless the platform tells itself what went before.
    fn add_overheard(&mut self, group: &mut [Saying]) {
        let overheard = std::mem::take(&mut self.session.overheard);
        if let Some(Saying { message, read: Read::Anew, .. }) = group.first_mut()
            && message.overheard.is_empty()
        {
            message.overheard = overheard;
        }
    }

    /// Remembers where a turn begins, so that it can be taken back.
    fn mark(&mut self, hand: &TurnInHand, group: &[Saying]) {
        let entry = self.session.entries + 1;
        let text =
            group.iter().map(|said| said.message.words()).find(|text| !text.trim().is_empty());
        let said = shortened(&text.unwrap_or_default(), LONGEST_MARK);
        let marks = &mut self.session.marks;
        marks.drain(..(marks.len() + 1).saturating_sub(MOST_MARKS));
        marks.push(Mark { entry, by: Some(hand.from.lasting().clone()), said });
    }

    /// What the turn that begins has to know about how the last one ended.
    fn notes(&mut self) -> Vec<String> {
        let fresh = self.session.rules.freshness;
        let of_life = match self.session.life {
            Life::AutoReset { reason, .. } => Some(reset_note(reason)),
            Life::ResumePending { reason, marked, during }
                if fresh.is_zero() || self.now.since(marked) <= fresh =>
            {
                Some(resume_note(reason, during))
            }
            _ => None,
        };
        let of_turn = self.session.note.take().map(|note| match note {
            Note::Interrupted(during) => interrupt_note(during),
        });
        let sent = std::mem::take(&mut self.session.sent);
        let of_sent = sent.iter().map(|text| sent_note(text));
        let of_lost = std::mem::take(&mut self.session.lost).then(lost_note);
        of_life.into_iter().chain(of_turn).chain(of_sent).chain(of_lost).collect()
    }

    /// What was said becomes part of a turn.
    fn bind(&mut self, said: Saying, turn: &TurnId, notes: &[String]) {
        let Saying { seqs, from, message, read } = said;
        for seq in seqs {
            self.effects.push(Effect::Bind { seq, turn: turn.clone() });
        }
        let text = message.words().into_owned();
        self.call_after(&text);
        let heard = match read {
            Read::Anew => {
                self.echo(&message);
                self.as_read(&from, &message, notes)
            }
            Read::As(heard) => heard,
        };
        let Message { id, files, forwarded, .. } = message;
        let body = EntryBody::Said { from, text, files, heard, message: id, forwarded };
        self.record_in(Some(turn.clone()), body);
    }

    /// What the model reads in place of a text.
    pub(super) fn as_read(
        &mut self,
        from: &Sender,
        message: &Message,
        notes: &[String],
    ) -> Option<String> {
        let label = match self.session.key.is_shared() {
            true => Some(speaker(Arc::make_mut(&mut self.session.speakers), from)),
            false => None,
        };
        heard(message, label.as_deref(), notes)
    }

    /// People are told that a conversation began anew, if something is lost by it.
    fn tell_of_reset(&mut self, reason: ResetReason, past: Activity) {
        let tells = self.session.rules.reset.notify == Notify::Tell && past == Activity::Some;
        let why = match reason {
            ResetReason::Suspended => "the last one is closed",
            ResetReason::Idle | ResetReason::Daily if !tells => return,
            ResetReason::Idle => "nothing was said for a long time",
            ResetReason::Daily => "a new day has begun",
        };
        self.notice(format!(
            "◐ This is a new conversation: {why}. What was said stays searchable, and `/resume` goes \
             back to it."
        ));
    }

    /// The agent reports about the turn in hand.
    pub(super) fn reported(&mut self, event: AgentEvent) {
        let now = self.now;
        self.session.active = now;
        let is_work = matches!(event, AgentEvent::Working(_));
        if let Some(hand) = self.hand_mut() {
            hand.heard = now;
            if !is_work && !matches!(event, AgentEvent::Failed { .. }) {
                hand.done = Activity::Some;
            }
        }
        match event {
            AgentEvent::Stepped { text, files, calls, reasoning, usage, cost } => {
                self.used(usage, cost);
                self.session.prompt = usage.prompt();
                // Its answer is still to come; that one people are to hear.
                let notify = if calls.is_empty() { Aloudness::Aloud } else { Aloudness::Silently };
                let said = Content { files: files.clone(), notify, ..Content::text(text.clone()) };
                let sent = self.speak(said);
                self.tell_of_calls(&calls);
                if let Some(hand) = self.hand_mut() {
                    hand.during = During::Words;
                }
                self.record(EntryBody::Answered {
                    text,
                    files,
                    calls,
                    reasoning,
                    usage,
                    cost,
                    sent,
                    extent: Extent::Whole,
                });
            }
            AgentEvent::Calling { call, unasked } => {
                self.attest_unasked(unasked, Some(Consent::Once));
                if let Some(hand) = self.hand_mut() {
                    hand.started.push(call);
                }
            }
            AgentEvent::Called { call, mut output, files, mut sends, mut failed, refused } => {
                self.attest_unasked(refused, None);
                // A question that is not put any more after a restart keeps nothing from leaving.
                self.withdraw(&call);
                if let Some(why) = self.why_unsent(count(&sends)) {
                    sends.clear();
                    (output, failed) = (why.to_owned(), true);
                }
                if let Some(hand) = self.hand_mut() {
                    hand.started.retain(|started| *started != call);
                    hand.answered.take_if(|answered| answered.question.call == call);
                    hand.during = During::Results;
                    hand.sends += count(&sends);
                }
                self.record(EntryBody::Returned { call, output, files, failed });
                sends.into_iter().for_each(|sending| self.send(sending));
            }
            AgentEvent::Asked(question) => self.ask_person(question),
            AgentEvent::Took { seqs } => self.took(&seqs),
            AgentEvent::Working(work) => {
                if let Some(hand) = self.hand_mut() {
                    hand.work = work;
                }
            }
            AgentEvent::Compressed { after, upto, text, usage, cost } => {
                self.used(usage, cost);
                // A turn whose words are in a summary cannot be taken out of it.
                self.session.marks.retain(|mark| mark.entry > upto);
                self.record(EntryBody::Summary { after, upto, text, usage, cost });
                if self.session.hand().is_some_and(|hand| !hand.task.is_answer()) {
                    self.notice(
                        "What was old is a summary to me from here on; it stays searchable.",
                    );
                }
            }
            AgentEvent::NotCompressed { why, usage, cost } => {
                self.used(usage, cost);
                if self.session.hand().is_some_and(|hand| !hand.task.is_answer()) {
                    self.notice(why);
                }
            }
            AgentEvent::Finished { text, files, reasoning, usage, cost } => {
                self.used(usage, cost);
                if usage.prompt() > 0 {
                    self.session.prompt = usage.prompt();
                }
                self.finished(text, files, reasoning, usage, cost);
            }
            AgentEvent::Failed { failure, said, usage, cost } => {
                self.used(usage, cost);
                self.cut_short(failure, &said, usage, cost);
            }
        }
    }

    /// Why so many more messages do not leave for other chats; none if they do.
    fn why_unsent(&self, more: u32) -> Option<&'static str> {
        match &self.session.phase {
            _ if more == 0 => None,
            Phase::Thinking(hand) if hand.sends.saturating_add(more) > MOST_SENDS => {
                Some(TOO_MANY_SENDS)
            }
            Phase::Thinking(_) => None,
            Phase::Idle | Phase::Asking { .. } | Phase::Interrupting(_) | Phase::Stopping(_) => {
                Some(UNSENT)
            }
        }
    }

    fn used(&mut self, usage: Usage, cost: Cost) {
        self.session.usage += usage;
        self.session.cost += cost;
        if let Some(hand) = self.hand_mut() {
            hand.usage += usage;
            hand.cost += cost;
        }
    }

    fn finished(
        &mut self,
        text: String,
        files: Vec<FileRef>,
        reasoning: Option<String>,
        usage: Usage,
        cost: Cost,
    ) {
        let is_empty = text.trim().is_empty() && files.is_empty();
        let hand = self.session.hand();
        let answers = hand.is_some_and(|hand| hand.task.is_answer());
        if is_empty && answers && hand.is_some_and(|hand| hand.spoken == 0) {
            let failure = Failure::Model("The model returned an empty answer.".into());
            return self.fail(failure, "", Usage::default(), Cost::FREE);
        }
        let said = if reply::is_silence(&text) { "" } else { &text };
        if !is_empty || answers {
            let sent = match said.is_empty() && files.is_empty() {
                true => None,
                false => self.speak(self.signed(said, &files)),
            };
            if sent.is_some() {
                self.say_aloud(said, &files);
            }
            let (calls, extent) = (Vec::new(), Extent::Whole);
            self.record(EntryBody::Answered {
                text,
                files,
                calls,
                reasoning,
                usage,
                cost,
                sent,
                extent,
            });
        }
        if answers {
            self.happened(Happening::Completed);
        }
        self.over();
    }

    /// What is delivered of an answer: the text, and under it what its turn used, for whoever wants
    /// that.
    fn signed(&self, text: &str, files: &[FileRef]) -> Content {
        let preferences = &self.session.preferences;
        let footer = preferences.footer.unwrap_or(self.session.rules.footer);
        let text = match (footer, self.session.hand()) {
            (Footer::On, Some(hand)) if !text.trim().is_empty() => {
                let model = preferences.model.as_deref();
                reply::under(text, &reply::footer(hand.usage, hand.cost, model))
            }
            _ => text.to_owned(),
        };
        Content { text, files: files.to_vec(), ..Content::default() }
    }

    fn took(&mut self, seqs: &[Seq]) {
        let Some(hand) = self.hand_mut() else { return };
        let turn = hand.turn.clone();
        let (taken, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut hand.steers).into_iter().partition(|said| seqs.contains(&said.seq));
        hand.steers = left;
        hand.spoken = 0;
        hand.seqs.extend(taken.iter().map(|said| said.seq));
        for said in taken {
            let said = Saying::from(said);
            if let (Medium::Voice, Some(hand)) =
                (medium(std::slice::from_ref(&said)), self.hand_mut())
            {
                hand.medium = Medium::Voice;
            }
            self.bind(said, &turn, &[]);
        }
    }

    /// The agent ended the turn before it was done.
    fn cut_short(&mut self, failure: Failure, said: &str, usage: Usage, cost: Cost) {
        match (&self.session.phase, &failure) {
            (Phase::Interrupting(_), Failure::Stopped) => self.interrupted(said, usage, cost),
            _ => self.fail(failure, said, usage, cost),
        }
    }

    /// The turn ends because something else was said: what it had said stays, and what was said is
    /// next. If that is the rest of what began the turn, nobody is told that it had begun.
    pub(super) fn interrupted(&mut self, said: &str, usage: Usage, cost: Cost) {
        let Some(hand) = self.session.hand() else { return };
        let rest = self.session.waiting.front().is_some_and(|said| said.joins == Joins::Breath);
        if rest && hand.done == Activity::None {
            return self.take_again();
        }
        let (kept, during) = (said.trim_end(), hand.during);
        let text = match kept.is_empty() {
            true => String::new(),
            false => reply::under(kept, "*Interrupted.*"),
        };
        // Nobody is told of a turn that had said nothing, but somebody may ask why it had not.
        let sent = self.speak(Content::text(text.clone()));
        self.record(broken_off(text, sent, usage, cost));
        self.because(Because::Interrupted);
        self.session.note = Some(Note::Interrupted(during));
        self.over();
    }

    /// The turn ends without a whole answer: what was said stays, and the reason is given.
    pub(super) fn fail(&mut self, failure: Failure, said: &str, usage: Usage, cost: Cost) {
        let is_last = failure == Failure::Stopped && self.session.waiting.is_empty();
        let reason = match is_last && self.session.life == Life::Suspended {
            true => format!("{failure} Your next message begins a new conversation."),
            false => failure.to_string(),
        };
        let kept = said.trim_end();
        let text = match kept.is_empty() {
            true => reason.clone(),
            false => reply::under(kept, &format!("*{reason}*")),
        };
        let sent = self.speak(Content::text(text.clone()));
        let recorded = match (kept.is_empty(), sent) {
            (false, sent) => Some(broken_off(text, sent, usage, cost)),
            (true, Some(sent)) => {
                let (choices, files) = (Vec::new(), Vec::new());
                Some(EntryBody::Noticed { text: reason, choices, files, sent })
            }
            (true, None) => None,
        };
        if let Some(body) = recorded {
            self.record(body);
            self.because(Because::from(&failure));
        }
        self.over();
    }

    /// The turn is over: what it did not take up is next.
    pub(super) fn over(&mut self) {
        if let Some(hand) = self.put_down() {
            for said in hand.steers.into_iter().rev() {
                self.session.waiting.push_front(said);
            }
        }
        self.report_over();
        self.start_next(None);
    }

    /// A side session tells the one that it is beside that it is done.
    pub(super) fn report_over(&mut self) {
        if let Some(side) = self.session.key.side {
            let to = self.session.key.main();
            self.effects.push(Effect::Pass { to, passed: Passed::SideOver(side) });
        }
    }

    /// Ends the turn in hand without waiting for the agent. What people could read of it stays.
    pub(super) fn abandon(&mut self, failure: Failure) {
        let Some(hand) = self.session.hand() else { return };
        self.effects.push(Effect::Abandon(hand.turn.clone()));
        let unsaid = std::mem::take(&mut self.unsaid.text);
        let Used { usage, cost } = self.unaccounted();
        self.fail(failure, &unsaid, usage, cost);
    }

    /// What the agent used since it last said so, as far as that can be estimated: it is not listened to any
    /// more.
    pub(super) fn unaccounted(&mut self) -> Used {
        let used = match self.session.phase {
            // Nothing has been used since it asked.
            Phase::Idle | Phase::Asking { .. } => Used::default(),
            Phase::Thinking(_) | Phase::Interrupting(_) | Phase::Stopping(_) => {
                self.unsaid.used.unwrap_or(Used::UNKNOWN)
            }
        };
        self.used(used.usage, used.cost);
        used
    }

    /// Lets a turn go on, and tells it again what it had not taken up. A question that was answered is
    /// open to the agent until it hears the answer once more.
    pub(super) fn go_on(&mut self) {
        let Some(hand) = self.session.hand() else { return };
        let mut deadline = hand.deadline;
        let mut asked = None;
        if let Phase::Asking { question, since, .. } = &self.session.phase {
            deadline = deadline + self.now.since(*since);
            asked = Some(question.clone());
        }
        let answered = hand.answered.as_ref();
        let mut effect = start(self.session, hand, deadline);
        if let Effect::Start(start) = &mut effect {
            start.started = hand.started.clone();
            start.asked = asked.or_else(|| answered.map(|answered| answered.question.clone()));
        }
        let answer = answered.map(|answered| Effect::Tell {
            turn: hand.turn.clone(),
            word: Word::Answer {
                to: answered.question.call.clone(),
                answer: answered.answer.clone(),
                files: answered.files.clone(),
            },
        });
        let steers = hand.steers.clone();
        self.effects.push(effect);
        self.effects.extend(answer);
        for said in &steers {
            self.tell_steer(said);
        }
    }
}

fn start(session: &Session, hand: &TurnInHand, deadline: talaria_model::Timestamp) -> Effect {
    Effect::Start(Start {
        turn: hand.turn.clone(),
        task: hand.task.clone(),
        from: hand.from.clone(),
        roles: hand.roles.clone(),
        to: hand.to.clone(),
        answers: hand.answers.clone(),
        deadline,
        started: Vec::new(),
        asked: None,
        model: session.preferences.model.clone(),
        effort: session.preferences.effort,
        channel_prompt: hand.channel_prompt.clone(),
        skills: hand.skills.clone(),
        attended: match session.key.side {
            Some(_) => Attended::No,
            None => Attended::Yes,
        },
    })
}

fn count(sends: &[Sending]) -> u32 {
    u32::try_from(sends.len()).unwrap_or(u32::MAX)
}

fn broken_off(text: String, sent: Option<OutboundId>, usage: Usage, cost: Cost) -> EntryBody {
    EntryBody::Answered {
        text,
        files: Vec::new(),
        calls: Vec::new(),
        reasoning: None,
        usage,
        cost,
        sent,
        extent: Extent::BrokenOff,
    }
}

/// Who asks for a turn, and where.
pub(super) struct Asker {
    pub(super) from: Sender,
    pub(super) to: Address,
    pub(super) roles: Vec<RoleId>,
}

impl Asker {
    pub(super) fn of(said: &Waiting) -> Self {
        Self { from: said.from.clone(), to: said.to.clone(), roles: said.roles.clone() }
    }
}

/// Something that becomes one entry of a turn, and the rows it came in.
pub(super) struct Saying {
    pub(super) seqs: Vec<Seq>,
    pub(super) from: Sender,
    pub(super) message: Message,
    pub(super) read: Read,
}

/// What the model reads of something said.
pub(super) enum Read {
    /// Whatever becomes of it in this turn.
    Anew,
    /// What it read before.
    As(Option<String>),
}

impl From<Waiting> for Saying {
    fn from(said: Waiting) -> Self {
        let Waiting { seq, from, message, .. } = said;
        Self { seqs: vec![seq], from, message, read: Read::Anew }
    }
}

/// Pictures that were sent one after another are one message: their files together, each paragraph
/// of their captions once. Everything else stays as it was said.
fn said_at_once(group: Vec<Waiting>) -> Vec<Saying> {
    let mut sayings: Vec<Saying> = Vec::with_capacity(group.len());
    for said in group {
        match sayings.last_mut() {
            Some(album) if is_more_of(&album.message, &said.message) => {
                let message = &mut album.message;
                message.text = captions(&message.text, &said.message.text);
                message.files.extend(said.message.files);
                message.transcripts.extend(said.message.transcripts);
                message.unfetched.extend(said.message.unfetched);
                message.overheard.extend(said.message.overheard);
                album.seqs.push(said.seq);
            }
            _ => sayings.push(said.into()),
        }
    }
    sayings
}

/// Whether one message goes on in another: both have files, and whatever else was said first by somebody
/// else is the same. A caption that was passed on is not the sender's.
fn is_more_of(first: &Message, second: &Message) -> bool {
    let have_files = !first.files.is_empty() && !second.files.is_empty();
    have_files
        && first.forwarded == second.forwarded
        && first.quote == second.quote
        && first.cited == second.cited
}

fn captions(first: &str, second: &str) -> String {
    let mut paragraphs: Vec<&str> = Vec::new();
    let all = [first, second].into_iter().flat_map(|text| text.split("\n\n")).map(str::trim);
    for paragraph in all.filter(|paragraph| !paragraph.is_empty()) {
        if !paragraphs.contains(&paragraph) {
            paragraphs.push(paragraph);
        }
    }
    paragraphs.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::captions;

    #[test]
    fn a_caption_that_comes_with_every_picture_is_read_once() {
        for (first, second, joined) in [
            ("the beach", "the beach", "the beach"),
            ("the beach", "", "the beach"),
            ("", "the sea", "the sea"),
            ("the beach\n\nat noon", "at noon\n\nand later", "the beach\n\nat noon\n\nand later"),
            ("", "", ""),
        ] {
            assert_eq!(captions(first, second), joined);
        }
    }
}
