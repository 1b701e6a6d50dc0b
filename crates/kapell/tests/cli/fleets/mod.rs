//! Many cells with hosts of their own, and work with roots of its own.

mod images;
pub(crate) mod root;
mod zones;
