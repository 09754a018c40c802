//! The commands that people can give, for platforms that offer them in a menu.

use serde::Serialize;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MenuItem {
    /// Typed after the slash.
    pub name: String,
    /// Other names that can be typed in its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What comes after the name, as people are shown it. Empty where nothing has to.
    pub arguments: String,
    /// What it does, in one line.
    pub help: String,
    /// To whom it is offered. Giving it is decided for each person when they do.
    pub to: Offered,
}

impl MenuItem {
    /// Whether it belongs into a menu that everybody sees.
    pub fn is_public(&self) -> bool {
        self.to == Offered::Everyone
    }
}

/// To whom a command is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Offered {
    /// Whoever is heard.
    Everyone,
    /// Those who may give every command.
    Administrators,
}
