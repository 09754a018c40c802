//! `talaria platforms`: what this program can connect to.

use serde::Serialize;

use super::{print_json, table::table};
use crate::cli::Output;
use crate::exit::{Exit, Halt};

#[derive(Serialize)]
struct PlatformLine {
    name: &'static str,
    label: &'static str,
    about: &'static str,
}

pub(crate) fn platforms(output: Output) -> Result<Exit, Halt> {
    let lines: Vec<PlatformLine> = talaria_platforms::ALL
        .iter()
        .map(|registration| registration.spec)
        .map(|spec| PlatformLine { name: spec.name, label: spec.label, about: spec.about })
        .collect();
    if output.json {
        print_json(&lines)?;
    } else {
        let rows: Vec<_> = lines
            .iter()
            .map(|line| vec![line.name.to_owned(), line.label.to_owned(), line.about.to_owned()])
            .collect();
        super::write(format_args!("{}", table(&["PLATFORM", "NAME", "WHAT IT IS FOR"], &rows)))?;
    }
    Ok(Exit::Done)
}
