//! Everything at random: at the end all is as desired, and nothing is left over.

mod deeds;
mod diary;
mod remains;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::diary::Diary;
use self::remains::Remains;
use crate::bench::skip;
use crate::fleets::IMPATIENT;
use crate::fleets::root::Root;
use crate::leadership::cluster::Kind;
use crate::platform::chance::Chance;
use crate::platform::fleet::Fleet;

/// The first of them run work with roots of its own, where this machine can.
const CELLS: usize = 3;
const CELLS_WITH_ROOTS: usize = 2;
/// Between two deeds, at most.
const LONGEST_CALM: Duration = Duration::from_millis(800);
const MORE: [(&str, &str); 3] =
    [("KAPELL_STOP_GRACE", "1s"), ("KAPELL_CRASH_WAIT", "1s"), ("KAPELL_LONGEST_CRASH_WAIT", "4s")];

/// How long it goes on, in seconds; `KAPELL_CHAOS_SECONDS` says otherwise.
fn duration() -> Duration {
    let seconds = std::env::var("KAPELL_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(20))
}

#[test]
#[expect(clippy::print_stdout, reason = "what happened is part of the outcome of a soak run")]
fn whatever_happens_in_the_end_all_is_as_desired_and_nothing_is_left_over() {
    let chance = Chance::new();
    let diary = Diary::begin(chance.seed());
    let logs = Some(diary.dir().to_owned());
    let fleet = match Fleet::logged(Kind::Etcd, 2, &[&IMPATIENT[..], &MORE].concat(), logs) {
        Ok(fleet) => fleet,
        Err(reason) => return skip("chaos", &reason),
    };
    let root = Root::make().inspect_err(|reason| skip("chaos of work with its own root", reason));
    let mut chaos = Chaos::new(fleet, root.ok(), chance, diary);
    let begun = Instant::now();
    while begun.elapsed() < duration() {
        chaos.deed();
        chaos.chance.moment(LONGEST_CALM);
    }
    chaos.heal();
    chaos.all_is_as_desired();
    chaos.drain();
    chaos.nothing_is_left();
    println!("{}", chaos.diary.summary());
}

struct Chaos {
    fleet: Fleet,
    remains: Remains,
    root: Option<Root>,
    chance: Chance,
    /// What was acknowledged last.
    desired: BTreeMap<String, usize>,
    /// What nobody answered may have been done or not.
    unknown: BTreeSet<String>,
    frozen: Vec<JoinHandle<()>>,
    tasks: usize,
    /// The last to go: all others still tell something.
    diary: Diary,
}

impl Chaos {
    fn new(mut fleet: Fleet, root: Option<Root>, chance: Chance, diary: Diary) -> Self {
        for (at, zone) in ["z1", "z2", "z3"].into_iter().enumerate() {
            let mut arguments = vec!["--zone", zone];
            let root = root.as_ref().filter(|_| at < CELLS_WITH_ROOTS);
            arguments.extend(root.iter().flat_map(|root| root.arguments()));
            fleet.add_cell_with(None, &arguments);
        }
        assert_eq!(fleet.cells.len(), CELLS);
        // What a cell brings back that nobody desires any more is stopped.
        fleet.ask("PUT", "/v1/domains/test", None).expect(200);
        Self {
            remains: Remains::new(&fleet),
            fleet,
            root,
            chance,
            desired: BTreeMap::new(),
            unknown: BTreeSet::new(),
            frozen: Vec::new(),
            tasks: 0,
            diary,
        }
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fleet.end();
            self.remains.clear();
        }
    }
}
