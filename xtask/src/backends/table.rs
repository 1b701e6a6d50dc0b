use std::ffi::c_int;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::Cache;
use super::cassandra::Cassandra;
use super::dynamodb::DynamoDb;
use super::etcd::Etcd;
use super::kubernetes::Kubernetes;
use super::postgres::Postgres;
use super::registry::Registry;
use crate::error::Result;

/// A server that tests may ask for by name.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    /// Its program's file name: a process that runs another one is not this server.
    pub(crate) program: &'static str,
    /// The signal after which it ends by itself, without waiting for its clients.
    pub(crate) stop: c_int,
    /// The environment variable in which tests find the endpoint.
    pub(crate) variable: &'static str,
    /// The variable with the path of the authority that signed its certificate, if it has one.
    pub(crate) authority: Option<&'static str>,
    /// The variable with the path of its programs, for tests that start one of their own.
    pub(crate) programs: Option<&'static str>,
    pub(crate) recipe: &'static dyn Recipe,
}

/// How one kind of server is had.
pub(crate) trait Recipe: fmt::Debug + Sync {
    /// Makes sure that everything is on this machine; cheap if it is.
    fn install(&self, cache: &Cache) -> Result<()>;

    /// Fills the empty `dir` and says what to run. Nothing but `dir` keeps what the server writes,
    /// and the command line names it.
    fn launch(&self, cache: &Cache, dir: &Path) -> Result<Launch>;

    /// Starts what else belongs to the server, once its own program runs and is on record.
    fn complete(&self, _: &Cache, _: &Path) -> Result<()> {
        Ok(())
    }

    /// The server's program, or the directory if there are several.
    fn programs(&self, cache: &Cache) -> Result<PathBuf>;

    /// Whether the server at `endpoint` does its work.
    fn answers(&self, cache: &Cache, endpoint: &str) -> bool;

    /// Makes users and whatever else only a running server can do; once, after its first answer.
    fn furnish(&self, cache: &Cache, endpoint: &str) -> Result<()>;

    /// Ends what else belongs to the server, and takes back what was changed outside of `dir`. It may be half started, or
    /// long dead.
    fn clear(&self, _dir: &Path) -> Result<()> {
        Ok(())
    }
}

/// A server about to run.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) command: Command,
    pub(crate) endpoint: String,
}

const AUTHORITY: &str = "KAPELL_TEST_CA";

#[rustfmt::skip]
pub(crate) const SERVERS: &[Server] = &[
    Server { name: "etcd",       program: "etcd",            stop: libc::SIGTERM, variable: "KAPELL_TEST_ETCD",       authority: None,            programs: Some("KAPELL_TEST_ETCD_BIN"),       recipe: &Etcd { secured: false } },
    Server { name: "etcd-tls",   program: "etcd",            stop: libc::SIGTERM, variable: "KAPELL_TEST_ETCD_TLS",   authority: Some(AUTHORITY), programs: None,                               recipe: &Etcd { secured: true } },
    Server { name: "postgres",   program: "postgres",        stop: libc::SIGINT,  variable: "KAPELL_TEST_POSTGRES",   authority: Some(AUTHORITY), programs: Some("KAPELL_TEST_POSTGRES_BIN"),   recipe: &Postgres },
    Server { name: "registry",   program: "docker-registry", stop: libc::SIGTERM, variable: "KAPELL_TEST_REGISTRY",   authority: None,            programs: None,                               recipe: &Registry },
    Server { name: "kubernetes", program: "etcd",            stop: libc::SIGKILL, variable: "KAPELL_TEST_KUBERNETES", authority: None,            programs: Some("KAPELL_TEST_KUBERNETES_BIN"), recipe: &Kubernetes },
    Server { name: "cassandra",  program: "tail",            stop: libc::SIGKILL, variable: "KAPELL_TEST_CASSANDRA",  authority: Some(AUTHORITY), programs: Some("KAPELL_TEST_CASSANDRA_DIR"),  recipe: &Cassandra },
    Server { name: "dynamodb",   program: "java",            stop: libc::SIGTERM, variable: "KAPELL_TEST_DYNAMODB",   authority: None,            programs: Some("KAPELL_TEST_DYNAMODB_BIN"),   recipe: &DynamoDb },
];
