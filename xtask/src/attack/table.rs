//! The table: printed when it is tried, and kept in `docs/security.md` as the list says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::cases::CASES;
use super::{Case, Outcome, Shown};

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

/// What a case comes to, unless something is amiss.
fn verdict(case: &Case) -> &'static str {
    match case.shown {
        Shown::Live(_) | Shown::Both(..) => "denied",
        Shown::Tests(_) => "tested",
        Shown::Absent(_) => "absent",
        Shown::Later(_) => "later",
    }
}

fn word(outcome: &Outcome) -> &'static str {
    if outcome.failure.is_some() { "NOT DENIED" } else { verdict(outcome.case) }
}

const TRIED: &str = "tried against the binary";

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn evidence(case: &Case) -> String {
    match case.shown {
        Shown::Live(_) => TRIED.to_owned(),
        Shown::Tests(names) => listed(names),
        Shown::Both(_, names) => format!("{TRIED}, and by {}", listed(names)),
        Shown::Absent(why) | Shown::Later(why) => why.to_owned(),
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
    let words: Vec<_> = outcomes.iter().map(word).collect();
    let failed = words.iter().filter(|word| **word == "NOT DENIED").count();
    format!("{}, {failed} not denied", counted(&words))
}

fn counted(words: &[&str]) -> String {
    let count = |wanted: &str| words.iter().filter(|word| **word == wanted).count();
    format!(
        "{} cases: {} denied by the binary, {} by tests of the workspace, {} have nothing to attack, {} belong to parts that are not built",
        words.len(),
        count("denied"),
        count("tested"),
        count("absent"),
        count("later"),
    )
}

/// The page about security, with the table as the list says.
pub(crate) fn page(root: &Path) -> Result<String> {
    let page = fs::read_to_string(root.join("docs/security.md")).context("docs/security.md")?;
    let (before, rest) = page.split_once(BEGIN).context("the place of the table")?;
    let (_, after) = rest.split_once(END).context("the end of the table")?;
    let words: Vec<_> = CASES.iter().map(verdict).collect();
    let mut table =
        format!("{}.\n\n| case | attack | | shown by |\n|---|---|---|---|\n", counted(&words));
    for case in CASES {
        let (name, attack) = (name(case.number), cell(case.attack));
        let _ = writeln!(
            table,
            "| {name} | {attack} | {} | {} |",
            verdict(case),
            cell(&evidence(case))
        );
    }
    ensure!(!table.contains(END), "a remark ends the table");
    Ok(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_security_says_what_the_list_says() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let written = fs::read_to_string(root.join("docs/security.md")).unwrap();
        let page = page(root).unwrap();
        let differs = page.lines().zip(written.lines()).find(|(meant, written)| meant != written);
        assert_eq!(differs, None, "run `cargo xtask docs`");
        assert!(page == written, "run `cargo xtask docs`");
    }

    #[test]
    fn every_test_that_a_row_names_is_there() {
        let known = tests_in(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap();
        for case in CASES {
            if let Shown::Tests(names) | Shown::Both(_, names) = case.shown {
                for name in names {
                    assert!(known.contains(*name), "ATK-{:03}: no test {name}", case.number);
                }
            }
        }
    }
}
