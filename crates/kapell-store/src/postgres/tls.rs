//! Who a server must prove to be.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Where systems keep the authorities that they trust; the first that is there counts.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// No TLS.
    Plain,
    /// Nobody can listen in, but whoever answers is taken for the server.
    Anyone,
    /// The server shows a certificate for its name by one of these authorities, or by one that
    /// the system trusts.
    Roots(Option<PathBuf>),
}

pub(super) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Plain | Trust::Anyone => Arc::new(Unverified(Arc::clone(&provider))),
        Trust::Roots(file) => {
            let roots = Arc::new(roots(file.clone())?);
            WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| error.to_string())?
        }
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<PathBuf>) -> Result<RootCertStore, String> {
    let system = || BUNDLES.map(PathBuf::from).into_iter().find(|path| path.is_file());
    let path = file.or_else(system).ok_or("this system has no certificates; give sslrootcert")?;
    let unreadable = |why: &dyn std::fmt::Display| {
        format!("certificates in `{}` cannot be read: {why}", path.display())
    };
    let found = CertificateDer::pem_file_iter(&path).map_err(|error| unreadable(&error))?;
    let found: Result<Vec<_>, _> = found.collect();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.map_err(|error| unreadable(&error))?);
    if added == 0 { Err(unreadable(&"there are none")) } else { Ok(roots) }
}

#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
