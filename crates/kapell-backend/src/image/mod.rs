//! Root file systems: what a container names, turned into directories that an overlay can stack.
//!
//! Layers are fetched once, checked, unpacked once and shared. What is allowed is in [`Settings`];
//! what becomes of an archive's oddities is told in `layer`. Root is needed for owners, whiteouts
//! and the attributes of overlays.

mod budget;
mod digest;
mod document;
mod error;
mod flight;
mod layer;
mod layout;
mod reference;
mod registry;
mod settings;
mod source;
mod store;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::budget::{Budget, Spent};
pub use self::digest::{BadDigest, Digest};
pub use self::document::ImageConfig;
use self::document::{Configuration, Document, Layer, Manifest, choose};
pub use self::error::Error;
use self::flight::Flights;
use self::layout::Layout;
pub use self::reference::{BadReference, Reference, Version};
use self::registry::{Http, Registry};
pub use self::settings::{Limits, Settings};
use self::source::{Source, blocking};
pub use self::store::Collected;
use self::store::{ImageRecord, Lease, Store, Temp};

/// The images of one agent.
#[derive(Debug, Clone)]
pub struct Images {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Arc<Settings>,
    store: Arc<Store>,
    http: Arc<Http>,
    flights: Flights,
    workers: Semaphore,
}

/// Names an image among those that were ever prepared here, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageId(String);

