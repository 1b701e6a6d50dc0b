//! `kapell` as its users meet it: every test runs the program itself.

mod bad_files;
mod bench;
mod census;
mod drawing;
mod gate;
mod json;
mod looking_back;
mod orphans;
mod running;
mod signals;
mod stream;
mod summary;
mod terminal;
mod text;
mod usage;
