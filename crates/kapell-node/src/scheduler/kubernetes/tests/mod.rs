//! On a real cluster, named by `KAPELL_TEST_KUBERNETES`; what none does when it is asked to, on `scripted` ones.

mod alone_on_kubernetes;
mod bad;
mod cancels;
mod conformance;
mod ends;
mod expired;
mod rig;
mod scripted;
