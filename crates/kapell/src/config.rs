//! Settings: a file, over it the environment, over it the command line.

pub(crate) mod clusters;
mod keys;

use std::ffi::OsString;
use std::fmt;
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use kapell_backend::image;
use kapell_core::board;
use kapell_core::source::{Problem, closest};
use kapell_core::yaml::{self, Value};
use kapell_node::audit;
use kapell_node::cell::CellSettings;
use kapell_node::flow::History;
use kapell_node::scheduler;
use kapell_node::system::user;
use kapell_store::Location;

use self::keys::KEYS;
use crate::cli::Logger;
use crate::problems::BadFile;

/// Where a value comes from, the weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "${name}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Everything that can be set, with its value.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) state_dir: PathBuf,
    pub(crate) logger: Logger,
    pub(crate) workers: Option<u32>,
    pub(crate) grace: Duration,
    /// How long certificates of hosts and cells count.
    pub(crate) certificate_life: Duration,
    pub(crate) history_runs: usize,
    pub(crate) history_age: Duration,
    pub(crate) output_limit_mib: u64,
    /// How long steps on cells wait for hosts that do not answer.
    pub(crate) host_patience: Duration,
    /// The URL of the store.
    store: Option<String>,
    /// Whether hosts note who changes what.
    pub(crate) audit: bool,
    /// How much of it is kept.
    pub(crate) audit_limits: audit::Limits,
    pub(crate) board: board::Settings,
    pub(crate) scheduler: scheduler::Settings,
    /// Where logs of runs outlive the host that led them.
    pub(crate) blobs: Option<PathBuf>,
    /// What logs of runs may take on a host.
    pub(crate) run_logs_bytes: u64,
    /// A file that names Kubernetes clusters.
    pub(crate) kubernetes_clusters: Option<PathBuf>,
    pub(crate) cell: CellSettings,
    /// How much is kept of images, as far as no container uses it.
    pub(crate) image_cache_bytes: u64,
    /// Nobody said where, and there is no home: others may have made the directory.
    pub(crate) state_dir_is_exposed: bool,
    /// Flags that the next command needs too, to mean the same.
    pub(crate) flags: Vec<(&'static str, PathBuf)>,
    origins: Vec<Origin>,
}

const STORES: &str = "mem:, file:DIR, etcd://HOST:PORT, postgres://USER@HOST/DATABASE, cassandra://HOST/KEYSPACE or dynamodb://REGION/TABLE";

/// A URL as others may see it.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = match rest.rsplit_once('@') {
        Some((user, rest)) => {
            let user =
                user.split_once(':').map_or(user.to_owned(), |(name, _)| format!("{name}:…"));
            format!("{user}@{rest}")
        }
        None => rest.to_owned(),
    };
    let (place, query) = rest.split_once('?').unwrap_or((&rest, ""));
    let shown: Vec<&str> = query.split('&').filter(|it| !it.contains("password=")).collect();
    let query = shown.join("&");
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{mark}{query}")
}

/// Why there are no settings.
#[derive(Debug)]
pub(crate) enum Error {
    Unreadable(PathBuf, std::io::Error),
    File(BadFile),
    Variable { name: String, value: String, want: &'static str },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => write!(f, "cannot read `{}`: {error}", path.display()),
            Self::File(_) => f.write_str("the settings file is bad"),
            Self::Variable { name, value, want } => {
                write!(f, "${name} is `{}`, but must be {want}", without_password(value))
            }
        }
    }
}

