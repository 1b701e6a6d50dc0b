//! A scheduler, a board and a backend around one run, all pure: what each test scripts differs, the rest is usual.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::board::{Domain, JobId};
use crate::constraint::Verdict;
use crate::job::{JobDefinition, Length, Retry, RetryOn};
use crate::run::{
    ActionsDone, Ask, Checked, Counts, Evidence, Happened, Noted, Orchestrator, Plan, Rare, Run,
    RunId, RunState, RunUpdate, StopKind, Timeline, Timer, Trigger, UpdateKind, WorkEnd,
};
use crate::seams::Timestamp;

pub(super) const START: Timestamp = Timestamp(1_763_290_800_000);

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn definition() -> JobDefinition {
    let text =
        r#"{"job_id": "nightly", "schedule": ["*/10 * * * * *"], "command": {"command": "true"}}"#;
    serde_json::from_str(text).unwrap()
}

pub(super) fn retry(max_retries: u32, on: Vec<RetryOn>) -> Retry {
    let text = format!(r#"{{"max_retries": {max_retries}}}"#);
    Retry { on, ..serde_json::from_str(&text).unwrap() }
}

pub(super) fn plan(definition: JobDefinition) -> Plan {
    Plan {
        definition: Arc::new(definition),
        revision: 1,
        checks_before: false,
        checks_after: false,
        start_timeout_s: 300,
    }
}

pub(super) fn run() -> Run {
    let job = JobId::new("nightly");
    let due_at = START.after(secs(10));
    Run {
        run_id: RunId::scheduled(&job, due_at),
        domain: Domain::new("jobs"),
        revision: 1,
        trigger: Trigger::Schedule,
        scheduled_at: due_at,
        due_at,
        state: RunState::PreRun,
        previous_state: None,
        attempt: 0,
        place: "".into(),
        created_at: START,
        started_at: None,
        timeline: Timeline::new(),
        update_id: None,
        version: 1,
        rare: Rare::default().into(),
    }
}

pub(super) fn checked(verdict: Verdict, acts: bool) -> Checked {
    let counts = Counts { checked: 2, violated: 1, executed: 0, failed: 0 };
    let notes = vec![Noted::Constraint {
        name: "time_window".to_owned(),
        met: false,
        message: "too early".to_owned(),
    }];
    Checked { verdict, message: "looked at".to_owned(), acts, counts, notes }
}

pub(super) fn done(verdict: Verdict) -> ActionsDone {
    let counts = Counts { checked: 0, violated: 0, executed: 3, failed: 1 };
    ActionsDone { verdict, message: "acted".to_owned(), counts, notes: Vec::new() }
}

/// How the world answers. All times are from the ask to the answer.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) admission: Admission,
    pub(super) check: (Verdict, bool),
    pub(super) act: Verdict,
    pub(super) post: Verdict,
    pub(super) launch: Launching,
    /// Exit codes of the attempts; the last one counts for all that follow.
    pub(super) exits: Vec<i32>,
    /// It does not end by itself.
    pub(super) endless: bool,
    pub(super) left: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Yes,
    After(u64),
    Never,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launching {
    Works,
    Fails,
    Unstartable,
    NeverStarts,
    /// Something keeps it from starting.
    Hindered,
    /// Ends before its launch is answered.
    EndsFirst,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            admission: Admission::Yes,
            check: (Verdict::Proceed, false),
            act: Verdict::Proceed,
            post: Verdict::Proceed,
            launch: Launching::Works,
            exits: vec![0],
            endless: false,
            left: None,
        }
    }
}

/// What a backend has of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    Launched,
    Running(Timestamp),
    Ended(WorkEnd),
}

