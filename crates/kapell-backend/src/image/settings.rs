use std::path::PathBuf;
use std::time::Duration;

/// What is allowed, and from where.
#[derive(Debug, Clone)]
pub struct Settings {
    pub limits: Limits,
    /// Of unpacked layers that nobody uses, no more are kept than fit into this together with those in use.
    pub cache_bytes: u64,
    /// The registry of `docker:///name`.
    pub default_registry: Option<String>,
    /// Registries, as `host` or `host:port`, that are spoken to without TLS. One on this machine
    /// always is.
    pub insecure: Vec<String>,
    /// A file with the authorities that are trusted; without it, those that the system trusts.
    pub ca: Option<PathBuf>,
    /// Below these `dir://` and `oci://` may lie. Nothing is allowed by default: whoever may start
    /// a container could otherwise read any directory of this machine.
    pub local_roots: Vec<PathBuf>,
}

/// How much an image may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// One blob, as it is transferred.
    pub blob_bytes: u64,
    /// All layers of an image, as they are transferred.
    pub image_bytes: u64,
    /// All layers of an image, unpacked.
    pub unpacked_bytes: u64,
    /// Files and directories of all layers of an image.
    pub entries: u64,
    pub layers: usize,
    /// A manifest, an index or a configuration.
    pub document_bytes: u64,
    pub connect: Duration,
    /// The longest time in which nothing comes.
    pub stall: Duration,
    /// For everything about one image.
    pub image: Duration,
    /// How often a request is sent before its failure counts.
    pub tries: u32,
    /// Between two tries; doubled each time.
    pub pause: Duration,
    /// How many layers are fetched and unpacked at once, of all images.
    pub at_once: usize,
}

const GIB: u64 = 1 << 30;

impl Settings {
    pub const CACHE_BYTES: u64 = 20 * GIB;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            cache_bytes: Self::CACHE_BYTES,
            default_registry: None,
            insecure: Vec::new(),
            ca: None,
            local_roots: Vec::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_bytes: 4 * GIB,
            image_bytes: 8 * GIB,
            unpacked_bytes: 16 * GIB,
            entries: 1_000_000,
            layers: 128,
            document_bytes: 4 << 20,
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            image: Duration::from_mins(30),
            tries: 4,
            pause: Duration::from_millis(500),
            at_once: 3,
        }
    }
}
