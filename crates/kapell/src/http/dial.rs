//! Connections to other hosts and to cells.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::place::{Place, Scheme};
use super::server::Io;

/// Where somebody is reached.
#[derive(Debug)]
pub(super) struct Target {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Target {
    /// Refuses what would show the token to others.
    pub(super) fn of(place: Place) -> Result<Self, &'static str> {
        let usual = if place.is_loopback() { Scheme::Http } else { Scheme::Https };
        let scheme = place.scheme.unwrap_or(usual);
        if scheme == Scheme::Http && !place.is_loopback() {
            return Err("the token is not sent to another machine without TLS");
        }
        let port = place.port.unwrap_or_else(|| scheme.port());
        Ok(Self { scheme, host: place.host, port })
    }

    pub(super) fn is_secure(&self) -> bool {
        self.scheme == Scheme::Https
    }

    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

pub(super) async fn dial(
    trust: Option<&Arc<ClientConfig>>,
    target: &Target,
) -> io::Result<Box<dyn Io>> {
    let tls = match (target.scheme, trust) {
        (Scheme::Http, _) => None,
        (Scheme::Https, Some(tls)) => Some(TlsConnector::from(Arc::clone(tls))),
        (Scheme::Https, None) => {
            return Err(io::Error::other(
                "no authority is known that could vouch for it: give --tls-ca FILE",
            ));
        }
    };
    let stream = TcpStream::connect((target.host.as_str(), target.port)).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let name = ServerName::try_from(target.host.clone()).map_err(io::Error::other)?;
    Ok(Box::new(tls.connect(name, stream).await?))
}
