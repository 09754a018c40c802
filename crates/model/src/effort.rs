//! How hard a model thinks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How hard a model thinks before it answers. What a model does not know is rounded by its provider
/// to the nearest that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all.
    Off,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// Very much.
    XHigh,
    /// As much as possible, whatever it costs.
    Max,
}

impl Effort {
    /// All of them, from none to most.
    pub const ALL: [Self; 7] =
        [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh, Self::Max];

    /// As people write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no effort.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no effort {0:?}; there are off, minimal, low, medium, high, xhigh and max")]
pub struct UnknownEffort(pub String);

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(word: &str) -> Result<Self, UnknownEffort> {
        let lower = word.trim().to_ascii_lowercase();
        let named = |effort: &Self| effort.as_str() == lower;
        match lower.as_str() {
            "none" => Ok(Self::Off),
            "ultra" => Ok(Self::Max),
            _ => Self::ALL.into_iter().find(named).ok_or_else(|| UnknownEffort(word.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effort_is_read_back_as_it_is_written() {
        for effort in Effort::ALL {
            assert_eq!(effort.to_string().parse(), Ok(effort));
            let json = serde_json::to_string(&effort).unwrap();
            assert_eq!(json, format!("\"{effort}\""));
        }
        assert_eq!(" None ".parse(), Ok(Effort::Off));
        assert!("harder".parse::<Effort>().is_err());
        assert!(Effort::ALL.is_sorted());
    }
}