impl Config {
    /// Reads the settings. `env` tells the value of an environment variable.
    pub(crate) fn load(
        file: Option<&Path>,
        state_dir: Option<&Path>,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, Error> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = set("HOME");
        let below_home = |variable: &str, usual: &str| {
            set(variable)
                .filter(|path| path.is_absolute())
                .or_else(|| home.as_ref().map(|home| home.join(usual)))
        };
        let own = below_home("XDG_STATE_HOME", ".local/state").map(|dir| dir.join("kapell"));
        let fallback = || std::env::temp_dir().join(format!("kapell-{}", user()));
        let flags = [("--config", file), ("--state-dir", state_dir)];
        let given = flags.into_iter().filter_map(|(flag, path)| Some((flag, path?.to_owned())));
        let mut config = Self {
            state_dir_is_exposed: own.is_none(),
            flags: given.collect(),
            state_dir: own.unwrap_or_else(fallback),
            logger: Logger::Stream,
            workers: None,
            grace: Duration::from_secs(10),
            certificate_life: kapell_core::access::CERTIFICATE_LIFE,
            history_runs: 100,
            history_age: Duration::from_secs(90 * 86_400),
            output_limit_mib: 64,
            host_patience: Duration::from_secs(5 * 60),
            store: None,
            audit: true,
            audit_limits: audit::Limits { file_bytes: 16 << 20, files: 16 },
            board: board::Settings::default(),
            scheduler: scheduler::Settings::default(),
            blobs: None,
            run_logs_bytes: 10 << 30,
            kubernetes_clusters: None,
            cell: CellSettings::default(),
            image_cache_bytes: image::Settings::CACHE_BYTES,
            origins: vec![Origin::Default; KEYS.len()],
        };
        let usual =
            below_home("XDG_CONFIG_HOME", ".config").map(|dir| dir.join("kapell/config.yaml"));
        let named = set("KAPELL_CONFIG");
        match (file.or(named.as_deref()), usual) {
            (Some(file), _) => config.read(file)?,
            (None, Some(usual)) if usual.is_file() => config.read(&usual)?,
            (None, _) => {}
        }
        for (at, key) in KEYS.iter().enumerate() {
            let name = format!("KAPELL_{}", key.name.to_ascii_uppercase());
            if let Some(value) = env(&name).filter(|value| !value.is_empty()) {
                let value = value.to_string_lossy().into_owned();
                if let Err(want) = (key.set)(&mut config, &value) {
                    return Err(Error::Variable { name, value, want });
                }
                config.origins[at] = Origin::Environment(name);
            }
        }
        if let Some(dir) = state_dir {
            dir.clone_into(&mut config.state_dir);
            config.mark("state_dir", Origin::Flag("--state-dir"));
        }
        config.state_dir_is_exposed &= config.origins[0] == Origin::Default;
        // Steps may run elsewhere, and the scripts among them are below it.
        if let Ok(absolute) = path::absolute(&config.state_dir) {
            config.state_dir = absolute;
        }
        Ok(config)
    }

    /// The store that a flag names, or else the settings.
    pub(crate) fn store(&self, flag: Option<&str>) -> anyhow::Result<Location> {
        let url = flag.or(self.store.as_deref());
        let url = url.with_context(|| format!("no store is named: give --store URL ({STORES})"))?;
        Ok(url.parse()?)
    }

    /// The runs that were.
    pub(crate) fn history(&self) -> History {
        if self.state_dir_is_exposed {
            History::below_exposed(&self.state_dir)
        } else {
            History::below(&self.state_dir)
        }
    }

    fn mark(&mut self, name: &str, origin: Origin) {
        if let Some(at) = KEYS.iter().position(|key| key.name == name) {
            self.origins[at] = origin;
        }
    }

    fn read(&mut self, path: &Path) -> Result<(), Error> {
        let bytes =
            std::fs::read(path).map_err(|error| Error::Unreadable(path.to_owned(), error))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let problems = match yaml::parse(&text) {
            Ok(documents) => {
                documents.iter().flat_map(|document| self.take(document, path)).collect()
            }
            Err(problem) => vec![problem],
        };
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::File(BadFile { path: path.display().to_string(), problems, bytes }))
    }

    fn take(&mut self, document: &yaml::Node<'_>, path: &Path) -> Vec<Problem> {
        let Value::Map(entries) = &document.value else {
            let wrong = !document.is_null();
            let problem = || {
                Problem::error(document.span, "settings must be a mapping")
                    .help("write `workers: 8`")
            };
            return wrong.then(problem).into_iter().collect();
        };
        let mut problems = Vec::new();
        for (name, value) in entries {
            let text = name.scalar().map_or("", |scalar| &scalar.text);
            let Some(at) = KEYS.iter().position(|key| key.name == text) else {
                let help = match closest(text, KEYS.iter().map(|key| key.name)) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("settings are {}", KEYS.map(|key| key.name).join(", ")),
                };
                problems.push(
                    Problem::error(name.span, format!("unknown setting `{text}`")).help(help),
                );
                continue;
            };
            let given = value.scalar().map_or("", |scalar| &scalar.text);
            match (KEYS[at].set)(self, given) {
                Ok(()) => self.origins[at] = Origin::File(path.to_owned()),
                Err(want) => {
                    let problem =
                        Problem::error(value.span, format!("`{given}` is no value of `{text}`"));
                    problems.push(problem.help(format!("write {want}")));
                }
            }
        }
        problems
    }

    /// Name, value and origin of every setting.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String, String)> {
        KEYS.iter()
            .zip(&self.origins)
            .map(|(key, origin)| (key.name, (key.show)(self), origin.to_string()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
