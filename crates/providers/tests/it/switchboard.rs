//! Switching to another model.

use std::sync::Arc;

use talaria_agent::{Models, Sight};
use talaria_clock::{Clock, SystemClock};
use talaria_model::{Cost, Effort, Usage};
use talaria_providers::{
    Endpoint, Environment, Found, Http, Price, Pricing, Switchboard, Wanted, choose,
};

fn here() -> Vec<Found> {
    vec![Found {
        provider: "ollama".to_owned(),
        title: "Ollama".to_owned(),
        address: ([127, 0, 0, 1], 11434).into(),
        models: vec!["llama3.2:3b".to_owned()],
    }]
}

fn switchboard(wanted: Wanted) -> Switchboard {
    let environment: Environment = Arc::new(|name| match name {
        "ANTHROPIC_API_KEY" | "OPENROUTER_API_KEY" => Some("key".to_owned()),
        _ => None,
    });
    let chain = choose(&wanted, &*environment, &here()).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Switchboard::new(wanted, environment, here(), chain, Http::default(), clock).unwrap()
}

#[test]
fn a_model_is_found_by_any_name_that_people_use() {
    let board = switchboard(Wanted::default());
    let name = |wished: &str| {
        board.find(wished).map(|it| format!("{}/{}", it.settings.provider, it.settings.model))
    };
    assert_eq!(board.usual().name(), "anthropic/claude-sonnet-5");
    for (wished, expect) in [
        ("claude-opus-5", "anthropic/claude-opus-5"),
        ("anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        (" claude ", "anthropic/claude-sonnet-5"),
        ("Opus", "anthropic/claude-opus-5-5"),
        ("openrouter/x-ai/grok-4.3", "openrouter/x-ai/grok-4.3"),
        ("llama3.2:3b", "ollama/llama3.2:3b"),
        ("ollama/gemma3", "ollama/gemma3"),
    ] {
        assert_eq!(name(wished).as_deref(), Ok(expect), "{wished}");
    }
}

#[test]
fn what_cannot_be_used_is_one_sentence_that_says_what_can() {
    let board = switchboard(Wanted::default());
    let sentence = |wished: &str| board.find(wished).unwrap_err().to_string();
    assert_eq!(
        sentence("gpt-5.5"),
        "I cannot use gpt-5.5: there is no key for openai. I can use anthropic/claude-sonnet-5, \
         openrouter/anthropic/claude-sonnet-5 and ollama/llama3.2:3b."
    );
    let Err(none) = board.named("gpt-5.5") else { panic!() };
    assert_eq!(none.to_string(), sentence("gpt-5.5"));
}

#[test]
fn a_connection_is_made_once() {
    let board = switchboard(Wanted::default());
    let one = board.named("claude-opus-5").unwrap();
    assert!(Arc::ptr_eq(&one, &board.named("claude-opus-5").unwrap()));
    assert_eq!((one.name(), one.sight()), ("anthropic/claude-opus-5", Sight::Pictures));
    for n in 0..100 {
        board.named(&format!("anthropic/claude-{n}")).unwrap();
    }
}

#[test]
fn an_effort_that_a_model_does_not_know_is_answered_with_those_it_does() {
    let board = switchboard(Wanted::default());
    assert_eq!(board.check_effort(None, Effort::Max), Ok(()));
    let wrong = |model, effort| board.check_effort(model, effort).unwrap_err().to_string();
    assert_eq!(
        wrong(Some("claude-sonnet-4-6"), Effort::XHigh),
        "anthropic/claude-sonnet-4-6 does not know the effort xhigh; it knows off, low, medium, high \
         and max."
    );
    assert_eq!(
        wrong(Some("claude-3-haiku-20240307"), Effort::Low),
        "anthropic/claude-3-haiku-20240307 cannot be told how hard to think."
    );
    assert_eq!(board.efforts(Some("openrouter")).unwrap().len(), 7);
}

#[test]
fn a_price_is_known_reported_nothing_or_unknown() {
    let own = Price { input: 1_000_000, output: 2_000_000, ..Price::default() };
    let mut wanted = Wanted::default();
    wanted.prices.insert("anthropic/claude-next".to_owned(), own);
    wanted.providers.insert(
        "mine".to_owned(),
        Endpoint {
            base_url: Some("http://10.0.0.1/v1".to_owned()),
            model: Some("m".to_owned()),
            ..Endpoint::default()
        },
    );
    let board = switchboard(wanted);
    let pricing = |name: &str| board.find(name).unwrap().settings.pricing;
    let usage = Usage { input: 1_000_000, ..Usage::default() };
    let Pricing::Listed(sonnet) = pricing("claude-sonnet-5") else { panic!() };
    assert_eq!(sonnet.cost(usage), Cost::known(2_000_000));
    assert_eq!(pricing("claude-next"), Pricing::Listed(own));
    assert_eq!(pricing("claude-unheard-of"), Pricing::Unknown);
    assert!(matches!(pricing("openrouter"), Pricing::Reported(Some(_))), "as at its maker");
    assert_eq!(pricing("ollama/gemma3"), Pricing::Free);
    assert_eq!(pricing("mine"), Pricing::Unknown);
    assert_eq!(pricing("demo"), Pricing::Free);
}

#[test]
fn what_is_known_of_a_model_is_known_of_it_by_name() {
    let board = switchboard(Wanted::default());
    let window = |name: &str| board.find(name).unwrap().settings.context_window;
    for nickname in ["sonnet", "opus", "haiku", "fable"] {
        assert!(window(nickname).is_some(), "{nickname}");
    }
    assert_eq!(window("claude-haiku-4-5-20251001"), Some(200_000));
    assert_eq!(window("claude-opus-5"), Some(1_000_000));
    assert_eq!(window("ollama/gemma3"), None, "its server is asked");
}
