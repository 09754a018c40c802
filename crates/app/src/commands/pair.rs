//! `talaria pair` and `talaria audit`: who is let in, and the record of it. Asks the running gateway or,
//! when none runs, the store.

use std::sync::Arc;
use std::time::Duration;

use talaria_admin::answers;
use talaria_admin::api::{self, AuditRow};
use talaria_admin::guests::{self, OPERATOR, PairVerb, Pairing};
use talaria_clock::{Clock, SystemClock, rfc3339};
use talaria_gateway::{PairError, carry_out};
use talaria_model::{AccountId, Timestamp};
use talaria_platform::Identity;
use talaria_session::budget::Day;
use talaria_session::pairing::{ASKED_LATELY, Chance};
use talaria_store::{MemoryStore, Store, broken_at};

use super::{print_json, table::table};
use crate::cli::{AuditOptions, Output, PairCommand};
use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::{Home, HomeLock};
use crate::start;

/// How many rows of the record are read at once.
const PAGE: usize = 500;

/// Who answers.
pub(super) enum Source {
    Gateway(Client),
    Store(Arc<dyn Store>),
}

impl Source {
    /// While the lock is held, nobody else has the store, so it is let go of last.
    pub(super) async fn find(home: &Home) -> Result<(Option<HomeLock>, Self), Halt> {
        if let Some(client) = Client::find(home).await? {
            return Ok((None, Self::Gateway(client)));
        }
        if !home.path().exists() {
            // Whoever only looks does not make a home.
            return Ok((None, Self::Store(Arc::new(MemoryStore::new()))));
        }
        home.prepare()?;
        let lock = home.lock()?;
        Ok((Some(lock), Self::Store(start::store(home)?)))
    }

    async fn pair(&self, pairing: &Pairing) -> Result<api::Pairing, Halt> {
        match self {
            Self::Gateway(client) => {
                let verb = match pairing.verb {
                    PairVerb::Issue => "issue",
                    PairVerb::Approve => "approve",
                    PairVerb::List => "list",
                    PairVerb::Revoke => "revoke",
                    PairVerb::Clear => "clear",
                };
                let pairs = [
                    ("account", pairing.account.clone()),
                    ("verb", verb.to_owned()),
                    ("what", pairing.what.clone()),
                    ("everywhere", pairing.everywhere.to_string()),
                ];
                client.post("/v1/pair", &pairs).await
            }
            Self::Store(store) => {
                let account = pairing.account().map_err(Halt::failed)?;
                let mut chance = [0; 32];
                rand::fill(&mut chance);
                let (wish, now) = (pairing.wish(), SystemClock.now());
                let done =
                    carry_out(store.as_ref(), &account, &wish, OPERATOR, Chance(chance), now).await;
                // Whoever is told of it is told when the gateway runs.
                let (done, _, _) = done.map_err(Halt::failed)?;
                guests::told(&account, done, now).map_err(Halt::failed)
            }
        }
    }

    /// Who spent how much in a day.
    pub(super) async fn spending(&self, day: Day) -> Result<Vec<api::Spending>, Halt> {
        match self {
            Self::Gateway(client) => {
                client.get("/v1/spending", &[("day", day.number().to_string())]).await
            }
            Self::Store(store) => {
                answers::spending(store.as_ref(), day).await.map_err(Halt::failed)
            }
        }
    }

    async fn audited(&self, after: u64) -> Result<Vec<AuditRow>, Halt> {
        match self {
            Self::Gateway(client) => {
                let pairs = [("after", after.to_string()), ("limit", PAGE.to_string())];
                client.get("/v1/audit", &pairs).await
            }
            Self::Store(store) => {
                guests::audited(store.as_ref(), after, PAGE).await.map_err(Halt::failed)
            }
        }
    }
}

