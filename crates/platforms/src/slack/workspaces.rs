//! The workspaces that an account is installed in, and which of them a chat belongs to.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use talaria_clock::Clock;
use talaria_model::Secret;
use talaria_platform::{ConnectError, SettingsError};

use super::api::{Api, ApiError, Body};
use super::decode::Us;
use super::refusal::connect_error;
use super::shelf::Shelf;

/// Chats whose workspace is remembered.
const CHATS: usize = 20_000;

/// The workspace of a chat does not change.
const FOR_GOOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The most workspaces of one account.
const MOST: usize = 50;

/// The permissions that an app needs for everything we do.
pub(super) const SCOPES: &[&str] = &[
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "users:read",
];

/// A workspace and who we are in it.
pub(super) struct Workspace {
    pub(super) us: Us,
    pub(super) token: Secret,
    /// As people see us there.
    pub(super) name: String,
    /// As people call the workspace.
    pub(super) team_name: String,
    /// Permissions that are missing.
    pub(super) missing: Vec<&'static str>,
}

/// All workspaces of an account. There is at least one.
pub(super) struct Workspaces {
    first: Workspace,
    others: Vec<Workspace>,
    chats: Shelf<String, String>,
    api: Api,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
struct WhoWeAre {
    team_id: Option<String>,
    #[serde(default)]
    team: String,
    #[serde(default)]
    user: String,
    user_id: String,
    bot_id: Option<String>,
    app_id: Option<String>,
    #[serde(default)]
    is_enterprise_install: bool,
    expires_in: Option<u64>,
}

impl Workspaces {
    /// Asks Slack who we are with each token.
    pub(super) async fn open(
        api: Api,
        tokens: Vec<Secret>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConnectError> {
        let asked = tokens.into_iter().map(|token| introduce(&api, token));
        let mut workspaces = Vec::new();
        for workspace in futures::future::join_all(asked).await {
            let workspace = workspace?;
            let is_same = |known: &Workspace| known.us.team == workspace.us.team;
            if workspaces.iter().any(is_same) {
                return Err(ConnectError::Refused {
                    problem: format!("two bot tokens are for {}", workspace.team_name),
                    hint: "keep one token for each workspace".into(),
                });
            }
            workspaces.push(workspace);
        }
        let others = workspaces.split_off(1);
        let first = workspaces.pop().expect("there is a token, and each gave a workspace");
        Ok(Self { first, others, chats: Shelf::of(CHATS), api, clock })
    }

    /// The one whose people are known by their bare ids.
    pub(super) fn home(&self) -> &Workspace {
        &self.first
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Workspace> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub(super) fn is_several(&self) -> bool {
        !self.others.is_empty()
    }

    /// The workspace of that name. None for one in which we are not installed.
    pub(super) fn of_team(&self, team: &str) -> Option<&Workspace> {
        self.all().find(|workspace| workspace.us.team == team)
    }

    /// The workspace through which something was heard. Where Slack does not say and there is only
    /// one, it is that one. None for one of which we have no token: its people are not ours.
    pub(super) fn heard_through(&self, team: Option<&str>) -> Option<&Workspace> {
        match team {
            Some(team) => self.of_team(team),
            None => (!self.is_several()).then_some(&self.first),
        }
    }

    /// The workspace of a chat that we have spoken in, as far as that is known without asking.
    pub(super) fn remembered(&self, chat: &str) -> Option<&Workspace> {
        let known = self.chats.get(&chat.to_owned(), self.clock.now());
        match known {
            Some(team) => self.of_team(&team),
            None => (!self.is_several()).then_some(&self.first),
        }
    }

    /// Remembers where a chat is.
    pub(super) fn learn(&self, chat: &str, workspace: &Workspace) {
        if self.is_several() {
            let now = self.clock.now();
            self.chats.put(chat.to_owned(), workspace.us.team.clone(), now, FOR_GOOD);
        }
    }

    /// The workspace that a chat is in. One of which nothing was heard is asked for everywhere.
    pub(super) async fn of_chat(&self, chat: &str) -> Result<&Workspace, ApiError> {
        if let Some(workspace) = self.remembered(chat) {
            return Ok(workspace);
        }
        #[derive(Deserialize)]
        struct Known {}
        let mut unsure = None;
        for workspace in self.all() {
            let fields = vec![("channel", chat.to_owned())];
            let asked =
                self.api.call::<Known>("conversations.info", &workspace.token, Body::Form(fields));
            match asked.await {
                Ok(Known {}) => {
                    self.learn(chat, workspace);
                    return Ok(workspace);
                }
                Err(ApiError::Refused(_)) => {}
                Err(error) => unsure = Some(error),
            }
        }
        match unsure {
            Some(error) => Err(error),
            None => Ok(&self.first),
        }
    }
}

/// The tokens of all workspaces: at least one, and each at first sight that of a bot.
pub(super) fn tokens(setting: &Secret) -> Result<Vec<Secret>, SettingsError> {
    let words = setting.expose().split(',').map(str::trim).filter(|token| !token.is_empty());
    let tokens: Vec<Secret> = words.map(Secret::new).collect();
    if tokens.is_empty() || tokens.len() > MOST {
        return Err(SettingsError::unusable(
            "bot_token",
            &format!("holds {} tokens", tokens.len()),
            &format!("put one bot token there, or up to {MOST} separated by commas"),
        ));
    }
    if tokens.iter().any(|token| !token.expose().starts_with("xoxb-")) {
        return Err(SettingsError::unusable(
            "bot_token",
            "is not a bot token, which begins with xoxb-",
            "copy the Bot User OAuth Token from the page OAuth & Permissions of the app",
        ));
    }
    Ok(tokens)
}

async fn introduce(api: &Api, token: Secret) -> Result<Workspace, ConnectError> {
    let refused =
        |problem: String, hint: &str| ConnectError::Refused { problem, hint: hint.into() };
    let (headers, body) = api
        .call_with_headers("auth.test", &token, Body::Json(json!({})))
        .await
        .map_err(|error| connect_error(error, "bot token"))?;
    let who: WhoWeAre = serde_json::from_slice(&body).map_err(|_| ConnectError::Unreachable {
        reason: "auth.test answered something else than expected".into(),
    })?;
    let (Some(team), Some(bot)) = (who.team_id, who.bot_id) else {
        return Err(refused(
            "the token is not that of a bot in a workspace".into(),
            "install the app into a workspace and use its Bot User OAuth Token",
        ));
    };
    if who.is_enterprise_install {
        return Err(refused(
            "the app is installed for a whole organization".into(),
            "install it into the workspaces one by one and use their tokens",
        ));
    }
    if who.expires_in.is_some() {
        return Err(refused(
            "the bot token expires".into(),
            "turn token rotation off in the app's settings; it needs an app made anew",
        ));
    }
    Ok(Workspace {
        us: Us { team, user: who.user_id, bot, app: who.app_id },
        token,
        name: who.user,
        team_name: who.team,
        missing: missing(&headers),
    })
}

/// Slack lists what a token may do with every answer.
fn missing(headers: &HeaderMap) -> Vec<&'static str> {
    let Some(granted) = headers.get("x-oauth-scopes").and_then(|granted| granted.to_str().ok())
    else {
        return Vec::new();
    };
    let granted: Vec<&str> = granted.split(',').map(str::trim).collect();
    SCOPES.iter().copied().filter(|scope| !granted.contains(scope)).collect()
}
