//! One life of the conversation gives way to another, and turns are taken back.

use std::sync::Arc;

use talaria_model::{Cost, Failure, Message, Sender, Task, Usage};

use super::Step;
use super::say::{LONGEST_TITLE, shortened};
use super::turn::{Asker, Read, Saying};
use super::words::{DROPPED, is_of};
use crate::Closed;
use crate::access::{Deed, Whose};
use crate::event::{Effect, Passed, Past, Recalled, Request, Retired};
use crate::life::{Happening, Life};
use crate::session::{Asked, Beside, Copies, Waiting, mint};

/// How many titles are remembered of which copies were made.
const MOST_COPIED: usize = 16;

const CUTS_OTHERS_OFF: &str = "⏳ Not while somebody else is being answered here: you may not stop what is theirs. \
                               Say it again when I am done.";

impl Step<'_> {
    /// `/new`: ends what runs, drops what waits, and remembers nothing. Who may not stop others does not stop
    /// them by this either.
    pub(super) fn begin_anew(&mut self, said: Waiting, title: &str) {
        let spares_others = self.session.key.is_shared() && !self.by.may_stop(Whose::Anothers);
        if spares_others && self.concerns_others(&said) {
            return self.reply(said, CUTS_OTHERS_OFF);
        }
        self.close(said.seq, Closed::Handled);
        if spares_others {
            self.hush(&said.from, said.seq);
        } else {
            self.effects.push(Effect::DropUnread { before: said.seq, why: DROPPED });
        }
        self.aside(said);
        let dropped = self.tell_dropped();
        self.abandon(Failure::Stopped);
        self.happened(Happening::Renewed);
        self.renew(Life::Fresh, Retired::New);
        self.session.title = shortened(title, LONGEST_TITLE);
        self.notice(format!(
            "A new conversation. I remember nothing of the last one, but it stays searchable.{dropped}"
        ));
    }

    /// Whether anybody but the one who speaks is being answered here, or waits to be.
    fn concerns_others(&self, said: &Waiting) -> bool {
        self.session.hand().is_some_and(|hand| !is_of(hand, said))
            || self.session.waiting.iter().any(|waiting| !waiting.from.is(&said.from))
    }

    /// Another life: a new id, nothing remembered. What waits and what people asked for goes on.
    pub(super) fn renew(&mut self, life: Life, why: Retired) {
        self.retire(why);
        let session = &mut *self.session;
        session.lives += 1;
        session.id = mint(&session.key, session.lives, self.now);
        session.title = String::new();
        session.life = life;
        session.turns = 0;
        session.copied = 0;
        session.entries = 0;
        session.deliveries = 0;
        session.usage = Usage::default();
        session.cost = Cost::FREE;
        session.prompt = 0;
        session.preferences.model = None;
        session.preferences.effort = None;
        session.marks = Vec::new();
        session.channel_prompt = None;
        session.approved = Vec::new();
        session.note = None;
        session.overheard = Vec::new();
        session.speakers = Arc::default();
        session.begun = self.now;
        session.active = self.now;
    }

    fn retire(&mut self, why: Retired) {
        let session = &*self.session;
        if session.entries == 0 {
            return;
        }
        let past = Box::new(session.past());
        self.effects.push(Effect::Retire { past, why });
    }

    /// Back to an earlier life.
    pub(super) fn switch(&mut self, past: Past) {
        if past.id == self.session.id {
            return self.notice("You are in that conversation.");
        }
        self.happened(Happening::Switched);
        self.retire(Retired::Switched);
        let session = &mut *self.session;
        session.id = past.id;
        session.title = past.title;
        session.turns = past.turns;
        session.copied = past.copied;
        session.entries = past.entries;
        session.deliveries = past.deliveries;
        session.usage = past.usage;
        session.cost = past.cost;
        session.prompt = past.prompt;
        session.preferences.model = past.preferences.model;
        session.preferences.effort = past.preferences.effort;
        session.marks = past.marks;
        session.channel_prompt = None;
        // What was approved for the rest of a conversation was approved in that one.
        session.approved = Vec::new();
        session.note = None;
        session.speakers = past.speakers;
        session.begun = past.begun;
        session.active = self.now;
        let text = match session.title.as_str() {
            "" => format!("Back in `{}`.", session.id),
            title => format!("Back in “{title}”."),
        };
        self.notice(text);
    }

    /// `/branch`: goes on with a copy.
    pub(super) fn branch(&mut self, said: Waiting, title: &str) {
        if self.session.turns == 0 {
            return self.reply(said, "There is nothing to copy yet.");
        }
        self.close(said.seq, Closed::Handled);
        let mut copied = self.session.past();
        copied.title = match shortened(title, LONGEST_TITLE) {
            title if title.is_empty() => self.next_in_line(&copied.title),
            title => title,
        };
        self.aside(said);
        self.go_on_with_copy(copied, Retired::Branched);
        let title = &self.session.title;
        let text = format!("You are in a copy, “{title}”. `/resume` goes back to the original.");
        self.notice(text);
    }

    /// A life of another conversation stays there; this one goes on with a copy.
    pub(super) fn adopt(&mut self, past: Past) {
        self.go_on_with_copy(past, Retired::Switched);
        let text = format!("You are in a copy of “{}”.", self.session.title);
        self.notice(text);
    }

    fn go_on_with_copy(&mut self, copied: Past, why: Retired) {
        self.happened(Happening::Switched);
        let life = self.session.life;
        self.renew(life, why);
        let session = &mut *self.session;
        session.title = copied.title;
        session.turns = copied.turns;
        session.copied = copied.turns;
        session.entries = copied.entries;
        session.prompt = copied.prompt;
        session.preferences.model = copied.preferences.model;
        session.preferences.effort = copied.preferences.effort;
        session.marks = copied.marks;
        session.speakers = copied.speakers;
        let (from, to, upto) = (copied.id, session.id.clone(), copied.entries);
        self.effects.push(Effect::Branch { from, to, upto });
    }

    /// `plan` is followed by `plan #2`, and that by `plan #3`, in whichever of them one branches off.
    fn next_in_line(&mut self, title: &str) -> String {
        let numbered = title.rsplit_once(" #").and_then(|(stem, number)| {
            Some((stem, number.parse::<u32>().ok().filter(|number| *number > 1)?))
        });
        let (stem, number) = numbered.unwrap_or((title, 1));
        let copies = &mut self.session.copies;
        let known = copies.iter().position(|copies| copies.title == stem);
        let last = known.map_or(0, |place| copies.remove(place).last).max(number);
        copies.drain(..(copies.len() + 1).saturating_sub(MOST_COPIED));
        let last = last.saturating_add(1);
        copies.push(Copies { title: stem.to_owned(), last });
        format!("{stem} #{last}")
    }

    /// `/undo`: takes back the last turns.
    pub(super) fn undo(&mut self, said: Waiting, number: &str) {
        let wanted = match number {
            "" => Some(1),
            number => number.parse::<usize>().ok().filter(|wanted| *wanted > 0),
        };
        let Some(wanted) = wanted else {
            return self.reply(said, "Say how many turns: `/undo 2`.");
        };
        let marks = &mut self.session.marks;
        let undone = marks.split_off(marks.len() - wanted.min(marks.len()));
        let Some(first) = undone.first() else {
            return self.reply(said, "There is nothing that can be taken back.");
        };
        let whose = match undone.iter().all(|mark| mark.is_of(&said.from)) {
            true => Whose::Own,
            false => Whose::Anothers,
        };
        if !self.by.may(Deed::TakeBack(whose)) {
            self.session.marks.extend(undone);
            return self.reply(said, "Only the one who said it can take it back.");
        }
        self.rewind(first.entry, &said.from);
        let text = match (undone.len(), first.said.as_str()) {
            (1, "") => "The last turn is taken back. What its tools did is not.".to_owned(),
            (1, began) => {
                format!("“{began}” and what came of it is taken back. What its tools did is not.")
            }
            (n, "") => format!("The last {n} turns are taken back. What their tools did is not."),
            (n, began) => format!(
                "The last {n} turns are taken back, from “{began}” on. What their tools did is not."
            ),
        };
        self.answer(said, text);
    }

    fn rewind(&mut self, from: u32, by: &Sender) {
        let (session, upto) = (self.session.id.clone(), self.session.entries);
        self.session.note = None;
        self.effects.push(Effect::Rewind { session, from, upto, by: by.id.clone() });
    }

    /// `/retry`: asks what was said last, to say it again.
    pub(super) fn retry(&mut self, said: Waiting) {
        match self.session.marks.last() {
            None => self.reply(said, "There is nothing that can be answered again."),
            Some(mark) => {
                let (from, upto) = (mark.entry, self.session.entries);
                self.ask(said, Request::Recall { from, upto });
            }
        }
    }

    /// What was said last is said again, in place of what came of it.
    pub(super) fn say_again(&mut self, asked: Asked, from: u32, said: Vec<Recalled>) {
        let refusal = if self.session.hand().is_some() {
            Some("I have begun something else; `/stop` it first.")
        } else if self.session.marks.last().map(|mark| mark.entry) != Some(from) || said.is_empty()
        {
            Some("There is nothing that can be answered again.")
        } else if said.iter().any(|said| !said.from.is(&asked.from)) {
            Some("Only the one who said it can have it answered again.")
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.close(asked.seq, Closed::Handled);
            return self.whisper(&asked.from, refusal);
        }
        self.session.marks.pop();
        self.rewind(from, &asked.from);
        let Asked { seq, from, roles, to, .. } = asked;
        let prompt = self.session.channel_prompt.clone();
        let again = |Recalled { from, message, heard }| Saying {
            seqs: Vec::new(),
            from,
            message: Message { channel_prompt: prompt.clone(), ..message },
            read: Read::As(heard),
        };
        let mut group: Vec<Saying> = said.into_iter().map(again).collect();
        // All of it is said again in the row that asks for it.
        group[0].seqs.push(seq);
        let asker = Asker { from, to, roles };
        self.begin_turn(group, Task::Answer, asker, None);
    }

    /// `/background`: has something done beside the conversation.
    pub(super) fn work_beside(&mut self, said: Waiting) {
        let now = self.now;
        self.look_beside();
        if self.session.background.len() >= self.session.rules.background {
            let text = match self.session.background.len() {
                1 => "A task runs in the background already; `/stop` ends it.".to_owned(),
                n => format!("{n} tasks run in the background already; `/stop` ends them."),
            };
            return self.reply(said, text);
        }
        self.session.sides += 1;
        let side = self.session.sides;
        self.session.background.push(Beside { side, since: now });
        self.effects.push(Effect::Forward { seq: said.seq, to: self.session.key.beside(side) });
        self.aside(said);
        self.notice(format!("⏳ Task {side} runs in the background; its answer comes here."));
    }

    /// Forgets turns beside the conversation of which nothing was heard for long, and has the others say
    /// whether they are done: that they were may have been said to a process that died.
    pub(super) fn look_beside(&mut self) {
        let now = self.now;
        self.session.background.retain(|beside| beside.works(now));
        for beside in &self.session.background {
            let to = self.session.key.beside(beside.side);
            self.effects.push(Effect::Pass { to, passed: Passed::Ask });
        }
    }
}
