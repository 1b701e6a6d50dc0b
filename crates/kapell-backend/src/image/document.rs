//! The JSON documents of an image.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::error::Error;

/// Everything that a registry is asked for.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

const LAYERS: [&str; 4] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
];

/// What a container of the image is, unless its owner says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// As `NAME=value`.
    #[serde(default, rename = "Env", deserialize_with = "or_empty")]
    pub env: Vec<String>,
    #[serde(default, rename = "Entrypoint", deserialize_with = "or_empty")]
    pub entrypoint: Vec<String>,
    #[serde(default, rename = "Cmd", deserialize_with = "or_empty")]
    pub cmd: Vec<String>,
    /// Empty if it says nothing, as the next.
    #[serde(default, rename = "WorkingDir", deserialize_with = "or_empty")]
    pub working_dir: String,
    /// `user`, `uid`, `user:group` or `uid:gid`.
    #[serde(default, rename = "User", deserialize_with = "or_empty")]
    pub user: String,
}

/// Some builders write null.
fn or_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Where something is and how long.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    #[serde(default)]
    pub(super) platform: Option<Platform>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Platform {
    pub(super) architecture: String,
    pub(super) os: String,
}

/// A manifest, or a list of manifests for several platforms.
#[derive(Debug)]
pub(super) enum Document {
    Manifest(Manifest),
    Index(Vec<Descriptor>),
}

#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Either {
    manifests: Option<Vec<Descriptor>>,
    layers: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
}

impl Document {
    pub(super) fn parse(what: &str, bytes: &[u8]) -> Result<Self, Error> {
        let either: Either =
            serde_json::from_slice(bytes).map_err(|error| Error::damaged(what, error))?;
        match (either.manifests, either.layers, either.config) {
            (Some(manifests), None, None) => Ok(Self::Index(manifests)),
            (None, Some(layers), Some(config)) => Ok(Self::Manifest(Manifest { config, layers })),
            // Both at once would be read as one by us and as the other by whoever checked it.
            (Some(_), _, _) => Err(Error::damaged(what, "it is an index and a manifest at once")),
            (None, _, _) => Err(Error::damaged(what, "it is neither a manifest nor an index")),
        }
    }
}

/// What is kept of a configuration document.
#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    #[serde(default, deserialize_with = "or_empty")]
    config: ImageConfig,
    rootfs: Layers,
}

#[derive(Debug, Deserialize)]
struct Layers {
    diff_ids: Vec<Digest>,
}

/// A layer: as it is transferred, and the digest of what it unpacks to.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) blob: Descriptor,
    pub(super) diff_id: Digest,
}

impl Configuration {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(|error| Error::damaged("the configuration", error))
    }

    /// Checks that it fits this machine and the manifest.
    pub(super) fn join(self, manifest: Manifest) -> Result<(ImageConfig, Vec<Layer>), Error> {
        let fits = |has: &str, wants: &str| has.is_empty() || has == wants;
        if !fits(&self.os, "linux") || !fits(&self.architecture, architecture()) {
            let has = format!("{}/{}", self.os, self.architecture);
            return Err(Error::Platform { has, wants: format!("linux/{}", architecture()) });
        }
        let (blobs, ids) = (manifest.layers, self.rootfs.diff_ids);
        if blobs.len() != ids.len() {
            let why = format!("{} layers, but {} of their digests", blobs.len(), ids.len());
            return Err(Error::damaged("the manifest", why));
        }
        if let Some(other) = blobs.iter().find(|blob| !LAYERS.contains(&&*blob.media_type)) {
            let what = format!("a layer of type `{}`", other.media_type);
            let instead = format!("known are {}", LAYERS.join(", "));
            return Err(Error::Forbidden { what, instead });
        }
        let join = |(blob, diff_id)| Layer { blob, diff_id };
        Ok((self.config, blobs.into_iter().zip(ids).map(join).collect()))
    }
}

/// The first that is for this machine.
pub(super) fn choose(index: Vec<Descriptor>) -> Result<Descriptor, Error> {
    let show = |each: &Descriptor| match &each.platform {
        Some(platform) => format!("{}/{}", platform.os, platform.architecture),
        None => "any".to_owned(),
    };
    let has: Vec<String> = index.iter().map(show).collect();
    let fits = |each: &Descriptor| match &each.platform {
        Some(platform) => platform.os == "linux" && platform.architecture == architecture(),
        None => true,
    };
    index.into_iter().find(fits).ok_or_else(|| Error::Platform {
        has: if has.is_empty() { "no platform".to_owned() } else { has.join(", ") },
        wants: format!("linux/{}", architecture()),
    })
}

/// This machine's, as images name it.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}
