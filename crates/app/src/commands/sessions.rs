//! `talaria sessions`: what was said, from the running gateway or, when none runs, from the store.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use talaria_admin::answers::{self, Listing, Pruning};
use talaria_admin::api;
use talaria_clock::{Clock, SystemClock};
use talaria_store::{MemoryStore, Reading, Store};

use super::{export, print_json, table::table};
use crate::cli::{Format, SessionsCommand};
use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::{Home, HomeLock};
use crate::start;

/// Who answers.
pub(super) enum Source {
    Gateway(Client),
    /// Nobody else has the store, and nobody else will while we hold the lock. None when there is no
    /// home yet, so that nothing was ever said.
    Store(Arc<dyn Store>, Option<HomeLock>),
}

impl Source {
    pub(super) async fn find(home: &Home) -> Result<Self, Halt> {
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

    pub(super) async fn approvals(&self) -> Result<Vec<api::Granted>, Halt> {
        match self {
            Self::Gateway(client) => client.get("/v1/approvals", &[]).await,
            Self::Store(store, _) => answers::approvals(store.as_ref()).await.map_err(Halt::failed),
        }
    }

    pub(super) async fn revoke(&self, id: String) -> Result<api::Granted, Halt> {
        match self {
            Self::Gateway(client) => client.post("/v1/approvals/revoke", &[("id", id)]).await,
            Self::Store(store, _) => {
                answers::revoke(store.as_ref(), &id, SystemClock.now()).await.map_err(Halt::failed)
            }
        }
    }

    async fn list(&self, listing: &Listing) -> Result<api::Sessions, Halt> {
        match self {
            Self::Gateway(client) => client.get("/v1/sessions", &pairs(listing)).await,
            Self::Store(store, _) => {
                answers::sessions(store.as_ref(), listing).await.map_err(Halt::failed)
            }
        }
    }

    async fn search(&self, listing: &Listing) -> Result<Vec<api::Found>, Halt> {
        match self {
            Self::Gateway(client) => client.get("/v1/search", &pairs(listing)).await,
            Self::Store(store, _) => {
                answers::search(store.as_ref(), listing).await.map_err(Halt::failed)
            }
        }
    }

    async fn transcript(&self, name: String, limit: usize) -> Result<api::Transcript, Halt> {
        match self {
            Self::Gateway(client) => {
                let pairs = [("name", name), ("limit", limit.to_string())];
                client.get("/v1/transcript", &pairs).await
            }
            Self::Store(store, _) => {
                answers::transcript(store.as_ref(), &name, limit).await.map_err(Halt::failed)
            }
        }
    }

    async fn rename(&self, name: String, title: String) -> Result<api::Session, Halt> {
        match self {
            Self::Gateway(client) => {
                client.post("/v1/rename", &[("name", name), ("title", title)]).await
            }
            Self::Store(store, _) => {
                let renamed = async {
                    let life = answers::named(store.as_ref(), &name).await?;
                    let title = answers::title(&title)?;
                    store.rename(&life.past.id, &title).await?;
                    answers::line(store.as_ref(), &life.past.id).await
                };
                renamed.await.map_err(Halt::failed)
            }
        }
    }

    async fn prune(&self, older_than: Duration, doing: Pruning) -> Result<api::Pruned, Halt> {
        match self {
            Self::Gateway(client) => {
                let dry_run = doing == Pruning::DryRun;
                let pairs = [
                    ("older_than_seconds", older_than.as_secs().to_string()),
                    ("dry_run", dry_run.to_string()),
                ];
                client.post("/v1/prune", &pairs).await
            }
            Self::Store(store, _) => {
                answers::prune(store.as_ref(), SystemClock.now(), older_than, &[], doing)
                    .await
                    .map_err(Halt::failed)
            }
        }
    }
}

pub(crate) async fn sessions(home: &Home, command: SessionsCommand) -> Result<Exit, Halt> {
    let source = Source::find(home).await?;
    match command {
        SessionsCommand::List { account, past, limit, output } => {
            let listing = Listing { account, past, limit, ..Listing::default() };
            let listed = source.list(&listing).await?;
            match output.json {
                true => print_json(&listed)?,
                false => print_sessions(&listed, &listing, &Wall::of(home))?,
            }
        }
        SessionsCommand::Show { name, limit, output } => {
            let transcript = source.transcript(name, limit).await?;
            match output.json {
                true => print_json(&transcript)?,
                false => print_transcript(&transcript, &Wall::of(home))?,
            }
        }
        SessionsCommand::Search { query, account, since, limit, output } => {
            let since = since.map(|age| {
                let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
                SystemClock.now().as_millis().saturating_sub(age)
            });
            let listing = Listing { account, query, since, limit, ..Listing::default() };
            let found = source.search(&listing).await?;
            match output.json {
                true => print_json(&found)?,
                false => print_found(&found, &Wall::of(home))?,
            }
        }
        SessionsCommand::Export { name, format, output, taken_back } => {
            let entries = export(source, name, format, output.as_deref(), taken_back).await?;
            if let Some(path) = output {
                say!("Wrote {} to {}.", counted(entries, "entry", "entries"), path.display());
            }
        }
        SessionsCommand::Rename { name, title, output } => {
            let session = source.rename(name, title).await?;
            if output.json {
                print_json(&session)?;
            } else {
                say!("{} is called “{}”.", session.id, session.title);
            }
        }
        SessionsCommand::Prune { older_than, dry_run, output } => {
            let doing = if dry_run { Pruning::DryRun } else { Pruning::ForGood };
            let pruned = source.prune(older_than, doing).await?;
            match output.json {
                true => print_json(&pruned)?,
                false => print_pruned(&pruned, &Wall::of(home))?,
            }
        }
    }
    Ok(Exit::Done)
}

async fn export(
    source: Source,
    name: String,
    format: Format,
    path: Option<&std::path::Path>,
    taken_back: bool,
) -> Result<u64, Halt> {
    match source {
        Source::Gateway(client) => {
            let pairs = [("name", name), ("taken_back", taken_back.to_string())];
            let lines = client.lines("/v1/export", &pairs).await?;
            export::write(lines, format, path).await
        }
        Source::Store(store, _lock) => {
            let life = answers::named(store.as_ref(), &name).await.map_err(Halt::failed)?;
            let reading = if taken_back { Reading::Everything } else { Reading::Standing };
            let recorded = answers::record_export(store.as_ref(), &life, SystemClock.now());
            recorded.await.map_err(Halt::failed)?;
            let lines = answers::export(store, life, reading).map(Ok);
            export::write(lines, format, path).await
        }
    }
}

fn pairs(listing: &Listing) -> Vec<(&'static str, String)> {
    let Listing { account, query, since, past, limit } = listing.clone();
    let mut pairs = vec![("limit", limit.to_string()), ("past", past.to_string())];
    pairs.extend((!query.is_empty()).then_some(("query", query)));
    pairs.extend(account.map(|account| ("account", account)));
    pairs.extend(since.map(|since| ("since", since.to_string())));
    pairs
}

/// Moments as the clock on the operator's wall shows them: in the time zone of the configuration.
pub(super) struct Wall(TimeZone);

impl Wall {
    pub(super) fn of(home: &Home) -> Self {
        // What was said can be read whatever is wrong with the configuration.
        let configured = start::configuration(home).ok();
        let zone = configured.and_then(|loaded| loaded.config().timezone.clone());
        Self(zone.unwrap_or_else(TimeZone::system))
    }

