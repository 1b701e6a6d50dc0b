//! What every simulation is made of: chance, clocks, runtimes that are stepped, and a store at the
//! other end of a network.

pub(crate) mod chance;
pub(crate) mod clock;
pub(crate) mod link;
pub(crate) mod observed;
#[cfg(test)]
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod stepper;
pub(crate) mod sum;
