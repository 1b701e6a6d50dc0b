//! Elections and the conductor, from outside: over stores, under faults, in the seed's words.

mod etcd;
mod file;
mod killer;
mod life;
mod mem;
mod players;
mod postgres;
mod races;
mod seeds;
mod servers;
