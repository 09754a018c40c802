//! The secrets of a configuration: as they are written, and as they are sent to whoever knows us by them.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use talaria_model::{Proxy, Secret};

use crate::environment::{Environment, Variable};
use crate::finding::Origin;
use crate::fit::{Held, Leaf};
use crate::settings::Config;

/// A shorter one guards nothing, and would be found in the middle of every other word.
const SHORTEST: usize = 4;

/// A variable of the environment may hold anything; what is shorter is more likely a word.
const SHORTEST_IN_ENVIRONMENT: usize = 8;

/// What the settings are called that say which proxy is asked.
const PROXY: &str = "proxy";

/// Those of settings, also of settings that others override.
pub(crate) fn in_settings(leaves: &[Leaf]) -> impl Iterator<Item = Secret> {
    let texts = leaves.iter().flat_map(|leaf| {
        let overridden = leaf.overridden.iter().map(|(_, value)| value);
        let mut texts = Vec::new();
        for value in overridden.chain([&leaf.value]) {
            if let Held::Hidden(secret) = value
                && let Ok(value) = serde_json::from_str(secret.expose())
            {
                collect_texts(value, &mut texts);
            }
        }
        // What names a proxy is rarely repeated as a whole.
        let addresses = texts.iter().filter(|text| text.contains("://"));
        let mut parts: Vec<_> = addresses.flat_map(|address| passwords(address)).collect();
        if last(&leaf.path).eq_ignore_ascii_case("authorization") {
            // Whoever refuses a key repeats it without the word that says what it is.
            let keys = texts.iter().filter_map(|text| text.trim().split_once(' '));
            parts.extend(keys.map(|(_, key)| key.to_owned()));
        }
        texts.extend(parts);
        texts
    });
    texts.filter_map(|text| guarding(&text, SHORTEST))
}

/// Those that are found in the environment, whatever they are for.
pub(crate) fn in_environment(environment: &Environment) -> impl Iterator<Item = Secret> {
    let is_secret = |(name, variable): &(&str, &Variable)| {
        let name = name.to_uppercase();
        let is_named = ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|it| name.contains(it));
        // What is kept in `.env` is kept there to be hidden, whatever its name is, but for who is let in: their ids
        // stand in records and logs.
        let is_hidden = !name.ends_with("_ALLOWED_USERS");
        is_named || (is_hidden && matches!(variable.origin, Origin::DotEnv { .. }))
    };
    let found = environment.iter().filter(is_secret);
    found.filter_map(|(_, variable)| guarding(variable.value.expose(), SHORTEST_IN_ENVIRONMENT))
}

/// The passwords of the proxies that the environment names, if any setting lets these count.
pub(crate) fn of_proxies(leaves: &[Leaf], environment: &Environment) -> Vec<Secret> {
    let counts = |leaf: &Leaf| {
        let says = |value: &Value| value.as_str() == Some(Proxy::Environment.text());
        last(&leaf.path) == PROXY && matches!(&leaf.value, Held::Shown(value) if says(value))
    };
    if !leaves.iter().any(counts) {
        return Vec::new();
    }
    // Both ways to write their names are common.
    let names_one = |name: &str| Proxy::VARIABLES.iter().any(|it| it.eq_ignore_ascii_case(name));
    let found = environment.iter().filter(|(name, _)| names_one(name));
    let found = found.flat_map(|(_, variable)| passwords(variable.value.expose()));
    found.filter_map(|text| guarding(&text, SHORTEST)).collect()
}

/// The keys of providers and of audio servers, wherever they are kept.
pub(crate) fn keys(config: &Config) -> impl Iterator<Item = Secret> {
    let (hears, speaks) = (&config.voice.transcribe.api_key, &config.voice.speak.api_key);
    let providers = config.providers.values().map(|provider| &provider.api_key);
    let keys = providers.chain([hears, speaks]).flatten();
    keys.filter_map(|key| guarding(key.expose(), SHORTEST))
}

/// What accounts are known by.
pub(crate) fn credentials(known: &[Secret]) -> impl Iterator<Item = Secret> {
    known.iter().filter_map(|secret| guarding(secret.expose(), SHORTEST))
}

/// A text as a secret, if it is long enough to be one. Blanks around it are not sent.
fn guarding(text: &str, shortest: usize) -> Option<Secret> {
    let text = text.trim();
    (text.len() >= shortest).then(|| Secret::new(text))
}

/// The password in the address of a proxy, as it is written there and as it is meant.
fn passwords(address: &str) -> Vec<String> {
    let credentials = Proxy::credentials(address);
    let Some((_, written)) = credentials.and_then(|credentials| credentials.split_once(':')) else {
        return Vec::new();
    };
    let meant = percent_decode_str(written).decode_utf8_lossy();
    vec![written.to_owned(), meant.into_owned()]
}

/// The last word of the name of a setting.
fn last(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, last)| last)
}

fn collect_texts(value: Value, texts: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => texts.push(number.to_string()),
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(map) => map.into_iter().for_each(|(_, value)| collect_texts(value, texts)),
    }
}
