//! What a schema asks of a value, with references, options and alternatives looked through.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use talaria_model::Proxy;

use crate::schema::{Applies, Document};
use crate::units;
use crate::yaml::{Body, Node};

/// Deeper than any schema we know nests its references; a schema that refers to itself ends here.
const DEEPEST_REFERENCE: usize = 16;

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    List,
    /// Settings below it, by known names or by names of the user's choice.
    Section,
    /// Whatever its owner makes of it.
    Anything,
}

/// Which names of the user's choice there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Names<'a> {
    /// Whatever YAML can spell.
    Any,
    /// Those that can be used as names elsewhere.
    Plain,
    /// These.
    OneOf(Vec<&'a str>),
}

/// All that a schema says about one value: the schema itself and what it refers to, outermost first.
pub(crate) struct Shape<'a> {
    parts: Vec<&'a Map<String, Value>>,
    /// What it may be instead, when nothing tells which of them is meant.
    alternatives: Vec<&'a Value>,
}

impl Document {
    /// Looks through a schema. The value helps to choose among alternatives that are told apart by a
    /// fixed key.
    pub(crate) fn shape<'a>(&'a self, schema: &'a Value, node: Option<&Node>) -> Shape<'a> {
        let mut shape = Shape { parts: Vec::new(), alternatives: Vec::new() };
        self.collect(schema, node, &mut shape, 0);
        shape
    }

    fn collect<'a>(
        &'a self,
        schema: &'a Value,
        node: Option<&Node>,
        shape: &mut Shape<'a>,
        depth: usize,
    ) {
        let Value::Object(map) = schema else { return };
        if depth > DEEPEST_REFERENCE {
            shape.alternatives.push(schema);
            return;
        }
        shape.parts.push(map);
        if let Some(target) =
            map.get("$ref").and_then(Value::as_str).and_then(|reference| self.resolve(reference))
        {
            self.collect(target, node, shape, depth + 1);
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.collect(part, node, shape, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(branches) = map.get(keyword).and_then(Value::as_array) else { continue };
            let branches: Vec<&Value> =
                branches.iter().filter(|branch| branch["type"] != "null").collect();
            match branches.as_slice() {
                [] => {}
                [only] => self.collect(only, node, shape, depth + 1),
                several if several.iter().all(|branch| !fixed_texts(branch).is_empty()) => {}
                several => {
                    let mut meant =
                        several.iter().filter(|branch| self.is_meant(branch, node, depth + 1));
                    match (meant.next(), meant.next()) {
                        (Some(branch), None) => self.collect(branch, node, shape, depth + 1),
                        _ => shape.alternatives.extend(several),
                    }
                }
            }
        }
    }

    /// Whether a value carries the fixed keys of an alternative.
    fn is_meant(&self, branch: &Value, node: Option<&Node>, depth: usize) -> bool {
        let mut shape = Shape { parts: Vec::new(), alternatives: Vec::new() };
        self.collect(branch, None, &mut shape, depth);
        let fixed = shape.fixed_keys();
        !fixed.is_empty()
            && fixed.iter().all(|(name, texts)| {
                match node.and_then(|node| node.get(name)).map(|child| &child.body) {
                    Some(Body::Scalar(scalar)) => texts.contains(&scalar.text.as_str()),
                    _ => false,
                }
            })
    }

    /// Whether a value of this schema is, or may contain, a secret.
    pub(crate) fn mentions_secret(&self, schema: &Value) -> bool {
        self.search_secret(schema, &mut BTreeSet::new())
    }

    fn search_secret<'a>(&'a self, schema: &'a Value, seen: &mut BTreeSet<&'a str>) -> bool {
        match schema {
            Value::Object(map) => map.iter().any(|(keyword, value)| match value {
                Value::Bool(true) if keyword == "writeOnly" => true,
                Value::String(reference) if keyword == "$ref" => {
                    seen.insert(reference)
                        && self
                            .resolve(reference)
                            .is_some_and(|target| self.search_secret(target, seen))
                }
                // Definitions count where they are referred to.
                _ if keyword == "$defs" => false,
                other => self.search_secret(other, seen),
            }),
            Value::Array(items) => items.iter().any(|item| self.search_secret(item, seen)),
            _ => false,
        }
    }
}

