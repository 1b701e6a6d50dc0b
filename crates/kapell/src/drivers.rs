//! What runs the containers of a cell.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use kapell_backend::both::Both;
use kapell_backend::containers::Containers;
use kapell_backend::image::{self, Images};
use kapell_backend::oci::{self, Network, OciContainers};
use kapell_backend::process::ProcessContainers;

use crate::cli::Rooted;

/// Processes of this machine, and beside them containers with a root of their own where that is wanted.
/// Of images that nobody uses so much is kept.
pub(crate) fn open(
    dir: &Path,
    rooted: &Rooted,
    cache_bytes: u64,
) -> anyhow::Result<Arc<dyn Containers>> {
    let plain = ProcessContainers::open(dir)?;
    if !rooted.oci {
        return Ok(Arc::new(plain));
    }
    let mut settings = oci::Settings::default();
    if rooted.host_network {
        settings.network = Network::Host;
    }
    let images = image::Settings {
        cache_bytes,
        default_registry: rooted.registry.clone(),
        insecure: rooted.insecure_registry.clone(),
        ca: rooted.registry_ca.clone(),
        local_roots: rooted.image_root.clone(),
        limits: image::Limits::default(),
    };
    let images = Images::open(&dir.join("images"), images).context("cannot keep images")?;
    let oci = OciContainers::open(&dir.join("oci"), images, &settings)
        .context("this machine cannot run work that brings its own root (--oci)")?;
    Ok(Arc::new(Both::new(Arc::new(plain), Arc::new(oci))))
}
