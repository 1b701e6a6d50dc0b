//! Killed at any moment, a run leaves no process and can be resumed without repeating anything.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::bench::{Bench, pause};
use crate::running::send;

/// A chain into a diamond, a fan with a daemon, and a join; every step notes that it runs.
const FLOW: &str = "
workers: 3
steps:
  - {name: a, command: 'echo a >> ledger; sleep 0.003'}
  - {name: b, command: 'echo b >> ledger; sleep 0.002', depends: a}
  - {name: left, command: 'echo left >> ledger; sleep 0.004', depends: b}
  - {name: right, command: 'echo right >> ledger; sleep 0.001', depends: b}
  - {name: meet, command: 'echo meet >> ledger', depends: [left, right], requires: all}
  - {name: f1, command: 'echo f1 >> ledger; sleep 0.002', depends: meet}
  - {name: f2, command: 'echo f2 >> ledger; (setsid sleep 600 > home/f2 2>&1 &)', depends: meet}
  - {name: f3, script: 'echo f3 >> ledger; sleep 0.003', depends: meet}
  - {name: f4, command: 'echo f4 >> ledger; echo out', depends: meet, output: F4}
  - {name: join, depends: [f1, f2, f3, f4], requires: all}
  - {name: y, command: 'echo y >> ledger; test \"$F4\" = out', depends: join}
  - {name: z, command: 'echo z >> ledger; sleep 0.001', depends: y}
";
const STEPS: usize = 12;

/// splitmix64: chance that a seed repeats.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Steps whose success any run wrote down. The test reads the journals by itself.
fn journalled(bench: &Bench) -> BTreeSet<String> {
    let mut command = bench.command("sh");
    command.args(["-c", "test ! -d state || find state -name journal.jsonl"]);
    let mut done = BTreeSet::new();
    for path in bench.run_command(command).expect(0).stdout.lines() {
        let text = fs::read_to_string(bench.path(path)).expect("a journal");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
            if record["event"] == "node_completed" {
                done.insert(record["node"].as_str().expect("a name").to_owned());
            }
        }
    }
    done
}

fn ledger(bench: &Bench) -> Vec<String> {
    let text = fs::read_to_string(bench.path("ledger")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A bench, and what holds of every run on it.
struct Round<'a> {
    bench: Bench,
    about: &'a str,
    done: BTreeSet<String>,
    noted: usize,
}

impl Round<'_> {
    /// Checks what a run did that has just ended, however it ended.
    fn check(&mut self) {
        self.bench.all_gone_within(Duration::from_secs(2));
        let notes = ledger(&self.bench);
        let repeated: Vec<_> =
            notes[self.noted..].iter().filter(|step| self.done.contains(*step)).collect();
        let (about, done) = (self.about, &self.done);
        assert!(repeated.is_empty(), "{about}: ran again: {repeated:?}; done before: {done:?}");
        self.done = journalled(&self.bench);
        let invented: Vec<_> =
            self.done.iter().filter(|step| *step != "join" && !notes.contains(step)).collect();
        assert!(invented.is_empty(), "{about}: written down but never ran: {invented:?}");
        self.noted = notes.len();
    }

    /// Starts, and kills one of our two processes after a while.
    fn kill(&mut self, args: &[&str], delay: Duration, worker: bool) {
        let running = self.bench.start(args);
        pause(delay);
        let who = if worker { running.worker_now() } else { None };
        send(who.unwrap_or(running.pid()), Signal::SIGKILL);
        running.finish();
        self.check();
    }
}

/// One run that is killed once or twice, and its continuation. Tells how far it got at first.
fn round(chance: &mut Chance, whole_us: u64, about: &str) -> usize {
    const ANEW: [&str; 4] = ["process", "-l", "none", "flow.yaml"];
    const RESUMED: [&str; 5] = ["process", "-l", "none", "--resume", "flow.yaml"];
    let bench = Bench::with(FLOW);
    let mut round = Round { bench, about, done: BTreeSet::new(), noted: 0 };
    let mut delay = || Duration::from_micros(chance.below(whole_us + whole_us / 4));
    let (first, second) = (delay(), delay());
    round.kill(&ANEW, first, chance.below(2) == 0);
    let got_to = round.done.len();
    let refused = round.bench.run(&["process", "--dry-run", "--resume", "flow.yaml"]);
    if refused.code() == 2 {
        // Killed before the journal was there.
        refused.stderr_has("there is no earlier run of `flow.yaml`");
        assert_eq!(round.noted, 0, "{about}: a step ran and no run was written down");
        return got_to;
    }
    if chance.below(2) == 0 {
        round.kill(&RESUMED, second, chance.below(2) == 0);
    }
    let resumed = round.bench.run(&RESUMED);
    assert_eq!(resumed.code(), 0, "{about}: {}\n{}", resumed.stdout, resumed.stderr);
    round.check();
    assert_eq!(round.done.len(), STEPS, "{about}: {:?}", round.done);
    got_to
}

fn number(variable: &str, otherwise: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(otherwise, |value| value.parse().expect("a number"))
}

#[test]
#[expect(clippy::print_stderr, reason = "the seed repeats a failure")]
fn soak_kill_and_resume() {
    let rounds = number("KAPELL_SOAK_ROUNDS", 100);
    let seed = number("KAPELL_SOAK_SEED", 0x6b61_7065_6c6c);
    // How long an undisturbed run takes here, so that kills fall everywhere in it.
    let bench = Bench::with(FLOW);
    let whole = bench.run(&["process", "-l", "none", "flow.yaml"]).expect(0).took;
    let whole_us = u64::try_from(whole.as_micros()).expect("not long").max(10_000);
    eprintln!("soak: seed {seed}, {rounds} rounds, a run takes {whole_us} µs");
    let mut chance = Chance(seed);
    let mut amid = 0;
    for at in 0..rounds {
        let about = format!("KAPELL_SOAK_SEED={seed}, round {at}");
        let got_to = round(&mut chance, whole_us, &about);
        amid += u64::from((1..STEPS).contains(&got_to));
    }
    eprintln!("soak: {amid} runs were killed between their first and their last step");
    assert!(rounds < 50 || amid > rounds / 5, "only {amid} of {rounds} kills fell amid a run");
}
