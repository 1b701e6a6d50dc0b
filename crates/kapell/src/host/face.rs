use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kapell_core::board::JobId;
use kapell_core::constraint::MetricKind;
use kapell_core::job;
use kapell_core::run::RunId;
use kapell_core::seams::{Clock, Ids, Timestamp};
use kapell_core::seat::{Owner, Seat};
use kapell_node::access::{AccessSlot, Ledger};
use kapell_node::audit::{Full, Journal};
use kapell_node::board::{BoardSlot, Figure, ReadOnly};
use kapell_node::cell::ContainerLogs;
use kapell_node::conductor::Problem;
use kapell_node::elections::{Elections, Tenure};
use kapell_node::scheduler::SchedulerSlot;
use kapell_node::scheduler::backend::Attempt;
use kapell_node::scheduler::logs::RunLogs;

use tokio::sync::watch;

use super::schedule::Schedule;
use crate::http::{Desk, Face, Health, Leader, Role, Scheduler, Writes};

/// What the listener shows of this host.
#[derive(Debug)]
pub(super) struct HostFace {
    clock: Arc<dyn Clock>,
    /// Who this process is before it holds a seat.
    owner: Owner,
    slot: BoardSlot,
    access: AccessSlot,
    scheduler: SchedulerSlot,
    run_logs: RunLogs,
    /// Where it is noted who changes what.
    journal: OnceLock<Arc<Journal>>,
    /// Whether this host has ever led.
    led: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    role: Role,
    since: Timestamp,
    seats: u32,
    elections: Option<Arc<dyn Elections>>,
    tenure: Option<Tenure>,
    launches: u64,
    tenures: u64,
    problems: BTreeMap<&'static str, u64>,
}

impl HostFace {
    pub(super) fn new(clock: Arc<dyn Clock>, ids: &dyn Ids, run_logs: RunLogs) -> Self {
        let state = State {
            role: Role::Standby,
            since: clock.wall(),
            seats: 0,
            elections: None,
            tenure: None,
            launches: 0,
            tenures: 0,
            problems: BTreeMap::new(),
        };
        Self {
            clock,
            owner: Owner(ids.draw()),
            slot: BoardSlot::default(),
            access: AccessSlot::default(),
            scheduler: SchedulerSlot::default(),
            run_logs,
            journal: OnceLock::new(),
            led: watch::Sender::new(false),
            state: Mutex::new(state),
        }
    }

    /// Waits until this host has led.
    pub(super) fn led(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut led = self.led.subscribe();
        async move {
            // The sender goes only with the process.
            drop(led.wait_for(|led| *led).await);
        }
    }

    /// From now on nothing is changed that cannot be noted there.
    pub(super) fn notes_in(&self, journal: Arc<Journal>) {
        let _only_once = self.journal.set(journal);
    }

    /// Where the scheduler is shown while this host leads.
    pub(super) fn scheduler(&self) -> SchedulerSlot {
        self.scheduler.clone()
    }

    /// Where the ledger is shown while this host leads.
    pub(super) fn access(&self) -> AccessSlot {
        self.access.clone()
    }

    /// Where the board is shown while this host leads.
    pub(super) fn slot(&self) -> BoardSlot {
        self.slot.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn become_(&self, role: Role) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if state.role != role {
            (state.role, state.since) = (role, self.clock.wall());
        }
        state
    }

    pub(super) fn launching(&self, elections: Arc<dyn Elections>, seats: u32) {
        let mut state = self.become_(Role::Standby);
        state.elections = Some(elections);
        state.tenure = None;
        state.seats = seats;
        state.launches += 1;
    }

    pub(super) fn leading(&self, tenure: Tenure) {
        let mut state = self.become_(Role::Leading);
        state.tenure = Some(tenure);
        state.tenures += 1;
        drop(state);
        self.led.send_replace(true);
    }

    pub(super) fn stopping(&self) {
        drop(self.become_(Role::Stopping));
    }

    pub(super) fn failed(&self, problem: &Problem) {
        *self.state().problems.entry(problem.code()).or_default() += 1;
    }
}

impl Face for HostFace {
    fn owner(&self) -> Owner {
        self.state().tenure.as_ref().map_or(self.owner, |tenure| tenure.record().owner)
    }

    fn leader(&self) -> Option<Leader> {
        let (tenure, elections, seats) = {
            let state = self.state();
            (state.tenure.clone(), state.elections.clone(), state.seats)
        };
        if let Some(tenure) = tenure.filter(Tenure::may_act) {
            return Some(Leader {
                seat: tenure.seat(),
                record: tenure.record().clone(),
                expires_in_ms: None,
                here: true,
            });
        }
        let (elections, now) = (elections?, self.clock.now());
        Seat::all(seats).find_map(|seat| {
            let sight = elections.seen(seat)?;
            let left = sight.until.map(|until| until.since(now));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let expires_in_ms = left.and_then(|left| u64::try_from(left.as_millis()).ok());
            Some(Leader { seat, record: sight.record, expires_in_ms, here: false })
        })
    }

