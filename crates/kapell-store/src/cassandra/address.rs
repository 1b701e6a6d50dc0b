use std::fmt;
use std::fs;

use kapell_core::percent;

use super::tls::Tls;
use crate::error::Error;

const KNOWN: &str = "serial, dc, replication, gc_grace, tls, ca, cert, key, domain, password_file";
const PORT: u16 = 9042;
/// What a store is called that is the only one of its keyspace.
const STORE: &str = "main";
const STORE_BYTES: usize = 100;
/// No longer ones are taken by the server.
const KEYSPACE_BYTES: usize = 48;
/// As long as hints for a node that is down are kept by default.
const GC_GRACE_SECONDS: u32 = 3 * 3600;

/// What a URL says about where the cluster is and how to talk to it.
pub(super) struct Address {
    pub(super) hosts: Vec<String>,
    /// An identifier that needs no quotes.
    pub(super) keyspace: String,
    /// Which of its stores.
    pub(super) store: String,
    pub(super) login: Option<Login>,
    pub(super) tls: Option<Tls>,
    pub(super) serial: Serial,
    pub(super) dc: Option<String>,
    pub(super) replication: Option<Replication>,
    pub(super) gc_grace_seconds: u32,
}

/// Who agrees on a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Serial {
    #[default]
    Global,
    Local,
}

/// Where copies of everything are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Replication {
    Copies(u32),
    Centres(Vec<(String, u32)>),
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: String,
    password: Password,
}

#[derive(Clone, PartialEq, Eq)]
enum Password {
    Given(String),
    /// Read each time, so that a new password counts.
    File(String),
}

#[derive(Default)]
struct Options {
    serial: Serial,
    dc: Option<String>,
    replication: Option<Replication>,
    gc_grace: Option<u32>,
    tls: bool,
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
    domain: Option<String>,
    password_file: Option<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        parse(url).map_err(|why| Error::BadUrl { url: without_secrets(url), why })
    }

    /// The URL without anything that is nobody's business.
    pub(super) fn name(&self) -> String {
        let store = Some(&self.store).filter(|store| *store != STORE);
        let store = store.map(|store| format!("/{store}")).unwrap_or_default();
        format!("cassandra://{}/{}{store}", self.hosts.join(","), self.keyspace)
    }

    /// What hosts of one store must agree on.
    pub(super) fn agreement(&self) -> String {
        match (self.serial, &self.dc) {
            (Serial::Local, Some(dc)) => format!("serial=local&dc={dc}"),
            (Serial::Local, None) => "serial=local".to_owned(),
            (Serial::Global, _) => "serial=global".to_owned(),
        }
    }
}

impl Login {
    pub(super) fn password(&self) -> Result<String, String> {
        match &self.password {
            Password::Given(password) => Ok(password.clone()),
            Password::File(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| format!("password_file `{path}`: {error}"))?;
                Ok(text.trim_end_matches(['\n', '\r']).to_owned())
            }
        }
    }
}

