//! Each rule beside facts made by hand.

mod callbacks;
mod cells;
mod jobs;
mod leaders;
mod reached;
mod stage;
mod stops;
mod writes;
