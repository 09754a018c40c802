//! `telegram`: a bot on Telegram, by the Bot API.
//!
//! It listens by long polling or by a webhook, and speaks to Telegram's own server or to one that
//! somebody runs themselves. Nobody can ask Telegram what a bot has said, so that a message whose
//! confirmation was lost stays unconfirmed.

mod albums;
mod api;
mod client;
mod contents;
mod decode;
mod ears;
mod encode;
mod library;
mod menu;
mod outgoing;
mod places;
mod poll;
mod presses;
mod refusal;
mod takeover;
mod webhook;
mod words;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;
use talaria_clock::Clock;
use talaria_model::{
    Bucket, Capabilities, ChatKind, Choices as Offers, Deletes, Drafts, Edits, Files as FileLimit,
    Idempotency, Ids, Marks, Markup, Pace, Proxy, Reactions, Secret, TextLimit, Typing, Unit,
    Whispers,
};
use talaria_platform::{
    Ask, Bursts, Checked, ConnectError, Credential, Identity, Incoming, Link, Need, Platform,
    Ports, Pulse, Secrecy, Senders, SettingsError, Spec, Startup, Surface,
};

use api::{User, WebhookState};
use client::Client;
use decode::{OtherBots, Us};
use ears::{Ears, Memory};
use encode::LinkPreviews;
use library::{Files, Shelf};
use outgoing::Speaker;
use places::{Bounded, Places};
use words::Names;

use crate::wire::files;

/// The address of the API.
const TELEGRAM: &str = "https://api.telegram.org";

/// How long one question may take while connecting.
const ASK: Duration = Duration::from_secs(9);

/// What Telegram's own server takes.
const LARGEST_UPLOAD: u64 = 50 * 1024 * 1024;

/// What a server of one's own takes.
const LARGEST_LOCAL_UPLOAD: u64 = 2000 * 1024 * 1024;

/// Everything that a bot says and changes in a group counts against twenty in a minute.
const IN_GROUPS: Duration = Duration::from_secs(3);

/// A fifteenth of a minute.
const A_FIFTEENTH: Duration = Duration::from_secs(4);

const BETWEEN_TWO: Duration = Duration::from_secs(1);

/// People have numbers; channels and groups that speak have negative ones.
const SENDERS: Senders =
    Senders { like: "123456789", fit: |id| id.parse::<i64>().is_ok_and(|number| number != 0) };

/// The platform.
pub struct Telegram;

/// How a bot is set up.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The bot's token, as @BotFather gave it.
    token: Secret,
    /// The address of the Bot API server, if you run your own.
    #[serde(default = "telegram")]
    base_url: String,
    /// The address under which that server's files are found, if it is another one.
    #[serde(default)]
    base_file_url: Option<String>,
    /// The proxy through which Telegram is reached, where it is another way than `network.proxy`: an address,
    /// `environment` or `none`, as there.
    #[serde(default)]
    proxy: Proxy,
    /// Whether the Bot API server is your own, was started with `--local`, and shares its disk with the
    /// gateway. Files of up to 2 GB can then be sent and received.
    #[serde(default)]
    local_mode: bool,
    /// The public address that Telegram sends updates to, such as
    /// `https://bot.example.org/in/telegram/webhook`. Without one, the gateway asks for updates.
    #[serde(default)]
    webhook_url: Option<String>,
    /// What Telegram proves itself with to that address: 16 to 256 of `A-Z a-z 0-9 _ -`. Needed
    /// with `webhook_url`.
    #[serde(default)]
    webhook_secret: Option<Secret>,
    /// Whether links are shown without a preview of the page behind them. A preview is fetched before
    /// anybody has chosen to open the link, and tells whoever runs that page what stands in its address.
    #[serde(default = "yes")]
    disable_link_previews: bool,
    /// Whether 👀 is put on a message while it is worked on, and 👍 or 👎 afterwards.
    #[serde(default)]
    reactions: bool,
    /// Whether a message in a group that names another bot, and not this one, is for that one only: even
    /// where it answers this one, and where everything else is for it.
    #[serde(default = "yes")]
    exclusive_bot_mentions: bool,
    /// Whether answers in private chats are shown while they are written without being messages yet.
    #[serde(default = "yes")]
    drafts: bool,
}

fn telegram() -> String {
    TELEGRAM.to_owned()
}

fn yes() -> bool {
    true
}

