//! What our platforms ask their vendors for, compared with what is published about it: Discord's own
//! description of its API, Slack's own declarations, and aiogram's models of the Bot API.
//!
//! The platforms' tests run once more, with vendors that write down what they are asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{installed, shell};

/// Somebody's published word on what may be asked.
struct Published {
    vendor: &'static str,
    script: &'static str,
    packages: &'static [&'static str],
    runs_on: Language,
    /// A request that does not fit, to see that it is found.
    wrong: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Node,
}

const ALL: [Published; 3] = [
    Published {
        vendor: "telegram",
        script: "telegram.py",
        packages: &["aiogram==3.31.0"],
        runs_on: Language::Python,
        wrong: r#"{"method":"POST","path":"sendMessage","body":{"chat_id":1,"text":"x","parse":1}}"#,
    },
    Published {
        vendor: "discord",
        script: "discord.mjs",
        packages: &["discord-api-spec@10.0.266135", "zod@4.6.7"],
        runs_on: Language::Node,
        wrong: r#"{"method":"POST","path":"/channels/1/messages","body":{"contents":"x"}}"#,
    },
    Published {
        vendor: "slack",
        script: "slack.mjs",
        packages: &["@slack/web-api@8.2.0", "typescript@5.9.3"],
        runs_on: Language::Node,
        wrong: r#"{"method":"POST","path":"chat.postMessage","body":{"channel":"C1","txt":"x"}}"#,
    },
];

pub(super) fn run(root: &Path) -> Result<()> {
    let folder = record(root)?;
    for published in &ALL {
        let (vendor, recorded) = (published.vendor, folder.join(published.vendor));
        let recorded = recorded.with_extension("jsonl");
        let said = compare(root, published, &recorded)?;
        ensure!(said.0, "{vendor} is asked for what it does not publish:\n{}", said.1);
        let planted = folder.join("wrong.jsonl");
        fs::write(&planted, published.wrong)?;
        ensure!(!compare(root, published, &planted)?.0, "a wrong request to {vendor} is not found");
        eprintln!("schemas: {vendor}: {}", said.1.trim());
    }
    Ok(())
}

/// Runs the tests of the three platforms and returns the folder in which their requests are.
fn record(root: &Path) -> Result<PathBuf> {
    let folder = installed::tools(root).with_file_name("recorded");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).context("no place for what vendors are asked")?;
    // The whole workspace is named so that nothing is built in another way than for its tests.
    let tests = "package(talaria-platforms) & test(/^(telegram|discord|slack)::tests/)";
    let tests: &[&str] = if shell::exists("cargo-nextest") {
        &["nextest", "run", "--workspace", "--locked", "--status-level", "fail", "-E", tests]
    } else {
        &["test", "--locked", "--package", "talaria-platforms", "--lib"]
    };
    shell::run(shell::cargo(root, tests).env("TALARIA_RECORD", &folder))?;
    Ok(folder)
}

/// Whether everything fits, and what the script says about it.
fn compare(root: &Path, published: &Published, recorded: &Path) -> Result<(bool, String)> {
    let name = format!("{}-published", published.vendor);
    let script = root.join("xtask/src/real_servers/schemas").join(published.script);
    let mut command = match published.runs_on {
        Language::Python => {
            Command::new(installed::python_packages(root, &name, published.packages)?)
        }
        Language::Node => {
            let packages = installed::node_packages(root, &name, published.packages)?;
            let mut command = Command::new("node");
            command.env("PACKAGES", packages);
            command
        }
    };
    let output = command.arg(script).arg(recorded).output().context("a script cannot be run")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0) => Ok((true, said)),
        Some(1) if !said.is_empty() => Ok((false, said)),
        _ => bail!("{name}: {said}\n{}", String::from_utf8_lossy(&output.stderr)),
    }
}
