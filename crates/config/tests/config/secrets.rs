//! No way of looking at a configuration shows a secret.

use talaria_config::{Problems, Sources, load};

use crate::{loaded, platforms, try_load};

const CANARY: &str = "canary-5d41402abc4b2a76";

fn check(what: &str, text: &str) {
    for word in [CANARY, "5d41402abc4b2a76"] {
        assert!(!text.contains(word), "{what} shows it: {text}");
    }
}

#[test]
fn what_is_right_does_not_show_it() {
    let yaml = format!(
        "
providers:
  p: {{api_key: {CANARY}1, headers: {{authorization: Bearer {CANARY}2}}}}
  q: {{api_key_env: Q_KEY}}
accounts:
  pigeon:
    token: {CANARY}3
    route: {{by: map, password: {CANARY}4}}
    roofs: [{{name: n, key: {CANARY}5}}]
    bags: {{left: {CANARY}6}}
    spare_keys: [{CANARY}7]
  owl: {{password: wise-{CANARY}}}
"
    );
    let sources = Sources::default()
        .with_config(yaml.as_str())
        .with_dotenv(format!("Q_KEY={CANARY}\nTALARIA_ACCOUNTS__PIGEON__TOKEN={CANARY}8"))
        .with_variable(
            "TALARIA_ACCOUNTS__PIGEON__ROUTE",
            format!("{{by: map, password: {CANARY}9}}"),
        );
    check("debug of sources", &format!("{sources:?}"));
    let loaded = load(sources, &platforms::ALL).expect("right");
    check("debug", &format!("{loaded:?} {:#?}", loaded.config()));
    check(
        "environment",
        &format!("{:?} {:?}", loaded.environment(), loaded.environment().get("Q_KEY")),
    );
    check("warnings", &format!("{:?}", loaded.warnings()));
    for line in loaded.show() {
        check("show", &format!("{line} {line:?} {}", serde_json::to_string(&line).expect("data")));
        let explanation = loaded.explain(&line.path).expect("a setting");
        let json = serde_json::to_string(&explanation).expect("data");
        check("explain", &format!("{explanation} {explanation:?} {json}"));
    }
    let (_, changes) = loaded.reload(Sources::default()).expect("right");
    check("changes", &format!("{changes:?} {}", serde_json::to_string(&changes).expect("data")));
    assert!(changes.len() > 10);
}

#[test]
fn who_is_let_in_is_no_secret_wherever_it_is_kept() {
    let dotenv = "TELEGRAM_ALLOWED_USERS=123456789\nNEIGHBOURS=987654321";
    let sources = Sources::default().with_config("{}").with_dotenv(dotenv);
    let redactor = load(sources, &platforms::ALL).expect("right").redactor();
    assert_eq!(redactor.clean("123456789 and 987654321"), "123456789 and (hidden)");
}

#[test]
fn what_is_wrong_does_not_show_it() {
    let check_problems = |yaml: &str, variables: &[&str]| {
        let problems: Problems = match try_load(yaml, variables) {
            Err(problems) => problems,
            Ok(loaded) => return check(yaml, &format!("{:?}", loaded.warnings())),
        };
        let json = serde_json::to_string(&problems).expect("data");
        check(yaml, &format!("{problems} {problems:?} {json}"));
    };
    for yaml in [
        "providers: {p: {api_key: [CANARY]}}",
        "providers: {p: {api_key: {CANARY: 1}}}",
        "providers: {p: {headers: CANARY}}",
        "providers: {p: {headers: {a: [CANARY]}}}",
        "providers: {p: {headers: {a: \"CANARY\\n\"}}}",
        "providers: {p: {base_url: 'https://user:CANARY@example.com/v1'}}",
        "providers: {p: {base_url: 'user:CANARY@example com'}}",
        "providers: {p: CANARY}",
        "providers: CANARY",
        "accounts: {pigeon: CANARY}",
        "accounts: {pigeon: {token: [CANARY]}}",
        "accounts: {pigeon: {tokn: CANARY}}",
        "accounts: {pigeon: {token: t, spare_keys: CANARY}}",
        "accounts: {pigeon: {token: t, spare_keys: [[CANARY]]}}",
        "accounts: {pigeon: {token: t, roofs: [{name: n, key: [CANARY]}]}}",
        "accounts: {pigeon: {token: t, roofs: CANARY}}",
        "accounts: {pigeon: {token: t, route: {by: map, password: [CANARY]}}}",
        "accounts: {pigeon: {token: t, route: {password: CANARY}}}",
        "accounts: {pigeon: {token: t, route: {by: hope, password: CANARY}}}",
        "accounts: {owl: {password: foolish-CANARY}}",
        "providers: {p: {api_key: CANARY}}\naccounts: {pigeon: {token: CANARY}}",
        "unknown: CANARY",
        "CANARY",
        "- CANARY",
        "providers:\n  p:\n    api_key: CANARY: x",
        "providers:\n  p:\n    api_key: 'CANARY",
        "providers:\n  p:\n    api_key: \"CANARY\"CANARY",
        "providers:\n  p:\n    api_key: CANARY\n   oops: CANARY\n",
        "api_key: !CANARY x",
        "api_key: &CANARY *CANARY",
        "api_key: *CANARY",
        "\tCANARY",
        "%CANARY",
    ] {
        check_problems(&yaml.replace("CANARY", CANARY), &[]);
    }
    for variable in [
        "TALARIA_PROVIDERS={p: {api_key: [CANARY]}}",
        "TALARIA_PROVIDERS={p: CANARY",
        "TALARIA_PROVIDERS=CANARY",
        "TALARIA_PROVIDERS__P__HEADERS={a: b: CANARY}",
        "TALARIA_PROVIDERS__P__HEADERS__X=CANARY",
        "TALARIA_PROVIDERS__P__KEY=CANARY",
        "TALARIA_ACCOUNTS__OWL__PASSWORD=CANARY",
        "TALARIA_ACCOUNTS__PIGEON=CANARY",
    ] {
        check_problems("", &[&variable.replace("CANARY", CANARY)]);
    }
}

