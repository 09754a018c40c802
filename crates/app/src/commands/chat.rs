//! `talaria chat`: attaches to the running gateway, or runs one for as long as the chat lasts.

use std::net::SocketAddr;

use talaria_admin::Operator;
use talaria_clock::{Clock, SystemClock};

use crate::boot::Boot;
use crate::chat::{self, ChatOptions};
use crate::client::Client;
use crate::discretion::Discretion;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::{logging, start};

pub(crate) async fn chat(home: &Home, options: ChatOptions) -> Result<Exit, Halt> {
    let discretion = Discretion::new();
    logging::quiet(&discretion);
    home.prepare()?;
    if Client::find(home).await?.is_some() {
        return Ok(chat::chat(options, &home.socket()).await?);
    }
    let loaded = start::configuration(home)?;
    discretion.learn(&loaded);
    start::startable(&loaded)?;
    // Any free port: another home's gateway may have the usual one.
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let boot = Boot::new(SystemClock.mark());
    let running = start::start(home, loaded, Some(anywhere), discretion, boot).await?;
    let desk = running.desk.clone();
    let socket = home.socket();
    let talk = async {
        let ended = chat::chat(options, &socket).await;
        desk.stop();
        ended
    };
    let (served, ended) = tokio::join!(running.serve(), talk);
    served?;
    Ok(ended?)
}
