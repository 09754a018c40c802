//! The schema and the reference, which are committed and read by people.

use serde_json::{Value, json};
use talaria_config::{reference, schema};

use crate::loaded;
use crate::platforms::ALL;

/// What a new user copies first.
#[test]
fn the_configuration_in_the_readme_is_right_without_the_key_that_it_does_not_need() {
    let readme = include_str!("../../../../README.md");
    let (_, block) = readme.split_once("```yaml\n").expect("a block of YAML");
    let (yaml, _) = block.split_once("```").expect("its end");
    let loaded = loaded(yaml, &["ANTHROPIC_API_KEY=k", "OPENROUTER_API_KEY=k"]);
    let [warning] = loaded.warnings() else { panic!("{:?}", loaded.warnings()) };
    assert!(warning.to_string().contains("HOME_SERVER_KEY"), "{warning}");
}

#[test]
fn the_schema_has_every_setting_and_every_platform() {
    let schema = schema(&ALL);
    let text = |pointer: &str| schema.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(text("/properties/model/minLength"), json!(1));
    assert_eq!(text("/$defs/AgentSettings/properties/turn_limit/default"), json!("30m"));
    assert_eq!(text("/$defs/Secret/writeOnly"), json!(true));
    assert_eq!(text("/properties/accounts/properties/pigeon/$ref"), json!("#/$defs/pigeon"));
    assert_eq!(text("/$defs/pigeon/title"), json!("Carrier pigeon"));
    assert_eq!(text("/$defs/pigeon/properties/platform/const"), json!("pigeon"));
    assert_eq!(text("/$defs/pigeon/properties/token/$ref"), json!("#/$defs/pigeon/$defs/Secret"));
    assert_eq!(text("/$defs/pigeon/required"), Value::Null, "the environment may have it");
    let input = text("/$defs/PriceSettings/properties/input/type");
    assert_eq!(input, json!(["string", "number"]), "a price is written as a number");
    let kinds = text("/properties/reset_by_type/propertyNames/enum");
    assert_eq!(kinds, json!(["dm", "group", "channel", "thread", "forum"]));
    assert_eq!(
        text("/properties/accounts/additionalProperties/oneOf/1"),
        json!({ "$ref": "#/$defs/pigeon", "required": ["platform"] })
    );
    let names: Vec<&String> =
        schema["properties"].as_object().expect("properties").keys().collect();
    let expected = [
        "model",
        "fallback",
        "providers",
        "accounts",
        "prices",
        "watch_config",
        "timezone",
        "session_store_max_age_days",
        "entry_max_age_days",
        "access",
        "people",
        "roles",
        "destinations",
        "budgets",
        "agent",
        "approvals",
        "compression",
        "group_sessions_per_user",
        "thread_sessions_per_user",
        "streaming",
        "display",
        "sessions",
        "session_reset",
        "reset_by_type",
        "quick_commands",
        "privacy",
        "http",
        "network",
        "files",
        "voice",
        "log",
        "telemetry",
        "limits",
    ];
    assert_eq!(names, expected);
}

#[test]
fn every_reference_leads_somewhere() {
    fn check(root: &Value, schema: &Value) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    let target = reference.strip_prefix('#').and_then(|path| root.pointer(path));
                    assert!(target.is_some(), "{reference} leads nowhere");
                }
                map.values().for_each(|value| check(root, value));
            }
            Value::Array(items) => items.iter().for_each(|item| check(root, item)),
            _ => {}
        }
    }
    let schema = schema(&ALL);
    check(&schema, &schema);
}

#[test]
fn the_same_registrations_give_the_same_bytes() {
    assert_eq!(schema(&ALL).to_string(), schema(&ALL).to_string());
    assert_eq!(reference(&ALL), reference(&ALL));
    assert!(!schema(&ALL).to_string().contains("x-synonyms"), "those are for us");
}

#[test]
fn a_gateway_without_platforms_has_a_schema() {
    assert_eq!(schema(&[])["properties"]["accounts"]["additionalProperties"], json!(false));
    talaria_config::load(talaria_config::Sources::default(), &[]).expect("right");
}

#[test]
fn the_reference_tells_everything_once() {
    let page = reference(&ALL);
    for part in [
        "\n## General\n\n### `model`\n\ntext · `TALARIA_MODEL` · applies at once\n\nThe model that answers",
        "\n### `agent.turn_limit`\n\nduration, like 30s, 5m or 2h · default `30m` · `TALARIA_AGENT__TURN_LIMIT`\n\nHow long",
        "\n#### `providers.<name>.headers`\n\nsecrets by name · `TALARIA_PROVIDERS__<NAME>__HEADERS` · applies at once\n",
        "\n### Every account: `accounts.<name>`\n",
        "\n### Carrier pigeon: `accounts.pigeon`\n\nBirds that carry messages.\n",
        "\n#### `accounts.pigeon.token`\n\nsecret · required · `TALARIA_ACCOUNTS__PIGEON__TOKEN`\n",
        "\n#### `accounts.pigeon.route`\n\nsettings with `by` one of sight, map · ",
        "\n- `json`: For programs: one JSON object a line.\n",
        "\n##### `accounts.<name>.session_reset.mode`\n\none of both, idle, daily, none · `TALARIA_ACCOUNTS__<NAME>__SESSION_RESET__MODE`\n",
        "\n#### `prices.<name>.input`\n\nUS dollars, like 2.50 · required · `TALARIA_PRICES__<NAME>__INPUT` · applies at once\n",
        "\n### `quick_commands`\n\nsettings with `type` one of alias, exec by name · `TALARIA_QUICK_COMMANDS`\n",
        "\n### `timezone`\n\ntime zone, like Europe/Berlin · `TALARIA_TIMEZONE`\n",
        "\n### `compression.threshold`\n\nnumber from 0.1 to 0.8 · default `0.5` · ",
    ] {
        assert_eq!(page.matches(part).count(), 1, "{part:?} in\n{page}");
    }
    assert!(!page.contains("accounts.pigeon.allow"), "what every account has is told once");
    assert!(!page.contains("\n\n\n"), "no empty paragraphs");
}
