//! `HOOK.yaml`: what a hook says of itself.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use talaria_machine::{PYTHON, find_program, is_program, make_program, program_in};

use crate::{LONGEST_RUN, Way, safety};

/// What a hook says of itself is in this file of its folder.
pub(crate) const MANIFEST: &str = "HOOK.yaml";

/// How long a decision may take if a hook does not say.
const USUAL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a decision may take at most.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The most that a manifest may have, in bytes.
const LONGEST_MANIFEST: u64 = 64 * 1024;

/// The longest name of an event that a program is given as an argument, in bytes.
const LONGEST_WORD: usize = 128;

/// Hooks of one home.
const MOST_HOOKS: usize = 64;

/// Events of one hook.
const MOST_EVENTS: usize = 64;

/// What a hook says of itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What it is called; like its folder if it does not say.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it wants to hear of: names of events, or `command:*` for all of a kind.
    pub events: Vec<String>,
    /// The program in its folder; `handler.py` or `handler` if it does not say.
    #[serde(default)]
    pub handler: Option<PathBuf>,
    /// Whether it is asked where something is decided, or only told.
    #[serde(default = "yes")]
    pub decides: bool,
    /// How long a decision may take.
    #[serde(default = "usual_timeout", deserialize_with = "timeout")]
    pub timeout: Duration,
    /// What happens when it does not decide.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Whether it is used.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whoever wrote it and which version it is: of no interest here.
    #[serde(default, rename = "version")]
    _version: Option<serde_json::Value>,
    #[serde(default, rename = "author")]
    _author: Option<serde_json::Value>,
}

/// What happens when a hook that was asked does not decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It goes on as if the hook were not there.
    #[default]
    Allow,
    /// It is not done.
    Deny,
}

fn yes() -> bool {
    true
}

fn usual_timeout() -> Duration {
    USUAL_TIMEOUT
}

fn timeout<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let timeout = humantime::parse_duration(&text).map_err(serde::de::Error::custom)?;
    if timeout.is_zero() || timeout > LONGEST_TIMEOUT {
        return Err(serde::de::Error::custom("a timeout is more than nothing and 10s at most"));
    }
    Ok(timeout)
}

/// How closely a hook names an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    Exact,
    Kind,
}

impl Manifest {
    pub(crate) fn fit(&self, event: &str) -> Option<Fit> {
        fit(&self.events, event)
    }

    /// How long it may take.
    pub(crate) fn limit(&self, way: Way) -> Duration {
        match way {
            Way::Asked => self.timeout,
            Way::Told => LONGEST_RUN,
        }
    }
}

/// How closely an event is named.
pub(crate) fn fit(named: &[String], event: &str) -> Option<Fit> {
    let kind = event.split(':').next().unwrap_or(event);
    let fit = |named: &String| match named.strip_suffix(":*") {
        _ if named == event => Some(Fit::Exact),
        Some(all) if all == kind => Some(Fit::Kind),
        _ => None,
    };
    named.iter().filter_map(fit).min()
}

/// As much of a script as its first line may take.
const LONGEST_FIRST_LINE: u64 = 256;

/// How a hook is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Handler {
    /// Once for every event.
    Program(PathBuf),
    /// In a process that stays.
    Python(PathBuf),
}

impl Handler {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Program(path) | Self::Python(path) => path,
        }
    }
}

/// A hook that can be used.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) manifest: Manifest,
    pub(crate) handler: Handler,
}

/// Every hook in a folder, in the order of their names, or what is wrong with it. There is none of those that say
/// that they are not to be used.
pub(crate) fn all_in(folder: &Path, events: &[&str]) -> Vec<(PathBuf, Result<Found, String>)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![(folder.to_owned(), Err(format!("it cannot be read: {error}")))],
    };
    let mut places: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|place| is_meant(place))
        .collect();
    places.sort_unstable();
    if let Err(reason) = safety::check(folder) {
        let all = if places.is_empty() { vec![folder.to_owned()] } else { places };
        return all.into_iter().map(|place| (place, Err(reason.clone()))).collect();
    }
    let mut names: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (number, place) in places.into_iter().enumerate() {
        let read = match number < MOST_HOOKS {
            true => read(&place, events),
            false => Err(format!("there are more than {MOST_HOOKS} hooks")),
        };
        let read = read.and_then(|found| match found {
            Some(found) if names.contains(&found.name) => {
                Err(format!("another hook is called {:?}; give it a name of its own", found.name))
            }
            found => Ok(found),
        });
        let Some(read) = read.transpose() else { continue };
        names.extend(read.as_ref().ok().map(|found| found.name.clone()));
        all.push((place, read));
    }
    all
}

