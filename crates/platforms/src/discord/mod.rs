//! `discord`: a bot in guilds and direct messages.
//!
//! The gateway connection is our own, on `wire::socket`: position, acknowledgement and heartbeat belong
//! to the contract here, and every library hides one of them. So are the requests, because a message is
//! sent under an enforced nonce and every "later" has to reach the gateway that waits.

mod api;
mod arrivals;
mod commands;
mod connection;
mod decode;
mod encode;
mod library;
mod limits;
mod lookup;
mod missed;
mod outgoing;
mod places;
mod position;
mod pulse;
mod refusal;
mod rest;
mod settings;
mod snowflake;
mod text;
mod uploads;

use crate::wire::http::Http;
use crate::wire::recent;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use talaria_clock::Clock;
use talaria_model::{
    Bucket, Capabilities, ChatKind, Choices, Deletes, Drafts, Edits, Files, Idempotency, Ids,
    Marks, Markup, Pace, Reactions, TextLimit, Typing, Unit, Whispers,
};
use talaria_platform::{
    Ask, Bursts, Checked, ConnectError, Credential, Identity, Incoming, Link, Need, Platform,
    Ports, Pulse, Roles, Secrecy, Senders, SettingsError, Spec, Startup,
};

pub use settings::{Mentions, Missed, Settings, Syncing};

use arrivals::Listening;
use commands::Menu;
use connection::Begun;
use lookup::Lookup;
use outgoing::Speaking;
use places::Places;
use position::{Position, Session};
use rest::Rest;
use snowflake::Snowflake;

/// What a bot needs to be allowed in a guild: reactions, seeing channels, sending, links, files, history,
/// threads, voice messages.
const PERMISSIONS: u64 = 70_677_981_940_800;

/// Numbers of 17 digits and more.
const SENDERS: Senders = Senders {
    like: "198622483471925248",
    fit: |id| (17..=20).contains(&id.len()) && id.bytes().all(|digit| digit.is_ascii_digit()),
};

/// The platform.
pub struct Discord;

impl Platform for Discord {
    const SPEC: Spec = Spec {
        name: "discord",
        label: "Discord",
        about: "A Discord bot in servers and direct messages.",
        capabilities: Capabilities {
            text: TextLimit { max: 2000, unit: Unit::Chars },
            markup: Markup::Discord,
            edits: Edits::Every(Duration::from_secs(1)),
            drafts: Drafts::Never,
            deletes: Deletes::Anytime,
            choices: Choices::Buttons { max: 25, id: 100 },
            reactions: Reactions::Emoji,
            marks: Marks::Shown,
            whispers: Whispers::Never,
            pace: Pace {
                // Thirty in any second: ten at once, and twenty more. What is looked up has the rest.
                account: Some(Bucket { burst: 10, every: Duration::from_millis(50) }),
                chat: Some(Bucket { burst: 5, every: Duration::from_secs(1) }),
                edits: None,
            },
            typing: Typing::Fades(Duration::from_secs(10)),
            files: Files::UpTo(outgoing::LARGEST_FILE),
            reply_within: None,
            idempotency: Idempotency::Keyed(Duration::from_secs(120)),
        },
        note: Some(
            "People are mentioned as <@id> with their numeric id. Tables are not shown as tables, \
             so prefer lists.",
        ),
        bursts: Bursts { split_at: Some(1900), text: Duration::from_secs(2), ..Bursts::NONE },
        ids: Ids::Needed,
        identity: Identity::Anyone,
        senders: SENDERS,
        startup: Startup::Configured,
        asks: &[Ask {
            setting: "token",
            question: "The bot's token",
            variable: "DISCORD_BOT_TOKEN",
            secrecy: Secrecy::Secret,
            need: Need::Required,
        }],
        guide: include_str!("guide.md"),
    };

    type Settings = Settings;

    fn capabilities(settings: &Settings, chat: ChatKind) -> Capabilities {
        let all = Self::SPEC.capabilities;
        let marks = if settings.reactions { all.marks } else { Marks::Never };
        match chat {
            // What is said to a forum begins a post, which has no key, and nobody can type there.
            ChatKind::Forum => Capabilities {
                marks: Marks::Never,
                typing: Typing::Never,
                idempotency: Idempotency::None,
                ..all
            },
            _ => Capabilities { marks, ..all },
        }
    }

    fn validate(settings: &Settings) -> Result<(), SettingsError> {
        settings.validate()
    }

