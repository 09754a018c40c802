//! Who begins to ask for updates ends a webhook: Telegram does not do both. Something else may have set
//! it, and may set it again; so it is ended once, and after that somebody has to decide.

use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use talaria_clock::Clock;
use talaria_model::Timestamp;
use talaria_platform::ConnectError;

use super::api::WebhookState;
use super::client::Client;
use super::encode::arguments;
use super::refusal::ONE_OF_TWO;

/// Where it is written down that a webhook was ended.
const FILE: &str = "webhook-ended.json";

/// After that long, whoever set it is taken to be somebody who knows what they want.
const SETTLED: Duration = Duration::from_secs(24 * 60 * 60);

const ASK: Duration = Duration::from_secs(9);

/// A webhook that was ended.
#[derive(Serialize, Deserialize)]
struct Ended {
    host: String,
    at: Timestamp,
}

/// Ends a webhook, but not the same one again and again. What has not been sent to it yet is kept for us.
pub(super) async fn end_webhook(
    client: &Client,
    state: &WebhookState,
    folder: &Path,
    clock: &dyn Clock,
) -> Result<(), ConnectError> {
    if state.url.is_empty() {
        return Ok(());
    }
    let (path, host, now) = (folder.join(FILE), host(&state.url), clock.now());
    let ended =
        std::fs::read(&path).ok().and_then(|kept| serde_json::from_slice::<Ended>(&kept).ok());
    if ended.is_some_and(|ended| ended.host == host && now.since(ended.at) < SETTLED) {
        return Err(ConnectError::Refused {
            problem: format!(
                "another program sends this bot's updates to {host}, and has set that again after it \
                 was ended here"
            ),
            hint: format!("{ONE_OF_TWO}; to go on here, remove {FILE} from the account's folder"),
        });
    }
    tracing::warn!(at = host, "this bot's updates were sent elsewhere; that ends here");
    let body = arguments(json!({ "drop_pending_updates": false }));
    let deleted = client.ask::<bool>("deleteWebhook", &body, ASK).await;
    deleted.map_err(|failure| failure.of_connect())?;
    let kept = json!(Ended { host, at: now }).to_string();
    if let Err(error) = std::fs::write(&path, kept) {
        tracing::warn!(%error, "it cannot be written down that a webhook was ended");
    }
    Ok(())
}

/// A webhook is wanted here: one that is ended later was ours.
pub(super) fn forget(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(FILE));
}

/// The path can be what keeps a webhook secret.
pub(super) fn host(url: &str) -> String {
    let url = Url::parse(url).ok();
    url.and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_else(|| "another address".into())
}
