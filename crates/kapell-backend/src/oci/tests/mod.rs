//! Containers by `runc`, as far as this machine can run them.

mod conformance;
mod images;
mod isolation;
mod lab;
mod leftovers;
mod network;
mod starts;
mod trials;
