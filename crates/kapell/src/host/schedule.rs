//! What routes see of the scheduler of this host.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use kapell_api::v1::{self, RunStats, SchedulerStats, WebhookDelivery};
use kapell_core::board::JobId;
use kapell_core::run::{RunId, RunState};
use kapell_node::board::Board;
use kapell_node::cell::ContainerLogs;
use kapell_node::scheduler::backend::Attempt;
use kapell_node::scheduler::logs::RunLogs;
use kapell_node::scheduler::stats::{JobFigures, Percentiles};
use kapell_node::scheduler::{self, RunView};
use kapell_node::webhook::{Delivery, DeliveryState};
use tokio::time::timeout;

use crate::http::Scheduler;

#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) scheduler: scheduler::Scheduler,
    pub(super) board: Board,
    pub(super) logs: RunLogs,
}

/// Whoever looks at a run does not wait for long.
const PATIENCE: Duration = Duration::from_secs(1);

#[async_trait]
impl Scheduler for Schedule {
    fn log(&self, run_id: &RunId, attempt: u32) -> Option<ContainerLogs> {
        self.logs.read(&Attempt { run_id: run_id.clone(), number: attempt })
    }

    async fn live(&self, run_id: &RunId) -> Option<RunView> {
        timeout(PATIENCE, self.scheduler.state(run_id.clone())).await.ok().flatten()
    }

    fn stats(&self) -> SchedulerStats {
        let mut active = BTreeMap::<RunState, u64>::new();
        let sights = self.board.sights();
        self.board.look_at_all(|records| {
            for run in records.active_runs() {
                *active.entry(sights.state_of(run)).or_default() += 1;
            }
        });
        let active =
            active.into_iter().map(|(state, count)| (state.name().to_owned(), count)).collect();
        let stats = self.scheduler.stats();
        let jobs = stats.jobs().into_iter().map(|(job, figures)| (job, of_job(&figures)));
        SchedulerStats {
            active,
            all: of_job(&stats.all),
            jobs: jobs.collect(),
            lateness: percentiles(stats.lateness),
        }
    }

    fn metrics(&self, job_id: &JobId) -> Vec<(String, f64)> {
        let all = self.scheduler.metrics().into_iter();
        all.filter(|((job, _), _)| job == job_id).map(|((_, name), it)| (name, it.value)).collect()
    }

    fn deliveries(&self) -> Vec<WebhookDelivery> {
        let webhooks = self.scheduler.webhooks();
        let all = webhooks.map(|webhooks| webhooks.deliveries(|_| true)).unwrap_or_default();
        all.into_iter().map(delivery).collect()
    }
}

const fn percentiles(of: Percentiles) -> v1::Percentiles {
    let Percentiles { p50_ms, p95_ms, p99_ms } = of;
    v1::Percentiles { p50_ms, p95_ms, p99_ms }
}

fn of_job(figures: &JobFigures) -> RunStats {
    let phases = [
        ("pre_run", figures.pre_run),
        ("constraint_check", figures.constraint_check),
        ("pod_start", figures.pod_start),
        ("execution", figures.execution),
        ("termination", figures.termination),
        ("retry_wait", figures.retry_wait),
        ("total", figures.total),
    ];
    RunStats {
        completed: figures.completed,
        skipped: figures.skipped,
        failed: figures.failed,
        cancelled: figures.cancelled,
        orphaned: figures.orphaned,
        retries: figures.retries,
        kubernetes_api_calls: figures.kubernetes_api_calls,
        phases: phases.map(|(name, of)| (name.to_owned(), percentiles(of))).into(),
        last: figures.last,
    }
}

fn delivery(it: Delivery) -> WebhookDelivery {
    let state = match it.state {
        DeliveryState::Waiting => "waiting",
        DeliveryState::Delivered => "delivered",
        DeliveryState::GivenUp => "given_up",
        DeliveryState::Withdrawn => "withdrawn",
    };
    WebhookDelivery {
        webhook_id: it.webhook_id,
        job_id: it.job_id,
        run_id: it.run_id,
        what: it.what,
        place: it.place,
        asked_at: it.asked_at,
        attempts: it.attempts,
        last_at: it.last_at,
        status: it.status,
        state: state.to_owned(),
        why: it.why,
    }
}
