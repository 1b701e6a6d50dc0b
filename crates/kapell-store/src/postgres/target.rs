//! What a `postgres://` URL says.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};
use url::form_urlencoded;

use crate::error::Error;

use super::tls::Trust;

const KNOWN: &str = "schema, sslmode, sslrootcert, password_file, pool, user, password, dbname, host, \
                     hostaddr, port, options, application_name, channel_binding";
const SCHEMA: &str = "kapell";
/// A server cuts longer names off without a word.
const NAME_BYTES: usize = 63;
const POOL: usize = 4;
const POOL_MOST: usize = 64;

/// Where the store is and how to get in.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The URL without secrets.
    pub(super) name: String,
    /// An identifier that needs no quotes; also the channel that changes are told on.
    pub(super) schema: String,
    pub(super) trust: Trust,
    pub(super) pool: usize,
    config: Config,
    password_file: Option<PathBuf>,
}

/// The parameters that are no business of the protocol's.
#[derive(Debug, Default)]
struct Own {
    schema: Option<String>,
    sslmode: Option<String>,
    sslrootcert: Option<PathBuf>,
    password_file: Option<PathBuf>,
    pool: Option<usize>,
}

impl Target {
    pub(super) fn parse(url: &str, timeout: Duration) -> Result<Self, Error> {
        Self::read(url, timeout).map_err(|why| Error::BadUrl { url: redacted(url), why })
    }

    fn read(url: &str, timeout: Duration) -> Result<Self, String> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        if !base.starts_with("postgres://") && !base.starts_with("postgresql://") {
            return Err("it does not begin with `postgres://`".to_owned());
        }
        if base.matches('@').count() > 1 {
            return Err("an `@` in a user, password or database is written `%40`".to_owned());
        }
        let mut config: Config = base.parse().map_err(|error| chain(&error))?;
        let own = take_parameters(query, &mut config)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("it has no host".to_owned());
        }
        let trust = trust(&own, &config)?;
        let schema = own.schema.unwrap_or_else(|| SCHEMA.to_owned());
        config.ssl_mode(match trust {
            Trust::Plain => SslMode::Disable,
            Trust::Anyone | Trust::Roots(_) => SslMode::Require,
        });
        bound(&mut config, timeout);
        // A standby would answer reads with the past.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("kapell");
        }
        let pool = own.pool.unwrap_or(POOL);
        let name = name(&config, &schema);
        Ok(Self { name, schema, trust, pool, config, password_file: own.password_file })
    }

    /// How to connect now. The password file is read each time, so that a new password counts.
    pub(super) fn config(&self) -> Result<Config, Error> {
        let mut config = self.config.clone();
        if let Some(path) = &self.password_file {
            let text = fs::read(path).map_err(|error| Error::BadUrl {
                url: self.name.clone(),
                why: format!("its password_file `{}` cannot be read: {error}", path.display()),
            })?;
            config.password(text.strip_suffix(b"\n").unwrap_or(&text));
        }
        Ok(config)
    }

    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or_default()
    }
}

fn take_parameters(query: &str, config: &mut Config) -> Result<Own, String> {
    let mut own = Own::default();
    // A plus is a plus here, unlike in a form.
    let query = query.replace('+', "%2B");
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let text = value.into_owned();
        match &*key {
            "schema" => own.schema = Some(schema(text)?),
            "sslmode" => own.sslmode = Some(text),
            "sslrootcert" => own.sslrootcert = Some(text.into()),
            "password_file" => own.password_file = Some(text.into()),
            "pool" => own.pool = Some(pool(&text)?),
            _ => protocol_parameter(&key, &text, config)?,
        }
    }
    if own.password_file.is_some() && config.get_password().is_some() {
        return Err("it has both a password and a password_file".to_owned());
    }
    Ok(own)
}

fn protocol_parameter(key: &str, text: &str, config: &mut Config) -> Result<(), String> {
    let bad = |expected: &str| format!("{key} is {expected}, not `{text}`");
    match key {
        "user" => config.user(text),
        "password" => config.password(text),
        "dbname" => config.dbname(text),
        "options" => config.options(text),
        "application_name" => config.application_name(text),
        "host" => text.split(',').fold(config, Config::host),
        "hostaddr" => text.split(',').try_fold(config, |config, address| {
            let address = address.parse().map(|address| config.hostaddr(address));
            address.map_err(|_| bad("a list of addresses"))
        })?,
        "port" => text.split(',').try_fold(config, |config, port| {
            port.parse().map(|port| config.port(port)).map_err(|_| bad("a list of port numbers"))
        })?,
        "channel_binding" => config.channel_binding(match text {
            "disable" => ChannelBinding::Disable,
            "prefer" => ChannelBinding::Prefer,
            "require" => ChannelBinding::Require,
            _ => return Err(bad("disable, prefer or require")),
        }),
        _ => return Err(format!("parameter `{key}` is unknown; known are {KNOWN}")),
    };
    Ok(())
}

