//! The JSON Schema of a whole `config.yaml`: our own declarations and every platform's.

use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::{Map, Value, json};
use talaria_platform::{Identity, Registration};

use crate::conventions::{Convention, conventions};
use crate::settings::{AccountKeys, Config};
use crate::units::PRICE;

/// When a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Applies {
    /// As soon as the configuration is read again.
    Live,
    /// When its account is connected anew, which happens when the configuration is read again.
    Account,
    /// When the gateway is started again.
    Restart,
}

/// The JSON Schema of `config.yaml`, for editors and for `docs/config.schema.json`. The same
/// registrations give the same bytes.
pub fn schema(registrations: &[Registration]) -> Value {
    let mut document = Document::new(registrations).root;
    for registration in registrations {
        let account = &mut document["$defs"][registration.spec.name];
        // Ids that are numbers are read as they are spelled, and usually written without quotes.
        for ids in [
            "allow",
            "allow_from",
            "group_allow_from",
            "free_response_chats",
            "allowed_chats",
            "ignored_chats",
            "allow_admin_from",
            "group_allow_admin_from",
        ] {
            account["properties"][ids]["items"]["type"] = json!(["string", "integer"]);
        }
        // What a platform requires may as well come from the environment, which an editor does not
        // see.
        if let Some(account) = account.as_object_mut() {
            account.shift_remove("required");
        }
    }
    strip(&mut document, "x-synonyms");
    allow_numbers(&mut document);
    document
}

/// Prices are read as they are spelled, and usually written as numbers.
fn allow_numbers(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("format").is_some_and(|format| format == PRICE) {
                let types = map.get("type").cloned().unwrap_or_default();
                let types = types.as_array().cloned().unwrap_or_else(|| vec![types]);
                map.insert("type".into(), types.into_iter().chain([json!("number")]).collect());
            }
            map.values_mut().for_each(allow_numbers);
        }
        Value::Array(items) => items.iter_mut().for_each(allow_numbers),
        _ => {}
    }
}

/// How accounts and providers may be named, so that a name fits into a URL, a key and a variable.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= LONGEST_NAME
        && name.starts_with(is_plain)
        && name.chars().all(|c| is_plain(c) || c == '-' || c == '_')
}

const NAME_PATTERN: &str = "^[a-z0-9][a-z0-9_-]{0,63}$";
const LONGEST_NAME: usize = 64;

/// The schema that everything in this crate reads.
pub(crate) struct Document {
    pub(crate) root: Value,
    /// The names of the platforms there are.
    pub(crate) platforms: Vec<&'static str>,
    /// What every account has.
    pub(crate) account_keys: Value,
    /// Variables that platforms are known by.
    pub(crate) conventions: Vec<Convention>,
}

impl Document {
    pub(crate) fn new(registrations: &[Registration]) -> Self {
        let mut root = object_schema::<Config>();
        let mut definitions = take_object(&mut root, "$defs");
        definitions.extend(take_object(&mut object_schema::<AccountKeys>(), "$defs"));
        for registration in registrations {
            definitions.insert(registration.spec.name.to_owned(), account(registration));
        }
        let mut properties = Map::new();
        for (name, property) in take_object(&mut root, "properties") {
            let is_providers = name == "providers";
            properties.insert(name, property);
            if is_providers {
                properties.insert("accounts".to_owned(), accounts(registrations));
            }
        }
        for named in ["providers", "quick_commands"] {
            properties[named]["propertyNames"] = json!({ "pattern": NAME_PATTERN });
        }
        let mut root = json!({
            "$schema": root["$schema"],
            "title": "Talaria configuration",
            "description": root["description"],
            "type": "object",
            "properties": properties,
            "patternProperties": { "^x-": true },
            "additionalProperties": false,
            "$defs": definitions,
        });
        drop_null_defaults(&mut root);
        let mut account_keys = object_schema::<AccountKeys>();
        drop_null_defaults(&mut account_keys);
        let platforms = registrations.iter().map(|known| known.spec.name).collect();
        Self { root, platforms, account_keys, conventions: conventions(registrations) }
    }

