//! Which model answers: what the configuration says, else a key in the environment, else a server on
//! this machine, else the demo.
//!
//! A pure decision: what it needs to know it is told, and nothing is asked or sent.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use serde_json::{Map, Value};
use talaria_agent::Sight;
use talaria_model::Secret;

use crate::catalog::{Bill, CATALOG, Key, Known, ModelNames, Wire, known};
use crate::dial::Dial;
use crate::discover::Found;
use crate::http::Deadlines;
use crate::models;
use crate::price::{Price, Pricing};
use crate::settings::{LimitName, Settings, Thinking};

/// What the demo is called.
pub const DEMO: &str = "demo";

/// Names with so many differences are not typing errors of each other.
const NEAR: usize = 3;

/// How many tokens a model of a well-known provider is taken to read when nobody says.
const ASSUMED_WINDOW: u64 = 128_000;

/// What the configuration says about models. Everything may be missing.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The provider, by name.
    pub provider: Option<String>,
    /// The model: `provider/model`, or a bare name of either.
    pub model: Option<String>,
    /// Named providers: new ones, and changes to those that are known.
    pub providers: BTreeMap<String, Endpoint>,
    /// Who is asked when the first one fails, in that order; each as in `model`.
    pub fallback: Vec<String>,
    /// How long a provider may be silent, unless its endpoint says otherwise.
    pub deadlines: Deadlines,
    /// What models cost, by `provider/model`; wins over what is known.
    pub prices: BTreeMap<String, Price>,
}

/// A provider as the configuration describes it. What is missing comes from the catalog.
#[derive(Debug, Clone, Default)]
pub struct Endpoint {
    /// What it speaks; chat completions unless known otherwise.
    pub wire: Option<Wire>,
    /// Where its API is.
    pub base_url: Option<String>,
    /// Its key.
    pub key: Option<Secret>,
    /// The environment variable that holds its key.
    pub key_env: Option<String>,
    /// The model to take when none is named.
    pub model: Option<String>,
    /// Headers sent along.
    pub headers: BTreeMap<String, Secret>,
    /// Fields put into every request.
    pub extra_body: Map<String, Value>,
    /// How long it may be silent.
    pub deadlines: Option<Deadlines>,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u32>,
    /// How the model is told to think.
    pub thinking: Option<Thinking>,
    /// How many tokens the model reads.
    pub context_window: Option<u64>,
    /// Whether its models look at pictures; as is known of them when not set.
    pub sight: Option<Sight>,
}

/// A model that was chosen.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// What its provider speaks.
    pub wire: Wire,
    /// Everything needed to ask it.
    pub settings: Settings,
    /// Why this one.
    pub why: Why,
}

/// Who is asked, and who then.
#[derive(Debug, Clone)]
pub struct Chain {
    /// The model that answers.
    pub first: Chosen,
    /// Those who step in.
    pub then: Vec<Chosen>,
}

/// Why a model was chosen. Prints as a plain sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The configuration says so.
    Configured,
    /// Its key is there.
    KeyInEnvironment {
        /// The variable.
        variable: String,
    },
    /// Its address is there.
    AddressInEnvironment {
        /// The variable.
        variable: String,
    },
    /// It runs on this machine.
    AnswersHere {
        /// What it is.
        server: String,
        /// Where it listens.
        address: SocketAddr,
    },
    /// There is no other.
    NothingElse,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("it is set in the configuration"),
            Self::KeyInEnvironment { variable } | Self::AddressInEnvironment { variable } => {
                write!(f, "{variable} is set in the environment")
            }
            Self::AnswersHere { server, address } => write!(f, "{server} answers on {address}"),
            Self::NothingElse => f.write_str("nothing else was found"),
        }
    }
}

/// Why no model could be chosen. Each is something that a person can correct.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// The configuration names a provider that nobody knows.
    #[error("there is no provider {name:?}")]
    UnknownProvider {
        /// The name.
        name: String,
        /// What it may be a typing error of.
        nearest: Option<String>,
    },
    /// The configuration names a provider whose key is nowhere.
    #[error("there is no key for {provider}")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The environment variable in which it would be found.
        variable: String,
    },
    /// The configuration describes a provider without saying where it is.
    #[error("there is no address for {provider}")]
    MissingAddress {
        /// The provider.
        provider: String,
    },
    /// It is not known which model to ask for.
    #[error("it is not said which model of {provider} to use")]
    MissingModel {
        /// The provider.
        provider: String,
    },
    /// The configuration names a model, but no provider that has it.
    #[error("it is not known which provider has the model {model:?}")]
    UnknownModel {
        /// The model.
        model: String,
    },
}

