//! The authority that vouches for the hosts and cells of a cluster. It follows from the cluster's key alone: whoever has
//! the key has the same authority, and nothing of it lies in a store.

use std::fmt;
use std::time::Duration;

use kapell_api::identity::{self, Subject};
use kapell_core::board::CellId;
use kapell_core::seams::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer,
    DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
    SerialNumber, date_time_ymd,
};
use time::OffsetDateTime;

use super::key::ClusterKey;

/// What stands before the seed of an Ed25519 key in its usual form (RFC 8410).
const ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// How far clocks may differ.
const SKEW: Duration = Duration::from_secs(5 * 60);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("the cluster key cannot be used")]
    Key,
    #[error("the request is no certificate signing request in PEM, signed by its key")]
    Request(#[source] rcgen::Error),
    #[error("a certificate could not be made")]
    Certificate(#[from] rcgen::Error),
}

/// Vouches for hosts and cells.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority(secret)")
    }
}

/// A certificate with the authority's behind it, and its key, in PEM.
pub struct Certified {
    pub chain: String,
    pub key: String,
}

impl fmt::Debug for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certified(secret)")
    }
}

impl Authority {
    pub fn new(key: &ClusterKey) -> Result<Self, AuthorityError> {
        let seed = key.derive("authority").ok_or(AuthorityError::Key)?;
        let pair = KeyPair::try_from([&ED25519[..], &seed].concat())?;
        let fingerprint = key.fingerprint();
        let mut params = CertificateParams::new([])?;
        // Nothing here is drawn, and no clock is asked: the same key gives the same certificate, byte by byte.
        params.serial_number = Some(SerialNumber::from_slice(&fingerprint.as_bytes()[..16]));
        params.distinguished_name = name(&format!("kapell cluster {fingerprint}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params.not_before, params.not_after) =
            (date_time_ymd(2020, 1, 1), date_time_ymd(2120, 1, 1));
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, pair)? })
    }

    /// Its certificate, which anybody may have.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// What it is pinned by.
    pub fn sum(&self) -> [u8; 32] {
        identity::sum(self.issuer.der())
    }

    /// Makes a host's key and certificate. `names` are those that clients may call it by.
    pub fn host(
        &self,
        names: &[String],
        now: Timestamp,
        life: Duration,
    ) -> Result<Certified, AuthorityError> {
        let mut params = Self::params(&Subject::Host, now, life, names)?;
        params.distinguished_name = name("kapell host");
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Certified { chain: certificate.pem() + &self.pem(), key: key.serialize_pem() })
    }

    /// Vouches for a cell. Its certificate names no address: nobody takes it for a host.
    pub fn cell(
        &self,
        id: &CellId,
        csr: &str,
        now: Timestamp,
        life: Duration,
    ) -> Result<String, AuthorityError> {
        let request =
            CertificateSigningRequestParams::from_pem(csr).map_err(AuthorityError::Request)?;
        let mut params = Self::params(&Subject::Cell(id.clone()), now, life, &[])?;
        params.distinguished_name = name(&format!("kapell cell {id}"));
        let certificate = params.signed_by(&request.public_key, &self.issuer)?;
        Ok(certificate.pem() + &self.pem())
    }

    fn params(
        subject: &Subject,
        now: Timestamp,
        life: Duration,
        names: &[String],
    ) -> Result<CertificateParams, AuthorityError> {
        let mut params = CertificateParams::new(names)?;
        let uri = subject.uri().try_into()?;
        params.subject_alt_names.push(SanType::URI(uri));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (date(now.before(SKEW)), date(now.after(life)));
        Ok(params)
    }
}

/// A new key, and the request to vouch for it, in PEM.
pub fn request() -> Result<(String, String), AuthorityError> {
    let key = KeyPair::generate()?;
    let csr = CertificateParams::new([])?.serialize_request(&key)?;
    Ok((key.serialize_pem(), csr.pem()?))
}

fn name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

fn date(at: Timestamp) -> OffsetDateTime {
    let seconds = at.0.div_euclid(1000);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or_else(|_| date_time_ymd(2120, 1, 1))
}