pub(crate) async fn pair(home: &Home, command: PairCommand) -> Result<Exit, Halt> {
    let (account, verb, what, everywhere, output) = match command {
        PairCommand::List { account, output } => {
            return list(home, account, output).await;
        }
        PairCommand::Approve { account, code, everywhere, output } => {
            (account, PairVerb::Approve, code.concat(), everywhere, output)
        }
        PairCommand::Revoke { account, id, output } => {
            (account, PairVerb::Revoke, id, false, output)
        }
        PairCommand::Issue { account, everywhere, output } => {
            (account, PairVerb::Issue, String::new(), everywhere, output)
        }
        PairCommand::Clear { account, output } => {
            (account, PairVerb::Clear, String::new(), false, output)
        }
    };
    let known = accounts(home)?;
    if !known.iter().any(|known| known.as_str() == account) {
        return Err(unknown(&account, &known));
    }
    let (_lock, source) = Source::find(home).await?;
    let pairing = Pairing { account, verb, what, everywhere };
    let done = source.pair(&pairing).await?;
    if output.json {
        print_json(&done)?;
        return Ok(Exit::Done);
    }
    let account = &done.account;
    let where_heard = if everywhere { "in every chat" } else { "in direct chats" };
    let sender = || {
        let sender = done.sender.as_deref().unwrap_or_default();
        match &done.name {
            Some(name) => format!("{sender} ({name})"),
            None => sender.to_owned(),
        }
    };
    match verb {
        PairVerb::Approve => say!("{} is let in on {account}, {where_heard}.", sender()),
        PairVerb::Revoke => {
            say!("{} is not heard on {account} any more, unless a list names them.", sender());
            say!("{ASKED_LATELY}");
        }
        PairVerb::Issue => {
            let code = done.code.as_ref().map(|code| code.0.as_str()).unwrap_or_default();
            say!("{code}\n");
            say!(
                "Whoever says this to {account} first, in a direct chat and within the hour, is let in and heard \
                 {where_heard}."
            );
        }
        PairVerb::Clear => {
            let many = done.forgotten.unwrap_or(0);
            match many {
                0 => say!("No request or code is open, and pairing is not locked."),
                1 => say!("One request or code is void, and pairing is not locked."),
                many => say!("{many} requests and codes are void, and pairing is not locked."),
            }
            if many > 0 {
                say!("{ASKED_LATELY}");
            }
        }
        PairVerb::List => {}
    }
    if let (Source::Store(_), PairVerb::Approve) = (&source, verb) {
        say!("They are told when the gateway runs.");
    }
    Ok(Exit::Done)
}

/// The accounts on which people can be let in.
fn accounts(home: &Home) -> Result<Vec<AccountId>, Halt> {
    let loaded = start::configuration(home)?;
    let open = loaded.config().accounts.iter();
    let open = open.filter(|(_, settings)| settings.platform.identity == Identity::Anyone);
    Ok(open.map(|(id, _)| id.clone()).collect())
}

fn unknown(account: &str, known: &[AccountId]) -> Halt {
    let problem = PairError::NoAccount(format!("{account:?}"));
    let names: Vec<_> = known.iter().map(ToString::to_string).collect();
    let halt = Halt::new(Exit::Misused, problem);
    match names.is_empty() {
        true => halt.hint("connect one with `talaria setup`"),
        false => halt.hint(format_args!("choose one of {}", names.join(", "))),
    }
}

async fn list(home: &Home, account: Option<String>, output: Output) -> Result<Exit, Halt> {
    let known = accounts(home)?;
    let wanted: Vec<String> = match account {
        Some(account) if known.iter().any(|known| known.as_str() == account) => vec![account],
        Some(account) => return Err(unknown(&account, &known)),
        None => known.iter().map(ToString::to_string).collect(),
    };
    let (_lock, source) = Source::find(home).await?;
    let mut lists = Vec::new();
    for account in wanted {
        let (verb, what) = (PairVerb::List, String::new());
        let pairing = Pairing { account, verb, what, everywhere: false };
        lists.push(source.pair(&pairing).await?);
    }
    if output.json {
        print_json(&lists)?;
        return Ok(Exit::Done);
    }
    let reach = |everywhere| if everywhere { "everywhere" } else { "direct chats" };
    let mut rows = Vec::new();
    for list in &lists {
        let mut row = |what: &str, who: String, name: &Option<String>, when: &str, note: String| {
            let name = name.clone().unwrap_or_default();
            rows.push(vec![
                list.account.clone(),
                what.to_owned(),
                who,
                name,
                when.to_owned(),
                note,
            ]);
        };
        for request in &list.requests {
            row("asks", request.sender.clone(), &request.name, &request.asked, String::new());
        }
        for code in &list.codes {
            let note = format!("by {}, {}", code.by, reach(code.everywhere));
            row("code out", String::new(), &None, &code.expires, note);
        }
        for guest in &list.guests {
            let note = format!("by {}, {}", guest.by, reach(guest.everywhere));
            row("let in", guest.sender.clone(), &guest.name, &guest.since, note);
        }
    }
    match rows.is_empty() {
        true => say!("Nobody asks to be let in, and nobody was."),
        false => say!("{}", table(&["ACCOUNT", "", "ID", "NAME", "WHEN", ""], &rows).trim_end()),
    }
    for list in &lists {
        if let Some(until) = &list.locked_until {
            let account = &list.account;
            say!(
                "{account}: too many wrong codes; locked until {until}. `talaria pair clear {account}` ends that; \
                 `talaria pair issue {account}` makes a code that works all the same."
            );
        }
    }
    if lists.iter().any(|list| !list.requests.is_empty()) {
        say!("\nThey were given a code. `talaria pair approve ACCOUNT CODE` lets one in.");
    }
    Ok(Exit::Done)
}

