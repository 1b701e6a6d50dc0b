//! How fast schedules are read, asked and indexed.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use kapell_core::schedule::index::{Index, part};
use kapell_core::schedule::{Moments as _, Schedule};
use kapell_core::seams::Timestamp;
use kapell_sim::bench::parts::ms;
use kapell_sim::bench::usage::thousands;
use kapell_sim::figure::figure;

use crate::Plan;

/// What people write.
const LINES: [&str; 20] = [
    "* * * * *",
    "*/5 * * * *",
    "*/15 * * * *",
    "0 * * * *",
    "@hourly",
    "@daily",
    "30 2 * * *",
    "0 4 * * *",
    "H H * * *",
    "H/15 * * * *",
    "0 9-17 * * 1-5",
    "0 9 * * MON-FRI",
    "15 6 * * SUN",
    "@weekly",
    "@monthly",
    "0 0 1 1 *",
    "0 0 L * *",
    "0 12 15W * *",
    "0 8 * * MON#1",
    "@every 1h30m",
];
const ZONES: [&str; 5] =
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe"];
const NOW: Timestamp = Timestamp(1_794_700_800_000);
const GOAL_MS: f64 = 150.0;
/// Clock changes end in 2200: begin again before that.
const FAR: Timestamp = Timestamp(4_000_000_000_000);

pub(crate) fn measure(plan: Plan) {
    let schedules: Vec<Schedule> = (0..plan.schedules).map(schedule).collect();
    let name = format!("{} schedules", thousands(plan.schedules));
    let (mut whole, mut merging, mut moving) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (index, took, merged) = indexed(&schedules);
        whole.push(ms(took));
        merging.push(ms(merged));
        moving.push(moved(index, &schedules));
    }
    figure(&format!("{name}: indexed"), &whole, "ms", Some(GOAL_MS));
    figure(&format!("{name}: merging the halves of two threads"), &merging, "ms", None);
    figure(&format!("{name}: moving one to its next moment, mean"), &moving, "µs", None);
    parsing(plan);
    asking(plan);
}

fn schedule(number: u32) -> Schedule {
    let at = number as usize;
    let (line, zone) = (LINES[at % LINES.len()], ZONES[at / LINES.len() % ZONES.len()]);
    read(line, zone, &format!("job-{number}"))
}

#[expect(clippy::expect_used, reason = "the lines are written here")]
fn read(line: &str, zone: &str, seed: &str) -> Schedule {
    Schedule::parse(&[line.to_owned()], zone, &[], None, seed).expect("the line is right")
}

/// Indexes all by two threads; how long that took, and how long merging both parts did.
#[expect(clippy::expect_used, reason = "a thread that fails is a mistake")]
fn indexed(schedules: &[Schedule]) -> (Index<u32>, Duration, Duration) {
    let begun = Instant::now();
    let half = schedules.len() / 2;
    let numbered = |from: usize, to: usize| {
        let first = u32::try_from(from).unwrap_or(u32::MAX);
        let some = &schedules[from..to];
        move || part((first..).zip(some).map(|(number, schedule)| (number, schedule, NOW)))
    };
    let parts = thread::scope(|scope| {
        let other = scope.spawn(numbered(half, schedules.len()));
        let one = numbered(0, half)();
        vec![one, other.join().expect("it does not panic")]
    });
    let merging = Instant::now();
    let index = Index::of_parts(parts);
    (index, begun.elapsed(), merging.elapsed())
}

/// Moves all that are due within a minute, in microseconds each.
fn moved(mut index: Index<u32>, schedules: &[Schedule]) -> f64 {
    let due = index.due(NOW..=NOW.after(Duration::from_secs(60)));
    let begun = Instant::now();
    for (at, number) in &due {
        let next = schedules[*number as usize].next_time(*at);
        index.shift(*number, *at, next);
    }
    let count = u32::try_from(due.len().max(1)).unwrap_or(u32::MAX);
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

fn parsing(plan: Plan) {
    let count = plan.schedules / 10;
    let line = |at: u32| format!("{} {} {} * *", at % 60, at / 60 % 24, at / 1_440 % 28 + 1);
    let lines: Vec<String> = (0..count).map(line).collect();
    let round = |_| {
        let begun = Instant::now();
        for line in &lines {
            black_box(read(line, "Europe/Berlin", "job"));
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(count)
    };
    let samples: Vec<f64> = (0..plan.rounds).map(round).collect();
    figure("a schedule: parsed", &samples, "µs", None);
}

/// The next moment, each from the one before, the mean of all lines.
fn asking(plan: Plan) {
    let schedules: Vec<Schedule> =
        LINES.iter().map(|line| read(line, "Europe/Berlin", "job")).collect();
    let calls = plan.schedules / 50;
    let round = |_| {
        let begun = Instant::now();
        for schedule in &schedules {
            let mut at = NOW;
            for _ in 0..calls {
                let next = black_box(schedule).next_after(at);
                at = next.map_or(NOW, |next| next.at);
                if at > FAR {
                    at = NOW;
                }
            }
        }
        let asked = f64::from(calls) * 20.0;
        begun.elapsed().as_secs_f64() * 1e6 / asked
    };
    let samples: Vec<f64> = (0..plan.rounds).map(round).collect();
    figure("a schedule: its next moment", &samples, "µs", None);
}
