//! Jobs and their runs, on real hosts with real work.

mod alone_on_kubernetes;
mod cancels;
mod duo;
mod failover;
mod hooks;
mod killed;
mod kubernetes;
mod many;
mod meanwhile;
mod receiver;
mod room;
mod rounds;
mod signature;
mod stopped;
mod work;
