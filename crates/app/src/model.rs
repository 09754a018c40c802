//! Which model answers, and the agent made of it.

use std::path::PathBuf;
use std::sync::Arc;

use talaria_agent::tools::{Ask, DemoFile, DemoLaunch, RunProgram, SendMessage, SessionSearch};
use talaria_agent::{
    Agent, Attachments, Automatic, Bounds, Budget, BuiltIn, Fence, Models, Prefixes, Recall,
    Refused, Roots, Settings, Sight, Toolbox,
};
use talaria_clock::Clock;
use talaria_config::{
    CompressionSettings, Config, Dollars, FileSettings, Finding, Loaded, Origin, PriceSettings,
    ProviderSettings,
};
use talaria_providers::{
    Chain, Deadlines, Endpoint, Found, Http, Price, Switchboard, Thinking, Wanted, Why, Wire,
    choose, discover, must_look,
};

use crate::discretion::{DiscreetAgent, DiscreetTool, Discretion};
use crate::exit::{Exit, Halt};
use crate::programs::NamedPrograms;

/// What the model is told about itself unless the configuration says otherwise.
const INSTRUCTIONS: &str = "You are Talaria, a helpful assistant that people reach through chat. \
Answer in the language you are spoken to in, in Markdown, and as briefly as the question allows. \
Say so when you do not know something. Use your tools when they help, and ask when a decision is \
the person's to make.";

/// What there is to choose from, and what was chosen.
pub(crate) struct Choice {
    pub(crate) chain: Chain,
    wanted: Wanted,
    here: Vec<Found>,
}

impl Choice {
    /// Every model that a conversation can switch to, with the chosen one as the usual.
    pub(crate) fn switchboard(
        &self,
        loaded: &Loaded,
        http: &Http,
        clock: &Arc<dyn Clock>,
    ) -> Result<Arc<Switchboard>, Halt> {
        let environment = loaded.environment().clone();
        let variable = move |name: &str| {
            environment.get(name).map(|variable| variable.value.expose().to_owned())
        };
        let switchboard = Switchboard::new(
            self.wanted.clone(),
            Arc::new(variable),
            self.here.clone(),
            self.chain.clone(),
            http.clone(),
            clock.clone(),
        );
        switchboard.map(Arc::new).map_err(|error| {
            Halt::new(Exit::Misused, error).hint("check `providers` in config.yaml")
        })
    }
}

/// Decides which model answers. Otherwise, what is wrong with the configuration.
pub(crate) async fn choice(
    loaded: &Loaded,
    http: &Http,
    clock: &Arc<dyn Clock>,
) -> Result<Choice, Box<Finding>> {
    let wanted = wanted(loaded.config());
    let environment = |name: &str| {
        loaded.environment().get(name).map(|variable| variable.value.expose().to_owned())
    };
    let here = if must_look(&wanted, &environment) {
        discover(http, clock.as_ref(), &talaria_providers::discover::USUAL).await
    } else {
        Vec::new()
    };
    let chain = choose(&wanted, &environment, &here).map_err(|error| {
        let is_wrong = |wanted: &Wanted| choose(wanted, &environment, &here).is_err();
        let expectation = format!("{error}; {}", error.hint());
        Box::new(match culprit(&wanted, is_wrong) {
            Some((path, value)) => {
                loaded.object(&path, value, format!("cannot be used: {expectation}"))
            }
            None => {
                let (place, path, value, excerpt) = (None, None, None, None);
                Finding { place, path, value, expectation, excerpt }
            }
        })
    })?;
    Ok(Choice { chain, wanted, here })
}

/// The setting that names what cannot be used, and what it says. None when nothing was named and what
/// was found does not do.
fn culprit(wanted: &Wanted, is_wrong: impl Fn(&Wanted) -> bool) -> Option<(String, &str)> {
    let mut alone = Wanted { fallback: Vec::new(), ..wanted.clone() };
    if is_wrong(&alone) {
        return wanted.model.as_deref().map(|model| ("model".to_owned(), model));
    }
    wanted.fallback.iter().enumerate().find_map(|(index, name)| {
        alone.fallback = vec![name.clone()];
        is_wrong(&alone).then(|| (format!("fallback[{index}]"), name.as_str()))
    })
}

fn wanted(config: &Config) -> Wanted {
    let endpoint = |settings: &ProviderSettings| Endpoint {
        wire: settings.wire.map(|wire| match wire {
            talaria_config::Wire::OpenAi => Wire::OpenAi,
            talaria_config::Wire::Anthropic => Wire::Anthropic,
        }),
        base_url: settings.base_url.as_ref().map(ToString::to_string),
        key: settings.api_key.clone(),
        key_env: settings.api_key_env.clone(),
        model: settings.model.clone(),
        headers: settings.headers.clone(),
        extra_body: settings.extra_body.clone(),
        max_tokens: settings.max_tokens,
        thinking: match (settings.thinking_budget, settings.thinking) {
            (_, Some(talaria_config::Thinking::Off)) | (None, None) => None,
            (Some(tokens), _) => Some(Thinking::Budget(tokens)),
            (None, Some(talaria_config::Thinking::Adaptive)) => Some(Thinking::Adaptive),
        },
        context_window: settings.context_window.map(u64::from),
        sight: settings.vision.map(|sees| match sees {
            true => Sight::Pictures,
            false => Sight::TextOnly,
        }),
        ..Endpoint::default()
    };
    Wanted {
        provider: None,
        model: config.model.clone(),
        providers: config
            .providers
            .iter()
            .map(|(name, settings)| (name.clone(), endpoint(settings)))
            .collect(),
        fallback: config.fallback.clone(),
        deadlines: Deadlines {
            first_token: config.agent.first_token_limit,
            idle: config.agent.idle_limit,
        },
        prices: config.prices.iter().map(|(name, price)| (name.clone(), priced(price))).collect(),
    }
}

