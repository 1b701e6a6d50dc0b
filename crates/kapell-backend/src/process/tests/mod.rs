//! Real shims and real programs.

mod conformance;
mod ends;
mod exec;
mod faults;
mod groups;
mod killed;
mod lab;
mod launcher;
mod many;
mod masking;
mod output;
mod restart;
mod stopping;
mod users;
