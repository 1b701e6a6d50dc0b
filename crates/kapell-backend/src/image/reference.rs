//! What a container names as its root file system.
//!
//! - `dir:///path`: a directory as it is.
//! - `oci:///path/to/layout#tag`: an image in a local OCI layout. The tag stands behind `#`, because
//!   a path may hold a `:`. Without a tag the layout must hold one image only.
//! - `docker://host[:port]/name[:tag][@sha256:…]`: an image of a registry. Without a tag it is
//!   `latest`; if there is a digest, it counts and the tag is dropped. `docker:///name` means the
//!   default registry, and is refused if there is none.

use std::fmt;
use std::path::{Path, PathBuf};

use super::digest::{BadDigest, Digest};

const LONGEST_NAME: usize = 255;
const LONGEST_TAG: usize = 128;
const DEFAULT_TAG: &str = "latest";

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    Dir(PathBuf),
    Layout { path: PathBuf, tag: Option<String> },
    Registry { host: String, name: String, version: Version },
}

/// Which image of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    Tag(String),
    Digest(Digest),
}

/// Why a text names no root file system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadReference {
    #[error(
        "`{0}` names no root file system: write dir:///path, oci:///path#tag or \
         docker://host/name:tag"
    )]
    Scheme(String),
    #[error("the path in `{0}` must be absolute, without `..`, `#` and control characters")]
    Path(String),
    #[error(
        "`{0}` names no registry: write docker://host/name, or set a default registry for this cell"
    )]
    NoRegistry(String),
    #[error("`{0}` is no host of a registry: write a name or an address, and a port behind `:`")]
    Host(String),
    #[error("`{0}` is no name of an image: lower case letters, digits, and between them . _ - /")]
    Name(String),
    #[error("`{0}` is no tag: letters, digits, . _ -, at most 128, no . or - at the beginning")]
    Tag(String),
    #[error(transparent)]
    Digest(#[from] BadDigest),
}

impl Reference {
    /// Reads a URL. `default` is the registry of names that have none.
    pub fn parse(text: &str, default: Option<&str>) -> Result<Self, BadReference> {
        if let Some(path) = text.strip_prefix("dir://") {
            return Ok(Self::Dir(absolute(path).ok_or_else(|| BadReference::Path(text.into()))?));
        }
        if let Some(rest) = text.strip_prefix("oci://") {
            let (path, tag) = match rest.split_once('#') {
                Some((path, tag)) => (path, Some(checked_tag(tag)?)),
                None => (rest, None),
            };
            let path = absolute(path).ok_or_else(|| BadReference::Path(text.into()))?;
            return Ok(Self::Layout { path, tag });
        }
        let Some(rest) = text.strip_prefix("docker://") else {
            return Err(BadReference::Scheme(text.into()));
        };
        let (host, image) = rest.split_once('/').ok_or_else(|| BadReference::Name(rest.into()))?;
        let host = match (host, default) {
            ("", None) => return Err(BadReference::NoRegistry(text.into())),
            ("", Some(default)) => default,
            (host, _) => host,
        };
        if !is_host(host) {
            return Err(BadReference::Host(host.into()));
        }
        let (image, digest) = match image.split_once('@') {
            Some((image, digest)) => (image, Some(Digest::parse(digest)?)),
            None => (image, None),
        };
        let (name, tag) = match image.split_once(':') {
            Some((name, tag)) => (name, checked_tag(tag)?),
            None => (image, DEFAULT_TAG.to_owned()),
        };
        if !is_name(name) {
            return Err(BadReference::Name(name.into()));
        }
        let version = digest.map_or(Version::Tag(tag), Version::Digest);
        Ok(Self::Registry { host: host.to_owned(), name: name.to_owned(), version })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dir(path) => write!(f, "dir://{}", path.display()),
            Self::Layout { path, tag: None } => write!(f, "oci://{}", path.display()),
            Self::Layout { path, tag: Some(tag) } => write!(f, "oci://{}#{tag}", path.display()),
            Self::Registry { host, name, version } => match version {
                Version::Tag(tag) => write!(f, "docker://{host}/{name}:{tag}"),
                Version::Digest(digest) => write!(f, "docker://{host}/{name}@{digest}"),
            },
        }
    }
}

fn absolute(path: &str) -> Option<PathBuf> {
    let is_plain = !path.contains('#') && !path.chars().any(char::is_control);
    let stays = path.split('/').all(|part| part != "..");
    (path.starts_with('/') && is_plain && stays).then(|| Path::new(path).to_owned())
}

fn checked_tag(tag: &str) -> Result<String, BadReference> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let starts = !tag.starts_with(['.', '-']);
    if tag.is_empty() || tag.len() > LONGEST_TAG || !starts || !tag.bytes().all(is_good) {
        return Err(BadReference::Tag(tag.into()));
    }
    Ok(tag.to_owned())
}

fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = part.as_bytes();
        part.bytes().all(is_inner)
            && is_end(bytes.first())
            && is_end(bytes.last())
            && !part.contains("..")
    };
    name.len() <= LONGEST_NAME && name.split('/').all(is_part)
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((address, port)) = rest.split_once(']') else { return false };
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            match (port, port.strip_prefix(':')) {
                ("", _) => return true,
                (_, Some(port)) => ("v6", Some(port)),
                (_, None) => return false,
            }
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_name = !host.is_empty() && host.bytes().all(is_inner) && !host.starts_with(['.', '-']);
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|it| it > 0)
    };
    is_name && port.is_none_or(is_port)
}
