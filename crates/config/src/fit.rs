//! Fits layers of values into the schema: one value for every setting, from the highest layer that
//! has one, checked and spelled the way its type wants it.
//!
//! Everything wrong is collected, nothing stops the walk, and what is wrong or unknown is left out of
//! the result. The text of a secret leaves this file only inside the result and inside `Secret`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use talaria_model::{Proxy, Secret};
use talaria_platform::Need;

use crate::conventions::Conventional;
use crate::finding::{Finding, MOST_FINDINGS, Origin};
use crate::known::{self, Known, below};
use crate::layers::{Assignment, Layers, Remaining, split_list};
use crate::nearest::nearest;
use crate::schema::{Document, is_name};
use crate::shape::{Kind, Names, Shape};
use crate::single::{boolean, brief, quote, shown, single};
use crate::yaml::{Body, Node, parse_variable};

/// The value of a leaf, fit to be kept for as long as the process runs.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    Unset,
    Shown(Value),
    Hidden(Secret),
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unset, Self::Unset) => true,
            (Self::Shown(a), Self::Shown(b)) => a == b,
            (Self::Hidden(a), Self::Hidden(b)) => a.expose() == b.expose(),
            _ => false,
        }
    }
}

/// One setting and how it came to its value.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) path: String,
    pub(crate) value: Held,
    pub(crate) origin: Origin,
    /// What lower layers say, lowest first. The built-in default is not among them.
    pub(crate) overridden: Vec<(Origin, Held)>,
}

/// An account as it was configured.
pub(crate) struct FittedAccount {
    pub(crate) name: String,
    pub(crate) platform: String,
    pub(crate) origin: Origin,
    /// What every account has and what its platform wants to know, together.
    pub(crate) settings: Map<String, Value>,
}

/// Everything the layers say, fitted.
pub(crate) struct Fitted {
    /// Everything but the accounts.
    pub(crate) value: Value,
    pub(crate) accounts: Vec<FittedAccount>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) problems: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
}

