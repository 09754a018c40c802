//! YAML to a tree in which every value knows its place and its own spelling.
//!
//! The spelling matters because the schema decides what a value is: a sender id written as `0123` is
//! the text `0123`, whatever YAML would make of it.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{
    Error, Location, MessageFormatter, NonFiniteFloatPolicy, Options, Spanned, UserMessageFormatter,
};

use crate::finding::{CONFIG_FILE, Finding, Origin, Place};

/// A value and where it stands.
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) body: Body,
}

/// What a value is, before anybody has said what it should be.
pub(crate) enum Body {
    Null,
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A single value.
pub(crate) struct Scalar {
    /// As it is spelled, without its quotes.
    pub(crate) text: String,
    pub(crate) style: Style,
    /// As YAML reads it.
    pub(crate) value: Value,
}

/// Whether the spelling leaves open what a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
}

impl Node {
    /// Plain text, as an environment variable holds it.
    pub(crate) fn text(text: &str, origin: Origin) -> Self {
        let value = Value::String(text.to_owned());
        let body = Body::Scalar(Scalar { text: text.to_owned(), style: Style::Plain, value });
        Self { origin, body }
    }

    /// The value below a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.body {
            Body::Map(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
            }
            _ => None,
        }
    }

    /// As YAML reads it, for settings that take anything.
    pub(crate) fn to_value(&self) -> Value {
        match &self.body {
            Body::Null => Value::Null,
            Body::Scalar(scalar) => scalar.value.clone(),
            Body::List(items) => items.iter().map(Node::to_value).collect(),
            Body::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, node)| (key.clone(), node.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self.body {
            Body::Null => "nothing",
            Body::Scalar(_) => "a single value",
            Body::List(_) => "a list",
            Body::Map(_) => "settings",
        }
    }
}

/// Reads `config.yaml`. `is_known` tells which words may be repeated in the excerpt of an error.
pub(crate) fn parse_file(
    text: &str,
    is_known: impl Fn(&str) -> bool,
) -> Result<Node, Box<Finding>> {
    let origin = |location: &Location| {
        let (line, column) = position(location);
        Origin::File { line, column }
    };
    parse(text, origin).map_err(|error| {
        let (line, column) = error.location().as_ref().map_or((1, 1), position);
        Box::new(Finding {
            place: Some(Place {
                file: CONFIG_FILE.to_owned(),
                line: Some(line),
                column: Some(column),
            }),
            excerpt: excerpt(text, line, column, is_known),
            ..Finding::about(CONFIG_FILE, format!("cannot be read as YAML: {}", explain(&error)))
        })
    })
}

/// Reads the value of a variable that holds a list or several settings.
pub(crate) fn parse_variable(text: &str, origin: &Origin) -> Result<Node, String> {
    parse(text, |_| origin.clone()).map_err(|error| explain(&error))
}

fn parse(text: &str, origin: impl Fn(&Location) -> Origin) -> Result<Node, Box<Error>> {
    let tree: Spanned<Raw> =
        serde_saphyr::from_str_with_options(text, options()).map_err(Box::new)?;
    Ok(Reader { text, origin }.node(tree, None))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_nodes: 20_000,
            max_events: 100_000,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_merge_keys: 1_000,
            max_total_scalar_bytes: 4 << 20,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 16,
        },
        emit_comments: false,
        strict_booleans: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    }
}

fn position(location: &Location) -> (u32, u32) {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    (number(location.line()), number(location.column()))
}

