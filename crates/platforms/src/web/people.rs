//! Who is let in on other accounts, for the page: the desk in JSON. What came of a decision is told in the
//! same words as anywhere else, without their markup.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use talaria_model::{AccountId, Reach, SenderId, Timestamp};
use talaria_platform::{Asking, CodeOut, Decided, Decision, Desk, DeskError, Guest, Lobby, Visit};
use talaria_render::{parse, plain};

use super::Site;
use super::refusal::Refusal;
use super::routes::Input;

/// Guests of one account that a page lists, the latest first. The rest is only counted.
const GUESTS: usize = 200;

/// Everybody who asks and everybody who was let in.
#[derive(Serialize)]
pub(super) struct People {
    accounts: Vec<Entrance>,
}

/// One account on which people can be let in.
#[derive(Serialize)]
struct Entrance {
    account: AccountId,
    platform: &'static str,
    asking: Vec<Newcomer>,
    codes: Vec<Code>,
    guests: Vec<Known>,
    /// Guests who are not listed here.
    others: usize,
    locked_until: Option<Timestamp>,
}

#[derive(Serialize)]
struct Newcomer {
    sender: SenderId,
    name: Option<String>,
    asked: Timestamp,
    expires: Timestamp,
}

#[derive(Serialize)]
struct Code {
    by: String,
    expires: Timestamp,
    reach: Reach,
}

#[derive(Serialize)]
struct Known {
    sender: SenderId,
    name: Option<String>,
    since: Timestamp,
    by: String,
    reach: Reach,
}

/// What the operator wants done.
#[derive(Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Wish {
    Approve {
        code: String,
        reach: Reach,
    },
    Issue {
        reach: Reach,
    },
    Revoke {
        sender: SenderId,
    },
    /// Braces, because whatever else is said beside a unit would not be noticed.
    Clear {},
}

/// What came of it.
#[derive(Serialize)]
pub(super) struct Outcome {
    told: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

pub(super) async fn lobbies(State(site): State<Arc<Site>>) -> Result<Json<People>, Refusal> {
    let lobbies = site.desk()?.lobbies().await?;
    Ok(Json(People { accounts: lobbies.into_iter().map(Entrance::from).collect() }))
}

pub(super) async fn decide(
    State(site): State<Arc<Site>>,
    Path(account): Path<String>,
    Input(wish): Input<Wish>,
) -> Result<Json<Outcome>, Refusal> {
    let desk = site.desk()?;
    let account = AccountId::new(account).map_err(|_| Refusal::NotFound)?;
    let decision = match wish {
        Wish::Approve { code, reach } => Decision::Approve(code, reach),
        Wish::Issue { reach } => Decision::Issue(reach),
        Wish::Revoke { sender } => Decision::Revoke(sender),
        Wish::Clear {} => Decision::Clear,
    };
    let Decided { told, code } = desk.decide(&account, decision).await?;
    Ok(Json(Outcome { told: in_words(&told), code }))
}

impl Site {
    fn desk(&self) -> Result<&dyn Desk, Refusal> {
        self.desk.as_deref().ok_or(Refusal::NotFound)
    }

    /// Adds to the record what happened at the login, where there is one.
    pub(super) async fn record(&self, visit: Visit) -> Result<(), Refusal> {
        match &self.desk {
            None => Ok(()),
            Some(desk) => desk.record(visit).await.map_err(|error| {
                tracing::error!(%error, ?visit, "a visit to the web page could not be recorded");
                Refusal::TryAgain("this login could not be recorded; run talaria open once more")
            }),
        }
    }
}

fn in_words(markdown: &str) -> String {
    plain(&parse(markdown))
}

impl From<DeskError> for Refusal {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::NoAccount(_) => Self::NotFound,
            DeskError::Refused(told) => Self::Refused(in_words(&told)),
            DeskError::Unavailable(_) => {
                tracing::warn!(%error, "nobody can be let in at the moment");
                Self::TryAgain("who is let in cannot be read or changed at the moment")
            }
        }
    }
}

impl From<Lobby> for Entrance {
    fn from(lobby: Lobby) -> Self {
        let Lobby { account, platform, asking, codes, guests, locked_until } = lobby;
        Self {
            account,
            platform,
            asking: asking.into_iter().map(Newcomer::from).collect(),
            codes: codes.into_iter().map(Code::from).collect(),
            others: guests.len().saturating_sub(GUESTS),
            guests: guests.into_iter().take(GUESTS).map(Known::from).collect(),
            locked_until,
        }
    }
}

impl From<Asking> for Newcomer {
    fn from(Asking { sender, name, asked, expires }: Asking) -> Self {
        Self { sender, name, asked, expires }
    }
}

impl From<CodeOut> for Code {
    fn from(CodeOut { by, expires, reach }: CodeOut) -> Self {
        Self { by, expires, reach }
    }
}

impl From<Guest> for Known {
    fn from(Guest { sender, name, since, by, reach }: Guest) -> Self {
        Self { sender, name, since, by, reach }
    }
}
