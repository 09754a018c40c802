//! The configuration: whether its files are right, and whether it is what runs.

use talaria_admin::api::{Status, WaitingChange};
use talaria_config::{Loaded, Sources};
use talaria_machine::{close_command, open_to};

use super::Finding;
use crate::home::{Home, private_mode};
use crate::{programs, start};

const ABOUT: &str = "configuration";

/// What the files say, where they are right. What there is to say about them is found.
pub(super) fn look(
    home: &Home,
    status: Option<&Status>,
    findings: &mut Vec<Finding>,
) -> Option<Loaded> {
    let sources = Sources::read(home.path(), std::env::vars_os());
    let about_files = if sources.is_ok() { closing } else { |_: &_, _: &_| None };
    let read = sources.and_then(|sources| talaria_config::load(sources, talaria_platforms::ALL));
    let (wrong, odd) = match &read {
        Ok(loaded) => (programs::problems(loaded), start::warnings(loaded)),
        Err(problems) => {
            let odd = problems.warnings().iter().map(ToString::to_string).collect();
            (problems.iter().cloned().collect(), odd)
        }
    };
    let said = match wrong.is_empty() {
        true => vec![right(status, odd.is_empty())],
        false => {
            let meanwhile =
                if status.is_some() { ". The gateway goes on with an older one" } else { "" };
            let found = |wrong: &talaria_config::Finding| {
                let what = about_files(home, wrong)
                    .unwrap_or_else(|| start::remedy(std::slice::from_ref(wrong)));
                Some(Finding::problem(ABOUT, wrong).hint(format_args!("{what}{meanwhile}")))
            };
            wrong.iter().map(found).collect()
        }
    };
    findings.extend(said.into_iter().flatten());
    findings.extend(odd.iter().map(|odd| Finding::warning(ABOUT, odd)));
    findings.extend(status.and_then(waiting));
    read.ok()
}

/// How a file is closed that can be read and is refused as a whole, because others can get at it.
fn closing(home: &Home, wrong: &talaria_config::Finding) -> Option<String> {
    let file = wrong.place.as_ref().filter(|place| place.line.is_none() && wrong.path.is_none())?;
    let path = home.path().join(&file.file);
    open_to(&path)?;
    let command = close_command(&path, private_mode(&path));
    Some(format!("run `{command}`, or `talaria doctor --fix`"))
}

/// What is said of files that are right as they are read here.
fn right(status: Option<&Status>, nothing_odd: bool) -> Option<Finding> {
    if let Some(wrong) = status.and_then(|status| status.configuration.as_ref()) {
        let text = format!(
            "its files are right as they are read here, and the gateway goes on with an older one, \
             because it has found them wrong:\n{wrong}"
        );
        return Some(Finding::problem(ABOUT, text).hint(
            "`talaria reload` makes it read them again; it may lack a variable that is set here",
        ));
    }
    nothing_odd.then(|| Finding::good(ABOUT, "it is right"))
}

/// What the gateway goes on without until it is restarted.
fn waiting(status: &Status) -> Option<Finding> {
    let settings: Vec<&str> =
        status.waits_for_restart.iter().map(|WaitingChange { path, .. }| path.as_str()).collect();
    (!settings.is_empty()).then(|| {
        let text = format!("these settings wait for a restart: {}", settings.join(", "));
        Finding::warning(ABOUT, text).hint("`talaria restart` applies them")
    })
}
