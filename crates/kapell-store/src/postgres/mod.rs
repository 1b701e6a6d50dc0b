//! `postgres://`: a store in a schema of a PostgreSQL database, version 12 or later.
//!
//! The URL is the usual one. Of its own it understands
//! - `schema`: where the tables are, `kapell` if it does not say. Several stores share a database so.
//! - `sslmode`: `verify-full` (the server proves its name), `require` (encrypted, but anyone may
//!   answer) or `disable`. Without it: `verify-full`, or `disable` if the server is on this machine.
//! - `sslrootcert`: a file with the authorities to believe instead of the system's.
//! - `password_file`: a file with the password, which then shows in no list of processes.
//! - `pool`: how many connections commits and scans may use at a time; elections and watches have
//!   up to three more.
//!
//! Sessions have settings and prepared statements, so a pooler in between must pool sessions.
//!
//! Times to live are counted by the server's wall clock. Set forward, it ends leases early: then
//! two may believe to hold a seat, and the fences decide whose commits land.

mod entries;
mod fault;
mod layout;
mod listen;
mod pool;
mod query;
mod records;
mod session;
mod target;
#[cfg(test)]
mod tests;
mod tls;

use std::fmt;

use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use crate::error::Error;
use crate::open::How;
use crate::store::Store;

use self::listen::Ear;
use self::pool::Pool;
use self::query::Query;
use self::session::Door;
use self::target::Target;

/// A store in PostgreSQL. Calls may be dropped at any time: what they left behind on the server
/// ends by itself within the timeout.
pub struct Postgres {
    pool: Pool,
    ear: Ear,
}

impl Postgres {
    /// Connects, each host tried once, and makes sure that the store is there.
    pub async fn open(url: &str, how: &How) -> Result<Self, Error> {
        let door = Door::new(Target::parse(url, how.timeout)?, how.timeout)?;
        let raw = door.connect(session::drive).await?;
        let ready = async {
            layout::check(&door, &raw, how.create).await?;
            door.prepare(raw).await
        };
        let first = door.within("open", ready).await?;
        Ok(Self { pool: Pool::new(door, first), ear: Ear::default() })
    }

    fn column<T: FromSqlOwned>(&self, row: &Row, index: usize, query: Query) -> Result<T, Error> {
        row.try_get(index).map_err(|error| self.pool.door().fault(error, query.call()))
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.name()).finish()
    }
}

impl Store for Postgres {
    fn name(&self) -> &str {
        &self.pool.door().target.name
    }
}

/// As the server counts, which ends at half of what fits here.
fn number(what: &'static str, is: u64) -> Result<i64, Error> {
    i64::try_from(is).map_err(|_| Error::AboveLimit {
        what,
        is: usize::try_from(is).unwrap_or(usize::MAX),
        limit: usize::try_from(i64::MAX).unwrap_or(usize::MAX),
    })
}
