//! Whose certificates are trusted.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::super::error::Error;

/// Where systems keep the authorities that they trust.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

pub(super) fn client(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let path = ca.unwrap_or(Path::new(SYSTEM_ROOTS));
    let failed = |why: String| Error::Io {
        what: format!(
            "cannot trust the certificates in `{}`: set a file of authorities for registries",
            path.display()
        ),
        source: io::Error::other(why),
    };
    let mut roots = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    for certificate in all {
        // Of the system's many, one that we cannot use is no reason to use none.
        let _skipped = roots.add(certificate.map_err(|error| failed(error.to_string()))?);
    }
    if roots.is_empty() {
        return Err(failed("there is none in it".to_owned()));
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
