//! A run as a whole: scripts of commands under mock time, random graphs, every order.

mod case;
mod chaos;
mod conditions;
mod driver;
mod failure;
mod handlers;
mod makespan;
mod model;
mod orders;
mod random;
mod resume;
mod retry;
mod selection;
mod signals;
mod size;
mod timeouts;
mod watch;
