//! From where something may be fetched.

use std::net::IpAddr;

use reqwest::Url;

use crate::FetchError;
use crate::address::{Reach, reach};

/// From where something may be fetched. Without any rule, from every public address.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Which servers may be asked.
    pub hosts: Hosts,
    /// Which of them may be at a private address, because the operator said so.
    pub allow_private: Vec<PrivateHost>,
}

/// Which servers may be asked.
#[derive(Debug, Clone, Default)]
pub enum Hosts {
    /// All.
    #[default]
    Any,
    /// These and no others.
    Only(Vec<Origin>),
}

/// A server: scheme, host and port, each exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(reqwest::Url);

impl Origin {
    /// The server of an address.
    pub fn of(url: &Url) -> Option<Self> {
        checked(url).ok()?;
        let mut url = url.clone();
        url.set_path("");
        url.set_query(None);
        url.set_fragment(None);
        Some(Self(url))
    }

    /// As written: `https://files.example.org`.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        Url::parse(text).ok().and_then(|url| Self::of(&url)).ok_or_else(|| Unusable(text.into()))
    }

    /// The name of the host, as it is resolved.
    pub(crate) fn host(&self) -> Option<&str> {
        self.0.host_str()
    }

    /// Whether something is at this server.
    pub fn serves(&self, url: &Url) -> bool {
        self.0.origin() == url.origin()
    }
}

/// A server of the operator's that may be at a private address: a host, on any port or on one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateHost {
    host: String,
    port: Option<u16>,
}

impl PrivateHost {
    /// The server of an address that the operator configured.
    pub fn of(url: &Url) -> Option<Self> {
        Some(Self { host: url.host_str()?.to_owned(), port: Some(url.port_or_known_default()?) })
    }

    /// As written: `nas.local`, `192.168.1.5:8081`, `[fd00::5]`.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let unusable = || Unusable(text.into());
        // A port that is the usual one would be left out by one of the two schemes only.
        let [plain, secure] =
            ["http", "https"].map(|scheme| Url::parse(&format!("{scheme}://{text}")));
        let (plain, secure) = (plain.map_err(|_| unusable())?, secure.map_err(|_| unusable())?);
        let is_bare = plain.path() == "/"
            && plain.query().is_none()
            && plain.fragment().is_none()
            && !text.contains(['/', '\\', '?', '#', '@', ' ']);
        let host = plain.host_str().filter(|_| is_bare).ok_or_else(unusable)?.to_owned();
        Ok(Self { host, port: plain.port().or(secure.port()) })
    }

    fn names(&self, url: &Url) -> bool {
        url.host_str() == Some(&self.host)
            && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

/// A text that does not name a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a server")]
pub struct Unusable(pub String);

/// What a connection may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Public addresses only.
    Public,
    /// Private ones, too.
    Private,
}

impl Ground {
    /// Judges an address that a host has.
    pub(crate) fn judge(self, address: IpAddr) -> Result<(), Unwelcome> {
        match (reach(address), self) {
            (Reach::Public, _) | (Reach::Private, Self::Private) => Ok(()),
            (Reach::Private, Self::Public) => Err(Unwelcome("the host is in a private network")),
            (Reach::Never, _) => Err(Unwelcome("the host is at an address that is never asked")),
        }
    }
}

/// Why an address is not connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unwelcome(pub(crate) &'static str);

impl From<Unwelcome> for FetchError {
    fn from(Unwelcome(reason): Unwelcome) -> Self {
        Self::Forbidden { reason }
    }
}

impl Rules {
    /// Judges an address before anything is asked, and says what a connection may lead to. A host that is
    /// a name is judged once more when it is resolved.
    pub(crate) fn judge(&self, url: &Url) -> Result<Ground, FetchError> {
        checked(url)?;
        if let Hosts::Only(origins) = &self.hosts
            && !origins.iter().any(|origin| origin.serves(url))
        {
            return Err(FetchError::forbidden("the host is not one of those it may come from"));
        }
        let is_named = self.allow_private.iter().any(|host| host.names(url));
        let ground = if is_named { Ground::Private } else { Ground::Public };
        if let Some(address) = literal(url) {
            ground.judge(address)?;
        }
        Ok(ground)
    }
}

fn checked(url: &Url) -> Result<(), FetchError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(FetchError::forbidden("the address is not http or https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::forbidden("the address contains credentials"));
    }
    match url.host_str() {
        None | Some("") => Err(FetchError::forbidden("the address has no host")),
        Some(_) => Ok(()),
    }
}

