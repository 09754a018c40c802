//! `cargo xtask planted`: shows that the simulator and the platforms' own tests bite. Bugs that were put
//! into a copy of the program on purpose are switched on one by one, and each has to be found.
//!
//! A bug is a patch, guarded by its name in an environment variable, so that all of them are built at
//! once. Those of `crates/testkit/planted` are for the simulator; those of `crates/platforms/planted` are
//! for the tests of the platform that their names begin with. The copy also holds the platform that
//! docs/adding-a-platform.md writes, whose tests have to pass, and one that is only laid out.
#![allow(clippy::disallowed_methods, reason = "it says how long each hunt took")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::{platform, shell, sim};

/// Names the bug that is switched on.
const SWITCH: &str = "TALARIA_PLANTED";

/// Where the crates are in the tree with the bugs. Cargo tells crates apart by their place in a workspace, and
/// would take those of the tree for the same as ours.
const FOLDER: &str = "planted";

/// How many seeds are looked through for each, after every point to die at.
const SEEDS: &str = "4000";

#[derive(Args)]
pub(crate) struct Options {
    /// Only the bugs that these have to find
    #[arg(long)]
    only: Option<Hunter>,
}

/// Who looks for a bug.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hunter {
    /// The simulator
    Simulator,
    /// The tests of the platforms
    Platforms,
}

impl Hunter {
    const ALL: [Self; 2] = [Self::Platforms, Self::Simulator];

    fn folder(self) -> &'static str {
        match self {
            Self::Simulator => "crates/testkit/planted",
            Self::Platforms => "crates/platforms/planted",
        }
    }
}

/// What a hunt brought.
enum Caught {
    Nothing,
    /// By whom, and what it breaks.
    By(String, String),
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    hunt(root, &options.only.map_or(Hunter::ALL.to_vec(), |hunter| vec![hunter]))
}

/// Everybody hunts.
pub(crate) fn run_all(root: &Path) -> Result<()> {
    hunt(root, &Hunter::ALL)
}

fn hunt(root: &Path, hunters: &[Hunter]) -> Result<()> {
    let mut bugs = BTreeMap::new();
    for hunter in hunters {
        bugs.insert(hunter.folder(), patches(&root.join(hunter.folder()))?);
    }
    let all: Vec<_> = bugs.values().flatten().cloned().collect();
    let mut files = planted(root, &all)?;
    if hunters.contains(&Hunter::Platforms) {
        platform::rehearse(&mut files)?;
    }
    // Built among what else is, whose dependencies need not be built twice.
    let target = sim::target(root);
    let tree = target.join("planted");
    write(&tree, &moved(files)?)?;
    for hunter in hunters {
        let names: Vec<&str> =
            bugs[hunter.folder()].iter().map(|(name, _)| name.as_str()).collect();
        match hunter {
            Hunter::Simulator => {
                let binary = sim::build(&tree, &target)?;
                go_through(&names, |bug| simulated(&binary, bug))?;
            }
            Hunter::Platforms => {
                let binary = tests(&tree, &target)?;
                go_through(&names, |bug| tested(&binary, &tree, bug))?;
            }
        }
    }
    Ok(())
}

/// Hunts without a bug, in which nothing may be found, and for each bug.
fn go_through(bugs: &[&str], hunt: impl Fn(Option<&str>) -> Result<Caught>) -> Result<()> {
    if let Caught::By(by, breaks) = hunt(None)? {
        bail!("something is wrong before any bug is switched on: {by} {breaks}");
    }
    eprintln!("| bug | found by | breaks | seconds |\n|---|---|---|---|");
    let mut survivors = Vec::new();
    for bug in bugs {
        let began = Instant::now();
        let (by, breaks) = match hunt(Some(bug))? {
            Caught::By(by, breaks) => (by, breaks),
            Caught::Nothing => {
                survivors.push(*bug);
                ("nobody".to_owned(), "—".to_owned())
            }
        };
        eprintln!("| {bug} | `{by}` | {breaks} | {:.1} |", began.elapsed().as_secs_f64());
    }
    if !survivors.is_empty() {
        bail!("not found: {}", survivors.join(", "));
    }
    eprintln!("planted: all {} bugs were found, and none without them", bugs.len());
    Ok(())
}

fn run_with(command: &mut Command, bug: Option<&str>) -> Result<Output> {
    command.env_remove(SWITCH);
    if let Some(bug) = bug {
        command.env(SWITCH, bug);
    }
    command.output().context("what hunts cannot be run")
}

fn simulated(binary: &Path, bug: Option<&str>) -> Result<Caught> {
    let output = run_with(Command::new(binary).args(["--hunt", "--seeds", SEEDS]), bug)?;
    if output.status.success() {
        return Ok(Caught::Nothing);
    }
    let told = String::from_utf8_lossy(&output.stdout);
    Ok(match told.trim().split_once('\t') {
        Some((by, problem)) => {
            let breaks = problem.split(':').next().unwrap_or(problem);
            Caught::By(by.to_owned(), breaks.to_owned())
        }
        None => Caught::By("the simulator broke down over it".to_owned(), "—".to_owned()),
    })
}

