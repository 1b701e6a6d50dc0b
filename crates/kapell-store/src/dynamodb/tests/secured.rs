//! Over TLS, as the service itself is reached.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

use super::front::Front;
use super::{LEASE, Place, key, server};
use crate::dynamodb::DynamoDb;
use crate::error::Error;
use crate::model::{Generation, Write};
use crate::open::How;
use crate::store::Ttl as _;
use crate::testing::how;

/// Proves to be this name, by a certificate of `who`, which is its own authority.
fn proof(name: &str, who: &str) -> (TlsAcceptor, String) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, who);
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), cert.pem())
}

#[tokio::test]
async fn the_service_proves_who_it_is() {
    let test = "secured::the_service_proves_who_it_is";
    let (Some(place), Some(server)) = (Place::find(test).await, server(test)) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (acceptor, right) = proof("127.0.0.1", "the service");
    let (elsewhere, other_name) = proof("elsewhere.example", "somebody else");
    let (_, other) = proof("127.0.0.1", "nobody");
    let (front, false_front) =
        (Front::by(server, Some(acceptor)).await, Front::by(server, Some(elsewhere)).await);
    let url = |at: &Front, name: &str, pem: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, pem).unwrap();
        let url = place.url(at.address).replace("http://", "https://");
        format!("{url}&ca={}", path.display())
    };
    let store = DynamoDb::open(&url(&front, "right", &right), &how()).await.unwrap();
    let insert = store.insert_if_absent(&key("k"), Generation(0), b"v", LEASE).await.unwrap();
    assert_eq!(insert, Write::Done);
    assert_eq!(place.direct().await.read(&key("k")).await.unwrap().held.unwrap().value, b"v");

    let brief = How { timeout: Duration::from_secs(3), ..how() };
    for (url, why) in [
        (url(&front, "other", &other), "invalid peer certificate: UnknownIssuer"),
        (url(&false_front, "name", &other_name), "certificate not valid for name \"127.0.0.1\""),
    ] {
        let refused = DynamoDb::open(&url, &brief).await.unwrap_err();
        assert!(matches!(refused, Error::Unreachable { .. }), "{refused:?}");
        let told = refused.source().map(ToString::to_string).unwrap_or_default();
        assert!(told.contains(why), "{told}");
    }
    assert!(false_front.asked().is_empty(), "nothing was asked of it");
}
