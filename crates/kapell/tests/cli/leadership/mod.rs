//! Hosts, seats and stores, each test with real processes on a real store.

mod access;
#[cfg(feature = "cassandra")]
mod cassandra;
pub(crate) mod cluster;
mod damage;
mod direct;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod failover;
mod faults;
pub(crate) mod proxy;
mod refusing;
mod servers;
mod shutdown;
#[cfg(feature = "dynamodb")]
pub(crate) mod throttle;
mod transfer;
mod wrong;

use cluster::{Cluster, Kind};

/// Makes one test a store of a function that takes a cluster.
macro_rules! on_each_store {
    ($($name:ident: $file:ident, $etcd:ident, $postgres:ident;)*) => {$(
        #[test]
        fn $file() {
            $crate::leadership::on($crate::leadership::Kind::File, stringify!($file), $name);
        }
        #[test]
        fn $etcd() {
            $crate::leadership::on($crate::leadership::Kind::Etcd, stringify!($etcd), $name);
        }
        #[test]
        fn $postgres() {
            $crate::leadership::on($crate::leadership::Kind::Postgres, stringify!($postgres), $name);
        }
    )*};
}
pub(crate) use on_each_store;

/// The same, for what only a store with leases can do.
macro_rules! on_each_server {
    ($($name:ident: $etcd:ident, $postgres:ident;)*) => {$(
        #[test]
        fn $etcd() {
            $crate::leadership::on($crate::leadership::Kind::Etcd, stringify!($etcd), $name);
        }
        #[test]
        fn $postgres() {
            $crate::leadership::on($crate::leadership::Kind::Postgres, stringify!($postgres), $name);
        }
    )*};
}
pub(crate) use on_each_server;

/// Makes one test of a copy from a store of one kind into one of another.
#[cfg(any(feature = "cassandra", feature = "dynamodb"))]
macro_rules! on_each_pair {
    ($($name:ident: $from:ident, $to:ident;)+) => {$(
        #[test]
        fn $name() {
            let (from, to) = ($crate::leadership::Kind::$from, $crate::leadership::Kind::$to);
            $crate::leadership::transfer::a_small_copy_goes(from, to, stringify!($name));
        }
    )+};
}
#[cfg(any(feature = "cassandra", feature = "dynamodb"))]
use on_each_pair;

/// How often a test does again what may go wrong once in a while.
pub(crate) fn rounds(usual: usize) -> usize {
    let soak = std::env::var("KAPELL_SOAK_ROUNDS").ok().and_then(|text| text.parse().ok());
    soak.unwrap_or(usual)
}

fn on(kind: Kind, name: &str, test: fn(&Cluster)) {
    match Cluster::new(kind) {
        Ok(cluster) => test(&cluster),
        Err(reason) => crate::bench::skip(&format!("leadership::{name}"), &reason),
    }
}
