//! What a conductor under test runs, and what is seen of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seams::Clock;
use kapell_core::seat::Seat;
use kapell_node::conductor::{
    Conductor, Failure, Parts, Running, Service, Stage, Step, TokioTasks,
};
use kapell_node::testing::{Member, Speed, Steps, Stores, TokioClock, TtlStorageMock, World};
use kapell_store::{Store, keys};
use tokio_util::sync::CancellationToken;

pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(60);

/// A world with paused time.
pub(crate) async fn world() -> World {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    let stores: Arc<dyn Stores> = Arc::new(TtlStorageMock::new(clock));
    World::new(stores, Speed::PAUSED, "conductor").await
}

/// How a service begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrance {
    AtOnce,
    Takes(Duration),
    Never,
    Fails,
}

/// What a service does when it gets its cue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Ends,
    Fails,
    Panics,
}

/// How a service stops when it is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    AtOnce,
    Takes(Duration),
    Never,
    Fails,
}

/// A service that does as it is told and writes down what it sees.
#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) name: &'static str,
    pub(crate) entrance: Entrance,
    pub(crate) turn: Turn,
    pub(crate) exit: Exit,
    pub(crate) cue: CancellationToken,
    pub(crate) log: Log,
    pub(crate) store: Arc<dyn Store>,
}

/// What the players did, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Player {
    pub(crate) fn new(world: &World, log: &Log, name: &'static str) -> Self {
        Self {
            name,
            entrance: Entrance::AtOnce,
            turn: Turn::Ends,
            exit: Exit::AtOnce,
            cue: CancellationToken::new(),
            log: log.clone(),
            store: Arc::clone(&world.store),
        }
    }
}

#[async_trait]
impl Service for Player {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        match self.entrance {
            Entrance::AtOnce => {}
            Entrance::Takes(time) => pass(time).await,
            Entrance::Never => std::future::pending().await,
            Entrance::Fails => return Err("no instrument".to_owned().into()),
        }
        assert!(stage.tenure.may_act(), "services work only while the seat is held");
        assert!(stage.fences.iter().all(|fence| fence.epoch == stage.tenure.epoch()));
        self.log.add(format!("{} up", self.name));
        let Self { name, turn, exit, .. } = *self;
        let (cue, log, store) = (self.cue.clone(), self.log.clone(), Arc::clone(&self.store));
        Ok(Running::new(async move {
            tokio::select! {
                biased;
                () = stage.stop.cancelled() => {}
                () = cue.cancelled() => match turn {
                    Turn::Ends => return Ok(()),
                    Turn::Fails => return Err("a string broke".to_owned()),
                    Turn::Panics => panic!("stage fright"),
                },
            }
            log.add(format!("{name} told to stop"));
            match exit {
                Exit::AtOnce | Exit::Fails => {}
                Exit::Takes(time) => pass(time).await,
                Exit::Never => cue.cancelled().await,
            }
            let entry = store.read(&keys::leader(stage.tenure.seat())).await.unwrap();
            let ours = entry.held.is_some_and(|held| held.value == stage.tenure.record().encode());
            let seat = if ours { "held" } else { "gone" };
            log.add(format!("{name} down, the seat is {seat}"));
            if exit == Exit::Fails { Err("fell off the stage".to_owned()) } else { Ok(()) }
        }))
    }
}

/// Lets time go by for something that takes its time.
pub(crate) async fn pass(time: Duration) {
    let never = std::future::pending::<()>();
    assert!(tokio::time::timeout(time, never).await.is_err());
}

/// A conductor and all that can be seen of it.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) conductor: Conductor,
    pub(crate) member: Member,
    pub(crate) steps: Arc<Steps>,
    pub(crate) tasks: TokioTasks,
}

impl House {
    pub(crate) async fn new(world: &World, pipeline: Vec<Player>) -> Self {
        Self::of(world.member("10.0.0.1:7070").await, pipeline)
    }

    pub(crate) fn of(member: Member, pipeline: Vec<Player>) -> Self {
        let (steps, tasks) = (Arc::new(Steps::default()), TokioTasks::default());
        let conductor = Conductor::provide(Parts {
            elections: Arc::clone(&member.elections) as _,
            seats: vec![Seat::FIRST],
            pipeline: pipeline.into_iter().map(|player| Arc::new(player) as _).collect(),
            tasks: Arc::new(tasks.clone()),
            trace: Arc::clone(&steps) as _,
            killer: Arc::clone(&member.killer) as _,
            stop_limit: STOP_LIMIT,
        });
        Self { conductor, member, steps, tasks }
    }

    /// Everything has ended: nothing runs any more in the whole runtime.
    pub(crate) async fn assert_empty(&self) {
        assert_eq!(self.tasks.count(), 0);
        assert_nothing_runs().await;
    }
}

pub(crate) async fn assert_nothing_runs() {
    let metrics = tokio::runtime::Handle::current().metrics();
    // A task that was told to end does so when it is polled next.
    let idle = || async { metrics.num_alive_tasks() == 0 };
    kapell_node::testing::eventually("no task is left", Duration::from_millis(10), idle).await;
}

/// Launched, the services run.
pub(crate) const UP: [Step; 6] = [
    Step::Launched,
    Step::ShutdownerStarted,
    Step::Acquired,
    Step::MonitorStarted,
    Step::FencesRaised,
    Step::ServicesStarted,
];

/// Shut down with a seat.
pub(crate) const DOWN: [Step; 7] = [
    Step::ShutdownAsked,
    Step::ServicesStopping,
    Step::ServicesStopped,
    Step::MonitorStopping,
    Step::MonitorStopped,
    Step::ElectionsCleaned,
    Step::ShutDown,
];

/// Shut down without a seat.
pub(crate) const DOWN_UNSEATED: [Step; 6] = [
    Step::ShutdownAsked,
    Step::ServicesStopping,
    Step::ServicesStopped,
    Step::MonitorStopping,
    Step::ElectionsCleaned,
    Step::ShutDown,
];

/// Shut down after the monitor has ended by itself.
pub(crate) const DOWN_AFTER_LOSS: [Step; 6] = DOWN_UNSEATED;

/// The monitor sees the loss.
pub(crate) const LOSS: [Step; 4] =
    [Step::LeadershipLost, Step::KillerArmed, Step::ProblemRaised, Step::MonitorStopped];
