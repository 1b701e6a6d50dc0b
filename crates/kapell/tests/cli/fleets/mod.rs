//! Many cells with hosts of their own, and work with roots of its own.

mod chaos;
mod images;
mod zones;
