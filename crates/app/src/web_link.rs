//! A link into the web chat that works once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use talaria_config::Config;

use crate::exit::Halt;
use crate::home::Home;

/// The platform that serves the page; its account has the same name.
pub(crate) const WEB: &str = "web";

/// Whether there is a page to link to.
pub(crate) fn is_served(config: &Config) -> bool {
    config.accounts.iter().any(|(id, account)| id.as_str() == WEB && account.account.is_some())
}

/// Makes a link for whoever can read this terminal.
pub(crate) fn fresh(home: &Home, http: SocketAddr) -> Result<String, Halt> {
    let token = talaria_platforms::web::mint_login(&home.account(WEB))
        .map_err(|error| Halt::failed(format_args!("cannot make a login link: {error}")))?;
    Ok(format!("{}#login={token}", page(http)))
}

/// Where the page is. Nobody is let in by knowing it.
pub(crate) fn page(http: SocketAddr) -> String {
    // A listener on every address is reached from here by the one that is always there.
    let host = match http.ip() {
        ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}/", SocketAddr::new(host, http.port()))
}
