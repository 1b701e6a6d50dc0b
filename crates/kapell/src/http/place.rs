//! Addresses as people and browsers write them, and which of them are ours.

use std::net::{IpAddr, SocketAddr};

use hyper::http::uri::Authority;

use super::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(super) const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// `[http[s]://]HOST[:PORT]`. With a scheme there is always a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) scheme: Option<Scheme>,
    /// In lower case; an IPv6 address without its brackets.
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

impl Place {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some(("https", rest)) => (Some(Scheme::Https), rest),
            Some(_) => return None,
            None => (None, text),
        };
        let mut place = Self::authority(rest)?;
        place.scheme = scheme;
        place.port = place.port.or(scheme.map(Scheme::port));
        Some(place)
    }

    /// Reads what stands in a `Host` header.
    pub(super) fn authority(text: &str) -> Option<Self> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Self { scheme: None, host: ip.to_string(), port: None });
        }
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        // `user@host` does not begin with its host.
        let port = match text.strip_prefix(host)? {
            "" => None,
            rest => Some(rest.strip_prefix(':')?.parse().ok()?),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = match host.parse::<IpAddr>() {
            Ok(ip) => ip.to_string(),
            Err(_) => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
        };
        (!host.is_empty()).then_some(Self { scheme: None, host, port })
    }

    pub(super) fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.ip().is_some_and(is_loopback)
    }
}

/// Whether only this machine can reach it.
pub(super) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// The places that requests may be meant for. A page that had its own name resolve to our address is not among them.
#[derive(Debug)]
pub(super) struct Hosts {
    own: Scheme,
    allowed: Vec<Place>,
}

impl Hosts {
    pub(super) fn new<'a>(
        own: Scheme,
        allowed: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Error> {
        let read =
            |text: &str| Place::parse(text).ok_or_else(|| Error::Place { text: text.to_owned() });
        Ok(Self { own, allowed: allowed.map(read).collect::<Result<_, _>>()? })
    }

    /// Whether a request that came in at `local` may be meant for `place`, or come from a page of it.
    pub(super) fn have(&self, place: &Place, local: SocketAddr) -> bool {
        let scheme = |own: Scheme| place.scheme.is_none_or(|scheme| scheme == own);
        let port = |own: u16| place.port.is_none_or(|port| port == own);
        let is_allowed = |each: &Place| {
            place.host == each.host
                && scheme(each.scheme.unwrap_or(self.own))
                && each.port.is_none_or(port)
        };
        let here = local.ip().to_canonical();
        let is_here = place.ip().is_some_and(|ip| ip.to_canonical() == here)
            || (is_loopback(here) && place.is_loopback());
        (is_here && scheme(self.own) && port(local.port())) || self.allowed.iter().any(is_allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(place: Option<Place>) -> String {
        place.map_or("-".to_owned(), |place| {
            format!("{:?} {} {:?}", place.scheme, place.host, place.port)
        })
    }

    #[test]
    fn places_are_read_as_written() {
        for (text, want) in [
            ("10.0.0.1:7070", "None 10.0.0.1 Some(7070)"),
            ("Kapell.Example.COM.", "None kapell.example.com None"),
            ("[::1]:7070", "None ::1 Some(7070)"),
            ("::1", "None ::1 None"),
            ("https://a.example", "Some(Https) a.example Some(443)"),
            ("http://127.0.0.1:1", "Some(Http) 127.0.0.1 Some(1)"),
            ("a:99999", "-"),
            ("a:", "-"),
            ("user@a:1", "-"),
            ("ftp://a", "-"),
            ("https://a/path", "-"),
            ("", "-"),
            ("a b", "-"),
            ("null", "None null None"),
        ] {
            assert_eq!(show(Place::parse(text)), want, "{text}");
        }
        assert_eq!(Place::authority("http://a:1"), None);
    }

    #[test]
    fn loopback_is_known_in_all_its_forms() {
        let of = |text| Place::parse(text).unwrap().is_loopback();
        assert!(
            ["127.0.0.1", "127.9.9.9:1", "[::1]:1", "LOCALHOST", "[::ffff:127.0.0.1]"]
                .map(of)
                .iter()
                .all(|&is| is)
        );
        assert!(
            !["0.0.0.0", "10.0.0.1", "[::]", "localhost.example", "::2"]
                .map(of)
                .iter()
                .any(|&is| is)
        );
    }

    #[test]
    fn only_our_own_names_are_ours() {
        let allowed = ["10.0.0.1:7070", "any.example", "https://proxy.example"];
        let hosts = Hosts::new(Scheme::Http, allowed.into_iter()).unwrap();
        let local: SocketAddr = "127.0.0.1:7070".parse().unwrap();
        let ours = [
            "127.0.0.1:7070",
            "127.0.0.1",
            "localhost:7070",
            "localhost",
            "[::1]:7070",
            "10.0.0.1:7070",
            "10.0.0.1",
            "any.example:1",
            "any.example",
            "proxy.example",
            "http://localhost:7070",
            "http://any.example",
            "https://proxy.example",
        ];
        let foreign = [
            "127.0.0.1:7071",
            "localhost:80",
            "evil.example:7070",
            "10.0.0.1:1",
            "10.0.0.2",
            "localhost.evil.example",
            "https://localhost:7070",
            "http://localhost",
            "http://localhost:3000",
            "http://proxy.example",
            "https://proxy.example:8443",
            "null",
        ];
        let have = |text: &str| hosts.have(&Place::parse(text).unwrap(), local);
        let wrong: Vec<_> = ours
            .iter()
            .filter(|text| !have(text))
            .chain(foreign.iter().filter(|text| have(text)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_listener_on_all_addresses_knows_the_one_that_was_reached() {
        let hosts = Hosts::new(Scheme::Https, std::iter::empty()).unwrap();
        let have = |text: &str, local: &str| {
            hosts.have(&Place::parse(text).unwrap(), local.parse().unwrap())
        };
        assert!(have("10.0.0.5:7070", "10.0.0.5:7070"));
        assert!(have("10.0.0.5:7070", "[::ffff:10.0.0.5]:7070"));
        assert!(!have("localhost:7070", "10.0.0.5:7070"));
        assert!(!have("10.0.0.6:7070", "10.0.0.5:7070"));
    }
}
