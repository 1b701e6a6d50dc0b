//! The conductor: runs services while it holds a seat, and takes them down in order.

mod killer;
mod problem;
mod service;
mod tasks;
mod trace;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kapell_core::causes::chain;
use kapell_core::seat::Seat;
use kapell_store::keys;
use kapell_store::model::{Fence, Raise};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use killer::{DeadMan, NoKiller};
pub use problem::{Problem, ProblemSignal};
pub use service::{Failure, Running, Service, Stage};
pub use tasks::{Task, Tasks, TokioTasks};
pub use trace::{LogTrace, Step, Trace};

use crate::elections::{Elections, Killer, Tenure};

/// What a conductor is made of.
#[derive(Debug)]
pub struct Parts {
    pub elections: Arc<dyn Elections>,
    /// Any one of these will do.
    pub seats: Vec<Seat>,
    /// Started in this order, stopped in the opposite one.
    pub pipeline: Vec<Arc<dyn Service>>,
    pub tasks: Arc<dyn Tasks>,
    pub trace: Arc<dyn Trace>,
    /// Ends the process if the services do not stop within the limit.
    pub killer: Arc<dyn Killer>,
    pub stop_limit: Duration,
}

/// Runs services under a seat. It is launched once and shut down once.
#[derive(Debug)]
pub struct Conductor {
    life: Arc<Life>,
    launched: AtomicBool,
}

#[derive(Debug)]
struct Life {
    parts: Parts,
    problem: ProblemSignal,
    shut: CancellationToken,
    /// The launcher adds no more services.
    launcher_done: CancellationToken,
    services: Mutex<Vec<Started>>,
    tenure: OnceLock<Tenure>,
    monitor_shut: CancellationToken,
    monitor_done: CancellationToken,
    shut_down: CancellationToken,
}

#[derive(Debug)]
struct Started {
    stop: CancellationToken,
    ended: CancellationToken,
}

impl Conductor {
    /// Puts a conductor together. Nothing runs yet.
    pub fn provide(parts: Parts) -> Self {
        let problem =
            ProblemSignal { raised: CancellationToken::new(), first: Arc::new(OnceLock::new()) };
        let life = Life {
            parts,
            problem,
            shut: CancellationToken::new(),
            launcher_done: CancellationToken::new(),
            services: Mutex::default(),
            tenure: OnceLock::new(),
            monitor_shut: CancellationToken::new(),
            monitor_done: CancellationToken::new(),
            shut_down: CancellationToken::new(),
        };
        Self { life: Arc::new(life), launched: AtomicBool::new(false) }
    }

    /// Acquires a seat, within the window if there is one, and starts the services.
    ///
    /// Returns when they run, when that has failed (the signal then is raised), or when a
    /// shutdown has interrupted it.
    ///
    /// # Panics
    /// When it is launched twice.
    pub async fn launch(&self, window: Option<Duration>) -> ProblemSignal {
        assert!(!self.launched.swap(true, Ordering::SeqCst), "the conductor is launched already");
        let life = &self.life;
        let _done: DropGuard = life.launcher_done.clone().drop_guard();
        life.step(Step::Launched);
        life.parts.tasks.spawn(Box::pin(shutdowner(Arc::clone(life))));
        let acquired = tokio::select! {
            biased;
            () = life.shut.cancelled() => None,
            acquired = life.parts.elections.acquire(&life.parts.seats, window) => Some(acquired),
        };
        match acquired {
            None => {}
            Some(Err(refusal)) => life.update_problem(Problem::NotAcquired(refusal)),
            Some(Ok(tenure)) => {
                if let Err(problem) = life.take_over(tenure).await {
                    life.update_problem(problem);
                }
            }
        }
        life.problem.clone()
    }

    /// Stops the services, then the monitor, gives the seat back, and tells the first problem
    /// there was. Called again, it gives the same answer.
    ///
    /// # Panics
    /// When it was never launched.
    pub async fn shutdown(&self) -> Result<(), Arc<Problem>> {
        assert!(self.launched.load(Ordering::SeqCst), "the conductor is not launched");
        self.life.step(Step::ShutdownAsked);
        self.life.shut.cancel();
        self.life.shut_down.cancelled().await;
        self.life.problem.get().map_or(Ok(()), Err)
    }

    /// The seat that was acquired, if one was.
    pub fn tenure(&self) -> Option<&Tenure> {
        self.life.tenure.get()
    }
}

impl Life {
    fn step(&self, step: Step) {
        self.parts.trace.step(step);
    }

    /// The only way to report a problem. The first one counts.
    fn update_problem(&self, problem: Problem) {
        if self.problem.first.set(Arc::new(problem)).is_ok() {
            self.step(Step::ProblemRaised);
            self.problem.raised.cancel();
        }
    }

    /// Waits until a launch is not to go on: a shutdown was asked for, or there is a problem.
    async fn halted(&self) {
        tokio::select! {
            biased;
            () = self.shut.cancelled() => {}
            () = self.problem.raised.cancelled() => {}
        }
    }

