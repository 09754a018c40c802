//! A restart while people write: what they notice of it.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::sleep;

use super::figures::Restart;
use super::gateway::Bench;
use super::serving::served;

/// How long people write before the restart, and after it.
const CALM: Duration = Duration::from_secs(5);

/// How long people wait for answers without a restart, and with one.
pub(super) async fn measure(bench: &Bench<'_>) -> Result<Restart> {
    let opened = bench.open().await?;
    bench.warm_up(&opened).await?;
    let calm = served(&opened, sleep(CALM)).await?;
    let connections = |opened: &super::gateway::Opened| opened.vendor().read(|it| it.connections());
    let before = connections(&opened);
    let mut told = String::new();
    let restarted = async {
        sleep(CALM).await;
        told = bench.command(&opened, &["restart"]).await.unwrap_or_default();
        sleep(CALM).await;
    };
    let restarted = served(&opened, restarted).await?;
    ensure!(connections(&opened) > before, "it did not start again: {told}");
    let violations = opened.vendor().check();
    ensure!(violations.is_empty(), "{violations:?}");
    opened.end().await?;
    Ok(Restart { calm, restarted })
}
