//! What is recorded and delivered.

use talaria_model::{
    About, Act, Address, Because, Content, Entry, EntryBody, Notify, Outbound, OutboundId, Sender,
    SenderId, SenderKind, Sending, TurnId,
};

use super::Step;
use crate::event::Effect;
use crate::heard::inline;
use crate::pairing::Code;
use crate::session::Waiting;

/// The longest title that is made by itself.
const LONGEST_OWN_TITLE: usize = 60;

/// The longest title that a person may give.
pub(super) const LONGEST_TITLE: usize = 100;

/// How much of what was said here for others a turn is told: the newest messages, and so much of each.
const MOST_SENT: usize = 8;
const LONGEST_SENT: usize = 500;

/// How much is told of why something did not arrive.
const LONGEST_REASON: usize = 200;

impl Step<'_> {
    /// Delivers what the turn says, under the delivery that its preview already has.
    pub(super) fn speak(&mut self, mut content: Content) -> Option<OutboundId> {
        if content.text.trim().is_empty() && content.files.is_empty() {
            return None;
        }
        let session = self.session.id.clone();
        let next = self.session.deliveries + 1;
        let beside = self.session.key.side.map(|side| (side, self.session.title.clone()));
        let hand = self.hand_mut()?;
        if let (Some((side, title)), 0) = (beside, hand.spoken) {
            content.text = format!("*In the background, task {side}: {title}*\n\n{}", content.text);
        }
        let id = OutboundId { session, delivery: hand.delivery, part: 0 };
        hand.delivery = next;
        hand.spoken += 1;
        let to = hand.to.clone();
        content.reply_to.clone_from(&hand.answers);
        self.session.deliveries = next;
        self.effects.push(Effect::Post(Outbound { id: id.clone(), to, act: Act::Post(content) }));
        Some(id)
    }

    /// The gateway says something itself.
    pub(super) fn notice(&mut self, text: impl Into<String>) {
        self.remark(text.into(), Notify::Aloud, None);
    }

    /// The gateway tells one person a code. What is recorded and what stays in the outbox has none.
    pub(super) fn confide(&mut self, to: &Sender, text: String, code: &Code) {
        let said = Content::confidential(code.told_in(&text));
        self.put(Content { whispered_to: alone(to), ..said }, text);
    }

    /// The gateway says something that concerns one person.
    pub(super) fn whisper(&mut self, to: &Sender, text: impl Into<String>) {
        self.remark(text.into(), Notify::Aloud, alone(to));
    }

    /// The gateway says something that nobody's pocket has to ring for.
    pub(super) fn murmur(&mut self, text: impl Into<String>) {
        self.remark(text.into(), Notify::Silently, None);
    }

    /// The same to one person.
    pub(super) fn murmur_to(&mut self, to: &Sender, text: impl Into<String>) {
        self.remark(text.into(), Notify::Silently, alone(to));
    }

    fn remark(&mut self, text: String, notify: Notify, whispered_to: Option<SenderId>) {
        self.put(Content { notify, whispered_to, ..Content::text(text.clone()) }, text);
    }

    /// Says something, and records this of it.
    fn put(&mut self, said: Content, text: String) {
        self.session.deliveries += 1;
        let (session, delivery) = (self.session.id.clone(), self.session.deliveries);
        let sent = OutboundId { session, delivery, part: 0 };
        let act = Act::Post(said);
        let to = self.session.at.clone();
        self.effects.push(Effect::Post(Outbound { id: sent.clone(), to, act }));
        let (choices, files) = (Vec::new(), Vec::new());
        self.record_in(None, EntryBody::Noticed { text, choices, files, sent });
    }

    /// Says something in another chat. What was said there is in the call that led to it here, and in the
    /// transcript of the session there.
    pub(super) fn send(&mut self, Sending { to, text }: Sending) {
        self.session.deliveries += 1;
        let (session, delivery) = (self.session.id.clone(), self.session.deliveries);
        let id = OutboundId { session, delivery, part: 0 };
        let act = Act::Post(Content::text(text));
        self.effects.push(Effect::Send(Outbound { id, to, act }));
    }

    /// Something was said here that was asked for in another chat. The next turn has to know of it, because
    /// people answer it.
    pub(super) fn sent(&mut self, Outbound { id, act, .. }: Outbound) {
        let Act::Post(Content { text, .. }) = act else { return };
        let sent = &mut self.session.sent;
        sent.drain(..(sent.len() + 1).saturating_sub(MOST_SENT));
        sent.push(shortened(&text, LONGEST_SENT));
        self.call_after(&text);
        let (choices, files) = (Vec::new(), Vec::new());
        self.record_in(None, EntryBody::Noticed { text, choices, files, sent: id });
    }

    /// Something did not arrive in another chat. Whoever asked for it hears of it here: nobody there may be able
    /// to tell them.
    pub(super) fn lost(&mut self, to: &Address, reason: &str) {
        let reason = shortened(reason, LONGEST_REASON);
        let Address { account, chat, .. } = to;
        self.notice(format!(
            "⚠️ A message that I was to send to another chat (`{account}/{}`) did not arrive: {reason}.",
            chat.id
        ));
        self.session.lost = true;
    }

    /// What a person typed is not kept: these words stand in its place, here and in the journal.
    pub(super) fn conceal(&mut self, said: &mut Waiting, words: String) {
        said.message.transcripts.clear();
        said.message.text.clone_from(&words);
        self.effects.push(Effect::Conceal { seq: said.seq, words });
    }

    /// Records what a person typed that is not for the model.
    pub(super) fn aside(&mut self, said: Waiting) {
        let Waiting { from, message, .. } = said;
        self.record(EntryBody::Aside {
            from,
            text: message.words().into_owned(),
            files: message.files,
            message: message.id,
        });
    }

    pub(super) fn record(&mut self, body: EntryBody) {
        let turn = self.session.hand().map(|hand| hand.turn.clone());
        self.record_in(turn, body);
    }

    pub(super) fn record_in(&mut self, turn: Option<TurnId>, body: EntryBody) {
        self.session.entries += 1;
        let (number, at) = (self.session.entries, self.now);
        let about = match body {
            EntryBody::Noticed { .. } if turn.is_none() => self.about.clone(),
            _ => None,
        };
        let hand = self.hand_mut().filter(|hand| turn.as_ref() == Some(&hand.turn));
        let resumed = hand.and_then(|hand| hand.resumed.take());
        let entry = Entry { number, at, turn, body, because: None, about, resumed };
        self.effects.push(Effect::Record { session: self.session.id.clone(), entry });
    }

    /// Says of what was recorded last why it was said.
    pub(super) fn because(&mut self, why: Because) {
        if let Some(entry) = self.recorded_last() {
            entry.because = Some(why);
        }
    }

    /// Says of what was recorded last what else it is about.
    pub(super) fn concerning(&mut self, what: About) {
        if let Some(entry) = self.recorded_last() {
            entry.about = Some(what);
        }
    }

    fn recorded_last(&mut self) -> Option<&mut Entry> {
        self.effects.iter_mut().rev().find_map(|effect| match effect {
            Effect::Record { entry, .. } => Some(entry),
            _ => None,
        })
    }

    /// A conversation is called after the first thing said in it.
    pub(super) fn call_after(&mut self, text: &str) {
        if self.session.title.is_empty() {
            self.session.title = title(text);
        }
    }
}

/// A person alone. Nobody whispers to a program.
fn alone(to: &Sender) -> Option<SenderId> {
    (to.kind == SenderKind::Person).then(|| to.id.clone())
}

/// The first line of what was said, cut at a word.
fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    shortened(line, LONGEST_OWN_TITLE)
}

/// A text on one line, cut at a word.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    let line = inline(text);
    if line.chars().count() <= longest {
        return line;
    }
    let cut: String = line.chars().take(longest).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{}…", whole.trim_end())
}
