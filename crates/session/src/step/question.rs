//! What the agent asks and what people answer.

use talaria_model::{
    About, Aim, Answer, Because, CallId, Choice, ChoiceId, Content, EntryBody, FileRef, Giver,
    Message, Question, RoleId, Sender, Seq, Word,
};

use super::Step;
use crate::Closed;
use crate::access::{Deed, Whose};
use crate::event::{Attest, Effect};
use crate::session::{Answered, Joins, Paid, Phase, TurnInHand, Waiting};

/// Words that mean yes to a question that can be answered with yes.
const YES: [&str; 10] =
    ["approve", "yes", "ok", "okay", "confirm", "y", "👍", "allow", "once", "approve once"];

/// Words that mean no.
const NO: [&str; 7] = ["deny", "no", "reject", "cancel", "n", "👎", "refuse"];

const SEVERAL_OPEN: &str = "Several questions are open here, and that does not say which one you mean. Press a \
                            button of that one, or say it again when only one is left.";

/// What a person says to a question with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Yes,
    No,
}

impl Step<'_> {
    pub(super) fn ask_person(&mut self, question: Question) {
        if let Some(answer) = self.answer_at_once(&question) {
            self.tell_unapprovable(&question, &answer);
            return self.answer_for_nobody(question, answer);
        }
        if !matches!(self.session.phase, Phase::Thinking(_)) {
            // A turn that is stopping gets no answer any more.
            return;
        }
        let content = Content {
            text: question.text.clone(),
            choices: question.choices.clone(),
            ..Content::default()
        };
        let sent = self.speak(content);
        if let Some(sent) = sent.clone() {
            let (text, choices) = (question.text.clone(), question.choices.clone());
            self.record(EntryBody::Noticed { text, choices, files: Vec::new(), sent });
            if let Some(approval) = &question.approval {
                self.because(Because::Approval(approval.digest));
            }
        }
        match std::mem::replace(&mut self.session.phase, Phase::Idle) {
            Phase::Thinking(hand) => {
                let hand = TurnInHand { answered: None, ..hand };
                let limit = match question.approval {
                    Some(_) => self.session.rules.approvals.limit,
                    None => self.session.rules.question_limit,
                };
                let (since, expires) = (self.now, self.now + limit);
                self.attest(&hand, &question, Attest::Asked);
                self.session.phase = Phase::Asking { hand, question, since, expires, sent };
            }
            other => self.session.phase = other,
        }
    }

    /// The answer to a question that nobody need be asked, or can be: nobody reads along in the
    /// background.
    fn answer_at_once(&self, question: &Question) -> Option<Answer> {
        let is_beside = self.session.key.side.is_some();
        match &question.approval {
            Some(approval) => self.decided(approval),
            None => is_beside.then_some(Answer::Expired),
        }
    }

    fn answer_for_nobody(&mut self, question: Question, answer: Answer) {
        let consent = match &answer {
            Answer::Approved { consent, .. } => Some(*consent),
            _ => None,
        };
        if let Some(hand) = self.session.hand().cloned() {
            self.attest(&hand, &question, Attest::Unasked(consent));
        }
        let Some(hand) = self.hand_mut() else { return };
        let turn = hand.turn.clone();
        let to = question.call.clone();
        let word = Word::Answer { to, answer: answer.clone(), files: Vec::new() };
        hand.answered = Some(Box::new(Answered { question, answer, by: None, files: Vec::new() }));
        self.effects.push(Effect::Tell { turn, word });
    }

    pub(super) fn pressed(&mut self, seq: Seq, from: Sender, roles: Vec<RoleId>, choice: ChoiceId) {
        let chosen = match &self.session.phase {
            // Whose an approval is to decide, `judge` looks at: somebody else is told that it is not theirs.
            Phase::Asking { question, hand, .. }
                if question.approval.is_some() || self.may_answer(hand, &from) =>
            {
                question.choices.iter().find(|offered| offered.id.is_named(&choice)).cloned()
            }
            _ => None,
        };
        match chosen {
            Some(Choice { id: choice, label: text }) => {
                let (to, message) =
                    (self.session.at.clone(), Message { text, ..Message::default() });
                let said = Waiting {
                    seq,
                    from,
                    to,
                    roles,
                    message,
                    joins: Joins::Burst,
                    paid: Paid::Later,
                };
                match self.asked_to_approve().and_then(|approval| approval.verdict(&choice)) {
                    Some(verdict) => self.judge(said, verdict, String::new()),
                    None => self.answered(said, Answer::Chosen(choice)),
                }
            }
            None => {
                self.close(seq, Closed::Ignored("the question is not open any more"));
                self.about = Some(About::Row(seq));
                self.whisper(&from, "That question is not open any more.");
            }
        }
    }

    /// Whether somebody may answer what the turn in hand has asked.
    fn may_answer(&self, hand: &TurnInHand, from: &Sender) -> bool {
        let whose = if hand.from.is(from) { Whose::Own } else { Whose::Anothers };
        self.by.may(Deed::Answer(whose))
    }

    pub(super) fn answered_in_words(&mut self, said: Waiting) {
        if self.asked_to_approve().is_some() {
            return self.judged_in_words(said);
        }
        let Phase::Asking { question, .. } = &self.session.phase else { return };
        let answer = understood(question, &said.message.words());
        self.answered(said, answer);
    }

    /// `/approve` and `/deny`.
    pub(super) fn judged(&mut self, said: Waiting, says: Says, reason: String) {
        let Phase::Asking { question, hand, .. } = &self.session.phase else {
            let text = match said.message.aim {
                Aim::Clear | Aim::TooEarly => "No question is open.",
                Aim::Unclear => SEVERAL_OPEN,
            };
            return self.reply(said, text);
        };
        if question.approval.is_some() {
            return self.judged_by_command(said, says, reason);
        }
        if !self.may_answer(hand, &said.from) {
            return self.reply(said, "That question was put to somebody else.");
        }
        let (words, plainly) = match says {
            Says::Yes => (&YES[..], "Yes."),
            Says::No => (&NO[..], "No."),
        };
        let answer = match (choice_like(question, words), reason.is_empty()) {
            (Some(choice), true) => Answer::Chosen(choice.id.clone()),
            (_, true) => Answer::Said(plainly.to_owned()),
            (_, false) => Answer::Said(format!("{plainly} {reason}")),
        };
        self.answered(said, answer);
    }

    pub(super) fn answered(&mut self, said: Waiting, answer: Answer) {
        self.close(said.seq, Closed::Handled);
        self.session.active = self.now;
        let files = said.message.files.clone();
        self.aside(said);
        self.resume(answer, None, files);
    }

    /// Closes a question whose time is over. A clock that was set back lets nobody answer for more than twice as
    /// long.
    pub(super) fn expire_overdue(&mut self) {
        let Phase::Asking { since, expires, .. } = self.session.phase else { return };
        let limit = expires.since(since);
        if expires <= self.now || self.now + limit < since {
            self.expire();
        }
    }

    /// Nobody has answered in time.
    fn expire(&mut self) {
        if let Phase::Asking { hand, question, sent, .. } = &self.session.phase {
            let (hand, question, sent) = (hand.clone(), question.clone(), sent.clone());
            self.conclude(&hand, &question, sent, Attest::Expired, None);
        }
        self.resume(Answer::Expired, None, Vec::new());
    }

    /// The agent does not wait for this answer any more.
    pub(super) fn withdraw(&mut self, call: &CallId) {
        match std::mem::replace(&mut self.session.phase, Phase::Idle) {
            Phase::Asking { hand, question, sent, .. } if question.call == *call => {
                self.conclude(&hand, &question, sent, Attest::Changed, None);
                self.session.phase = Phase::Thinking(hand);
            }
            other => self.session.phase = other,
        }
    }

    /// From asking back to thinking. The time spent waiting does not count against the turn.
    /// `by` is who decided, where that matters.
    pub(super) fn resume(&mut self, answer: Answer, by: Option<Giver>, files: Vec<FileRef>) {
        match std::mem::replace(&mut self.session.phase, Phase::Idle) {
            Phase::Asking { mut hand, question, since, .. } => {
                hand.deadline = hand.deadline + self.now.since(since);
                hand.heard = self.now;
                let to = question.call.clone();
                let word = Word::Answer { to, answer: answer.clone(), files: files.clone() };
                self.effects.push(Effect::Tell { turn: hand.turn.clone(), word });
                hand.answered = Some(Box::new(Answered { question, answer, by, files }));
                self.session.phase = Phase::Thinking(hand);
            }
            other => self.session.phase = other,
        }
    }
}

