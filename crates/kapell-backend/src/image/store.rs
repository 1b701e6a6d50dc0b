//! Layers on disk.
//!
//! - `layers/sha256-<diff id>/`: a layer, complete. Only root may enter `layers` and `tmp`.
//! - `records/sha256-<diff id>`: what it came to; the file's time is when it was used last.
//! - `images/sha256-<digest>`: an image by the digest of its manifest, or of the index that it was
//!   chosen from.
//! - `tmp/`: whatever is not complete, and what is being removed. Emptied at open.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::document::ImageConfig;
use super::error::{Error, io};
use super::layer::Unpacked;

/// The lock of a killed agent lives on until the last of its threads is gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    layers: Mutex<BTreeMap<Digest, Held>>,
    next: AtomicU64,
    /// Held as long as we are.
    _lock: File,
}

#[derive(Debug)]
struct Held {
    bytes: u64,
    entries: u64,
    used: SystemTime,
    leases: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct LayerRecord {
    bytes: u64,
    entries: u64,
}

/// What is kept of an image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    pub(super) id: Digest,
    /// Lowest first.
    pub(super) layers: Vec<Digest>,
    pub(super) config: ImageConfig,
}

/// What was removed, and what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collected {
    pub removed_layers: usize,
    pub removed_bytes: u64,
    /// More than was to be kept if it is all in use.
    pub kept_bytes: u64,
}

