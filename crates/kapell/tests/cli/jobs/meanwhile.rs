//! Jobs that are deleted, changed or paused while they run.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::work::{Ledger, Where, open_file};
use crate::bench::{LIMIT, try_eventually};
use crate::platform::site::{Site, WORK};

/// A platform, and work that goes on until it is let go.
struct Scene {
    site: Site,
    ledger: Ledger,
    traces: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let site = Site::up();
        let traces = site.traces();
        let ledger = Ledger::new(&traces);
        Self { site, ledger, traces }
    }

    /// Waits at a gate, then does the rest.
    fn gated(&self, gate: &str, rest: &str) -> String {
        let gate = self.traces.join(gate);
        format!("until test -e {}; do sleep 0.05; done; {rest}", gate.display())
    }

    fn open(&self, gate: &str) {
        fs::write(self.traces.join(gate), "").expect("a file can be written");
    }

    fn apply(&self, job: &Value) {
        let answer = self.site.ask("POST", "/v1/jobs", Some(job));
        assert!(matches!(answer.status, 200 | 201), "{}", answer.body);
    }

    /// Has it run, and waits until its work does.
    fn runs(&self, job: &str) -> String {
        let path = format!("/v1/jobs/{job}/trigger");
        let run = self.site.ask("POST", &path, Some(&json!({}))).expect(201).json();
        let run = run["run_id"].as_str().expect("an id").to_owned();
        self.site.until(&format!("{run} to run"), || {
            let launched = self.ledger.launches().keys().any(|line| line.starts_with(&run));
            (launched && self.run(&run)?["state"] == "Running").then_some(())
        });
        run
    }

    /// What is known of a run; none if it is forgotten.
    fn run(&self, id: &str) -> Option<Value> {
        let answer = self.site.ask("GET", &format!("/v1/runs/{id}"), None);
        (answer.status == 200).then(|| answer.json())
    }

    #[track_caller]
    fn ends(&self, id: &str) -> Value {
        self.site.until(&format!("{id} to end"), || {
            self.run(id).filter(|run| run["completed_at"].is_number())
        })
    }

    fn is_gone(&self, job: &str) -> bool {
        self.site.ask("GET", &format!("/v1/jobs/{job}"), None).status == 404
    }

    /// All that the work wrote to a file.
    fn wrote(&self, file: &str) -> String {
        fs::read_to_string(self.traces.join(file)).unwrap_or_default()
    }
}

#[test]
fn a_job_that_is_deleted_while_it_runs_lets_its_runs_end_and_goes_with_the_last() {
    let scene = Scene::new();
    let file = open_file(scene.traces.join("done"));
    for place in Where::ALL {
        let done = format!("echo {} >> {}", place.name(), file.display());
        scene.apply(&scene.ledger.job_of(place, &scene.gated("go", &done)));
    }
    let runs = Where::ALL.map(|place| scene.runs(place.name()));
    for place in Where::ALL {
        scene.site.kapell(&["job", "delete", place.name()]).expect(0);
        // Nothing more of it begins.
        let path = format!("/v1/jobs/{}/trigger", place.name());
        let refused = scene.site.ask("POST", &path, Some(&json!({})));
        assert!(matches!(refused.status, 404 | 409), "{}: {}", refused.status, refused.body);
    }
    for run in &runs {
        assert_eq!(scene.run(run).expect("it is there")["state"], "Running", "{run}");
    }
    scene.open("go");
    for place in Where::ALL {
        let name = place.name();
        scene.site.until(&format!("{name} to go"), || scene.is_gone(name).then_some(()));
    }
    scene.site.until("its runs to go", || {
        scene.site.get("/v1/runs").as_array()?.is_empty().then_some(())
    });
    let mut done: Vec<String> = scene.wrote("done").lines().map(str::to_owned).collect();
    done.sort();
    assert_eq!(done, ["a-workflow", "on-a-cell", "on-the-host"]);
    scene.ledger.nothing_twice("deleted");
}

