//! Archives, layouts and places for images.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::image::budget::Budget;
use crate::image::layer::{Unpacked, unpack};
use crate::image::{Digest, Error, Images, Limits, Settings};

/// Limits for a server on this machine, however busy that is.
pub(super) fn limits() -> Limits {
    Limits {
        stall: Duration::from_secs(20),
        connect: Duration::from_secs(5),
        pause: Duration::from_millis(1),
        tries: 3,
        ..Limits::default()
    }
}

/// A place for images and for what they are made of.
#[derive(Debug)]
pub(super) struct Lab {
    pub(super) dir: TempDir,
    pub(super) images: Images,
    settings: Settings,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self::with(limits())
    }

    pub(super) fn with(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let local_roots = vec![dir.path().to_owned()];
        Self::set(dir, Settings { limits, local_roots, ..Settings::default() })
    }

    pub(super) fn set(dir: TempDir, settings: Settings) -> Self {
        let images = Images::open(&dir.path().join("store"), settings.clone()).unwrap();
        Self { dir, images, settings }
    }

    /// As if the agent were killed and started again.
    pub(super) fn restart(self) -> Self {
        let Self { dir, images, settings } = self;
        drop(images);
        Self::set(dir, settings)
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Everything that is kept, without the lock.
    pub(super) fn kept(&self) -> Vec<String> {
        let mut all = Vec::new();
        for part in ["layers", "records", "images", "tmp"] {
            for entry in fs::read_dir(self.at("store").join(part)).unwrap() {
                let name = entry.unwrap().file_name();
                all.push(format!("{part}/{}", name.to_string_lossy()));
            }
        }
        all.sort();
        all
    }

    pub(super) fn layout(&self, name: &str, layers: &[Vec<u8>]) -> String {
        write_layout(&self.at(name), &Parts::of(layers));
        format!("oci://{}#v1", self.at(name).display())
    }
}

/// The blobs of an image and its manifest.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) blobs: Vec<Vec<u8>>,
    pub(super) config: Value,
    pub(super) manifest: Value,
}

impl Parts {
    /// An image of these archives, compressed.
    pub(super) fn of(archives: &[Vec<u8>]) -> Self {
        let blobs: Vec<_> = archives.iter().map(|archive| gzip(archive)).collect();
        Self::with_blobs(archives, blobs)
    }

    pub(super) fn with_blobs(archives: &[Vec<u8>], blobs: Vec<Vec<u8>>) -> Self {
        let ids: Vec<String> = archives.iter().map(|each| Digest::of(each).to_string()).collect();
        let config = json!({
            "architecture": crate::image::document::architecture(), "os": "linux",
            "config": {
                "Env": ["A=1"], "Entrypoint": ["/bin/x"], "Cmd": null, "WorkingDir": "/w", "User": "7:8"
            },
            "rootfs": { "type": "layers", "diff_ids": ids },
        });
        let kind = "application/vnd.oci.image.layer.v1.tar+gzip";
        let layers: Vec<Value> = blobs.iter().map(|blob| descriptor(kind, blob)).collect();
        let config_bytes = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config_bytes),
            "layers": layers,
        });
        Self { blobs, config, manifest }
    }

    pub(super) fn manifest_bytes(&self) -> Vec<u8> {
        self.manifest.to_string().into_bytes()
    }

    pub(super) fn config_bytes(&self) -> Vec<u8> {
        self.config.to_string().into_bytes()
    }

    /// All blobs but the manifest, the configuration last.
    pub(super) fn all_blobs(&self) -> Vec<Vec<u8>> {
        let mut all = self.blobs.clone();
        all.push(self.config_bytes());
        all
    }
}

pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

pub(super) fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": Digest::of(bytes).to_string(), "size": bytes.len() })
}

pub(super) fn write_layout(dir: &Path, parts: &Parts) {
    let blobs = dir.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let manifest = parts.manifest_bytes();
    for blob in parts.all_blobs().iter().chain([&manifest]) {
        fs::write(blobs.join(Digest::of(blob).hex()), blob).unwrap();
    }
    fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    let mut entry = descriptor(MANIFEST, &manifest);
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": "v1" });
    let index = json!({ "schemaVersion": 2, "manifests": [entry] });
    fs::write(dir.join("index.json"), index.to_string()).unwrap();
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An archive in the making; names go in as they are.
#[derive(Debug, Default)]
pub(super) struct Tar(Vec<u8>);

impl Tar {
    pub(super) fn file(self, name: &str, data: &[u8]) -> Self {
        self.raw(b'0', name.as_bytes(), b"", 0o644, data)
    }

    pub(super) fn dir(self, name: &str) -> Self {
        self.raw(b'5', name.as_bytes(), b"", 0o755, b"")
    }

    pub(super) fn symlink(self, name: &str, target: &str) -> Self {
        self.raw(b'2', name.as_bytes(), target.as_bytes(), 0o777, b"")
    }

    pub(super) fn hard_link(self, name: &str, target: &str) -> Self {
        self.raw(b'1', name.as_bytes(), target.as_bytes(), 0o644, b"")
    }

    pub(super) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let mut bytes = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let mut length = rest + 1;
            while length.to_string().len() + rest != length {
                length += 1;
            }
            bytes.extend_from_slice(format!("{length} {key}=").as_bytes());
            bytes.extend_from_slice(value);
            bytes.push(b'\n');
        }
        self.raw(b'x', b"pax", b"", 0o644, &bytes)
    }

    pub(super) fn raw(self, kind: u8, name: &[u8], link: &[u8], mode: u32, data: &[u8]) -> Self {
        let size = data.len() as u64;
        self.header(kind, name, link, |header| {
            header.set_mode(mode);
            header.set_size(size);
        })
        .data(data)
    }

    pub(super) fn header(
        mut self,
        kind: u8,
        name: &[u8],
        link: &[u8],
        change: impl FnOnce(&mut tar::Header),
    ) -> Self {
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name);
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link);
        header.as_mut_bytes()[156] = kind;
        header.set_mtime(1_000_000_000);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        header.set_mode(0o644);
        change(&mut header);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self
    }

    pub(super) fn data(mut self, data: &[u8]) -> Self {
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }

    pub(super) fn open(self) -> Vec<u8> {
        self.0
    }
}

/// Unpacks an archive into a directory of its own.
pub(super) fn unpacked(archive: &[u8]) -> Result<(TempDir, Unpacked), Error> {
    unpacked_within(archive, &Digest::of(archive), &limits())
}

pub(super) fn unpacked_within(
    blob: &[u8],
    diff_id: &Digest,
    limits: &Limits,
) -> Result<(TempDir, Unpacked), Error> {
    let dir = tempfile::tempdir().unwrap();
    let done = unpack(blob, dir.path(), diff_id, &Budget::new(limits))?;
    Ok((dir, done))
}

pub(super) fn is_whiteout(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == 0)
}