/// What exactly such a word says, where only such a word counts.
pub(super) fn plainly(text: &str) -> Option<Says> {
    // A thumb says the same in every colour.
    let is_word = |c: &char| !matches!(c, '\u{1F3FB}'..='\u{1F3FF}' | '\u{FE0F}');
    let text: String = bare(text.trim()).chars().filter(is_word).collect();
    let said = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(&text));
    match (said(&YES), said(&NO)) {
        (true, _) => Some(Says::Yes),
        (_, true) => Some(Says::No),
        _ => None,
    }
}

/// Who speaks is written down in sentences.
fn bare(text: &str) -> &str {
    text.trim_end_matches(['.', '!'])
}

/// What a person means who types instead of pressing: a number, a label, a word that means the same,
/// or something of their own.
fn understood(question: &Question, text: &str) -> Answer {
    let text = text.trim();
    let by_meaning = || match plainly(text)? {
        Says::Yes => choice_like(question, &YES),
        Says::No => choice_like(question, &NO),
    };
    match picked(question, text).or_else(by_meaning) {
        Some(choice) => Answer::Chosen(choice.id.clone()),
        None => Answer::Said(text.to_owned()),
    }
}

/// The choice that a person types instead of pressing it: its number, or its whole label.
pub(super) fn picked<'a>(question: &'a Question, text: &str) -> Option<&'a Choice> {
    let text = text.trim();
    let by_number = text
        .trim_end_matches(['.', ')'])
        .parse::<usize>()
        .ok()
        .and_then(|number| question.choices.get(number.checked_sub(1)?));
    let bare = bare(text);
    let by_label = || {
        let is_meant = |choice: &&Choice| {
            [text, bare].iter().any(|said| choice.label.trim().eq_ignore_ascii_case(said))
        };
        question.choices.iter().find(is_meant)
    };
    by_number.or_else(by_label)
}

/// The one choice whose label is such a word.
fn choice_like<'a>(question: &'a Question, words: &[&str]) -> Option<&'a Choice> {
    let alike = |choice: &&Choice| {
        words
            .iter()
            .any(|word| word.eq_ignore_ascii_case(choice.label.trim().trim_end_matches('.')))
    };
    let mut choices = question.choices.iter().filter(alike);
    choices.next().filter(|_| choices.next().is_none())
}
