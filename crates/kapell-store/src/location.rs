use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "cassandra")]
use crate::cassandra::Cassandra;
#[cfg(feature = "dynamodb")]
use crate::dynamodb::DynamoDb;
use crate::error::Error;
#[cfg(feature = "etcd")]
use crate::etcd::Etcd;
use crate::file::{FileStore, Holder};
use crate::mem::Mem;
use crate::open::How;
#[cfg(feature = "postgres")]
use crate::postgres::Postgres;
use crate::store::Store;

/// Where a store is, as its user writes it.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    Mem,
    File(PathBuf),
    #[cfg(feature = "etcd")]
    Etcd(String),
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "cassandra")]
    Cassandra(String),
    #[cfg(feature = "dynamodb")]
    DynamoDb(String),
}

const KNOWN: &str = "mem:, file:DIR, etcd://HOST:PORT, postgres://USER@HOST/DATABASE, \
     cassandra://HOST/KEYSPACE, dynamodb://REGION/TABLE";

/// Leases are for those who embed the library, and have their records elsewhere.
const ELECTIONS_ONLY: &str = "Leases of Kubernetes hold elections and nothing else, and a host keeps its records in its \
     store; use etcd://HOST:PORT, postgres://USER@HOST/DATABASE, cassandra://HOST/KEYSPACE or dynamodb://REGION/TABLE, \
     in the cluster or beside it";

/// A driver that this program was built without.
#[cfg(not(all(
    feature = "cassandra",
    feature = "dynamodb",
    feature = "etcd",
    feature = "postgres"
)))]
fn left_out(feature: &str) -> String {
    format!("this kapell was built without the Cargo feature `{feature}`; use one that has it")
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // Whatever stands behind the scheme may be a secret.
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        let refuse = |why: String| Err(Error::BadUrl { url: format!("{scheme}:…"), why });
        match (scheme, text.split_once(':').map_or("", |(_, rest)| rest)) {
            ("mem", "") => Ok(Self::Mem),
            ("mem", _) => refuse("write `mem:` and nothing more".to_owned()),
            ("file", "") => refuse("write `file:DIR`".to_owned()),
            ("file", dir) => Ok(Self::File(PathBuf::from(dir.strip_prefix("//").unwrap_or(dir)))),
            #[cfg(feature = "etcd")]
            ("etcd" | "etcds", _) => Ok(Self::Etcd(text.to_owned())),
            #[cfg(not(feature = "etcd"))]
            ("etcd" | "etcds", _) => refuse(left_out("etcd")),
            #[cfg(feature = "postgres")]
            ("postgres" | "postgresql", _) => Ok(Self::Postgres(text.to_owned())),
            #[cfg(not(feature = "postgres"))]
            ("postgres" | "postgresql", _) => refuse(left_out("postgres")),
            #[cfg(feature = "cassandra")]
            ("cassandra", _) => Ok(Self::Cassandra(text.to_owned())),
            #[cfg(not(feature = "cassandra"))]
            ("cassandra", _) => refuse(left_out("cassandra")),
            #[cfg(feature = "dynamodb")]
            ("dynamodb", _) => Ok(Self::DynamoDb(text.to_owned())),
            #[cfg(not(feature = "dynamodb"))]
            ("dynamodb", _) => refuse(left_out("dynamodb")),
            ("kubernetes", _) => refuse(ELECTIONS_ONLY.to_owned()),
            ("", _) => Err(Error::BadUrl {
                url: text.to_owned(),
                why: format!("it has no scheme; known are {KNOWN}"),
            }),
            (unknown, _) => refuse(format!("unknown scheme `{unknown}`; known are {KNOWN}")),
        }
    }
}

/// What etcd grants at least, with its usual election timeout; a slower one is asked.
#[cfg(feature = "etcd")]
const ETCD_SHORTEST: Duration = Duration::from_secs(2);

impl Location {
    /// The shortest time to live that the store can honour, where it has one: only etcd does.
    pub const fn shortest_ttl(&self) -> Option<Duration> {
        match self {
            #[cfg(feature = "etcd")]
            Self::Etcd(_) => Some(ETCD_SHORTEST),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => None,
            #[cfg(feature = "cassandra")]
            Self::Cassandra(_) => None,
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(_) => None,
            Self::Mem | Self::File(_) => None,
        }
    }

