//! How fast schedules are read, asked and indexed: `cargo run --release -p kapell-core --example schedule_bench`.
#![expect(clippy::print_stdout, reason = "it is there to print")]

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use kapell_core::schedule::index::{Index, part};
use kapell_core::schedule::{Moments as _, Schedule};
use kapell_core::seams::Timestamp;

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
const COUNT: usize = 1_000_000;
const ROUNDS: usize = 5;
const CALLS: u32 = 20_000;

fn main() {
    each_line();
    parsing();
    indexing();
}

fn schedule(at: usize) -> Schedule {
    let (line, zone) = (LINES[at % LINES.len()], ZONES[at / LINES.len() % ZONES.len()]);
    read(line, zone, &format!("job-{at}"))
}

fn read(line: &str, zone: &str, seed: &str) -> Schedule {
    Schedule::parse(&[line.to_owned()], zone, &[], None, seed).expect("the line is right")
}

/// The least of some rounds: others use the machine too.
fn least(mut round: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

fn each_line() {
    println!(
        "next_after, ns a call, each from the moment before (Europe/Berlin, from November 2026):"
    );
    for line in LINES {
        let schedule = read(line, "Europe/Berlin", "job");
        let took = least(|| {
            let start = Instant::now();
            let mut at = NOW;
            for _ in 0..CALLS {
                match black_box(&schedule).next_after(at) {
                    // Clock changes end in 2200: begin again before that.
                    Some(next) if next.at.0 < 4_000_000_000_000 => at = next.at,
                    Some(_) | None => at = NOW,
                }
            }
            start.elapsed()
        });
        println!("  {line:18} {:6.1}", took.as_secs_f64() * 1e9 / f64::from(CALLS));
    }
}

fn parsing() {
    let lines: Vec<String> = (0..100_000u32)
        .map(|at| format!("{} {} {} * *", at % 60, at / 60 % 24, at / 1_440 % 28 + 1))
        .collect();
    let took = least(|| {
        let start = Instant::now();
        for line in &lines {
            black_box(read(line, "Europe/Berlin", "job"));
        }
        start.elapsed()
    });
    println!("parse 100,000 distinct lines, one core: {took:?}");
}

fn indexing() {
    let schedules: Vec<Schedule> = (0..COUNT).map(schedule).collect();
    let mut index = Index::default();
    let (mut computed, mut merged) = (Duration::MAX, Duration::MAX);
    let took = least(|| {
        let start = Instant::now();
        let half = COUNT / 2;
        let parts = thread::scope(|scope| {
            let of = |from: usize, to: usize| {
                let some = &schedules[from..to];
                move || part((from..).map(small).zip(some), NOW)
            };
            let other = scope.spawn(of(half, COUNT));
            let one = of(0, half)();
            vec![one, other.join().expect("it does not panic")]
        });
        computed = computed.min(start.elapsed());
        let middle = Instant::now();
        index = Index::of_parts(parts);
        merged = merged.min(middle.elapsed());
        start.elapsed()
    });
    println!("index 1,000,000, two threads: {took:?} (parts {computed:?}, merge {merged:?})");
    queries(&mut index, &schedules);
}

fn queries(index: &mut Index<u32>, schedules: &[Schedule]) {
    let start = Instant::now();
    let minute = index.due(Timestamp(NOW.0 + 3_600_000)..=Timestamp(NOW.0 + 3_659_000));
    println!("query of a minute: {} due, {:?}", minute.len(), start.elapsed());
    let start = Instant::now();
    let day = index.due(Timestamp(NOW.0 + 86_400_000)..=Timestamp(NOW.0 + 90_000_000));
    println!("query of an hour, a day ahead: {} due, {:?}", day.len(), start.elapsed());
    let due = index.due(NOW..=Timestamp(NOW.0 + 60_000));
    let start = Instant::now();
    for (at, id) in &due {
        let next = schedules[*id as usize].next_time(*at);
        assert!(index.shift(*id, *at, next), "it was there");
    }
    let each = start.elapsed() / small(due.len().max(1));
    println!("move {} to their next moments: {each:?} each", due.len());
}

fn small(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
