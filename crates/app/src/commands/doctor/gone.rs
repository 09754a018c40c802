//! What is known where no gateway answers: how the last one ended, and whether the next one can open its
//! store.

use talaria_config::Loaded;

use super::Finding;
use crate::home::{Home, is_a_link};
use crate::instance::Record;
use crate::plain::plain_lines;
use crate::start;
use crate::state_file::{GatewayState, LastSeen};

/// What SQLite opens.
const STORE: [&str; 3] = ["state.db", "state.db-wal", "state.db-shm"];

/// Looks at it where the home and the configuration were found like this.
pub(super) async fn look(home: &Home, loaded: Option<&Loaded>, found: &[Finding]) -> Vec<Finding> {
    if let Some(Record { process, .. }) = Record::live(home) {
        let text = format!("process {} has the home and does not answer", process.pid);
        let hint = "it is starting, is ending or hangs; `talaria logs` says which";
        return vec![Finding::warning("gateway", text).hint(hint)];
    }
    let loaded = loaded.filter(|_| !found.iter().any(Finding::is_bad));
    [Some(last(home, loaded).await), store(home)].into_iter().flatten().collect()
}

/// How the last one ended. Where home and configuration are right, a start that failed is tried as far as
/// it goes: what it named may have been mended since.
async fn last(home: &Home, loaded: Option<&Loaded>) -> Finding {
    let Some(last) = LastSeen::read(home) else {
        return Finding::good("gateway", "none is running");
    };
    let text = format!("none is running; {}", plain_lines(&last.in_words()));
    match last.gateway_state {
        GatewayState::Stopped => Finding::good("gateway", text),
        GatewayState::StartupFailed => {
            let Some(loaded) = loaded else {
                return Finding::problem("gateway", text)
                    .hint("mend what is named here, then start it with `talaria`");
            };
            match start::rehearse(home, loaded).await {
                Ok(()) => Finding::warning("gateway", over(&last)).hint("start it with `talaria`"),
                Err(halt) => Finding::problem("gateway", text)
                    .hint(format_args!("it would fail again: {}", plain_lines(&halt.explained()))),
            }
        }
        GatewayState::Starting
        | GatewayState::Running
        | GatewayState::Degraded
        | GatewayState::Draining => Finding::problem("gateway", text)
            .hint("`talaria logs` shows its last lines; `talaria` goes on with what it left"),
    }
}

/// Of a start that failed, where the next one would not.
fn over(last: &LastSeen) -> String {
    let why = plain_lines(last.exit_reason.as_deref().unwrap_or("nobody knows why"));
    let at = &last.updated_at;
    format!("none is running; the last start failed at {at}: {why}; what it named looks right now")
}

fn store(home: &Home) -> Option<Finding> {
    // SQLite follows links, and makes files beside what they lead to.
    let mut parts = STORE.iter().map(|name| home.path().join(name));
    if let Some(link) = parts.find(|path| path.is_symlink()) {
        let text = format!("it is not opened, because {}", is_a_link(&link));
        return Some(Finding::warning("store", text));
    }
    if !home.path().join("state.db").exists() {
        return None;
    }
    Some(match talaria_store_sqlite::rehearse(home.path()) {
        Ok(()) => Finding::good("store", "it can be opened"),
        Err(error) => Finding::problem("store", &error).hint(error.hint()),
    })
}
