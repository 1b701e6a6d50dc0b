//! Images of a registry, by the OCI distribution protocol.
//!
//! A registry on this machine, or one that is listed as insecure, is spoken to over plain HTTP;
//! every other over TLS. Nobody logs in: if a registry wants a token, one for anybody is fetched.

mod http;
mod tls;
mod token;

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_LENGTH, HeaderName, WWW_AUTHENTICATE};
use tokio::sync::mpsc;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::sleep;
use url::Url;

pub(super) use self::http::Http;
use self::http::{Answer, Ask, is_own, place};
use self::token::Challenge;
use super::digest::{Digest, Hash};
use super::document::{ACCEPT, Descriptor};
use super::error::{Error, io};
use super::reference::Version;
use super::store::Temp;

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// Chunks that wait to be written.
const QUEUE: usize = 32;

/// One name of a registry.
#[derive(Debug)]
pub(super) struct Registry {
    http: Arc<Http>,
    base: Url,
    name: String,
    version: Version,
    /// What the registry gave us to show.
    token: Mutex<Option<String>>,
}

impl Registry {
    pub(super) fn new(
        http: Arc<Http>,
        host: &str,
        name: &str,
        version: Version,
    ) -> Result<Self, Error> {
        // The name that everybody uses is not the one that answers.
        let (host, name) = match host {
            "docker.io" | "index.docker.io" if name.contains('/') => {
                ("registry-1.docker.io", name.to_owned())
            }
            "docker.io" | "index.docker.io" => ("registry-1.docker.io", format!("library/{name}")),
            host => (host, name.to_owned()),
        };
        let bad = |error| Error::damaged(format!("the registry's name `{host}`"), error);
        let plain = Url::parse(&format!("http://{host}/v2/")).map_err(bad)?;
        let base = if http.is_listed(&plain) || is_own(&plain) {
            plain
        } else {
            Url::parse(&format!("https://{host}/v2/")).map_err(bad)?
        };
        Ok(Self { http, base, name, version, token: Mutex::default() })
    }

    /// The manifest or index that was asked for, and its digest.
    pub(super) async fn top(&self) -> Result<(Digest, Vec<u8>), Error> {
        match &self.version {
            Version::Digest(digest) => {
                Ok((digest.clone(), self.manifest(&digest.to_string(), Some(digest)).await?))
            }
            Version::Tag(tag) => {
                let bytes = self.manifest(tag, None).await?;
                Ok((Digest::of(&bytes), bytes))
            }
        }
    }

    /// The digest, if the image was named by one.
    pub(super) const fn pinned(&self) -> Option<&Digest> {
        match &self.version {
            Version::Digest(digest) => Some(digest),
            Version::Tag(_) => None,
        }
    }

    pub(super) async fn manifest(
        &self,
        version: &str,
        wanted: Option<&Digest>,
    ) -> Result<Vec<u8>, Error> {
        self.tried(|| self.manifest_once(version, wanted)).await
    }

    async fn manifest_once(
        &self,
        version: &str,
        wanted: Option<&Digest>,
    ) -> Result<Vec<u8>, Error> {
        let doing = format!("fetching the manifest {}:{version}", self.name);
        let path = format!("{}/manifests/{version}", self.name);
        let answer = self.ask(&path, ACCEPT, &doing).await?;
        let said = answer.header(CONTENT_DIGEST).and_then(|text| Digest::parse(text).ok());
        let bytes = answer.whole(self.http.settings.limits.document_bytes).await?;
        let is = Digest::of(&bytes);
        match wanted.or(said.as_ref()) {
            Some(wanted) if *wanted != is => {
                let what = format!("manifest {wanted}");
                Err(Error::damaged(what, format!("what came has the digest {is}")))
            }
            Some(_) | None => Ok(bytes),
        }
    }

    pub(super) async fn configuration(&self, wanted: &Descriptor) -> Result<Vec<u8>, Error> {
        self.tried(|| self.configuration_once(wanted)).await
    }

    async fn configuration_once(&self, wanted: &Descriptor) -> Result<Vec<u8>, Error> {
        let limit = self.http.settings.limits.document_bytes;
        let doing = format!("fetching the configuration {}", wanted.digest);
        let path = format!("{}/blobs/{}", self.name, wanted.digest);
        let bytes = self.ask(&path, "*/*", &doing).await?.whole(limit).await?;
        check(wanted, &Digest::of(&bytes)).map(|()| bytes)
    }

    /// Fetches a layer into a file, checked and at its beginning.
    pub(super) async fn layer(&self, wanted: &Descriptor, temp: &Arc<Temp>) -> Result<File, Error> {
        self.tried(|| self.layer_once(wanted, temp)).await
    }

