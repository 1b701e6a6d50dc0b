//! Elections and the conductor, from outside: over stores, under faults, in the seed's words.

#[cfg(feature = "cassandra")]
mod cassandra;
#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "etcd")]
mod etcd;
mod file;
mod killer;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod life;
mod mem;
mod players;
#[cfg(feature = "postgres")]
mod postgres;
mod races;
mod seeds;
mod servers;
