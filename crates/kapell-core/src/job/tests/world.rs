//! A shard with jobs, and moments without a calendar.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::board::request::MOST_RECORDS;
use crate::board::{
    Draft, Effect, JobId, Record, RecordKey, Records, Refusal, Reply, Request, Settings, decide,
};
use crate::job::{Job, JobDefinition, JobRequest, NewRun, SchedulerNews};
use crate::run::{Run, RunId, RunState, RunUpdate, Timeline, Trigger, UpdateKind};
use crate::schedule::{Moments, Occurrence};
use crate::seams::Timestamp;

/// A whole minute.
pub(super) const NOW: Timestamp = Timestamp(1_700_000_040_000);

pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) fn definition() -> JobDefinition {
    let text =
        r#"{"job_id":"j","domain":"d","schedule":["* * * * *"],"command":{"command":"true"}}"#;
    serde_json::from_str(text).unwrap()
}

/// Every so many seconds; every `excluded`-th of them is excluded.
#[derive(Debug, Clone)]
pub(super) struct Every {
    pub(super) seconds: i64,
    pub(super) excluded: i64,
    pub(super) off: Duration,
}

impl Every {
    pub(super) const fn new(seconds: i64) -> Self {
        Self { seconds, excluded: i64::MAX, off: Duration::ZERO }
    }
}

impl Moments for Every {
    fn next_after(&self, after: Timestamp) -> Option<Occurrence> {
        let step = self.seconds * 1000;
        let number = after.0.div_euclid(step) + 1;
        let excluded = (number % self.excluded == 0).then(|| "days off".to_owned());
        Some(Occurrence { at: Timestamp(number * step), excluded, change: None })
    }

    fn put_off(&self, at: Timestamp) -> Timestamp {
        at.after(self.off)
    }
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) records: Records,
    pub(super) now: Timestamp,
    /// How many records the last request wrote.
    pub(super) written: usize,
    pub(super) news: Vec<SchedulerNews>,
}

impl World {
    pub(super) fn new() -> Self {
        Self { records: Records::default(), now: NOW, written: 0, news: Vec::new() }
    }

    pub(super) fn with(definition: &JobDefinition) -> Self {
        let mut world = Self::new();
        world.apply(definition).unwrap();
        world
    }

    /// Asks, and has the board do what it asks itself.
    pub(super) fn ask(&mut self, request: JobRequest) -> Result<Reply, Refusal> {
        self.ask_board(&Request::Job(request))
    }

    pub(super) fn ask_board(&mut self, request: &Request) -> Result<Reply, Refusal> {
        let (reply, next) = self.ask_once(request)?;
        let written = self.written;
        for request in next {
            self.ask_board(&request).unwrap();
        }
        self.written = written;
        Ok(reply)
    }

    fn ask_once(&mut self, request: &Request) -> Result<(Reply, Vec<Request>), Refusal> {
        let group = BTreeMap::new();
        let mut draft = Draft::new(&self.records, &group);
        let decided = decide(&mut draft, request, self.now, &Settings::default());
        let changes = draft.into_changes();
        assert!(decided.is_ok() || changes.is_empty(), "a refusal changes nothing: {changes:?}");
        assert!(changes.len() <= MOST_RECORDS, "{} records by {request:?}", changes.len());
        self.written = changes.len();
        for (key, to) in changes {
            if let Some(record) = &to {
                assert_eq!(record.key(), key);
                assert_eq!(Record::decode(&key.encode(), &record.encode()).as_ref(), Ok(record));
            }
            self.records.apply(&key, to);
        }
        let verdict = decided?;
        let mut next = Vec::new();
        for effect in verdict.effects {
            match effect {
                Effect::Next(request) => next.push(request),
                Effect::Scheduler(news) => self.news.push(news),
                other @ (Effect::Start { .. }
                | Effect::StartTask { .. }
                | Effect::Stop { .. }
                | Effect::CancelTask { .. }
                | Effect::CallBack { .. }
                | Effect::Untold { .. }) => drop(other),
            }
        }
        Ok((verdict.reply, next))
    }

    pub(super) fn apply(&mut self, definition: &JobDefinition) -> Result<Reply, Refusal> {
        self.ask(JobRequest::Apply { definition: Box::new(definition.clone()) })
    }

    pub(super) fn job(&self) -> &Job {
        &self.records.jobs[&id()]
    }

    pub(super) fn stands(&self) -> Timestamp {
        self.records.stands(self.job())
    }

    pub(super) fn run(&self, run: &RunId) -> &Run {
        &self.records.runs[run]
    }

    pub(super) fn has(&self, key: &RecordKey) -> bool {
        self.records.get(key).is_some()
    }

    /// Makes runs for so many minutes from where the job stands.
    pub(super) fn advance(&mut self, count: i64) -> Vec<RunId> {
        let from = self.stands();
        let first = from.0.div_euclid(60_000) + 1;
        let runs: Vec<NewRun> =
            (first..first + count).map(|minute| scheduled(Timestamp(minute * 60_000))).collect();
        let ids = runs.iter().map(|run| run.run_id.clone()).collect();
        let to = runs.last().map_or(from, |run| run.scheduled_at);
        self.ask(JobRequest::Advance { job_id: id(), from, to, runs, passed: Vec::new() }).unwrap();
        ids
    }

    pub(super) fn trigger(&mut self, tail: u64) -> RunId {
        let run = asked_for(self.now, tail);
        let run_id = run.run_id.clone();
        self.ask(JobRequest::Trigger { job_id: id(), run }).unwrap();
        run_id
    }

    pub(super) fn update(&mut self, run_id: &RunId, update: RunUpdate) -> Reply {
        self.ask(JobRequest::Update { run_id: run_id.clone(), update: Arc::new(update) }).unwrap()
    }

    pub(super) fn end(&mut self, run: &RunId, state: RunState) {
        let update = RunUpdate { at: self.now, ..update(UpdateKind::Ended, 0, state) };
        self.update(run, update);
    }

    pub(super) fn told(&mut self) -> Vec<SchedulerNews> {
        std::mem::take(&mut self.news)
    }
}

pub(super) fn id() -> JobId {
    "j".into()
}

pub(super) fn scheduled(at: Timestamp) -> NewRun {
    NewRun {
        run_id: RunId::scheduled(&id(), at),
        scheduled_at: at,
        due_at: at,
        trigger: Trigger::Schedule,
        parameters: BTreeMap::new(),
    }
}

pub(super) fn asked_for(at: Timestamp, tail: u64) -> NewRun {
    NewRun {
        run_id: RunId::asked_for(&id(), at, tail),
        trigger: Trigger::Manual { who: "ada".into() },
        ..scheduled(at)
    }
}

pub(super) fn update(kind: UpdateKind, attempt: u32, state: RunState) -> RunUpdate {
    RunUpdate {
        place: "".into(),
        log_host: "".into(),
        kind,
        attempt,
        at: NOW,
        state,
        previous_state: RunState::Pending,
        revision: 1,
        started_at: None,
        retry_at: None,
        completed_at: None,
        exit_code: None,
        reason: String::new(),
        skipped: false,
        timeline: Timeline::new(),
        metrics: None,
    }
}