impl ImageId {
    /// Takes what [`Display`](fmt::Display) has written. Whether there is such an image is seen later.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A root file system. Its layers stay as long as this, or a clone of it, lives.
#[derive(Debug, Clone)]
pub struct Image {
    pub id: ImageId,
    /// Lowest first, no directory twice. They must not be written to.
    pub layers: Vec<PathBuf>,
    pub config: ImageConfig,
    _leases: Arc<Vec<Lease>>,
}

impl Image {
    /// A directory as it is, of which nobody says anything. Whether it may be used is not asked.
    pub(crate) fn of_directory(path: PathBuf) -> Self {
        Self {
            id: ImageId(format!("{DIR}{}", path.display())),
            layers: vec![path],
            config: ImageConfig::default(),
            _leases: Arc::default(),
        }
    }
}

const DIR: &str = "dir:";

impl Images {
    /// Keeps images in `dir`, which is made if it is not there. No other agent may use it. What an
    /// agent that was killed has left unfinished is removed.
    pub fn open(dir: &Path, settings: Settings) -> Result<Self, Error> {
        let settings = Arc::new(settings);
        let shared = Shared {
            store: Arc::new(Store::open(dir)?),
            http: Arc::new(Http::new(Arc::clone(&settings))),
            flights: Flights::default(),
            workers: Semaphore::new(settings.limits.at_once),
            settings,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Makes a root file system ready. May be dropped at any time; what was complete by then stays.
    pub async fn prepare(&self, url: &str) -> Result<Image, Error> {
        let settings = &self.shared.settings;
        let source = match Reference::parse(url, settings.default_registry.as_deref())? {
            Reference::Dir(path) => return self.directory(path).await,
            Reference::Layout { path, tag } => {
                let path = self.local(path).await?;
                let document_bytes = settings.limits.document_bytes;
                Source::Layout(Layout { path, tag, document_bytes })
            }
            Reference::Registry { host, name, version } => {
                let http = Arc::clone(&self.shared.http);
                Source::Registry(Arc::new(Registry::new(http, &host, &name, version)?))
            }
        };
        let limit = settings.limits.image;
        timeout(limit, self.assemble(source))
            .await
            .unwrap_or_else(|_late| Err(Error::Late { url: url.to_owned(), limit }))
    }

    /// Holds an image that an earlier agent has prepared, for a container that was found.
    pub async fn hold(&self, id: &ImageId) -> Result<Image, Error> {
        if let Some(path) = id.0.strip_prefix(DIR) {
            return Ok(Image::of_directory(path.into()));
        }
        let absent = || Error::NotFound { what: format!("image {id} here") };
        let digest = Digest::parse(&id.0).map_err(|_| absent())?;
        self.known(&digest).await?.ok_or_else(absent)
    }

    /// Removes layers that no [`Image`] holds, least recently used first, until at most
    /// `keep_bytes` are left.
    pub async fn collect(&self, keep_bytes: u64) -> Result<Collected, Error> {
        let store = Arc::clone(&self.shared.store);
        blocking(move || store.collect(keep_bytes)).await
    }

    /// The same, down to what the settings allow.
    pub async fn tidy(&self) -> Result<Collected, Error> {
        self.collect(self.shared.settings.cache_bytes).await
    }

    async fn directory(&self, path: PathBuf) -> Result<Image, Error> {
        let path = self.local(path).await?;
        blocking(move || {
            if !path.is_dir() {
                return Err(Error::NotFound { what: format!("directory `{}`", path.display()) });
            }
            Ok(Image::of_directory(path))
        })
        .await
    }

    /// The real path, if it is one that may be used.
    async fn local(&self, path: PathBuf) -> Result<PathBuf, Error> {
        let settings = Arc::clone(&self.shared.settings);
        blocking(move || {
            let real = |path: &PathBuf| fs::canonicalize(path).map_err(error::io("find", path));
            let found = real(&path)?;
            let allows = |root: &PathBuf| real(root).is_ok_and(|root| found.starts_with(root));
            if settings.local_roots.iter().any(allows) {
                return Ok(found);
            }
            let what = format!("`{}` as a root file system", path.display());
            let instead = "add a directory above it to this cell's roots of images".to_owned();
            Err(Error::Forbidden { what, instead })
        })
        .await
    }

    async fn assemble(&self, source: Source) -> Result<Image, Error> {
        if let Some(digest) = source.pinned()
            && let Some(image) = self.known(digest).await?
        {
            return Ok(image);
        }
        let (top, bytes) = source.top().await?;
        if let Some(image) = self.known(&top).await? {
            return Ok(image);
        }
        let (id, manifest) = resolve(&source, &top, &bytes).await?;
        check_manifest(&manifest, &self.shared.settings.limits)?;
        let configuration = source.configuration(&manifest.config).await?;
        let (config, layers) = Configuration::parse(&configuration)?.join(manifest)?;
        let layers = without_twins(layers);
        let leases = self.gather(&source, &layers).await?;
        let layers = layers.into_iter().map(|layer| layer.diff_id).collect();
        let record = ImageRecord { id, layers, config };
        let store = Arc::clone(&self.shared.store);
        blocking(move || {
            store.save_image(&record.id, &record)?;
            store.save_image(&top, &record)?;
            Ok(image(record, leases))
        })
        .await
    }

    /// An image all of whose layers are here.
    async fn known(&self, digest: &Digest) -> Result<Option<Image>, Error> {
        let (store, digest) = (Arc::clone(&self.shared.store), digest.clone());
        blocking(move || {
            let Some(record) = store.load_image(&digest) else { return Ok(None) };
            let leases = record.layers.iter().map(|layer| store.lease(layer));
            Ok(leases.collect::<Option<_>>().map(|leases| image(record, leases)))
        })
        .await
    }

    /// Fetches and unpacks what is not there, several at once.
    async fn gather(&self, source: &Source, layers: &[Layer]) -> Result<Vec<Lease>, Error> {
        let budget = Arc::new(Budget::new(&self.shared.settings.limits));
        let _on_drop = GiveUp(Arc::clone(&budget));
        let mut tasks = JoinSet::new();
        for (index, layer) in layers.iter().enumerate() {
            let (shared, source) = (Arc::clone(&self.shared), source.clone());
            let (layer, budget) = (layer.clone(), Arc::clone(&budget));
            tasks.spawn(async move { (index, shared.layer(source, layer, budget).await) });
        }
        let mut leases = Vec::new();
        while let Some(done) = tasks.join_next().await {
            let (index, lease) = done.map_err(registry::cut_short)?;
            leases.push((index, lease?));
        }
        leases.sort_by_key(|(index, _)| *index);
        Ok(leases.into_iter().map(|(_, lease)| lease).collect())
    }
}

impl Shared {
    async fn layer(
        self: Arc<Self>,
        source: Source,
        layer: Layer,
        budget: Arc<Budget>,
    ) -> Result<Lease, Error> {
        let turn = self.flights.turn(&layer.diff_id).await;
        if let Some(lease) = self.store.lease(&layer.diff_id) {
            let taken =
                budget.take_bytes(lease.bytes).and_then(|()| budget.take_entries(lease.entries));
            return taken.map(|()| lease).map_err(too_big);
        }
        let closed = |_| Error::damaged("the agent", "it is about to end");
        let _worker = self.workers.acquire().await.map_err(closed)?;
        let blob = Arc::new(self.store.temp());
        let file = source.layer(&layer.blob, &blob).await?;
        let store = Arc::clone(&self.store);
        blocking(move || {
            // Nobody else may begin before this ends, even if nobody waits for it any more.
            let _turn = turn;
            let _blob = blob;
            let temp: Temp = store.temp();
            fs::create_dir(&temp.path).map_err(error::io("make", &temp.path))?;
            set_mode(&temp.path)?;
            let unpacked = layer::unpack(file, &temp.path, &layer.diff_id, &budget)?;
            store.publish(&layer.diff_id, &temp, unpacked)
        })
        .await
    }
}

/// A root without an entry of its own is as everybody expects it.
fn set_mode(path: &Path) -> Result<(), Error> {
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(path, mode).map_err(error::io("open", path))
}

/// Ends what works in threads of its own.
#[derive(Debug)]
struct GiveUp(Arc<Budget>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

async fn resolve(source: &Source, top: &Digest, bytes: &[u8]) -> Result<(Digest, Manifest), Error> {
    let index = match Document::parse(&format!("manifest {top}"), bytes)? {
        Document::Manifest(manifest) => return Ok((top.clone(), manifest)),
        Document::Index(index) => index,
    };
    let chosen = choose(index)?;
    let what = format!("manifest {}", chosen.digest);
    match Document::parse(&what, &source.manifest(&chosen).await?)? {
        Document::Manifest(manifest) => Ok((chosen.digest, manifest)),
        Document::Index(_) => Err(Error::damaged(what, "it is an index in an index")),
    }
}

fn check_manifest(manifest: &Manifest, limits: &Limits) -> Result<(), Error> {
    let too_big = |what: String, limit, unit| Err(Error::TooBig { what, limit, unit });
    if manifest.layers.len() > limits.layers {
        return too_big("the image".to_owned(), limits.layers as u64, "layers");
    }
    if let Some(blob) = manifest.layers.iter().find(|blob| blob.size > limits.blob_bytes) {
        return too_big(format!("blob {}", blob.digest), limits.blob_bytes, "bytes");
    }
    let sum = manifest.layers.iter().try_fold(0_u64, |sum, blob| sum.checked_add(blob.size));
    if sum.is_none_or(|sum| sum > limits.image_bytes) {
        return too_big("the image".to_owned(), limits.image_bytes, "bytes");
    }
    Ok(())
}

/// An overlay takes no directory twice. Of equal layers the highest hides the others.
fn without_twins(layers: Vec<Layer>) -> Vec<Layer> {
    let mut kept: Vec<Layer> = Vec::new();
    for layer in layers.into_iter().rev() {
        if kept.iter().all(|each| each.diff_id != layer.diff_id) {
            kept.push(layer);
        }
    }
    kept.reverse();
    kept
}

fn too_big(spent: Spent) -> Error {
    let what = "the unpacked image".to_owned();
    match spent {
        Spent::Bytes(limit) => Error::TooBig { what, limit, unit: "bytes" },
        Spent::Entries(limit) => Error::TooBig { what, limit, unit: "entries" },
        Spent::GivenUp => Error::damaged(what, spent),
    }
}

fn image(record: ImageRecord, leases: Vec<Lease>) -> Image {
    Image {
        id: ImageId(record.id.to_string()),
        layers: leases.iter().map(Lease::path).collect(),
        config: record.config,
        _leases: Arc::new(leases),
    }
}
