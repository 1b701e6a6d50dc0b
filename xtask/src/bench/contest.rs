//! Everyone runs the same graph, in turns.

use super::files::Files;
use super::lab::{Lab, Runner, Usage};
use super::mode::Mode;
use super::row::{Goal, Row};
use super::shape::Shape;
use crate::error::Result;

const PLAIN_CPU: Goal = Goal::AtMost(1.10);
const SHELL_CPU: Goal = Goal::AtMost(1.05);
const MAKE_WALL: Goal = Goal::AtMost(1.10);
const NINJA_WALL: Goal = Goal::Below(1.00);

/// A graph and how often to run it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contest {
    pub(crate) shape: Shape,
    pub(crate) plain_rounds: usize,
    pub(crate) shell_rounds: usize,
}

/// The runs of one runner, in the order of the rounds.
struct Entry {
    runner: Runner,
    runs: Vec<Usage>,
}

impl Contest {
    pub(crate) fn hold(&self, lab: &Lab) -> Result<Vec<Row>> {
        let everyone = [Runner::Floor, Runner::Kapell, Runner::Make, Runner::Ninja];
        let plain = self.rounds(lab, Mode::Plain, self.plain_rounds, &everyone)?;
        let shell = self.rounds(lab, Mode::Shell, self.shell_rounds, &everyone[..2])?;
        let (cpu, wall) = (|usage: &Usage| usage.cpu, |usage: &Usage| usage.wall);
        let row = |name: &str, samples: Vec<f64>, goal| {
            Row::new(format!("{}: {name}", self.shape.name()), samples).goal(goal)
        };
        let mut rows = vec![
            row("CPU, plain, kapell / floor", ratios(&plain, Runner::Floor, cpu), PLAIN_CPU),
            row("CPU, sh, kapell / sh floor", ratios(&shell, Runner::Floor, cpu), SHELL_CPU),
            row("wall, kapell / make", ratios(&plain, Runner::Make, wall), MAKE_WALL),
            row("wall, kapell / ninja", ratios(&plain, Runner::Ninja, wall), NINJA_WALL),
        ];
        rows.extend(self.context(&plain, ""));
        rows.extend(self.context(&shell, " sh"));
        Ok(rows)
    }

    fn rounds(
        &self,
        lab: &Lab,
        mode: Mode,
        rounds: usize,
        runners: &[Runner],
    ) -> Result<Vec<Entry>> {
        let files = Files::write(lab.scratch.path(), self.shape, mode)?;
        let mut entries: Vec<Entry> =
            runners.iter().map(|runner| Entry { runner: *runner, runs: Vec::new() }).collect();
        for round in 0..rounds {
            eprintln!("{} {}, round {} of {rounds}", self.shape.name(), mode.name(), round + 1);
            // Every other round backwards: nobody is always the one who runs behind ninja.
            if round % 2 == 1 {
                entries.reverse();
            }
            for entry in entries.iter_mut().filter(|entry| lab.has(entry.runner)) {
                entry.runs.push(lab.run(entry.runner, &files)?);
            }
            if round % 2 == 1 {
                entries.reverse();
            }
        }
        Ok(entries)
    }

    /// The figures behind the ratios.
    fn context(&self, entries: &[Entry], suffix: &str) -> Vec<Row> {
        let steps = f64::from(u32::try_from(self.shape.steps()).unwrap_or(u32::MAX));
        let mut rows = Vec::new();
        for entry in entries {
            let name = format!("{}: {}{suffix}", self.shape.name(), entry.runner.name());
            let cpu = entry.runs.iter().map(|usage| usage.cpu * 1000.0 / steps);
            let wall = entry.runs.iter().map(|usage| usage.wall);
            rows.push(Row::new(format!("{name}, CPU"), cpu).unit("ms/step"));
            rows.push(Row::new(format!("{name}, wall"), wall).unit("s"));
        }
        rows
    }
}

/// For every round, kapell's figure by another's: what slows down a whole round on a busy
/// machine falls out.
fn ratios(entries: &[Entry], other: Runner, figure: fn(&Usage) -> f64) -> Vec<f64> {
    let runs = |runner| {
        let entry = entries.iter().find(|entry| entry.runner == runner);
        entry.map_or(&[][..], |entry| &entry.runs)
    };
    let pairs = runs(Runner::Kapell).iter().zip(runs(other));
    pairs.map(|(kapell, other)| figure(kapell) / figure(other)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(runner: Runner, walls: &[f64]) -> Entry {
        let runs = walls.iter().map(|wall| Usage { cpu: 0.0, wall: *wall }).collect();
        Entry { runner, runs }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let entries = [
            entry(Runner::Make, &[1.0, 10.0, 2.0]),
            entry(Runner::Kapell, &[1.5, 20.0, 2.0]),
            entry(Runner::Ninja, &[]),
        ];
        assert_eq!(ratios(&entries, Runner::Make, |usage| usage.wall), [1.5, 2.0, 1.0]);
        assert!(ratios(&entries, Runner::Ninja, |usage| usage.wall).is_empty());
    }
}