/// Keeps a layer from being removed.
#[derive(Debug)]
pub(super) struct Lease {
    store: Arc<Store>,
    digest: Digest,
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

impl Lease {
    pub(super) fn path(&self) -> PathBuf {
        self.store.layer(&self.digest)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(held) = self.store.layers().get_mut(&self.digest) {
            held.leases -= 1;
        }
    }
}

/// Something in `tmp`, gone when this is dropped.
#[derive(Debug)]
pub(super) struct Temp {
    pub(super) path: PathBuf,
}

impl Drop for Temp {
    fn drop(&mut self) {
        // What cannot be removed now is removed at the next open.
        let _left = remove(&self.path);
    }
}

impl Store {
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).map_err(io("find", dir))?;
        for dir in ["", "layers", "records", "images", "tmp"].map(|name| dir.join(name)) {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(io("make", &dir))?;
        }
        let lock = lock(&dir)?;
        let closed = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
        for dir in ["layers", "tmp"].map(|name| dir.join(name)) {
            fs::set_permissions(&dir, closed.clone()).map_err(io("close", &dir))?;
        }
        let mut store =
            Self { dir, layers: Mutex::default(), next: AtomicU64::new(0), _lock: lock };
        for name in names(&store.dir.join("tmp"))? {
            let path = store.dir.join("tmp").join(name);
            remove(&path).map_err(io("remove", &path))?;
        }
        store.layers = Mutex::new(store.find_layers()?);
        Ok(store)
    }

    /// Takes those that are there with their records; removes halves.
    fn find_layers(&self) -> Result<BTreeMap<Digest, Held>, Error> {
        let mut found = BTreeMap::new();
        for name in names(&self.dir.join("layers"))? {
            let record = Digest::from_file_name(&name).and_then(|digest| {
                let path = self.record(&digest);
                let record: LayerRecord = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
                let used = fs::metadata(&path).ok()?.modified().ok()?;
                let LayerRecord { bytes, entries } = record;
                Some((digest, Held { bytes, entries, used, leases: 0 }))
            });
            match record {
                Some((digest, held)) => drop(found.insert(digest, held)),
                None => {
                    let path = self.dir.join("layers").join(name);
                    remove(&path).map_err(io("remove", &path))?;
                }
            }
        }
        for name in names(&self.dir.join("records"))? {
            if Digest::from_file_name(&name).is_none_or(|digest| !found.contains_key(&digest)) {
                let path = self.dir.join("records").join(name);
                remove(&path).map_err(io("remove", &path))?;
            }
        }
        Ok(found)
    }

    /// A path in `tmp` where nothing is.
    pub(super) fn temp(&self) -> Temp {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Temp { path: self.dir.join("tmp").join(number.to_string()) }
    }

    /// Holds a layer, if it is there.
    pub(super) fn lease(self: &Arc<Self>, digest: &Digest) -> Option<Lease> {
        let mut layers = self.layers();
        let now = later(&layers);
        let held = layers.get_mut(digest)?;
        (held.leases, held.used) = (held.leases + 1, now);
        // The order of use is a help: a full disk must not keep a container from its layers.
        let record = File::options().write(true).open(self.record(digest));
        let _best_effort = record.and_then(|file| file.set_modified(now));
        let (bytes, entries) = (held.bytes, held.entries);
        Some(Lease { store: Arc::clone(self), digest: digest.clone(), bytes, entries })
    }

    /// Puts a complete layer in its place.
    pub(super) fn publish(
        self: &Arc<Self>,
        digest: &Digest,
        temp: &Temp,
        unpacked: Unpacked,
    ) -> Result<Lease, Error> {
        let Unpacked { bytes, entries } = unpacked;
        let (path, record) = (self.layer(digest), self.record(digest));
        let mut layers = self.layers();
        // A record without a layer is removed at open, a layer without a record too.
        self.write(&record, &LayerRecord { bytes, entries })?;
        fs::rename(&temp.path, &path).map_err(io("make", &path))?;
        let used = later(&layers);
        layers.insert(digest.clone(), Held { bytes, entries, used, leases: 1 });
        Ok(Lease { store: Arc::clone(self), digest: digest.clone(), bytes, entries })
    }

    pub(super) fn save_image(&self, digest: &Digest, image: &ImageRecord) -> Result<(), Error> {
        self.write(&self.image(digest), image)
    }

    /// None if nothing, or nothing of use, is known of it.
    pub(super) fn load_image(&self, digest: &Digest) -> Option<ImageRecord> {
        serde_json::from_slice(&fs::read(self.image(digest)).ok()?).ok()
    }

    /// Removes layers that nobody holds, least recently used first, until at most so much is left.
    pub(super) fn collect(&self, keep_bytes: u64) -> Result<Collected, Error> {
        let mut all = Collected::default();
        let mut doomed = Vec::new();
        {
            let mut layers = self.layers();
            all.kept_bytes = layers.values().map(|held| held.bytes).sum();
            let free = layers.iter().filter(|(_, held)| held.leases == 0);
            let mut free: Vec<_> =
                free.map(|(digest, held)| (held.used, digest.clone(), held.bytes)).collect();
            free.sort();
            for (_, digest, bytes) in free {
                if all.kept_bytes <= keep_bytes {
                    break;
                }
                let (temp, path) = (self.temp(), self.layer(&digest));
                fs::rename(&path, &temp.path).map_err(io("remove", &path))?;
                layers.remove(&digest);
                let record = self.record(&digest);
                remove(&record).map_err(io("remove", &record))?;
                all.removed_layers += 1;
                all.removed_bytes += bytes;
                all.kept_bytes -= bytes;
                doomed.push(temp);
            }
        }
        // Long work, and nobody has to wait for it.
        drop(doomed);
        self.forget_images()?;
        Ok(all)
    }

    fn forget_images(&self) -> Result<(), Error> {
        for name in names(&self.dir.join("images"))? {
            let record = Digest::from_file_name(&name).and_then(|digest| self.load_image(&digest));
            let layers = self.layers();
            let is_whole = record
                .is_some_and(|image| image.layers.iter().all(|layer| layers.contains_key(layer)));
            if !is_whole {
                let path = self.dir.join("images").join(name);
                remove(&path).map_err(io("remove", &path))?;
            }
        }
        Ok(())
    }

    fn write(&self, path: &Path, value: &impl Serialize) -> Result<(), Error> {
        let temp = self.temp();
        let failed = |error: io::Error| io("write", path)(error);
        let bytes = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
        fs::write(&temp.path, bytes).and_then(|()| fs::rename(&temp.path, path)).map_err(failed)
    }

    fn layers(&self) -> MutexGuard<'_, BTreeMap<Digest, Held>> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn layer(&self, digest: &Digest) -> PathBuf {
        self.dir.join("layers").join(digest.file_name())
    }

    fn record(&self, digest: &Digest) -> PathBuf {
        self.dir.join("records").join(digest.file_name())
    }

    fn image(&self, digest: &Digest) -> PathBuf {
        self.dir.join("images").join(digest.file_name())
    }
}

/// Now, but later than any use so far, whatever the clock says.
fn later(layers: &BTreeMap<Digest, Held>) -> SystemTime {
    let last = layers.values().map(|held| held.used).max();
    let next = last.map(|last| last + Duration::from_micros(1));
    next.unwrap_or(SystemTime::UNIX_EPOCH).max(SystemTime::now())
}

fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let list = || {
        let entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
        Ok(entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    };
    list().map_err(io("read", dir))
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(io("open", &path))?;
    let deadline = Instant::now() + PATIENCE;
    while file.try_lock().is_err() {
        if Instant::now() >= deadline {
            let what = format!(
                "`{}` is in use by another agent: stop that one, or use another directory",
                dir.display()
            );
            return Err(Error::Io { what, source: io::ErrorKind::WouldBlock.into() });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(file)
}
