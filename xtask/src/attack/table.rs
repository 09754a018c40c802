//! The table: printed, and kept in `docs/security.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Outcome, Shown};

/// Names of the tests of the workspace.
pub(super) type Known = BTreeSet<String>;

const BEGIN: &str = "<!-- attacks: begin -->";
const END: &str = "<!-- attacks: end -->";

/// Every function of the workspace's sources, by name.
pub(super) fn tests_in(root: &Path) -> Result<Known> {
    let mut known = Known::new();
    let mut folders = vec![root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path)?;
                let names =
                    text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
                known.extend(names.map(|name| name.trim().to_owned()));
            }
        }
    }
    Ok(known)
}

/// A case of ours that is not on the list has no number.
fn name(number: u16) -> String {
    if number == 0 { "own    ".to_owned() } else { format!("ATK-{number:03}") }
}

fn word(outcome: &Outcome) -> &'static str {
    match (&outcome.failure, outcome.case.shown) {
        (Some(_), _) => "NOT DENIED",
        (None, Shown::Live(_) | Shown::Both(..)) => "denied",
        (None, Shown::Tests(_)) => "tested",
        (None, Shown::Absent(_)) => "absent",
        (None, Shown::Later(_)) => "later",
    }
}

const TRIED: &str = "tried against the binary";

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn remark(outcome: &Outcome) -> String {
    match (&outcome.failure, outcome.case.shown) {
        (Some(failure), _) => failure.clone(),
        (None, Shown::Live(_)) => TRIED.to_owned(),
        (None, Shown::Tests(names)) => listed(names),
        (None, Shown::Both(_, names)) => format!("{TRIED}, and by {}", listed(names)),
        (None, Shown::Absent(why) | Shown::Later(why)) => why.to_owned(),
    }
}

/// One row, as soon as it is known.
pub(super) fn print(outcome: &Outcome) {
    println!(
        "{}  {:<10}  {:>6} ms  {}",
        name(outcome.case.number),
        word(outcome),
        outcome.took.as_millis(),
        outcome.case.attack
    );
    if let Some(failure) = &outcome.failure {
        println!("           {failure}");
    }
}

pub(super) fn sum(outcomes: &[Outcome]) -> String {
    let count = |wanted: &str| outcomes.iter().filter(|outcome| word(outcome) == wanted).count();
    format!(
        "{} cases: {} denied by the binary, {} by tests of the workspace, {} have nothing to attack, {} belong to parts that are not built, {} not denied",
        outcomes.len(),
        count("denied"),
        count("tested"),
        count("absent"),
        count("later"),
        count("NOT DENIED"),
    )
}

/// Writes the table into the page about security.
pub(super) fn write(root: &Path, outcomes: &[Outcome]) -> Result<()> {
    let path = root.join("docs/security.md");
    let page = fs::read_to_string(&path).context("docs/security.md")?;
    let (before, rest) = page.split_once(BEGIN).context("the place of the table")?;
    let (_, after) = rest.split_once(END).context("the end of the table")?;
    let mut table =
        format!("{}.\n\n| case | attack | | shown by |\n|---|---|---|---|\n", sum(outcomes));
    for outcome in outcomes {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} |",
            name(outcome.case.number),
            cell(outcome.case.attack),
            word(outcome),
            cell(&remark(outcome))
        );
    }
    ensure!(!table.contains(END), "a remark ends the table");
    fs::write(&path, format!("{before}{BEGIN}\n{table}{END}{after}"))?;
    Ok(())
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