#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) it: Orchestrator,
    /// As the board has it.
    pub(super) board: Run,
    pub(super) plan: Plan,
    pub(super) script: Script,
    pub(super) now: Timestamp,
    pub(super) ring: Option<(Timer, Timestamp)>,
    /// What will happen, when.
    pub(super) coming: VecDeque<(Timestamp, Happened)>,
    pub(super) work: BTreeMap<u32, Work>,
    pub(super) launches: Vec<u32>,
    pub(super) stops: Vec<(u32, StopKind)>,
    pub(super) finals: Vec<RunState>,
    pub(super) ignored: Vec<String>,
    pub(super) path: Vec<RunState>,
    pub(super) done: bool,
}

impl Stage {
    pub(super) fn new(plan: Plan, script: Script) -> Self {
        Self::from(run(), plan, script, START)
    }

    /// Begins with a run as it is stored.
    pub(super) fn from(board: Run, plan: Plan, script: Script, now: Timestamp) -> Self {
        let (it, asks) = Orchestrator::begin(&board, plan.clone(), now);
        // What is not stored begins anew.
        let path = vec![if board.state.is_stored() { board.state } else { RunState::PreRun }];
        let mut stage = Self {
            it,
            board,
            plan,
            script,
            now,
            ring: None,
            coming: VecDeque::new(),
            work: BTreeMap::new(),
            launches: Vec::new(),
            stops: Vec::new(),
            finals: Vec::new(),
            ignored: Vec::new(),
            path,
            done: false,
        };
        stage.take(asks);
        stage
    }

    /// The leader dies, and another one begins with what is stored and what the backend has.
    pub(super) fn fail_over(&self) -> Self {
        let mut next =
            Self::from(self.board.clone(), self.plan.clone(), self.script.clone(), self.now);
        next.work = self.work.clone();
        next.launches.clone_from(&self.launches);
        next.coming.retain(|(_, happened)| !matches!(happened, Happened::Found { .. }));
        if !self.board.state.is_final() && next.coming.is_empty() && next.ring.is_none() {
            next.find(next.it.attempt());
        }
        // Work goes on without us, and whoever watches it then is told of its end.
        let news =
            self.coming.iter().filter(|(_, happened)| matches!(happened, Happened::Ended { .. }));
        next.coming.extend(news.cloned());
        next
    }

    pub(super) fn tell(&mut self, happened: Happened) {
        let (ended, was) = (self.it.state().is_final(), self.it.state());
        let asks = self.it.handle(happened, self.now);
        assert!(!ended || self.it.state() == was, "what has ended has changed");
        self.take(asks);
    }

    fn soon(&mut self, after_ms: u64, happened: Happened) {
        let at = self.now.after(Duration::from_millis(after_ms));
        let place =
            self.coming.iter().position(|(other, _)| *other > at).unwrap_or(self.coming.len());
        self.coming.insert(place, (at, happened));
    }

    fn take(&mut self, asks: Vec<Ask>) {
        for ask in asks {
            match ask {
                Ask::Ring { timer, at } => self.ring = Some((timer, at)),
                Ask::Quiet => self.ring = None,
                Ask::Admit => self.admit(),
                Ask::Check { attempt } => {
                    let checked = checked(self.script.check.0, self.script.check.1);
                    self.soon(100, Happened::Checked { attempt, checked });
                }
                Ask::Act { attempt } => {
                    self.soon(200, Happened::ActionsDone { attempt, done: done(self.script.act) });
                }
                Ask::Store(update) => {
                    let happened = Happened::Stored { kind: update.kind, attempt: update.attempt };
                    self.store(Arc::unwrap_or_clone(update));
                    self.soon(5, happened);
                }
                Ask::Launch { attempt } => self.launch(attempt),
                Ask::Stop { attempt, kind } => self.stop(attempt, kind),
                Ask::Find { attempt } => self.find(attempt),
                Ask::CheckPost { attempt, .. } => {
                    self.soon(300, Happened::PostChecked { attempt, done: done(self.script.post) });
                }
                Ask::Abandon => self.coming.retain(|(_, happened)| {
                    !matches!(
                        happened,
                        Happened::Checked { .. }
                            | Happened::ActionsDone { .. }
                            | Happened::PostChecked { .. }
                            | Happened::Found { .. }
                    )
                }),
                Ask::Ignored { what } => self.ignored.push(what),
                Ask::Done => {
                    assert!(self.it.state().is_final() && !self.done, "done once, and at the end");
                    self.done = true;
                }
            }
        }
    }

