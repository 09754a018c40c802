//! Where whoever gave a slash command can be answered in private when we are not in its chat. Each address
//! is its giver's own: what is meant for one person is never said at that of another.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talaria_model::{Secret, SenderId, Timestamp};

use crate::wire::recent::Recent;

/// How long Slack lets us answer a slash command by its own address.
const ANSWERABLE: Duration = Duration::from_secs(29 * 60);

/// How often one such address may be used.
const USES: u8 = 5;

/// How long somebody counts among those whom an answer may be for. Longer than a turn takes: what comes
/// too late for its own address must not find somebody else's as the only one.
const AWAITS: Duration = Duration::from_secs(60 * 60);

/// Chats that are remembered.
const CHATS: usize = 1_000;

/// People that are remembered of each.
const GIVERS: usize = 100;

/// How the giver of a command is reached.
#[derive(Debug, Clone)]
pub(super) struct WayBack {
    pub(super) chat: String,
    pub(super) giver: SenderId,
    pub(super) url: Secret,
}

/// The ways back to everybody who gave a command lately.
pub(super) struct Answers(Mutex<Recent<String, Vec<Asked>>>);

/// Somebody who gave a command in a chat. The oldest come first.
struct Asked {
    giver: SenderId,
    url: Secret,
    at: Timestamp,
    uses: u8,
}

impl Default for Answers {
    fn default() -> Self {
        Self(Mutex::new(Recent::keeping(CHATS)))
    }
}

impl Answers {
    /// Somebody who is let in gave a command.
    pub(super) fn learn(&self, way: WayBack, now: Timestamp) {
        let WayBack { chat, giver, url } = way;
        let mut chats = self.lock();
        // Taken out and put back, so that the chat that was left alone for the longest goes first, and all
        // who asked there go together: of one who stayed it would seem that nobody else had asked.
        let mut asked = chats.remove(&chat).unwrap_or_default();
        asked.retain(|one| one.giver != giver);
        asked.push(Asked { giver, url, at: now, uses: 0 });
        let surplus = asked.len().saturating_sub(GIVERS);
        asked.drain(..surplus);
        chats.insert(chat, asked);
    }

    /// The way to the person whom something is for; where that is not known, to the only one who asked.
    /// None where it may be somebody else, and where Slack takes nothing more. Counts as a use.
    pub(super) fn way(
        &self,
        chat: &str,
        person: Option<&SenderId>,
        now: Timestamp,
    ) -> Option<WayBack> {
        let chat = chat.to_owned();
        let mut chats = self.lock();
        let mut asked = chats.remove(&chat)?;
        asked.retain(|one| now.since(one.at) < AWAITS);
        let found = match (person, asked.as_mut_slice()) {
            (Some(person), all) => all.iter_mut().find(|one| one.giver == *person),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let usable = found.filter(|one| one.uses < USES && now.since(one.at) < ANSWERABLE);
        let way = usable.map(|one| {
            one.uses += 1;
            WayBack { chat: chat.clone(), giver: one.giver.clone(), url: one.url.clone() }
        });
        if !asked.is_empty() {
            chats.insert(chat, asked);
        }
        way
    }

    /// Slack does not take anything there any more. Whoever is behind it still awaits an answer.
    pub(super) fn close(&self, way: &WayBack) {
        let mut chats = self.lock();
        let Some(mut asked) = chats.remove(&way.chat) else { return };
        let same = asked.iter_mut().filter(|one| one.url.expose() == way.url.expose());
        same.for_each(|one| one.uses = USES);
        chats.insert(way.chat.clone(), asked);
    }

    fn lock(&self) -> MutexGuard<'_, Recent<String, Vec<Asked>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(minutes: u32) -> Timestamp {
        Timestamp::from_millis(0) + MINUTE * minutes
    }

    fn person(name: &str) -> SenderId {
        SenderId::new(name).unwrap()
    }

