//! Who somebody is beyond one platform, and what their role grants.
//!
//! Being a person of the configuration lets nobody in: lists, a platform's roles and pairing do that.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::budget::Budget;

/// Somebody whom the operator knows by name, on however many platforms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// As the configuration names them.
    pub name: String,
    /// What they are to the operator.
    pub role: Option<Arc<Role>>,
}

/// What somebody is to the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Role {
    /// As the configuration names it.
    pub name: String,
    /// Commands that they may give although they are no administrators.
    pub commands: BTreeSet<String>,
    /// The only tools that their turns may use; none where all may be.
    pub tools: Option<BTreeSet<String>>,
    /// The only models that they may choose, as people write them; none where all may be.
    pub models: Option<BTreeSet<String>>,
    /// The only chats to which messages may be sent for them, by name; none where that is as for anybody.
    pub destinations: Option<BTreeSet<String>>,
    /// What they may spend, where that is not what everybody may.
    pub budget: Option<Budget>,
}

impl Person {
    /// Whether their role grants a command.
    pub fn may_give(&self, command: &str) -> bool {
        self.role.as_ref().is_some_and(|role| role.commands.contains(command))
    }

    /// Whether their turns may use a tool.
    pub fn may_use(&self, tool: &str) -> bool {
        let tools = self.role.as_ref().and_then(|role| role.tools.as_ref());
        tools.is_none_or(|tools| tools.contains(tool))
    }

    /// The only models that they may choose; none where all may be.
    pub fn models(&self) -> Option<&BTreeSet<String>> {
        self.role.as_ref().and_then(|role| role.models.as_ref())
    }

    /// The only chats to which messages may be sent for them; none where that is as for anybody.
    pub fn destinations(&self) -> Option<&BTreeSet<String>> {
        self.role.as_ref().and_then(|role| role.destinations.as_ref())
    }
}

/// As they are told.
impl std::fmt::Display for Person {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.role {
            Some(role) => write!(f, "{}, whose role is {}", self.name, role.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_role_grants_what_it_names_and_narrows_only_what_it_mentions() {
        let nobody_special = Person { name: "Ann".into(), role: None };
        assert!(!nobody_special.may_give("reload"));
        assert!(nobody_special.may_use("ask"));
        assert_eq!(nobody_special.models(), None);
        assert_eq!(nobody_special.to_string(), "Ann");
        let role = |tools: Option<&[&str]>| Role {
            name: "family".into(),
            commands: names(&["reload"]),
            tools: tools.map(names),
            models: Some(names(&["opus"])),
            destinations: None,
            budget: None,
        };
        let person = |role| Person { name: "Ann".into(), role: Some(Arc::new(role)) };
        let free = person(role(None));
        assert!(free.may_give("reload") && !free.may_give("restart") && !free.may_give("/reload"));
        assert!(free.may_use("ask"));
        assert_eq!(free.models(), Some(&names(&["opus"])));
        assert_eq!(free.to_string(), "Ann, whose role is family");
        let narrow = person(role(Some(&["ask"])));
        assert!(narrow.may_use("ask") && !narrow.may_use("run_program"));
        assert!(!person(role(Some(&[]))).may_use("ask"), "none is none");
    }
}
