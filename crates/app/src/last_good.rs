//! The last configuration that worked, kept beside the one that people edit, so that a start does not
//! depend on what was saved last.
//!
//! It never lets anybody do more than the files that are there: whoever was taken out of a list in the same
//! minute as somebody mistyped a number stays out. Secrets are those that are there; an account about which,
//! or about what people may do, the two say something different waits for the file to be right.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use talaria_clock::{Clock, SystemClock};
use talaria_config::{Change, Config, Loaded, Sources};
use talaria_machine::{Mode, make_for_us, replace};
use talaria_model::AccountId;
use talaria_platform::Startup;
use talaria_providers::Http;

use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::instance::Record;
use crate::{model, start};

/// A configuration to start with.
pub(crate) struct Booted {
    pub(crate) loaded: Loaded,
    /// What it was read from.
    pub(crate) sources: Sources,
    /// Where this is an older one than people edit.
    pub(crate) older: Option<Older>,
}

/// Why an older configuration applies.
pub(crate) struct Older {
    /// What is wrong with the one that people edit.
    pub(crate) wrong: String,
    /// Accounts that are not connected before that is right.
    pub(crate) waiting: BTreeSet<AccountId>,
}

/// What may differ without anybody being heard, or allowed something, who is not by the file that is there.
/// Whatever is not named here is not known to be harmless.
const HARMLESS: [&str; 14] = [
    "compression",
    "display",
    "entry_max_age_days",
    "fallback",
    "limits",
    "log",
    "model",
    "prices",
    "providers",
    "session_store_max_age_days",
    "streaming",
    "timezone",
    "voice",
    "watch_config",
];

/// The configuration of a home; where it is wrong and no gateway runs, the last one that worked.
pub(crate) async fn configuration(home: &Home) -> Result<Booted, Halt> {
    // Files that may not be ours, or that others can read, are no reason to look for older ones.
    let sources = read(home.path())?;
    let halt = match started_with(&sources).await {
        Ok(loaded) => return Ok(Booted { loaded, sources, older: None }),
        Err(halt) => halt,
    };
    let kept = fs::read_to_string(home.last_good().join("config.yaml"));
    let (Exit::Misused, Ok(kept)) = (halt.exit, kept) else { return Err(halt) };
    // A gateway that runs is not to make room for one with an older configuration.
    if Record::live(home).is_some() {
        return Err(halt);
    }
    let apart = talaria_config::apart(sources.config_text().unwrap_or_default(), &kept);
    let mut older = sources.with_config(kept);
    let Ok(mut loaded) = started_with(&older).await else { return Err(halt) };
    let listen = loaded.config().http.listen;
    if !listen.ip().is_loopback() && is_apart(apart.as_ref(), |path| is_within(path, "http")) {
        // Nobody else comes in by a door that the file may have closed.
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port()));
        older = older.with_variable("TALARIA_HTTP__LISTEN", here.to_string());
        let Ok(closed) = started_with(&older).await else { return Err(halt) };
        loaded = closed;
    }
    let waiting = waiting(loaded.config(), apart.as_ref());
    eprintln!("{halt}");
    let folder = home.last_good();
    eprintln!("talaria: starting with the last configuration that worked, {}", folder.display());
    let mut wrong = halt.explained();
    if !waiting.is_empty() {
        let names: Vec<&str> = waiting.iter().map(AccountId::as_str).collect();
        let names = names.join(", ");
        eprintln!(
            "talaria: not connected before it is right, because who may do what there may be different: \
             {names}"
        );
        wrong = format!("{wrong}; not connected before it is right: {names}");
    }
    Ok(Booted { loaded, sources: older, older: Some(Older { wrong, waiting }) })
}

