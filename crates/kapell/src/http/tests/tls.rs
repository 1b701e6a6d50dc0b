use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::super::TlsFiles;
use super::super::tls::{client, server};
use super::*;

/// Makes a certificate for 127.0.0.1 that vouches for itself.
fn certificate(dir: &Path, name: &str) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files =
        TlsFiles { cert: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

fn secure(address: &str, tls: &TlsFiles) -> Listen {
    Listen { tls: Some(tls.clone()), ..listen(address) }
}

/// Asks over TLS, trusting `ca`.
async fn ask(to: SocketAddr, ca: &Path, more: &str) -> Reply {
    let connector = TlsConnector::from(client(None, Some(ca)).unwrap().unwrap());
    let stream = TcpStream::connect(("127.0.0.1", to.port())).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let request = format!(
        "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n{more}\r\n",
        to.port()
    );
    exchange(stream, &request).await
}

#[tokio::test]
async fn other_machines_need_tls() {
    for address in ["0.0.0.0:0", "[::]:0", "10.0.0.1:0", "192.168.1.1:7070"] {
        let Err(error) = Host::open(0xa, LIMITS, listen(address)).await else { panic!() };
        let text = error.to_string();
        let want = "which needs TLS: give --tls-cert FILE --tls-key FILE";
        assert!(text.contains(want) && text.contains(address), "{text}");
    }
    let dir = tempfile::tempdir().unwrap();
    let files = certificate(dir.path(), "a");
    let host = Host::open(0xa, LIMITS, secure("0.0.0.0:0", &files)).await.unwrap();
    assert_eq!(ask(host.at(), &files.cert, "").await.status, 200);
}

#[tokio::test]
async fn the_origin_of_a_secure_page_is_secure() {
    let dir = tempfile::tempdir().unwrap();
    let files = certificate(dir.path(), "a");
    let host = Host::open(0xa, LIMITS, secure("127.0.0.1:0", &files)).await.unwrap();
    for (scheme, want) in [("https", 200), ("http", 403)] {
        let line = format!("origin: {scheme}://{}\r\n", host.at());
        assert_eq!(ask(host.at(), &files.cert, &line).await.status, want);
    }
}

#[tokio::test]
async fn who_does_not_speak_tls_is_not_heard() {
    let dir = tempfile::tempdir().unwrap();
    let files = certificate(dir.path(), "a");
    let limits = Limits { head: Duration::from_millis(100), ..LIMITS };
    let host = Host::open(0xa, limits, secure("127.0.0.1:0", &files)).await.unwrap();
    for text in ["GET /healthz HTTP/1.1\r\n\r\n", ""] {
        let mut stream = TcpStream::connect(host.at()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let got = rest(&mut stream).await;
        assert!(!got.starts_with(b"HTTP"), "{got:?}");
    }
}

#[tokio::test]
async fn a_secure_leader_is_reached_if_it_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (certificate(dir.path(), "one"), certificate(dir.path(), "two"));
    let leader = Host::open(0xa, LIMITS, secure("127.0.0.1:0", &one)).await.unwrap();
    let address = format!("https://{}", leader.at());
    leader.face.follow(0xa, &address);
    let forward = async |listen: Listen| {
        let standby = Host::open(0xb, LIMITS, listen).await.unwrap();
        standby.face.follow(0xa, &address);
        standby.get("/x").await
    };
    let trusting = Listen { ca: Some(one.cert.clone()), ..listen("127.0.0.1:0") };
    let reply = forward(trusting).await;
    assert_eq!(reply.problem(), (404, "not_found".to_owned()));
    let doubting = Listen { ca: Some(two.cert.clone()), ..listen("127.0.0.1:0") };
    let reply = forward(doubting).await;
    assert_eq!(reply.problem(), (502, "leader_unreachable".to_owned()));
    assert!(reply.body.contains("certificate"), "{}", reply.body);
    let reply = forward(listen("127.0.0.1:0")).await;
    assert_eq!(reply.problem(), (502, "leader_unreachable".to_owned()));
    assert!(reply.body.contains("--tls-ca FILE"), "{}", reply.body);
}

#[tokio::test]
async fn hosts_of_one_certificate_trust_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let files = certificate(dir.path(), "a");
    let leader = Host::open(0xa, LIMITS, secure("127.0.0.1:0", &files)).await.unwrap();
    leader.face.follow(0xa, &leader.at());
    let standby = Host::open(0xb, LIMITS, secure("127.0.0.1:0", &files)).await.unwrap();
    standby.face.follow(0xa, &format!("https://{}", leader.at()));
    let connector = TlsConnector::from(client(Some(&files), None).unwrap().unwrap());
    let stream = TcpStream::connect(standby.at()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let request = format!(
        "GET /x HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n",
        standby.at()
    );
    let reply = exchange(stream, &request).await;
    assert_eq!(reply.problem(), (404, "not_found".to_owned()));
    assert!(reply.has("kapell-served-by: 000000000000000a"));
}

#[tokio::test]
async fn an_authority_vouches_for_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let signed = params.signed_by(&key, &authority).unwrap();
    let [ca, cert, keys] = ["ca.pem", "a.pem", "a.key"].map(|name| dir.path().join(name));
    std::fs::write(&ca, authority.pem()).unwrap();
    std::fs::write(&cert, signed.pem()).unwrap();
    std::fs::write(&keys, key.serialize_pem()).unwrap();
    let files = TlsFiles { cert, key: keys };
    let host = Host::open(0xa, LIMITS, secure("127.0.0.1:0", &files)).await.unwrap();
    assert_eq!(ask(host.at(), &ca, "").await.status, 200);
}

#[test]
fn bad_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (good, other) = (certificate(dir.path(), "good"), certificate(dir.path(), "other"));
    let garbage = dir.path().join("garbage");
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n")
        .unwrap();
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let missing = dir.path().join("missing");
    let with = |cert: &Path, key: &Path| {
        let files = TlsFiles { cert: cert.to_owned(), key: key.to_owned() };
        server(&files).unwrap_err().to_string().replace(dir.path().to_str().unwrap(), "DIR")
    };
    assert_eq!(with(&missing, &good.key), "cannot read a certificate from `DIR/missing`");
    assert_eq!(with(&garbage, &good.key), "cannot read a certificate from `DIR/garbage`");
    assert_eq!(with(&empty, &good.key), "`DIR/empty` has no certificate in PEM format");
    assert_eq!(with(&good.key, &good.key), "`DIR/good.key` has no certificate in PEM format");
    assert_eq!(with(&good.cert, &missing), "cannot read a private key from `DIR/missing`");
    assert_eq!(with(&good.cert, &good.cert), "`DIR/good.pem` has no private key in PEM format");
    assert_eq!(
        with(&good.cert, &other.key),
        "the certificate in `DIR/good.pem` and the key in `DIR/other.key` cannot be used together"
    );
    assert!(client(None, Some(&missing)).unwrap_err().to_string().contains("missing"));
    assert!(client(None, None).unwrap().is_none());
}
