//! Jobs and their runs, on real hosts with real work.

mod cancels;
mod duo;
mod failover;
mod hooks;
mod killed;
mod many;
mod meanwhile;
mod receiver;
mod rounds;
mod signature;
mod stopped;
mod work;