#[test]
fn a_job_that_is_deleted_with_its_runs_leaves_no_work_behind() {
    let scene = Scene::new();
    let mark = scene.site.bench.dir().file_name().expect("a name").to_string_lossy().into_owned();
    for place in Where::ALL {
        let stays = format!("exec env {WORK}={mark} sleep 1000");
        scene.apply(&scene.ledger.job_of(place, &stays));
    }
    for place in Where::ALL {
        scene.runs(place.name());
    }
    scene.site.until("all to work", || (scene.site.work().len() == 3).then_some(()));
    for place in Where::ALL {
        scene.site.kapell(&["job", "delete", "--cancel-runs", place.name()]).expect(0);
    }
    for place in Where::ALL {
        let name = place.name();
        scene.site.until(&format!("{name} to go"), || scene.is_gone(name).then_some(()));
    }
    // The runner of the host stays for whatever comes next.
    scene.site.until("all work to end", || scene.site.work().is_empty().then_some(()));
}

#[test]
fn a_run_goes_on_by_what_it_began_with_while_its_job_is_changed() {
    let mut scene = Scene::new();
    let file = open_file(scene.traces.join("said"));
    for place in Where::ALL {
        let script = |word: &str| {
            let line = format!("echo {} {word} >> {}", place.name(), file.display());
            scene.gated("go", &format!("{line}; exit $((KAPELL_ATTEMPT < 1))"))
        };
        scene.apply(&scene.ledger.job_of(place, &script("old")));
        let run = scene.runs(place.name());
        scene.apply(&scene.ledger.job_of(place, &script("new")));
        assert_eq!(scene.run(&run).expect("it is there")["state"], "Running");
    }
    // Whoever leads next knows it, too.
    scene.site.kill();
    scene.site.start(&[]);
    scene.open("go");
    let runs = scene.site.get("/v1/runs");
    for run in runs.as_array().expect("a list") {
        let ended = scene.ends(run["run_id"].as_str().expect("an id"));
        assert_eq!(
            (&ended["state"], &ended["attempt"]),
            (&json!("Completed"), &json!(1)),
            "{ended}"
        );
    }
    assert!(!scene.wrote("said").contains("new"), "{}", scene.wrote("said"));
    for place in Where::ALL {
        scene.site.kapell(&["job", "trigger", "--wait", place.name()]).expect(0);
    }
    for place in Where::ALL {
        let line = |word: &str| format!("{} {word}\n", place.name()).repeat(2);
        let said: String = scene
            .wrote("said")
            .lines()
            .filter(|it| it.starts_with(place.name()))
            .map(|it| format!("{it}\n"))
            .collect();
        assert_eq!(said, line("old") + &line("new"));
    }
}

#[test]
fn a_job_that_is_paused_while_it_runs_has_its_run_end_and_no_other_begin() {
    let scene = Scene::new();
    let mut job = scene.ledger.job_of(Where::Host, &scene.gated("go", "exit 0"));
    job["schedule"] = json!(["* * * * * *"]);
    scene.apply(&job);
    let name = Where::Host.name();
    scene.site.until("some runs to work", || (scene.ledger.launches().len() >= 2).then_some(()));
    scene.site.kapell(&["job", "pause", name, "--note", "for a while"]).expect(0);
    let active = || {
        let runs = scene.site.get(&format!("/v1/runs?job={name}&active=true"));
        runs.as_array().cloned().unwrap_or_default()
    };
    // Those that were made ahead do not come to their time; those that work do not stop.
    scene.site.until("only those that work to be left", || {
        active().iter().all(|run| run["state"] == "Running").then_some(())
    });
    let working = active();
    assert!(working.len() >= 2, "{working:?}");
    scene.open("go");
    for run in &working {
        assert_eq!(scene.ends(run["run_id"].as_str().expect("an id"))["state"], "Completed");
    }
    let launched = scene.ledger.launches().len();
    assert_eq!(launched, working.len(), "{:?}", scene.ledger.launches());
    let paused = scene.site.get(&format!("/v1/jobs/{name}"));
    assert!(paused.to_string().contains("for a while"), "{paused}");
    // It can still be triggered, over a restart too.
    let mut site = scene.site;
    site.end(Signal::SIGTERM);
    site.start(&[]);
    site.kapell(&["job", "trigger", "--wait", name]).expect(0);
    assert_eq!(scene.ledger.launches().len(), launched + 1);
    site.kapell(&["job", "resume", name]).expect(0);
    let again =
        try_eventually(LIMIT, || (scene.ledger.launches().len() > launched + 2).then_some(()));
    assert!(again.is_some(), "nothing is scheduled after it was resumed");
    scene.ledger.nothing_twice("paused");
}