/// The address that a host is, however it is written: the parser of addresses has read decimal, octal and
/// hexadecimal forms, full-width digits and a dot at the end already.
fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn private(hosts: &[&str]) -> Rules {
        let allow_private = hosts.iter().map(|host| PrivateHost::parse(host).unwrap()).collect();
        Rules { hosts: Hosts::Any, allow_private }
    }

    fn check(rules: &Rules, address: &str, expect: Result<Ground, &str>) {
        let judged = rules.judge(&url(address)).map_err(|error| error.to_string());
        assert_eq!(
            judged,
            expect.map_err(|reason| format!("not fetched from there: {reason}")),
            "{address}"
        );
    }

    const IN_PRIVATE: Result<Ground, &str> = Err("the host is in a private network");
    const NEVER: Result<Ground, &str> = Err("the host is at an address that is never asked");

    #[test]
    fn every_way_to_write_an_address_is_read() {
        for (address, expect) in [
            ("http://example.org/a", Ok(Ground::Public)),
            ("https://8.8.8.8/", Ok(Ground::Public)),
            ("http://[2606:4700::1111]/", Ok(Ground::Public)),
            ("http://127.0.0.1/", IN_PRIVATE),
            ("http://127.1/", IN_PRIVATE),
            ("http://2130706433/", IN_PRIVATE),
            ("http://0x7f000001/", IN_PRIVATE),
            ("http://0x7f.0.0.1/", IN_PRIVATE),
            ("http://0177.0.0.1/", IN_PRIVATE),
            ("http://017700000001/", IN_PRIVATE),
            ("http://127.0.0.1./", IN_PRIVATE),
            ("http://１２７.０.０.１/", IN_PRIVATE),
            ("http://127。0。0。1/", IN_PRIVATE),
            ("http://%31%32%37.0.0.1/", IN_PRIVATE),
            ("http://[::1]/", IN_PRIVATE),
            ("http://[::ffff:7f00:1]/", IN_PRIVATE),
            ("http://[::ffff:10.0.0.1]:8080/", IN_PRIVATE),
            ("http://192.168.1.1:80/", IN_PRIVATE),
            ("http://0/", NEVER),
            ("http://0.0.0.0/", NEVER),
            ("http://169.254.169.254/latest/meta-data/", NEVER),
            ("http://2852039166/", NEVER),
            ("http://0251.0376.0251.0376/", NEVER),
            ("http://[::ffff:a9fe:a9fe]/", NEVER),
            ("http://[64:ff9b::a9fe:a9fe]/", NEVER),
            ("http://100.100.100.200/", NEVER),
            ("http://168.63.129.16/", NEVER),
            ("ftp://example.org/", Err("the address is not http or https")),
            ("file:///etc/passwd", Err("the address is not http or https")),
            ("gopher://example.org/", Err("the address is not http or https")),
            ("data:text/plain,x", Err("the address is not http or https")),
            ("http://user@example.org/", Err("the address contains credentials")),
            ("http://:word@example.org/", Err("the address contains credentials")),
        ] {
            check(&Rules::default(), address, expect);
        }
    }

    #[test]
    fn only_the_hosts_that_are_listed_are_asked() {
        let origins = ["https://files.example.org", "http://10.0.0.7:8081"];
        let origins = origins.iter().map(|origin| Origin::parse(origin).unwrap()).collect();
        let rules = Rules { hosts: Hosts::Only(origins), ..private(&["10.0.0.7:8081"]) };
        let elsewhere = Err("the host is not one of those it may come from");
        for (address, expect) in [
            ("https://files.example.org/x?y#z", Ok(Ground::Public)),
            ("https://FILES.example.ORG:443/", Ok(Ground::Public)),
            ("http://10.0.0.7:8081/file", Ok(Ground::Private)),
            ("http://files.example.org/", elsewhere),
            ("https://files.example.org:8443/", elsewhere),
            ("https://files.example.org./", elsewhere),
            ("https://files.example.org.evil.example/", elsewhere),
            ("https://evilfiles.example.org/", elsewhere),
            ("https://example.org/", elsewhere),
            ("http://10.0.0.7/", elsewhere),
            ("https://files.example.org@evil.example/", Err("the address contains credentials")),
        ] {
            check(&rules, address, expect);
        }
    }

    #[test]
    fn what_the_operator_named_may_be_private_but_never_a_clouds_own() {
        let rules =
            private(&["nas.local", "192.168.1.5:8081", "[fd00::5]", "169.254.169.254", "[::1]:80"]);
        for (address, expect) in [
            ("http://nas.local:5000/", Ok(Ground::Private)),
            ("http://nas.local./", Ok(Ground::Public)),
            ("http://a.nas.local/", Ok(Ground::Public)),
            ("http://192.168.1.5:8081/", Ok(Ground::Private)),
            ("http://192.168.1.5/", IN_PRIVATE),
            ("http://192.168.1.6:8081/", IN_PRIVATE),
            ("https://[fd00::5]:9/", Ok(Ground::Private)),
            ("https://[fd00::6]:9/", IN_PRIVATE),
            ("http://[::1]/", Ok(Ground::Private)),
            ("http://[::1]:81/", IN_PRIVATE),
            ("http://169.254.169.254/", NEVER),
        ] {
            check(&rules, address, expect);
        }
    }

    #[test]
    fn what_names_no_server_is_refused() {
        for text in
            ["", "a b", "http://nas.local", "nas.local/x", "me@nas.local", "a:b", "x?y", "a\\b"]
        {
            assert_eq!(PrivateHost::parse(text), Err(Unusable(text.into())), "{text:?}");
        }
        for text in ["", "files.example.org", "ftp://example.org", "https://me@example.org"] {
            assert_eq!(Origin::parse(text), Err(Unusable(text.into())), "{text:?}");
        }
        assert_eq!(
            PrivateHost::of(&url("https://nas.local/x")),
            Some(PrivateHost { host: "nas.local".into(), port: Some(443) })
        );
        assert_eq!(PrivateHost::parse("nas.local:80").unwrap().port, Some(80));
        assert_eq!(PrivateHost::parse("nas.local:443").unwrap().port, Some(443));
    }
}
