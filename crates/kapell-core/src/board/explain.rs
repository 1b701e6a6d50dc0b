//! Why something is as it is, for people: the rule that applies, what it goes by, what would change it.

mod cell;
mod instance;
mod process;
mod task;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::CellId;
use super::settings::Settings;
use crate::seams::Timestamp;

pub use cell::{CellFacts, cell};
pub use instance::{InstanceFacts, instance};
pub use process::{ProcessFacts, process};
pub use task::{TaskFacts, task};

/// What is as it should be.
const SETTLED: &str = "as desired: nothing is to be done";

/// The rule that holds back what would fit.
fn in_flight_rule(settings: &Settings) -> String {
    let most = settings.in_flight_starts.map_or_else(String::new, |it| format!(" {it}"));
    format!("auction: at most{most} containers start at once (in_flight_starts)")
}

/// An answer to "why?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// One sentence.
    pub summary: String,
    /// The rule that applies, by its name.
    pub rule: String,
    /// What it follows from, one a line.
    pub facts: Vec<String>,
    /// The values that the rule goes by.
    pub inputs: Vec<Input>,
    /// What would change it, the most likely first; nothing where all is well.
    pub remedies: Vec<String>,
    /// When the board tries again by itself.
    pub next_try_at: Option<Timestamp>,
}

/// When the board looks again by itself, at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The next round of the auctioneer, if anything waits for one.
    pub round: Option<Timestamp>,
    /// The next pass of convergence.
    pub pass: Timestamp,
}

impl Due {
    /// When what waits for a cell is tried again: convergence asks for it once more when it is stale.
    fn placement(self, stale_at: Timestamp) -> Timestamp {
        self.round.unwrap_or_else(|| self.pass_after(stale_at))
    }

    /// The first pass that finds what is due then. What is due sooner does not wait for the next one.
    fn pass_after(self, due: Timestamp) -> Timestamp {
        self.pass.max(due)
    }
}

/// A value that a rule goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub name: String,
    pub value: String,
}

fn input(name: &str, value: &impl ToString) -> Input {
    Input { name: name.to_owned(), value: value.to_string() }
}

fn name_of(cell: Option<&CellId>) -> &str {
    cell.map_or("-", CellId::as_str)
}

fn counted(number: u32, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn ordinal(number: u32) -> String {
    let end = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

/// A length of time as people say it.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        172_800.. => format!("{} days", seconds / 86_400),
    }
}

/// The time of day.
fn clock(at: Timestamp) -> String {
    let seconds = at.0.div_euclid(1000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