    /// A moment that the API told, to the minute.
    pub(super) fn shows(&self, at: &str) -> String {
        match at.parse::<Timestamp>() {
            Ok(at) => at.to_zoned(self.0.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
            Err(_) => at.to_owned(),
        }
    }
}

fn print_sessions(listed: &api::Sessions, listing: &Listing, wall: &Wall) -> Result<(), Halt> {
    if listed.sessions.is_empty() {
        match &listing.account {
            Some(account) => say!("There are no conversations on {account}."),
            None => say!("There are no conversations yet."),
        }
        return Ok(());
    }
    let rows: Vec<_> = listed.sessions.iter().map(|session| row(session, wall)).collect();
    super::write(format_args!("{}", table(&COLUMNS, &rows)))?;
    let api::Totals { sessions, turns, used } = &listed.totals;
    let more = match *sessions > rows.len() as u64 {
        true if listing.past => " (--limit lists more of them)",
        true => " (--past lists earlier ones too)",
        false => "",
    };
    let all = counted(*sessions, "conversation", "conversations");
    let turns = counted(*turns, "turn", "turns");
    say!("\n{all} in all{more}, {turns}, {}", in_words(used));
    Ok(())
}

/// A number of things.
fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

const COLUMNS: [&str; 7] = ["ID", "ACCOUNT", "TURNS", "TOKENS", "COST", "LAST", "TITLE"];

fn row(session: &api::Session, wall: &Wall) -> Vec<String> {
    let title = match (session.busy, &session.over) {
        (true, _) => format!("● {}", session.title),
        (false, Some(_)) => format!("○ {}", session.title),
        (false, None) => session.title.clone(),
    };
    vec![
        session.id.clone(),
        session.account.clone(),
        session.turns.to_string(),
        tokens(&session.used).to_string(),
        session.used.cost.clone(),
        wall.shows(&session.updated),
        title,
    ]
}

fn tokens(used: &api::Used) -> u64 {
    used.input + used.cache_read + used.cache_write + used.output + used.estimated
}

fn in_words(used: &api::Used) -> String {
    let read = used.input + used.cache_read + used.cache_write;
    let cached = match used.cache_read {
        0 => String::new(),
        cached => format!(", {cached} of them from a cache"),
    };
    let read = counted(read, "token", "tokens");
    let broke_off = match used.estimated {
        0 => String::new(),
        tokens => format!(", about {tokens} for answers that broke off"),
    };
    format!("{read} read{cached}, {} written{broke_off}, cost {}", used.output, used.cost)
}

fn print_transcript(transcript: &api::Transcript, wall: &Wall) -> Result<(), Halt> {
    let detail = &transcript.session;
    let session = &detail.session;
    say!("{}  {}", session.id, session.title);
    say!("  chat     {}", session.key);
    say!("  begun    {}", wall.shows(&detail.begun));
    if let Some(why) = &session.over {
        say!("  over     {why}");
    }
    if let Some(from) = &detail.branched_from {
        say!("  copy of  {from}");
    }
    if let Some(model) = &detail.model {
        say!("  model    {model}");
    }
    let turns = counted(session.turns.into(), "turn", "turns");
    say!("  used     {turns}, {}", in_words(&session.used));
    say!("  prompt   {} last time\n", counted(detail.prompt, "token", "tokens"));
    for entry in &transcript.entries {
        let who = entry.name.as_deref().unwrap_or(&entry.who);
        let calls = entry.calls.iter().map(|call| format!("[calls {}]\n", call.tool));
        let files = entry.files.iter().map(|file| format!("📎 {file}\n"));
        let more: String = calls.chain(files).collect();
        let text = if entry.text.is_empty() { String::new() } else { format!("{}\n", entry.text) };
        let remark = match entry.kind.as_str() {
            "interrupted" => " (interrupted before it said anything)",
            _ => "",
        };
        say!("{} {who}{remark}:\n{text}{more}", wall.shows(&entry.at));
    }
    Ok(())
}

fn print_found(found: &[api::Found], wall: &Wall) -> Result<(), Halt> {
    if found.is_empty() {
        say!("Nothing was found.");
    }
    for found in found {
        let who = found.entry.name.as_deref().unwrap_or(&found.entry.who);
        say!(
            "{} {who} in “{}” ({}):\n{}\n",
            wall.shows(&found.entry.at),
            found.title,
            found.entry.session,
            found.excerpt
        );
    }
    Ok(())
}

fn print_pruned(pruned: &api::Pruned, wall: &Wall) -> Result<(), Halt> {
    match (pruned.dry_run, pruned.sessions) {
        (_, 0) => say!("There is nothing that old."),
        (true, sessions) => {
            let rows: Vec<_> = pruned.some.iter().map(|session| row(session, wall)).collect();
            super::write(format_args!("{}", table(&COLUMNS, &rows)))?;
            let more = sessions.saturating_sub(pruned.some.len() as u64);
            if more > 0 {
                say!("… and {more} more");
            }
            let all = counted(sessions, "conversation", "conversations");
            say!(
                "\n{all} would be forgotten, with everything said there. Those for which something is \
                 still to be done would stay."
            );
        }
        (false, sessions) => {
            say!("Forgot {}.", counted(sessions, "conversation", "conversations"));
        }
    }
    Ok(())
}
