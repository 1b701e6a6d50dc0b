//! Each rule beside facts made by hand.

mod callbacks;
mod cells;
mod leaders;
mod reached;
mod stage;
mod stops;
mod writes;