/// The parser's words, where they would not help a person, replaced.
fn explain(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => explain(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is set twice"),
        Error::MultipleDocuments { .. } => "a `---` begins a second document; keep one".into(),
        Error::UnsupportedTag { .. } => "a tag (`!…`) has no meaning here".into(),
        Error::NullIntoString { .. } => "a key is missing before the `:`".into(),
        Error::Unexpected { expected: "string scalar", .. } => "a key must be a single word".into(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is nested deeper, or repeats more, than any configuration needs to".into()
        }
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

/// How much of a long line is shown on either side of an error.
const EXCERPT_RADIUS: usize = 60;

/// The line of an error, with a mark below the column. A broken line may hold a secret, and nobody
/// can say where in it, so only words that are names of settings are readable.
fn excerpt(text: &str, line: u32, column: u32, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let source: Vec<char> = text.lines().nth(line as usize - 1)?.chars().collect();
    let at = (column as usize - 1).min(source.len());
    let masked = mask(&source, is_known);
    let from = at.saturating_sub(EXCERPT_RADIUS);
    let to = (at + EXCERPT_RADIUS).min(masked.len());
    let shown: String = masked[from..to].iter().collect();
    if shown.trim().is_empty() {
        return None;
    }
    let (margin, space) = (line.to_string(), " ".repeat(at - from));
    let gap = " ".repeat(margin.len());
    Some(format!("  {margin} | {shown}\n  {gap} | {space}^"))
}

fn mask(line: &[char], is_known: impl Fn(&str) -> bool) -> Vec<char> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let mut masked = Vec::with_capacity(line.len());
    for run in line.chunk_by(|a, b| is_word(a) == is_word(b)) {
        if !is_word(&run[0]) {
            masked.extend(run.iter().map(|c| match c {
                '\t' => '→',
                c if c.is_whitespace() || ":,-[]{}\"'#|>&*?!%@`".contains(*c) => *c,
                _ => '•',
            }));
        } else if is_known(&run.iter().collect::<String>()) {
            masked.extend(run);
        } else {
            masked.extend(run.iter().map(|_| '•'));
        }
    }
    masked
}

/// The tree as the parser hands it over.
enum Raw {
    Value(Value),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

struct Reader<'a, F> {
    text: &'a str,
    origin: F,
}

impl<F: Fn(&Location) -> Origin> Reader<'_, F> {
    /// A value below a key stands where its key does: that is the line a person looks for.
    fn node(&self, raw: Spanned<Raw>, key: Option<&Location>) -> Node {
        let origin = (self.origin)(key.unwrap_or(&raw.referenced));
        let body = match raw.value {
            Raw::Value(Value::Null) => Body::Null,
            Raw::Value(value) => Body::Scalar(self.scalar(value, &raw.defined)),
            Raw::List(items) => {
                Body::List(items.into_iter().map(|item| self.node(item, None)).collect())
            }
            Raw::Map(entries) => Body::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| (key.value, self.node(value, Some(&key.referenced))))
                    .collect(),
            ),
        };
        Node { origin, body }
    }

    fn scalar(&self, value: Value, defined: &Location) -> Scalar {
        let span = defined.span();
        let source = span.byte_offset().zip(span.byte_len()).and_then(|(from, length)| {
            let from = usize::try_from(from).ok()?;
            self.text.get(from..from.checked_add(usize::try_from(length).ok()?)?)
        });
        match (value, source) {
            // The parser spells the infinities its own way; the source knows how they were written.
            (Value::String(text), Some(source)) if is_number_like(&text) => {
                let quoted = source.starts_with(['"', '\'']);
                let style = if quoted { Style::Quoted } else { Style::Plain };
                let text = if quoted { text } else { source.trim().to_owned() };
                Scalar { value: Value::String(text.clone()), text, style }
            }
            (Value::String(text), source) => {
                let plain = source.is_some_and(|source| source.trim() == text);
                let style = if plain { Style::Plain } else { Style::Quoted };
                Scalar { value: Value::String(text.clone()), text, style }
            }
            (value, Some(source)) => {
                Scalar { text: source.trim().to_owned(), style: Style::Plain, value }
            }
            (value, None) => Scalar { text: value.to_string(), style: Style::Plain, value },
        }
    }
}