impl Replication {
    /// As the server's own language has it.
    pub(super) fn to_cql(&self) -> String {
        let (class, copies) = match self {
            Self::Copies(copies) => ("SimpleStrategy", format!("'replication_factor': {copies}")),
            Self::Centres(centres) => {
                let each = centres.iter().map(|(name, copies)| format!("'{name}': {copies}"));
                ("NetworkTopologyStrategy", each.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{{'class': '{class}', {copies}}}")
    }
}

fn parse(url: &str) -> Result<Address, String> {
    let rest = url.strip_prefix("cassandra://").ok_or("it does not begin with `cassandra://`")?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    let (keyspace, store) = path.split_once('/').unwrap_or((path, STORE));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    let options = Options::parse(query).map_err(|why| {
        // What stands behind a `?` may be the rest of a password.
        let may_be_secret = query.contains('@');
        if may_be_secret { format!("one of the options is wrong; there are {KNOWN}") } else { why }
    })?;
    if options.serial == Serial::Local && options.dc.is_none() {
        return Err("`serial=local` needs `dc`, the data centre that all hosts ask".to_owned());
    }
    Ok(Address {
        hosts: hosts.split(',').map(parse_host).collect::<Result<_, _>>()?,
        keyspace: parse_keyspace(keyspace)?,
        store: parse_store(store)?,
        login: parse_login(login, options.password_file.as_deref())?,
        tls: options.tls()?,
        serial: options.serial,
        dc: options.dc,
        replication: options.replication,
        gc_grace_seconds: options.gc_grace.unwrap_or(GC_GRACE_SECONDS),
    })
}

/// What is none is not repeated: a password with a `/` in it makes user and password look like one.
fn parse_host(text: &str) -> Result<String, String> {
    let bad = || {
        "what stands before the keyspace is not `host` or `host:port`, separated by commas (a `/` in a password is `%2F`)"
            .to_owned()
    };
    // An address of version 6 has colons of its own, in brackets.
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => (name, port.parse().map_err(|_| bad())?),
        Some(_) | None => (text, PORT),
    };
    let is_right = |letter: char| letter.is_ascii_alphanumeric() || "-._[]:%".contains(letter);
    if name.is_empty() || port == 0 || !name.chars().all(is_right) {
        return Err(bad());
    }
    Ok(format!("{name}:{port}"))
}

fn is_name(text: &str) -> bool {
    let rest = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.starts_with(|letter: char| letter.is_ascii_alphabetic()) && text.chars().all(rest)
}

fn parse_keyspace(text: &str) -> Result<String, String> {
    let is_lower = text == text.to_ascii_lowercase();
    if is_name(text) && is_lower && text.len() <= KEYSPACE_BYTES {
        return Ok(text.to_owned());
    }
    let right = "1 to 48 lower-case letters, digits or `_`, a letter first";
    Err(format!("the keyspace, behind the hosts and a `/`, must be {right}"))
}

fn parse_store(text: &str) -> Result<String, String> {
    let is_right = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if !text.is_empty() && text.chars().all(is_right) && text.len() <= STORE_BYTES {
        return Ok(text.to_owned());
    }
    let right = "1 to 100 letters, digits, `-`, `_` or `.`";
    Err(format!("the store, behind the keyspace and a `/`, must be {right}"))
}

fn parse_login(login: Option<&str>, file: Option<&str>) -> Result<Option<Login>, String> {
    let Some(login) = login else {
        return match file {
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
    let password = match (inline, file) {
        (Some(_), Some(_)) => return Err("it names two passwords".to_owned()),
        (Some(password), None) => Password::Given(decode(password)?),
        (None, Some(path)) => Password::File(path.to_owned()),
        (None, None) => return Err("the user has neither password nor `password_file`".to_owned()),
    };
    let login = Login { user: decode(user)?, password };
    login.password()?;
    Ok(Some(login))
}

impl Options {
    fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value)?;
            match name {
                "serial" => options.serial = parse_serial(&value)?,
                "dc" => options.dc = Some(parse_centre(&value)?),
                "replication" => options.replication = Some(parse_replication(&value)?),
                "gc_grace" => options.gc_grace = Some(parse_seconds(&value)?),
                "tls" => options.tls = parse_tls(&value)?,
                "ca" => options.ca = Some(value),
                "cert" => options.cert = Some(value),
                "key" => options.key = Some(value),
                "domain" => options.domain = Some(value),
                "password_file" => options.password_file = Some(value),
                other => return Err(format!("`{other}` is none of {KNOWN}")),
            }
        }
        Ok(options)
    }

    fn tls(&self) -> Result<Option<Tls>, String> {
        let Self { ca, cert, key, domain, .. } = self;
        if !self.tls {
            let given = [("ca", ca), ("cert", cert), ("key", key), ("domain", domain)];
            return match given.iter().find(|(_, value)| value.is_some()) {
                Some((name, _)) => Err(format!("`{name}` needs `tls=true`")),
                None => Ok(None),
            };
        }
        let ca = ca.as_deref().ok_or("TLS needs `ca`, the authority to trust")?;
        let own = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert.as_str(), key.as_str())),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err("`cert` and `key` come together".to_owned());
            }
        };
        Tls::of_files(ca, own, domain.as_deref()).map(Some)
    }
}

fn parse_serial(value: &str) -> Result<Serial, String> {
    match value {
        "global" => Ok(Serial::Global),
        "local" => Ok(Serial::Local),
        other => Err(format!("`serial={other}` is neither `global` nor `local`")),
    }
}

/// It becomes part of a statement, in quotes.
fn parse_centre(value: &str) -> Result<String, String> {
    let is_right = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if value.is_empty() || !value.chars().all(is_right) {
        let right = "letters, digits, `-`, `_` and `.`";
        return Err(format!("`{value}` is no name of a data centre: {right}"));
    }
    Ok(value.to_owned())
}

fn parse_replication(value: &str) -> Result<Replication, String> {
    let copies = |text: &str| match text.parse() {
        Ok(copies @ 1..=100) => Ok(copies),
        Ok(_) | Err(_) => Err(format!("`{text}` is no number of copies, 1 to 100")),
    };
    if !value.contains(':') {
        return copies(value).map(Replication::Copies);
    }
    let centres = value.split(',').map(|each| {
        let (name, count) = each.split_once(':').ok_or("write `replication=dc1:3,dc2:3`")?;
        Ok::<_, String>((parse_centre(name)?, copies(count)?))
    });
    centres.collect::<Result<_, _>>().map(Replication::Centres)
}

fn parse_seconds(value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("`gc_grace={value}` is no number of seconds"))
}

fn parse_tls(value: &str) -> Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("`tls={other}` is neither `true` nor `false`")),
    }
}

fn decode(text: &str) -> Result<String, String> {
    percent::decode(text).map_err(|wrong| wrong.to_string())
}

/// Cuts the login and the query off. Where a password with `?` or `/` in it makes it unclear which part is which, more is
/// cut rather than less.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    match place.rsplit_once('@') {
        _ if query.contains('@') => format!("{scheme}://…"),
        Some((_, place)) => format!("{scheme}://…@{place}"),
        // Perhaps a login without anything behind it.
        None if !has_only_hosts(place) => format!("{scheme}://…"),
        None => format!("{scheme}://{place}"),
    }
}

fn has_only_hosts(place: &str) -> bool {
    let authority = place.split('/').next().unwrap_or_default();
    authority.split(',').all(|host| parse_host(host).is_ok())
}