    async fn layer_once(&self, wanted: &Descriptor, temp: &Arc<Temp>) -> Result<File, Error> {
        let doing = format!("fetching the layer {}", wanted.digest);
        let path = format!("{}/blobs/{}", self.name, wanted.digest);
        let answer = self.ask(&path, "*/*", &doing).await?;
        let length = answer.header(CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
        if length.is_some_and(|length| length != wanted.size) {
            return Err(wrong_size(wanted, "announces another size"));
        }
        download(answer, wanted, temp).await
    }

    /// Asks, once more with a token if the registry wants one.
    async fn ask(&self, path: &str, accept: &str, doing: &str) -> Result<Answer, Error> {
        let url = self.base.join(path).map_err(|error| Error::damaged(doing, error))?;
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ask = Ask { url: &url, accept, authorization: token.as_deref(), doing };
        let mut answer = self.http.get(ask).await?;
        if answer.status == StatusCode::UNAUTHORIZED
            && let Some(challenge) = answer.header(WWW_AUTHENTICATE).and_then(Challenge::parse)
        {
            let token = token::fetch(&self.http, &challenge, &self.base, &self.name).await?;
            let again = Ask { authorization: Some(&token), ..ask };
            answer = self.http.get(again).await?;
            *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        }
        let hint = match answer.status.as_u16() {
            200 => return Ok(answer),
            404 => return Err(Error::NotFound { what: format!("{path} at {}", place(&url)) }),
            401 | 403 => ": it is not for everybody, and nobody can log in yet",
            _others => "",
        };
        let (place, status) = (place(&url), answer.status.as_u16());
        Err(Error::Status { place, doing: doing.to_owned(), status, hint })
    }

    /// Does it again, as often as may be, while it fails for what passes.
    async fn tried<T, F>(&self, once: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let limits = &self.http.settings.limits;
        let mut tries = Tries { left: limits.tries, pause: limits.pause };
        loop {
            match once().await {
                Err(error) if tries.again(&error).await => {}
                done => return done,
            }
        }
    }
}

/// How often something may fail that passes.
#[derive(Debug)]
struct Tries {
    left: u32,
    pause: Duration,
}

impl Tries {
    /// Whether to try again; if so, after a pause.
    async fn again(&mut self, error: &Error) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || !error.is_passing() {
            return false;
        }
        sleep(self.pause).await;
        self.pause *= 2;
        true
    }
}

/// Writes what comes in a thread of its own: neither a slow disk nor a digest holds up others.
async fn download(answer: Answer, wanted: &Descriptor, temp: &Arc<Temp>) -> Result<File, Error> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    // It may begin when nobody waits any more: what it makes then must go with it.
    let temp = Arc::clone(temp);
    let writer = spawn_blocking(move || {
        let file =
            File::options().create(true).truncate(true).read(true).write(true).open(&temp.path);
        write(file, receiver).map_err(io("write", &temp.path))
    });
    let sent = forward(answer, wanted, sender).await;
    let written = writer.await.map_err(cut_short)?;
    let length = sent?;
    let (file, digest) = written?;
    if length != wanted.size {
        return Err(wrong_size(wanted, "sends less"));
    }
    check(wanted, &digest)?;
    Ok(file)
}

/// Gives how much came.
async fn forward(
    mut answer: Answer,
    wanted: &Descriptor,
    to: mpsc::Sender<Bytes>,
) -> Result<u64, Error> {
    let mut length = 0;
    while let Some(bytes) = answer.chunk().await? {
        length += bytes.len() as u64;
        if length > wanted.size {
            return Err(wrong_size(wanted, "sends more"));
        }
        if to.send(bytes).await.is_err() {
            break;
        }
    }
    Ok(length)
}

fn write(file: io::Result<File>, mut from: mpsc::Receiver<Bytes>) -> io::Result<(File, Digest)> {
    let mut file = file?;
    let mut hash = Hash::new();
    while let Some(bytes) = from.blocking_recv() {
        hash.update(&bytes);
        file.write_all(&bytes)?;
    }
    file.rewind()?;
    Ok((file, hash.finish()))
}

pub(super) fn cut_short(error: JoinError) -> Error {
    let what = "the work on an image was cut short".to_owned();
    Error::Io { what, source: io::Error::other(error) }
}

fn check(wanted: &Descriptor, is: &Digest) -> Result<(), Error> {
    if wanted.digest == *is {
        return Ok(());
    }
    let what = format!("blob {}", wanted.digest);
    Err(Error::damaged(what, format!("what came has the digest {is}")))
}

fn wrong_size(wanted: &Descriptor, how: &str) -> Error {
    let why = format!("the registry {how} than the {} bytes of its manifest", wanted.size);
    Error::damaged(format!("blob {}", wanted.digest), why)
}
