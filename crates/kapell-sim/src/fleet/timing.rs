use std::time::Duration;

use kapell_core::board::Settings;
use kapell_core::planted::Planted;
use kapell_node::cell::CellSettings;
use kapell_node::scheduler;

use super::jobs::LONGEST_ACTION;
use super::jobs::want::MOST_RETRIES;
use super::jobs::yard::LONGEST_WORK;
use super::plan::{Fault, Plan};

/// How long a leader's lease is.
pub(super) const LEASE: Duration = Duration::from_secs(10);
/// How late a message is at most.
pub(super) const LATEST: Duration = Duration::from_secs(6);
/// How long cells and clients wait for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);
/// How long a client that was once left without an answer waits after it has got one: what it
/// sent before may be on its way, or in a host that sleeps.
pub(super) const LINGER: Duration = Duration::from_secs(16);
/// How far a wall clock is set wrong at most.
pub(super) const JUMP: Duration = Duration::from_secs(20);
/// The same where there are jobs only: they go by the wall clock.
pub(super) const FAR_JUMP: Duration = Duration::from_secs(600);
/// After so long whatever has gone is there again, or started anew.
pub(super) const BACK: Duration = Duration::from_secs(12);

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The board's timers, as short as they may be next to its fixed ones.
pub(super) fn board(planted: Planted) -> Settings {
    Settings {
        presence_ttl: seconds(4),
        converge_every: seconds(8),
        stale_unclaimed: seconds(8),
        kick_task: seconds(30),
        pending_task: seconds(60),
        completed_task: seconds(60),
        evacuation: seconds(30),
        immediate_restarts: 3,
        crash_wait: seconds(3),
        longest_crash_wait: seconds(12),
        most_crashes: 200,
        crash_reset: seconds(30),
        in_flight_starts: None,
        planted,
    }
}

pub(super) fn cell(planted: Planted) -> CellSettings {
    CellSettings {
        poll_every: seconds(6),
        evacuating_poll_every: seconds(3),
        present_every: seconds(1),
        reservation: seconds(15),
        evacuation: seconds(30),
        stop_grace: seconds(2),
        ending: seconds(10),
        users: None,
        // Nothing here listens, and no port of the real machine is to be asked for.
        ports: 0..0,
        planted,
        ..CellSettings::default()
    }
}

/// The scheduler's timers; a sign of life is due every three seconds while something is done for a run.
pub(super) fn scheduler() -> scheduler::Settings {
    scheduler::Settings {
        ahead: seconds(3),
        heartbeat: seconds(4),
        most_missed: 3,
        safety_pass: seconds(10),
        ..scheduler::Settings::default()
    }
}

/// By when everything is as it is to be, once nothing goes wrong and nobody asks for anything.
///
/// One after the other: a lease runs out and its successor waits for cells; what is stale is noticed
/// in the next pass, twice; a reservation that nobody hears of runs out; a callback is taken up again;
/// and where there are such things, a wait after a crash, an evacuation that takes all its time, and a
/// time in the future that a wall clock set wrong has left in a record.
pub(super) fn bound(plan: &Plan) -> Duration {
    let (board, cell) = (board(Planted::default()), cell(Planted::default()));
    let when = |it: bool, wait: Duration| if it { wait } else { Duration::ZERO };
    let leader = LEASE * 2 + BACK + board.presence_ttl * 2;
    let notice = board.converge_every * 2 + board.stale_unclaimed + cell.poll_every * 2;
    let tasks = board.kick_task * 2;
    leader
        + notice
        + cell.reservation
        + tasks
        + when(plan.crashing_apps, board.longest_crash_wait)
        + when(plan.evacuations, cell.evacuation + cell.ending + BACK)
        + when(plan.faults.contains(&Fault::ClockJump), JUMP)
}

/// By when all runs have ended after that, and nothing is left of their work.
///
/// Each of all attempts of a run: its check, a long action, a launch that takes all its time, work that takes
/// all its time and is ended, a check after it, and a wait. What a cell has that is gone is waited for five times.
pub(super) fn run_bound(plan: &Plan) -> Duration {
    let attempt = seconds(10) + LONGEST_ACTION + seconds(12) + LONGEST_WORK + seconds(5 + 3 + 4);
    let when = |it: bool, wait: Duration| if it { wait } else { Duration::ZERO };
    when(plan.jobs, attempt * (1 + MOST_RETRIES))
        + when(plan.jobs && plan.faults.contains(&Fault::CellCrash), seconds(5 * 62))
}
