//! `talaria platforms`: how the accounts are doing, what else this program can connect to, and which accounts
//! it is to.

use serde::Serialize;
use talaria_admin::api::{Account, PauseWish, Paused, Status};
use talaria_config::AccountSettings;
use talaria_model::AccountId;
use talaria_session::Pause;

use super::{print_json, table::table};
use crate::cli::{Output, PlatformsCommand, PlatformsOptions};
use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::paused::PausedAccounts;
use crate::start;

/// What `talaria platforms` shows.
#[derive(Serialize)]
struct Listed {
    accounts: Vec<AccountLine>,
    platforms: Vec<PlatformLine>,
}

#[derive(Serialize)]
struct AccountLine {
    name: String,
    platform: String,
    /// As `talaria status` says it; `not running` while no gateway runs.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct PlatformLine {
    name: &'static str,
    label: &'static str,
    about: &'static str,
}

pub(crate) async fn platforms(home: &Home, options: PlatformsOptions) -> Result<Exit, Halt> {
    match options.command {
        None => list(home, options.output).await?,
        Some(PlatformsCommand::Pause { account, output }) => {
            tell(home, &account, PauseWish::Pause, output).await?;
        }
        Some(PlatformsCommand::Resume { account, output }) => {
            tell(home, &account, PauseWish::Resume, output).await?;
        }
    }
    Ok(Exit::Done)
}

async fn list(home: &Home, output: Output) -> Result<(), Halt> {
    let platforms: Vec<PlatformLine> = talaria_platforms::ALL
        .iter()
        .map(|registration| registration.spec)
        .map(|spec| PlatformLine { name: spec.name, label: spec.label, about: spec.about })
        .collect();
    let listed = Listed { accounts: accounts(home).await?, platforms };
    if output.json {
        return print_json(&listed);
    }
    let rows: Vec<_> = listed
        .accounts
        .iter()
        .map(|AccountLine { name, platform, state, problem }| {
            let problem = problem.as_deref().unwrap_or_default();
            vec![name.clone(), platform.clone(), state.clone(), problem.to_owned()]
        })
        .collect();
    if !rows.is_empty() {
        let accounts = table(&["ACCOUNT", "PLATFORM", "STATE", ""], &rows);
        super::write(format_args!("{accounts}\n"))?;
    }
    let rows: Vec<_> = listed
        .platforms
        .iter()
        .map(|line| vec![line.name.to_owned(), line.label.to_owned(), line.about.to_owned()])
        .collect();
    super::write(format_args!("{}", table(&["PLATFORM", "NAME", "WHAT IT IS FOR"], &rows)))
}

/// The accounts of the gateway that runs, or those that the next one is to connect.
async fn accounts(home: &Home) -> Result<Vec<AccountLine>, Halt> {
    if let Some(running) = Client::find(home).await? {
        let status: Status = running.get("/v1/status", &[]).await?;
        let line = |account: Account| AccountLine {
            name: account.name,
            platform: account.platform,
            state: account.state,
            problem: account.problem,
        };
        return Ok(status.accounts.into_iter().map(line).collect());
    }
    let loaded = start::configuration(home)?;
    let paused = PausedAccounts::open(home)?.all();
    let to_connect =
        loaded.config().accounts.iter().filter(|(_, settings)| settings.account.is_some());
    let line = |(id, settings): (&AccountId, &AccountSettings)| AccountLine {
        name: id.to_string(),
        platform: settings.platform.name.to_owned(),
        state: if paused.contains(id) { "paused" } else { "not running" }.to_owned(),
        problem: None,
    };
    Ok(to_connect.map(line).collect())
}

/// Tells the gateway that runs, or the next one.
async fn tell(home: &Home, account: &str, wish: PauseWish, output: Output) -> Result<(), Halt> {
    let (word, done) = match wish {
        PauseWish::Pause => ("pause", "is paused; `talaria platforms resume` lets it go on"),
        PauseWish::Resume => ("resume", "is being connected"),
    };
    let (told, done) = match Client::find(home).await? {
        Some(running) => {
            let query = [("account", account.to_owned()), ("wish", word.to_owned())];
            let told: Paused = running.post("/v1/platforms", &query).await?;
            (told, done.to_owned())
        }
        None => {
            let told = write_down(home, account, wish)?;
            (
                told,
                format!(
                    "will {} at the next start",
                    match wish {
                        PauseWish::Pause => "not be connected",
                        PauseWish::Resume => "be connected",
                    }
                ),
            )
        }
    };
    if output.json {
        return print_json(&told);
    }
    say!("{} {done}.", told.account);
    Ok(())
}

fn write_down(home: &Home, account: &str, wish: PauseWish) -> Result<Paused, Halt> {
    let loaded = start::configuration(home)?;
    let known = AccountId::new(account).ok();
    let known = known.filter(|id| loaded.config().accounts.contains_key(id)).ok_or_else(|| {
        Halt::failed(format_args!("there is no account {account}"))
            .hint("`talaria config show` lists the accounts")
    })?;
    home.prepare()?;
    // Nobody else may write it meanwhile.
    let _lock = home.lock()?;
    let pause = match wish {
        PauseWish::Pause => Pause::Pause,
        PauseWish::Resume => Pause::Resume,
    };
    PausedAccounts::open(home)?.keep(&known, pause).map_err(Halt::failed)?;
    Ok(Paused { account: known.to_string(), wish })
}
