//! The way to servers that the operator configured.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use crate::Secret;

/// The way to servers that the operator configured. This machine itself is never behind a proxy.
#[derive(Debug, Clone, Default)]
pub enum Proxy {
    /// Straight there, whatever the environment says.
    #[default]
    None,
    /// As `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    Environment,
    /// Through the proxy at this address, which may have a password in it.
    Server(Secret),
}

/// Text that names no proxy. The text is not in it: there may be a password in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a proxy; write its address like http://proxy.example.com:3128, or environment, or none"
)]
pub struct ProxyError;

impl Proxy {
    /// The `format` of a proxy in a schema.
    pub const FORMAT: &str = "proxy-address";

    const NONE: &str = "none";
    const ENVIRONMENT: &str = "environment";

    /// What a proxy can be spoken to in. `socks5h` has names resolved there, `socks5` here.
    const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

    /// The variables that name a proxy, for whoever has them count.
    pub const VARIABLES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];

    /// As it is written.
    pub fn text(&self) -> &str {
        match self {
            Self::None => Self::NONE,
            Self::Environment => Self::ENVIRONMENT,
            Self::Server(address) => address.expose(),
        }
    }

    /// What must not be seen in a text that names a proxy, right or wrong: a name and a password.
    pub fn credentials(text: &str) -> Option<&str> {
        let (before, _) = text.rsplit_once('@')?;
        Some(before.split_once("://").map_or(before, |(_, credentials)| credentials))
    }
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        match text {
            Self::NONE => return Ok(Self::None),
            Self::ENVIRONMENT => return Ok(Self::Environment),
            _ => {}
        }
        let (scheme, rest) = text.split_once("://").ok_or(ProxyError)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || "/\\?#".contains(c);
        if !Self::SCHEMES.contains(&scheme) || rest.contains(is_odd) {
            return Err(ProxyError);
        }
        let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (server, None),
        };
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let is_host = !host.is_empty() && (is_bracketed || !host.contains([':', '[', ']']));
        if !is_host || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(ProxyError);
        }
        Ok(Self::Server(Secret::new(text)))
    }
}

impl<'de> Deserialize<'de> for Proxy {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Proxy {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Proxy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": Self::FORMAT,
            "examples": ["http://proxy.example.com:3128", "environment"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_word_or_an_address_with_nothing_behind_it() {
        for text in [
            "none",
            "environment",
            "http://proxy.example.com",
            "http://proxy.example.com:3128/",
            "https://me:secret@proxy.example.com",
            "socks5://127.0.0.1:1080",
            "socks5h://[::1]:1080",
            "http://[fd00::5]",
        ] {
            assert_eq!(text.parse::<Proxy>().unwrap().text(), text);
        }
        for text in [
            "",
            "proxy.example.com:3128",
            "Environment",
            "ftp://proxy.example.com",
            "http://",
            "http://:3128",
            "http://me:secret@",
            "http://proxy.example.com:port",
            "http://proxy.example.com:99999",
            "http://proxy.example.com/path",
            "http://proxy.example.com?x",
            "http://proxy example.com",
            "http://::1:3128",
        ] {
            assert_eq!(text.parse::<Proxy>().err(), Some(ProxyError), "{text:?}");
        }
    }

    #[test]
    fn a_password_is_seen_wherever_it_stands_and_never_shown() {
        for (text, credentials) in [
            ("environment", None),
            ("http://proxy.example.com:3128", None),
            ("http://me:secret@proxy.example.com", Some("me:secret")),
            ("http://me:s@cret@proxy.example.com", Some("me:s@cret")),
            ("me:secret@proxy.example.com", Some("me:secret")),
        ] {
            assert_eq!(Proxy::credentials(text), credentials);
        }
        let proxy: Proxy = "http://me:secret@proxy.example.com".parse().unwrap();
        assert!(!format!("{proxy:?}").contains("secret"));
    }
}
