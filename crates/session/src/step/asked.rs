//! What the gateway is asked for.

use std::time::Duration;

use talaria_model::{About, Seq};

use super::Step;
use crate::Closed;
use crate::access::Reach;
use crate::event::{Effect, PairWish, Request, Told};
use crate::session::{Asked, Waiting};

/// How many requests may be open at once.
pub(super) const MOST_ASKED: usize = 16;

/// How long a request may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5 * 60);

impl Step<'_> {
    /// Asks the gateway. The row stays the session's own until the answer is there.
    pub(super) fn ask(&mut self, said: Waiting, request: Request) {
        if self.session.asked.len() >= MOST_ASKED {
            return self.reply(said, "Too many requests are open already; wait a moment.");
        }
        let asked = Asked {
            seq: said.seq,
            from: said.from.clone(),
            roles: said.roles.clone(),
            to: said.to.clone(),
            request,
            expires: self.now + PATIENCE,
        };
        self.effects.push(Effect::Take(said.seq));
        self.aside(said);
        self.effects.push(asking(&asked));
        self.session.asked.push(asked);
    }

    /// The answer is there. One that nobody waits for any more changes nothing.
    pub(super) fn told(&mut self, seq: Seq, told: Told) {
        let Some(place) = self.session.asked.iter().position(|asked| asked.seq == seq) else {
            return;
        };
        let asked = self.session.asked.remove(place);
        self.about = Some(About::Row(seq));
        if let Request::Speak(_) = asked.request {
            // Otherwise what is written says it all.
            if let Told::Spoken(file) = told {
                self.spoken(asked.to, file);
            }
            return;
        }
        self.session.at = asked.to.clone();
        match (told, &asked.request) {
            (Told::Said(said), &Request::Recall { from, .. }) => {
                return self.say_again(asked, from, said);
            }
            (Told::Text(text), request) if is_own(request) => self.whisper(&asked.from, text),
            (Told::Text(text), _) => self.notice(text),
            (Told::Code { text, code }, Request::Pair { wish: PairWish::Issue(reach), .. }) => {
                let text = format!("{text} Whoever says it is heard {}.", heard(*reach));
                self.confide(&asked.from, text, &code);
            }
            (Told::Code { text, code }, _) => self.confide(&asked.from, text, &code),
            (Told::Model(name), _) => {
                self.notice(format!("`{name}` answers here from now on."));
                self.session.preferences.model = Some(name);
            }
            (Told::Life(past), _) if self.is_idle() => self.switch(*past),
            (Told::Elsewhere(past), _) if self.is_idle() => self.adopt(*past),
            (Told::Life(_) | Told::Elsewhere(_), _) => {
                self.whisper(&asked.from, "I have begun something else; `/stop` it first.")
            }
            (Told::Said(_) | Told::Spoken(_) | Told::Unspoken, _) => {}
        }
        self.close(asked.seq, Closed::Handled);
    }

    /// Nobody is kept waiting for an answer that does not come.
    pub(super) fn give_up_asking(&mut self) {
        let now = self.now;
        let is_late = |asked: &Asked| asked.expires <= now;
        // Nobody waits for a voice who can read.
        let goes_silent =
            |asked: &Asked| matches!(asked.request, Request::Speak(_)) && is_late(asked);
        self.session.asked.retain(|asked| !goes_silent(asked));
        let overdue: Vec<Asked> =
            self.session.asked.extract_if(.., |asked| is_late(asked)).collect();
        for asked in overdue {
            self.session.at = asked.to;
            self.about = Some(About::Row(asked.seq));
            self.close(asked.seq, Closed::Ignored("the request was not answered in time"));
            self.notice("That took too long; I have given it up.");
        }
        self.about = None;
    }

    /// After a restart everything is asked again, but for what must not be done twice, and for what only an
    /// administrator may want: whether they still are one is looked at when they say it.
    pub(super) fn ask_again(&mut self) {
        let now = self.now;
        for mut asked in std::mem::take(&mut self.session.asked) {
            let text = match asked.request {
                Request::Restart => "I am back.",
                Request::Run(_) => "A restart cut that off; I have not run it again.",
                Request::Pair { .. }
                | Request::SetHome
                | Request::Platform { .. }
                | Request::Reload => "A restart cut that off; say it again.",
                Request::Models
                | Request::Model(_)
                | Request::Recall { .. }
                | Request::Resume(_)
                | Request::Lives
                | Request::Search(_)
                | Request::Left { .. }
                | Request::History { .. }
                | Request::Platforms
                | Request::Speak(_) => {
                    asked.expires = now + PATIENCE;
                    self.effects.push(asking(&asked));
                    self.session.asked.push(asked);
                    continue;
                }
            };
            self.session.at = asked.to;
            self.about = Some(About::Row(asked.seq));
            self.close(asked.seq, Closed::Handled);
            self.notice(text);
        }
        self.about = None;
    }

    /// Nobody is told anything who is not heard any more.
    pub(super) fn forget_asked(&mut self, rows: &[Seq], why: &'static str) {
        let is_theirs = |asked: &mut Asked| rows.contains(&asked.seq);
        let forgotten: Vec<Asked> = self.session.asked.extract_if(.., is_theirs).collect();
        for asked in forgotten {
            // The row of what was to be spoken is that of a turn, and answered.
            if !matches!(asked.request, Request::Speak(_)) {
                self.close(asked.seq, Closed::Denied(why));
            }
        }
    }

    /// What was to be said again is not.
    pub(super) fn forget_recalls(&mut self, why: &'static str) {
        let recalls = |asked: &mut Asked| matches!(asked.request, Request::Recall { .. });
        let forgotten: Vec<Asked> = self.session.asked.extract_if(.., recalls).collect();
        for asked in forgotten {
            self.close(asked.seq, Closed::Ignored(why));
        }
    }
}

/// Where somebody is heard who says a code.
const fn heard(reach: Reach) -> &'static str {
    match reach {
        Reach::Direct => "in direct chats only",
        Reach::Everywhere => "everywhere",
    }
}

/// Whether what comes of a request concerns only whoever made it, as long as it is only words.
fn is_own(request: &Request) -> bool {
    match request {
        Request::Models
        | Request::Model(_)
        | Request::Recall { .. }
        | Request::Resume(_)
        | Request::Lives
        | Request::Search(_)
        | Request::History { .. }
        | Request::Platforms
        | Request::Pair { .. }
        | Request::Left { .. } => true,
        Request::SetHome
        | Request::Platform { .. }
        | Request::Reload
        | Request::Restart
        | Request::Run(_)
        | Request::Speak(_) => false,
    }
}

pub(super) fn asking(asked: &Asked) -> Effect {
    Effect::Ask {
        seq: asked.seq,
        from: asked.from.clone(),
        roles: asked.roles.clone(),
        at: asked.to.clone(),
        request: asked.request.clone(),
    }
}
