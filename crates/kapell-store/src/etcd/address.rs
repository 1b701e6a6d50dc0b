use std::fmt;
use std::fs;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};

use super::paths;
use kapell_core::percent;

use crate::error::Error;

const DEFAULT_ROOT: &str = "kapell";
const KNOWN: &str = "tls, ca, cert, key, domain, password_file";
/// Room for a root in front of every key is part of what a request may hold.
const ROOT_BYTES: usize = 255;

/// What a URL says about where etcd is and how to talk to it.
pub(super) struct Address {
    hosts: Vec<String>,
    pub(super) root: String,
    user: Option<(String, Secret)>,
    tls: Option<TlsOptions>,
}

struct Secret(String);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

#[derive(Default)]
struct Query {
    tls: bool,
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
    domain: Option<String>,
    password_file: Option<String>,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        parse(url).map_err(|why| Error::BadUrl { url: without_secrets(url), why })
    }

    /// The URL without anything that is nobody's business.
    pub(super) fn name(&self) -> String {
        let scheme = if self.tls.is_some() { "etcds" } else { "etcd" };
        format!("{scheme}://{}/{}", self.hosts.join(","), self.root)
    }

    /// One endpoint for each member that is named.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        self.hosts.iter().map(move |host| format!("{scheme}://{host}"))
    }

    pub(super) fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new();
        if let Some((user, Secret(password))) = &self.user {
            options = options.with_user(user, password).with_auto_token_refresh(true);
        }
        if let Some(tls) = &self.tls {
            options = options.with_tls(tls.clone());
        }
        options
    }
}

fn parse(url: &str) -> Result<Address, String> {
    let (scheme, rest) = url.split_once("://").ok_or("it has no `://`")?;
    let secured = match scheme {
        "etcd" => false,
        "etcds" => true,
        other => return Err(format!("`{other}` is neither `etcd` nor `etcds`")),
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, root) = place.split_once('/').unwrap_or((place, ""));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    let query = Query::parse(query, secured)?;
    Ok(Address {
        hosts: parse_hosts(hosts)?,
        root: parse_root(root)?,
        user: parse_user(login, query.password_file.as_deref())?,
        tls: query.tls_options()?,
    })
}

fn parse_hosts(hosts: &str) -> Result<Vec<String>, String> {
    hosts
        .split(',')
        .map(|host| {
            let port = host.rsplit_once(':').filter(|(name, _)| !name.is_empty());
            match port.map(|(_, port)| port.parse::<u16>()) {
                Some(Ok(1..)) => Ok(host.to_owned()),
                Some(_) | None => Err(format!("`{host}` is not `host:port`")),
            }
        })
        .collect()
}

fn parse_root(path: &str) -> Result<String, String> {
    let root = decode(path.trim_matches('/'))?;
    if root.is_empty() {
        return Ok(DEFAULT_ROOT.to_owned());
    }
    if root.len() > ROOT_BYTES {
        return Err(format!("a root has at most {ROOT_BYTES} bytes"));
    }
    // A root below another store's own keys would show up in that store.
    match root.split('/').find(|part| paths::RESERVED.contains(part)) {
        Some(part) => Err(format!("`{part}` cannot be part of a root")),
        None => Ok(root),
    }
}

fn parse_user(
    login: Option<&str>,
    password_file: Option<&str>,
) -> Result<Option<(String, Secret)>, String> {
    let Some(login) = login else {
        return match password_file {
            Some(_) => Err("`password_file` needs a user".to_owned()),
            None => Ok(None),
        };
    };
    let (user, inline) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    if user.is_empty() {
        return Err("the user is empty".to_owned());
    }
    let password = match (inline, password_file) {
        (Some(_), Some(_)) => return Err("it names two passwords".to_owned()),
        (Some(password), None) => decode(password)?,
        (None, Some(path)) => {
            read_file("password_file", path)?.trim_end_matches(['\n', '\r']).to_owned()
        }
        (None, None) => return Err("the user has neither password nor `password_file`".to_owned()),
    };
    Ok(Some((decode(user)?, Secret(password))))
}

impl Query {
    fn parse(text: &str, secured: bool) -> Result<Self, String> {
        let mut query = Self { tls: secured, ..Self::default() };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value)?;
            match name {
                "tls" => query.tls = parse_tls(&value, secured)?,
                "ca" => query.ca = Some(value),
                "cert" => query.cert = Some(value),
                "key" => query.key = Some(value),
                "domain" => query.domain = Some(value),
                "password_file" => query.password_file = Some(value),
                // Not repeated if it may be the rest of a password.
                other if other.contains(['@', ':']) => {
                    return Err(format!("a parameter is none of {KNOWN}"));
                }
                other => return Err(format!("`{other}` is none of {KNOWN}")),
            }
        }
        Ok(query)
    }

    fn tls_options(&self) -> Result<Option<TlsOptions>, String> {
        let Self { ca, cert, key, domain, .. } = self;
        if !self.tls {
            let given = [("ca", ca), ("cert", cert), ("key", key), ("domain", domain)];
            return match given.iter().find(|(_, value)| value.is_some()) {
                Some((name, _)) => Err(format!("`{name}` needs `tls=true`")),
                None => Ok(None),
            };
        }
        let ca = ca.as_deref().ok_or("TLS needs `ca`, the authority to trust")?;
        let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read_file("ca", ca)?));
        match (cert, key) {
            (Some(cert), Some(key)) => {
                let (cert, key) = (read_file("cert", cert)?, read_file("key", key)?);
                tls = tls.identity(Identity::from_pem(cert, key));
            }
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => {
                return Err("`cert` and `key` come together".to_owned());
            }
        }
        if let Some(domain) = domain {
            tls = tls.domain_name(domain);
        }
        Ok(Some(tls))
    }
}