    async fn check(settings: Settings, clock: Arc<dyn Clock>) -> Result<Checked, ConnectError> {
        let http = Http::by(settings.proxy.clone());
        let rest = Rest::new(&settings.address()?, settings.bot_token(), http, clock)?;
        let us: api::User = rest.get("/users/@me").await?;
        let application: api::Application = rest.get("/applications/@me").await?;
        let mut remarks = Vec::new();
        if let Err(ConnectError::Refused { problem, hint }) = usable(&settings, &application) {
            remarks.push(format!("{problem}. {hint}"));
        }
        let guilds: Vec<api::Named> = rest.get("/users/@me/guilds?limit=2").await?;
        if guilds.is_empty() {
            remarks
                .push(format!("The bot is in no server yet. Invite it: {}", invite(&application)));
        }
        let gateway: api::GatewayBot = rest.get("/gateway/bot").await?;
        if gateway.shards > u64::from(settings.shard[1]) {
            remarks.push(format!("Discord recommends {} shards; see `shard`.", gateway.shards));
        }
        Ok(Checked { name: Some(us.name()), remarks })
    }

    fn roles(settings: &Settings) -> Roles {
        settings.roles()
    }

    fn credentials(settings: &Settings) -> Vec<Credential> {
        vec![Credential::of("token", settings.bot_token())]
    }

    async fn connect(settings: Settings, ports: Ports) -> Result<Link, ConnectError> {
        let Ports { account, clock, files, archive, menu, folder, cursor, .. } = ports;
        let settings = Arc::new(settings);
        let http = Http::by(settings.proxy.clone());
        let rest = Rest::new(&settings.address()?, settings.bot_token(), http, clock.clone())?;
        let rest = Arc::new(rest);
        let us: api::User = rest.get("/users/@me").await?;
        let application: api::Application = rest.get("/applications/@me").await?;
        usable(&settings, &application)?;

        let before = cursor.as_ref().and_then(Position::read);
        let resumable = before.as_ref().filter(|position| position.shard == settings.shard);
        let resumable = resumable.and_then(|position| position.session.as_ref());
        let (connection, begun) = connection::begin(&rest, &settings, resumable, &clock).await?;

        let promised =
            before.as_ref().map(|position| position.promised.clone()).unwrap_or_default();
        let places = Arc::new(Places::new(&promised));
        let lookup = Arc::new(Lookup::new(
            rest.clone(),
            places.clone(),
            settings.clone(),
            account,
            us.id,
            clock.clone(),
        ));
        let mut position = before.clone().unwrap_or_else(|| Position {
            seen: Snowflake::of(clock.now()),
            ..Position::default()
        });
        position.shard = settings.shard;
        let mut listening = match (begun, before) {
            (Begun::Resumed(first), Some(Position { session: Some(session), .. })) => {
                let mut listening = Listening::new(connection, lookup.clone(), position, session);
                listening.event(first);
                listening
            }
            (Begun::New { ready, seq }, before) => {
                places.expect(ready.guilds.iter().map(|guild| guild.id));
                let url = ready.resume_gateway_url;
                let session = Session { id: ready.session_id, url, seq };
                let mut listening = Listening::new(connection, lookup.clone(), position, session);
                if let Some(from) = before.filter(|_| settings.missed_message_backfill.enabled) {
                    let lookup = lookup.clone();
                    listening.catch_up(missed::Missed { lookup, archive, from });
                }
                listening
            }
            (Begun::Resumed(_), _) => unreachable!("only a session that is known is resumed"),
        };
        let menu = Menu { rest, clock, settings, application: application.id, folder, items: menu };
        listening.also(Box::pin(menu.keep()));
        Ok(Link {
            incoming: Incoming::Stream(listening.arrivals()),
            outgoing: Arc::new(Speaking::new(lookup.clone(), files)),
            library: Some(Arc::new(library::Files::new(lookup)?)),
            pulse: Pulse::USUAL,
        })
    }
}

/// Whether the application is set up so that we hear what we are to hear.
fn usable(settings: &Settings, application: &api::Application) -> Result<(), ConnectError> {
    // Allowed, or allowed within the limits of a small bot.
    const CONTENT: u64 = 1 << 18 | 1 << 19;
    if settings.message_content && application.flags & CONTENT == 0 {
        return Err(ConnectError::Refused {
            problem: connection::MISSING_INTENT.into(),
            hint: connection::INTENT_HINT.into(),
        });
    }
    if application.interactions_endpoint_url.as_ref().is_some_and(|url| !url.is_empty()) {
        return Err(ConnectError::Refused {
            problem: "the application sends buttons and commands to a web address instead".into(),
            hint: "Open https://discord.com/developers/applications, choose the application, and \
                   empty Interactions Endpoint URL under General Information."
                .into(),
        });
    }
    Ok(())
}

/// The page on which a bot is let into a server.
fn invite(application: &api::Application) -> String {
    format!(
        "https://discord.com/oauth2/authorize?client_id={}&scope=bot+applications.commands\
         &permissions={PERMISSIONS}",
        application.id
    )
}
