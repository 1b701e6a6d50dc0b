//! Which engine the embedded store stands on: `cargo run --release -- [rounds] [milliseconds a slice]`.

mod batch;
mod engine;
mod load;
mod ours;
mod stall;
mod stats;

use std::path::Path;
use std::time::Duration;

use engine::{Engine, Name};
use stats::Series;
use tokio::runtime::Runtime;

const TASKS: [usize; 3] = [1, 8, 64];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number =
        |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (rounds, slice) = (number(15), Duration::from_millis(number(200)));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    // On the disk that the program lies on: a temporary directory may be in memory.
    let place = tempfile::tempdir_in(".").expect("a place for files");

    if rounds == 0 {
        return load::ours(&runtime, place.path(), 5);
    }
    println!("durable compare-and-swaps a second, median (range) of {rounds} rounds of {slice:?}");
    println!(
        "{:12} {:>5} {:>10} {:>17} {:>20}",
        "engine", "tasks", "per second", "range", "of raw (quartiles)"
    );
    for tasks in TASKS {
        compare(&runtime, place.path(), tasks, rounds, slice);
    }
    load::measure(&runtime, place.path(), rounds.min(5));
    stall::measure(&runtime, place.path());
}

/// Lets the engines take turns in short slices: others who use the machine then disturb all alike.
fn compare(runtime: &Runtime, place: &Path, tasks: usize, rounds: u64, slice: Duration) {
    let create = |name| Engine::create(name, &place.join(format!("{name:?}-{tasks}")));
    let mut engines = Name::ALL.map(create);
    let mut rates = Name::ALL.map(|_| Series::default());
    let mut ratios = Name::ALL.map(|_| Series::default());
    for _ in 0..rounds {
        let mut raw = 1.0;
        for (index, engine) in engines.iter_mut().enumerate() {
            let rate = runtime.block_on(engine.swaps(tasks, slice));
            if Name::ALL[index] == Name::Raw {
                raw = rate;
            }
            rates[index].add(rate);
            ratios[index].add(rate / raw);
        }
    }
    for (index, name) in Name::ALL.into_iter().enumerate() {
        let (rate, ratio) = (&rates[index], &ratios[index]);
        println!(
            "{:12} {tasks:5} {:10.0} {:>17} {:6.2} ({:.2}–{:.2})",
            format!("{name:?}").to_lowercase(),
            rate.median(),
            format!("{:.0}–{:.0}", rate.least(), rate.most()),
            ratio.median(),
            ratio.at(250),
            ratio.at(750)
        );
    }
    drop(engines);
    for name in Name::ALL {
        std::fs::remove_dir_all(place.join(format!("{name:?}-{tasks}"))).expect("remove");
    }
}