/// The tests of one platform, or of all where there is no bug.
fn tested(binary: &Path, tree: &Path, bug: Option<&str>) -> Result<Caught> {
    let mut command = Command::new(binary);
    command.current_dir(tree.join(FOLDER).join("crates/platforms"));
    match bug.and_then(|bug| bug.split_once('-')) {
        Some((platform, _)) => drop(command.arg(format!("{platform}::"))),
        // What is only laid out passes nothing.
        None => drop(command.args(["--skip", &format!("{}::", platform::LAID_OUT)])),
    }
    let output = run_with(&mut command, bug)?;
    if output.status.success() {
        return Ok(Caught::Nothing);
    }
    let told = String::from_utf8_lossy(&output.stdout);
    let failed: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .collect();
    let first = failed.first().map_or("the tests broke down over it", |first| first);
    Ok(Caught::By(first.to_owned(), format!("{} tests", failed.len())))
}

/// Builds the tests of the platforms.
fn tests(tree: &Path, target: &Path) -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Built {
        executable: Option<PathBuf>,
    }
    let build = ["test", "--locked", "--package", "talaria-platforms", "--lib", "--no-run"];
    let mut command = shell::cargo(tree, &build);
    command.arg("--message-format=json-render-diagnostics").arg("--target-dir").arg(target);
    let told = shell::read(&mut command)?;
    let built = told.lines().filter_map(|line| serde_json::from_str::<Built>(line).ok());
    built.filter_map(|built| built.executable).next_back().context("cargo names what it has built")
}

fn patches(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut patches = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "patch") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            patches.push((name, fs::read_to_string(&path)?));
        }
    }
    patches.sort();
    Ok(patches)
}

/// Every file of the workspace, with all bugs in it.
fn planted(root: &Path, patches: &[(String, String)]) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let list = ["ls-files", "-co", "--exclude-standard", "-z"];
    let listed = shell::read(Command::new("git").current_dir(root).args(list))?;
    let mut files = BTreeMap::new();
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        // A file that was removed and not yet forgotten is listed all the same.
        if let Ok(bytes) = fs::read(root.join(name)) {
            files.insert(PathBuf::from(name), bytes);
        }
    }
    for (name, patch) in patches {
        apply(patch, &mut files).with_context(|| format!("{name}.patch does not apply"))?;
    }
    Ok(files)
}

/// The same files with every crate in another place. What cargo looks for at the top stays there.
fn moved(files: BTreeMap<PathBuf, Vec<u8>>) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut moved = BTreeMap::new();
    for (path, bytes) in files {
        if path == Path::new("Cargo.toml") {
            let mut text = String::from_utf8(bytes)?;
            for folder in ["crates", "fuzz", "xtask"] {
                text = text.replace(&format!("\"{folder}"), &format!("\"{FOLDER}/{folder}"));
            }
            moved.insert(path, text.into_bytes());
        } else if path == Path::new("Cargo.lock") || path.starts_with(".cargo") {
            moved.insert(path, bytes);
        } else {
            moved.insert(Path::new(FOLDER).join(path), bytes);
        }
    }
    Ok(moved)
}

/// Applies a unified diff. A hunk goes where its old lines are, wherever that is, if that is one place.
fn apply(patch: &str, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    let mut path: Option<&str> = None;
    let mut hunks: Vec<(&str, String, String)> = Vec::new();
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            path = Some(name);
        } else if line.starts_with("--- ") {
        } else if line.starts_with("@@") {
            hunks.push((path.context("a hunk without a file")?, String::new(), String::new()));
        } else if let Some((_, old, new)) = hunks.last_mut() {
            let (mark, text) = line.split_at(line.len().min(1));
            if mark != "+" {
                old.push_str(text);
                old.push('\n');
            }
            if mark != "-" {
                new.push_str(text);
                new.push('\n');
            }
        }
    }
    for (path, old, new) in hunks {
        let file = files.get_mut(Path::new(path)).with_context(|| format!("there is no {path}"))?;
        let text = String::from_utf8(file.clone())?;
        match text.matches(&old).count() {
            1 => *file = text.replacen(&old, &new, 1).into_bytes(),
            0 => bail!("{path} does not have these lines:\n{old}"),
            many => bail!("{path} has these lines {many} times:\n{old}"),
        }
    }
    Ok(())
}

/// Writes what is different, so that what is the same need not be built again.
fn write(tree: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for (name, bytes) in files {
        let path = tree.join(name);
        if fs::read(&path).ok().as_ref() != Some(bytes) {
            fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
            fs::write(&path, bytes)?;
        }
    }
    prune(tree, tree, files)
}

/// Removes what is not in the workspace any more: a module or a crate that is gone would be built.
fn prune(tree: &Path, folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(tree).context("it lies in the tree")?;
        if path.is_dir() {
            if files.keys().any(|file| file.starts_with(name)) {
                prune(tree, &path, files)?;
            } else {
                fs::remove_dir_all(&path)?;
            }
        } else if !files.contains_key(name) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
