//! `talaria model`: which model answers, why, and whether it does.

use std::sync::Arc;

use futures::StreamExt;
use serde::Serialize;
use talaria_agent::{Delta, Part, Prompt, PromptMessage};
use talaria_clock::{Clock, SystemClock};
use talaria_providers::{Chain, Http};

use super::print_json;
use crate::cli::ModelOptions;
use crate::discretion::Discretion;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::{logging, model, start};

#[derive(Serialize)]
struct Report {
    model: String,
    why: String,
    address: String,
    fallback: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<Test>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Test {
    Answered { text: String, first_token_ms: u128, whole_ms: u128 },
    Failed { problem: String },
}

pub(crate) async fn model(home: &Home, options: ModelOptions) -> Result<Exit, Halt> {
    let discretion = Discretion::new();
    logging::quiet(&discretion);
    let loaded = start::configuration(home)?;
    discretion.learn(&loaded);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let http = Http::by(loaded.config().network.proxy.clone());
    let choice = model::choice(&loaded, &http, &clock)
        .await
        .map_err(|finding| start::misconfigured(&[*finding]))?;
    let chain = choice.chain;
    let test = if options.no_test { None } else { Some(try_it(&chain, &http, &clock).await?) };
    let report = Report {
        model: model::name(&chain),
        why: model::why(&chain, &loaded),
        address: chain.first.settings.base_url.clone(),
        fallback: chain
            .then
            .iter()
            .map(|chosen| format!("{}/{}", chosen.settings.provider, chosen.settings.model))
            .collect(),
        test,
    };
    let exit = match report.test {
        Some(Test::Failed { .. }) => Exit::Failed,
        _ => Exit::Done,
    };
    if options.output.json {
        print_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(exit)
}

fn print(report: &Report) -> Result<(), Halt> {
    say!("{}\n  because    {}", report.model, report.why);
    if !report.address.is_empty() {
        say!("  address    {}", report.address);
    }
    for fallback in &report.fallback {
        say!("  then       {fallback}");
    }
    match &report.test {
        None => {}
        Some(Test::Answered { text, first_token_ms, whole_ms }) => {
            say!("  answered   after {first_token_ms} ms, whole after {whole_ms} ms: {text}");
        }
        Some(Test::Failed { problem }) => say!("  failed     {problem}"),
    }
    say!(
        "\nTo choose another, set `model: provider/name` in config.yaml, or put a key such as\n\
         ANTHROPIC_API_KEY or OPENAI_API_KEY into the environment, or start Ollama."
    );
    Ok(())
}

async fn try_it(chain: &Chain, http: &Http, clock: &Arc<dyn Clock>) -> Result<Test, Halt> {
    let provider =
        chain.first.connect(http, clock).map_err(|error| Halt::new(Exit::Misused, error))?;
    let asked = clock.now();
    let mut first = None;
    let mut text = String::new();
    let mut deltas = provider.complete(Prompt {
        system: "You are being tested. Answer in at most five words.".into(),
        messages: vec![PromptMessage::User(vec![Part::Text("Say hello.".into())])],
        tools: Arc::new([]),
        effort: None,
    });
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Finished { .. }) => {
                let whole_ms = clock.now().since(asked).as_millis();
                let first_token_ms = first.unwrap_or(whole_ms);
                let text = text.split_whitespace().take(12).collect::<Vec<_>>().join(" ");
                return Ok(Test::Answered { text, first_token_ms, whole_ms });
            }
            Ok(Delta::Text(more)) => {
                first.get_or_insert_with(|| clock.now().since(asked).as_millis());
                text.push_str(&more);
            }
            Ok(Delta::Reasoning(_)) => {
                first.get_or_insert_with(|| clock.now().since(asked).as_millis());
            }
            Ok(Delta::Restarted) => text.clear(),
            Err(error) => return Ok(Test::Failed { problem: error.to_string() }),
        }
    }
    Ok(Test::Failed { problem: "the answer broke off".into() })
}