/// Whether a place is meant to be a hook, also where nobody may look into it.
fn is_meant(place: &Path) -> bool {
    let nothing = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    match fs::symlink_metadata(place.join(MANIFEST)) {
        Ok(_) => true,
        Err(error) => !nothing.contains(&error.kind()),
    }
}

/// As much of a manifest as is looked at, whoever wrote it.
pub(crate) fn text(file: &Path) -> io::Result<Vec<u8>> {
    // Whoever opens something else may wait for ever.
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = Vec::new();
    fs::File::open(file)?.take(LONGEST_MANIFEST).read_to_end(&mut text)?;
    Ok(text)
}

fn read(folder: &Path, events: &[&str]) -> Result<Option<Found>, String> {
    let file = folder.join(MANIFEST);
    safety::check(folder)?;
    safety::check(&file)?;
    let text = text(&file).map_err(|error| format!("HOOK.yaml cannot be read: {error}"))?;
    let text = String::from_utf8(text).map_err(|error| format!("HOOK.yaml is wrong: {error}"))?;
    let manifest: Manifest = serde_saphyr::from_str(&text)
        .map_err(|error| format!("HOOK.yaml is wrong: {}", head(&error)))?;
    if !manifest.enabled {
        return Ok(None);
    }
    if manifest.events.is_empty() || manifest.events.len() > MOST_EVENTS {
        return Err(format!("HOOK.yaml has to name events, {MOST_EVENTS} at most"));
    }
    if let Some(wrong) = manifest.events.iter().find(|event| !is_event(event)) {
        return Err(format!("HOOK.yaml: {wrong:?} is no event; write `kind:name` or `kind:*`"));
    }
    // Whoever listens for something that never happens guards nothing.
    if let Some(wrong) = manifest.events.iter().find(|event| !happens(event, events)) {
        return Err(format!("HOOK.yaml: {wrong:?} never happens; there are {}", events.join(", ")));
    }
    let usual = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = manifest.name.clone().unwrap_or_else(|| usual.to_owned());
    let handler = handler(folder, &manifest)?;
    Ok(Some(Found { name, manifest, handler }))
}

/// The first line of what is wrong with a text: it says where. A picture of the place follows, which has no room in a line.
fn head(error: &serde_saphyr::Error) -> String {
    let whole = error.to_string();
    let first = whole.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}

fn is_event(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    match name.split_once(':') {
        None => plain(name),
        Some((kind, name)) => plain(kind) && (name == "*" || plain(name)),
    }
}

/// Whether something can happen that is named so. `kind:*` among the events is a kind with any names.
fn happens(named: &str, events: &[&str]) -> bool {
    let kind = named.split_once(':').map(|(kind, _)| kind);
    let is_it = |event: &&str| match event.split_once(':') {
        Some((of, "*")) => kind == Some(of),
        Some((of, _)) => *event == named || kind == Some(of) && named.ends_with(":*"),
        None => *event == named,
    };
    events.iter().any(is_it)
}

/// Whether this is the name of one of these events.
pub(crate) fn is_known(named: &str, events: &[&str]) -> bool {
    is_event(named) && happens(named, events)
}

/// The name of an event as a program can be given it. What somebody typed as a command may be too long for
/// that, or have no place in an argument: then it is the kind alone.
pub(crate) fn word(event: &str) -> &str {
    match is_event(event) && event.len() <= LONGEST_WORD {
        true => event,
        false => event.split(':').next().unwrap_or_default(),
    }
}

