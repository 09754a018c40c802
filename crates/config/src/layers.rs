//! What the layers say about one setting: nodes of YAML, and variables that name it or part of it.

use std::collections::BTreeSet;

use crate::finding::Origin;
use crate::known;
use crate::yaml::{Body, Node, parse_variable};

/// A variable that sets something.
pub(crate) struct Assignment<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
    pub(crate) origin: &'a Origin,
    /// The path it names, in capitals.
    pub(crate) path: Vec<String>,
}

/// What the layers say about one setting, lowest first.
pub(crate) struct Layers<'a> {
    pub(crate) nodes: Vec<&'a Node>,
    pub(crate) variables: Vec<Remaining<'a>>,
}

/// A variable and what is left of its path.
#[derive(Clone, Copy)]
pub(crate) struct Remaining<'a> {
    pub(crate) path: &'a [String],
    pub(crate) each: &'a Assignment<'a>,
}

impl<'a> Layers<'a> {
    /// What the layers say about a setting below this one.
    pub(crate) fn below(&self, key: &str) -> Layers<'a> {
        let in_variable = known::in_variable(key);
        Layers {
            nodes: self.nodes.iter().filter_map(|node| node.get(key)).collect(),
            variables: self
                .variables
                .iter()
                .filter_map(|variable| match variable.path {
                    [head, path @ ..] if *head == in_variable => {
                        Some(Remaining { path, each: variable.each })
                    }
                    _ => None,
                })
                .collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node.body, Body::Null)) && self.variables.is_empty()
    }

    /// Where a person looks for it: in the file if it is there at all.
    pub(crate) fn origin(&self) -> Origin {
        let variables = self.variables.iter().map(|variable| variable.each.origin);
        let nodes = self.nodes.iter().map(|node| &node.origin);
        nodes.chain(variables).min().cloned().unwrap_or(Origin::Default)
    }

    /// The text it is set to by the highest layer.
    fn text(&self) -> Option<(&'a str, Origin)> {
        let exact = self.variables.iter().filter(|variable| variable.path.is_empty());
        let variables = exact.map(|variable| (variable.each.value, variable.each.origin));
        let nodes = self.nodes.iter().filter_map(|node| match &node.body {
            Body::Scalar(scalar) => Some((scalar.text.as_str(), &node.origin)),
            _ => None,
        });
        let highest = variables.chain(nodes).max_by_key(|(_, origin)| (*origin).clone());
        highest.map(|(text, origin)| (text, origin.clone()))
    }

    /// The text a key below this one is set to, for the few keys that decide about others. Looks
    /// into variables that hold several settings, too; what is wrong with those is told elsewhere.
    pub(crate) fn peek(&self, key: &str) -> Option<(String, Origin)> {
        let (whole, parts): (Vec<Remaining<'_>>, _) =
            self.variables.iter().partition(|variable| variable.path.is_empty());
        let whole: Vec<Node> = whole
            .into_iter()
            .filter_map(|variable| parse_variable(variable.each.value, variable.each.origin).ok())
            .collect();
        let nodes = self.nodes.iter().copied().chain(&whole).collect();
        let (text, origin) = Layers { nodes, variables: parts }.below(key).text()?;
        Some((text.to_owned(), origin))
    }

    /// Names of the user's choice: those of the file first, then those only variables know. A
    /// declared name is preferred to what a variable can spell.
    pub(crate) fn names(&self, declared: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for node in &self.nodes {
            let Body::Map(entries) = &node.body else { continue };
            let fresh =
                entries.iter().map(|(key, _)| key).filter(|key| seen.insert((*key).clone()));
            names.extend(fresh.cloned());
        }
        let mut spelled: BTreeSet<String> =
            names.iter().map(|name| known::in_variable(name)).collect();
        for head in self.variables.iter().filter_map(|variable| variable.path.first()) {
            if spelled.insert(head.clone()) {
                let declared = declared.iter().find(|name| known::in_variable(name) == *head);
                names.push(declared.map_or_else(|| head.to_lowercase(), |name| (*name).to_owned()));
            }
        }
        names
    }
}

/// A variable that holds a list may separate its items by commas.
pub(crate) fn split_list(variable: &Assignment<'_>) -> Node {
    let items = variable.value.split(',').map(str::trim).filter(|item| !item.is_empty());
    let items = items.map(|item| Node::text(item, variable.origin.clone())).collect();
    Node { origin: variable.origin.clone(), body: Body::List(items) }
}
