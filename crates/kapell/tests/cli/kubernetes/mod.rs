//! Steps of workflows on a real Kubernetes cluster, which `kapell process` speaks with itself.

mod bad;
mod deploy;
mod lab;
mod resuming;
mod steps;
