//! Every driver runs the same suite; those with a server run it against the real one.
//!
//! `KAPELL_TEST_ETCD=http://HOST:PORT`, `KAPELL_TEST_POSTGRES=postgres://…`, `KAPELL_TEST_DYNAMODB=http://IP:PORT` and
//! `KAPELL_TEST_CASSANDRA=cassandra://USER:PASSWORD@HOST:PORT` name the servers.

#[cfg(feature = "cassandra")]
mod cassandra;
mod children;
#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "etcd")]
mod etcd;
mod file;
mod group;
mod mem;
#[cfg(feature = "postgres")]
mod postgres;
