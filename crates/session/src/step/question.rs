//! What the agent asks and what people answer.

use talaria_model::{
    Answer, Choice, ChoiceId, Content, EntryBody, FileRef, Message, Question, Sender, Seq, Word,
};

use super::Step;
use super::words::is_of;
use crate::Closed;
use crate::event::Effect;
use crate::session::{Answered, Joins, Phase, TurnInHand, Waiting};

/// Words that mean yes to a question that can be answered with yes.
const YES: [&str; 10] =
    ["approve", "yes", "ok", "okay", "confirm", "y", "👍", "allow", "once", "approve once"];

/// Words that mean no.
const NO: [&str; 7] = ["deny", "no", "reject", "cancel", "n", "👎", "refuse"];

/// What a person says to a question with a command.
pub(super) enum Verdict {
    Approve,
    Deny,
}

impl Step<'_> {
    pub(super) fn ask_person(&mut self, question: Question) {
        if self.session.key.side.is_some() {
            return self.answer_for_nobody(question);
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
        if let Some(sent) = self.speak(content) {
            let (text, choices) = (question.text.clone(), question.choices.clone());
            self.record(EntryBody::Noticed { text, choices, files: Vec::new(), sent });
        }
        match std::mem::replace(&mut self.session.phase, Phase::Idle) {
            Phase::Thinking(hand) => {
                let hand = TurnInHand { answered: None, ..hand };
                let expires = self.now + self.session.rules.question_limit;
                self.session.phase = Phase::Asking { hand, question, since: self.now, expires };
            }
            other => self.session.phase = other,
        }
    }

    /// Nobody reads along in the background, so nobody can be asked.
    fn answer_for_nobody(&mut self, question: Question) {
        let Some(hand) = self.hand_mut() else { return };
        let turn = hand.turn.clone();
        hand.answered = Some(Answered { question, answer: Answer::Expired, files: Vec::new() });
        let word = Word::Answer { answer: Answer::Expired, files: Vec::new() };
        self.effects.push(Effect::Tell { turn, word });
    }

    pub(super) fn pressed(&mut self, seq: Seq, from: Sender, choice: ChoiceId) {
        let chosen = match &self.session.phase {
            Phase::Asking { question, hand, .. } if hand.from.is(&from) => {
                question.choices.iter().find(|offered| offered.id.is_named(&choice)).cloned()
            }
            _ => None,
        };
        match chosen {
            Some(Choice { id: choice, label: text }) => {
                let (to, message) =
                    (self.session.at.clone(), Message { text, ..Message::default() });
                let said = Waiting { seq, from, to, message, joins: Joins::Burst };
                self.answered(said, Answer::Chosen(choice));
            }
            None => {
                self.close(seq, Closed::Ignored("the question is not open any more"));
                self.whisper(&from, "That question is not open any more.");
            }
        }
    }

    pub(super) fn answered_in_words(&mut self, said: Waiting) {
        let Phase::Asking { question, .. } = &self.session.phase else { return };
        let answer = understood(question, &said.message.words());
        self.answered(said, answer);
    }

    /// `/approve` and `/deny`.
    pub(super) fn judged(&mut self, said: Waiting, verdict: Verdict, reason: String) {
        let Phase::Asking { question, hand, .. } = &self.session.phase else {
            return self.reply(said, "No question is open.");
        };
        if !is_of(hand, &said) {
            return self.reply(said, "That question was put to somebody else.");
        }
        let (words, plainly) = match verdict {
            Verdict::Approve => (&YES[..], "Yes."),
            Verdict::Deny => (&NO[..], "No."),
        };
        let answer = match (choice_like(question, words), reason.is_empty()) {
            (Some(choice), true) => Answer::Chosen(choice.id.clone()),
            (_, true) => Answer::Said(plainly.to_owned()),
            (_, false) => Answer::Said(format!("{plainly} {reason}")),
        };
        self.answered(said, answer);
    }

    fn answered(&mut self, said: Waiting, answer: Answer) {
        self.close(said.seq, Closed::Handled);
        self.session.active = self.now;
        let files = said.message.files.clone();
        self.aside(said);
        self.resume(answer, files);
    }

    /// From asking back to thinking. The time spent waiting does not count against the turn.
    pub(super) fn resume(&mut self, answer: Answer, files: Vec<FileRef>) {
        match std::mem::replace(&mut self.session.phase, Phase::Idle) {
            Phase::Asking { mut hand, question, since, .. } => {
                hand.deadline = hand.deadline + self.now.since(since);
                hand.heard = self.now;
                let word = Word::Answer { answer: answer.clone(), files: files.clone() };
                self.effects.push(Effect::Tell { turn: hand.turn.clone(), word });
                hand.answered = Some(Answered { question, answer, files });
                self.session.phase = Phase::Thinking(hand);
            }
            other => self.session.phase = other,
        }
    }
}

/// What a person means who types instead of pressing: a number, a label, a word that means the same,
/// or something of their own.
fn understood(question: &Question, text: &str) -> Answer {
    let text = text.trim();
    let by_number = text
        .trim_end_matches(['.', ')'])
        .parse::<usize>()
        .ok()
        .and_then(|number| question.choices.get(number.checked_sub(1)?));
    // Who speaks is written down in sentences.
    let bare = text.trim_end_matches(['.', '!']);
    let by_label = || {
        let is_meant = |choice: &&Choice| {
            [text, bare].iter().any(|said| choice.label.trim().eq_ignore_ascii_case(said))
        };
        question.choices.iter().find(is_meant)
    };
    let by_meaning = || {
        let said = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(bare));
        match (said(&YES), said(&NO)) {
            (true, _) => choice_like(question, &YES),
            (_, true) => choice_like(question, &NO),
            _ => None,
        }
    };
    match by_number.or_else(by_label).or_else(by_meaning) {
        Some(choice) => Answer::Chosen(choice.id.clone()),
        None => Answer::Said(text.to_owned()),
    }
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
