//! Where each driver finds its server.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Embedded,
    Etcd,
    Postgres,
    Cassandra,
    DynamoDb,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Embedded, Self::Etcd, Self::Postgres, Self::Cassandra, Self::DynamoDb];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Etcd => "etcd",
            Self::Postgres => "PostgreSQL",
            Self::Cassandra => "Cassandra",
            Self::DynamoDb => "DynamoDB Local",
        }
    }

    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| format!("{kind:?}").eq_ignore_ascii_case(word))
    }

    /// In seconds, for 250,000 instances. DynamoDB Local is no measure for the service: its goal is that of the slowest.
    pub(crate) const fn take_over_goal(self) -> f64 {
        match self {
            Self::Embedded => 1.0,
            Self::Etcd | Self::Postgres => 3.0,
            Self::Cassandra | Self::DynamoDb => 10.0,
        }
    }

    /// In milliseconds, where the store tells of changes.
    pub(crate) const fn hand_off_goal(self) -> Option<f64> {
        match self {
            Self::Etcd | Self::Postgres => Some(50.0),
            Self::Embedded | Self::Cassandra | Self::DynamoDb => None,
        }
    }

    /// How often a standby asks at most, in a second: its poll, if the store has to be asked, and one look in each quarter of
    /// its lease. On etcd a look is several messages, and there is a lease to be kept ready.
    pub(crate) fn looks(self, lease: std::time::Duration) -> f64 {
        let polls = match self {
            Self::Embedded | Self::Etcd | Self::Postgres => 0.0,
            Self::Cassandra => 1.0 / 0.1,
            Self::DynamoDb => 1.0 / 0.15,
        };
        let each = if self == Self::Etcd { 4.0 } else { 1.0 };
        polls + 4.0 * each / lease.as_secs_f64()
    }

    const fn variable(self) -> Option<&'static str> {
        match self {
            Self::Embedded => None,
            Self::Etcd => Some("KAPELL_TEST_ETCD"),
            Self::Postgres => Some("KAPELL_TEST_POSTGRES"),
            Self::Cassandra => Some("KAPELL_TEST_CASSANDRA"),
            Self::DynamoDb => Some("KAPELL_TEST_DYNAMODB"),
        }
    }
}

/// A server, or a directory for the store that has none.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) server: String,
    dir: PathBuf,
    unique: String,
}

impl Place {
    /// None if its server is not there.
    pub(crate) fn find(kind: Kind, dir: &Path) -> Option<Self> {
        let server = match kind.variable() {
            None => String::new(),
            Some(variable) => std::env::var(variable).ok()?,
        };
        let unique = format!("stores{}", std::process::id());
        Some(Self { kind, server, dir: dir.to_owned(), unique })
    }

    /// A store of this name.
    pub(crate) fn url(&self, name: &str) -> String {
        self.url_at(&self.server, name)
    }

    /// The same, if the server were there.
    pub(crate) fn url_at(&self, server: &str, name: &str) -> String {
        let unique = &self.unique;
        match self.kind {
            Kind::Embedded => format!("file:{}", self.dir.join(name).display()),
            Kind::Etcd => {
                format!("etcd://{}/{unique}{name}", server.trim_start_matches("http://"))
            }
            Kind::Postgres => format!("{server}?schema={unique}{name}"),
            Kind::Cassandra => format!("{server}/{unique}/{name}?replication=1"),
            Kind::DynamoDb => {
                let settings = "credentials=none&create=true&pool=2";
                format!("dynamodb://local/{unique}{name}?endpoint={server}&{settings}")
            }
        }
    }

    /// What distinguishes this run from others on the same server.
    pub(crate) fn unique(&self, name: &str) -> String {
        format!("{}{name}", self.unique)
    }

    /// The server's address alone, and the server's URL with another one in its place.
    pub(crate) fn through(&self, address: std::net::SocketAddr) -> (String, String) {
        let rest = self.server.rsplit_once("://").map_or(self.server.as_str(), |it| it.1);
        let rest = rest.rsplit_once('@').map_or(rest, |it| it.1);
        let own = rest.split(['/', '?', '&']).next().unwrap_or_default().to_owned();
        let other = self.server.replace(&own, &address.to_string());
        (own, other)
    }
}