    fn admit(&mut self) {
        match self.script.admission {
            Admission::Yes => self.soon(0, Happened::Admitted),
            Admission::After(ms) => {
                self.soon(0, Happened::Queued { why: "another run is in its way".to_owned() });
                self.soon(ms, Happened::Admitted);
            }
            Admission::Never => {
                self.soon(0, Happened::Queued { why: "another run is in its way".to_owned() });
            }
            Admission::No => {
                self.soon(0, Happened::TurnedAway { why: "another run is in its way".to_owned() });
            }
        }
    }

    fn store(&mut self, update: RunUpdate) {
        for entry in &update.timeline {
            if let Noted::State { to, .. } = &entry.noted {
                let from = self.path[self.path.len() - 1];
                assert!(from.next().contains(to), "{} -> {}", from.name(), to.name());
                self.path.push(*to);
            }
        }
        if update.kind == UpdateKind::Ended {
            self.finals.push(update.state);
        }
        let run = &mut self.board;
        if run.state.is_final() || update.attempt < run.attempt {
            return;
        }
        run.state = update.state;
        run.previous_state = Some(update.previous_state);
        run.revision = update.revision;
        run.attempt = update.attempt + u32::from(update.kind == UpdateKind::Retry);
        run.started_at = update.started_at;
        run.retry_at = update.retry_at;
        run.completed_at = update.completed_at;
        run.exit_code = update.exit_code;
        run.reason = update.reason;
        run.skipped = update.skipped;
        run.timeline.append(&update.timeline);
        run.metrics = update.metrics;
    }

    fn launch(&mut self, attempt: u32) {
        let stored = (self.board.state, self.board.attempt);
        assert_eq!(stored, (RunState::ContainerCreating, attempt), "the intent is stored first");
        if self.script.launch == Launching::Fails {
            return self
                .soon(50, Happened::LaunchFailed { attempt, why: "no such program".to_owned() });
        }
        self.launches.push(attempt);
        self.work.insert(attempt, Work::Launched);
        if self.script.launch != Launching::EndsFirst {
            self.soon(50, Happened::Launched { attempt });
        }
        let (start, end) = (self.now.after(Duration::from_millis(1_000)), self.now.after(secs(61)));
        let work = WorkEnd { at: end, ..self.exit(attempt) };
        match self.script.launch {
            Launching::Works => {
                self.soon(1_010, Happened::Started { attempt, at: start });
                if !self.script.endless {
                    self.soon(61_020, Happened::Ended { attempt, work });
                }
            }
            Launching::Unstartable => {
                self.soon(
                    70,
                    Happened::Unstartable { attempt, why: "no cell takes it".to_owned() },
                );
            }
            Launching::EndsFirst => {
                let at = self.now.after(Duration::from_millis(10));
                self.soon(20, Happened::Ended { attempt, work: WorkEnd { at, ..work } });
                self.soon(50, Happened::Launched { attempt });
            }
            Launching::Hindered => {
                for why in ["no node has room", "image cannot be pulled"] {
                    self.soon(70, Happened::Hindered { attempt, why: why.to_owned() });
                }
            }
            Launching::Fails | Launching::NeverStarts => {}
        }
    }

    fn exit(&self, attempt: u32) -> WorkEnd {
        let exits = &self.script.exits;
        let code = exits[usize::try_from(attempt).unwrap().min(exits.len() - 1)];
        let failure = (code != 0).then(|| format!("exit code {code}"));
        WorkEnd { began: None, at: self.now, exit_code: Some(code), failure }
    }

