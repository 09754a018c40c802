//! The last configuration that worked, kept beside the one that people edit, so that a start does not
//! depend on what was saved last.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use talaria_clock::{Clock, SystemClock};
use talaria_config::{Change, Loaded, Sources};
use talaria_providers::Http;

use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::instance::Record;
use crate::replace::{PRIVATE, replace};
use crate::{model, start};

/// A configuration to start with.
pub(crate) struct Booted {
    pub(crate) loaded: Loaded,
    /// What it was read from.
    pub(crate) sources: Sources,
    /// What is wrong with the one that people edit, where this is an older one.
    pub(crate) wrong: Option<String>,
}

/// The configuration of a home; where it is wrong and no gateway runs, the last one that worked.
pub(crate) async fn configuration(home: &Home) -> Result<Booted, Halt> {
    let halt = match read(home.path()).await {
        Ok((loaded, sources)) => return Ok(Booted { loaded, sources, wrong: None }),
        Err(halt) => halt,
    };
    let folder = home.last_good();
    let is_kept = halt.exit == Exit::Misused && folder.join("config.yaml").exists();
    // A gateway that runs is not to make room for one with an older configuration.
    if !is_kept || Record::live(home).is_some() {
        return Err(halt);
    }
    match read(&folder).await {
        Ok((loaded, sources)) => {
            eprintln!("{halt}");
            eprintln!(
                "talaria: starting with the last configuration that worked, {}",
                folder.display()
            );
            Ok(Booted { loaded, sources, wrong: Some(halt.explained()) })
        }
        Err(_) => Err(halt),
    }
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

/// What a folder says, as far as that can be told before anything is started.
async fn read(folder: &Path) -> Result<(Loaded, Sources), Halt> {
    let sources = Sources::read(folder, std::env::vars_os())
        .map_err(|problems| start::misconfigured(problems.iter().as_slice()))?;
    let loaded = talaria_config::load(sources.clone(), talaria_platforms::ALL)
        .map_err(|problems| start::misconfigured(problems.iter().as_slice()))?;
    start::startable(&loaded)?;
    // Whether a model that was chosen exists is known without asking it.
    if loaded.config().model.is_some() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let chosen = model::choice(&loaded, &Http::default(), &clock).await;
        chosen.map_err(|finding| start::misconfigured(&[*finding]))?;
    }
    Ok((loaded, sources))
}

/// This configuration works. It is kept as well as possible: who cannot keep it runs all the same.
pub(crate) fn keep(home: &Home, sources: &Sources) {
    if let Err(error) = write(&home.last_good(), sources) {
        tracing::warn!(%error, "the configuration that works cannot be kept for the next start");
    }
}

fn write(folder: &Path, sources: &Sources) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Secrets first: the other file makes it one that can be used.
    match sources.dotenv_text() {
        Some(text) => replace(&folder.join(".env"), text.as_bytes(), PRIVATE)?,
        None => match fs::remove_file(folder.join(".env")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
    }
    replace(
        &folder.join("config.yaml"),
        sources.config_text().unwrap_or_default().as_bytes(),
        PRIVATE,
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
