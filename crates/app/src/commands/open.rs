//! `talaria open`: a fresh link into the web chat.

use std::net::SocketAddr;

use talaria_admin::api::Status;

use crate::client::Client;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::web_link;

pub(crate) async fn open(home: &Home) -> Result<Exit, Halt> {
    let status: Status = Client::need(home).await?.get("/v1/status", &[]).await?;
    let http: SocketAddr = status.http.parse().map_err(Halt::failed)?;
    println!("{}", web_link::fresh(home, http)?);
    Ok(Exit::Done)
}
