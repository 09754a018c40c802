//! Which model answers.

use std::collections::BTreeMap;

use serde_json::json;
use talaria_agent::Sight;
use talaria_model::Secret;
use talaria_providers::{
    Chain, ChooseError, Chosen, Endpoint, Found, Wanted, Why, Wire, choose, must_look,
};

fn found(provider: &str, title: &str, port: u16, models: &[&str]) -> Found {
    Found {
        provider: provider.to_owned(),
        title: title.to_owned(),
        address: ([127, 0, 0, 1], port).into(),
        models: models.iter().map(|model| model.to_string()).collect(),
    }
}

fn ollama() -> Found {
    found("ollama", "Ollama", 11434, &["llama3.2:3b", "qwen/qwen3-8b"])
}

/// `NAME=value` pairs as an environment.
fn decide(wanted: &Wanted, environment: &[&str], here: &[Found]) -> Result<Chain, ChooseError> {
    let lookup = |name: &str| {
        environment.iter().find_map(|pair| {
            pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        })
    };
    // Whoever says that nobody needs to look must not change its mind when somebody does.
    if !must_look(wanted, &lookup) {
        let blind = choose(wanted, &lookup, &[]).map(|chain| show(&chain));
        assert_eq!(choose(wanted, &lookup, here).map(|chain| show(&chain)), blind);
    }
    choose(wanted, &lookup, here)
}

fn show_one(Chosen { wire, settings, why }: &Chosen) -> String {
    let key = settings.key.as_ref().map_or("no key", Secret::expose);
    let (provider, model, base_url) = (&settings.provider, &settings.model, &settings.base_url);
    format!("{provider}/{model} by {wire:?} at {base_url} with {key}: {why}")
}

