//! What a model costs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Money, in millionths of a US dollar, and how much of it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// The part that is known.
    pub micros: u64,
    /// Whether that is all.
    pub status: CostStatus,
}

/// How much of a cost is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostStatus {
    /// Nothing was used yet, or it costs nothing: a model on this machine.
    #[default]
    Free,
    /// All of it.
    Known,
    /// All of it, about: a part was for an answer that broke off before anybody counted it.
    Estimated,
    /// A part of it: there was a step whose price nobody told.
    Partly,
    /// Nothing of it.
    Unknown,
}

impl Cost {
    /// Costs nothing.
    pub const FREE: Self = Self { micros: 0, status: CostStatus::Free };

    /// Nobody told the price.
    pub const UNKNOWN: Self = Self { micros: 0, status: CostStatus::Unknown };

    /// A price that is known.
    pub const fn known(micros: u64) -> Self {
        Self { micros, status: CostStatus::Known }
    }

    /// A price that is known of something that nobody counted.
    pub const fn estimated(micros: u64) -> Self {
        Self { micros, status: CostStatus::Estimated }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        use CostStatus::{Estimated, Free, Known, Partly, Unknown};
        self.micros = self.micros.saturating_add(other.micros);
        self.status = match (self.status, other.status) {
            (Free, status) | (status, Free) => status,
            (Known, Known) => Known,
            (Estimated, Known | Estimated) | (Known, Estimated) => Estimated,
            (Unknown, Unknown) => Unknown,
            (Partly, _) | (_, Partly) => Partly,
            (Known | Estimated, Unknown) | (Unknown, Known | Estimated) => Partly,
        };
    }
}

/// What was used, and what that cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens.
    pub usage: Usage,
    /// Money.
    pub cost: Cost,
}

impl Used {
    /// Whatever it was, it was not nothing.
    pub const UNKNOWN: Self = Self { usage: Usage::NONE, cost: Cost::UNKNOWN };
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.cost += other.cost;
    }
}

/// As people read it: `$0.0042`, `about $0.0042`, `free`, `unknown`, `at least $1.20`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            CostStatus::Free => return f.write_str("free"),
            CostStatus::Unknown => return f.write_str("unknown"),
            CostStatus::Partly => f.write_str("at least ")?,
            CostStatus::Estimated => f.write_str("about ")?,
            CostStatus::Known => {}
        }
        let dollars = self.micros / 1_000_000;
        if self.micros >= 1_000_000 {
            write!(f, "${dollars}.{:02}", self.micros % 1_000_000 / 10_000)
        } else {
            write!(f, "$0.{:04}", self.micros / 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_known_as_far_as_its_parts_are() {
        let sum = |parts: &[Cost]| {
            let mut sum = Cost::default();
            parts.iter().for_each(|part| sum += *part);
            sum.to_string()
        };
        assert_eq!(sum(&[]), "free");
        assert_eq!(sum(&[Cost::FREE, Cost::known(4_200)]), "$0.0042");
        assert_eq!(sum(&[Cost::known(1_500_000), Cost::known(20_000)]), "$1.52");
        assert_eq!(sum(&[Cost::UNKNOWN, Cost::FREE]), "unknown");
        assert_eq!(sum(&[Cost::UNKNOWN, Cost::known(1_200_000)]), "at least $1.20");
        assert_eq!(sum(&[Cost::known(20_000), Cost::estimated(4_200)]), "about $0.0242");
        assert_eq!(sum(&[Cost::estimated(4_200), Cost::FREE]), "about $0.0042");
        assert_eq!(sum(&[Cost::estimated(4_200), Cost::UNKNOWN]), "at least $0.0042");
        assert_eq!(sum(&[Cost::known(1), Cost::UNKNOWN, Cost::known(1)]), "at least $0.0000");
    }
}
