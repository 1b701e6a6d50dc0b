//! What the suite for all drivers does not ask, on a real server.

mod churn;
mod listing;
mod opening;
mod rest;
mod url;
mod wire;

use super::Cassandra;
use crate::error::Error;
use crate::open::How;
use crate::testing::{drawn, how, skip};

/// A server, and a keyspace that nobody else knows of.
struct Place {
    /// `user:password`
    login: String,
    at: String,
    keyspace: String,
}

impl Place {
    fn named(test: &str) -> Option<Self> {
        let Ok(url) = std::env::var("KAPELL_TEST_CASSANDRA") else {
            skip(test, "KAPELL_TEST_CASSANDRA names no server");
            return None;
        };
        let (login, at) = url.strip_prefix("cassandra://")?.rsplit_once('@')?;
        let keyspace = format!("tests_{:016x}", drawn());
        Some(Self { login: login.to_owned(), at: at.to_owned(), keyspace })
    }

    fn url(&self, login: &str, options: &str) -> String {
        format!("cassandra://{login}@{}/{}?{options}", self.at, self.keyspace)
    }

    async fn open(&self, options: &str) -> Result<Cassandra, Error> {
        self.open_as(&self.login, options, true).await
    }

    async fn open_as(&self, login: &str, options: &str, create: bool) -> Result<Cassandra, Error> {
        Cassandra::open(&self.url(login, options), &How { create, ..how() }).await
    }
}