/// The texts a schema accepts, if it accepts only these.
fn fixed_texts(schema: &Value) -> Vec<&str> {
    if let Some(text) = schema["const"].as_str() {
        return vec![text];
    }
    schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

impl<'a> Shape<'a> {
    fn first(&self, keyword: &str) -> Option<&'a Value> {
        self.parts.iter().find_map(|part| part.get(keyword))
    }

    pub(crate) fn kind(&self) -> Kind {
        if !self.choices().is_empty() {
            return Kind::Text;
        }
        let types: Vec<&str> = match self.first("type") {
            Some(Value::String(only)) => vec![only.as_str()],
            Some(Value::Array(several)) => {
                several.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect()
            }
            _ => Vec::new(),
        };
        match types.as_slice() {
            _ if !self.alternatives.is_empty() => Kind::Anything,
            ["string"] => Kind::Text,
            ["integer"] => Kind::Integer,
            ["number"] => Kind::Number,
            ["boolean"] => Kind::Boolean,
            ["array"] => Kind::List,
            ["object"] if self.is_free() => Kind::Anything,
            ["object"] => Kind::Section,
            _ => Kind::Anything,
        }
    }

    /// Settings whose names and values nobody has declared.
    fn is_free(&self) -> bool {
        self.properties().is_empty() && !self.rest().is_some_and(Value::is_object)
    }

    /// Whether it must have settings below it, even if nobody has declared which.
    pub(crate) fn is_object(&self) -> bool {
        self.first("type").is_some_and(|name| name == "object")
    }

    /// The texts it is limited to.
    pub(crate) fn choices(&self) -> Vec<&'a str> {
        let alternatives = |keyword| {
            self.first(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .flat_map(fixed_texts)
        };
        let fixed: Vec<&str> = self
            .parts
            .iter()
            .flat_map(|part| {
                let constant = part.get("const").and_then(Value::as_str);
                let several = part.get("enum").and_then(Value::as_array).into_iter().flatten();
                constant.into_iter().chain(several.filter_map(Value::as_str))
            })
            .collect();
        if !fixed.is_empty() {
            return fixed;
        }
        if self.first("type").is_some_and(|name| name == "object") {
            return Vec::new();
        }
        alternatives("oneOf").chain(alternatives("anyOf")).collect()
    }

    /// The texts it is limited to, as far as it is said what each of them means.
    pub(crate) fn explained_choices(&self) -> Vec<(&'a str, &'a str)> {
        self.parts
            .iter()
            .filter_map(|part| part.get("oneOf").and_then(Value::as_array))
            .flatten()
            .filter_map(|branch| Some((branch["const"].as_str()?, branch["description"].as_str()?)))
            .collect()
    }

    pub(crate) fn format(&self) -> Option<&'a str> {
        self.first("format").and_then(Value::as_str)
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.parts.iter().any(|part| part.get("writeOnly") == Some(&Value::Bool(true)))
    }

    pub(crate) fn may_be_empty(&self) -> bool {
        self.first("minLength").and_then(Value::as_u64).is_none_or(|length| length == 0)
    }

    /// The smallest and largest number, as far as they are limited.
    pub(crate) fn range(&self) -> (Option<i128>, Option<i128>) {
        let number = |keyword| {
            self.first(keyword).and_then(|value| {
                value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
            })
        };
        let (least, most) = match self.format() {
            Some("uint8") => (0, u8::MAX.into()),
            Some("uint16") => (0, u16::MAX.into()),
            Some("uint32") => (0, u32::MAX.into()),
            Some("uint" | "uint64") => (0, u64::MAX.into()),
            Some("int8") => (i8::MIN.into(), i8::MAX.into()),
            Some("int16") => (i16::MIN.into(), i16::MAX.into()),
            Some("int32") => (i32::MIN.into(), i32::MAX.into()),
            _ => (i64::MIN.into(), i64::MAX.into()),
        };
        (number("minimum").or(Some(least)), number("maximum").or(Some(most)))
    }

    /// The smallest and largest number, as far as a number with decimals is limited.
    pub(crate) fn limits(&self) -> (Option<f64>, Option<f64>) {
        let number = |keyword| self.first(keyword).and_then(Value::as_f64);
        (number("minimum"), number("maximum"))
    }

    /// The settings below it that have names of their own, in the order of their declaration.
    pub(crate) fn properties(&self) -> Vec<(&'a str, &'a Value)> {
        let mut properties: Vec<(&str, &Value)> = Vec::new();
        for part in &self.parts {
            let declared = part.get("properties").and_then(Value::as_object).into_iter().flatten();
            for (name, schema) in declared {
                if !properties.iter().any(|(known, _)| known == name) {
                    properties.push((name, schema));
                }
            }
        }
        properties
    }

    /// The setting of this name below it, in whatever it may turn out to be.
    pub(crate) fn declared(&self, document: &'a Document, key: &str) -> Option<&'a Value> {
        let alternatives =
            self.alternatives.iter().flat_map(|branch| document.shape(branch, None).properties());
        let mut properties = self.properties().into_iter().chain(alternatives);
        properties.find(|(name, _)| *name == key).map(|(_, schema)| schema)
    }

    /// The settings below it that can have only certain texts.
    fn fixed_keys(&self) -> Vec<(&'a str, Vec<&'a str>)> {
        let texts = |(name, property): (&'a str, &'a Value)| (name, fixed_texts(property));
        self.properties().into_iter().map(texts).filter(|(_, texts)| !texts.is_empty()).collect()
    }

    /// Whether it is a map from names of the user's choice to plain values.
    pub(crate) fn is_plain_map(&self, document: &Document) -> bool {
        self.properties().is_empty()
            && self.rest().is_some_and(|rest| document.shape(rest, None).kind() != Kind::Section)
    }

    pub(crate) fn required(&self) -> Vec<&'a str> {
        self.parts
            .iter()
            .flat_map(|part| part.get("required").and_then(Value::as_array).into_iter().flatten())
            .filter_map(Value::as_str)
            .collect()
    }

    /// The schema of settings with names of the user's choice, if there may be any.
    pub(crate) fn rest(&self) -> Option<&'a Value> {
        self.first("additionalProperties").filter(|rest| !matches!(rest, Value::Bool(false)))
    }

    /// What names of the user's choice there may be.
    pub(crate) fn names(&self) -> Names<'a> {
        match self.first("propertyNames") {
            None => Names::Any,
            Some(names) => match fixed_texts(names) {
                several if several.is_empty() => Names::Plain,
                several => Names::OneOf(several),
            },
        }
    }

    pub(crate) fn items(&self) -> &'a Value {
        self.first("items").unwrap_or(&Value::Bool(true))
    }

    pub(crate) fn default(&self) -> Option<&'a Value> {
        self.first("default")
    }

    pub(crate) fn title(&self) -> Option<&'a str> {
        self.first("title").and_then(Value::as_str)
    }

    /// What it is for.
    pub(crate) fn help(&self) -> &'a str {
        self.first("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// When a change takes effect, if this is the place that says so.
    pub(crate) fn applies(&self) -> Option<Applies> {
        match self.first("x-applies").and_then(Value::as_str)? {
            "live" => Some(Applies::Live),
            "account" => Some(Applies::Account),
            _ => Some(Applies::Restart),
        }
    }

    /// What it takes, in words.
    pub(crate) fn describe(&self, document: &Document) -> String {
        match self.kind() {
            Kind::Text if self.is_secret() => "secret".into(),
            Kind::Text => match (self.choices().as_slice(), self.format()) {
                ([], Some(units::DURATION)) => "duration, like 30s, 5m or 2h".into(),
                ([], Some(units::SIZE)) => "size, like 25MB or 2GB".into(),
                ([], Some(units::LISTEN)) => "address and port".into(),
                ([], Some(units::ZONE)) => "time zone, like Europe/Berlin".into(),
                ([], Some(units::PRICE)) => "US dollars, like 2.50".into(),
                ([], Some(Proxy::FORMAT)) => {
                    "the address of a proxy, like http://proxy.example.com:3128, environment or none"
                        .into()
                }
                ([], Some("uri")) => "URL".into(),
                ([], _) => "text".into(),
                ([only], _) => format!("`{only}`"),
                (several, _) => format!("one of {}", several.join(", ")),
            },
            Kind::Integer => {
                let declared = |keyword| self.first(keyword).and_then(Value::as_i64);
                match (declared("minimum"), declared("maximum")) {
                    (Some(least), Some(most)) => format!("whole number from {least} to {most}"),
                    (Some(least), None) if least > 0 => format!("whole number from {least}"),
                    _ => "whole number".into(),
                }
            }
            Kind::Number => match self.limits() {
                (Some(least), Some(most)) => format!("number from {least} to {most}"),
                _ => "number".into(),
            },
            Kind::Boolean => "true or false".into(),
            Kind::List => format!("list of {}", several(self.items(), document)),
            Kind::Section => match self.rest().filter(|_| self.is_plain_map(document)) {
                Some(rest) => format!("{} by name", several(rest, document)),
                None => "settings".into(),
            },
            Kind::Anything if self.is_object() => "settings of any kind".into(),
            Kind::Anything => self.describe_alternatives(document),
        }
    }

    fn describe_alternatives(&self, document: &Document) -> String {
        let keys: Vec<(&str, Vec<&str>)> = self
            .alternatives
            .iter()
            .filter_map(|branch| document.shape(branch, None).fixed_keys().into_iter().next())
            .collect();
        match keys.first() {
            Some((key, _)) if keys.len() == self.alternatives.len() => {
                let texts: Vec<&str> = keys.iter().flat_map(|(_, texts)| texts.clone()).collect();
                format!("settings with `{key}` one of {}", texts.join(", "))
            }
            _ => "anything".into(),
        }
    }
}

fn several(schema: &Value, document: &Document) -> String {
    match document.shape(schema, None).describe(document).as_str() {
        "secret" => "secrets".into(),
        other => other.to_owned(),
    }
}