fn is_number_like(text: &str) -> bool {
    matches!(text, ".nan" | ".inf" | "-.inf")
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Value(Value::Null))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Value(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Value(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Value(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Value(value.into()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Value(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = from.next_key()? {
            entries.push((key, from.next_value()?));
        }
        Ok(Raw::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &str) {
        let mut seen = Vec::new();
        match parse_file(text, |word| ["model", "turn_limit", "api_key"].contains(&word)) {
            Ok(node) => list("", &node, &mut seen),
            Err(finding) => seen.push(finding.to_string()),
        }
        assert_eq!(seen.join("\n"), expect, "{text:?}");
    }

    fn list(path: &str, node: &Node, seen: &mut Vec<String>) {
        match &node.body {
            Body::Null => seen.push(format!("{} {path} null", node.origin)),
            Body::Scalar(scalar) => {
                let quote = if scalar.style == Style::Quoted { "\"" } else { "" };
                seen.push(format!(
                    "{} {path} {quote}{}{quote} = {}",
                    node.origin, scalar.text, scalar.value
                ));
            }
            Body::List(items) => {
                items.iter().for_each(|item| list(&format!("{path}[]"), item, seen))
            }
            Body::Map(entries) => {
                entries.iter().for_each(|(key, node)| list(&format!("{path}.{key}"), node, seen));
            }
        }
    }

    #[test]
    fn values_keep_their_spelling_and_their_line() {
        check("a: 1", "config.yaml:1 .a 1 = 1");
        check("a:\n  b: 0123", "config.yaml:2 .a.b 0123 = 123.0");
        check(
            "a: [1e999,\n yes, ~]",
            "config.yaml:1 .a[] 1e999 = \"1e999\"\nconfig.yaml:2 .a[] yes = \"yes\"\nconfig.yaml:2 .a[] null",
        );
        check("a: '.inf'", "config.yaml:1 .a \".inf\" = \".inf\"");
        check("a: \"5\"", "config.yaml:1 .a \"5\" = \"5\"");
        check("a:\n  |\n  x\n  y\n", "config.yaml:1 .a \"x\ny\n\" = \"x\\ny\\n\"");
        check("a: &x 007\nb: *x", "config.yaml:1 .a 007 = 7.0\nconfig.yaml:2 .b 007 = 7.0");
        check("\u{feff}a: é # note", "config.yaml:1 .a é = \"é\"");
        check("", "config.yaml:1  null");
    }

    #[test]
    fn broken_yaml_is_shown_without_what_it_says() {
        check(
            "model: x\nturn_limit: canary: x",
            "config.yaml:2:19: cannot be read as YAML: mapping values are not allowed in this context\n  \
             2 | turn_limit: ••••••: •\n    |                   ^",
        );
        check(
            "api_key: \"canary",
            "config.yaml:1:10: cannot be read as YAML: unclosed quote\n  \
             1 | api_key: \"••••••\n    |          ^",
        );
        check(
            "model:\n\t- canary",
            "config.yaml:2:2: cannot be read as YAML: tabs disallowed within this context (block indentation)\n  \
             2 | →- ••••••\n    |  ^",
        );
        check(
            "a: 1\n---\nb: 2",
            "config.yaml:3:1: cannot be read as YAML: a `---` begins a second document; keep one\n  3 | •: •\n    | ^",
        );
        check(
            "model: 1\nmodel: 2",
            "config.yaml:2:1: cannot be read as YAML: `model` is set twice\n  2 | model: •\n    | ^",
        );
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let before = level - 1;
            let items = format!("*a{before}, ").repeat(9);
            text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        let finding = parse_file(&text, |_| false).err().expect("refused");
        assert!(finding.expectation.contains("than any configuration needs to"), "{finding}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_tree_or_an_error(text in "[a-c:\\-\\[\\]{}#&*!|>'\"%@\n\t ,0-9.é]{0,60}") {
            let _ = parse_file(&text, |_| false);
        }
    }
}
