//! LLM APIs, a folder each, behind the one contract that an agent knows.
//!
//! Two APIs cover nearly everybody: chat completions and Anthropic's messages. Around them: several
//! providers as one with retries, the list of providers that are known by name, the search for a
//! server on this machine, the decision which model answers, and an offline demo. This crate knows
//! no session, no tool and no configuration file; it is handed a client, a clock and settings.
#![forbid(unsafe_code)]

pub mod anthropic;
pub mod assemble;
mod breaker;
pub mod catalog;
pub mod choose;
pub mod demo;
mod dial;
pub mod discover;
mod exchange;
mod fallback;
pub mod http;
mod kept;
mod mint;
pub mod models;
pub mod openai;
mod price;
mod refusal;
mod settings;
pub mod sse;
mod switchboard;
mod think;
mod window;

use std::sync::Arc;

use talaria_agent::Provider;
use talaria_clock::Clock;

pub use anthropic::Anthropic;
pub use catalog::Wire;
pub use choose::{Chain, ChooseError, Chosen, Endpoint, Wanted, Why, choose, must_look};
pub use demo::Demo;
pub use dial::{Dial, Form};
pub use discover::{Found, Probe, discover};
pub use fallback::Fallback;
pub use http::{Deadlines, Http};
pub use openai::OpenAi;
pub use price::{Long, Price, Pricing};
pub use refusal::understand;
pub use settings::{LimitName, Settings, SetupError, Thinking};
pub use switchboard::{Environment, ModelError, Switchboard};
pub use window::Window;

impl Chosen {
    /// Gets the model ready to be asked, without retries.
    pub fn connect(
        &self,
        http: &Http,
        clock: &Arc<dyn Clock>,
    ) -> Result<Arc<dyn Provider>, SetupError> {
        let (settings, http, clock) = (self.settings.clone(), http.clone(), clock.clone());
        Ok(match self.wire {
            Wire::OpenAi => Arc::new(OpenAi::new(settings, http, clock)?),
            Wire::Anthropic => Arc::new(Anthropic::new(settings, http, clock)?),
            Wire::Demo => Arc::new(Demo::new(clock, demo::PACE)),
        })
    }
}

impl Chain {
    /// Gets the whole chain ready to be asked, with retries.
    pub fn connect(&self, http: &Http, clock: &Arc<dyn Clock>) -> Result<Fallback, SetupError> {
        let first = self.first.connect(http, clock)?;
        let then: Result<Vec<_>, _> =
            self.then.iter().map(|chosen| chosen.connect(http, clock)).collect();
        Ok(Fallback::new(first, then?, clock.clone()))
    }
}