fn show(chain: &Chain) -> String {
    std::iter::once(&chain.first).chain(&chain.then).map(show_one).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(wanted: &Wanted, environment: &[&str], here: &[Found], expect: &str) {
    assert_eq!(show(&decide(wanted, environment, here).unwrap()), expect);
}

fn model(name: &str) -> Wanted {
    Wanted { model: Some(name.to_owned()), ..Wanted::default() }
}

fn provider(name: &str, model: Option<&str>) -> Wanted {
    let model = model.map(str::to_owned);
    Wanted { provider: Some(name.to_owned()), model, ..Wanted::default() }
}

fn with(mut wanted: Wanted, name: &str, endpoint: Endpoint) -> Wanted {
    wanted.providers.insert(name.to_owned(), endpoint);
    wanted
}

const SONNET: &str = "anthropic/claude-sonnet-5 by Anthropic at https://api.anthropic.com with";

#[test]
fn with_nothing_at_all_the_demo_answers() {
    let expect = "demo/offline by Demo at  with no key: nothing else was found";
    check(&Wanted::default(), &[], &[], expect);
    check(&Wanted::default(), &["ANTHROPIC_API_KEY= "], &[], expect);
}

#[test]
fn a_key_in_the_environment_is_enough() {
    let nothing = Wanted::default();
    check(
        &nothing,
        &["ANTHROPIC_API_KEY=sk-a"],
        &[],
        &format!("{SONNET} sk-a: ANTHROPIC_API_KEY is set in the environment"),
    );
    check(
        &nothing,
        &["GOOGLE_API_KEY=g"],
        &[],
        "gemini/gemini-3.5-flash by OpenAi at \
         https://generativelanguage.googleapis.com/v1beta/openai with g: \
         GOOGLE_API_KEY is set in the environment",
    );
    check(
        &nothing,
        &["GROQ_API_KEY=q", "OPENAI_API_KEY=o", "OPENROUTER_API_KEY=r"],
        &[],
        "openai/gpt-5.5 by OpenAi at https://api.openai.com/v1 with o: \
         OPENAI_API_KEY is set in the environment",
    );
}

#[test]
fn an_address_in_the_environment_moves_a_provider() {
    check(
        &Wanted::default(),
        &["ANTHROPIC_BASE_URL=http://localhost:4000", "ANTHROPIC_API_KEY=k", "ANTHROPIC_MODEL=m"],
        &[],
        "anthropic/m by Anthropic at http://localhost:4000 with k: \
         ANTHROPIC_API_KEY is set in the environment",
    );
    check(
        &Wanted::default(),
        &["OPENAI_BASE_URL=http://localhost:9/v1", "OPENAI_MODEL=local"],
        &[],
        "openai/local by OpenAi at http://localhost:9/v1 with no key: \
         OPENAI_BASE_URL is set in the environment",
    );
}

#[test]
fn a_key_counts_more_than_a_server_here_and_a_server_more_than_the_demo() {
    let expect = "ollama/llama3.2:3b by OpenAi at http://127.0.0.1:11434/v1 with no key: \
                  Ollama answers on 127.0.0.1:11434";
    check(&Wanted::default(), &[], &[ollama()], expect);
    let why = "ANTHROPIC_API_KEY is set in the environment";
    check(&Wanted::default(), &["ANTHROPIC_API_KEY=k"], &[ollama()], &format!("{SONNET} k: {why}"));
    let vllm = found("vllm", "vLLM", 4321, &["m"]);
    check(
        &Wanted::default(),
        &[],
        &[vllm, ollama()],
        "vllm/m by OpenAi at http://127.0.0.1:4321/v1 with no key: vLLM answers on 127.0.0.1:4321",
    );
}

#[test]
fn the_configuration_counts_most() {
    let environment = &["ANTHROPIC_API_KEY=a", "GROQ_API_KEY=g"];
    let groq = "by OpenAi at https://api.groq.com/openai/v1 with g: it is set in the configuration";
    for (wanted, expect) in [
        (model("groq/llama-3.3-70b-versatile"), format!("groq/llama-3.3-70b-versatile {groq}")),
        (model("groq"), format!("groq/openai/gpt-oss-120b {groq}")),
        (provider("groq", None), format!("groq/openai/gpt-oss-120b {groq}")),
        (provider("groq", Some("qwen/qwen3-32b")), format!("groq/qwen/qwen3-32b {groq}")),
        (provider("groq", Some("groq/compound")), format!("groq/compound {groq}")),
        (
            model("claude-opus-5"),
            "anthropic/claude-opus-5 by Anthropic at https://api.anthropic.com with a: it is set in the configuration".to_owned(),
        ),
        (model("claude"), format!("{SONNET} a: it is set in the configuration")),
        (
            model("demo"),
            "demo/offline by Demo at  with no key: it is set in the configuration".to_owned(),
        ),
    ] {
        check(&wanted, environment, &[ollama()], &expect);
    }
}

#[test]
fn names_with_a_vendor_are_understood() {
    let at = "by OpenAi at https://openrouter.ai/api/v1 with r: it is set in the configuration";
    let environment = &["OPENROUTER_API_KEY=r"];
    for (wanted, expect) in [
        (model("openrouter/anthropic/claude-sonnet-4.6"), "anthropic/claude-sonnet-4.6"),
        (
            provider("openrouter", Some("anthropic/claude-sonnet-4.6")),
            "anthropic/claude-sonnet-4.6",
        ),
        (model("openrouter/auto"), "openrouter/auto"),
        (provider("openrouter", Some("openrouter/auto")), "openrouter/auto"),
        (model("mistralai/mistral-nemo"), "mistralai/mistral-nemo"),
        (model("some-open-model"), "some-open-model"),
    ] {
        check(&wanted, environment, &[], &format!("openrouter/{expect} {at}"));
    }
}

#[test]
fn a_model_that_a_server_here_has_is_found_by_its_name() {
    let why = "Ollama answers on 127.0.0.1:11434";
    for name in ["llama3.2:3b", "qwen/qwen3-8b"] {
        let expect =
            format!("ollama/{name} by OpenAi at http://127.0.0.1:11434/v1 with no key: {why}");
        check(&model(name), &["OPENROUTER_API_KEY=r"], &[ollama()], &expect);
    }
}

#[test]
fn a_server_here_can_be_named_and_need_not_run_if_the_model_is_said() {
    let why = "it is set in the configuration";
    check(
        &model("ollama/gemma3"),
        &[],
        &[],
        &format!("ollama/gemma3 by OpenAi at http://127.0.0.1:11434/v1 with no key: {why}"),
    );
    check(
        &provider("lm-studio", None),
        &[],
        &[found("lmstudio", "LM Studio", 4444, &["m"])],
        &format!("lmstudio/m by OpenAi at http://127.0.0.1:4444/v1 with no key: {why}"),
    );
    assert_eq!(
        decide(&model("vllm"), &[], &[]).err(),
        Some(ChooseError::MissingModel { provider: "vllm".to_owned() })
    );
}

#[test]
fn a_provider_of_ones_own_needs_an_address_and_a_model() {
    let own = Endpoint {
        base_url: Some("https://llm.example.org/v1".to_owned()),
        key_env: Some("WORK_KEY".to_owned()),
        ..Endpoint::default()
    };
    let work = with(model("work/big"), "work", own.clone());
    let expect = "work/big by OpenAi at https://llm.example.org/v1 with w: \
                  it is set in the configuration";
    check(&work, &["WORK_KEY=w"], &[], expect);
    assert_eq!(
        decide(&work, &[], &[]).err(),
        Some(ChooseError::MissingKey {
            provider: "work".to_owned(),
            variable: "WORK_KEY".to_owned()
        })
    );
    let nameless = with(model("work"), "work", Endpoint { key_env: None, ..own });
    assert_eq!(
        decide(&nameless, &[], &[]).err(),
        Some(ChooseError::MissingModel { provider: "work".to_owned() })
    );
    assert_eq!(
        decide(&with(model("work/big"), "work", Endpoint::default()), &[], &[]).err(),
        Some(ChooseError::MissingAddress { provider: "work".to_owned() })
    );
    let speaks = Endpoint {
        wire: Some(Wire::Anthropic),
        base_url: Some("http://localhost:1".to_owned()),
        key: Some(Secret::new("s")),
        model: Some("m".to_owned()),
        ..Endpoint::default()
    };
    check(
        &with(model("work"), "work", speaks),
        &[],
        &[],
        "work/m by Anthropic at http://localhost:1 with s: it is set in the configuration",
    );
}

#[test]
fn what_the_configuration_says_of_a_known_provider_is_added_to_what_is_known() {
    let Ok(serde_json::Value::Object(extra_body)) = Ok::<_, ()>(json!({ "safe_prompt": true }))
    else {
        unreachable!()
    };
    let headers = BTreeMap::from([("x-team".to_owned(), Secret::new("blue"))]);
    let tuned = Endpoint { headers, extra_body, context_window: Some(5), ..Endpoint::default() };
    let wanted = with(model("mistral"), "mistral", tuned);
    let chain = decide(&wanted, &["MISTRAL_API_KEY=k"], &[]).unwrap();
    let settings = chain.first.settings;
    assert_eq!(settings.headers["x-team"].expose(), "blue");
    assert_eq!(json!(settings.extra_body), json!({ "stream_options": null, "safe_prompt": true }));
    assert_eq!(settings.context_window, Some(5));
}

#[test]
fn a_provider_of_ones_own_may_have_somebodys_nickname() {
    let own = Endpoint { base_url: Some("http://kimi.local/v1".to_owned()), ..Endpoint::default() };
    check(
        &with(model("kimi/m"), "kimi", own),
        &["MOONSHOT_API_KEY=k"],
        &[],
        "kimi/m by OpenAi at http://kimi.local/v1 with no key: it is set in the configuration",
    );
}

#[test]
fn a_window_is_known_for_models_that_are_known() {
    let window = |name: &str| {
        let chain = decide(&model(name), &["ANTHROPIC_API_KEY=k"], &[]).unwrap();
        chain.first.settings.context_window
    };
    assert_eq!(window("anthropic"), Some(1_000_000));
    assert_eq!(window("anthropic/claude-haiku-4-5"), Some(200_000));
    assert_eq!(window("anthropic/claude-unheard-of"), None);
}

#[test]
fn a_name_that_nobody_knows_is_answered_with_the_nearest() {
    for (wanted, name, nearest) in [
        (model("antropic/claude-sonnet-5"), "antropic", Some("anthropic")),
        (provider("opnai", None), "opnai", Some("openai")),
        (provider("my-own-thing", None), "my-own-thing", None),
        (with(model("wrok/big"), "work", Endpoint::default()), "wrok", Some("work")),
    ] {
        let error = decide(&wanted, &[], &[]).err().unwrap();
        let nearest = nearest.map(str::to_owned);
        assert_eq!(error, ChooseError::UnknownProvider { name: name.to_owned(), nearest });
    }
    let error = decide(&provider("opnai", None), &[], &[]).err().unwrap();
    assert_eq!(error.to_string(), "there is no provider \"opnai\"");
    assert_eq!(error.hint(), "did you mean \"openai\"?");
}

#[test]
fn a_key_that_is_missing_is_named_with_both_its_places() {
    let error = decide(&model("openai/gpt-5.5"), &["ANTHROPIC_API_KEY=k"], &[]).err().unwrap();
    assert_eq!(error.to_string(), "there is no key for openai");
    assert_eq!(
        error.hint(),
        "set OPENAI_API_KEY in .env or in the environment, or providers.openai.api_key in config.yaml"
    );
}

#[test]
fn a_model_that_nobody_has_is_an_error() {
    let error = decide(&model("some-open-model"), &[], &[]).err().unwrap();
    assert_eq!(error, ChooseError::UnknownModel { model: "some-open-model".to_owned() });
    assert!(error.hint().contains("openrouter/some-open-model"));
}

#[test]
fn a_fallback_chain_is_chosen_like_the_first_one() {
    let wanted = Wanted {
        fallback: vec!["groq".to_owned(), "ollama/gemma3".to_owned()],
        ..model("anthropic")
    };
    let environment = &["ANTHROPIC_API_KEY=a", "GROQ_API_KEY=g"];
    let chain = decide(&wanted, environment, &[]).unwrap();
    let names: Vec<_> = chain.then.iter().map(|it| it.settings.provider.as_str()).collect();
    assert_eq!(names, ["groq", "ollama"]);
    let error = decide(&wanted, &["ANTHROPIC_API_KEY=a"], &[]).err().unwrap();
    assert!(matches!(error, ChooseError::MissingKey { .. }), "{error:?}");
}

#[test]
fn nobody_looks_around_when_the_answer_is_known() {
    let looks = |wanted: &Wanted, variable: &str| {
        must_look(wanted, &|name: &str| (name == variable).then(|| "x".to_owned()))
    };
    assert!(looks(&Wanted::default(), ""));
    assert!(looks(&model("ollama"), ""));
    assert!(looks(&model("some-open-model"), ""));
    assert!(!looks(&Wanted::default(), "GROQ_API_KEY"));
    assert!(!looks(&model("ollama/gemma3"), ""));
    assert!(!looks(&model("demo"), ""));
    assert!(!looks(&provider("opnai", None), ""));
}

#[test]
fn every_reason_is_a_plain_sentence() {
    let variable = "OPENAI_API_KEY".to_owned();
    assert_eq!(
        Why::KeyInEnvironment { variable }.to_string(),
        "OPENAI_API_KEY is set in the environment"
    );
}

#[test]
fn who_sees_pictures_is_known_or_said() {
    let sight = |wanted: &Wanted| {
        let environment = &["OPENAI_API_KEY=o", "GROQ_API_KEY=g"];
        decide(wanted, environment, &[]).unwrap().first.settings.sight
    };
    let said = |name: &str, sight| {
        let endpoint = Endpoint {
            base_url: Some("http://127.0.0.1:1234/v1".into()),
            model: Some("m".into()),
            sight,
            ..Endpoint::default()
        };
        Wanted { providers: BTreeMap::from([(name.to_owned(), endpoint)]), ..model(name) }
    };
    assert_eq!(sight(&model("openai")), Sight::Pictures);
    assert_eq!(sight(&model("groq")), Sight::TextOnly);
    assert_eq!(sight(&said("home", None)), Sight::TextOnly);
    assert_eq!(sight(&said("home", Some(Sight::Pictures))), Sight::Pictures);
    assert_eq!(sight(&said("openai", Some(Sight::TextOnly))), Sight::TextOnly);
}
