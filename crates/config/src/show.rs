//! Settings for people to look at. Secrets are said to be there, and nothing more.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::finding::Origin;
use crate::fit::Held;
use crate::known::{self, below};
use crate::load::Loaded;
use crate::schema::{Applies, Document};
use crate::shape::Kind;
use crate::single::HIDDEN;

/// A value that may be looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// There is none.
    Unset,
    /// There is one, and it is a secret.
    Hidden,
    /// This one.
    Value(Value),
}

impl From<&Held> for Shown {
    fn from(held: &Held) -> Self {
        match held {
            Held::Unset => Self::Unset,
            Held::Hidden(_) => Self::Hidden,
            Held::Shown(value) => Self::Value(value.clone()),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("(not set)"),
            Self::Hidden => f.write_str(HIDDEN),
            Self::Value(Value::String(text)) if text.contains(char::is_control) => {
                write!(f, "{text:?}")
            }
            Self::Value(Value::String(text)) => f.write_str(text),
            Self::Value(value) => write!(f, "{value}"),
        }
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unset => serializer.serialize_none(),
            Self::Hidden => serializer.serialize_str(HIDDEN),
            Self::Value(value) => value.serialize(serializer),
        }
    }
}

/// One setting, its value and where that came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The setting.
    pub path: String,
    /// Its value.
    pub value: Shown,
    /// Where the value came from.
    pub origin: Origin,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}  ({})", self.path, self.value, self.origin)
    }
}

/// What there is to know about a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Explanation {
    /// One setting.
    Setting(Box<SettingExplanation>),
    /// Several settings below one name.
    Section {
        /// The name.
        path: String,
        /// What they are for.
        help: String,
        /// The settings.
        settings: Vec<Line>,
    },
}

/// What there is to know about one setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingExplanation {
    /// The setting.
    pub path: String,
    /// Its value.
    pub value: Shown,
    /// Where the value came from.
    pub origin: Origin,
    /// What it is when nobody sets it.
    pub default: Shown,
    /// What it takes, in words.
    pub takes: String,
    /// What it is for.
    pub help: String,
    /// The environment variables that set it.
    pub variable: String,
    /// When a change takes effect.
    pub applies: Applies,
    /// What lower layers say, highest first.
    pub overridden: Vec<Overridden>,
}

/// A value that a higher layer replaces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overridden {
    /// The value.
    pub value: Shown,
    /// Where it stands.
    pub origin: Origin,
}

/// There is no such setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no setting {path}{}", suggestion.as_ref().map_or(String::new(), |meant| format!("; did you mean {meant}?")))]
pub struct UnknownSetting {
    /// What was asked for.
    pub path: String,
    /// What was most likely meant.
    pub suggestion: Option<String>,
}

impl Loaded {
    /// Every setting, in the order of the reference.
    pub fn show(&self) -> Vec<Line> {
        self.lines(|_| true)
    }

    /// Everything there is to know about a setting, or about the settings below a name.
    pub fn explain(&self, path: &str) -> Result<Explanation, UnknownSetting> {
        let document = Document::new(&self.registrations);
        let platform_of = |name: &str| self.platform_of(name);
        let Some(found) = known::find(&document, path, platform_of) else {
            let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
            let section = match parent {
                "" => Some(&document.root),
                parent => known::find(&document, parent, platform_of).map(|found| found.schema),
            };
            let siblings = section.map(|schema| document.shape(schema, None).properties());
            let siblings = siblings.unwrap_or_default();
            let suggestion = known::suggest(&known::list(&document), parent, &siblings, key);
            return Err(UnknownSetting { path: path.to_owned(), suggestion });
        };
        let shape = document.shape(found.schema, None);
        let help = shape.help().to_owned();
        if shape.kind() == Kind::Section {
            let inside = below(path, "");
            let settings = self.lines(|other| other.starts_with(&inside));
            return Ok(Explanation::Section { path: path.to_owned(), help, settings });
        }
        let default = shape.default().map_or(Shown::Unset, |value| Shown::Value(value.clone()));
        let leaf = self.leaf(path);
        Ok(Explanation::Setting(Box::new(SettingExplanation {
            path: path.to_owned(),
            value: leaf.map_or(default.clone(), |leaf| Shown::from(&leaf.value)),
            origin: leaf.map_or(Origin::Default, |leaf| leaf.origin.clone()),
            default,
            takes: shape.describe(&document),
            help,
            variable: match document.convention(path) {
                Some(usual) => format!("{usual} or {}", found.variable),
                None => found.variable,
            },
            applies: found.applies,
            overridden: leaf
                .into_iter()
                .flat_map(|leaf| leaf.overridden.iter().rev())
                .map(|(origin, value)| Overridden {
                    value: Shown::from(value),
                    origin: origin.clone(),
                })
                .collect(),
        })))
    }

    fn lines(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Line> {
        self.leaves
            .iter()
            .filter(|leaf| is_wanted(&leaf.path))
            .map(|leaf| Line {
                path: leaf.path.clone(),
                value: Shown::from(&leaf.value),
                origin: leaf.origin.clone(),
            })
            .collect()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Section { path, help, settings } => {
                writeln!(f, "{path}: {help}")?;
                settings.iter().try_for_each(|line| write!(f, "\n{line}"))
            }
            Self::Setting(setting) => write!(f, "{setting}"),
        }
    }
}

impl fmt::Display for SettingExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} = {}", self.path, self.value)?;
        writeln!(f, "  from        {}", self.origin)?;
        for overridden in &self.overridden {
            writeln!(f, "  instead of  {} ({})", overridden.value, overridden.origin)?;
        }
        writeln!(f, "  default     {}", self.default)?;
        writeln!(f, "  takes       {}", self.takes)?;
        writeln!(f, "  variable    {}", self.variable)?;
        let applies = match self.applies {
            Applies::Live => "at once",
            Applies::Account => "at once; its account is connected anew",
            Applies::Restart => "after a restart",
        };
        writeln!(f, "  applies     {applies}")?;
        write!(f, "\n{}", self.help)
    }
}