fn parse_tls(value: &str, secured: bool) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" if secured => Err("`etcds` cannot go without TLS".to_owned()),
        "false" => Ok(false),
        other => Err(format!("`tls={other}` is neither `true` nor `false`")),
    }
}

fn read_file(what: &str, path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{what} `{path}`: {error}"))
}

fn decode(text: &str) -> Result<String, String> {
    percent::decode(text).map_err(|wrong| wrong.to_string())
}

/// Cuts the login and the query off. Where a password with `?` or `/` in it makes it unclear
/// which part is which, more is cut rather than less.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    match place.rsplit_once('@') {
        Some((_, place)) => format!("{scheme}://…@{place}"),
        None if query.contains('@') => format!("{scheme}://…"),
        None => format!("{scheme}://{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(url: &str) -> String {
        Address::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn hosts_root_and_login_are_taken_apart() {
        let address = Address::parse("etcd://a%40b:p%2fw%3A@h1:1,[::1]:2/prod/one?").unwrap();
        assert_eq!(address.name(), "etcd://h1:1,[::1]:2/prod/one");
        assert_eq!(address.endpoints().collect::<Vec<_>>(), ["http://h1:1", "http://[::1]:2"]);
        let (user, Secret(password)) = address.user.unwrap();
        assert_eq!((user.as_str(), password.as_str()), ("a@b", "p/w:"));

        for bare in ["etcd://h:1", "etcd://h:1/", "etcd://h:1?tls=false"] {
            assert_eq!(Address::parse(bare).unwrap().name(), "etcd://h:1/kapell");
        }
    }

    #[test]
    fn passwords_and_certificates_come_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::write(path("password"), "se cret\n").unwrap();
        fs::write(path("pem"), "-----BEGIN CERTIFICATE-----\n").unwrap();

        let address =
            Address::parse(&format!("etcd://root@h:1?password_file={}", path("password"))).unwrap();
        assert_eq!(address.user.unwrap().1.0, "se cret");

        for secured in ["etcds://h:1?", "etcd://h:1?tls=true&"] {
            let pem = path("pem");
            let url = format!("{secured}ca={pem}&cert={pem}&key={pem}&domain=etcd.example");
            let address = Address::parse(&url).unwrap();
            assert_eq!(address.name(), "etcds://h:1/kapell");
            assert_eq!(address.endpoints().collect::<Vec<_>>(), ["https://h:1"]);
        }
        let missing = why("etcds://h:1?ca=/no/such/file");
        assert!(missing.contains("ca `/no/such/file`: No such file"), "{missing}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = [
            ("etcd:h:1", "no `://`"),
            ("http://h:1", "neither `etcd` nor `etcds`"),
            ("etcd://", "not `host:port`"),
            ("etcd://h", "not `host:port`"),
            ("etcd://h:0", "not `host:port`"),
            ("etcd://h:1,,i:2", "not `host:port`"),
            ("etcd://h:1/a/sysvvm", "`sysvvm` cannot be part"),
            ("etcd://h:1?tsl=true", "`tsl` is none of tls, ca, cert, key, domain, password_file"),
            ("etcd://h:1?tls=yes", "neither `true` nor `false`"),
            ("etcds://h:1?tls=false", "cannot go without TLS"),
            ("etcds://h:1", "TLS needs `ca`"),
            ("etcd://h:1?ca=f", "`ca` needs `tls=true`"),
            ("etcd://h:1?password_file=f", "needs a user"),
            ("etcd://u@h:1", "neither password nor"),
            ("etcd://u:p@h:1?password_file=f", "two passwords"),
            ("etcd://:p@h:1", "the user is empty"),
            ("etcd://u:%4@h:1", "two hexadecimal digits"),
            ("etcd://u:%ff@h:1", "not UTF-8"),
        ];
        for (url, want) in refused {
            let got = why(url);
            assert!(got.contains(want), "{url}: want {want}, got {got}");
        }
        let long = format!("etcd://h:1/{}", "r".repeat(ROOT_BYTES + 1));
        assert!(why(&long).contains("at most 255 bytes"));
    }

    #[test]
    fn no_message_shows_a_secret() {
        let urls = [
            "etcd://root:hunter2@h:1?x=1",
            "etcd://root:hunter2@h",
            "etcd://root:hun/ter2@h:x",
            "etcd://root:hunter2?@h:1",
            "etcd://h:1?password=hunter2",
            "etcd://h:1?password=a@hunter2",
            "root:hunter2@h:1",
        ];
        for url in urls {
            let error = Address::parse(url).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2") && !shown.contains("ter2"), "{url}: {shown}");
        }
        let address = Address::parse("etcd://root:hunter2@h:1").unwrap();
        assert_eq!(format!("{address:?}"), "\"etcd://h:1/kapell\"");
    }
}