    /// Opens the store, on behalf of `holder` where only one process can have it open.
    pub async fn open(&self, holder: &Holder, how: &How) -> Result<Arc<dyn Store>, Error> {
        // What the clients of some drivers carry along is large.
        Ok(match self {
            Self::Mem => Arc::new(Mem::new(Arc::clone(&how.clock))),
            Self::File(dir) => Arc::new(FileStore::open(dir, holder, how)?),
            #[cfg(feature = "etcd")]
            Self::Etcd(url) => Arc::new(Etcd::open(url, how).await?),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Arc::new(Postgres::open(url, how).await?),
            #[cfg(feature = "cassandra")]
            Self::Cassandra(url) => Arc::new(Box::pin(Cassandra::open(url, how)).await?),
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(url) => Arc::new(Box::pin(DynamoDb::open(url, how)).await?),
        })
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self {
            Self::Mem => "mem:",
            Self::File(dir) => return write!(f, "file:{}", dir.display()),
            #[cfg(feature = "etcd")]
            Self::Etcd(_) => "etcd:…",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "postgres:…",
            #[cfg(feature = "cassandra")]
            Self::Cassandra(_) => "cassandra:…",
            #[cfg(feature = "dynamodb")]
            Self::DynamoDb(_) => "dynamodb:…",
        };
        f.write_str(scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_told_by_its_scheme() {
        let parse = |text: &str| text.parse::<Location>().map_err(|error| error.to_string());
        assert_eq!(parse("mem:"), Ok(Location::Mem));
        assert_eq!(parse("file:/var/lib/k"), Ok(Location::File(PathBuf::from("/var/lib/k"))));
        assert_eq!(parse("file:///var/lib/k"), Ok(Location::File(PathBuf::from("/var/lib/k"))));
        assert_eq!(parse("file:here"), Ok(Location::File(PathBuf::from("here"))));
        #[cfg(feature = "etcd")]
        assert!(matches!(parse("etcd://h:1"), Ok(Location::Etcd(_))));
        #[cfg(feature = "postgres")]
        assert!(matches!(parse("postgresql://h/d"), Ok(Location::Postgres(_))));
        #[cfg(feature = "cassandra")]
        assert!(matches!(parse("cassandra://h/k"), Ok(Location::Cassandra(_))));
        #[cfg(feature = "dynamodb")]
        assert!(matches!(parse("dynamodb://r/table"), Ok(Location::DynamoDb(_))));
        assert_eq!(
            parse("redis://user:secret@h").unwrap_err(),
            format!("`redis:…` names no store: unknown scheme `redis`; known are {KNOWN}")
        );
        assert_eq!(
            parse("/var/lib/k").unwrap_err(),
            format!("`/var/lib/k` names no store: it has no scheme; known are {KNOWN}")
        );
        assert_eq!(
            parse("kubernetes://jobs").unwrap_err(),
            format!("`kubernetes:…` names no store: {ELECTIONS_ONLY}")
        );
        assert_eq!(parse("file:").unwrap_err(), "`file:…` names no store: write `file:DIR`");
    }

    #[test]
    fn a_driver_that_is_not_built_in_is_named() {
        let built = [
            ("etcd", cfg!(feature = "etcd")),
            ("postgres", cfg!(feature = "postgres")),
            ("cassandra", cfg!(feature = "cassandra")),
            ("dynamodb", cfg!(feature = "dynamodb")),
        ];
        for (scheme, built) in built {
            let location = format!("{scheme}://u:secret@h/k").parse::<Location>();
            let without = format!(
                "`{scheme}:…` names no store: this kapell was built without the Cargo feature `{scheme}`; use one that has it"
            );
            match location {
                Ok(_) => assert!(built, "{scheme}"),
                Err(error) => assert_eq!((built, error.to_string()), (false, without)),
            }
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn secrets_are_not_shown() {
        let location: Location = "postgres://u:secret@h/d".parse().unwrap();
        assert_eq!(format!("{location:?}"), "postgres:…");
    }
}
