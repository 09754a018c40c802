//! `cargo xtask platform new <name>`: lays out the folder of a platform that compiles, passes nothing
//! that it should not, and says what to fill in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use crate::shell;

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Lay out the folder of a platform and put it into the list
    New {
        /// As it is written in the configuration, such as `home_assistant`
        name: String,
    },
}

const FILES: &[(&str, &str)] = &[
    ("mod.rs", include_str!("template/mod.rs.txt")),
    ("wire.rs", include_str!("template/wire.rs.txt")),
    ("contract.rs", include_str!("template/contract.rs.txt")),
    ("tests.rs", include_str!("template/tests.rs.txt")),
    ("guide.md", include_str!("template/guide.md.txt")),
];

pub(crate) fn run(root: &Path, action: &Action) -> Result<()> {
    let Action::New { name } = action;
    let written = lay_out(&root.join("crates/platforms/src"), name)?;
    for path in &written {
        eprintln!("wrote {}", path.strip_prefix(root).unwrap_or(path).display());
    }
    eprintln!(
        "\nNext, with docs/adding-a-platform.md beside you:\n  \
         cargo nextest run -p talaria-platforms {name}::   shows what is missing\n  \
         grep -rn 'FILL IN' crates/platforms/src/{name}   shows where\n  \
         cargo xtask docs                                 when the declaration has changed"
    );
    Ok(())
}

/// Writes the folder and the two lines of the list. Says what it has written.
fn lay_out(sources: &Path, name: &str) -> Result<Vec<PathBuf>> {
    if !is_name(name) {
        bail!("{name:?} is no name: use lower-case letters, digits and single underscores");
    }
    let list = sources.join("lib.rs");
    let listed = register(&fs::read_to_string(&list)?, name)?;
    let folder = sources.join(name);
    if folder.exists() {
        bail!("{} is there already", folder.display());
    }
    fs::create_dir(&folder)?;
    let mut written = Vec::new();
    for (file, template) in FILES {
        let path = folder.join(file);
        fs::write(&path, filled(template, name))?;
        written.push(path);
    }
    fs::write(&list, listed)?;
    written.push(list);
    // How long lines are depends on the name. From `mod.rs` on, the others are found.
    let mut format = Command::new("rustfmt");
    format.args(["--edition", "2024", "--config", "use_small_heuristics=Max"]);
    shell::run(format.arg(folder.join("mod.rs")))?;
    Ok(written)
}

/// Where the platforms are.
const SOURCES: &str = "crates/platforms/src";

/// The page that takes people through all of it, and the platform that it writes on the way.
const WALK: (&str, &str) = ("docs/adding-a-platform.md", "pigeon");

/// A platform that was laid out and not filled in.
pub(crate) const LAID_OUT: &str = "laid_out";

/// Puts two platforms into a copy of the workspace, so that it is built and tested with them: the one that
/// the page writes, and one as it is laid out.
pub(crate) fn rehearse(files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    let text = |files: &BTreeMap<PathBuf, Vec<u8>>, path: &Path| -> Result<String> {
        let bytes = files.get(path).with_context(|| format!("there is no {}", path.display()))?;
        Ok(String::from_utf8(bytes.clone())?)
    };
    let (page, walked) = WALK;
    let written = blocks(&text(files, Path::new(page))?, &format!("{SOURCES}/{walked}/"));
    if written.is_empty() {
        bail!("{page} shows no file of {walked}");
    }
    let folder = Path::new(SOURCES).join(walked);
    files.insert(folder.join("guide.md"), b"# Pigeon\n\nRead the ring.\n".to_vec());
    for (name, code) in written {
        files.insert(folder.join(name), code.into_bytes());
    }
    for (name, template) in FILES {
        let path = Path::new(SOURCES).join(LAID_OUT).join(name);
        files.insert(path, filled(template, LAID_OUT).into_bytes());
    }
    let list = Path::new(SOURCES).join("lib.rs");
    let listed = register(&register(&text(files, &list)?, walked)?, LAID_OUT)?;
    files.insert(list, listed.into_bytes());
    Ok(())
}

/// Files that a page shows: a line that begins with the path, then the code.
fn blocks(page: &str, folder: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut name: Option<&str> = None;
    let mut code: Option<String> = None;
    for line in page.lines() {
        match (&mut code, line) {
            (Some(_), "```") => blocks.extend(name.take().map(str::to_owned).zip(code.take())),
            (Some(code), line) => {
                code.push_str(line);
                code.push('\n');
            }
            (None, "```rust") if name.is_some() => code = Some(String::new()),
            (None, line) => {
                let shown = line.strip_prefix('`').and_then(|line| line.strip_prefix(folder));
                name = shown.and_then(|file| file.split('`').next()).or(name);
            }
        }
    }
    blocks
}

