//! Errands with a pretended board.

mod board;
mod errands;
mod shapes;
