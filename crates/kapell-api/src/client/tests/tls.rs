use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::client::{Client, Error, Options, Token};

/// A server with a certificate of its own for `localhost`; gives its port and the certificate.
async fn serve(tasks: &mut JoinSet<()>) -> (u16, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service = service_fn(async |_| {
                Ok::<_, hyper::Error>(Response::new(Full::<Bytes>::from("[]")))
            });
            let _ended =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        }
    });
    (port, cert.pem())
}

#[tokio::test]
async fn a_host_is_known_by_its_certificate() {
    let mut tasks = JoinSet::new();
    let (port, pem) = serve(&mut tasks).await;
    let dir = tempfile::tempdir().unwrap();
    let client = |name: &str, text: &str, host: &str| {
        let ca = dir.path().join(name);
        std::fs::write(&ca, text).unwrap();
        let token = Some(Token::new("t"));
        Client::new(
            &format!("https://{host}:{port}"),
            Options { ca: Some(ca), token, ..Options::default() },
        )
    };
    client("right", &pem, "localhost").unwrap().domains().await.unwrap();
    let wrong_name = client("right", &pem, "127.0.0.1").unwrap().domains().await.unwrap_err();
    assert!(
        matches!(&wrong_name, Error::Unreachable { source, .. } if source.to_string().contains("certificate")),
        "{wrong_name:?}"
    );
    let (_, other) = serve(&mut tasks).await;
    let foreign = client("other", &other, "localhost").unwrap().domains().await.unwrap_err();
    assert!(matches!(foreign, Error::Unreachable { .. }), "{foreign:?}");
    let empty = client("empty", "nothing", "localhost").unwrap_err();
    assert!(empty.to_string().contains("has no certificate in PEM format"), "{empty}");
}