pub(crate) async fn audit(home: &Home, options: AuditOptions) -> Result<Exit, Halt> {
    if let Some(mark) = options.seen.as_deref().filter(|mark| !is_mark(mark)) {
        return Err(Halt::new(Exit::Misused, format_args!("{mark:?} is not a mark"))
            .hint("give the one that `talaria audit --verify` prints: a number, a colon and 64 digits and letters"));
    }
    let (_lock, source) = Source::find(home).await?;
    let since = options.since.map(before_now);
    let (mut last, mut rows) = (None, Vec::new());
    loop {
        let page = source.audited(rows.last().map_or(0, |row: &AuditRow| row.seq)).await?;
        if page.is_empty() {
            break;
        }
        if options.verify {
            let strange = |row: &AuditRow| broken(row.seq);
            let kept = page.iter().map(|row| guests::row_from(row).ok_or_else(|| strange(row)));
            let kept: Vec<_> = kept.collect::<Result<_, _>>()?;
            if let Some(seq) = broken_at(last.as_ref(), &kept) {
                return Err(broken(seq));
            }
            last = kept.into_iter().next_back();
        }
        rows.extend(page);
    }
    let is_there = |mark: &String| rows.iter().any(|row| marked(row) == *mark);
    if let Some(lost) = options.seen.filter(|mark| !is_there(mark)) {
        return Err(Halt::failed(format_args!(
            "the record is not as it was written: the row with the mark {lost} is not there"
        ))
        .hint(COMPARE));
    }
    let (many, mark) = (rows.len(), rows.last().map(marked));
    rows.retain(|row| since.is_none_or(|since| row.at_ms >= since));
    if options.output.json {
        print_json(&rows)?;
        return Ok(Exit::Done);
    }
    if options.verify {
        say!("{many} rows, each with the right digest of the one before.");
        if let Some(mark) = mark {
            say!(
                "Mark: {mark}\nKeep it elsewhere: `--verify --seen MARK` tells whether the end was cut off."
            );
        }
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        match since.filter(|_| many > 0) {
            Some(since) => {
                say!("Nothing is recorded since {}.", rfc3339(Timestamp::from_millis(since)))
            }
            None => say!("Nothing is recorded."),
        }
        return Ok(Exit::Done);
    }
    let cells = |row: &AuditRow| {
        let AuditRow { seq, at, actor, deed, subject, detail, .. } = row;
        let cells = [&seq.to_string(), at, actor, deed, subject, detail];
        cells.map(String::clone).to_vec()
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    say!("{}", table(&["#", "WHEN", "WHO", "WHAT", "WHOM", ""], &rows).trim_end());
    Ok(Exit::Done)
}

/// A row, by its place and its digest.
fn marked(row: &AuditRow) -> String {
    format!("{}:{}", row.seq, row.hash)
}

/// Whether that can be how a row is marked.
fn is_mark(words: &str) -> bool {
    let is_digest = |hash: &str| {
        hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts = words.split_once(':');
    parts.is_some_and(|(seq, hash)| seq.parse::<u64>().is_ok() && is_digest(hash))
}

/// What helps where the record is not as it was written.
const COMPARE: &str = "compare it with a backup; the gateway itself only ever adds to it";

fn before_now(age: Duration) -> i64 {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    SystemClock.now().as_millis().saturating_sub(age)
}

fn broken(seq: u64) -> Halt {
    Halt::failed(format_args!(
        "the record is not as it was written: row {seq} was changed, or one before it taken out"
    ))
    .hint(COMPARE)
}
