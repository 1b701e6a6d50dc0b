use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
use crate::etcd::Etcd;
use crate::file::{FileStore, Holder};
use crate::mem::Mem;
use crate::open::How;
use crate::postgres::Postgres;
use crate::store::Store;

/// Where a store is, as its user writes it.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    Mem,
    File(PathBuf),
    Etcd(String),
    Postgres(String),
}

const KNOWN: &str = "mem:, file:DIR, etcd://HOST:PORT, postgres://USER@HOST/DATABASE";

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
            ("etcd" | "etcds", _) => Ok(Self::Etcd(text.to_owned())),
            ("postgres" | "postgresql", _) => Ok(Self::Postgres(text.to_owned())),
            ("", _) => Err(Error::BadUrl {
                url: text.to_owned(),
                why: format!("it has no scheme; known are {KNOWN}"),
            }),
            (unknown, _) => refuse(format!("unknown scheme `{unknown}`; known are {KNOWN}")),
        }
    }
}

impl Location {
    /// Opens the store, on behalf of `holder` where only one process can have it open.
    pub async fn open(&self, holder: &Holder, how: &How) -> Result<Arc<dyn Store>, Error> {
        Ok(match self {
            Self::Mem => Arc::new(Mem::new(Arc::clone(&how.clock))),
            Self::File(dir) => Arc::new(FileStore::open(dir, holder, how)?),
            Self::Etcd(url) => Arc::new(Etcd::open(url, how).await?),
            Self::Postgres(url) => Arc::new(Postgres::open(url, how).await?),
        })
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self {
            Self::Mem => "mem:",
            Self::File(dir) => return write!(f, "file:{}", dir.display()),
            Self::Etcd(_) => "etcd:…",
            Self::Postgres(_) => "postgres:…",
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
        assert!(matches!(parse("etcd://h:1"), Ok(Location::Etcd(_))));
        assert!(matches!(parse("postgresql://h/d"), Ok(Location::Postgres(_))));
        assert_eq!(
            parse("redis://user:secret@h").unwrap_err(),
            format!("`redis:…` names no store: unknown scheme `redis`; known are {KNOWN}")
        );
        assert_eq!(
            parse("/var/lib/k").unwrap_err(),
            format!("`/var/lib/k` names no store: it has no scheme; known are {KNOWN}")
        );
        assert_eq!(parse("file:").unwrap_err(), "`file:…` names no store: write `file:DIR`");
    }

    #[test]
    fn secrets_are_not_shown() {
        let location: Location = "postgres://u:secret@h/d".parse().unwrap();
        assert_eq!(format!("{location:?}"), "postgres:…");
    }
}
