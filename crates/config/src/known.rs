//! Which settings there are, what they are called in the environment, and which one was meant.

use serde_json::Value;

use crate::nearest::nearest;
use crate::schema::{Applies, Document};
use crate::shape::{Kind, Names};

/// What the names of our environment variables begin with.
pub(crate) const PREFIX: &str = "TALARIA_";
/// Variables of ours that are not settings.
pub(crate) const NOT_SETTINGS: [&str; 2] = ["TALARIA_HOME", "TALARIA_GATEWAY_LOCK_DIR"];

/// Stands for a name of the user's choice in the path of a setting.
pub(crate) const ANY_NAME: &str = "<name>";

/// Schemas that refer to themselves are listed this far.
const DEEPEST_SETTING: usize = 8;

/// The setting below another one.
pub(crate) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A name as it is written inside an environment variable.
pub(crate) fn in_variable(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

/// The environment variable that sets this path.
pub fn variable(path: &str) -> String {
    let names: Vec<String> = path.split('.').map(in_variable).collect();
    format!("{PREFIX}{}", names.join("__"))
}

/// One thing that can be configured.
pub(crate) struct Known<'a> {
    /// With [`ANY_NAME`] where the user chooses.
    pub(crate) path: String,
    pub(crate) schema: &'a Value,
    pub(crate) kind: Kind,
    pub(crate) applies: Applies,
}

impl Known<'_> {
    pub(crate) fn key(&self) -> &str {
        self.path.rsplit_once('.').map_or(self.path.as_str(), |(_, key)| key)
    }
}

/// Everything that can be configured, sections before what is below them.
pub(crate) fn list(document: &Document) -> Vec<Known<'_>> {
    let mut known = Vec::new();
    walk(document, "", &document.root, Applies::Restart, 0, &mut known);
    known
}

fn walk<'a>(
    document: &'a Document,
    path: &str,
    schema: &'a Value,
    above: Applies,
    depth: usize,
    known: &mut Vec<Known<'a>>,
) {
    let shape = document.shape(schema, None);
    let kind = shape.kind();
    let applies = shape.applies().unwrap_or(above);
    if !path.is_empty() {
        known.push(Known { path: path.to_owned(), schema, kind, applies });
    }
    if kind != Kind::Section || depth > DEEPEST_SETTING {
        return;
    }
    for (name, property) in shape.properties() {
        walk(document, &below(path, name), property, applies, depth + 1, known);
    }
    if let Some(rest) = shape.rest().filter(|_| path != "accounts") {
        walk(document, &below(path, ANY_NAME), rest, applies, depth + 1, known);
    }
}

/// What a path leads to, the variable that sets it, and when that takes effect.
pub(crate) struct Found<'a> {
    pub(crate) schema: &'a Value,
    pub(crate) variable: String,
    pub(crate) applies: Applies,
}

/// Follows a path such as `accounts.work.token`. `platform_of` knows the platform of an account.
pub(crate) fn find<'a>(
    document: &'a Document,
    path: &str,
    platform_of: impl Fn(&str) -> Option<String>,
) -> Option<Found<'a>> {
    let mut schema = &document.root;
    let mut walked = String::new();
    let mut rest = path;
    let mut applies = Applies::Restart;
    loop {
        let (key, after) =
            rest.split_once('.').map_or((rest, None), |(key, rest)| (key, Some(rest)));
        let shape = document.shape(schema, None);
        let declared = shape.declared(document, key);
        if (shape.kind() != Kind::Section && declared.is_none()) || key.is_empty() {
            return None;
        }
        schema = if walked == "accounts" {
            let platform = platform_of(key);
            document.account(platform.as_deref().unwrap_or(key))?
        } else if let Some(property) = declared {
            property
        } else {
            let value = shape.rest()?;
            if document.shape(value, None).kind() != Kind::Section {
                // Names of the user's choice may contain dots; a map of plain values ends the path
                // and is set as a whole.
                return Some(Found { schema: value, variable: variable(&walked), applies });
            }
            if shape.names() == Names::Any
                && let Some((_, last)) = rest.rsplit_once('.').filter(|_| after.is_some())
                && let Some(property) = document.shape(value, None).declared(document, last)
            {
                // So may these, and the last part is what is asked for.
                let variable = variable(&below(&walked, rest));
                return Some(Found { schema: property, variable, applies });
            }
            value
        };
        walked = below(&walked, key);
        applies = document.shape(schema, None).applies().unwrap_or(applies);
        match after {
            Some(after) => rest = after,
            None => return Some(Found { schema, variable: variable(&walked), applies }),
        }
    }
}

/// The path that was most likely meant by an unknown key below `parent`, whose own settings are the
/// siblings: one of those, or one that is at home elsewhere.
pub(crate) fn suggest(
    known: &[Known<'_>],
    parent: &str,
    siblings: &[(&str, &Value)],
    key: &str,
) -> Option<String> {
    let names = siblings.iter().map(|(name, _)| *name);
    let by_synonym = || siblings.iter().find(|(_, schema)| is_synonym(schema, key));
    if let Some(close) = nearest(key, names).or_else(|| by_synonym().map(|(name, _)| *name)) {
        return Some(below(parent, close));
    }
    let elsewhere = || known.iter().filter(|setting| setting.key() != ANY_NAME);
    let close = nearest(key, elsewhere().map(Known::key));
    elsewhere()
        .find(|setting| setting.key() == key)
        .or_else(|| elsewhere().find(|setting| is_synonym(setting.schema, key)))
        .or_else(|| elsewhere().find(|setting| Some(setting.key()) == close))
        .map(|setting| setting.path.clone())
}

fn is_synonym(schema: &Value, key: &str) -> bool {
    schema["x-synonyms"].as_array().is_some_and(|synonyms| synonyms.iter().any(|word| word == key))
}

/// The variable that was most likely meant by an unknown one.
pub(crate) fn suggest_variable(known: &[Known<'_>], name: &str) -> Option<String> {
    let names: Vec<String> = known
        .iter()
        .filter(|setting| setting.kind != Kind::Section && !setting.path.contains(ANY_NAME))
        .map(|setting| variable(&setting.path))
        .collect();
    nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
}