/// The accounts on which somebody could be heard who is not by the file that is there.
fn waiting(config: &Config, apart: Option<&BTreeSet<String>>) -> BTreeSet<AccountId> {
    let may_differ = |id: &AccountId| {
        let own = format!("accounts.{id}");
        is_apart(apart, |path| match path.strip_prefix("accounts.") {
            Some(_) => is_within(path, &own),
            None => !HARMLESS.iter().any(|section| is_within(path, section)),
        })
    };
    let open = config.accounts.iter().filter(|(_, settings)| {
        let account = settings.account.as_ref();
        // The operator's own are always there; by them it can be put right.
        account.is_some_and(|account| account.spec.startup != Startup::Always)
    });
    open.map(|(id, _)| id).filter(|id| may_differ(id)).cloned().collect()
}

fn is_apart(apart: Option<&BTreeSet<String>>, is_it: impl Fn(&str) -> bool) -> bool {
    apart.is_none_or(|paths| paths.iter().any(|path| is_it(path)))
}

fn is_within(path: &str, section: &str) -> bool {
    path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What was changed in the files since a gateway last worked with them. What only the environment says is
/// not kept, so a change there is not seen.
pub(crate) fn changes(home: &Home, sources: &Sources) -> Vec<Change> {
    let folder = home.last_good();
    if !folder.join("config.yaml").exists() {
        return Vec::new();
    }
    let before = Sources::read(&folder, std::env::vars_os())
        .and_then(|before| talaria_config::load(before, talaria_platforms::ALL));
    match before.and_then(|before| before.reload(sources.clone())) {
        Ok((_, changes)) => changes,
        Err(problems) => {
            tracing::warn!(%problems, "the configuration before cannot be compared with this one");
            Vec::new()
        }
    }
}

fn read(folder: &Path) -> Result<Sources, Halt> {
    Sources::read(folder, std::env::vars_os())
        .map_err(|problems| start::misconfigured(problems.iter().as_slice()))
}

/// What these say, as far as it can be told before anything is started that it can be started with.
async fn started_with(sources: &Sources) -> Result<Loaded, Halt> {
    let loaded = talaria_config::load(sources.clone(), talaria_platforms::ALL)
        .map_err(|problems| start::misconfigured(problems.iter().as_slice()))?;
    start::startable(&loaded)?;
    // Whether a model that was chosen exists is known without asking it.
    if loaded.config().model.is_some() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let http = Http::by(loaded.config().network.proxy.clone());
        let chosen = model::choice(&loaded, &http, &clock).await;
        chosen.map_err(|finding| start::misconfigured(&[*finding]))?;
    }
    Ok(loaded)
}

/// This configuration works. It is kept as well as possible: who cannot keep it runs all the same.
pub(crate) fn keep(home: &Home, sources: &Sources) {
    if let Err(error) = write(&home.last_good(), sources) {
        tracing::warn!(%error, "the configuration that works cannot be kept for the next start");
    }
}

fn write(folder: &Path, sources: &Sources) -> io::Result<()> {
    make_for_us(folder)?;
    // Secrets first: the other file makes it one that can be used.
    match sources.dotenv_text() {
        Some(text) => replace(&folder.join(".env"), text.as_bytes(), Mode::PRIVATE)?,
        None => match fs::remove_file(folder.join(".env")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
    }
    replace(
        &folder.join("config.yaml"),
        sources.config_text().unwrap_or_default().as_bytes(),
        Mode::PRIVATE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_works_is_kept_for_this_user_alone_and_forgets_secrets_that_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("last-good");
        let sources = Sources::default().with_config("model: demo\n").with_dotenv("A_KEY=b\n");
        write(&kept, &sources).unwrap();
        for name in ["config.yaml", ".env"] {
            let mode = kept.join(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let read = Sources::read(&kept, []).unwrap();
        assert_eq!(
            (read.config_text(), read.dotenv_text()),
            (Some("model: demo\n"), Some("A_KEY=b\n"))
        );
        write(&kept, &Sources::default()).unwrap();
        assert!(!kept.join(".env").exists());
        assert_eq!(Sources::read(&kept, []).unwrap().config_text(), Some(""));
    }
}
