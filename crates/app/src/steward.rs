//! The process around the gateway, for those who speak to it from a chat.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use async_trait::async_trait;
use talaria_admin::{Operator, api};
use talaria_agent::{AsksFirst, Destination};
use talaria_clock::Clock;
use talaria_config::{
    AccountSettings, AskBefore, Config, DestinationSettings, QuickSettings, words,
};
use talaria_gateway::Steward;
use talaria_model::{AccountId, Address, Ids};
use talaria_providers::{Switchboard, Wire};
use talaria_session::Pause;
use tokio::sync::Semaphore;

use crate::desk::{Desk, NoRestart};
use crate::discretion::Discretion;
use crate::homes::Homes;
use crate::paused::PausedAccounts;
use crate::quick::{self, Job};

/// Programs that run at the same time.
const PROGRAMS: usize = 4;

/// Answers what a conversation asks of the process around the gateway.
pub(crate) struct Butler {
    homes: Homes,
    paused: PausedAccounts,
    platforms: RwLock<BTreeMap<AccountId, (&'static str, Ids)>>,
    destinations: RwLock<Vec<Destination>>,
    models: RwLock<Arc<Switchboard>>,
    /// The words of each command that runs a program.
    programs: BTreeMap<String, Vec<String>>,
    running: Semaphore,
    clock: Arc<dyn Clock>,
    discretion: Arc<Discretion>,
    desk: OnceLock<Weak<Desk>>,
}

impl Butler {
    pub(crate) fn new(
        config: &Config,
        homes: Homes,
        paused: PausedAccounts,
        models: Arc<Switchboard>,
        clock: Arc<dyn Clock>,
        discretion: Arc<Discretion>,
    ) -> Self {
        let programs = config.quick_commands.iter().filter_map(|(name, quick)| match quick {
            QuickSettings::Alias { .. } => None,
            QuickSettings::Exec { command, shell: true, .. } => {
                let words = ["/bin/sh", "-c", command].map(str::to_owned);
                Some((name.clone(), words.to_vec()))
            }
            QuickSettings::Exec { command, shell: false, .. } => {
                Some((name.clone(), words(command)?))
            }
        });
        Self {
            homes,
            paused,
            platforms: RwLock::new(platforms(config)),
            destinations: RwLock::new(destinations(config)),
            models: RwLock::new(models),
            programs: programs.collect(),
            running: Semaphore::new(PROGRAMS),
            clock,
            discretion,
            desk: OnceLock::new(),
        }
    }

    /// Says whom to ask for what concerns the whole process.
    pub(crate) fn serve(&self, desk: &Arc<Desk>) {
        let _ = self.desk.set(Arc::downgrade(desk));
    }

    /// These are the accounts from here on, and the chats that messages are sent to.
    pub(crate) fn set_places(&self, config: &Config) {
        *self.platforms.write().unwrap_or_else(PoisonError::into_inner) = platforms(config);
        *self.destinations.write().unwrap_or_else(PoisonError::into_inner) = destinations(config);
    }

    /// Leaves these accounts alone until they are let go.
    pub(crate) fn hold(&self, accounts: &BTreeSet<AccountId>) {
        self.paused.hold(accounts);
    }

    /// Lets an account go; says whether it may be connected by that.
    pub(crate) fn release(&self, account: &AccountId) -> bool {
        self.paused.release(account)
    }

    /// Takes other models from here on.
    pub(crate) fn set_models(&self, models: Arc<Switchboard>) {
        *self.models.write().unwrap_or_else(PoisonError::into_inner) = models;
    }

    fn switchboard(&self) -> Arc<Switchboard> {
        self.models.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn desk(&self) -> Result<Arc<Desk>, String> {
        let desk = self.desk.get().and_then(Weak::upgrade);
        desk.ok_or_else(|| "I am just starting or ending; try again in a moment.".to_owned())
    }
}

#[async_trait]
impl Steward for Butler {
    fn models(&self) -> Vec<String> {
        self.switchboard().names()
    }

    fn model(&self, name: &str) -> Result<String, String> {
        let chosen = self.switchboard().find(name).map_err(|error| error.to_string())?;
        Ok(match chosen.wire {
            Wire::Demo => chosen.settings.provider,
            Wire::OpenAi | Wire::Anthropic => {
                format!("{}/{}", chosen.settings.provider, chosen.settings.model)
            }
        })
    }

    fn homes(&self) -> Vec<talaria_agent::Home> {
        let platforms = self.platforms.read().unwrap_or_else(PoisonError::into_inner);
        let known = |at: Address| {
            let (platform, ids) = *platforms.get(&at.account)?;
            Some(talaria_agent::Home { at, name: None, ids, platform: platform.to_owned() })
        };
        self.homes.all().into_iter().filter_map(known).collect()
    }

