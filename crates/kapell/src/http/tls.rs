//! Certificates: ours, and whose we trust.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

use super::TlsFiles;

/// What is wrong with a certificate or a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read a {what} from `{path}`")]
    Unreadable {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("`{path}` has no {what} in PEM format")]
    Empty { what: &'static str, path: PathBuf },
    #[error("the certificate in `{cert}` and the key in `{key}` cannot be used together")]
    Pair {
        cert: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error("`{path}` has a certificate that cannot be trusted")]
    Anchor {
        path: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

const CERTIFICATE: &str = "certificate";
const KEY: &str = "private key";

/// How we show who we are.
pub(super) fn server(files: &TlsFiles) -> Result<Arc<ServerConfig>, Error> {
    let chain = certificates(&files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(bad(KEY, &files.key))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(Error::Setup)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|source| Error::Pair {
            cert: files.cert.clone(),
            key: files.key.clone(),
            source,
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// How we know another host: by the authority in `ca`, else by our own certificate and those that signed it.
pub(super) fn client(
    own: Option<&TlsFiles>,
    ca: Option<&Path>,
) -> Result<Option<Arc<ClientConfig>>, Error> {
    let Some(path) = ca.or(own.map(|files| files.cert.as_path())) else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|source| Error::Anchor { path: path.to_owned(), source })?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(Error::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(Arc::new(config)))
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let found = read().map_err(bad(CERTIFICATE, path))?;
    if found.is_empty() {
        return Err(Error::Empty { what: CERTIFICATE, path: path.to_owned() });
    }
    Ok(found)
}

fn bad(what: &'static str, path: &Path) -> impl FnOnce(pem::Error) -> Error {
    let path = path.to_owned();
    move |source| {
        if matches!(source, pem::Error::NoItemsFound) {
            return Error::Empty { what, path };
        }
        Error::Unreadable { what, path, source }
    }
}
