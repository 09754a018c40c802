//! Where people talk: three vendors on loopback ports, and one conversation for each person.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use talaria_testkit::vendors::telegram::Room;
use talaria_testkit::vendors::{Calls, discord, slack, telegram};
use tokio::time::Instant;

use crate::soak::check::Visible;

pub(crate) const TELEGRAM: &str = "telegram";
pub(crate) const DISCORD: &str = "discord";
pub(crate) const SLACK: &str = "slack";

/// After how long Slack tells again what was not acknowledged.
const TELL_AGAIN: Duration = Duration::from_secs(3);

/// How long something is on its way that the next message overtakes.
const DETOUR: Duration = Duration::from_millis(300);

/// A bot finds direct chats on Discord only in its own notes, which are bounded; the rest talk in
/// channels.
const DIRECT_ON_DISCORD: usize = 150;

/// The first person and the first group on Telegram, whose groups have negative numbers, and the topic in
/// which people talk in its forums.
const PEOPLE: i64 = 1_000_000;
const GROUPS: i64 = -1_000_000_000_000;
const TOPIC: i64 = 7;

/// The three vendors. Dropping them closes everything.
pub(crate) struct Vendors {
    pub(crate) telegram: telegram::Vendor,
    pub(crate) discord: discord::Vendor,
    pub(crate) slack: slack::Vendor,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// An update of Telegram that the next one overtakes.
    held: Option<Value>,
    /// What Slack waits to have acknowledged.
    unacked: Vec<Envelope>,
    /// How many acknowledgements were read.
    acks: usize,
    acked: HashSet<String>,
}

struct Envelope {
    envelope: Value,
    due: Instant,
}

/// A person and where they talk.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) account: &'static str,
    pub(crate) chat: String,
    pub(crate) person: String,
    mention: &'static str,
    /// What kind of place it is on Telegram.
    room: Room,
    /// The thread in which it goes on.
    thread: Arc<OnceLock<String>>,
}

/// How news of a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Travel {
    Straight,
    /// What is said next elsewhere arrives first.
    Overtaken,
    /// It arrives twice.
    Twice,
}

/// Where the nth conversation on Telegram is: half of them in private, the rest in groups and in topics.
fn room(nth: i64) -> Room {
    match nth % 4 {
        0 | 1 => Room::Private,
        2 => Room::Group(GROUPS - nth),
        _ => Room::Topic(GROUPS - nth, TOPIC),
    }
}

impl Vendors {
    pub(crate) async fn open() -> Self {
        let telegram = telegram::Vendor::open().await;
        telegram.truth().keeps_time = true;
        let (discord, mut shown) = discord::Vendor::open().await;
        // Nobody looks over their shoulder here.
        tokio::spawn(async move { while shown.recv().await.is_some() {} });
        {
            let mut truth = discord.truth();
            truth.interval = 5_000;
            truth.echoes = true;
            truth.bucket = Some((5, Duration::from_secs(5)));
        }
        discord.with_guild();
        let slack = slack::Vendor::open().await;
        slack.world.lock().echoes = true;
        Self { telegram, discord, slack, told: Mutex::default() }
    }

    /// The accounts of a configuration.
    pub(crate) fn accounts(&self) -> Result<String> {
        let mut discord = self.discord.settings();
        discord["history_backfill"] = json!(false);
        discord["no_thread_channels"] = json!(["*"]);
        let accounts = [
            (TELEGRAM, self.telegram.settings()),
            (DISCORD, discord),
            (SLACK, self.slack.settings()),
        ];
        let mut text = "accounts:\n".to_owned();
        for (name, settings) in accounts {
            text += &format!("  {name}:\n    platform: {name}\n    allow_everyone: true\n");
            for (setting, value) in settings.as_object().into_iter().flatten() {
                text += &format!("    {setting}: {}\n", serde_json::to_string(value)?);
            }
        }
        Ok(text)
    }

    /// The conversation with this number. They are spread over the three.
    pub(crate) fn conversation(&self, number: usize) -> Conversation {
        let nth = number / 3;
        let mut there = Room::Private;
        let (account, chat, person, mention) = match number % 3 {
            0 => {
                let person = PEOPLE + nth as i64;
                there = room(nth as i64);
                let chat = match there {
                    Room::Private => person,
                    Room::Group(chat) | Room::Topic(chat, _) => chat,
                };
                (TELEGRAM, chat.to_string(), person.to_string(), "")
            }
            1 => {
                let (chat, person) = (700_000_000_000 + nth, 800_000_000_000 + nth);
                let (guild, mention) = match nth {
                    0..DIRECT_ON_DISCORD => (None, ""),
                    _ => (Some(discord::GUILD), "<@198622483471925248> "),
                };
                self.discord.with_channel(&chat.to_string(), guild);
                (DISCORD, chat.to_string(), person.to_string(), mention)
            }
            _ => {
                let (chat, person) = (format!("D{nth:06}"), format!("U{nth:06}"));
                self.slack.world.lock().direct.insert(chat.clone(), person.clone());
                (SLACK, chat, person, "")
            }
        };
        Conversation { account, chat, person, mention, room: there, thread: Arc::default() }
    }

