//! Every driver runs the same suite; those with a server run it against the real one.
//!
//! `KAPELL_TEST_ETCD=http://HOST:PORT` and `KAPELL_TEST_POSTGRES=postgres://…` name the servers.

mod children;
mod etcd;
mod file;
mod group;
mod mem;
mod postgres;
