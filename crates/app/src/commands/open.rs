//! `talaria open`: a fresh link into the web chat.

use std::net::SocketAddr;

use talaria_admin::api::Status;

use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::web_link;

pub(crate) async fn open(home: &Home) -> Result<Exit, Halt> {
    // The running gateway knows what it serves; the file may be about to change.
    let status: Status = Client::need(home).await?.get("/v1/status", &[]).await?;
    if !status.accounts.iter().any(|account| account.name == web_link::WEB) {
        return Err(Halt::failed("the web chat is disabled")
            .hint("set accounts.web.enabled to true in config.yaml and start again"));
    }
    let http: SocketAddr = status.http.parse().map_err(Halt::failed)?;
    say!("{}", web_link::fresh(home, http)?);
    Ok(Exit::Done)
}
