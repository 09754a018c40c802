//! `slack`: an app in one or several Slack workspaces.
//!
//! It hears by a connection of its own (Socket Mode) or by signed requests (the Events API), and speaks
//! by the Web API. Slack keeps no position for us: after an absence, what was said is read from the
//! history of the chats.

mod answers;
mod api;
mod catch_up;
mod decode;
mod directory;
mod echoes;
mod emoji;
mod encode;
mod hearing;
mod library;
mod manifest;
mod outgoing;
mod position;
mod refusal;
mod requests;
mod shelf;
mod signature;
mod socket;
mod surroundings;
mod text;
mod threads;
mod ts;
mod upload;
mod wire;
mod workspaces;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use talaria_clock::Clock;
use talaria_model::{
    Bucket, Capabilities, ChatKind, Choices, Deletes, Drafts, Edits, Files, Idempotency, Ids,
    Marks, Markup, Pace, Proxy, Reactions, Secret, TextLimit, Typing, Unit, Whispers,
};
use talaria_platform::{
    Ask, Bursts, Checked, ConnectError, Credential, Identity, Incoming, Link, MenuItem, Need,
    Platform, Ports, Pulse, Secrecy, Senders, SettingsError, Spec, Startup,
};

use api::Api;
use decode::{Commands, Habits};
use directory::Directory;
use encode::Broadcast;
use hearing::Hearing;
use library::Shelves;
use outgoing::Acts;
use position::Position;
use refusal::connect_error;
use threads::Threads;
use workspaces::{Workspace, Workspaces};

pub use manifest::{App, Hears, View, manifest};

/// `U0123456789`, and before it the workspace where that is not the first one.
const SENDERS: Senders = Senders { like: "U0123456789", fit: is_sender };

fn is_sender(id: &str) -> bool {
    let is_id = |id: &str, letters: &[char]| {
        id.starts_with(letters)
            && id.len() > 1
            && id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    match id.split_once(':') {
        Some((team, id)) => is_id(team, &['T', 'E']) && is_id(id, &['U', 'W', 'B']),
        None => is_id(id, &['U', 'W', 'B']),
    }
}

/// Nothing shorter is taken to prove that a request is Slack's own.
const SHORTEST_SECRET: usize = 16;

/// The platform.
pub struct Slack;

/// How an app is set up.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The Bot User OAuth Token, `xoxb-…`. For several workspaces, their tokens separated by commas; the
    /// people of the first one are known by their bare ids.
    bot_token: Secret,
    /// The app-level token, `xapp-…`, with the scope `connections:write`. With it, the gateway connects
    /// to Slack by Socket Mode and needs no public address.
    #[serde(default)]
    app_token: Option<Secret>,
    /// The Signing Secret. Without `app_token`, Slack sends signed requests to `/in/<account>` of the
    /// gateway's HTTP listener.
    #[serde(default)]
    signing_secret: Option<Secret>,
    /// Whether an answer in a channel opens a thread below the message it answers.
    #[serde(default = "yes")]
    reply_in_thread: bool,
    /// Whether an answer in a thread is shown in the channel, too.
    #[serde(default)]
    reply_broadcast: bool,
    /// Whether each message in a direct chat that is in no thread begins a conversation of its own, in
    /// a thread below it.
    #[serde(default = "yes")]
    dm_top_level_threads_as_sessions: bool,
    /// Whether :eyes: is put on a message while it is worked on, and :white_check_mark: or :x:
    /// afterwards.
    #[serde(default = "yes")]
    reactions: bool,
    /// What stands behind the app's name while an answer is worked on.
    #[serde(default = "thinking")]
    typing_status_text: String,
    /// The slash command through which every other one can be given, without the slash.
    #[serde(default = "talaria")]
    slash_command: String,
    /// Whether the app is made as an agent with a panel of its own, where guests cannot use it. Only the
    /// manifest says so. Slack makes no other apps from July 2026 on.
    #[serde(default)]
    agent_view: bool,
    /// How many hours back the history is read after an absence. 0: not at all.
    #[serde(default = "a_day")]
    #[schemars(range(max = 2160))]
    catch_up_hours: u32,
    /// Where the Web API is.
    #[serde(default = "slack")]
    #[schemars(extend("x-synonyms" = ["api_url"]))]
    base_url: String,
    /// The proxy through which Slack is reached, where it is another way than `network.proxy`: an address,
    /// `environment` or `none`, as there.
    #[serde(default)]
    proxy: Proxy,
}

/// Where Slack sends requests, as it stands in a manifest; people put the names of their host and account in.
const ADDRESS: &str = "https://YOUR-HOST/in/YOUR-ACCOUNT";

fn yes() -> bool {
    true
}

fn thinking() -> String {
    "is thinking...".to_owned()
}

fn talaria() -> String {
    "talaria".to_owned()
}

fn a_day() -> u32 {
    24
}

fn slack() -> String {
    "https://slack.com/api/".to_owned()
}

