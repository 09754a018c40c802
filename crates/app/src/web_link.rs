//! A link into the web chat that works once.

use std::net::SocketAddr;

use crate::exit::Halt;
use crate::home::Home;

/// The account that serves the page, unless the configuration names it otherwise.
const ACCOUNT: &str = "web";

/// Makes a link for whoever can read this terminal.
pub(crate) fn fresh(home: &Home, http: SocketAddr) -> Result<String, Halt> {
    let token = talaria_platforms::web::mint_login(&home.account(ACCOUNT))
        .map_err(|error| Halt::failed(format_args!("cannot make a login link: {error}")))?;
    Ok(format!("http://{http}/#login={token}"))
}