    /// The schema of an account on this platform.
    pub(crate) fn account(&self, platform: &str) -> Option<&Value> {
        self.platforms.contains(&platform).then(|| &self.root["$defs"][platform])
    }

    /// The variable by which a setting is known everywhere.
    pub(crate) fn convention(&self, path: &str) -> Option<&str> {
        let is_meant = |known: &&Convention| known.path() == path;
        self.conventions.iter().find(is_meant).map(|known| known.variable.as_str())
    }

    /// What a `$ref` points to.
    pub(crate) fn resolve(&self, reference: &str) -> Option<&Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn object_schema<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}

fn take_object(schema: &mut Value, key: &str) -> Map<String, Value> {
    match schema.get_mut(key).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// All accounts: by the name of a platform, or by any name with the platform beside it.
fn accounts(registrations: &[Registration]) -> Value {
    let reference = |registration: &Registration| format!("#/$defs/{}", registration.spec.name);
    let named: Map<String, Value> = registrations
        .iter()
        .map(|known| (known.spec.name.to_owned(), json!({ "$ref": reference(known) })))
        .collect();
    let others: Vec<Value> = registrations
        .iter()
        .map(|known| json!({ "$ref": reference(known), "required": ["platform"] }))
        .collect();
    let mut schema = json!({
        "description": "The connections to messaging platforms, by a name of your choice. An \
                        account named like its platform needs no `platform`.",
        "type": "object",
        "x-synonyms": ["platforms", "channels"],
        "propertyNames": { "pattern": NAME_PATTERN },
        "properties": named,
    });
    schema["additionalProperties"] =
        if others.is_empty() { json!(false) } else { json!({ "oneOf": others }) };
    schema
}

/// One account: what every account has, then what the platform wants to know.
fn account(registration: &Registration) -> Value {
    let spec = &registration.spec;
    let mut settings = (registration.schema)().to_value();
    if !settings.is_object() {
        settings = json!({ "type": "object" });
    }
    let home = format!("#/$defs/{}", spec.name);
    relocate(&mut settings, &home);
    let mut properties = take_object(&mut object_schema::<AccountKeys>(), "properties");
    properties["platform"]["type"] = json!("string");
    properties["platform"]["const"] = json!(spec.name);
    properties["platform"]["default"] = json!(spec.name);
    for (name, property) in take_object(&mut settings, "properties") {
        properties.entry(name).or_insert(property);
    }
    let mut account = json!({
        "title": spec.label,
        "description": spec.about,
        "type": "object",
        // What an operator sees of all accounts is built around those that are the operator's own.
        "x-applies": match spec.identity {
            Identity::Operator => "restart",
            Identity::Anyone => "account",
        },
        "properties": properties,
    });
    if let (Some(account), Value::Object(settings)) = (account.as_object_mut(), settings) {
        for (keyword, value) in settings {
            if keyword != "$schema" && keyword != "properties" {
                account.entry(keyword).or_insert(value);
            }
        }
    }
    account
}

/// Moves the references of a schema that becomes part of another one.
fn relocate(schema: &mut Value, home: &str) {
    match schema {
        Value::Object(map) => {
            for (keyword, value) in map.iter_mut() {
                match value {
                    Value::String(reference) if keyword == "$ref" => {
                        if let Some(local) = reference.strip_prefix('#') {
                            *reference = format!("{home}{local}");
                        }
                    }
                    other => relocate(other, home),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relocate(item, home)),
        _ => {}
    }
}

/// A setting that is not set by default has no default worth printing.
fn drop_null_defaults(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("default").is_some_and(Value::is_null) {
                map.shift_remove("default");
            }
            map.values_mut().for_each(drop_null_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null_defaults),
        _ => {}
    }
}

fn strip(schema: &mut Value, keyword: &str) {
    match schema {
        Value::Object(map) => {
            map.shift_remove(keyword);
            map.values_mut().for_each(|value| strip(value, keyword));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, keyword)),
        _ => {}
    }
}
