//! Certificates of a cluster: what they say of their holder, how they are shown, and how others are known by them.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use kapell_core::board::CellId;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring as provider};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore,
    ServerConfig, SignatureScheme,
};

const HOST: &str = "kapell://host";
const CELL: &str = "kapell://cell/";

/// Why a certificate or a key of ours cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no certificate or key in PEM format")]
    Pem,
    #[error("the certificate cannot be used")]
    Unusable(#[from] rustls::Error),
}

/// Whom a certificate is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Host,
    Cell(CellId),
}

impl Subject {
    /// As it stands in a certificate, among the alternative names.
    pub fn uri(&self) -> String {
        match self {
            Self::Host => HOST.to_owned(),
            Self::Cell(id) => format!("{CELL}{id}"),
        }
    }

    fn parse(uri: &str) -> Option<Self> {
        if uri == HOST {
            return Some(Self::Host);
        }
        let id = CellId::from(uri.strip_prefix(CELL)?);
        id.is_valid().then_some(Self::Cell(id))
    }

    /// The one that a certificate names; none if it names several, or none of ours.
    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        let mut named = certificate.valid_uri_names().map(Self::parse);
        let first = named.next()?;
        if named.next().is_some() { None } else { first }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("a host"),
            Self::Cell(id) => write!(f, "cell `{id}`"),
        }
    }
}

/// Why a certificate says nothing to us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error("the certificate has expired: have the cell join again with a new token")]
    Expired,
    #[error("the certificate counts later: the clocks of the two machines differ")]
    Early,
    #[error("the certificate is not of this cluster")]
    Foreign,
    #[error("the certificate is of no host and no cell")]
    Nobody,
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
}

impl Distrust {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Expired => "certificate_expired",
            Self::Early => "certificate_early",
            Self::Foreign => "certificate_foreign",
            Self::Nobody => "certificate_of_nobody",
            Self::Unusable(_) => "certificate_unusable",
        }
    }

    fn of(error: &rustls::Error) -> Self {
        use CertificateError as C;
        if let rustls::Error::InvalidCertificate(error) = error {
            if matches!(error, C::Expired | C::ExpiredContext { .. }) {
                return Self::Expired;
            }
            if matches!(error, C::NotValidYet | C::NotValidYetContext { .. }) {
                return Self::Early;
            }
            if matches!(error, C::UnknownIssuer | C::BadSignature) {
                return Self::Foreign;
            }
        }
        Self::Unusable(error.to_string())
    }
}

/// A certificate of ours and its key. It can be replaced while connections are made; all clones are the same.
#[derive(Debug, Clone)]
pub struct Identity(Arc<RwLock<Arc<CertifiedKey>>>);

impl Identity {
    /// Takes a certificate, those that vouch for it, and its key, in PEM.
    pub fn new(chain: &str, key: &str) -> Result<Self, Error> {
        Ok(Self(Arc::new(RwLock::new(certified(chain, key)?))))
    }

    /// From now on, connections are made with this one.
    pub fn replace(&self, chain: &str, key: &str) -> Result<(), Error> {
        let next = certified(chain, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn certified(chain: &str, key: &str) -> Result<Arc<CertifiedKey>, Error> {
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|_| Error::Pem)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| Error::Pem)?;
    if chain.is_empty() {
        return Err(Error::Pem);
    }
    Ok(Arc::new(CertifiedKey::from_der(chain, key, &provider::default_provider())?))
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// The authority of a cluster, and what follows from trusting it alone.
#[derive(Debug, Clone)]
pub struct Trust {
    roots: Arc<RootCertStore>,
    clients: Arc<dyn ClientCertVerifier>,
}

impl Trust {
    /// Takes the authority's certificate in PEM.
    pub fn new(ca: &str) -> Result<Self, Error> {
        Self::of(CertificateDer::from_pem_slice(ca.as_bytes()).map_err(|_| Error::Pem)?)
    }

    fn of(ca: CertificateDer<'static>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(ca)?;
        let roots = Arc::new(roots);
        let crypto = Arc::new(provider::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), crypto);
        let clients = clients.build().map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { roots, clients })
    }

    /// Who shows these certificates, the own one first.
    pub fn judge(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<Subject, Distrust> {
        let (own, between) = chain.split_first().ok_or(Distrust::Nobody)?;
        let verified = self.clients.verify_client_cert(own, between, now);
        verified.map_err(|error| Distrust::of(&error))?;
        Subject::of(own).ok_or(Distrust::Nobody)
    }

    /// For connections to one who must be `expected`, whatever the address. We show who we are, if we are somebody.
    pub fn client(
        &self,
        expected: Subject,
        ours: Option<&Identity>,
    ) -> Result<Arc<ClientConfig>, Error> {
        let roots = Arc::clone(&self.roots);
        config(Known { anchor: Anchor::Roots(roots), expected, algorithms: algorithms() }, ours)
    }

    /// For a listener. Whoever shows no certificate is let in, and so is whoever shows one that says nothing: what
    /// that means is told them by an answer, after [`Trust::judge`].
    pub fn server(&self, ours: &Identity) -> Result<Arc<ServerConfig>, Error> {
        let mut config = ServerConfig::builder_with_provider(crypto())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(Lenient(Arc::clone(&self.clients))))
            .with_cert_resolver(Arc::new(ours.clone()));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// For a connection to a host of the cluster whose authority has this SHA-256 sum.
pub fn pinned(sum: [u8; 32]) -> Result<Arc<ClientConfig>, Error> {
    let (anchor, expected) = (Anchor::Sum(sum), Subject::Host);
    config(Known { anchor, expected, algorithms: algorithms() }, None)
}

/// The sum that an authority is pinned by.
pub fn sum(certificate: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, certificate).as_ref());
    sum
}

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(provider::default_provider())
}

fn algorithms() -> WebPkiSupportedAlgorithms {
    provider::default_provider().signature_verification_algorithms
}

fn config(known: Known, ours: Option<&Identity>) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_provider(crypto())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(known));
    let mut config = match ours {
        Some(ours) => builder.with_client_cert_resolver(Arc::new(ours.clone())),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A session that is taken up again would be that of a certificate long replaced.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

#[derive(Debug)]
enum Anchor {
    Roots(Arc<RootCertStore>),
    /// The authority comes along, and this is its sum.
    Sum([u8; 32]),
}

/// Knows others by whom their certificate names, not by where they are.
#[derive(Debug)]
struct Known {
    anchor: Anchor,
    expected: Subject,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Known {
    fn roots(&self, chain: &[CertificateDer<'_>]) -> Result<Arc<RootCertStore>, rustls::Error> {
        match &self.anchor {
            Anchor::Roots(roots) => Ok(Arc::clone(roots)),
            Anchor::Sum(wanted) => {
                let ca = chain.iter().find(|it| sum(it) == *wanted);
                let ca =
                    ca.ok_or(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
                let mut roots = RootCertStore::empty();
                roots.add(ca.clone().into_owned())?;
                Ok(Arc::new(roots))
            }
        }
    }
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let (parsed, roots) = (ParsedCertificate::try_from(own)?, self.roots(between)?);
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, between, now, algorithms)?;
        let subject = Subject::of(own);
        if subject.as_ref() == Some(&self.expected) {
            return Ok(ServerCertVerified::assertion());
        }
        let is = subject.map_or_else(|| "nobody of ours".to_owned(), |it| it.to_string());
        let text = format!("its certificate is that of {is}, not of {}", self.expected);
        Err(rustls::Error::General(text))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Takes any certificate whose key its bearer has: whether it counts is judged later, where there is an answer.
#[derive(Debug)]
struct Lenient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Lenient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
