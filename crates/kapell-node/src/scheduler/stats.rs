//! The stats collector: what runs took, a job at a time and all together.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapell_core::board::JobId;
use kapell_core::run::{RunMetrics, RunState};

use super::histogram::Histogram;
use crate::board::Figure;

/// The final states, in the order of their counts.
const ENDS: [RunState; 4] =
    [RunState::Completed, RunState::Failed, RunState::Cancelled, RunState::Orphaned];
/// What runs spend their time on, in the order of their histograms.
const PHASES: [&str; 7] =
    ["pre_run", "constraint_check", "pod_start", "execution", "termination", "retry_wait", "total"];
/// So many jobs are read in one go.
const READ_AT_ONCE: usize = 256;
const QUANTILES: [(u64, &str); 3] = [(500, "0.5"), (950, "0.95"), (990, "0.99")];

fn phases(metrics: &RunMetrics) -> [u64; PHASES.len()] {
    [
        metrics.pre_run_ms,
        metrics.constraint_check_ms,
        metrics.pod_start_latency_ms,
        metrics.execution_ms,
        metrics.termination_ms,
        metrics.retry_wait_ms,
        metrics.total_ms,
    ]
}

/// How a run ended, for its figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended<'a> {
    pub(super) state: RunState,
    pub(super) skipped: bool,
    /// It came as far as to a launch, and its work as far as to a start.
    pub(super) launched: bool,
    pub(super) started: bool,
    pub(super) metrics: &'a RunMetrics,
}

impl Ended<'_> {
    /// What it took, and whether it came there at all: what never was is not short.
    fn phases(&self) -> [(u64, bool); PHASES.len()] {
        let metrics = self.metrics;
        let checked = metrics.constraints_checked > 0 || metrics.actions_executed > 0;
        let entered = [
            true,
            checked,
            self.launched,
            self.started,
            self.launched,
            metrics.retry_attempt > 0,
            true,
        ];
        let took = phases(metrics);
        std::array::from_fn(|at| (took[at], entered[at] || took[at] > 0))
    }
}

/// Half of all are not above the first, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Percentiles {
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
}

impl Percentiles {
    fn of(histogram: &Histogram) -> Self {
        let [p50_ms, p95_ms, p99_ms] = QUANTILES.map(|(permille, _)| histogram.permille(permille));
        Self { p50_ms, p95_ms, p99_ms }
    }
}

/// Figures of a job since this leader leads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFigures {
    /// Without those that were skipped.
    pub completed: u64,
    pub skipped: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub orphaned: u64,
    /// Attempts after the first.
    pub retries: u64,
    pub kubernetes_api_calls: u64,
    pub pre_run: Percentiles,
    pub constraint_check: Percentiles,
    pub pod_start: Percentiles,
    pub execution: Percentiles,
    pub termination: Percentiles,
    pub retry_wait: Percentiles,
    pub total: Percentiles,
    /// Of the run that ended last.
    pub last: RunMetrics,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    ends: [u64; ENDS.len()],
    skipped: u64,
    retries: u64,
    calls: u64,
    phases: [Histogram; PHASES.len()],
    last: RunMetrics,
}

impl Tally {
    fn add(&mut self, ended: &Ended<'_>) {
        for (count, end) in self.ends.iter_mut().zip(ENDS) {
            *count += u64::from(end == ended.state && !ended.skipped);
        }
        self.skipped += u64::from(ended.skipped);
        self.retries += u64::from(ended.metrics.retry_attempt);
        self.calls += u64::from(ended.metrics.kubernetes_api_calls);
        for (histogram, (took, entered)) in self.phases.iter_mut().zip(ended.phases()) {
            if entered {
                histogram.add(took);
            }
        }
        self.last = *ended.metrics;
    }

    fn figures(&self) -> JobFigures {
        let [completed, failed, cancelled, orphaned] = self.ends;
        let [pre_run, constraint_check, pod_start, execution, termination, retry_wait, total] =
            self.phases.each_ref().map(Percentiles::of);
        JobFigures {
            completed,
            skipped: self.skipped,
            failed,
            cancelled,
            orphaned,
            retries: self.retries,
            kubernetes_api_calls: self.calls,
            pre_run,
            constraint_check,
            pod_start,
            execution,
            termination,
            retry_wait,
            total,
            last: self.last,
        }
    }
}

/// Of each job what its runs took. Whoever reads them all does so a part at a time: the scheduler adds to them meanwhile.
#[derive(Debug, Default)]
struct Tallies(Mutex<BTreeMap<JobId, Tally>>);

impl Tallies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Tally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self) -> BTreeMap<JobId, JobFigures> {
        let mut all: Vec<(JobId, JobFigures)> = Vec::new();
        loop {
            let from =
                all.last().map_or(Bound::Unbounded, |(last, _)| Bound::Excluded(last.clone()));
            let tallies = self.lock();
            let part = tallies.range((from, Bound::Unbounded)).take(READ_AT_ONCE);
            let before = all.len();
            all.extend(part.map(|(job_id, tally)| (job_id.clone(), tally.figures())));
            if all.len() == before {
                return all.into_iter().collect();
            }
        }
    }
}

/// What others see of the figures: made every half minute, but for those of jobs, which are as they are.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    jobs: Arc<Tallies>,
    pub all: JobFigures,
    /// How long after their time runs began.
    pub lateness: Percentiles,
    figures: Vec<Figure>,
}

impl Snapshot {
    /// A job at a time.
    pub fn jobs(&self) -> BTreeMap<JobId, JobFigures> {
        self.jobs.figures()
    }

