//! `talaria sessions`: what was said, from the running gateway or, when none runs, from the store.

use std::sync::Arc;

use talaria_admin::{answers, api};
use talaria_store::{MemoryStore, Store};

use super::{print_json, table::table};
use crate::cli::SessionsCommand;
use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::{Home, HomeLock};
use crate::start;

/// Who answers.
enum Source {
    Gateway(Client),
    /// Nobody else has the store, and nobody else will while we hold the lock. None when there is no
    /// home yet, so that nothing was ever said.
    Store(Arc<dyn Store>, #[expect(dead_code, reason = "held")] Option<HomeLock>),
}

impl Source {
    async fn find(home: &Home) -> Result<Self, Halt> {
        if let Some(client) = Client::find(home).await? {
            return Ok(Self::Gateway(client));
        }
        if !home.path().exists() {
            // Whoever only looks does not make a home.
            return Ok(Self::Store(Arc::new(MemoryStore::new()), None));
        }
        home.prepare()?;
        let lock = home.lock()?;
        Ok(Self::Store(start::store(home)?, Some(lock)))
    }
}

pub(crate) async fn sessions(home: &Home, command: SessionsCommand) -> Result<Exit, Halt> {
    let source = Source::find(home).await?;
    match command {
        SessionsCommand::List { account, limit, output } => {
            let query = answers::Listing { account, limit, query: String::new() };
            let sessions: Vec<api::Session> = match &source {
                Source::Gateway(client) => client.get("/v1/sessions", &pairs(&query)).await?,
                Source::Store(store, _) => {
                    answers::sessions(store.as_ref(), &query).await.map_err(Halt::failed)?
                }
            };
            if output.json {
                print_json(&sessions)?;
            } else {
                print_sessions(&sessions)?;
            }
        }
        SessionsCommand::Show { id, limit, output } => {
            let entries: Vec<api::Entry> = match &source {
                Source::Gateway(client) => {
                    let pairs = [("id", id), ("limit", limit.to_string())];
                    client.get("/v1/transcript", &pairs).await?
                }
                Source::Store(store, _) => {
                    answers::transcript(store.as_ref(), &id, limit).await.map_err(Halt::failed)?
                }
            };
            if output.json {
                print_json(&entries)?;
            } else {
                for entry in &entries {
                    say!("{} {}:\n{}\n", entry.at, entry.who, entry.text);
                }
            }
        }
        SessionsCommand::Search { query, account, limit, output } => {
            let query = answers::Listing { account, limit, query };
            let found: Vec<api::Found> = match &source {
                Source::Gateway(client) => client.get("/v1/search", &pairs(&query)).await?,
                Source::Store(store, _) => {
                    answers::search(store.as_ref(), &query).await.map_err(Halt::failed)?
                }
            };
            if output.json {
                print_json(&found)?;
            } else {
                print_found(&found)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn pairs(query: &answers::Listing) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("limit", query.limit.to_string()), ("query", query.query.clone())];
    pairs.extend(query.account.clone().map(|account| ("account", account)));
    pairs
}

fn print_sessions(sessions: &[api::Session]) -> Result<(), Halt> {
    if sessions.is_empty() {
        say!("There are no conversations yet.");
        return Ok(());
    }
    let rows: Vec<_> = sessions
        .iter()
        .map(|session| {
            vec![
                session.id.clone(),
                session.account.clone(),
                session.turns.to_string(),
                session.updated.clone(),
                if session.busy { format!("● {}", session.title) } else { session.title.clone() },
            ]
        })
        .collect();
    super::write(format_args!("{}", table(&["ID", "ACCOUNT", "TURNS", "LAST", "TITLE"], &rows)))
}

fn print_found(found: &[api::Found]) -> Result<(), Halt> {
    if found.is_empty() {
        say!("Nothing was found.");
    }
    for found in found {
        say!("{} {} in “{}”:\n{}\n", found.entry.at, found.entry.who, found.title, found.excerpt);
    }
    Ok(())
}