impl Platform for Telegram {
    const SPEC: Spec = Spec {
        name: "telegram",
        label: "Telegram",
        about: "A bot on Telegram, in private chats, groups, forums and channels.",
        capabilities: Capabilities {
            text: TextLimit { max: encode::LONGEST_TEXT as u32, unit: Unit::Utf16 },
            markup: Markup::Entities,
            edits: Edits::Every(BETWEEN_TWO),
            // A sign of life counts as one of them: forty in half a minute.
            drafts: Drafts::Every(BETWEEN_TWO),
            // What is older than two days stays.
            deletes: Deletes::Anytime,
            choices: Offers::Buttons { max: 100, id: 64 },
            reactions: Reactions::Emoji,
            marks: Marks::Shown,
            whispers: Whispers::Never,
            pace: Pace {
                // Thirty in any second: ten at once, and twenty more.
                account: Some(Bucket { burst: 10, every: Duration::from_millis(50) }),
                chat: Some(Bucket { burst: 3, every: BETWEEN_TWO }),
                edits: None,
            },
            typing: Typing::Fades(Duration::from_secs(5)),
            files: FileLimit::UpTo(LARGEST_UPLOAD),
            reply_within: None,
            idempotency: Idempotency::None,
        },
        note: Some(
            "People read on Telegram, mostly on a phone. Bold, italic, code, quotes, links and lists \
             are shown; headings become bold lines, and wide tables are hard to read.",
        ),
        bursts: Bursts {
            // Clients split at 4,096 and say so nowhere.
            split_at: Some(4000),
            text: Duration::from_secs(1),
            album: Duration::from_millis(800),
            pictures: Duration::from_millis(800),
        },
        ids: Ids::Hideable,
        identity: Identity::Anyone,
        senders: SENDERS,
        startup: Startup::Configured,
        asks: &[
            Ask {
                setting: "token",
                question: "The bot's token, from @BotFather",
                variable: "TELEGRAM_BOT_TOKEN",
                secrecy: Secrecy::Secret,
                need: Need::Required,
            },
            Ask {
                setting: "webhook_url",
                question: "The public address for updates, if Telegram is to send them",
                variable: "TELEGRAM_WEBHOOK_URL",
                secrecy: Secrecy::Open,
                need: Need::OnRequest,
            },
            Ask {
                setting: "webhook_secret",
                question: "What Telegram proves itself with to that address",
                variable: "TELEGRAM_WEBHOOK_SECRET",
                secrecy: Secrecy::Secret,
                need: Need::With("webhook_url"),
            },
        ],
        guide: include_str!("guide.md"),
    };

    type Settings = Settings;

    fn capabilities(settings: &Settings, chat: ChatKind) -> Capabilities {
        let account = Self::SPEC.capabilities.pace.account;
        let in_group = Capabilities {
            edits: Edits::Every(IN_GROUPS),
            drafts: Drafts::Never,
            // Twenty in a minute: five at once, and one more every four seconds.
            pace: Pace {
                account,
                chat: Some(Bucket { burst: 5, every: A_FIFTEENTH }),
                edits: None,
            },
            ..Self::SPEC.capabilities
        };
        let can = match chat {
            ChatKind::Dm if settings.drafts => Self::SPEC.capabilities,
            ChatKind::Dm => Capabilities { drafts: Drafts::Never, ..Self::SPEC.capabilities },
            ChatKind::Group | ChatKind::Forum | ChatKind::Thread => in_group,
            ChatKind::Channel => Capabilities { typing: Typing::Never, ..in_group },
        };
        Capabilities {
            marks: if settings.reactions { Marks::Shown } else { Marks::Never },
            files: FileLimit::UpTo(match settings.local_mode {
                true => LARGEST_LOCAL_UPLOAD,
                false => LARGEST_UPLOAD,
            }),
            ..can
        }
    }

    fn validate(settings: &Settings) -> Result<(), SettingsError> {
        settings.servers()?;
        settings.bot()?;
        settings.hears_by().map(drop)
    }

    async fn check(settings: Settings, _: Arc<dyn Clock>) -> Result<Checked, ConnectError> {
        let hears_by = settings.hears_by()?;
        let client = settings.client()?;
        let us = who_we_are(&client).await?;
        let mut remarks = Vec::new();
        if !us.can_read_all_group_messages {
            remarks.push(
                "In groups the bot hears only commands and answers to it. To let it hear everything, \
                 send /setprivacy to @BotFather, choose Disable, and add the bot to its groups again."
                    .into(),
            );
        }
        if !us.can_join_groups {
            remarks
                .push("The bot cannot be added to groups (/setjoingroups at @BotFather).".into());
        }
        let webhook = webhook_state(&client).await?;
        if let Hears::Poll = hears_by
            && !webhook.url.is_empty()
        {
            remarks.push(format!(
                "Something receives this bot's messages at {}; it will stop when this account connects.",
                takeover::host(&webhook.url)
            ));
        }
        let name = us.username.as_ref().map(|name| format!("@{name}")).unwrap_or_else(|| us.name());
        Ok(Checked { name: Some(name), remarks })
    }

    fn credentials(settings: &Settings) -> Vec<Credential> {
        vec![Credential::of("token", client::canonical(&settings.token))]
    }

