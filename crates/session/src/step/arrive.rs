//! What comes from the platform.

use std::sync::Arc;

use talaria_model::{
    About, Address, Addressed, Author, Because, Bystander, Edition, Inbound, InboundKind, Message,
    Overheard, RoleId, Sender, Seq, Standing,
};

use super::Step;
use super::words::DROPPED;
use crate::Closed;
use crate::command::{self, Parsed};
use crate::rules::Edits;
use crate::session::{Joins, Origin, Paid, Waiting};

/// How much of what is said to others is remembered: the newest messages, and so much of each.
const MOST_OVERHEARD: usize = 50;
const LONGEST_OVERHEARD: usize = 500;

impl Step<'_> {
    pub(super) fn arrived(&mut self, seq: Seq, inbound: Inbound) {
        self.comes_from(&inbound);
        let roles = inbound.source.roles.clone();
        let Inbound { from, to, kind, .. } = inbound;
        match kind {
            InboundKind::Stopped => {
                self.close(seq, Closed::Handled);
                self.stop_for(&from, seq);
            }
            InboundKind::Pressed(choice) => self.pressed(seq, from, roles, choice),
            InboundKind::Said(message) if message.addressed != Addressed::ToUs => {
                self.overhear(seq, &from, &roles, &message);
            }
            InboundKind::Said(message) => self.said(waiting(seq, from, to, roles, message)),
            InboundKind::Edited(message) => {
                self.edited(waiting(seq, from, to, roles, message));
            }
        }
    }

    /// Parts of one message become one turn; what was changed of a part is read as it is.
    pub(super) fn arrived_together(&mut self, rows: Vec<(Seq, Inbound)>) {
        let mut parts: Vec<Waiting> = Vec::with_capacity(rows.len());
        for (seq, inbound) in rows {
            self.comes_from(&inbound);
            let roles = inbound.source.roles.clone();
            match inbound.kind {
                InboundKind::Said(message) => {
                    parts.push(waiting(seq, inbound.from, inbound.to, roles, message));
                }
                InboundKind::Edited(message) => {
                    let changed = waiting(seq, inbound.from, inbound.to, roles, message);
                    match parts.iter_mut().find(|part| is_edition_of(&changed, part)) {
                        Some(part) => {
                            change(&mut part.message, changed.message);
                            self.close(seq, Closed::Handled);
                        }
                        None => self.edited(changed),
                    }
                }
                InboundKind::Stopped | InboundKind::Pressed(_) => self.arrived(seq, inbound),
            }
        }
        for part in parts.extract_if(.., |part| self.is_hushed(part)).collect::<Vec<_>>() {
            self.close(part.seq, Closed::Ignored(DROPPED));
        }
        let rules = self.session.rules.clone();
        let are_words = parts
            .iter()
            .all(|part| matches!(command::parsed(&part.message, &rules.quick), Parsed::Words));
        if let (Some(last), true) = (parts.last(), self.is_idle() && are_words) {
            self.session.at = last.to.clone();
            let expiry = self.session.expired(self.now);
            self.session.active = self.now;
            self.session.waiting.extend(parts);
            return self.start_next(expiry);
        }
        for part in parts {
            self.session.at = part.to.clone();
            self.said(part);
        }
    }

    /// Who said these is not heard any more.
    pub(super) fn bar(&mut self, rows: &[Seq], why: &'static str) {
        let is_theirs = |said: &mut Waiting| rows.contains(&said.seq);
        let steers = self
            .hand_mut()
            .map_or_else(Vec::new, |hand| hand.steers.extract_if(.., is_theirs).collect());
        for said in steers {
            self.close(said.seq, Closed::Denied(why));
        }
        self.forget_asked(rows, why);
        let waiting = std::mem::take(&mut self.session.waiting);
        for said in waiting {
            if rows.contains(&said.seq) {
                self.close(said.seq, Closed::Denied(why));
            } else {
                self.session.waiting.push_back(said);
            }
        }
    }

    /// What was said is not answered, because nothing is left for it. They are told once.
    pub(super) fn unaffordable(&mut self, rows: Vec<(Seq, Inbound)>, why: &str) {
        let mut told = None;
        for (seq, inbound) in rows {
            self.session.at = inbound.to.clone();
            self.close(seq, Closed::Ignored("nothing is left of a budget"));
            if let InboundKind::Said(message) | InboundKind::Edited(message) = inbound.kind {
                let Inbound { from, to, source, .. } = inbound;
                told = Some((seq, from.clone()));
                self.aside(waiting(seq, from, to, source.roles, message));
            }
        }
        if let Some((seq, from)) = told {
            self.about = Some(About::Row(seq));
            self.whisper(&from, why);
            self.because(Because::OverBudget);
        }
    }

    fn comes_from(&mut self, inbound: &Inbound) {
        let Inbound { from, to, source, .. } = inbound;
        self.session.at = to.clone();
        if source.chat_name.is_some() {
            self.session.name.clone_from(&source.chat_name);
        }
        let origin = self.session.origin.get_or_insert_with(|| {
            Arc::new(Origin { from: from.clone(), at: to.clone(), source: source.clone() })
        });
        // Something may be said in a thread before its platform has told what that belongs to.
        if origin.source.parent.is_none() && source.parent.is_some() {
            Arc::make_mut(origin).source.parent.clone_from(&source.parent);
        }
    }

    fn said(&mut self, said: Waiting) {
        if self.is_hushed(&said) {
            return self.close(said.seq, Closed::Ignored(DROPPED));
        }
        match self.session.key.side {
            Some(_) => self.begin_beside(said),
            None => self.heard(said),
        }
    }

    /// Somebody changed what they had said. What waits is read as it is; what is answered already stays
    /// answered, unless the rules say otherwise.
    fn edited(&mut self, changed: Waiting) {
        let mut waiting = self.session.waiting.iter_mut();
        match waiting.find(|said| is_edition_of(&changed, said)) {
            Some(said) => {
                change(&mut said.message, changed.message);
                self.close(changed.seq, Closed::Handled);
            }
            None if self.session.rules.edits == Edits::Answered => {
                let edition = Edition::Changed;
                self.said(Waiting { message: Message { edition, ..changed.message }, ..changed });
            }
            None => self.close(changed.seq, Closed::Ignored("changed after it was taken up")),
        }
    }

    /// Something that was not said to us is read with the next thing that is.
    fn overhear(&mut self, seq: Seq, from: &Sender, roles: &[RoleId], message: &Message) {
        let overheard = &mut self.session.overheard;
        overheard.drain(..(overheard.len() + 1).saturating_sub(MOST_OVERHEARD));
        let text: String = message.text.chars().take(LONGEST_OVERHEARD).collect();
        overheard.push(match &message.forwarded {
            // Whoever is not heard does not come as far as this.
            None => {
                let name = from.name.clone().unwrap_or_else(|| from.id.to_string());
                let (id, kind, roles) = (from.id.clone(), from.kind, roles.to_vec());
                let by = Some(Bystander { id, kind, roles });
                Overheard { by, standing: Standing::Heard, ..Overheard::new(name, text) }
            }
            // What somebody passes on is not theirs.
            Some(Author::Named(name)) => Overheard::new(name.clone(), text),
            Some(Author::Us | Author::Unknown) => Overheard::new("somebody", text),
        });
        self.close(seq, Closed::Ignored("not said to us; read with the next message that is"));
    }
}

fn waiting(seq: Seq, from: Sender, to: Address, roles: Vec<RoleId>, message: Message) -> Waiting {
    Waiting { seq, from, to, roles, message, joins: Joins::Burst, paid: Paid::Later }
}

/// A message says what its newest edition says, and in whose words. An edition without files leaves those that
/// there are.
fn change(said: &mut Message, changed: Message) {
    said.text = changed.text;
    (said.forwarded, said.cited) = (changed.forwarded, changed.cited);
    said.quote = changed.quote.or(said.quote.take());
    if !changed.files.is_empty() || !changed.unfetched.is_empty() {
        (said.files, said.unfetched) = (changed.files, changed.unfetched);
        said.transcripts = changed.transcripts;
    }
}

/// Whether something is another edition of what was said.
fn is_edition_of(changed: &Waiting, said: &Waiting) -> bool {
    said.message.id.is_some()
        && said.message.id == changed.message.id
        && said.to.chat == changed.to.chat
        && said.from.is(&changed.from)
}
