//! From the release of a seat to the next leader's services.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kapell_core::seat::Seat;
use kapell_node::conductor::{
    Conductor, Failure, NoKiller, Parts, Running, Service, Stage, Step, TokioTasks, Trace,
};
use kapell_node::elections::{self, Leased};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::Store;

use crate::bench::show::open;
use crate::figure::{figure, share};

/// When each step was taken last.
#[derive(Debug, Default)]
struct Stopwatch(Mutex<Vec<(Step, Instant)>>);

impl Trace for Stopwatch {
    fn step(&self, step: Step) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((step, Instant::now()));
    }
}

impl Stopwatch {
    fn at(&self, step: Step) -> Instant {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().rev().find(|(each, _)| *each == step).expect("it was taken").1
    }
}

/// Notes when it is called.
#[derive(Debug, Default)]
struct Called(Mutex<Option<Instant>>);

#[async_trait]
impl Service for Called {
    fn name(&self) -> &'static str {
        "called"
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(Running::new(async move {
            stage.stop.cancelled().await;
            Ok(())
        }))
    }
}

fn conductor(store: &Arc<dyn Store>, trace: &Arc<Stopwatch>, called: &Arc<Called>) -> Conductor {
    let elections = Leased::new(elections::Parts {
        store: Arc::clone(store),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
        killer: Arc::new(NoKiller),
        lease: Duration::from_secs(20),
        address: "127.0.0.1:1".to_owned(),
    });
    Conductor::provide(Parts {
        elections: Arc::new(elections),
        seats: vec![Seat::FIRST],
        pipeline: vec![Arc::<Called>::clone(called)],
        tasks: Arc::new(TokioTasks::default()),
        trace: Arc::<Stopwatch>::clone(trace),
        killer: Arc::new(NoKiller),
        stop_limit: Duration::from_secs(5),
    })
}

/// Hands the seat to and fro. Stores that tell of changes have a goal.
pub async fn measure(name: &str, url: &str, hand_offs: usize, goal: Option<f64>) {
    let mut stores = Vec::new();
    for _ in 0..2 {
        stores.push(open(url).await.expect("the store opens"));
    }
    let trace = Arc::new(Stopwatch::default());
    let mut leader = conductor(&stores[0], &trace, &Arc::new(Called::default()));
    assert!(leader.launch(None).await.get().is_none());
    let mut samples = Vec::new();
    let mut leaders_trace = trace;
    for round in 1..=hand_offs {
        let (trace, called) = (Arc::new(Stopwatch::default()), Arc::new(Called::default()));
        let next = conductor(&stores[round % 2], &trace, &called);
        {
            let mut launch = std::pin::pin!(next.launch(None));
            // Long enough for it to wait: nobody hands over to one that is not there yet.
            let settled = tokio::time::timeout(Duration::from_millis(300), &mut launch).await;
            assert!(settled.is_err(), "there were two leaders");
            let (ended, problem) = tokio::join!(leader.shutdown(), launch);
            assert!(ended.is_ok() && problem.get().is_none());
        }
        let released = leaders_trace.at(Step::MonitorStopped);
        let called = called.0.lock().unwrap_or_else(PoisonError::into_inner).expect("called");
        samples.push(called.duration_since(released).as_secs_f64() * 1000.0);
        (leader, leaders_trace) = (next, trace);
    }
    leader.shutdown().await.expect("no problem");
    figure(&format!("{name}: hand-off, release to services called"), &samples, "ms", goal);
    figure(&format!("{name}: hand-off, p99"), &[share(&samples, 990)], "ms", None);
}