fn priced(price: &PriceSettings) -> Price {
    Price {
        input: price.input.micros(),
        output: price.output.micros(),
        cache_read: price.cache_read.map(Dollars::micros),
        cache_write: price.cache_write.map(Dollars::micros),
        long: None,
    }
}

/// What the agent is given besides its model.
pub(crate) struct Equipment {
    pub(crate) recall: Arc<dyn Recall>,
    pub(crate) attachments: Arc<dyn Attachments>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What it is not to say.
    pub(crate) discretion: Arc<Discretion>,
    /// What prompts begin with. They outlive an agent, so that reading the configuration again does not
    /// cost every conversation its place in the provider's cache.
    pub(crate) prefixes: Arc<Prefixes>,
    /// How many entries of a conversation a turn is given.
    pub(crate) history: usize,
    /// What it may not do, whoever wants that.
    pub(crate) fence: Fence,
    /// What it may run.
    pub(crate) programs: Arc<NamedPrograms>,
}

impl Equipment {
    /// What the operator lets an agent do is what this says from here on, also in turns that are in hand.
    pub(crate) fn set_bounds(&self, config: &Config) {
        let refused = Refused::new(config.approvals.deny.iter().map(String::as_str));
        self.fence.set(Bounds { refused, roots: roots(&config.files) });
        self.programs.set(&config.agent.programs);
    }
}

/// The agent that asks these models, within the bounds that its equipment has.
pub(crate) fn agent(
    config: &Config,
    choice: &Choice,
    models: Arc<Switchboard>,
    equipment: &Equipment,
) -> Arc<dyn Agent> {
    let mut toolbox = Toolbox::default()
        .with(Ask)
        .with(SendMessage)
        .with(SessionSearch::new(equipment.recall.clone()));
    if choice.chain.first.wire == Wire::Demo {
        toolbox = toolbox.with(DemoFile::new(equipment.attachments.clone())).with(DemoLaunch);
    }
    if !config.agent.programs.is_empty() {
        toolbox = toolbox.with(RunProgram::new(equipment.programs.clone()));
    }
    let discretion = &equipment.discretion;
    let toolbox =
        toolbox.through(|tool| Arc::new(DiscreetTool { tool, discretion: discretion.clone() }));
    let settings = Settings {
        instructions: config.agent.instructions.as_deref().unwrap_or(INSTRUCTIONS).into(),
        max_steps: config.agent.max_steps,
        turn_limit: config.agent.turn_limit,
        budget: budget(&config.compression, equipment.history),
        fence: equipment.fence.clone(),
    };
    let agent = BuiltIn::new(
        models.usual(),
        toolbox,
        equipment.attachments.clone(),
        equipment.clock.clone(),
        settings,
    );
    let agent = Arc::new(agent.with_models(models).with_prefixes(equipment.prefixes.clone()));
    Arc::new(DiscreetAgent { agent, discretion: discretion.clone() })
}

fn budget(compression: &CompressionSettings, history: usize) -> Budget {
    Budget {
        automatic: if compression.enabled { Automatic::On } else { Automatic::Off },
        // The setting is between 0.1 and 0.8.
        threshold: (compression.threshold * 100.0).round() as u8,
        keep_first: compression.protect_first_n as usize,
        keep_last: compression.protect_last_n as usize,
        // Before a turn is no longer given all of the conversation.
        most_entries: history - history / 5,
        ..Budget::default()
    }
}

fn roots(files: &FileSettings) -> Roots {
    let home = std::env::home_dir();
    let folder = |written: &String| match (written.strip_prefix("~/"), &home) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(written),
    };
    let folders: Vec<PathBuf> = files.send_from.iter().map(folder).collect();
    Roots::new(folders, home, files.limit.bytes())
}

/// Why this model answers, as a sentence without a full stop.
pub(crate) fn why(chain: &Chain, loaded: &Loaded) -> String {
    match &chain.first.why {
        Why::KeyInEnvironment { variable } | Why::AddressInEnvironment { variable } => {
            let origin = loaded.environment().get(variable).map(|variable| &variable.origin);
            match origin.filter(|origin| matches!(origin, Origin::DotEnv { .. })) {
                Some(origin) => format!("{variable} is set in {origin}"),
                None => chain.first.why.to_string(),
            }
        }
        why => why.to_string(),
    }
}

/// `provider/model`, or the demo by its name.
pub(crate) fn name(chain: &Chain) -> String {
    match chain.first.wire {
        Wire::Demo => "demo (offline)".to_owned(),
        Wire::OpenAi | Wire::Anthropic => {
            format!("{}/{}", chain.first.settings.provider, chain.first.settings.model)
        }
    }
}