#[test]
fn a_broken_env_file_does_not_show_it() {
    for text in ["CANARY", "A B=CANARY", "A=\"CANARY", "A='CANARY' CANARY", "A=${CANARY}"] {
        let sources = Sources::default().with_dotenv(text.replace("CANARY", CANARY));
        match load(sources, &platforms::ALL) {
            Ok(loaded) => check(text, &format!("{:?}", loaded.warnings())),
            Err(problems) => check(text, &format!("{problems} {problems:?}")),
        }
    }
}

#[test]
fn a_value_that_is_no_secret_is_shown() {
    let loaded = loaded("providers: {p: {base_url: 'https://example.com/v1'}}", &[]);
    let line = loaded.show().into_iter().find(|line| line.path == "providers.p.base_url");
    assert_eq!(line.map(|line| line.value.to_string()).as_deref(), Some("https://example.com/v1"));
}

#[test]
fn a_text_is_shown_without_the_secrets_that_it_repeats() {
    let sources = Sources::default()
        .with_config("providers: {p: {api_key: from-the-file}}")
        .with_dotenv("SOMETHING=kept-in-dotenv")
        .with_variable("OPENAI_API_KEY", "from-the-process")
        .with_variable("EDITOR", "a-plain-editor");
    let loaded = load(sources, &platforms::ALL).expect("right");
    assert_eq!(
        loaded.redact("from-the-file kept-in-dotenv from-the-process a-plain-editor"),
        "(hidden) (hidden) (hidden) a-plain-editor"
    );
}

#[test]
fn each_credential_of_an_account_is_hidden_as_its_platform_is_shown_it() {
    let said = "left-ring right-ring lone-ring";
    for enabled in [true, false] {
        let yaml = format!(
            "accounts:\n  pigeon: {{enabled: {enabled}, token: 'left-ring, right-ring'}}\n  \
             dove: {{enabled: {enabled}, platform: pigeon, token: +lone-ring}}"
        );
        assert_eq!(loaded(&yaml, &[]).redact(said), "(hidden) (hidden) (hidden)", "{yaml}");
    }
}

#[test]
fn a_key_is_hidden_wherever_it_is_kept() {
    let yaml = "
providers: {p: {api_key_env: MYLLM_AUTH}}
voice:
  transcribe: {base_url: 'https://audio.example/v1', api_key_env: EARS}
  speak: {base_url: 'https://audio.example/v1', api_key_env: MOUTH}
";
    let variables = ["MYLLM_AUTH=llm-1", "EARS=ears-1", "MOUTH=mouth-1", "EDITOR=a-plain-editor"];
    let loaded = loaded(yaml, &variables);
    assert_eq!(
        loaded.redact("llm-1 ears-1 mouth-1 a-plain-editor"),
        "(hidden) (hidden) (hidden) a-plain-editor"
    );
}

#[test]
fn what_stands_around_a_secret_does_not_keep_it_from_being_hidden() {
    let yaml = r#"
providers:
  p: {api_key: '  padded-key ', headers: {Authorization: Bearer header-key, x-title: My Talaria}}
accounts: {owl: {password: "wise-owl\n"}}
"#;
    let loaded = loaded(yaml, &["ODD_TOKEN=\tpadded-token\n"]);
    assert_eq!(
        loaded.redact("padded-key header-key wise-owl padded-token"),
        "(hidden) (hidden) (hidden) (hidden)"
    );
    assert_eq!(loaded.redact("it is My Talaria, my Talaria"), "it is (hidden), my Talaria");
}

#[test]
fn a_secret_that_another_one_overrides_is_hidden_too() {
    let loaded = loaded(
        "providers: {p: {api_key: from-the-file}}",
        &["TALARIA_PROVIDERS__P__API_KEY=used-instead"],
    );
    assert_eq!(loaded.redact("from-the-file used-instead"), "(hidden) (hidden)");
}