impl Platform for Slack {
    const SPEC: Spec = Spec {
        name: "slack",
        label: "Slack",
        about: "An app in Slack, in direct messages, channels and threads of one or several workspaces.",
        capabilities: Capabilities {
            // An edit takes 4,000 bytes, and a longer post is cut apart by Slack without regard to code.
            text: TextLimit { max: 4_000, unit: Unit::Bytes },
            markup: Markup::Mrkdwn,
            // https://docs.slack.dev/reference/methods/chat.update advises against more.
            edits: Edits::Every(Duration::from_secs(3)),
            drafts: Drafts::Never,
            deletes: Deletes::Anytime,
            choices: Choices::Buttons { max: 25, id: 2_000 },
            reactions: Reactions::Emoji,
            marks: Marks::Shown,
            whispers: Whispers::Shown,
            pace: Pace {
                account: Some(Bucket { burst: 30, every: Duration::from_millis(250) }),
                chat: Some(Bucket { burst: 3, every: Duration::from_secs(1) }),
                // Fifty in a minute: ten at once, and forty more. A workspace has them apart, but how many
                // workspaces an account has is not known before it is connected.
                edits: Some(Bucket { burst: 10, every: Duration::from_millis(1_500) }),
            },
            // It goes away with a post, and by itself after two minutes.
            typing: Typing::Stays(Duration::from_secs(100)),
            files: Files::UpTo(upload::LARGEST),
            reply_within: None,
            // A repeat would be shown twice; but a post can be found by what it carries.
            idempotency: Idempotency::None,
        },
        note: Some(
            "People read in Slack, each conversation in a thread. Bold, italic, code, quotes, links and \
             lists are shown; headings become bold lines and tables become plain text. You see what was \
             said in your thread, not the rest of the channel.",
        ),
        bursts: Bursts::NONE,
        ids: Ids::Hideable,
        identity: Identity::Anyone,
        senders: SENDERS,
        startup: Startup::Configured,
        asks: &[
            Ask {
                setting: "bot_token",
                question: "The Bot User OAuth Token (xoxb-…; several workspaces: separated by commas)",
                variable: "SLACK_BOT_TOKEN",
                secrecy: Secrecy::Secret,
                need: Need::Required,
            },
            Ask {
                setting: "app_token",
                question: "The app-level token (xapp-…; empty if Slack is to send requests instead)",
                variable: "SLACK_APP_TOKEN",
                secrecy: Secrecy::Secret,
                need: Need::Optional,
            },
            Ask {
                setting: "signing_secret",
                question: "The Signing Secret, with which Slack signs its requests",
                variable: "SLACK_SIGNING_SECRET",
                secrecy: Secrecy::Secret,
                need: Need::Without("app_token"),
            },
        ],
        guide: include_str!("guide.md"),
    };

    type Settings = Settings;

    fn capabilities(settings: &Settings, kind: ChatKind) -> Capabilities {
        let marks = if settings.reactions { Marks::Shown } else { Marks::Never };
        // Where there is nobody else, what stays is better.
        let whispers = if kind == ChatKind::Dm { Whispers::Never } else { Whispers::Shown };
        Capabilities { marks, whispers, ..Self::SPEC.capabilities }
    }

    fn validate(settings: &Settings) -> Result<(), SettingsError> {
        Api::at(&settings.base_url, Proxy::None)?;
        workspaces::tokens(&settings.bot_token)?;
        hears(settings).map(drop)
    }

    async fn check(settings: Settings, clock: Arc<dyn Clock>) -> Result<Checked, ConnectError> {
        let api = Api::at(&settings.base_url, settings.proxy.clone())?;
        let hears = hears(&settings)?;
        let tokens = workspaces::tokens(&settings.bot_token)?;
        let workspaces = Workspaces::open(api.clone(), tokens, clock).await?;
        let mut remarks: Vec<String> = workspaces.all().filter_map(remark).collect();
        match hears {
            // An address that nobody connects to makes no connection.
            WayIn::Socket(token) => {
                let asked = socket::address(&api, &token).await;
                asked.map_err(|error| connect_error(error, "app-level token"))?;
            }
            WayIn::Requests(_) => remarks.push(
                "set the Request URL of events, interactivity and each slash command to /in/<account> \
                 of the gateway's public address"
                    .into(),
            ),
        }
        let names = workspaces.all().map(|one| format!("@{} in {}", one.name, one.team_name));
        Ok(Checked { name: Some(names.collect::<Vec<_>>().join(", ")), remarks })
    }

    fn manifest(settings: Option<&Settings>, menu: &[MenuItem]) -> Option<String> {
        let slash_command = settings.map_or_else(talaria, |it| it.slash_command.clone());
        let by_requests = settings.is_some_and(|it| matches!(hears(it), Ok(WayIn::Requests(_))));
        let app = App {
            name: "Talaria",
            description: "An agent in your chats.",
            slash_command: slash_command.trim_start_matches('/'),
            menu,
            hears: if by_requests { Hears::EventsApi(ADDRESS) } else { Hears::SocketMode },
            view: if settings.is_some_and(|it| it.agent_view) { View::Agent } else { View::Bot },
        };
        serde_json::to_string_pretty(&manifest(&app)).ok()
    }

