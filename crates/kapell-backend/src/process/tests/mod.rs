//! Real shims and real programs.

mod ends;
mod faults;
mod killed;
mod lab;
mod many;
mod output;
mod restart;
mod stopping;
mod users;