    async fn connect(settings: Settings, ports: Ports) -> Result<Link, ConnectError> {
        let hears_by = settings.hears_by()?;
        let client = Arc::new(settings.client()?);
        let us = who_we_are(&client).await?;
        let names = Names { id: us.id, username: us.username };
        let places = Arc::new(Places::open(&ports.folder));
        let bot = names.id;
        let ears = Ears {
            us: Us {
                account: ports.account,
                names,
                hears_all: us.can_read_all_group_messages,
                other_bots: match settings.exclusive_bot_mentions {
                    true => OtherBots::GoFirst,
                    false => OtherBots::AreOthers,
                },
            },
            places: places.clone(),
            clock: ports.clock.clone(),
            memory: Mutex::new(Memory::default()),
        };
        let (menu, folder, asking) = (ports.menu, ports.folder.clone(), client.clone());
        let chores = vec![async move { menu::publish(asking, &folder, &menu).await }.boxed()];
        let folder = ports.folder;
        let incoming = match hears_by {
            Hears::Poll => {
                let state = webhook_state(&client).await?;
                takeover::end_webhook(&client, &state, &folder, ports.clock.as_ref()).await?;
                let from = ports.cursor.as_ref().and_then(|cursor| poll::position(bot, cursor));
                Incoming::Stream(poll::arrivals(client.clone(), ears, from, chores))
            }
            Hears::Webhook { url, secret } => {
                takeover::forget(&folder);
                webhook::set(&client, &url, &secret).await.map_err(|error| error.of_connect())?;
                let (routes, arrivals) = webhook::listen(client.clone(), ears, url, secret, chores);
                Incoming::Served { on: Surface::Webhook, routes, arrivals }
            }
        };
        let clock = ports.clock.clone();
        let speaker = Speaker {
            client: client.clone(),
            files: ports.files,
            clock: ports.clock,
            places,
            previews: match settings.disable_link_previews {
                true => LinkPreviews::Hidden,
                false => LinkPreviews::Shown,
            },
            begun: Mutex::new(Bounded::default()),
        };
        let (_, server) = settings.servers()?;
        // Files are where the Bot API says, and nowhere else.
        let fetcher = files::fetcher(&[TELEGRAM], &server, &settings.proxy, clock.clone())?;
        let shelf = if settings.local_mode { Shelf::Local } else { Shelf::Remote };
        Ok(Link {
            incoming,
            outgoing: Arc::new(speaker),
            library: Some(Arc::new(Files { client, fetcher, shelf, clock })),
            pulse: Pulse::USUAL,
        })
    }
}

/// How updates reach us.
enum Hears {
    Poll,
    Webhook { url: String, secret: Secret },
}

impl Settings {
    fn client(&self) -> Result<Client, ConnectError> {
        let (base, files) = self.servers()?;
        let bot = self.bot()?;
        Ok(Client::new(&base, &files, self.token.clone(), bot, &self.proxy)?)
    }

    /// Where the API is, and where its files are.
    fn servers(&self) -> Result<(Url, Url), SettingsError> {
        let address = |setting: &str, text: &str| {
            let url = Url::parse(text)
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
            let hint = "write it as https://host or http://host:port, or leave it out";
            url.ok_or_else(|| {
                SettingsError::unusable(setting, "is not an http or https address", hint)
            })
        };
        let base = address("base_url", &self.base_url)?;
        let files = match &self.base_file_url {
            Some(files) => address("base_file_url", files)?,
            None => base.clone(),
        };
        Ok((base, files))
    }

    /// Who the token belongs to.
    fn bot(&self) -> Result<i64, SettingsError> {
        let hint = "a token looks like 123456:ABC-DEF1234; get one from @BotFather";
        client::bot(&self.token)
            .ok_or_else(|| SettingsError::unusable("token", "is not a bot's token", hint))
    }

    fn hears_by(&self) -> Result<Hears, SettingsError> {
        let Some(url) = self.webhook_url.clone().filter(|url| !url.is_empty()) else {
            return Ok(Hears::Poll);
        };
        let is_own_server = self.base_url != TELEGRAM;
        let fits = Url::parse(&url).is_ok_and(|url| {
            let known = matches!(url.port_or_known_default(), Some(443 | 80 | 88 | 8443));
            let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
            is_web && (is_own_server || (url.scheme() == "https" && known))
        });
        if !fits {
            return Err(SettingsError::unusable(
                "webhook_url",
                "is not an address that Telegram calls",
                "use https on port 443, 80, 88 or 8443",
            ));
        }
        let unusable =
            |problem, hint| Err(SettingsError::unusable("webhook_secret", problem, hint));
        match self.webhook_secret.clone() {
            Some(secret) if webhook::is_secret(secret.expose()) => {
                Ok(Hears::Webhook { url, secret })
            }
            Some(_) => {
                unusable("is not one that is taken", "use 16 to 256 letters, digits, _ and -")
            }
            None => unusable(
                "is missing, and webhook_url is set",
                "set it to a long random word: without it anybody could speak for Telegram",
            ),
        }
    }
}

async fn who_we_are(client: &Client) -> Result<User, ConnectError> {
    client.ask("getMe", &Map::new(), ASK).await.map_err(|failure| failure.of_connect())
}

async fn webhook_state(client: &Client) -> Result<WebhookState, ConnectError> {
    client.ask("getWebhookInfo", &Map::new(), ASK).await.map_err(|failure| failure.of_connect())
}