fn is_name(name: &str) -> bool {
    const TAKEN: &[&str] = &["as", "box", "do", "dyn", "final", "in", "mod", "move", "type", "use"];
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_word = |word: &str| !word.is_empty() && word.chars().all(is_plain);
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('_').all(is_word)
        && !TAKEN.contains(&name)
}

fn filled(template: &str, name: &str) -> String {
    let words: Vec<String> = name
        .split('_')
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        })
        .collect();
    template
        .replace("@name@", name)
        .replace("@NAME@", &name.to_uppercase())
        .replace("@Type@", &words.concat())
        .replace("@Label@", &words.join(" "))
}

/// The list of platforms with one more.
fn register(list: &str, name: &str) -> Result<String> {
    let module = format!("pub mod {name};");
    if list.lines().any(|line| line == module) {
        bail!("there is a platform {name} already");
    }
    let mut lines: Vec<&str> = list.lines().collect();
    let is_module = |line: &&str| line.starts_with("pub mod ");
    let first = lines.iter().position(is_module).context("there are modules")?;
    let behind = lines[first..].iter().position(|line| !is_module(line) || **line > *module);
    lines.insert(first + behind.context("the modules end")?, &module);
    let entry = filled("    Registration::of::<@name@::@Type@>(),", name);
    let end = lines.iter().rposition(|line| *line == "];").context("there is a list")?;
    lines.insert(end, &entry);
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "//! All.\n\npub mod ant;\npub mod owl;\nmod wire;\n\npub const ALL: &[Registration] = &[\n    Registration::of::<ant::Ant>(),\n];\n";

    #[test]
    fn a_platform_is_one_folder_and_one_line() {
        let sources = tempfile::tempdir().unwrap();
        fs::write(sources.path().join("lib.rs"), LIST).unwrap();
        lay_out(sources.path(), "home_loft").unwrap();
        let list = fs::read_to_string(sources.path().join("lib.rs")).unwrap();
        assert!(list.contains("pub mod ant;\npub mod home_loft;\npub mod owl;\n"), "{list}");
        assert!(list.contains("    Registration::of::<home_loft::HomeLoft>(),\n];\n"), "{list}");
        let mut whole = String::new();
        for (file, _) in FILES {
            whole += &fs::read_to_string(sources.path().join("home_loft").join(file)).unwrap();
        }
        for word in ["HomeLoft", "HOME_LOFT_BOT_TOKEN", "\"home_loft\"", "Home Loft", "FILL IN"] {
            assert!(whole.contains(word), "{word}");
        }
        assert!(!whole.contains("@name@") && !whole.contains("@Type@"), "{whole}");
        let again = lay_out(sources.path(), "home_loft").unwrap_err();
        assert!(again.to_string().contains("already"), "{again}");
    }

    #[test]
    fn the_page_shows_every_file_of_its_platform() {
        let (page, walked) = WALK;
        let page = fs::read_to_string(shell::root().unwrap().join(page)).unwrap();
        let mut names: Vec<String> = blocks(&page, &format!("{SOURCES}/{walked}/"))
            .into_iter()
            .map(|(name, code)| {
                assert!(code.starts_with("//!"), "{name}: {code}");
                name
            })
            .collect();
        names.sort();
        assert_eq!(names, ["contract.rs", "hear.rs", "mod.rs", "speak.rs", "tests.rs", "wire.rs"]);
    }

    #[test]
    fn what_is_laid_out_is_formatted_as_it_is_kept() {
        let sources = tempfile::tempdir().unwrap();
        fs::write(sources.path().join("lib.rs"), LIST).unwrap();
        lay_out(sources.path(), "pigeon").unwrap();
        let settings = shell::root().unwrap().join("rustfmt.toml");
        let mut check = Command::new("rustfmt");
        check.args(["--edition", "2024", "--check", "--config-path"]).arg(settings);
        shell::run(check.arg(sources.path().join("pigeon/mod.rs"))).unwrap();
    }

    #[test]
    fn a_name_fits_into_rust_a_variable_and_a_file() {
        for name in ["irc", "home_assistant", "qq2"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "IRC", "2go", "a-b", "a__b", "_a", "type", "ä", "a.b", "../x"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
