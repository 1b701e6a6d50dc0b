//! Whole platforms in one thread, from one seed: real hosts with the real board and auctioneer, real
//! cells, over machines, a network, a store and clocks that fail in every way they can.

mod checks;
mod fact;
mod plan;
mod view;
