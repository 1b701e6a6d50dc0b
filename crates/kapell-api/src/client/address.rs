//! Where a host or a cell listens.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::Error;

/// A scheme, a name or an address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) secure: bool,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Base {
    pub(super) fn parse_all(urls: &str) -> Result<Vec<Self>, Error> {
        let bases: Vec<Self> = urls
            .split(',')
            .map(str::trim)
            .filter(|url| !url.is_empty())
            .map(Self::parse)
            .collect::<Result<_, _>>()?;
        if bases.is_empty() {
            return Err(Error::BadUrl { text: urls.to_owned() });
        }
        Ok(bases)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let bad = || Error::BadUrl { text: text.to_owned() };
        let url = Url::parse(text).map_err(|_| bad())?;
        let is_bare = matches!(url.path(), "" | "/")
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if !is_bare {
            return Err(bad());
        }
        Self::of(&url).ok_or_else(bad)
    }

    /// The place that a URL of any path is at.
    pub(super) fn of(url: &Url) -> Option<Self> {
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = match url.host()? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Some(Self { secure, host, port: url.port_or_known_default()? })
    }

    /// For the header of a request.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Whether what is sent there can be read by nobody else.
    pub(super) fn keeps_secrets(&self) -> bool {
        let is_here = || {
            let ip = self.host.parse::<IpAddr>();
            self.host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
        };
        self.secure || is_here()
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}