/// Fits a file and variables into the schema. What is `conventional` is for accounts that are named like
/// their platform, and makes one appear if everything is there that it needs. `always` names the platforms that have an account even
/// if nobody configures one.
pub(crate) fn fit(
    document: &Document,
    file: &Node,
    assignments: &[Assignment<'_>],
    conventional: &[Conventional<'_>],
    always: &[&str],
) -> Fitted {
    let mut fitter = Fitter {
        document,
        known: known::list(document),
        conventional,
        always,
        accounts: Vec::new(),
        leaves: Vec::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    let layers = Layers {
        nodes: vec![file],
        variables: assignments.iter().map(|each| Remaining { path: &each.path, each }).collect(),
    };
    let mut value = fitter.section("", &document.root, &layers, Require::All);
    value.shift_remove("accounts");
    Fitted {
        value: Value::Object(value),
        accounts: fitter.accounts,
        leaves: fitter.leaves,
        problems: fitter.problems,
        warnings: fitter.warnings,
    }
}

/// Whether it is an error when a required setting is missing.
#[derive(Clone, Copy)]
enum Require {
    All,
    Nothing,
}

struct Fitter<'d> {
    document: &'d Document,
    known: Vec<Known<'d>>,
    conventional: &'d [Conventional<'d>],
    always: &'d [&'d str],
    accounts: Vec<FittedAccount>,
    leaves: Vec<Leaf>,
    problems: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl<'d> Fitter<'d> {
    fn setting(&mut self, path: &str, schema: &'d Value, layers: &Layers<'_>) -> Option<Value> {
        let shape = self.document.shape(schema, layers.nodes.last().copied());
        if shape.kind() != Kind::Section {
            return self.leaf(path, schema, &shape, layers);
        }
        let require = if layers.is_empty() { Require::Nothing } else { Require::All };
        let value = self.section(path, schema, layers, require);
        (!layers.is_empty()).then_some(Value::Object(value))
    }

    fn section(
        &mut self,
        path: &str,
        schema: &'d Value,
        layers: &Layers<'_>,
        require: Require,
    ) -> Map<String, Value> {
        let whole: Vec<Node> = layers
            .variables
            .iter()
            .filter(|variable| variable.path.is_empty())
            .filter_map(|variable| self.read_variable(path, variable.each))
            .collect();
        let mut nodes: Vec<&Node> = layers.nodes.iter().copied().chain(&whole).collect();
        nodes.retain(|node| match node.body {
            Body::Map(_) => true,
            Body::Null => false,
            // What stands here instead of settings may be a misplaced secret: it is not repeated.
            _ => {
                let expectation = format!("expected settings below it, found {}", node.kind());
                self.problem(&node.origin, path, None, expectation);
                false
            }
        });
        let variables =
            layers.variables.iter().filter(|variable| !variable.path.is_empty()).copied().collect();
        let origin = layers.origin();
        let layers = Layers { nodes, variables };
        if path == "accounts" {
            self.fit_accounts(&layers);
            return Map::new();
        }

        let shape = self.document.shape(schema, layers.nodes.last().copied());
        let properties = shape.properties();
        let mut value = Map::new();
        for (name, property) in &properties {
            let path = below(path, name);
            let before = self.problems.len();
            if let Some(fitted) = self.setting(&path, property, &layers.below(name)) {
                value.insert((*name).to_owned(), fitted);
            } else if let Require::All = require
                && before == self.problems.len()
                && shape.required().contains(name)
            {
                self.missing(&path, property, &origin);
            }
        }
        match shape.rest() {
            Some(rest) => self.named(path, rest, &shape, &layers, &mut value),
            None => self.unknown(path, &properties, &layers),
        }
        value
    }

    /// Settings with names of the user's choice.
    fn named(
        &mut self,
        path: &str,
        schema: &'d Value,
        shape: &Shape<'_>,
        layers: &Layers<'_>,
        value: &mut Map<String, Value>,
    ) {
        let declared: Vec<&str> = shape.properties().into_iter().map(|(name, _)| name).collect();
        let holds_sections = self.document.shape(schema, None).kind() == Kind::Section;
        let names = layers.names(&declared);
        let names: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !declared.contains(name)).collect();
        self.check_names(path, &names, shape, layers);
        let possible = |name: &&str| match shape.names() {
            Names::OneOf(several) => several.contains(name),
            Names::Any | Names::Plain => true,
        };
        for name in names.into_iter().filter(possible) {
            let path = below(path, name);
            let mut layers = layers.below(name);
            if !holds_sections {
                // A header's name cannot be spelled in a variable's name.
                for variable in std::mem::take(&mut layers.variables) {
                    self.part_of_map(&path, variable.each);
                }
                if layers.nodes.is_empty() {
                    continue;
                }
            }
            if let Some(fitted) = self.setting(&path, schema, &layers) {
                value.insert(name.to_owned(), fitted);
            }
        }
    }

    fn check_names(&mut self, path: &str, names: &[&str], shape: &Shape<'_>, layers: &Layers<'_>) {
        match shape.names() {
            Names::Any => return,
            Names::OneOf(several) => return self.check_one_of(path, names, &several, layers),
            Names::Plain => {}
        }
        let mut spelled = BTreeMap::new();
        for name in names {
            if !is_name(name) {
                self.problem(&layers.below(name).origin(), &below(path, name), None, NOT_A_NAME);
            } else if let Some(other) = spelled.insert(known::in_variable(name), name) {
                let expectation = format!(
                    "cannot be told apart from {} in the environment; rename one of them",
                    below(path, other)
                );
                self.problem(&layers.below(name).origin(), &below(path, name), None, expectation);
            }
        }
    }

    fn check_one_of(&mut self, path: &str, names: &[&str], several: &[&str], layers: &Layers<'_>) {
        for name in names.iter().filter(|name| !several.contains(name)) {
            let hint = nearest(name, several.iter().copied())
                .map_or(String::new(), |close| format!("; did you mean {close}?"));
            let expectation = format!("is not one of {}{hint}", several.join(", "));
            self.problem(&layers.below(name).origin(), &below(path, name), None, expectation);
        }
    }

    fn part_of_map(&mut self, path: &str, variable: &Assignment<'_>) {
        let map = path.rsplit_once('.').map_or(path, |(map, _)| map);
        let whole = known::variable(map);
        let name = variable.name;
        let expectation =
            format!("{name} is ignored; set all of {map} at once, like {whole}='{{name: value}}'");
        self.warn_about(variable, expectation);
    }

    fn fit_accounts(&mut self, layers: &Layers<'_>) {
        let document = self.document;
        let mut names = layers.names(&document.platforms);
        let configured: BTreeMap<String, Option<String>> = names
            .iter()
            .map(|name| (name, layers.below(name).peek("platform")))
            .map(|(name, platform)| (name.clone(), platform.map(|(text, _)| text)))
            .collect();
        let is_configured = |platform: &str| {
            configured.contains_key(platform)
                || configured.values().any(|chosen| chosen.as_deref() == Some(platform))
        };
        let missing = self.always.iter().filter(|platform| !is_configured(platform));
        names.extend(missing.map(|platform| (*platform).to_owned()));
        let appearing: Vec<&str> =
            document.platforms.iter().copied().filter(|name| self.is_complete(name)).collect();
        for platform in &appearing {
            if !is_configured(platform) {
                names.push((*platform).to_owned());
            } else if !configured.contains_key(*platform) {
                self.warn_about_conventional(platform);
            }
        }
        let shape = document.shape(&document.root["properties"]["accounts"], None);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        self.check_names("accounts", &all, &shape, layers);
        for name in all.into_iter().filter(|name| is_name(name)) {
            let is_wanted = configured.contains_key(name) || appearing.contains(&name);
            let require = match is_wanted {
                true => Require::All,
                false => Require::Nothing,
            };
            self.account(name, &self.with_conventional(name, layers.below(name)), require);
        }
    }

    /// Whether the conventional variables say everything that an account of this platform needs.
    fn is_complete(&self, platform: &str) -> bool {
        let conventions = &self.document.conventions;
        let mut needed = conventions
            .iter()
            .filter(|known| known.platform == platform && known.need == Need::Required)
            .peekable();
        needed.peek().is_some()
            && needed
                .all(|known| self.conventional.iter().any(|said| said.each.name == known.variable))
    }

    fn warn_about_conventional(&mut self, platform: &str) {
        let conventional = self.conventional;
        let said = conventional.iter().find(|said| said.platform == platform);
        if let Some(Conventional { each, .. }) = said {
            let expectation = format!(
                "{} is ignored: it is for accounts.{platform}, and the accounts of that platform \
                 have other names",
                each.name
            );
            self.warn_about(each, expectation);
        }
    }

    /// What is said by convention is said, too, unless our own variable says it in the same place.
    fn with_conventional<'a>(&self, account: &str, mut layers: Layers<'a>) -> Layers<'a>
    where
        'd: 'a,
    {
        let layer = |origin: &Origin| std::mem::discriminant(origin);
        let own = layers.variables.clone();
        let is_said = |each: &Assignment<'_>| {
            own.iter().any(|other| {
                other.path == each.path && layer(other.each.origin) == layer(each.origin)
            })
        };
        let conventional = self.conventional.iter().filter(|said| said.platform == account);
        let conventional = conventional.map(|said| &said.each).filter(|each| !is_said(each));
        layers.variables.extend(conventional.map(|each| Remaining { path: &each.path, each }));
        layers
    }

    fn account(&mut self, name: &str, layers: &Layers<'_>, require: Require) {
        let document = self.document;
        let path = below("accounts", name);
        let origin = layers.origin();
        let chosen = layers.peek("platform");
        let platform = chosen.as_ref().map_or(name, |(platform, _)| platform.as_str());
        let Some(schema) = document.account(platform) else {
            return match &chosen {
                Some((platform, at)) => self.unknown_platform(&path, platform, at),
                None => self.unstated_platform(&path, name, &origin),
            };
        };
        if platform != name && document.account(name).is_some() {
            let expectation = format!(
                "is the name of another platform; rename the account, or make {name} its platform"
            );
            return self.problem(&origin, &path, None, expectation);
        }
        let enabled = layers.peek("enabled").and_then(|(text, _)| boolean(&text));
        // An account that is switched off may be half written.
        let require = if enabled == Some(false) { Require::Nothing } else { require };
        let before = self.problems.len();
        let mut settings = self.section(&path, schema, layers, require);
        settings.remove("platform");
        if before == self.problems.len() {
            let (name, platform) = (name.to_owned(), platform.to_owned());
            self.accounts.push(FittedAccount { name, platform, origin, settings });
        }
    }

    fn unknown_platform(&mut self, path: &str, platform: &str, origin: &Origin) {
        let platforms = &self.document.platforms;
        let hint = match nearest(platform, platforms.iter().copied()) {
            Some(close) => format!("did you mean {close}?"),
            None => format!("choose one of {}", platforms.join(", ")),
        };
        let expectation = format!("is not a platform of this gateway; {hint}");
        self.problem(origin, &below(path, "platform"), Some(quote(platform)), expectation);
    }

    fn unstated_platform(&mut self, path: &str, name: &str, origin: &Origin) {
        let platforms = &self.document.platforms;
        let hint = match nearest(name, platforms.iter().copied()) {
            Some(close) => format!(", or did you mean accounts.{close}?"),
            None => String::new(),
        };
        let all = platforms.join(", ");
        let expectation = format!("which platform is it? Add `platform:` with one of {all}{hint}");
        self.problem(origin, path, None, expectation);
    }

    fn unknown(&mut self, path: &str, declared: &[(&str, &Value)], layers: &Layers<'_>) {
        for node in &layers.nodes {
            let Body::Map(entries) = &node.body else { continue };
            for (key, child) in entries {
                // Keys that begin with x- hold what anchors refer to, as in other YAML files.
                let is_known = declared.iter().any(|(name, _)| name == key);
                if is_known || (path.is_empty() && key.starts_with("x-")) {
                    continue;
                }
                let meant = self.meant(|known| known::suggest(known, path, declared, key));
                let (unknown, hint) = (below(path, key), hint(meant.as_deref()));
                if limits_people(&unknown) || meant.as_deref().is_some_and(limits_people) {
                    let expectation = format!(
                        "there is no such setting, and what limits people is not ignored{hint}"
                    );
                    self.problem(&child.origin, &unknown, None, expectation);
                } else {
                    let expectation = format!("there is no such setting, so it is ignored{hint}");
                    self.warnings.push(Finding::at(&child.origin, &unknown, expectation));
                }
            }
        }
        for variable in &layers.variables {
            let head = variable.path.first().map(String::as_str).unwrap_or_default();
            if !declared.iter().any(|(name, _)| known::in_variable(name) == head) {
                self.unknown_variable(variable.each);
            }
        }
    }

    fn unknown_variable(&mut self, variable: &Assignment<'_>) {
        let hint =
            hint(self.meant(|known| known::suggest_variable(known, variable.name)).as_deref());
        let expectation = format!("{} names no setting, so it is ignored{hint}", variable.name);
        self.warn_about(variable, expectation);
    }

    /// What was meant, as long as anybody reads it: looking for it takes time.
    fn meant(&self, suggest: impl FnOnce(&[Known<'d>]) -> Option<String>) -> Option<String> {
        let is_read = self.warnings.len() < MOST_FINDINGS;
        is_read.then(|| suggest(&self.known)).flatten()
    }

    /// The expectation names the variable, so only `.env` is worth naming as its place.
    fn warn_about(&mut self, variable: &Assignment<'_>, expectation: String) {
        let place = variable.origin.place().filter(|place| place.file != variable.name);
        let finding = Finding::about(variable.name, expectation);
        self.warnings.push(Finding { place, ..finding });
    }

    fn missing(&mut self, path: &str, schema: &'d Value, origin: &Origin) {
        let help = self.document.shape(schema, None).help();
        let sentence = first_sentence(help);
        let meaning = if sentence.is_empty() { String::new() } else { format!(" ({sentence})") };
        let variable = match self.has_variable(path) {
            true => {
                let conventional = self.document.convention(path).map(str::to_owned);
                format!(" or set {}", conventional.unwrap_or_else(|| known::variable(path)))
            }
            false => String::new(),
        };
        let expectation = format!("is missing{meaning}; write it here{variable}");
        self.problem(origin, path, None, expectation);
    }

    /// Whether a setting can be set by a variable of its own: an item of a list cannot, nor can a part of
    /// what is only set as a whole, nor what has a name that no variable can spell.
    fn has_variable(&self, path: &str) -> bool {
        let is_spelled = path.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        let is_own = || {
            let found = known::find(self.document, path, |_| None);
            found.is_some_and(|found| found.variable == known::variable(path))
        };
        is_spelled && (path.starts_with("accounts.") || is_own())
    }

    /// A setting without settings below it: the highest layer wins as a whole.
    fn leaf(
        &mut self,
        path: &str,
        schema: &'d Value,
        shape: &Shape<'d>,
        layers: &Layers<'_>,
    ) -> Option<Value> {
        let is_secret = self.document.mentions_secret(schema);
        // The address of a proxy is everybody's business, and who asks it is not.
        let is_hidden = |value: &Value| {
            let is_proxy = shape.format() == Some(Proxy::FORMAT);
            let has_credentials = |text| Proxy::credentials(text).is_some();
            is_secret || is_proxy && value.as_str().is_some_and(has_credentials)
        };
        for variable in layers.variables.iter().filter(|variable| !variable.path.is_empty()) {
            self.unknown_variable(variable.each);
        }
        let from_variables: Vec<Node> = layers
            .variables
            .iter()
            .filter(|variable| variable.path.is_empty())
            .filter_map(|variable| match shape.kind() {
                Kind::List if !variable.each.value.trim_start().starts_with('[') => {
                    Some(split_list(variable.each))
                }
                Kind::List | Kind::Anything => self.read_variable(path, variable.each),
                _ => Some(Node::text(variable.each.value, variable.each.origin.clone())),
            })
            .collect();
        let mut said: Vec<&Node> = layers
            .nodes
            .iter()
            .copied()
            .chain(&from_variables)
            .filter(|node| !matches!(node.body, Body::Null))
            .collect();
        said.sort_by(|a, b| a.origin.cmp(&b.origin));
        let hold = |value: Value| match is_hidden(&value) {
            true => Held::Hidden(Secret::new(value.to_string())),
            false => Held::Shown(value),
        };
        let winner = said.pop();
        let fitted =
            winner.and_then(|node| self.convert(path, schema, node, is_hidden(&node.to_value())));
        let (value, origin) = match (&fitted, winner) {
            (Some(value), Some(node)) => (hold(value.clone()), node.origin.clone()),
            _ => (shape.default().cloned().map_or(Held::Unset, Held::Shown), Origin::Default),
        };
        self.leaves.push(Leaf {
            path: path.to_owned(),
            value,
            origin,
            overridden: said
                .into_iter()
                .map(|node| (node.origin.clone(), hold(node.to_value())))
                .collect(),
        });
        fitted
    }

    /// The value of one node as its schema wants it, or nothing and a problem.
    fn convert(
        &mut self,
        path: &str,
        schema: &'d Value,
        node: &Node,
        is_hidden: bool,
    ) -> Option<Value> {
        let shape = self.document.shape(schema, Some(node));
        let kind = shape.kind();
        match (&node.body, kind) {
            (_, Kind::Section) => {
                let recorded = self.leaves.len();
                let before = self.problems.len();
                let layers = Layers { nodes: vec![node], variables: Vec::new() };
                let value = self.section(path, schema, &layers, Require::All);
                // Only the list they stand in is a setting of its own.
                self.leaves.truncate(recorded);
                (before == self.problems.len()).then_some(Value::Object(value))
            }
            (Body::List(items), Kind::List) => {
                let fitted: Vec<Option<Value>> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| {
                        self.convert(&format!("{path}[{index}]"), shape.items(), item, is_hidden)
                    })
                    .collect();
                fitted.into_iter().collect()
            }
            (Body::Scalar(_) | Body::List(_), Kind::Anything) if shape.is_object() => {
                let expectation = format!("expected settings below it, found {}", node.kind());
                self.problem(&node.origin, path, None, expectation);
                None
            }
            (_, Kind::Anything) => Some(node.to_value()),
            (Body::Scalar(scalar), Kind::List) => {
                let value = if is_hidden { "value".into() } else { brief(&scalar.text) };
                let expectation = format!("is not a list; write it like [{value}]");
                self.problem(&node.origin, path, Some(shown(scalar, is_hidden)), expectation);
                None
            }
            (Body::Scalar(scalar), _) => match single(scalar, &shape, kind) {
                Ok(value) => Some(value),
                Err(mismatch) => {
                    let hide = is_hidden || mismatch.is_private;
                    let shown = shown(scalar, hide);
                    self.problem(&node.origin, path, Some(shown), mismatch.expectation);
                    None
                }
            },
            (Body::Null | Body::List(_) | Body::Map(_), _) => {
                let wanted = shape.describe(self.document);
                let expectation = format!("expected {wanted}, found {}", node.kind());
                self.problem(&node.origin, path, None, expectation);
                None
            }
        }
    }

    fn read_variable(&mut self, path: &str, variable: &Assignment<'_>) -> Option<Node> {
        match parse_variable(variable.value, variable.origin) {
            Ok(node) => Some(node),
            Err(reason) => {
                let expectation = format!("cannot be read as YAML: {reason}");
                self.problem(variable.origin, path, None, expectation);
                None
            }
        }
    }

    fn problem(
        &mut self,
        origin: &Origin,
        path: &str,
        value: Option<String>,
        expectation: impl Into<String>,
    ) {
        let path = if path.is_empty() { None } else { Some(path.to_owned()) };
        let expectation = expectation.into();
        self.problems.push(Finding {
            place: origin.place(),
            path,
            value,
            expectation,
            excerpt: None,
        });
    }
}