impl ChooseError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownProvider { nearest: Some(nearest), .. } => {
                format!("did you mean {nearest:?}?")
            }
            Self::UnknownProvider { name, nearest: None } => {
                format!("describe it in config.yaml under providers.{name}")
            }
            Self::MissingKey { provider, variable } => format!(
                "set {variable} in .env or in the environment, or providers.{provider}.api_key in \
                 config.yaml"
            ),
            Self::MissingAddress { provider } => {
                format!("set providers.{provider}.base_url in config.yaml")
            }
            Self::MissingModel { provider } => {
                format!("set model: {provider}/… in config.yaml")
            }
            Self::UnknownModel { model } => {
                format!("write it as provider/model, such as openrouter/{model}, in config.yaml")
            }
        }
    }
}

/// Decides. `environment` looks up a variable; `here` is what was found on this machine, in the order
/// in which it is to be taken.
pub fn choose(
    wanted: &Wanted,
    environment: &dyn Fn(&str) -> Option<String>,
    here: &[Found],
) -> Result<Chain, ChooseError> {
    Chooser { wanted, environment, here: Some(here) }.chain().map_err(|undecided| match undecided {
        Undecided::Wrong(error) => error,
        Undecided::Look => unreachable!("what is on this machine is known"),
    })
}

/// Whether [`choose`] would have to know what runs on this machine. Where it would not, nobody needs
/// to look.
pub fn must_look(wanted: &Wanted, environment: &dyn Fn(&str) -> Option<String>) -> bool {
    let outcome = Chooser { wanted, environment, here: None }.chain();
    matches!(outcome, Err(Undecided::Look))
}

struct Chooser<'a> {
    wanted: &'a Wanted,
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// None when nobody has looked yet.
    here: Option<&'a [Found]>,
}

enum Undecided {
    Wrong(ChooseError),
    Look,
}

impl From<ChooseError> for Undecided {
    fn from(error: ChooseError) -> Self {
        Self::Wrong(error)
    }
}