    fn asks(answers: &Answers, chat: &str, name: &str, minutes: u32) {
        let url = Secret::new(format!("{name}'s of minute {minutes}"));
        let way = WayBack { chat: chat.into(), giver: person(name), url };
        answers.learn(way, at(minutes));
    }

    fn way(answers: &Answers, name: Option<&str>, minutes: u32) -> Option<String> {
        let way = answers.way("C9", name.map(person).as_ref(), at(minutes))?;
        Some(way.url.expose().to_owned())
    }

    #[test]
    fn an_address_is_used_five_times_within_slack_s_half_hour() {
        let answers = Answers::default();
        asks(&answers, "C9", "U1", 0);
        for _ in 0..5 {
            assert_eq!(way(&answers, None, 28).as_deref(), Some("U1's of minute 0"));
        }
        assert_eq!(way(&answers, None, 28), None, "five times and no more");
        asks(&answers, "C9", "U1", 28);
        assert_eq!(way(&answers, None, 56).as_deref(), Some("U1's of minute 28"));
        assert_eq!(way(&answers, None, 57), None, "Slack does not take it any more");
    }

    #[test]
    fn what_is_for_nobody_known_goes_to_the_only_one_who_asked() {
        let answers = Answers::default();
        asks(&answers, "C9", "U1", 0);
        asks(&answers, "C8", "U2", 0);
        assert!(way(&answers, None, 1).is_some(), "in another chat somebody else asked");
        asks(&answers, "C9", "U2", 2);
        assert_eq!(way(&answers, None, 3), None);
        assert_eq!(way(&answers, Some("U1"), 3).as_deref(), Some("U1's of minute 0"));
        assert_eq!(way(&answers, Some("U2"), 3).as_deref(), Some("U2's of minute 2"));
        assert_eq!(way(&answers, Some("U3"), 3), None);
        assert_eq!(way(&answers, Some("T2:U1"), 3), None, "the same id in another workspace");
        assert_eq!(way(&answers, None, 61).as_deref(), None, "too late for the one who is left");
        asks(&answers, "C9", "U2", 61);
        assert_eq!(way(&answers, None, 62).as_deref(), Some("U2's of minute 61"));
    }

    #[test]
    fn whoever_cannot_be_reached_any_more_is_not_taken_for_somebody_else() {
        let answers = Answers::default();
        asks(&answers, "C9", "U1", 0);
        asks(&answers, "C9", "U2", 20);
        assert_eq!(way(&answers, None, 40), None, "U1's has expired, and U1 may be meant");
        answers.close(&answers.way("C9", Some(&person("U2")), at(40)).unwrap());
        asks(&answers, "C9", "U3", 41);
        assert_eq!(way(&answers, Some("U2"), 42), None, "Slack has refused it");
        assert_eq!(way(&answers, None, 62), None, "U2's was refused, and U2 may be meant");
    }

    #[test]
    fn after_an_hour_nobody_awaits_an_answer_any_more() {
        let answers = Answers::default();
        asks(&answers, "C9", "U1", 0);
        asks(&answers, "C9", "U2", 50);
        assert_eq!(way(&answers, None, 59), None, "it may be for either");
        assert_eq!(way(&answers, None, 60).as_deref(), Some("U2's of minute 50"));
    }

    #[test]
    fn what_is_remembered_has_a_bound_and_is_forgotten_by_chats() {
        let answers = Answers::default();
        for number in 0..=GIVERS {
            asks(&answers, "C9", &format!("U{number}"), 0);
        }
        assert_eq!(way(&answers, Some("U0"), 1), None);
        assert!(way(&answers, Some("U1"), 1).is_some());
        for number in 1..CHATS {
            asks(&answers, &format!("C9{number}"), "U1", 1);
        }
        assert!(way(&answers, Some("U1"), 1).is_some());
        asks(&answers, "C8", "U1", 1);
        asks(&answers, "C7", "U1", 1);
        assert!(way(&answers, Some("U1"), 1).is_some(), "it was used a moment ago");
    }
}
