//! What a page asks for when it opens: who it is, the conversations, and what was said in them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, FromRequestParts, Path, Query, State};
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use talaria_model::{ChatId, Timestamp};
use talaria_platform::{Conversation, Hit, MenuItem};

use super::encode::Item;
use super::pass::Pass;
use super::refusal::Refusal;
use super::say::conversation_id;
use super::{LARGEST_FILE, Site};

/// Conversations a page lists.
const CONVERSATIONS: usize = 200;

/// Entries in one piece of history, unless the page asks for another number, and at most.
const HISTORY: usize = 50;
const LONGEST_HISTORY: usize = 200;

/// Hits a search shows.
const HITS: usize = 30;

/// The longest text that can be searched for, in bytes.
const LONGEST_QUERY: usize = 200;

/// What a page needs to begin.
#[derive(Serialize)]
pub(super) struct Opening {
    who: &'static str,
    csrf: String,
    largest_file: u64,
    commands: Arc<[MenuItem]>,
    conversations: Vec<Listed>,
}

/// A conversation in the list.
#[derive(Serialize)]
pub(super) struct Listed {
    id: ChatId,
    title: String,
    updated: Timestamp,
    busy: bool,
}

/// Which piece of a history.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Piece {
    before: Option<u64>,
    limit: Option<usize>,
}

/// What to look for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    q: String,
}

/// Something found.
#[derive(Serialize)]
pub(super) struct Found {
    conversation: ChatId,
    title: String,
    position: u64,
    at: Timestamp,
    excerpt: Vec<Excerpt>,
}

/// A stretch of an excerpt: what was looked for, or what is around it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Excerpt {
    Match(String),
    Around(String),
}

pub(super) async fn state(
    State(site): State<Arc<Site>>,
    Extension(pass): Extension<Pass>,
) -> Result<Json<Opening>, Refusal> {
    let conversations = site.listed().await?;
    let csrf = site.passes.token(&pass);
    let commands = site.menu.clone();
    let largest_file = LARGEST_FILE;
    Ok(Json(Opening { who: "operator", csrf, largest_file, commands, conversations }))
}

pub(super) async fn conversations(
    State(site): State<Arc<Site>>,
) -> Result<Json<Vec<Listed>>, Refusal> {
    site.listed().await.map(Json)
}

pub(super) async fn history(
    State(site): State<Arc<Site>>,
    Path(conversation): Path<String>,
    Asked(Piece { before, limit }): Asked<Piece>,
) -> Result<Json<Vec<Item>>, Refusal> {
    let at = site.address(conversation_id(&conversation)?);
    let limit = limit.unwrap_or(HISTORY).clamp(1, LONGEST_HISTORY);
    let recorded = site.archive.history(&at, before, limit).await?;
    Ok(Json(recorded.into_iter().map(Item::from).collect()))
}

pub(super) async fn search(
    State(site): State<Arc<Site>>,
    Asked(Search { q }): Asked<Search>,
) -> Result<Json<Vec<Found>>, Refusal> {
    let query = q.trim();
    if query.is_empty() || query.len() > LONGEST_QUERY {
        return Err(Refusal::Malformed("the search is empty or too long"));
    }
    let hits = site.archive.search(query, HITS).await?;
    Ok(Json(hits.into_iter().map(Found::from).collect()))
}

impl Site {
    async fn listed(&self) -> Result<Vec<Listed>, Refusal> {
        let conversations = self.archive.conversations(CONVERSATIONS).await?;
        Ok(conversations.into_iter().map(Listed::from).collect())
    }
}

impl From<Conversation> for Listed {
    fn from(Conversation { at, title, updated, busy }: Conversation) -> Self {
        Self { id: at.chat.id, title, updated, busy }
    }
}

impl From<Hit> for Found {
    fn from(Hit { at, title, recorded, excerpt }: Hit) -> Self {
        Self {
            conversation: at.chat.id,
            title,
            position: recorded.position,
            at: recorded.entry.at,
            excerpt: stretches(&excerpt),
        }
    }
}

/// Takes an excerpt apart at its marks, so that the page can show the match without reading HTML.
fn stretches(excerpt: &str) -> Vec<Excerpt> {
    let mut stretches = Vec::new();
    let mut push = |text: &str, make: fn(String) -> Excerpt| {
        if !text.is_empty() {
            stretches.push(make(text.to_owned()));
        }
    };
    let mut rest = excerpt;
    while let Some((around, marked)) = rest.split_once('\u{2}') {
        let (matched, after) = marked.split_once('\u{3}').unwrap_or((marked, ""));
        push(around, Excerpt::Around);
        push(matched, Excerpt::Match);
        rest = after;
    }
    push(rest, Excerpt::Around);
    stretches
}

/// A query of exactly this shape.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Site>> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, site: &Arc<Site>) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, site).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(_) => Err(Refusal::Malformed("the question is not of the expected shape")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_taken_apart_at_its_marks() {
        let around = |text: &str| Excerpt::Around(text.into());
        let matched = |text: &str| Excerpt::Match(text.into());
        for (excerpt, expected) in [
            ("plain", vec![around("plain")]),
            ("a \u{2}b\u{3} c", vec![around("a "), matched("b"), around(" c")]),
            ("\u{2}a\u{3}\u{2}b\u{3}", vec![matched("a"), matched("b")]),
            ("a \u{2}b", vec![around("a "), matched("b")]),
            ("", vec![]),
        ] {
            assert_eq!(stretches(excerpt), expected, "{excerpt:?}");
        }
    }
}
