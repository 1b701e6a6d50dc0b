//! Whose certificates are trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore};

/// Where systems keep the authorities that they trust.
pub const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read certificates from `{path}`")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("`{path}` has no certificate in PEM format that can be trusted")]
    Empty { path: PathBuf },
    #[error("nobody is known to vouch for it: name a file of certificates by --ca or KAPELL_CA")]
    NoAuthority,
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// Trusts the authorities in `ca`, or else those of the system.
pub(super) fn client(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let system = Path::new(SYSTEM_ROOTS);
    let path = match ca {
        Some(path) => path,
        None if system.is_file() => system,
        None => return Err(Error::NoAuthority),
    };
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        // Of the system's many, one that we cannot use is no reason to use none.
        let _skipped = roots.add(certificate.map_err(unreadable)?);
    }
    if roots.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Error::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
