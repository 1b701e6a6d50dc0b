//! A conductor's life in every order that its tasks can take: launch, shutdown from several
//! sides, a loss, services that fail, hang and come late, under a scheduler that interleaves
//! them at each step it can see.

mod board;
mod order;
mod scene;
mod script;
mod seat;
mod service;
mod tasks;
#[cfg(test)]
mod tests;

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};

/// Runs `schedules` lives whose order is drawn anew at every step.
pub fn explore(seed: u64, schedules: usize) {
    run(RandomScheduler::new_from_seed(seed, schedules));
}

/// Runs `schedules` lives in which few, unlucky preemptions happen.
pub fn explore_few_switches(seed: u64, switches: usize, schedules: usize) {
    run(PctScheduler::new_from_seed(seed, switches, schedules));
}

/// Runs the one life that a failed exploration has printed.
pub fn replay(schedule: &str) {
    run(ReplayScheduler::new_from_encoded(schedule));
}

fn run(scheduler: impl Scheduler + 'static) {
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    Runner::new(scheduler, config).run(|| shuttle::future::block_on(scene::play()));
}