    fn health(&self) -> Health {
        let state = self.state();
        let lost = state.tenure.as_ref().is_some_and(|tenure| !tenure.may_act());
        let role = if state.role == Role::Leading && lost { Role::Stopping } else { state.role };
        let answers = state.elections.as_ref().is_none_or(|it| it.store_answers());
        let silent =
            || (!answers).then(|| "the store did not answer when it was last asked".into());
        let read_only = self.slot.get().and_then(|board| board.read_only());
        let since = state.since;
        drop(state);
        let refused = |why: &str, since| Writes::Refused { why: why.to_owned(), since };
        let writes = match (role, &read_only) {
            (_, Some(ReadOnly { why, since })) => refused(&refuses(why), Some(*since)),
            (Role::Leading, None) => match self.journal.get().and_then(|it| it.trouble()) {
                None => Writes::Accepted,
                Some(Full { why, since }) => {
                    let why = format!("it cannot be noted who changes something: {why}");
                    Writes::Refused { why, since: Some(since) }
                }
            },
            (Role::Stopping, None) => refused("this host is stopping", Some(since)),
            (Role::Standby, None) if self.leader().is_some() => Writes::Forwarded,
            (Role::Standby, None) => refused("nobody leads right now", None),
        };
        let store_trouble = read_only.map(|it| refuses(&it.why)).or_else(silent);
        Health { role, store_trouble, writes, since }
    }

    fn scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        let (scheduler, board) = (self.scheduler.get()?, self.slot.get()?);
        Some(Arc::new(Schedule { scheduler, board, logs: self.run_logs.clone() }))
    }

    fn run_log(&self, run_id: &RunId, attempt: u32) -> Option<ContainerLogs> {
        self.run_logs.read(&Attempt { run_id: run_id.clone(), number: attempt })
    }

    fn board(&self) -> Option<Arc<dyn Desk>> {
        self.slot.get().map(|board| Arc::new(board) as Arc<dyn Desk>)
    }

    fn ledger(&self) -> Option<Arc<Ledger>> {
        self.access.get()
    }

    fn metrics(&self) -> String {
        let state = self.state();
        let leads = state.tenure.as_ref().filter(|tenure| tenure.may_act());
        let mut text = String::new();
        let mut figure = |name: &str, kind: &str, help: &str, lines: &[(String, u64)]| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            for (labels, value) in lines {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let one = |value: u64| [(String::new(), value)];
        figure(
            "kapell_leading",
            "gauge",
            "Whether this host holds a seat and may act.",
            &one(u64::from(leads.is_some())),
        );
        figure(
            "kapell_epoch",
            "gauge",
            "The epoch of the seat that is held.",
            &one(leads.map_or(0, |tenure| tenure.epoch().0)),
        );
        figure(
            "kapell_launches_total",
            "counter",
            "How often the conductor was launched.",
            &one(state.launches),
        );
        figure("kapell_tenures_total", "counter", "How often a seat was won.", &one(state.tenures));
        let problems: Vec<_> = state
            .problems
            .iter()
            .map(|(kind, count)| (format!("{{kind=\"{kind}\"}}"), *count))
            .collect();
        figure("kapell_problems_total", "counter", "What ended a launch.", &problems);
        drop(state);
        if let Some(board) = self.slot.get() {
            write_figures(&mut text, &board.figures());
            if let Some(scheduler) = self.scheduler.get() {
                write_figures(&mut text, scheduler.stats().figures());
                write_metrics(&mut text, &scheduler.metrics());
            }
        }
        text
    }
}

fn refuses(why: &str) -> String {
    format!("the store does not take writes: {why}")
}

/// What actions of jobs have set. The names are those of labels, so none can be another's.
fn write_metrics(text: &mut String, metrics: &BTreeMap<(JobId, String), job::Figure>) {
    let kinds = [
        (MetricKind::Counter, "kapell_job_counter_total", "counter", "Counted by actions of jobs."),
        (MetricKind::Gauge, "kapell_job_gauge", "gauge", "Set by actions of jobs."),
    ];
    for (kind, name, prometheus, help) in kinds {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {prometheus}\n");
        for ((job, metric), it) in metrics.iter().filter(|(_, it)| it.kind == kind) {
            let _ = writeln!(text, "{name}{{job=\"{job}\",metric=\"{metric}\"}} {}", it.value);
        }
    }
}

/// Figures of one name stand together, as the format wants it.
fn write_figures(text: &mut String, figures: &[Figure]) {
    let mut last = "";
    for Figure { name, labels, value, help } in figures {
        if *name != last {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            last = name;
        }
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_actions_have_the_job_as_a_label_and_no_run() {
        let mut text = String::new();
        let metric = |kind, value| job::Figure { kind, value, at: Timestamp(0) };
        let metrics = BTreeMap::from([
            ((JobId::new("a"), "lag".to_owned()), metric(MetricKind::Gauge, 1.5)),
            ((JobId::new("a"), "late".to_owned()), metric(MetricKind::Counter, 2.0)),
            ((JobId::new("b"), "late".to_owned()), metric(MetricKind::Counter, 1.0)),
        ]);
        write_metrics(&mut text, &metrics);
        let want = "\
# HELP kapell_job_counter_total Counted by actions of jobs.
# TYPE kapell_job_counter_total counter
kapell_job_counter_total{job=\"a\",metric=\"late\"} 2
kapell_job_counter_total{job=\"b\",metric=\"late\"} 1
# HELP kapell_job_gauge Set by actions of jobs.
# TYPE kapell_job_gauge gauge
kapell_job_gauge{job=\"a\",metric=\"lag\"} 1.5
";
        assert_eq!(text, want);
    }
}