    /// For Prometheus: nothing that grows with the number of runs or jobs.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }
}

/// How things stand besides what has ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Now {
    pub(super) active: BTreeMap<RunState, usize>,
    pub(super) jobs: usize,
    pub(super) unstored: usize,
    pub(super) timers: usize,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    jobs: Arc<Tallies>,
    all: Tally,
    sums: [u64; PHASES.len()],
    lateness: Histogram,
    pub(super) heartbeats: u64,
    pub(super) jumps: u64,
    pub(super) leftovers: u64,
    counts: [u64; 4],
}

impl Collector {
    pub(super) fn ended(&mut self, job_id: JobId, ended: &Ended<'_>) {
        self.jobs.lock().entry(job_id).or_default().add(ended);
        self.all.add(ended);
        let metrics = ended.metrics;
        for (sum, took) in self.sums.iter_mut().zip(phases(metrics)) {
            *sum = sum.saturating_add(took);
        }
        self.heartbeats += u64::from(metrics.heartbeats_sent);
        let counts = [
            metrics.constraints_checked,
            metrics.constraints_violated,
            metrics.actions_executed,
            metrics.actions_failed,
        ];
        for (sum, count) in self.counts.iter_mut().zip(counts) {
            *sum += u64::from(count);
        }
    }

    pub(super) fn began(&mut self, late: Duration) {
        self.lateness.add(u64::try_from(late.as_millis()).unwrap_or(u64::MAX));
    }

    pub(super) fn forget(&mut self, job_id: &JobId) {
        self.jobs.lock().remove(job_id);
    }

    pub(super) fn snapshot(&self, now: &Now) -> Snapshot {
        Snapshot {
            jobs: Arc::clone(&self.jobs),
            all: self.all.figures(),
            lateness: Percentiles::of(&self.lateness),
            figures: self.figures(now),
        }
    }

    fn times(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for ((phase, histogram), sum) in PHASES.into_iter().zip(&self.all.phases).zip(self.sums) {
            figures.extend(QUANTILES.map(|(permille, quantile)| Figure {
                labels: vec![("phase", phase.to_owned()), ("quantile", quantile.to_owned())],
                ..figure(
                    "kapell_run_phase_seconds",
                    seconds(histogram.permille(permille)),
                    "What runs that ended spent their time on.",
                )
            }));
            figures.push(Figure {
                labels: vec![("phase", phase.to_owned())],
                ..figure(
                    "kapell_run_phase_seconds_sum",
                    seconds(sum),
                    "What runs that ended spent their time on, in all.",
                )
            });
        }
        figures.extend(QUANTILES.map(|(permille, quantile)| Figure {
            labels: vec![("quantile", quantile.to_owned())],
            ..figure(
                "kapell_run_lateness_seconds",
                seconds(self.lateness.permille(permille)),
                "How long after their time runs began.",
            )
        }));
        figures
    }

    fn figures(&self, now: &Now) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (state, count) in &now.active {
            figures.push(labelled(
                "kapell_runs_active",
                "state",
                state.name(),
                *count as u64,
                "Runs under way by state.",
            ));
        }
        let ends = ENDS.map(RunState::name).into_iter().zip(self.all.ends);
        for (end, count) in ends.chain([("Skipped", self.all.skipped)]) {
            figures.push(labelled(
                "kapell_runs_total",
                "state",
                end,
                count,
                "Runs that ended; those that were skipped count apart.",
            ));
        }
        let counts =
            ["constraints_checked", "constraints_violated", "actions_executed", "actions_failed"];
        for (what, count) in counts.into_iter().zip(self.counts) {
            figures.push(labelled(
                "kapell_run_checks_total",
                "what",
                what,
                count,
                "Constraints and actions of runs that ended.",
            ));
        }
        figures.extend(self.times());
        let rest = [
            ("kapell_scheduler_jobs", now.jobs as u64, "Jobs that the scheduler knows."),
            (
                "kapell_scheduler_unstored",
                now.unstored as u64,
                "Runs with updates that are not stored yet.",
            ),
            ("kapell_scheduler_timers", now.timers as u64, "Timers in its queue."),
            ("kapell_scheduler_begun_total", self.lateness.count(), "Runs whose time came."),
            ("kapell_run_retries_total", self.all.retries, "Further attempts of runs that ended."),
            (
                "kapell_run_kubernetes_calls_total",
                self.all.calls,
                "Calls to Kubernetes clusters for runs that ended.",
            ),
            ("kapell_run_heartbeats_total", self.heartbeats, "Heartbeats of runs that ended."),
            ("kapell_scheduler_clock_jumps_total", self.jumps, "How often the clock was set."),
            (
                "kapell_scheduler_leftovers_total",
                self.leftovers,
                "Work that was found and that no run knew.",
            ),
        ];
        figures.extend(rest.map(|(name, value, help)| figure(name, number(value), help)));
        figures
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts that far")]
const fn number(count: u64) -> f64 {
    count as f64
}

fn seconds(millis: u64) -> f64 {
    Duration::from_millis(millis).as_secs_f64()
}

const fn figure(name: &'static str, value: f64, help: &'static str) -> Figure {
    Figure { name, labels: Vec::new(), value, help }
}

fn labelled(
    name: &'static str,
    label: &'static str,
    text: &str,
    count: u64,
    help: &'static str,
) -> Figure {
    Figure { labels: vec![(label, text.to_owned())], ..figure(name, number(count), help) }
}
