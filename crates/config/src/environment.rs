//! The environment: the variables of the process over those of `.env`.

use std::collections::BTreeMap;
use std::fmt;

use talaria_model::Secret;

use crate::finding::Origin;

/// Variables by name. One of the process wins over one of `.env`; an empty one counts as not set.
#[derive(Clone, Default)]
pub struct Environment {
    dotenv: BTreeMap<String, Variable>,
    process: BTreeMap<String, Variable>,
}

/// A variable that is set.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its value. Any variable may hold a key, so all are treated as if they did.
    pub value: Secret,
    /// Where it is set.
    pub origin: Origin,
}

impl Environment {
    /// The variable, if it is set to anything.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.process.get(name).or_else(|| self.dotenv.get(name))
    }

    pub(crate) fn insert(&mut self, name: String, value: String, origin: Origin) {
        if value.is_empty() {
            return;
        }
        let layer = match origin {
            Origin::DotEnv { .. } => &mut self.dotenv,
            _ => &mut self.process,
        };
        layer.insert(name, Variable { value: Secret::new(value), origin });
    }

    /// Every variable of both layers, also those that are overridden.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Variable)> {
        self.dotenv.iter().chain(&self.process).map(|(name, variable)| (name.as_str(), variable))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("dotenv", &self.dotenv.len())
            .field("process", &self.process.len())
            .finish()
    }
}
