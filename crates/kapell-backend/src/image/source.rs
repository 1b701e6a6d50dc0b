use std::fs::File;
use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::digest::Digest;
use super::document::Descriptor;
use super::error::Error;
use super::layout::Layout;
use super::registry::{Registry, cut_short};
use super::store::Temp;

/// Where the parts of an image come from. Whatever comes has the digest that was asked for.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Layout(Layout),
    Registry(Arc<Registry>),
}

impl Source {
    /// The manifest or index that was asked for.
    pub(super) async fn top(&self) -> Result<(Digest, Vec<u8>), Error> {
        match self {
            Self::Layout(layout) => {
                let layout = layout.clone();
                blocking(move || {
                    let top = layout.top()?;
                    Ok((top.digest.clone(), layout.document(&top)?))
                })
                .await
            }
            Self::Registry(registry) => registry.top().await,
        }
    }

    /// What is known of the top without asking anybody.
    pub(super) fn pinned(&self) -> Option<&Digest> {
        match self {
            Self::Layout(_) => None,
            Self::Registry(registry) => registry.pinned(),
        }
    }

    pub(super) async fn manifest(&self, wanted: &Descriptor) -> Result<Vec<u8>, Error> {
        match self {
            Self::Layout(layout) => document(layout, wanted).await,
            Self::Registry(registry) => {
                let digest = &wanted.digest;
                registry.manifest(&digest.to_string(), Some(digest)).await
            }
        }
    }

    pub(super) async fn configuration(&self, wanted: &Descriptor) -> Result<Vec<u8>, Error> {
        match self {
            Self::Layout(layout) => document(layout, wanted).await,
            Self::Registry(registry) => registry.configuration(wanted).await,
        }
    }

    /// A layer at its beginning; `temp` may be used for it.
    pub(super) async fn layer(&self, wanted: &Descriptor, temp: &Arc<Temp>) -> Result<File, Error> {
        match self {
            Self::Layout(layout) => {
                let (layout, wanted) = (layout.clone(), wanted.clone());
                blocking(move || layout.layer(&wanted)).await
            }
            Self::Registry(registry) => registry.layer(wanted, temp).await,
        }
    }
}

async fn document(layout: &Layout, wanted: &Descriptor) -> Result<Vec<u8>, Error> {
    let (layout, wanted) = (layout.clone(), wanted.clone());
    blocking(move || layout.document(&wanted)).await
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(cut_short)?
}
