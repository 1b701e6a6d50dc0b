//! A cell's membership in a cluster: the certificate it got by joining, and the next ones.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use kapell_api::client::{Client, Options, Token};
use kapell_api::identity::{self, Identity, Subject, Trust};
use kapell_api::v1::CellCertificate;
use kapell_core::board::CellId;
use kapell_core::causes::chain;
use kapell_node::access::request;
use kapell_node::link::HttpBoard;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};

/// The key, the certificate with what vouches for it, and the authority, one behind the other.
const FILE: &str = "certificate.pem";
const END_OF_KEY: &str = "-----END PRIVATE KEY-----\n";
/// After a certificate could not be had.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What proves that a cell belongs to a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    id: CellId,
    path: PathBuf,
    pub(crate) trust: Trust,
    pub(crate) identity: Identity,
}

impl Member {
    /// Whether a directory is that of a cell that joined.
    pub(crate) fn is_at(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// Takes up what lies in the cell's directory, or joins by a token.
    pub(crate) async fn enter(
        dir: &Path,
        id: &CellId,
        hosts: &str,
        join: Option<&str>,
    ) -> anyhow::Result<Option<Self>> {
        let path = dir.join(FILE);
        match fs::read_to_string(&path) {
            Ok(text) => match (Self::read(&path, id, &text), join) {
                (Ok(member), _) => return Ok(Some(member)),
                (Err(error), None) => {
                    return Err(error.context(format!(
                        "`{}` cannot be used: join again by --join TOKEN",
                        path.display()
                    )));
                }
                // It has a token for another one.
                (Err(_), Some(_)) => {}
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        }
        let Some(join) = join else { return Ok(None) };
        Self::join(&path, id, hosts, join).await.map(Some)
    }

    fn read(path: &Path, id: &CellId, text: &str) -> anyhow::Result<Self> {
        let (key, chain) = text.split_once(END_OF_KEY).context("it has no key")?;
        let certificates = CertificateDer::pem_slice_iter(chain.as_bytes());
        let certificates: Vec<_> =
            certificates.collect::<Result<_, _>>().ok().context("it has no certificates")?;
        let ca = chain.rfind("-----BEGIN CERTIFICATE-----").map(|at| &chain[at..]);
        let trust = Trust::new(ca.context("it has no certificate")?)?;
        match trust.judge(&certificates, UnixTime::now())? {
            Subject::Cell(is) if is == *id => {}
            other @ (Subject::Host | Subject::Cell(_)) => bail!("it is the certificate of {other}"),
        }
        let identity = Identity::new(chain, &format!("{key}{END_OF_KEY}"))?;
        Ok(Self { id: id.clone(), path: path.to_owned(), trust, identity })
    }

    async fn join(path: &Path, id: &CellId, hosts: &str, join: &str) -> anyhow::Result<Self> {
        let (token, sum) = parse(join).context(
            "--join needs a token made by `kapell token create --role cell-join`, the whole of it",
        )?;
        if hosts.split(',').any(|url| !url.trim().starts_with("https://")) {
            bail!("a cell joins over TLS: give --url https://HOST:PORT");
        }
        let options = Options {
            token: Some(Token::new(token)),
            tls: Some(identity::pinned(sum)?),
            ..Options::default()
        };
        let client = Client::new(hosts, options)?;
        let (key, csr) = request()?;
        let given = client.join(id, &csr).await.context("the cell may not join")?;
        let text = keep(path, &key, &given)?;
        let member = Self::read(path, id, &text)?;
        tracing::info!(cell = %id, "joined");
        Ok(member)
    }

    /// Gets the next certificate in time, for as long as it is run. Work is not touched, nor are connections in use.
    pub(crate) async fn keep(self, board: HttpBoard) {
        // The one that lies here may be of any age.
        let mut wait = Duration::ZERO;
        let mut pause = PAUSE;
        loop {
            tokio::time::sleep(wait).await;
            wait = match self.renew(&board).await {
                Ok(next) => {
                    tracing::info!(cell = %self.id, "the cell has its next certificate");
                    pause = PAUSE;
                    next
                }
                Err(error) => {
                    let error = chain(&*error);
                    tracing::warn!(error, "no next certificate for this cell; trying again");
                    let now = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    now
                }
            };
        }
    }

    /// Tells when to do so again.
    async fn renew(&self, board: &HttpBoard) -> anyhow::Result<Duration> {
        let (key, csr) = request()?;
        let given = board.client().renew(&self.id, &csr).await?;
        let text = keep(&self.path, &key, &given)?;
        // What was given must be what we asked for, before we show it to anybody.
        Self::read(&self.path, &self.id, &text)?;
        self.identity.replace(&given.certificate, &key)?;
        board.reconnect()?;
        Ok(Duration::from_millis(given.renew_in_ms))
    }
}

/// The token itself, and by what the hosts are known.
fn parse(join: &str) -> Option<(&str, [u8; 32])> {
    let (token, sum) = join.trim().rsplit_once('.')?;
    let mut bytes = [0; 32];
    if sum.len() != 64 || !sum.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&sum[2 * at..2 * at + 2], 16).ok()?;
    }
    Some((token, bytes))
}

/// Puts the key and the certificate into place, whole. The answer's chain ends with the authority.
fn keep(path: &Path, key: &str, given: &CellCertificate) -> anyhow::Result<String> {
    let text = format!("{key}{}", given.certificate);
    let draft = path.with_extension("draft");
    let write = || -> io::Result<()> {
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(text)
}
