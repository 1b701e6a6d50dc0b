//! A client of the service: whom it believes, as whom it asks, by which clock it signs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{self, BehaviorVersion, Region, StalledStreamProtectionConfig};
use aws_smithy_async::time::TimeSource;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use kapell_core::seams::Clock;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::address::{Address, Credentials};
use crate::open::How;

/// What requests are signed with if nobody looks at it.
const PLACEHOLDER: &str = "none";

/// Requests are signed with a time. One that is far off is noticed by the service, which says its own, and corrected.
#[derive(Debug)]
struct Wall(Arc<dyn Clock>);

impl TimeSource for Wall {
    fn now(&self) -> SystemTime {
        let millis = u64::try_from(self.0.wall().0).unwrap_or_default();
        UNIX_EPOCH + Duration::from_millis(millis)
    }
}

/// Nothing is asked yet, but files may be read.
pub(super) async fn connect(address: &Address, how: &How) -> Result<Client, String> {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .tls_context(trust(address)?)
        .build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http)
        .region(Region::new(address.region.clone()))
        .time_source(Wall(Arc::clone(&how.clock)));
    loader = match &address.credentials {
        Credentials::Found => loader,
        Credentials::Profile(name) => loader.profile_name(name),
        Credentials::Nobody => {
            let nobody = (PLACEHOLDER, PLACEHOLDER);
            loader.credentials_provider(config::Credentials::new(
                nobody.0,
                nobody.1,
                None,
                None,
                PLACEHOLDER,
            ))
        }
    };
    if let Some(endpoint) = &address.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    let shared = loader.load().await;
    let limits = TimeoutConfig::builder().connect_timeout(how.timeout).build();
    let own = config::Builder::from(&shared)
        // What is sent again, and when, is decided here, where it is known what the first one may have done.
        .retry_config(RetryConfig::disabled())
        .timeout_config(limits)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build();
    Ok(Client::from_conf(own))
}

fn trust(address: &Address) -> Result<TlsContext, String> {
    let store = match &address.ca {
        None => TrustStore::default(),
        Some(path) => TrustStore::empty().with_pem_certificate(authorities(path)?),
    };
    TlsContext::builder().with_trust_store(store).build().map_err(|error| error.to_string())
}

/// Looks at them first: the client would end the program over a damaged one, and believe nobody if there is none.
fn authorities(path: &Path) -> Result<Vec<u8>, String> {
    let wrong = |why: &dyn std::fmt::Display| {
        format!("the authorities in `{}`: {why}; `ca` wants certificates in PEM", path.display())
    };
    let pem = std::fs::read(path).map_err(|error| wrong(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() { Err(wrong(&"there are no certificates in it")) } else { Ok(pem) }
}
