//! Where a value came from, and what there is to say about it.

use std::fmt;

use serde::Serialize;

use crate::fit::Leaf;

/// The file of settings, in the home folder.
pub(crate) const CONFIG_FILE: &str = "config.yaml";
/// The file of environment variables, in the home folder.
pub(crate) const DOTENV_FILE: &str = ".env";

/// Which layer a value came from. A later variant wins over an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Built in.
    Default,
    /// `config.yaml`.
    File {
        /// Counts from one.
        line: u32,
        /// Counts from one.
        column: u32,
    },
    /// A variable in `.env`.
    DotEnv {
        /// The variable.
        name: String,
        /// Counts from one.
        line: u32,
    },
    /// A variable of the process.
    Environment {
        /// The variable.
        name: String,
    },
}

impl Origin {
    /// Where a person looks to change it; nowhere for what is built in.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Default => None,
            Self::File { line, column } => Some(Place {
                file: CONFIG_FILE.to_owned(),
                line: Some(*line),
                column: Some(*column),
            }),
            Self::DotEnv { line, .. } => {
                Some(Place { file: DOTENV_FILE.to_owned(), line: Some(*line), column: None })
            }
            Self::Environment { name } => Some(Place::whole(name)),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { line, .. } => write!(f, "{CONFIG_FILE}:{line}"),
            Self::DotEnv { line, .. } => write!(f, "{DOTENV_FILE}:{line}"),
            Self::Environment { name } => write!(f, "environment {name}"),
        }
    }
}

/// A place a person can go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// `config.yaml`, `.env`, or the name of an environment variable.
    pub file: String,
    /// Counts from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Counts from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl Place {
    pub(crate) fn whole(file: &str) -> Self {
        Self { file: file.to_owned(), line: None, column: None }
    }
}

/// One thing to tell the person who wrote the configuration. It never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where it was found.
    pub place: Option<Place>,
    /// The setting, such as `agent.turn_limit`; absent when a whole file is meant.
    pub path: Option<String>,
    /// The value as it was written, quoted; `(hidden)` instead of a secret.
    pub value: Option<String>,
    /// What is wrong with it and what to write instead.
    pub expectation: String,
    /// The line of the file, with everything masked that could be private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

impl Finding {
    /// About a whole file or variable.
    pub(crate) fn about(file: &str, expectation: impl Into<String>) -> Self {
        Self {
            place: Some(Place::whole(file)),
            path: None,
            value: None,
            expectation: expectation.into(),
            excerpt: None,
        }
    }

    /// About a setting that has no value worth repeating.
    pub(crate) fn at(origin: &Origin, path: &str, expectation: impl Into<String>) -> Self {
        Self {
            place: origin.place(),
            path: Some(path.to_owned()),
            value: None,
            expectation: expectation.into(),
            excerpt: None,
        }
    }

    pub(crate) fn with_value(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            f.write_str(&place.file)?;
            if let Some(line) = place.line {
                write!(f, ":{line}")?;
                // A setting is found by its name; only text without one needs the column.
                if let (Some(column), None) = (place.column, &self.path) {
                    write!(f, ":{column}")?;
                }
            }
            f.write_str(": ")?;
        }
        if let Some(path) = &self.path {
            write!(f, "{path}: ")?;
        }
        if let Some(value) = &self.value {
            write!(f, "{value} ")?;
        }
        f.write_str(&self.expectation)?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        Ok(())
    }
}

/// How many problems or warnings a person is told at once.
pub(crate) const MOST_FINDINGS: usize = 100;

/// As many findings as a person reads, and how many more there are. A file full of nonsense is told
/// apart from one with mistakes long before that.
pub(crate) fn capped(mut findings: Vec<Finding>) -> Vec<Finding> {
    let left_out = findings.len().saturating_sub(MOST_FINDINGS);
    if left_out > 0 {
        findings.truncate(MOST_FINDINGS);
        let expectation = format!("and {left_out} more like these");
        findings.push(Finding { place: None, path: None, value: None, expectation, excerpt: None });
    }
    findings
}

/// Everything that is wrong with a configuration, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(transparent)]
pub struct Problems {
    problems: Vec<Finding>,
    #[serde(skip)]
    warnings: Vec<Finding>,
    /// Where each setting came from, as far as they could be read.
    #[serde(skip)]
    origins: Vec<(String, Origin)>,
}

impl Problems {
    pub(crate) fn new(mut findings: Vec<Finding>) -> Self {
        let line = |finding: &Finding| finding.place.as_ref().and_then(|place| place.line);
        let file = |finding: &Finding| finding.place.as_ref().map(|place| place.file.clone());
        // What has no place is about what is missing, and is read last.
        findings.sort_by_key(|finding| (finding.place.is_none(), file(finding), line(finding)));
        Self { problems: capped(findings), warnings: Vec::new(), origins: Vec::new() }
    }

    pub(crate) fn with_warnings(self, warnings: Vec<Finding>) -> Self {
        Self { warnings: capped(warnings), ..self }
    }

    pub(crate) fn among(self, leaves: &[Leaf]) -> Self {
        let origins = leaves.iter().map(|leaf| (leaf.path.clone(), leaf.origin.clone()));
        Self { origins: origins.collect(), ..self }
    }

    /// Where a setting came from; absent if there is no such setting, or if the files could not be read.
    pub fn origin(&self, path: &str) -> Option<&Origin> {
        self.origins.iter().find(|(known, _)| known == path).map(|(_, origin)| origin)
    }

    /// Each problem.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.problems.iter()
    }

    /// What is odd besides, as far as it was looked at.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}