fn handler(folder: &Path, manifest: &Manifest) -> Result<Handler, String> {
    let path = match &manifest.handler {
        Some(named) => {
            let inside =
                named.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            if !inside {
                return Err("HOOK.yaml: handler has to be a file in the hook's folder".into());
            }
            folder.join(named)
        }
        None => Some(folder.join("handler.py"))
            .filter(|path| path.exists())
            .or_else(|| program_in(folder, "handler"))
            .ok_or("there is no handler.py and no handler; add one, or name it in HOOK.yaml")?,
    };
    safety::check(&path)?;
    let found = fs::metadata(&path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err(format!("{} is no file", path.display()));
    }
    if path.extension().is_some_and(|extension| extension == "py") {
        return Ok(Handler::Python(path));
    }
    if !is_program(&path) {
        return Err(format!("{} is not executable; {}", path.display(), make_program()));
    }
    Ok(Handler::Program(path))
}

/// The interpreter of a handler, if there is none of that name.
pub(crate) fn missing(handler: &Path) -> Option<String> {
    let interpreter = match handler.extension().is_some_and(|extension| extension == "py") {
        true => PYTHON.to_owned(),
        false => interpreter(handler)?,
    };
    find_program(&interpreter).is_none().then_some(interpreter)
}

/// Whom the first line of a script names, where it has such a line.
fn interpreter(script: &Path) -> Option<String> {
    let mut start = Vec::new();
    fs::File::open(script).ok()?.take(LONGEST_FIRST_LINE).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(&start);
    let mut words = start.strip_prefix("#!")?.lines().next()?.split_whitespace();
    let program = words.next()?;
    if !program.ends_with("/env") {
        return Some(program.to_owned());
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |script: &str, missing: Option<&str>| {
            let path = folder.path().join("handler");
            fs::write(&path, script).expect("writes");
            assert_eq!(super::missing(&path).as_deref(), missing, "{script}");
        };
        check("#!/bin/sh\nexit 0\n", None);
        check("#!/usr/bin/env sh\n", None);
        check("#!/nowhere/ruby -w\n", Some("/nowhere/ruby"));
        check("#!/usr/bin/env -S no-such-program --x\n", Some("no-such-program"));
        check("\u{7f}ELF", None);
        check("", None);
    }

    #[test]
    fn names_of_events() {
        for right in
            ["agent:step", "command:*", "pre_dispatch", "gateway:startup", "command:set-home"]
        {
            assert!(is_event(right), "{right}");
        }
        for wrong in ["", "*", ":", "agent:", ":step", "agent:step:two", "a b", "*:x"] {
            assert!(!is_event(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_never_happens_is_no_event() {
        let events = ["pre_dispatch", "agent:start", "agent:end", "command:*"];
        for right in ["pre_dispatch", "agent:end", "agent:*", "command:*", "command:joke"] {
            assert!(happens(right, &events), "{right}");
        }
        for wrong in ["pre_dispach", "agent:stop", "agents:*", "comand:x", "agent", "command"] {
            assert!(!happens(wrong, &events), "{wrong}");
        }
    }

    #[test]
    fn a_program_is_given_no_word_that_could_break_it() {
        for plain in ["command:new", "command:set-home", "pre_dispatch"] {
            assert_eq!(word(plain), plain);
        }
        let long = format!("command:{}", "x".repeat(LONGEST_WORD));
        for typed in ["command:\0x", "command:$(x)", "command:a b", &long] {
            assert_eq!(word(typed), "command");
        }
    }

    #[test]
    fn who_names_an_event_comes_before_who_names_its_kind() {
        let manifest: Manifest =
            serde_saphyr::from_str("events: ['command:*', 'command:new', 'agent:end']")
                .expect("reads");
        assert_eq!(manifest.fit("command:new"), Some(Fit::Exact));
        assert_eq!(manifest.fit("command:stop"), Some(Fit::Kind));
        assert_eq!(manifest.fit("agent:end"), Some(Fit::Exact));
        assert_eq!(manifest.fit("agent:start"), None);
        assert!(Fit::Exact < Fit::Kind);
    }
}