/// The first sentence of a help text, in one line and without its full stop. A stop inside an address
/// or a number ends nothing.
fn first_sentence(help: &str) -> String {
    let paragraph = help.split("\n\n").next().unwrap_or_default();
    let mut words = paragraph.split_whitespace();
    let mut sentence = String::new();
    while let Some(word) = words.next().filter(|_| !sentence.ends_with('.')) {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
    }
    sentence.trim_end_matches('.').to_owned()
}

fn hint(meant: Option<&str>) -> String {
    meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"))
}

/// Whether a setting says who may do what, and how much of it. Whoever writes one means to be safer with
/// it, so that one which is misspelt must not let the gateway run without it.
fn limits_people(path: &str) -> bool {
    let mut parts = path.split('.');
    match (parts.next().unwrap_or_default(), parts.nth(1)) {
        ("access" | "approvals" | "budgets" | "people" | "roles", _) => true,
        ("accounts", Some(key)) => {
            ["allow", "policy", "admin", "unauthorized"].iter().any(|word| key.contains(word))
        }
        _ => false,
    }
}

const NOT_A_NAME: &str =
    "is not a name; use lower-case letters, digits, - and _, at most 64 of them";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_where_a_word_does() {
        for (help, sentence) in [
            ("", ""),
            ("Its name", "Its name"),
            ("The token of the loft. It is printed on the ring.", "The token of the loft"),
            (
                "Where it listens, such as 127.0.0.1:80. Any port.",
                "Where it listens, such as 127.0.0.1:80",
            ),
            ("Wrapped\nover lines. More.", "Wrapped over lines"),
            ("A paragraph\n\nand another", "A paragraph"),
        ] {
            assert_eq!(first_sentence(help), sentence);
        }
    }
}
