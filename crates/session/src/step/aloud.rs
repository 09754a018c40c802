//! What was said aloud, and what is.

use talaria_model::{
    Act, Address, Content, EntryBody, FileRef, Message, Notify, Outbound, OutboundId, Shown,
    Understood,
};

use super::Step;
use super::asked::{MOST_ASKED, PATIENCE, asking};
use super::turn::Saying;
use crate::event::{Effect, Request};
use crate::session::{Asked, Waiting};
use crate::voice::{Aloud, Echo, Medium};

/// The most of an answer that is spoken, in characters.
const LONGEST_SPOKEN: usize = 16_000;

/// The most of what was understood that is shown again, in characters.
const LONGEST_ECHO: usize = 1_500;

impl Step<'_> {
    /// Shows what was understood of what was said aloud.
    pub(super) fn echo(&mut self, message: &Message) {
        if self.session.rules.voice.echo == Echo::Never {
            return;
        }
        for transcript in message.transcripts.iter().filter(|one| one.owner.is_sender()) {
            if let Understood::Words(words) = &transcript.said {
                let short: String = words.chars().take(LONGEST_ECHO).collect();
                let more = if short.len() < words.len() { "…" } else { "" };
                let lines = format!("🎙️ {short}{more}");
                let quoted: Vec<String> = lines.lines().map(|line| format!("> {line}")).collect();
                self.murmur(quoted.join("\n"));
            }
        }
    }

    /// Has an answer spoken that is written already, if that is wished. Nothing waits for it.
    pub(super) fn say_aloud(&mut self, text: &str, files: &[FileRef]) {
        let (Some(aloud), Some(hand)) = (self.aloud(), self.session.hand()) else { return };
        let speaks_already = files.iter().any(|file| file.shown == Shown::Voice);
        let has_room = self.session.asked.len() < MOST_ASKED;
        if !aloud.applies(hand.medium) || speaks_already || !has_room || text.trim().is_empty() {
            return;
        }
        let Some(&seq) = hand.seqs.last() else { return };
        let asked = Asked {
            seq,
            from: hand.from.clone(),
            roles: hand.roles.clone(),
            to: hand.to.clone(),
            request: Request::Speak(text.chars().take(LONGEST_SPOKEN).collect()),
            expires: self.now + PATIENCE,
        };
        self.effects.push(asking(&asked));
        self.session.asked.push(asked);
    }

    /// An answer was spoken: it follows what was written.
    pub(super) fn spoken(&mut self, to: Address, file: FileRef) {
        self.session.deliveries += 1;
        let (session, delivery) = (self.session.id.clone(), self.session.deliveries);
        let id = OutboundId { session, delivery, part: 0 };
        let files = vec![file];
        // What is written has told people already.
        let notify = Notify::Silently;
        let act = Act::Post(Content { files: files.clone(), notify, ..Content::default() });
        self.effects.push(Effect::Post(Outbound { id: id.clone(), to, act }));
        let (text, choices) = (String::new(), Vec::new());
        self.record_in(None, EntryBody::Noticed { text, choices, files, sent: id });
    }

    /// What is not spoken yet stays unspoken.
    pub(super) fn fall_silent(&mut self) {
        self.session.asked.retain(|asked| !matches!(asked.request, Request::Speak(_)));
    }

    /// `/voice`.
    pub(super) fn voice(&mut self, said: Waiting, word: &str) {
        let Some(present) = self.aloud() else {
            let text = "I have no voice here: `voice.speak` is not configured.";
            return self.reply(said, text);
        };
        let next = match (word, present) {
            ("on", _) | ("", Aloud::Never) => Aloud::ToVoice,
            ("tts" | "all", _) => Aloud::Always,
            ("off", _) | ("", _) => Aloud::Never,
            ("status", present) => return self.reply(said, present.told()),
            _ => return self.reply(said, "Say `on`, `tts`, `off` or `status`."),
        };
        self.session.preferences.voice = Some(next);
        self.answer(said, next.told());
    }

    /// Which answers are spoken here; none where there is no voice.
    pub(super) fn aloud(&self) -> Option<Aloud> {
        let usual = self.session.rules.voice.replies?;
        Some(self.session.preferences.voice.unwrap_or(usual))
    }
}

/// How it was said, all in all.
pub(super) fn medium(group: &[Saying]) -> Medium {
    match group.iter().any(|said| said.message.is_spoken()) {
        true => Medium::Voice,
        false => Medium::Writing,
    }
}
