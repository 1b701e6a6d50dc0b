//! Who the nodes must prove to be, and who we are to them.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// What every connection is made with.
#[derive(Debug, Clone)]
pub(super) struct Tls(pub(super) Arc<ClientConfig>);

impl Tls {
    /// Trusts the authorities in `ca`; shows `own`, a certificate and its key, if there is one. Nodes bear their address
    /// as a name, or all of them `domain`.
    pub(super) fn of_files(
        ca: &str,
        own: Option<(&str, &str)>,
        domain: Option<&str>,
    ) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in certificates("ca", ca)? {
            roots.add(certificate).map_err(|error| format!("ca `{ca}`: {error}"))?;
        }
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| format!("ca `{ca}`: {error}"))?;
        let name = domain.map(|name| {
            ServerName::try_from(name.to_owned())
                .map_err(|error| format!("domain `{name}`: {error}"))
        });
        let verifier = Named { name: name.transpose()?, verifier };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| told(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match own {
            None => config.with_no_client_auth(),
            Some((cert, key)) => {
                let secret = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("key `{key}`: {error}"))?;
                config
                    .with_client_auth_cert(certificates("cert", cert)?, secret)
                    .map_err(|error| format!("cert `{cert}` and key `{key}`: {error}"))?
            }
        };
        Ok(Self(Arc::new(config)))
    }
}

fn certificates(what: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{what} `{path}`: {why}");
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
    if found.is_empty() { Err(wrong(&"there are no certificates in it")) } else { Ok(found) }
}

/// Looks for another name than the address that was called.
#[derive(Debug)]
struct Named {
    name: Option<ServerName<'static>>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let name = self.name.as_ref().unwrap_or(server_name);
        self.verifier.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
