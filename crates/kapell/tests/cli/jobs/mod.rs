//! Jobs and their runs, on real hosts with real work.

mod killed;
mod stopped;