    async fn take_over(self: &Arc<Self>, tenure: Tenure) -> Result<(), Problem> {
        self.step(Step::Acquired);
        let _first = self.tenure.set(tenure.clone());
        self.step(Step::MonitorStarted);
        self.parts.tasks.spawn(Box::pin(monitor(Arc::clone(self), tenure.clone())));
        let fences = tokio::select! {
            biased;
            () = self.halted() => return Ok(()),
            fences = self.raise(&tenure) => fences?,
        };
        self.step(Step::FencesRaised);
        for service in &self.parts.pipeline {
            let stop = CancellationToken::new();
            let stage =
                Stage { tenure: tenure.clone(), fences: fences.clone(), stop: stop.clone() };
            let running = tokio::select! {
                biased;
                () = self.halted() => return Ok(()),
                running = service.start(stage) => running,
            };
            let name = service.name();
            let running = running.map_err(|failure| Problem::of(name, failure))?;
            let ended = CancellationToken::new();
            let started = Started { stop: stop.clone(), ended: ended.clone() };
            self.services.lock().unwrap_or_else(PoisonError::into_inner).push(started);
            let end = End { life: Arc::clone(self), name, ended };
            self.parts.tasks.spawn(Box::pin(async move {
                let why = match running.0.await {
                    Ok(()) if stop.is_cancelled() => return,
                    Ok(()) => "it ended by itself".to_owned(),
                    Err(why) => why,
                };
                end.life.update_problem(Problem::Service { name, why });
            }));
        }
        self.step(Step::ServicesStarted);
        Ok(())
    }

    /// Fences off whoever held the seat before. The outcome of a call that failed is unknown,
    /// and it may be sent again: that goes on for as long as we may act.
    async fn raise(&self, tenure: &Tenure) -> Result<Vec<Fence>, Problem> {
        loop {
            match raise_once(tenure).await {
                Err(Problem::Store(error)) if tenure.may_act() && error.may_pass() => {
                    let error = chain(&error);
                    tracing::warn!(error, "raising the fences failed; trying again");
                    self.parts.tasks.sleep(Duration::from_millis(50)).await;
                }
                raised => return raised,
            }
        }
    }

    async fn stop_services(&self) {
        let services =
            std::mem::take(&mut *self.services.lock().unwrap_or_else(PoisonError::into_inner));
        for service in services.into_iter().rev() {
            service.stop.cancel();
            service.ended.cancelled().await;
        }
    }
}

async fn raise_once(tenure: &Tenure) -> Result<Vec<Fence>, Problem> {
    let store = tenure.store();
    let raised = store.raise(tenure.seat(), tenure.epoch()).await.map_err(Problem::Store)?;
    let fences = match raised {
        Raise::Done(fences) => fences,
        Raise::Fenced(epoch) => return Err(Problem::Deposed(epoch)),
    };
    let unfinished = store.read(&keys::unfinished()).await.map_err(Problem::Store)?;
    if unfinished.held.is_some() { Err(Problem::Unfinished) } else { Ok(fences) }
}

/// The end of a service, however it comes: a panic is a problem as well.
struct End {
    life: Arc<Life>,
    name: &'static str,
    ended: CancellationToken,
}

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "it panicked".to_owned();
            self.life.update_problem(Problem::Service { name: self.name, why });
        }
        self.ended.cancel();
    }
}

async fn shutdowner(life: Arc<Life>) {
    life.step(Step::ShutdownerStarted);
    life.shut.cancelled().await;
    life.step(Step::ServicesStopping);
    let limit = life.parts.stop_limit;
    let mut stopped = std::pin::pin!(async {
        life.launcher_done.cancelled().await;
        life.stop_services().await;
    });
    tokio::select! {
        biased;
        () = &mut stopped => {}
        () = life.parts.tasks.sleep(limit) => {
            life.parts.killer.fire(&format!("the services did not stop within {limit:?}"));
            // A killer that leaves us alive does not make them stop: the seat stays ours.
            stopped.await;
        }
    }
    life.step(Step::ServicesStopped);
    life.step(Step::MonitorStopping);
    life.monitor_shut.cancel();
    if life.tenure.get().is_some() {
        life.monitor_done.cancelled().await;
    }
    life.parts.elections.cleanup().await;
    life.step(Step::ElectionsCleaned);
    life.step(Step::ShutDown);
    life.shut_down.cancel();
}

async fn monitor(life: Arc<Life>, tenure: Tenure) {
    tokio::select! {
        biased;
        why = tenure.lost() => {
            life.step(Step::LeadershipLost);
            // The keeper of the seat has set it already, at the moment of the loss.
            life.step(Step::KillerArmed);
            life.update_problem(Problem::Lost(why));
        }
        () = life.monitor_shut.cancelled() => {}
    }
    life.step(Step::MonitorStopped);
    life.monitor_done.cancel();
}
