//! The offline demo: no model, but a real provider, so that everything around it is shown for real.
//!
//! It says plainly what it is and how to connect a model. On request it calls a tool, asks a question
//! with choices, writes a long formatted answer, or attaches a file. What it does follows from the
//! conversation alone; asked the same, it answers the same.

mod long;
mod script;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use futures::{FutureExt, StreamExt, stream};
use talaria_agent::{Delta, Deltas, FinishReason, Part, Prompt, PromptMessage, Provider, Sight};
use talaria_clock::Clock;
use talaria_model::{Cost, Usage};

use script::Reply;

/// How long the demo takes for a word.
pub const PACE: Duration = Duration::from_millis(25);

/// However long the answer, nobody waits longer for it.
const LONGEST: Duration = Duration::from_secs(10);

/// How many characters count as one token. An estimate, as good as any without a model.
const CHARACTERS_PER_TOKEN: u64 = 4;

/// How much it reads before a conversation is summarised.
const WINDOW: u64 = 128_000;

/// Answers without a model.
pub struct Demo {
    clock: Arc<dyn Clock>,
    pace: Duration,
}

impl Demo {
    /// A demo that takes `pace` for each word.
    pub fn new(clock: Arc<dyn Clock>, pace: Duration) -> Self {
        Self { clock, pace }
    }
}

impl Provider for Demo {
    fn complete(&self, prompt: Prompt) -> Deltas {
        let Reply { text, calls } = script::reply(&prompt);
        let usage = Usage {
            input: prompt_size(&prompt) / CHARACTERS_PER_TOKEN,
            output: size(&text) / CHARACTERS_PER_TOKEN,
            ..Usage::default()
        };
        let reason = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        let pace = self.pace.min(LONGEST / u32::try_from(words.len().max(1)).unwrap_or(u32::MAX));
        let clock = self.clock.clone();
        let spoken = stream::iter(words).then(move |word| {
            let wait = (!pace.is_zero()).then(|| clock.sleep(pace));
            async move {
                if let Some(wait) = wait {
                    wait.await;
                }
                Ok(Delta::Text(word))
            }
        });
        let finished = Delta::Finished { reason, calls, reasoning: None, usage, cost: Cost::FREE };
        spoken.chain(stream::iter([Ok(finished)])).boxed()
    }

    fn name(&self) -> &str {
        "demo/offline"
    }

    fn sight(&self) -> Sight {
        Sight::TextOnly
    }

    fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
        ready(Some(WINDOW)).boxed()
    }

    fn unfinished(&self, _: Usage) -> Cost {
        Cost::FREE
    }
}

fn size(text: &str) -> u64 {
    text.chars().count() as u64
}

fn prompt_size(prompt: &Prompt) -> u64 {
    let said = prompt.messages.iter().map(|message| match message {
        PromptMessage::User(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => size(text),
                Part::Image { .. } => 0,
            })
            .sum(),
        PromptMessage::Assistant { text, .. } => size(text),
        PromptMessage::ToolResult { output, .. } => size(output),
    });
    size(&prompt.system) + said.sum::<u64>()
}
