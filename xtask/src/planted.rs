//! `cargo xtask planted`: shows that the simulator bites. Bugs that were put into a copy of the program
//! on purpose are switched on one by one, and each has to be found.
//!
//! A bug is a patch in `crates/testkit/planted`, guarded by its name in an environment variable, so
//! that all of them are built at once.
#![allow(clippy::disallowed_methods, reason = "it says how long each hunt took")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{shell, sim};

/// Names the bug that is switched on.
const SWITCH: &str = "TALARIA_PLANTED";

/// How many seeds are looked through for each, after every point to die at.
const SEEDS: &str = "4000";

pub(crate) fn run(root: &Path) -> Result<()> {
    let patches = patches(root)?;
    let files = planted(root, &patches)?;
    // Beside what else is built, so that it is kept as long.
    let folder = sim::target(root).join("planted");
    let tree = folder.join("tree");
    write(&tree, &files)?;
    let binary = sim::build(&tree, &folder.join("target"))?;
    let hunt = |bug: Option<&str>| -> Result<(bool, String)> {
        let mut command = Command::new(&binary);
        command.args(["--hunt", "--seeds", SEEDS]).env_remove(SWITCH);
        if let Some(bug) = bug {
            command.env(SWITCH, bug);
        }
        let output = command.output().context("the simulator cannot be run")?;
        let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((!output.status.success(), told))
    };
    let (found, told) = hunt(None)?;
    if found {
        bail!("something is wrong before any bug is switched on: {told}");
    }
    eprintln!("| bug | found by | breaks | seconds |\n|---|---|---|---|");
    let mut survivors = Vec::new();
    for (name, _) in &patches {
        let began = Instant::now();
        let (found, told) = hunt(Some(name))?;
        let (by, breaks) = match told.split_once('\t') {
            Some((by, problem)) => (by, problem.split(':').next().unwrap_or(problem)),
            None if found => ("the simulator broke down over it", "—"),
            None => ("nobody", "—"),
        };
        eprintln!("| {name} | `{by}` | {breaks} | {:.1} |", began.elapsed().as_secs_f64());
        if !found {
            survivors.push(name.as_str());
        }
    }
    if !survivors.is_empty() {
        bail!("not found: {}", survivors.join(", "));
    }
    eprintln!("planted: all {} bugs were found, and none without them", patches.len());
    Ok(())
}

fn patches(root: &Path) -> Result<Vec<(String, String)>> {
    let mut patches = Vec::new();
    for file in fs::read_dir(root.join("crates/testkit/planted"))? {
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
