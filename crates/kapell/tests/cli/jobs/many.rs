//! Very many jobs on one host.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::work::{Ledger, Where};
use crate::bench::try_eventually;
use crate::platform::site::{Site, ask};

const IN_A_FILE: usize = 5_000;
const AT_ONCE: usize = 10_000;
/// Applied so many at a time.
const A_PART: usize = 2_500;
/// So many of them have work, of which each launch costs a process; the others end when their constraint is looked at.
const WITH_WORK: usize = 40;
/// Runs are made so long before their time, in seconds, and somebody has to have applied them before.
const AHEAD: u64 = 15;
/// The longest that whoever asks meanwhile has to wait.
const PATIENCE: Duration = Duration::from_secs(5);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

/// A file of jobs, a line each, as a program would write it.
fn file(jobs: impl Iterator<Item = Value>) -> String {
    jobs.map(|job| format!("---\n{job}\n")).collect()
}

/// One that is never due.
fn idle(number: usize) -> Value {
    json!({"kind": "job", "job_id": format!("job-{number}"), "schedule": "0 0 29 2 *", "command": "true"})
}

fn count(site: &Site, path: &str) -> usize {
    site.get(path).as_array().map_or(0, Vec::len)
}

#[test]
#[expect(clippy::print_stdout, reason = "how long it takes is part of the outcome")]
fn a_file_with_thousands_of_jobs_is_applied_whole_or_not_at_all() {
    let site = Site::up();
    let jobs = || (0..IN_A_FILE).map(idle);
    let wrong = |number: usize, job: Value| {
        file(jobs().enumerate().map(move |(at, it)| if at == number { job.clone() } else { it }))
    };
    site.bench.write("jobs.yaml", file(jobs()));

    // A line of cron that is wrong: seen here.
    let mut bad = idle(4_321);
    bad["schedule"] = json!("0 0 31 2 8");
    site.bench.write("bad.yaml", wrong(4_321, bad));
    let refused = site.kapell(&["job", "apply", "-f", "bad.yaml"]).expect(2);
    refused.stderr_has("bad.yaml:8644:").stderr_has("0 0 31 2 8");
    assert_eq!(count(&site, "/v1/jobs"), 0, "nothing was changed");
    // A workflow that only hosts could have: seen there.
    let mut bad = json!({"kind": "job", "job_id": "job-77"});
    bad["workflow"] = json!({"file": "/nowhere/flow.yaml"});
    site.bench.write("bad.yaml", wrong(77, bad));
    let refused = site.kapell(&["job", "apply", "-f", "bad.yaml"]);
    assert!(matches!(refused.code(), 1 | 2), "{}", refused.stderr);
    refused.stderr_has("/nowhere/flow.yaml");
    assert_eq!(count(&site, "/v1/jobs"), 0, "nothing was changed");

    let first = site.kapell(&["job", "apply", "-f", "jobs.yaml"]).expect(0);
    assert_eq!(first.stdout.lines().filter(|line| line.ends_with(" created")).count(), IN_A_FILE);
    assert_eq!(count(&site, "/v1/jobs"), IN_A_FILE);
    let again = site.kapell(&["job", "apply", "-f", "jobs.yaml"]).expect(0);
    assert_eq!(again.stdout.lines().filter(|line| line.ends_with(" unchanged")).count(), IN_A_FILE);
    let revisions: BTreeSet<u64> = site
        .get("/v1/jobs")
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|job| job["revision"].as_u64())
        .collect();
    assert_eq!(revisions, BTreeSet::from([1]), "nothing was changed");
    println!("{IN_A_FILE} jobs applied in {:?}, again in {:?}", first.took, again.took);
}

/// Due once a day at this second; all but a few are passed over by their constraint.
fn due(ledger: &Ledger, number: usize, at: u64) -> Value {
    let mut job = ledger.job_of(Where::Host, "exit 0");
    job["kind"] = json!("job");
    job["job_id"] = json!(format!("job-{number}"));
    let (hour, minute, second) = (at / 3600 % 24, at / 60 % 60, at % 60);
    job["schedule"] = json!(format!("{second} {minute} {hour} * * *"));
    job["constraints"] = json!([]);
    if number >= WITH_WORK {
        // Hours away from its moment.
        let window = json!({"start": format!("{:02}:00", (hour + 6) % 24), "end": format!("{:02}:00", (hour + 8) % 24)});
        job["constraints"] = json!([{"time_window": {"config": window, "onViolation": ["skip"]}}]);
    }
    job
}

#[test]
#[expect(clippy::print_stdout, reason = "how long it takes is part of the outcome")]
fn ten_thousand_jobs_due_in_one_second_are_run_once_each_and_the_host_answers_meanwhile() {
    let site = Site::up();
    let ledger = Ledger::new(&site.traces());
    // It is not known how long this machine takes to apply them: long enough is found by trying.
    let mut given = 45;
    let at = loop {
        let at = now() + given;
        for from in (0..AT_ONCE).step_by(A_PART) {
            let jobs = (from..from + A_PART).map(|number| due(&ledger, number, at));
            site.bench.write("due.yaml", file(jobs));
            site.kapell(&["job", "apply", "-f", "due.yaml"]).expect(0);
        }
        if now() + AHEAD < at {
            break at;
        }
        assert!(given < 240, "applying {AT_ONCE} jobs takes too long");
        given *= 2;
    };
    let moment = i64::try_from(at * 1000).expect("not that late");
    let done = AtomicBool::new(false);
    let (port, token) = (site.port, site.token());
    let runs = std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                ask(port, &token, "GET", "/v1/jobs/job-0", None).expect("an answer").expect(200);
                longest = longest.max(begun.elapsed());
            }
            longest
        });
        let ended = try_eventually(Duration::from_secs(given + 120), || {
            let runs = site.get("/v1/runs?limit=10000&active=false");
            let runs = runs.as_array()?;
            (runs.len() >= AT_ONCE).then(|| runs.clone())
        });
        done.store(true, Ordering::Relaxed);
        let longest = asks.join().expect("somebody answers");
        let runs = ended.unwrap_or_else(|| panic!("{} runs", count(&site, "/v1/runs?limit=10000")));
        println!("the longest anybody waited for an answer was {longest:?}");
        assert!(longest < PATIENCE, "somebody waited {longest:?}");
        runs
    });
    let of: BTreeSet<&str> = runs.iter().filter_map(|run| run["job_id"].as_str()).collect();
    assert_eq!((runs.len(), of.len()), (AT_ONCE, AT_ONCE), "one of each");
    for run in &runs {
        assert_eq!(
            (&run["scheduled_at"], &run["state"]),
            (&json!(moment), &json!("Completed")),
            "{run}"
        );
    }
    let skipped = runs.iter().filter(|run| run["skipped"] == true).count();
    assert_eq!(skipped, AT_ONCE - WITH_WORK);
    assert_eq!(ledger.launches().len(), WITH_WORK);
    ledger.nothing_twice("at once");
    let ended =
        runs.iter().filter_map(|run| run["completed_at"].as_i64()).max().unwrap_or_default();
    println!("all of {AT_ONCE} had ended {} ms after their moment", ended - moment);
}
