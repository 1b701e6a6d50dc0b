//! A small registry that may be told to misbehave.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::lab::{MANIFEST, Parts, Tar};
use crate::image::Digest;

/// What a server does with a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Good(&'static str, Vec<u8>),
    /// Status and headers, without a body.
    Empty(String),
    /// Announces so many bytes more than it sends.
    Short(Vec<u8>, usize),
    /// Announces fewer bytes than the blob has.
    WrongLength(Vec<u8>, usize),
    Endless,
    /// Sends this much of a body and nothing more.
    Hang(Vec<u8>),
    /// Does not answer at all.
    Silent,
    Close,
    /// Wants this token, and otherwise says so by this header.
    Guarded {
        token: &'static str,
        challenge: String,
        behind: Box<Reply>,
    },
}

/// A request: its path, and how often it was asked for before.
type Rule = dyn Fn(&str, usize) -> Reply + Send + Sync;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: String,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(super) async fn start(rule: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, rule).await
    }

    /// One that shows a certificate for `localhost`, if there is an acceptor.
    pub(super) async fn start_with(
        tls: Option<TlsAcceptor>,
        rule: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::<Mutex<BTreeMap<String, usize>>>::default();
        let rule: Arc<Rule> = Arc::new(rule);
        let mut tasks = JoinSet::new();
        let counts = Arc::clone(&asked);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (rule, counts) = (Arc::clone(&rule), Arc::clone(&counts));
                let tls = tls.clone();
                connections.spawn(async move {
                    // Whoever asks may go away at any time.
                    let _gone = match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => answer(stream, &*rule, &counts).await,
                            Err(error) => Err(error),
                        },
                        None => answer(stream, &*rule, &counts).await,
                    };
                });
            }
        });
        Self { address, asked, _tasks: tasks }
    }

    pub(super) fn url(&self) -> String {
        format!("docker://{}/some/image:v1", self.address)
    }

    pub(super) fn count(&self, part: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(path, _)| path.contains(part)).map(|(_, count)| count).sum()
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    rule: &Rule,
    counts: &Mutex<BTreeMap<String, usize>>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let text = String::from_utf8(request).unwrap();
    let path = text.split(' ').nth(1).unwrap().to_owned();
    let nth = {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(path.clone()).or_default();
        *count += 1;
        *count - 1
    };
    let head = |kind: &str, length: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n")
    };
    let mut reply = rule(&path, nth);
    if let Reply::Guarded { token, challenge, behind } = reply {
        let shown = text.contains(&format!("authorization: Bearer {token}\r\n"));
        let refusal = format!("401 Unauthorized\r\nWWW-Authenticate: {challenge}");
        reply = if shown { *behind } else { Reply::Empty(refusal) };
    }
    let (head, body, hangs) = match reply {
        Reply::Guarded { .. } => panic!("guarded twice"),
        Reply::Empty(lines) => {
            (format!("HTTP/1.1 {lines}\r\nContent-Length: 0\r\n\r\n"), vec![], false)
        }
        Reply::Good(kind, body) => (head(kind, body.len()), body, false),
        Reply::Short(body, less) => (head("x/y", body.len() + less), body, false),
        Reply::WrongLength(body, length) => (head("x/y", length), body, false),
        Reply::Hang(body) => (head("x/y", body.len() + 100), body, true),
        Reply::Silent => (String::new(), vec![], true),
        Reply::Close => return Ok(()),
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
            let chunk = [b"4000\r\n".to_vec(), vec![7; 0x4000], b"\r\n".to_vec()].concat();
            loop {
                stream.write_all(&chunk).await?;
            }
        }
    };
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.flush().await?;
    if hangs {
        // Until the other side has had enough.
        stream.read_u8().await?;
    }
    Ok(())
}

/// An acceptor and the certificate that it shows.
pub(super) fn certificate() -> (TlsAcceptor, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), cert.pem())
}

pub(super) fn parts() -> Parts {
    let noise: Vec<u8> =
        (0..50_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    Parts::of(&[Tar::default().file("noise", &noise).end()])
}

/// What a good registry answers.
pub(super) fn good(parts: &Parts, path: &str) -> Reply {
    if path.ends_with("/manifests/v1") {
        return Reply::Good(MANIFEST, parts.manifest_bytes());
    }
    let blobs = parts.all_blobs();
    let found = blobs.into_iter().find(|blob| path.ends_with(Digest::of(blob).hex()));
    found.map_or(Reply::Empty("404 Not Found".to_owned()), |blob| Reply::Good("x/y", blob))
}

pub(super) fn layer_path(parts: &Parts) -> String {
    Digest::of(&parts.blobs[0]).hex().to_owned()
}
