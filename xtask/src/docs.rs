//! Documents that are made from the program itself, written and checked for freshness.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::shell;

/// A document and how it is made.
struct Document {
    path: &'static str,
    make: fn(&Path) -> Result<String>,
}

const DOCUMENTS: &[Document] = &[
    Document { path: "docs/config.schema.json", make: schema },
    Document { path: "docs/reference/config.md", make: reference },
    Document { path: "docs/reference/cli.md", make: cli },
];

/// Writes every document again.
pub(crate) fn write(root: &Path) -> Result<()> {
    for document in DOCUMENTS {
        let path = root.join(document.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, (document.make)(root)?)?;
        eprintln!("wrote {}", document.path);
    }
    Ok(())
}

/// Insists that every document says what the program says.
pub(crate) fn check(root: &Path) -> Result<()> {
    for document in DOCUMENTS {
        let written = fs::read_to_string(root.join(document.path))
            .with_context(|| format!("{} is missing; run `cargo xtask docs`", document.path))?;
        if written != (document.make)(root)? {
            bail!("{} is out of date; run `cargo xtask docs`", document.path);
        }
    }
    eprintln!("docs: every generated document is fresh");
    Ok(())
}

fn schema(_: &Path) -> Result<String> {
    let schema = talaria_config::schema(talaria_platforms::ALL);
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

fn reference(_: &Path) -> Result<String> {
    Ok(talaria_config::reference(talaria_platforms::ALL))
}

fn cli(root: &Path) -> Result<String> {
    let help = |arguments: &[&str]| {
        let mut command = shell::cargo(root, &["run", "--quiet", "--package", "talaria", "--"]);
        shell::read(command.args(arguments).env("COLUMNS", "100"))
    };
    let mut text =
        String::from("# The command line\n\nMade by `cargo xtask docs` from `--help`.\n");
    let pages: &[&[&str]] = &[
        &[],
        &["chat"],
        &["model"],
        &["status"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["sessions", "search"],
        &["config", "show"],
        &["config", "explain"],
        &["config", "check"],
    ];
    for page in pages {
        let name = std::iter::once(&"talaria").chain(*page).copied().collect::<Vec<_>>().join(" ");
        let arguments: Vec<&str> = page.iter().copied().chain(["--help"]).collect();
        text.push_str(&format!(
            "\n## `{name}`\n\n```text\n{}\n```\n",
            help(&arguments)?.trim_end()
        ));
    }
    Ok(text)
}
