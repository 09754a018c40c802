//! What is known where no gateway answers: how the last one ended, and whether the next one can open its
//! store.

use super::Finding;
use crate::home::Home;
use crate::instance::Record;
use crate::plain::plain_lines;
use crate::state_file::{GatewayState, LastSeen};

pub(super) fn look(home: &Home) -> Vec<Finding> {
    if let Some(Record { process, .. }) = Record::live(home) {
        let text = format!("process {} has the home and does not answer", process.pid);
        let hint = "it is starting, is ending or hangs; `talaria logs` says which";
        return vec![Finding::warning("gateway", text).hint(hint)];
    }
    [Some(last(home)), store(home)].into_iter().flatten().collect()
}

fn last(home: &Home) -> Finding {
    let Some(last) = LastSeen::read(home) else {
        return Finding::good("gateway", "none is running");
    };
    let text = format!("none is running; {}", plain_lines(&last.in_words()));
    match last.gateway_state {
        GatewayState::Stopped => Finding::good("gateway", text),
        GatewayState::StartupFailed => {
            Finding::problem("gateway", text).hint("mend that, then start it with `talaria`")
        }
        GatewayState::Starting
        | GatewayState::Running
        | GatewayState::Degraded
        | GatewayState::Draining => Finding::problem("gateway", text)
            .hint("`talaria logs` shows its last lines; `talaria` goes on with what it left"),
    }
}

fn store(home: &Home) -> Option<Finding> {
    if !home.path().join("state.db").exists() {
        return None;
    }
    Some(match talaria_store_sqlite::rehearse(home.path()) {
        Ok(()) => Finding::good("store", "it can be opened"),
        Err(error) => Finding::problem("store", &error).hint(error.hint()),
    })
}