fn schema(text: String) -> Result<String, String> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let fits = text.len() <= NAME_BYTES
        && text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
        && !text.starts_with("pg_");
    if fits {
        return Ok(text);
    }
    Err(format!(
        "schema is at most {NAME_BYTES} lower-case letters, digits and underscores, beginning with neither a digit \
         nor `pg_`, not `{text}`"
    ))
}

fn pool(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=POOL_MOST).contains(count));
    count.ok_or_else(|| format!("pool is a number from 1 to {POOL_MOST}, not `{text}`"))
}

/// Without a word on it, nothing leaves this machine unless the other side proves who it is:
/// to use TLS only if the server offers it would let anyone in between switch it off.
fn trust(own: &Own, config: &Config) -> Result<Trust, String> {
    let roots = own.sslrootcert.clone();
    match own.sslmode.as_deref() {
        Some("verify-full") => Ok(Trust::Roots(roots)),
        Some("disable" | "require") if roots.is_some() => {
            Err("sslrootcert is only checked with sslmode=verify-full".to_owned())
        }
        Some("disable") => Ok(Trust::Plain),
        Some("require") => Ok(Trust::Anyone),
        Some(other) => Err(format!("sslmode is disable, require or verify-full, not `{other}`")),
        None if roots.is_none() && stays_here(config) => Ok(Trust::Plain),
        None => Ok(Trust::Roots(roots)),
    }
}

fn stays_here(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    })
}

/// Notices a peer that is gone without a word, and leaves each host its share of the time.
fn bound(config: &mut Config, timeout: Duration) {
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1);
    // What a system takes for these is whole seconds, and not too many.
    let sane = |time: Duration| time.clamp(Duration::from_secs(1), Duration::from_secs(3600));
    config
        .connect_timeout(timeout / u32::try_from(hosts).unwrap_or(u32::MAX))
        .tcp_user_timeout(sane(timeout))
        .keepalives(true)
        .keepalives_idle(sane(timeout))
        .keepalives_interval(sane(timeout / 3))
        .keepalives_retries(3);
}

fn name(config: &Config, schema: &str) -> String {
    let mut name = "postgres://".to_owned();
    if let Some(user) = config.get_user() {
        name += &format!("{user}@");
    }
    let ports = config.get_ports();
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    let hosts: Vec<String> = if config.get_hosts().is_empty() {
        config.get_hostaddrs().iter().map(ToString::to_string).collect()
    } else {
        let text = |host: &Host| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        config.get_hosts().iter().map(text).collect()
    };
    let hosts: Vec<_> =
        hosts.iter().enumerate().map(|(index, host)| format!("{host}:{}", port(index))).collect();
    name += &hosts.join(",");
    if let Some(database) = config.get_dbname() {
        name += &format!("/{database}");
    }
    if schema != SCHEMA {
        name += &format!("?schema={schema}");
    }
    name
}

/// Parameters that are no secret.
const SHOWN: [&str; 3] = ["schema=", "sslmode=", "pool="];

/// A URL that could not be read, without what may be its password. Rather too little than too much.
fn redacted(url: &str) -> String {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    // Where the password ends cannot be told.
    let has_login = base.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    let may_be_login = base.matches(':').count() > 1 && !has_login;
    if query.contains('@') || may_be_login {
        return format!("{}://…", url.split_once("://").map_or("postgres", |(scheme, _)| scheme));
    }
    let base = match (base.split_once("://"), base.rsplit_once('@')) {
        (Some((scheme, rest)), Some((_, host))) => {
            let user = rest.split([':', '@']).next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        (_, None) => base.to_owned(),
        (None, Some((_, host))) => host.to_owned(),
    };
    let shown: Vec<_> =
        query.split('&').filter(|it| SHOWN.iter().any(|name| it.starts_with(name))).collect();
    let query = shown.join("&");
    if query.is_empty() { base } else { format!("{base}?{query}") }
}

fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), chain)
}
