//! Whether somebody listens on a port of this machine, and answers.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use async_trait::async_trait;
use kapell_api::client::Egress;
use tokio::net::TcpStream;

/// Asks what containers of this machine listen on. Whoever asks gives up by dropping the future.
#[async_trait]
pub trait Probes: fmt::Debug + Send + Sync {
    async fn tcp(&self, port: u16) -> Result<(), String>;

    /// GETs a path; good is what answers with 2xx or 3xx.
    async fn http(&self, port: u16, path: &str) -> Result<(), String>;
}

/// Asks by the loopback interface.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalProbes;

/// Longer than anybody waits.
const LONG: Duration = Duration::from_secs(600);

#[async_trait]
impl Probes for LocalProbes {
    async fn tcp(&self, port: u16) -> Result<(), String> {
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
        connected.map(drop).map_err(|error| format!("cannot connect to port {port}: {error}"))
    }

    async fn http(&self, port: u16, path: &str) -> Result<(), String> {
        let url = format!("http://127.0.0.1:{port}/{}", path.trim_start_matches('/'));
        let egress = Egress { ca: None, limit: LONG };
        let received = egress.get(&url).await.map_err(|error| super::transfers::told(&error))?;
        let status = received.status();
        if status.is_success() || status.is_redirection() {
            return Ok(());
        }
        Err(format!("{url} answers with {status}"))
    }
}
