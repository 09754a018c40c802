//! Answers as models write them, in every dialect.
//!
//! `corpus/*.md` are the answers, `corpus/snapshots/*.txt` what becomes of them. After a change that is
//! meant to change them, `UPDATE_SNAPSHOTS=1 cargo test -p talaria-render corpus` writes them again; the
//! difference is for a person to read.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use talaria_model::{TextLimit, Unit};
use talaria_render::{Dialect, Rendered, parse, render, split_in};

/// Short enough that most answers are taken apart.
const SHORT: TextLimit = TextLimit { max: 400, unit: Unit::Chars };

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The answers and their names.
pub(crate) fn answers() -> Vec<(String, String)> {
    let mut answers: Vec<(String, String)> = fs::read_dir(folder())
        .expect("there is a corpus")
        .map(|file| file.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| {
            let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("it is text"))
        })
        .collect();
    answers.sort();
    answers
}

fn snapshot(answer: &str) -> String {
    let document = parse(answer);
    let mut out = String::new();
    for (name, dialect) in [
        ("plain", Dialect::Plain),
        ("markdown", Dialect::Markdown),
        ("html", Dialect::Html),
        ("telegram", Dialect::TelegramEntities),
        ("discord", Dialect::Discord),
        ("slack", Dialect::SlackMrkdwn),
    ] {
        let Rendered { text, entities } = render(&document, dialect);
        writeln!(out, "━━━ {name}\n{text}").expect("writing to a string does not fail");
        let units: Vec<u16> = text.encode_utf16().collect();
        for entity in entities {
            let range = entity.offset..entity.offset + entity.length;
            let inside = String::from_utf16(&units[range]).expect("no character is cut");
            writeln!(out, "  {:?} {inside:?}", entity.kind).expect("writing does not fail");
        }
    }
    let parts = split_in(answer, SHORT, Dialect::Discord);
    if parts.len() > 1 {
        writeln!(out, "━━━ parts for discord\n{}", parts.join("\n┄┄┄\n"))
            .expect("writing does not fail");
    }
    out
}

#[test]
fn the_corpus_looks_as_it_did() {
    let answers = answers();
    assert!(answers.len() >= 200, "{} answers", answers.len());
    let snapshots = folder().join("snapshots");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(&snapshots).expect("the folder can be made");
        for (name, answer) in &answers {
            let file = snapshots.join(format!("{name}.txt"));
            fs::write(file, snapshot(answer)).expect("a snapshot can be written");
        }
    }
    let mut changed = Vec::new();
    for (name, answer) in &answers {
        let file = snapshots.join(format!("{name}.txt"));
        let expect = fs::read_to_string(file).unwrap_or_default();
        let found = snapshot(answer);
        if let Some((line, (was, is))) = std::iter::zip(expect.lines(), found.lines())
            .enumerate()
            .find(|(_, (was, is))| was != is)
        {
            changed.push(format!("{name}, line {}:\n  was {was}\n  is  {is}", line + 1));
        } else if expect != found {
            changed.push(format!("{name}: more or fewer lines"));
        }
    }
    assert!(changed.is_empty(), "{} changed:\n{}", changed.len(), changed.join("\n"));

    let kept: BTreeSet<String> = fs::read_dir(&snapshots)
        .expect("there are snapshots")
        .map(|file| file.expect("it can be read").path())
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    let named: BTreeSet<String> = answers.into_iter().map(|(name, _)| name).collect();
    assert_eq!(kept, named, "each answer has its snapshot, and each snapshot its answer");
}