    /// Events are told to whoever has the app-level token, and each of them to one connection only.
    fn credentials(settings: &Settings) -> Vec<Credential> {
        let tokens = workspaces::tokens(&settings.bot_token).unwrap_or_default();
        let mut credentials = Credential::each_of("bot_token", tokens);
        if let Ok(WayIn::Socket(token)) = hears(settings) {
            credentials.push(Credential::of("app_token", token));
        }
        credentials
    }

    async fn connect(settings: Settings, ports: Ports) -> Result<Link, ConnectError> {
        let api = Api::at(&settings.base_url, settings.proxy.clone())?;
        let hears = hears(&settings)?;
        let clock = ports.clock;
        let tokens = workspaces::tokens(&settings.bot_token)?;
        let workspaces = Workspaces::open(api.clone(), tokens, clock.clone()).await?;
        for remark in workspaces.all().filter_map(remark) {
            tracing::warn!(account = %ports.account, remark);
        }
        let hearing = Arc::new(Hearing {
            directory: Directory::new(api.clone(), clock.clone()),
            threads: Threads::new(ports.archive.clone(), clock.clone()),
            kept: ports.kept.take_up(),
            position: Position::at(ports.cursor.as_ref()),
            habits: Habits {
                reply_in_thread: settings.reply_in_thread,
                threads_in_dms: settings.dm_top_level_threads_as_sessions,
                slash_command: settings.slash_command.trim_start_matches('/').to_owned(),
                commands: Commands::of(&ports.menu),
            },
            skipped: AtomicU64::new(0),
            account: ports.account,
            archive: ports.archive,
            workspaces,
            clock,
            api,
        });
        let hours = settings.catch_up_hours;
        let (incoming, pulse) = match hears {
            WayIn::Socket(token) => {
                let opened = socket::open(&hearing.api, &token, hearing.clock.clone()).await?;
                is_one_app(&hearing, opened.1.connection_info.app_id.as_deref())?;
                let arrivals = socket::arrivals(hearing.clone(), token, opened, hours);
                (Incoming::Stream(arrivals), Pulse::USUAL)
            }
            // Slack says nothing to an address at which nobody has to be told anything.
            WayIn::Requests(secret) => {
                (requests::incoming(hearing.clone(), secret, hours), Pulse::Unknown)
            }
        };
        let broadcast = if settings.reply_broadcast { Broadcast::Yes } else { Broadcast::No };
        let acts = Acts::new(hearing.clone(), ports.files, broadcast, settings.typing_status_text);
        let library = Arc::new(Shelves::new(hearing)?);
        Ok(Link { incoming, outgoing: Arc::new(acts), library: Some(library), pulse })
    }
}

/// How an account hears.
enum WayIn {
    Socket(Secret),
    Requests(Secret),
}

fn hears(settings: &Settings) -> Result<WayIn, SettingsError> {
    let given = |secret: &Option<Secret>| {
        secret.clone().filter(|secret| !secret.expose().trim().is_empty())
    };
    let unusable = |problem, hint| Err(SettingsError::unusable("app_token", problem, hint));
    // Slack does not see blanks at the end of a header, so they make no other token.
    let app_token = given(&settings.app_token).map(|token| Secret::new(token.expose().trim()));
    match (app_token, given(&settings.signing_secret)) {
        (Some(token), _) if token.expose().starts_with("xapp-") => Ok(WayIn::Socket(token)),
        (Some(_), _) => unusable(
            "is not an app-level token, which begins with xapp-",
            "make one with the scope connections:write under Basic Information of the app",
        ),
        (None, Some(secret)) if secret.expose().trim().len() < SHORTEST_SECRET => {
            Err(SettingsError::unusable(
                "signing_secret",
                "is shorter than 16 characters, which could be guessed",
                "copy the Signing Secret under Basic Information of the app",
            ))
        }
        (None, Some(secret)) => Ok(WayIn::Requests(secret)),
        (None, None) => unusable(
            "is missing, and so is signing_secret",
            "set app_token for Socket Mode, which needs no public address, or signing_secret for signed \
             requests",
        ),
    }
}

fn remark(workspace: &Workspace) -> Option<String> {
    let missing = workspace.missing.join(", ");
    let team = &workspace.team_name;
    (!missing.is_empty())
        .then(|| format!("in {team} the app lacks {missing}; add the scopes and install it again"))
}

/// Events of one app and the voice of another would never meet.
fn is_one_app(hearing: &Hearing, connected: Option<&str>) -> Result<(), ConnectError> {
    let apps = hearing.workspaces.all().filter_map(|workspace| workspace.us.app.as_deref());
    match connected {
        Some(connected) if apps.into_iter().any(|app| app != connected) => {
            Err(ConnectError::Refused {
                problem: "the app-level token and the bot token belong to two different apps"
                    .into(),
                hint: "copy both from the same app at api.slack.com/apps".into(),
            })
        }
        _ => Ok(()),
    }
}
