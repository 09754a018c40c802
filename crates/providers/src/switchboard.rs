//! The models that a person can switch to: what there is by name, what each can be told, and the
//! connection to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use talaria_agent::{Models, NoModel, Provider};
use talaria_clock::Clock;
use talaria_model::Effort;

use crate::catalog::CATALOG;
use crate::choose::{Chain, ChooseError, Chosen, DEMO, Wanted, choose};
use crate::discover::Found;
use crate::http::Http;
use crate::settings::SetupError;

/// The most connections that are kept ready.
const MOST_READY: usize = 32;

/// The most names that one sentence lists.
const MOST_LISTED: usize = 12;

/// What people call models for short.
const NICKNAMES: [(&str, &str); 5] = [
    ("sonnet", "claude-sonnet-5-5"),
    ("opus", "claude-opus-5-5"),
    ("haiku", "claude-haiku-4-5"),
    ("fable", "claude-fable-5-1"),
    ("flash", "gemini-3.5-flash"),
];

/// Finds a variable of the environment.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Every model that can be asked, by name.
pub struct Switchboard {
    wanted: Wanted,
    environment: Environment,
    here: Vec<Found>,
    usual: Chain,
    usual_provider: Arc<dyn Provider>,
    http: Http,
    clock: Arc<dyn Clock>,
    ready: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

/// Why a model cannot be switched to. A whole sentence for the person who asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// There is no such model, or its provider cannot be asked.
    #[error("I cannot use {name}: {why}. I can use {}.", listed(.there_are))]
    Unusable {
        /// What was asked for.
        name: String,
        /// What stands in the way.
        why: String,
        /// What there is.
        there_are: Vec<String>,
    },
    /// The model cannot be told how hard to think.
    #[error("{model} cannot be told how hard to think.")]
    Untold {
        /// The model.
        model: String,
    },
    /// The model does not know this effort.
    #[error("{model} does not know the effort {wished}; it knows {}.", listed(.there_are))]
    Effort {
        /// The model.
        model: String,
        /// What was asked for.
        wished: Effort,
        /// What there is.
        there_are: Vec<String>,
    },
}

/// `a, b and c`, and how many more.
fn listed(names: &[String]) -> String {
    let shown = &names[..names.len().min(MOST_LISTED)];
    match (shown, names.len() - shown.len()) {
        ([], _) => "nothing".to_owned(),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

impl Switchboard {
    /// Takes what [`choose`] takes, and the chain that it chose.
    pub fn new(
        wanted: Wanted,
        environment: Environment,
        here: Vec<Found>,
        usual: Chain,
        http: Http,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        let usual_provider = Arc::new(usual.connect(&http, &clock)?);
        let ready = Mutex::default();
        Ok(Self { wanted, environment, here, usual, usual_provider, http, clock, ready })
    }

    /// The model of that name: `provider/model`, a provider, or a model that tells its provider by
    /// its name, has a nickname or runs on this machine.
    pub fn find(&self, name: &str) -> Result<Chosen, ModelError> {
        self.chain(name.trim()).map(|chain| chain.first)
    }

    /// `provider/model` of every model that is known to be there. Providers that serve many are
    /// named with the one that they are usually asked for.
    pub fn names(&self) -> Vec<String> {
        let usual = std::iter::once(&self.usual.first).chain(&self.usual.then).map(full_name);
        let own = self.wanted.providers.keys().map(String::as_str);
        let known = CATALOG.iter().map(|known| known.name);
        let others = own
            .chain(known)
            .filter_map(|name| self.choose(name).ok())
            .map(|chain| full_name(&chain.first));
        let running = self.here.iter().flat_map(|found| {
            found.models.iter().map(|model| format!("{}/{model}", found.provider))
        });
        let mut names = Vec::new();
        for name in usual.chain(others).chain(running) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What a model can be told about thinking, from least to most; the usual model if none is named.
    pub fn efforts(&self, model: Option<&str>) -> Result<&'static [Effort], ModelError> {
        Ok(self.chosen(model)?.settings.dial.efforts)
    }

    /// Whether a model knows an effort; if not, the sentence that says which it knows.
    pub fn check_effort(&self, model: Option<&str>, wished: Effort) -> Result<(), ModelError> {
        let chosen = self.chosen(model)?;
        let efforts = chosen.settings.dial.efforts;
        let model = full_name(&chosen);
        if efforts.contains(&wished) {
            Ok(())
        } else if efforts.is_empty() {
            Err(ModelError::Untold { model })
        } else {
            let there_are = efforts.iter().map(ToString::to_string).collect();
            Err(ModelError::Effort { model, wished, there_are })
        }
    }

    fn chosen(&self, model: Option<&str>) -> Result<Chosen, ModelError> {
        match model {
            Some(name) => self.find(name),
            None => Ok(self.usual.first.clone()),
        }
    }

    fn chain(&self, name: &str) -> Result<Chain, ModelError> {
        self.choose(name).map_err(|error| ModelError::Unusable {
            name: name.to_owned(),
            why: error.to_string(),
            there_are: self.names(),
        })
    }

    fn choose(&self, name: &str) -> Result<Chain, ChooseError> {
        // Whoever calls a provider of their own by a model's nickname means their own.
        let is_nickname = |(nickname, _): &&(&str, &str)| {
            nickname.eq_ignore_ascii_case(name) && !self.wanted.providers.contains_key(name)
        };
        let name = NICKNAMES.iter().find(is_nickname).map_or(name, |(_, model)| model);
        let model = Some(name.to_owned());
        let wanted = Wanted { provider: None, model, ..self.wanted.clone() };
        choose(&wanted, &*self.environment, &self.here)
    }
}

impl Models for Switchboard {
    fn usual(&self) -> Arc<dyn Provider> {
        self.usual_provider.clone()
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Provider>, NoModel> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = ready.get(name) {
            return Ok(provider.clone());
        }
        let chain = self.chain(name).map_err(|error| NoModel(error.to_string()))?;
        let connected = chain.connect(&self.http, &self.clock);
        let provider: Arc<dyn Provider> =
            Arc::new(connected.map_err(|error| NoModel(format!("I cannot use {name}: {error}.")))?);
        if ready.len() >= MOST_READY {
            // Making one again costs next to nothing; the connections behind it are shared.
            ready.clear();
        }
        ready.insert(name.to_owned(), provider.clone());
        Ok(provider)
    }
}

fn full_name(chosen: &Chosen) -> String {
    match chosen.settings.provider.as_str() {
        DEMO => DEMO.to_owned(),
        _ => chosen.settings.name(),
    }
}
