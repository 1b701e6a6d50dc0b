//! Settings: a file, over it the environment, over it the command line.

use std::ffi::OsString;
use std::fmt;
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum as _;
use kapell_core::board;
use kapell_core::source::{Problem, closest};
use kapell_core::workflow::{parse_duration, show_duration};
use kapell_core::yaml::{self, Value};
use kapell_node::audit;
use kapell_node::cell::CellSettings;
use kapell_node::flow::History;
use kapell_node::system::user;
use kapell_store::Location;

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

/// One setting as text, and what it means.
struct Key {
    name: &'static str,
    /// Takes the text if it is a value of this setting, else says what one would be.
    set: fn(&mut Config, &str) -> Result<(), &'static str>,
    show: fn(&Config) -> String,
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
    pub(crate) cell: CellSettings,
    /// Nobody said where, and there is no home: others may have made the directory.
    pub(crate) state_dir_is_exposed: bool,
    /// Flags that the next command needs too, to mean the same.
    pub(crate) flags: Vec<(&'static str, PathBuf)>,
    origins: Vec<Origin>,
}

/// A setting that is a time.
macro_rules! time {
    ($name:literal, $($part:ident).+) => {
        Key {
            name: $name,
            set: |config, text| {
                let time = parse_duration(text).filter(|time| !time.is_zero());
                config.$($part).+ = time.ok_or("a duration such as 30s")?;
                Ok(())
            },
            show: |config| show_duration(config.$($part).+),
        }
    };
}

const KEYS: [Key; 28] = [
    Key {
        name: "state_dir",
        set: |config, text| {
            if text.is_empty() {
                return Err("a directory");
            }
            config.state_dir = PathBuf::from(text);
            Ok(())
        },
        show: |config| config.state_dir.display().to_string(),
    },
    Key {
        name: "logger",
        set: |config, text| {
            config.logger =
                Logger::from_str(text, false).map_err(|_| "stream, tree, json or none")?;
            Ok(())
        },
        show: |config| config.logger.name().to_owned(),
    },
    Key {
        name: "workers",
        set: |config, text| {
            let workers = text.parse().ok().filter(|workers| (1..=10_000).contains(workers));
            config.workers = Some(workers.ok_or("a number from 1 to 10000")?);
            Ok(())
        },
        show: |config| config.workers.unwrap_or(5).to_string(),
    },
    Key {
        name: "grace",
        set: |config, text| {
            config.grace = parse_duration(text).ok_or("a duration such as 10s")?;
            Ok(())
        },
        show: |config| show_duration(config.grace),
    },
    Key {
        name: "history_runs",
        set: |config, text| {
            config.history_runs =
                text.parse().ok().filter(|&runs| runs > 0).ok_or("a number above 0")?;
            Ok(())
        },
        show: |config| config.history_runs.to_string(),
    },
    Key {
        name: "history_age",
        set: |config, text| {
            config.history_age = parse_duration(text).ok_or("a duration such as 90d")?;
            Ok(())
        },
        show: |config| format!("{}d", config.history_age.as_secs() / 86_400),
    },
    Key {
        name: "output_limit_mib",
        set: |config, text| {
            config.output_limit_mib = text.parse().map_err(|_| "a number of MiB")?;
            Ok(())
        },
        show: |config| config.output_limit_mib.to_string(),
    },
    time!("host_patience", host_patience),
    Key {
        name: "audit",
        set: |config, text| {
            config.audit = match text {
                "file" => true,
                "off" => false,
                _ => return Err("file or off"),
            };
            Ok(())
        },
        show: |config| if config.audit { "file" } else { "off" }.to_owned(),
    },
    Key {
        name: "audit_file_mib",
        set: |config, text| {
            let mib = text.parse::<u64>().ok().filter(|mib| (1..=1024).contains(mib));
            config.audit_limits.file_bytes = mib.ok_or("a number of MiB from 1 to 1024")? << 20;
            Ok(())
        },
        show: |config| (config.audit_limits.file_bytes >> 20).to_string(),
    },
    Key {
        name: "audit_files",
        set: |config, text| {
            let files = text.parse().ok().filter(|files| (2..=1000).contains(files));
            config.audit_limits.files = files.ok_or("a number from 2 to 1000")?;
            Ok(())
        },
        show: |config| config.audit_limits.files.to_string(),
    },
    Key {
        name: "store",
        set: |config, text| {
            text.parse::<Location>().map_err(|_| STORES)?;
            config.store = Some(text.to_owned());
            Ok(())
        },
        show: |config| config.store.as_deref().map(without_password).unwrap_or_default(),
    },
    time!("certificate_life", certificate_life),
    time!("presence_ttl", board.presence_ttl),
    time!("converge_every", board.converge_every),
    time!("stale_unclaimed", board.stale_unclaimed),
    time!("kick_task", board.kick_task),
    time!("pending_task", board.pending_task),
    time!("completed_task", board.completed_task),
    Key {
        name: "evacuation_timeout",
        set: |config, text| {
            let time = parse_duration(text).filter(|time| !time.is_zero());
            config.board.evacuation = time.ok_or("a duration such as 30s")?;
            // A twin lasts for as long as its cell has to move it.
            config.cell.evacuation = config.board.evacuation;
            Ok(())
        },
        show: |config| show_duration(config.board.evacuation),
    },
    time!("crash_wait", board.crash_wait),
    time!("longest_crash_wait", board.longest_crash_wait),
    time!("crash_reset", board.crash_reset),
    Key {
        name: "in_flight_starts",
        set: |config, text| {
            let most = text.parse().ok().filter(|&most: &u32| most > 0);
            config.board.in_flight_starts = match text {
                "none" => None,
                _ => Some(most.ok_or("a number above 0, or none")?),
            };
            Ok(())
        },
        show: |config| {
            config.board.in_flight_starts.map_or_else(|| "none".to_owned(), |most| most.to_string())
        },
    },
    time!("cell_poll", cell.poll_every),
    time!("cell_poll_evacuating", cell.evacuating_poll_every),
    time!("reservation_expiry", cell.reservation),
    time!("stop_grace", cell.stop_grace),
];

const STORES: &str = "mem:, file:DIR, etcd://HOST:PORT or postgres://USER@HOST/DATABASE";

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
        let mut config = Self {
            state_dir_is_exposed: own.is_none(),
            flags: flags
                .into_iter()
                .filter_map(|(flag, path)| Some((flag, path?.to_owned())))
                .collect(),
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
            cell: CellSettings::default(),
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
