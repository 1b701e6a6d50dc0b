//! A server whose certificate was good once.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Where it is, whom to trust that it is who it says, and what runs it.
pub(super) async fn server() -> (SocketAddr, String, JoinSet<()>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut about = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    about.not_before = rcgen::date_time_ymd(2020, 1, 1);
    about.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let certificate = about.self_signed(&key).unwrap();
    let chain = vec![certificate.der().clone()];
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(acceptor.accept(stream).await);
        }
    });
    (address, BASE64_STANDARD.encode(certificate.pem()), tasks)
}
