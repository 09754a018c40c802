//! What a hook guards that cannot be used, as far as its `HOOK.yaml` can still be understood.
//!
//! A hook that says `on_failure: deny` keeps something from happening. That it was refused must not let it
//! happen, so what it would have been asked about is denied meanwhile. Nothing of it is run for that, and
//! somebody else may have written it: the worst that they can do by this is to have something denied.

use std::path::Path;

use serde_json::{Map, Value};

use crate::Events;
use crate::manifest;

/// What is denied while a hook is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// Nothing: it decides about nothing, or does not say `on_failure: deny`.
    Nothing,
    /// What it names.
    Events(Vec<String>),
    /// Everything that hooks are asked about: it cannot be told what it names.
    Everything,
}

impl Denied {
    /// What is denied for the sake of a hook with this manifest.
    pub(crate) fn by(file: &Path, events: Events<'_>) -> Self {
        let Ok(text) = manifest::text(file) else { return Self::Nothing };
        let text = String::from_utf8_lossy(&text);
        match serde_saphyr::from_str(&text) {
            Ok(Value::Object(said)) => by_its_words(&said, events),
            _ if mentions_denial(&text) => Self::Everything,
            _ => Self::Nothing,
        }
    }

    pub(crate) fn covers(&self, event: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Events(named) => manifest::fit(named, event).is_some(),
            Self::Everything => true,
        }
    }

    /// The events; `*` stands for everything.
    pub fn named(&self) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Events(named) => named.clone(),
            Self::Everything => vec!["*".to_owned()],
        }
    }

    /// What it is in words; none where it is nothing.
    pub fn in_words(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Events(named) => Some(format!("{} is denied meanwhile", named.join(", "))),
            Self::Everything => {
                Some("everything that hooks are asked about is denied meanwhile".to_owned())
            }
        }
    }
}

fn by_its_words(said: &Map<String, Value>, events: Events<'_>) -> Denied {
    let is_off = |key: &str| said.get(key).is_some_and(is_no);
    // Nobody writes it down for the sake of what holds without it.
    let lets_pass = said.get("on_failure").is_none_or(|value| value == "allow");
    if lets_pass || is_off("enabled") || is_off("decides") {
        return Denied::Nothing;
    }
    let named: Vec<&str> = match said.get("events") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => {
            all.iter().map(|event| event.as_str().unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    };
    if named.is_empty() || !named.iter().all(|event| manifest::is_known(event, events.all)) {
        return Denied::Everything;
    }
    let asked = named.into_iter().filter(|event| manifest::is_known(event, events.asked));
    match asked.map(str::to_owned).collect::<Vec<_>>() {
        asked if asked.is_empty() => Denied::Nothing,
        asked => Denied::Events(asked),
    }
}

fn is_no(value: &Value) -> bool {
    let words = ["false", "no", "off"];
    *value == Value::Bool(false)
        || value.as_str().is_some_and(|said| words.contains(&said.to_lowercase().as_str()))
}

/// Whether a text that cannot be read says `on_failure: deny` somewhere.
fn mentions_denial(text: &str) -> bool {
    let said = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    said.filter_map(|line| line.split_once("on_failure")).any(|(_, value)| value.contains("deny"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_denied_for_the_sake_of_a_hook_that_is_refused() {
        let events = Events {
            all: &["agent:end", "command:*", "pre_dispatch"],
            asked: &["command:*", "pre_dispatch"],
        };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("HOOK.yaml");
        let these = |named: &[&str]| {
            Denied::Events(named.iter().map(|event| (*event).to_owned()).collect())
        };
        let check = |text: &str, denied: &Denied| {
            std::fs::write(&file, text).expect("writes");
            assert_eq!(Denied::by(&file, events), *denied, "{text}");
        };
        for (text, denied) in [
            ("events: [pre_dispatch]", Denied::Nothing),
            ("events: [pre_dispatch]\non_failure: allow", Denied::Nothing),
            ("events: [pre_dispatch]\non_failure: deny\nenabled: false", Denied::Nothing),
            ("events: [pre_dispatch]\non_failure: deny\nenabled: no", Denied::Nothing),
            ("events: [pre_dispatch]\non_failure: deny\ndecides: false", Denied::Nothing),
            ("events: [agent:end]\non_failure: deny", Denied::Nothing),
            ("# on_failure: deny\nevents: [", Denied::Nothing),
            ("", Denied::Nothing),
            ("events: [pre_dispatch]\non_failure: deny", these(&["pre_dispatch"])),
            ("events: pre_dispatch\non_failure: deny", these(&["pre_dispatch"])),
            ("events: [agent:end, 'command:*']\non_failure: Deny", these(&["command:*"])),
            ("events: [command:new]\nno_key: 1\non_failure: deny", these(&["command:new"])),
            ("events: [pre_dispach, command:new]\non_failure: deny", Denied::Everything),
            ("event: [pre_dispatch]\non_failure: deny", Denied::Everything),
            ("events: [7]\non_failure: deny", Denied::Everything),
            ("events: [pre_dispatch\non_failure: deny", Denied::Everything),
            ("{events: [pre_dispatch], on_failure: deny", Denied::Everything),
            ("events: [agent:end]\nevents: [pre_dispatch]\non_failure: deny", Denied::Everything),
        ] {
            check(text, &denied);
        }
        std::fs::write(&file, b"name: \xff\non_failure: deny").expect("writes");
        assert_eq!(Denied::by(&file, events), Denied::Everything);
        assert_eq!(Denied::by(folder.path(), events), Denied::Nothing, "what is no file");
    }

    #[test]
    fn a_denial_covers_what_it_names_and_no_more() {
        let new = Denied::Events(vec!["command:new".into(), "pre_dispatch".into()]);
        assert!(new.covers("command:new") && new.covers("pre_dispatch"));
        assert!(!new.covers("command:help"));
        let all = Denied::Events(vec!["command:*".into()]);
        assert!(all.covers("command:help") && !all.covers("pre_dispatch"));
        assert!(Denied::Everything.covers("command:help"));
        assert!(!Denied::Nothing.covers("command:help"));
    }
}