    fn stop(&mut self, attempt: u32, kind: StopKind) {
        self.stops.push((attempt, kind));
        self.coming.retain(|(_, happened)| {
            !matches!(
                happened,
                Happened::Started { .. } | Happened::Ended { .. } | Happened::Unstartable { .. }
            )
        });
        if matches!(self.work.get(&attempt), Some(Work::Running(_))) {
            let work = WorkEnd {
                began: None,
                at: self.now.after(secs(2)),
                exit_code: Some(143),
                failure: Some("SIGTERM".to_owned()),
            };
            self.soon(2_000, Happened::Ended { attempt, work });
        }
        self.soon(3_000, Happened::Stopped { attempt, left: self.script.left.map(str::to_owned) });
    }

    pub(super) fn find(&mut self, attempt: u32) {
        let evidence = match self.work.get(&attempt) {
            None => Evidence::Absent,
            Some(Work::Launched) => Evidence::Launched,
            Some(Work::Running(since)) => Evidence::Running { since: *since },
            Some(Work::Ended(work)) => Evidence::Ended(work.clone()),
        };
        self.soon(20, Happened::Found { attempt, evidence });
    }

    /// The next thing that happens, whatever it is; false once nothing will.
    pub(super) fn next(&mut self) -> bool {
        let rings = self
            .ring
            .is_some_and(|(_, at)| self.coming.front().is_none_or(|(other, _)| at < *other));
        if rings {
            let Some((timer, at)) = self.ring.take() else { return false };
            self.now = self.now.max(at);
            self.tell(Happened::Rang(timer));
            return true;
        }
        let Some((at, happened)) = self.coming.pop_front() else { return false };
        self.now = self.now.max(at);
        self.witness(&happened);
        self.tell(happened);
        true
    }

    /// The backend knows what it tells.
    fn witness(&mut self, happened: &Happened) {
        if let Happened::Started { attempt, at } = happened {
            self.work.insert(*attempt, Work::Running(*at));
        }
        if let Happened::Ended { attempt, work } = happened {
            self.work.insert(*attempt, Work::Ended(work.clone()));
        }
    }

    pub(super) fn play(&mut self) -> &mut Self {
        for _ in 0..10_000 {
            if !self.next() {
                return self;
            }
        }
        panic!("it does not come to an end: {:?}", self.it);
    }

    /// Until it is in that state.
    pub(super) fn play_to(&mut self, state: RunState) -> &mut Self {
        while self.it.state() != state {
            assert!(self.next(), "it never becomes {}: {:?}", state.name(), self.it);
        }
        self
    }

    /// It has ended once, for good, and everything was seen to.
    pub(super) fn assert_ended(&self, state: RunState) {
        assert_eq!(self.it.state(), state, "{:?}", self.it);
        assert_eq!(
            (self.board.state, self.finals.as_slice()),
            (state, [state].as_slice()),
            "{:?}",
            self.it
        );
        assert!(self.done, "{:?}", self.it);
        assert!(self.ring.is_none(), "{:?}", self.ring);
        self.assert_launched_once();
    }

    pub(super) fn assert_launched_once(&self) {
        let mut launches = self.launches.clone();
        launches.sort_unstable();
        launches.dedup();
        assert_eq!(
            launches.len(),
            self.launches.len(),
            "an attempt was launched twice: {:?}",
            self.launches
        );
    }
}

/// A job with everything that can fail, and two retries.
pub(super) fn full() -> Plan {
    let definition = JobDefinition {
        retry: Some(retry(2, vec![RetryOn::Launch])),
        max_allowed_run_time: Some(Length::new(secs(100))),
        start_timeout: Some(Length::new(secs(30))),
        starting_deadline: Some(Length::new(secs(60))),
        ..definition()
    };
    Plan { checks_before: true, checks_after: true, ..plan(definition) }
}
