//! The configuration: whether its files are right, and whether it is what runs.

use talaria_admin::api::{Status, WaitingChange};
use talaria_config::{Loaded, Sources};

use super::Finding;
use crate::home::Home;
use crate::{programs, start};

const ABOUT: &str = "configuration";

/// What the files say, where they are right. What there is to say about them is found.
pub(super) fn look(
    home: &Home,
    status: Option<&Status>,
    findings: &mut Vec<Finding>,
) -> Option<Loaded> {
    let read = Sources::read(home.path(), std::env::vars_os())
        .and_then(|sources| talaria_config::load(sources, talaria_platforms::ALL));
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
            let hint = format!(
                "correct it; `talaria config explain SETTING` tells what a setting takes{}",
                if status.is_some() { ". The gateway goes on with an older one" } else { "" }
            );
            wrong.iter().map(|wrong| Some(Finding::problem(ABOUT, wrong).hint(&hint))).collect()
        }
    };
    findings.extend(said.into_iter().flatten());
    findings.extend(odd.iter().map(|odd| Finding::warning(ABOUT, odd)));
    findings.extend(status.and_then(waiting));
    read.ok()
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
