//! The certificates of a host: made by itself, since it has the cluster's key, and made anew in time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kapell_api::identity::{Identity, Trust};
use kapell_core::causes::chain;
use kapell_core::seams::Clock as _;
use kapell_node::access::{Authority, ClusterKey};
use kapell_node::link::HttpCells;
use kapell_node::system::SystemClock;

use crate::cli;
use crate::config::Config;
use crate::http::{Peers, Vouching};

/// After a certificate could not be made.
const PAUSE: Duration = Duration::from_secs(1);

/// What a host of a cluster with certificates of its own is.
#[derive(Debug, Clone)]
pub(super) struct Membership {
    pub(super) peers: Peers,
    pub(super) vouching: Vouching,
    names: Vec<String>,
}

impl Membership {
    /// None if it is reached from this machine only, or was given certificates.
    pub(super) fn of(
        args: &cli::Host,
        config: &Config,
        key: &ClusterKey,
    ) -> anyhow::Result<Option<Self>> {
        let secure = !args.listen.ip().is_loopback() || args.advertise.starts_with("https://");
        if !secure || args.access.tls_cert.is_some() {
            return Ok(None);
        }
        let authority = Authority::new(key)?;
        let life = config.certificate_life;
        let names = names(args);
        let made = authority.host(&names, SystemClock.wall(), life)?;
        let identity = Identity::new(&made.chain, &made.key)?;
        let trust = Trust::new(&authority.pem())?;
        publish(&config.state_dir.join("ca.pem"), &authority.pem())?;
        let vouching = Vouching { authority: Arc::new(authority), life };
        Ok(Some(Self { peers: Peers { trust, identity }, vouching, names }))
    }

    /// Makes the next certificate in time, for as long as it is run.
    pub(super) async fn keep(self, cells: Arc<HttpCells>) {
        let Vouching { authority, life } = &self.vouching;
        let mut wait = *life * 2 / 3;
        loop {
            tokio::time::sleep(wait).await;
            let made = authority.host(&self.names, SystemClock.wall(), *life);
            let replaced = made
                .map_err(anyhow::Error::from)
                .and_then(|made| Ok(self.peers.identity.replace(&made.chain, &made.key)?));
            wait = match replaced {
                Ok(()) => {
                    cells.reconnect();
                    tracing::info!("this host has its next certificate");
                    *life * 2 / 3
                }
                Err(error) => {
                    let error = chain(&*error);
                    tracing::warn!(error, "no next certificate for this host; trying again");
                    PAUSE
                }
            };
        }
    }
}

/// What clients may call this host by.
fn names(args: &cli::Host) -> Vec<String> {
    let mut names: Vec<String> =
        ["localhost", "127.0.0.1", "::1"].into_iter().map(str::to_owned).collect();
    if !args.listen.ip().is_unspecified() {
        names.push(args.listen.ip().to_string());
    }
    for place in std::iter::once(&args.advertise).chain(&args.access.allow_host) {
        let place = place.rsplit_once("://").map_or(place.as_str(), |(_, rest)| rest);
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let host = match place.rsplit_once(':') {
            Some((host, port)) if is_port(port) && !host.ends_with(':') => host,
            Some(_) | None => place,
        };
        names.push(host.trim_matches(['[', ']']).to_owned());
    }
    names.sort();
    names.dedup();
    names
}

/// Puts the authority's certificate where clients can be told to find it. It is no secret.
fn publish(path: &Path, pem: &str) -> anyhow::Result<()> {
    let failed = || format!("cannot write `{}`", path.display());
    if fs::read_to_string(path).is_ok_and(|there| there == pem) {
        return Ok(());
    }
    let draft = path.with_extension(format!("draft.{}", std::process::id()));
    let written = fs::write(&draft, pem)
        .and_then(|()| fs::set_permissions(&draft, fs::Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&draft, path));
    written.with_context(failed)
}