    fn destinations(&self) -> Vec<Destination> {
        self.destinations.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn set_home(&self, at: &Address) -> Result<(), String> {
        self.homes.set(at).map_err(|error| {
            tracing::warn!(%error, "a home could not be kept");
            "I could not write that down; the log has the details.".to_owned()
        })
    }

    fn paused(&self) -> Vec<AccountId> {
        self.paused.all()
    }

    async fn keep_paused(&self, account: &AccountId, pause: Pause) -> Result<(), String> {
        self.paused.keep(account, pause).map_err(|error| {
            tracing::warn!(%error, "which accounts are paused could not be kept");
            "I could not write that down, so it stays as it was; the log has the details."
                .to_owned()
        })
    }

    fn discreet<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.discretion.clean(text)
    }

    async fn reload(&self, by: &str) -> Result<String, String> {
        let reloaded = self.desk()?.reload(by).await.map_err(|problem| {
            format!("The configuration stays as it was:\n\n{}", block(&problem))
        })?;
        Ok(told(&reloaded))
    }

    async fn restart(&self) -> Result<(), String> {
        self.desk()?.restart().await.map_err(|why| match why {
            NoRestart::EndsWithChat => {
                "I live in a terminal chat and end with it; start it again there.".into()
            }
            NoRestart::Misconfigured(problem) => format!(
                "I stay as I am, because I could not start with this configuration:\n\n{}",
                block(&problem)
            ),
        })
    }

    async fn run(&self, name: &str) -> Result<String, String> {
        let Some(words) = self.programs.get(name) else {
            return Err(format!("I do not know how to run `/{name}`."));
        };
        let desk = self.desk()?;
        let Ok(_place) = self.running.try_acquire() else {
            return Err("Too many commands are running already; try again in a moment.".into());
        };
        tracing::info!(command = name, "running a quick command");
        let redact = |text: String| desk.redact(&text);
        let job = Job::quick(words, &self.discretion);
        quick::run(&job, self.clock.as_ref()).await.map(redact).map_err(redact)
    }
}

/// The chats that messages are sent to by a name.
fn destinations(config: &Config) -> Vec<Destination> {
    let place = |(name, settings): (&String, &DestinationSettings)| {
        Some(Destination {
            name: name.clone(),
            about: settings.about.clone(),
            to: settings.address()?,
            asks: match settings.ask {
                AskBefore::Always => AsksFirst::Yes,
                AskBefore::Never => AsksFirst::No,
            },
        })
    };
    config.destinations.iter().filter_map(place).collect()
}

/// Which platform each account is on.
fn platforms(config: &Config) -> BTreeMap<AccountId, (&'static str, Ids)> {
    let on = |(id, settings): (&AccountId, &AccountSettings)| {
        (id.clone(), (settings.platform.name, settings.platform.ids))
    };
    config.accounts.iter().map(on).collect()
}

fn block(text: &str) -> String {
    format!("```\n{text}\n```")
}

fn told(reloaded: &api::Reloaded) -> String {
    let list = |title: &str, lines: &[String]| match lines {
        [] => String::new(),
        lines => format!("\n\n{title}:\n\n{}", block(&lines.join("\n"))),
    };
    let accounts: Vec<String> = reloaded.accounts.iter().map(ToString::to_string).collect();
    let changes = [
        list("These apply at once", &reloaded.live),
        list("These accounts were set up anew", &accounts),
        list("These apply after `/restart`", &reloaded.after_restart),
        list("This is odd", &reloaded.warnings),
    ];
    let unchanged = match reloaded.is_nothing() {
        true => " Nothing has changed.",
        false => "",
    };
    format!("The configuration was read again.{unchanged}{}", changes.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reload_tells_closes_every_block_that_it_opens() {
        let reloaded = |live: &[&str], warnings: &[&str]| {
            let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
            let (live, warnings) = (owned(live), owned(warnings));
            told(&api::Reloaded { live, warnings, ..api::Reloaded::default() })
        };
        let nothing = "The configuration was read again. Nothing has changed.";
        assert_eq!(reloaded(&[], &[]), nothing);
        assert_eq!(reloaded(&[], &["odd"]), format!("{nothing}\n\nThis is odd:\n\n```\nodd\n```"));
        assert_eq!(
            reloaded(&["a: 1 → 2"], &[]),
            "The configuration was read again.\n\nThese apply at once:\n\n```\na: 1 → 2\n```"
        );
    }
}