impl Chooser<'_> {
    fn chain(&self) -> Result<Chain, Undecided> {
        let first = match (&self.wanted.provider, &self.wanted.model) {
            (Some(provider), model) => self.configured(provider, model.as_deref())?,
            (None, Some(model)) => self.named(model)?,
            (None, None) => self.found()?,
        };
        let then =
            self.wanted.fallback.iter().map(|name| self.named(name)).collect::<Result<_, _>>();
        Ok(Chain { first, then: then? })
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).map(|value| value.trim().to_owned()).filter(|it| !it.is_empty())
    }

    fn here(&self) -> Result<&[Found], Undecided> {
        self.here.ok_or(Undecided::Look)
    }

    /// Nothing is configured: takes what is there.
    fn found(&self) -> Result<Chosen, Undecided> {
        if let Some((known, why)) = self.in_environment(|_| true) {
            return self.take(known.name, None, why);
        }
        match self.here()?.iter().find_map(|found| Some((found, found.models.first()?))) {
            Some((found, model)) => self.take_running(found, model),
            None => Ok(demo(Why::NothingElse)),
        }
    }

    fn in_environment(&self, fits: impl Fn(&Known) -> bool) -> Option<(&'static Known, Why)> {
        CATALOG.iter().filter(|known| fits(known)).find_map(|known| {
            let set = |variables: &[&str]| {
                let set = variables.iter().find(|variable| self.variable(variable).is_some());
                set.map(|variable| variable.to_string())
            };
            let key = || set(known.key_env).map(|variable| Why::KeyInEnvironment { variable });
            let address =
                || set(known.base_url_env).map(|variable| Why::AddressInEnvironment { variable });
            key().or_else(address).map(|why| (known, why))
        })
    }

    fn is_provider(&self, name: &str) -> bool {
        self.wanted.providers.contains_key(name) || known(name).is_some() || name == DEMO
    }

    /// `provider: name` and perhaps `model: name` beside it.
    fn configured(&self, provider: &str, model: Option<&str>) -> Result<Chosen, Undecided> {
        if !self.is_provider(provider) {
            return Err(self.unknown(provider).into());
        }
        let model = model.map(|model| {
            let own = model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'));
            own.map_or(model, |rest| self.own_name(provider, model, rest))
        });
        self.take(provider, model, Why::Configured)
    }

    /// A name without a provider beside it.
    fn named(&self, name: &str) -> Result<Chosen, Undecided> {
        if self.is_provider(name) {
            return self.take(name, None, Why::Configured);
        }
        let vendor = match name.split_once('/') {
            Some((provider, rest)) if self.is_provider(provider) => {
                let model = self.own_name(provider, name, rest);
                return self.take(provider, Some(model), Why::Configured);
            }
            Some((vendor, _)) => Some(vendor),
            None => None,
        };
        let by_prefix = CATALOG.iter().find(|known| {
            let begins = |prefix: &&str| name.starts_with(prefix);
            vendor.is_none() && known.prefixes.iter().any(begins)
        });
        if let Some(known) = by_prefix {
            return self.take(known.name, Some(name), Why::Configured);
        }
        // A name that tells nothing may be that of a model here, or of one that somebody serves for
        // its vendor.
        if let Some(found) =
            self.here()?.iter().find(|found| found.models.iter().any(|it| it == name))
        {
            return self.take_running(found, name);
        }
        let serves = |known: &Known| vendor.is_none() || known.names == ModelNames::WithVendor;
        if let Some((known, _)) = self.in_environment(serves) {
            return self.take(known.name, Some(name), Why::Configured);
        }
        Err(match vendor {
            Some(vendor) => self.unknown(vendor).into(),
            None => ChooseError::UnknownModel { model: name.to_owned() }.into(),
        })
    }

    /// The name by which a provider knows its model `provider/rest`. Where models are named with
    /// their vendor, `openrouter/auto` is a model of OpenRouter's own.
    fn own_name<'b>(&self, provider: &str, whole: &'b str, rest: &'b str) -> &'b str {
        let with_vendor = known(provider).is_some_and(|it| it.names == ModelNames::WithVendor);
        if with_vendor && !rest.contains('/') { whole } else { rest }
    }

    fn unknown(&self, name: &str) -> ChooseError {
        let known = CATALOG.iter().flat_map(|known| known.aliases.iter().chain([&known.name]));
        let nearest = self
            .wanted
            .providers
            .keys()
            .map(String::as_str)
            .chain(known.copied())
            .map(|other| (strsim::damerau_levenshtein(name, other), other))
            .filter(|(distance, other)| *distance < NEAR.min(other.len()))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, other)| other.to_owned());
        ChooseError::UnknownProvider { name: name.to_owned(), nearest }
    }

    fn take_running(&self, found: &Found, model: &str) -> Result<Chosen, Undecided> {
        let why = Why::AnswersHere { server: found.title.clone(), address: found.address };
        let mut chosen = self.take(&found.provider, Some(model), why)?;
        chosen.settings.base_url = found.base_url();
        Ok(chosen)
    }

    /// Puts together all that is known of a provider.
    fn take(&self, name: &str, model: Option<&str>, why: Why) -> Result<Chosen, Undecided> {
        if name == DEMO {
            return Ok(demo(why));
        }
        // Whoever calls a provider of their own by somebody's nickname means their own.
        let own = self.wanted.providers.contains_key(name);
        let known = known(name).filter(|known| known.name == name || !own);
        let provider = known.map_or(name, |known| known.name).to_owned();
        let endpoint = self
            .wanted
            .providers
            .get(name)
            .or_else(|| self.wanted.providers.get(&provider))
            .cloned()
            .unwrap_or_default();
        let usual = |variables: fn(&Known) -> &[&'static str]| {
            known.into_iter().flat_map(variables).find_map(|variable| self.variable(variable))
        };
        let moved = endpoint.base_url.or_else(|| usual(|known| known.base_url_env));
        let key = self.key(&provider, &endpoint.key, &endpoint.key_env, known, &moved)?;
        let limit_name = known
            .filter(|_| moved.is_none())
            .map_or(LimitName::MaxTokens, |known| known.limit_name);
        let usual_model = known.and_then(|known| known.model);
        let model = model
            .map(str::to_owned)
            .or(endpoint.model)
            .or_else(|| usual(|known| known.model_env))
            .or_else(|| usual_model.map(str::to_owned));
        let (model, address) = match (model, known) {
            (Some(model), _) => (model, None),
            (None, Some(Known { key: Key::Optional, .. })) if moved.is_none() => {
                let mut running = self.here()?.iter().filter(|found| found.provider == provider);
                let (found, model) = running
                    .find_map(|found| Some((found, found.models.first()?)))
                    .ok_or_else(|| ChooseError::MissingModel { provider: provider.clone() })?;
                (model.clone(), Some(found.base_url()))
            }
            (None, _) => return Err(ChooseError::MissingModel { provider }.into()),
        };
        let moved_to = moved.clone();
        let base_url = moved
            .or(address)
            .or_else(|| known.map(|known| known.base_url.to_owned()))
            .ok_or_else(|| ChooseError::MissingAddress { provider: provider.clone() })?;
        let wire = endpoint.wire.or(known.map(|known| known.wire)).unwrap_or(Wire::OpenAi);
        // What is known of a provider's models holds where the provider serves them itself.
        let facts = known
            .filter(|_| moved_to.is_none())
            .and_then(|known| models::model(known.name, &model));
        let usual_window = known
            .filter(|_| usual_model == Some(model.as_str()))
            .and_then(|known| known.context_window)
            .or(facts.map(|facts| facts.window));
        let pricing = match (self.wanted.prices.get(&format!("{provider}/{model}")), known) {
            (Some(price), _) => Pricing::Listed(*price),
            (None, Some(Known { key: Key::Optional, .. })) => Pricing::Free,
            (None, Some(Known { bill: Bill::Reported, .. })) if moved_to.is_none() => {
                Pricing::Reported(of_its_maker(&model))
            }
            _ => facts.map_or(Pricing::Unknown, |facts| Pricing::Listed(facts.price)),
        };
        let hosted = known.filter(|known| known.key == Key::Needed);
        // A server of one's own is told by the usual words, whatever it is called.
        let dial = match (hosted.filter(|_| moved_to.is_some()), wire) {
            (Some(_), Wire::OpenAi) => Dial::of("", wire, &model),
            _ => Dial::of(&provider, wire, &model),
        };
        let assumed_window = hosted
            .filter(|_| moved_to.is_none())
            .map(|known| known.context_window.unwrap_or(ASSUMED_WINDOW).min(ASSUMED_WINDOW));
        let refused = known.into_iter().flat_map(|known| known.refuses);
        let mut extra_body: Map<_, _> =
            refused.map(|field| (field.to_string(), Value::Null)).collect();
        extra_body.extend(endpoint.extra_body);
        Ok(Chosen {
            wire,
            settings: Settings {
                provider,
                model,
                base_url,
                key,
                headers: endpoint.headers,
                extra_body,
                deadlines: endpoint.deadlines.unwrap_or(self.wanted.deadlines),
                max_tokens: endpoint.max_tokens,
                limit_name,
                thinking: endpoint.thinking,
                dial,
                pricing,
                sight: endpoint.sight.or(known.map(|known| known.sight)).unwrap_or_default(),
                context_window: endpoint.context_window.or(usual_window),
                assumed_window,
            },
            why,
        })
    }

    fn key(
        &self,
        provider: &str,
        key: &Option<Secret>,
        key_env: &Option<String>,
        known: Option<&Known>,
        moved: &Option<String>,
    ) -> Result<Option<Secret>, ChooseError> {
        if let Some(key) = key {
            return Ok(Some(key.clone()));
        }
        let missing = |variable: &str| ChooseError::MissingKey {
            provider: provider.to_owned(),
            variable: variable.to_owned(),
        };
        if let Some(variable) = key_env {
            let key = self.variable(variable).ok_or_else(|| missing(variable))?;
            return Ok(Some(Secret::new(key)));
        }
        let Some(known) = known else { return Ok(None) };
        let key = known.key_env.iter().find_map(|variable| self.variable(variable));
        match (key, known.key_env.first()) {
            (Some(key), _) => Ok(Some(Secret::new(key))),
            // Somebody else's server may not want one.
            (None, Some(variable)) if moved.is_none() => Err(missing(variable)),
            (None, _) => Ok(None),
        }
    }
}

/// What a model costs where it is made, by the name that others sell it under: `anthropic/claude-sonnet-4.6`.
fn of_its_maker(model: &str) -> Option<Price> {
    let (maker, name) = model.split_once('/')?;
    let facts =
        models::model(maker, name).or_else(|| models::model(maker, &name.replace('.', "-")));
    facts.map(|facts| facts.price)
}

fn demo(why: Why) -> Chosen {
    let settings = Settings {
        provider: DEMO.to_owned(),
        model: "offline".to_owned(),
        pricing: Pricing::Free,
        ..Settings::default()
    };
    Chosen { wire: Wire::Demo, settings, why }
}