    /// Somebody says something. Returns the event as the journal will name it.
    pub(crate) fn say(&self, place: &Conversation, text: &str, travel: Travel) -> String {
        let text = format!("{}{text}", place.mention);
        match place.account {
            TELEGRAM => self.say_on_telegram(place, &text, travel),
            DISCORD => {
                let id = self.discord.say(&place.chat, &place.person, &text);
                if travel != Travel::Straight {
                    self.discord.tell_again(usize::from(travel == Travel::Overtaken));
                }
                format!("m:{id}")
            }
            _ => self.say_on_slack(place, &text, travel),
        }
    }

    fn say_on_telegram(&self, place: &Conversation, text: &str, travel: Travel) -> String {
        // Numbered and queued in one go: what is said in one chat keeps its order.
        let mut told = self.told();
        let person = place.person.parse().unwrap_or_default();
        let update = self.telegram.said_in(place.room, person, text);
        let event = format!("42:{}", update["update_id"]);
        let held = told.held.take();
        let in_the_same = |held: &Value| held["message"]["chat"] == update["message"]["chat"];
        match (held, travel) {
            (None, Travel::Overtaken) => {
                told.held = Some(update);
                return event;
            }
            (Some(held), _) if in_the_same(&held) => {
                self.telegram.push(held);
                self.telegram.push(update);
            }
            (held, _) => {
                self.telegram.push(update.clone());
                held.into_iter().for_each(|held| self.telegram.push(held));
                if travel == Travel::Twice {
                    self.telegram.push(update);
                }
            }
        }
        event
    }

    fn say_on_slack(&self, place: &Conversation, text: &str, travel: Travel) -> String {
        let world = &self.slack.world;
        let (ts, envelope) = world.say(&place.chat, place.thread.get().map(String::as_str), text);
        place.thread.get_or_init(|| ts.clone());
        let wait = match travel {
            Travel::Overtaken => DETOUR,
            Travel::Straight | Travel::Twice => TELL_AGAIN,
        };
        let times = [Travel::Overtaken, Travel::Straight, Travel::Twice];
        for _ in times.into_iter().take_while(|one| *one != travel) {
            world.offer(&envelope);
        }
        self.told().unacked.push(Envelope { envelope, due: Instant::now() + wait });
        format!("{}:{ts}", place.chat)
    }

    /// Tells what waits to be told. To be called again and again.
    pub(crate) fn go_on(&self) {
        let mut told = self.told();
        if let Some(held) = told.held.take() {
            self.telegram.push(held);
        }
        {
            let state = self.slack.world.lock();
            let ids = state.acks[told.acks..].iter();
            let ids = ids.filter_map(|(_, ack)| ack["envelope_id"].as_str().map(str::to_owned));
            told.acked.extend(ids);
            told.acks = state.acks.len();
        }
        let Told { unacked, acked, .. } = &mut *told;
        unacked.retain(|one| !acked.contains(one.envelope["envelope_id"].as_str().unwrap_or("")));
        for one in unacked {
            if one.due <= Instant::now() && self.slack.world.offer(&one.envelope) {
                one.due = Instant::now() + TELL_AGAIN;
            }
        }
    }

    /// Whether the gateway has heard what was said last in a conversation. Slack delivers again what was
    /// not acknowledged, behind what was said since; so people wait there.
    pub(crate) fn is_heard(&self, place: &Conversation) -> bool {
        let told = self.told();
        let is_it = |one: &Envelope| one.envelope["payload"]["event"]["channel"] == place.chat;
        place.account != SLACK || !told.unacked.iter().any(is_it)
    }

    /// Whether everything that was said has been heard.
    pub(crate) fn is_everything_heard(&self) -> bool {
        let told = self.told();
        told.held.is_none() && told.unacked.is_empty() && self.telegram.truth().is_all_confirmed()
    }

    /// What people can read, in the order in which it appeared.
    pub(crate) fn shown(&self) -> Vec<Visible> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut shown = Vec::new();
        for message in self.telegram.truth().messages.values() {
            let id = message["chat"]["id"].as_i64().unwrap_or_default();
            let topic = match room(GROUPS - id) {
                Room::Topic(_, topic) if id < 0 => json!(topic),
                _ => Value::Null,
            };
            let is_there = message["message_thread_id"] == topic;
            let chat = if is_there { id.to_string() } else { format!("{id}, in another topic") };
            shown.push(Visible { account: TELEGRAM, chat, text: text(&message["text"]) });
        }
        for (chat, messages) in &self.discord.truth().messages {
            let ours = messages.values().filter(|one| one["author"]["id"] == discord::US);
            shown.extend(ours.map(|one| Visible {
                account: DISCORD,
                chat: chat.clone(),
                text: text(&one["content"]),
            }));
        }
        let state = self.slack.world.lock();
        let ours = state.messages.iter().filter(|one| one.user == "UBOT" && !one.deleted);
        shown.extend(ours.map(|one| Visible {
            account: SLACK,
            chat: one.chat.clone(),
            text: one.text.clone(),
        }));
        shown
    }

    /// Whether a gateway is connected to all three.
    pub(crate) fn is_connected(&self) -> bool {
        let polled = self.telegram.truth().polls_in_flight > 0;
        let linked = self.slack.world.lock().connections.iter().any(|one| one.open);
        polled && linked && self.discord.is_connected()
    }

    /// What each was asked for.
    pub(crate) fn calls(&self) -> [(&'static str, Calls); 3] {
        [
            (TELEGRAM, self.telegram.calls()),
            (DISCORD, self.discord.rest.calls()),
            (SLACK, self.slack.http.calls()),
        ]
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
