//! The shape of the workspace, checked: who may depend on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::shell;

/// What each crate may depend on. Contracts know nouns; implementations know contracts; the shell
/// knows contracts; only the app knows everything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("machine", &[]),
    ("model", &[]),
    ("clock", &["model"]),
    ("session", &["model"]),
    ("fetch", &["model", "clock"]),
    ("render", &["model"]),
    ("platform", &["model", "clock", "render"]),
    ("agent", &["machine", "model", "clock", "render"]),
    ("store", &["model", "session"]),
    ("platforms", &["machine", "model", "clock", "fetch", "render", "platform"]),
    ("providers", &["model", "clock", "fetch", "agent"]),
    ("voice", &["machine", "model", "fetch", "agent"]),
    ("hooks", &["machine", "clock"]),
    ("store-sqlite", &["model", "session", "store"]),
    ("faultdisk", &[]),
    ("config", &["model", "platform"]),
    ("gateway", &["machine", "model", "clock", "session", "render", "platform", "agent", "store"]),
    ("admin", &["machine", "model", "clock", "session", "platform", "store", "gateway"]),
    ("telemetry", &["model", "clock", "fetch", "gateway"]),
    ("testkit", EVERYTHING),
    ("fuzz", EVERYTHING),
    ("app", EVERYTHING),
    ("xtask", EVERYTHING),
];

/// For crates that put things together.
const EVERYTHING: &[&str] = &["*"];

/// Outside crates that a pure crate must not see.
const MUST_NOT_SEE: &[(&str, &[&str])] = &[
    ("model", &["tokio", "reqwest", "rusqlite", "rand", "axum"]),
    ("session", &["tokio", "reqwest", "rusqlite", "rand", "axum"]),
    ("render", &["tokio", "reqwest", "rusqlite", "rand", "axum"]),
    ("store", &["reqwest", "rusqlite", "axum"]),
    ("platforms", &["rusqlite"]),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let metadata =
        shell::read(&mut shell::cargo(root, &["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata is JSON")?;
    let findings = directions(&metadata);
    if !findings.is_empty() {
        bail!("the workspace is not tidy:\n{}", findings.join("\n"));
    }
    eprintln!("tidy: every crate depends only on what it may");
    Ok(())
}

fn directions(metadata: &Metadata) -> Vec<String> {
    let allowed: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let hidden: BTreeMap<_, _> = MUST_NOT_SEE.iter().copied().collect();
    let ours: Vec<_> =
        metadata.packages.iter().filter(|package| package.source.is_none()).collect();
    let names: BTreeSet<&str> = ours.iter().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in &ours {
        let short = short(&package.name);
        let Some(may_use) = allowed.get(short) else {
            findings.push(format!("{short}: is not in the list of crates in xtask/src/tidy.rs"));
            continue;
        };
        // What only tests use does not shape the product.
        for used in package.dependencies.iter().filter(|used| used.kind.as_deref() != Some("dev")) {
            let inside = names.contains(used.name.as_str());
            let name = self::short(&used.name);
            if inside && *may_use != EVERYTHING && !may_use.contains(&name) {
                findings.push(format!("{short}: must not depend on {name}"));
            }
            if hidden.get(short).is_some_and(|hidden| hidden.contains(&used.name.as_str())) {
                findings.push(format!("{short}: must not see {}", used.name));
            }
        }
    }
    findings
}

fn short(name: &str) -> &str {
    if name == "talaria" { "app" } else { name.strip_prefix("talaria-").unwrap_or(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, uses: &[&str]) -> Vec<String> {
        let package = |name: &str, uses: &[&str]| Package {
            name: name.to_owned(),
            source: None,
            dependencies: uses
                .iter()
                .map(|name| Dependency { name: (*name).to_owned(), kind: None })
                .collect(),
        };
        let mut packages = vec![package(name, uses)];
        packages.extend(uses.iter().map(|used| package(used, &[])));
        directions(&Metadata { packages })
    }

    #[test]
    fn a_platform_must_not_see_sessions_and_a_session_must_not_see_a_runtime() {
        assert_eq!(
            findings("talaria-platforms", &["talaria-session"]),
            ["platforms: must not depend on session"]
        );
        assert!(
            findings("talaria-session", &["talaria-model", "tokio"])
                .contains(&"session: must not see tokio".to_owned())
        );
        assert_eq!(findings("talaria-session", &["talaria-model"]), [""; 0]);
    }

    #[test]
    fn a_crate_nobody_has_placed_is_noticed() {
        assert_eq!(
            findings("talaria-misc", &[]),
            ["misc: is not in the list of crates in xtask/src/tidy.rs"]
        );
    }
}
