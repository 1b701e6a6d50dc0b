//! Every rule of Kapell, and nothing else.
//!
//! A function here goes from state (and the time, and ids, handed in) to actions with reasons. No
//! I/O, no clock, no randomness, no threads: so every rule can be tested directly and simulated.

pub mod access;
pub mod auction;
pub mod audit;
pub mod board;
pub mod causes;
pub mod constraint;
pub mod election;
pub mod exec;
pub mod expand;
pub mod flow;
pub mod job;
pub mod journal;
pub mod kubernetes;
pub mod log;
pub mod manifest;
pub mod percent;
pub mod planted;
pub mod recipe;
pub mod rep;
pub mod run;
pub mod schedule;
pub mod seams;
pub mod seat;
pub mod secret;
pub mod source;
pub mod tables;
pub mod workflow;
pub mod yaml;
