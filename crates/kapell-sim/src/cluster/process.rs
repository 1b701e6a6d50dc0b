use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kapell_core::seams::{Clock, Ids};
use kapell_core::seat::Seat;
use kapell_node::conductor::{self, Conductor, Problem, TokioTasks};
use kapell_node::elections::{self, Leased, Standing, Tenure};
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Seen};
use super::writer::Writer;
use crate::parts::chance::{Chance, Names};
use crate::parts::clock::Drifting;
use crate::parts::link::Link;
use crate::parts::observed::{Observed, Onlooker};

/// What every process of a simulated host is made with.
#[derive(Debug, Clone)]
pub(super) struct Make {
    pub(super) clock: Arc<Drifting>,
    pub(super) lease: Duration,
    pub(super) seats: u32,
    pub(super) address: String,
    /// What was won is never given up, as far as anybody is told.
    pub(super) endless: bool,
    /// Whether faults have stopped: services do not fail by themselves then.
    pub(super) calm: Arc<AtomicBool>,
}

/// A host's program: it launches again and again, as `kapell host` does.
pub(super) async fn live(make: Make, desk: Arc<Desk>, told: CancellationToken, chance: Chance) {
    let mut program = Program { make, desk, told, chance };
    while program.launch_once().await {}
    program.desk.end();
}

struct Program {
    make: Make,
    desk: Arc<Desk>,
    told: CancellationToken,
    chance: Chance,
}

impl Program {
    /// Whether to launch once more.
    async fn launch_once(&mut self) -> bool {
        let tasks = TokioTasks::default();
        let conductor = self.provide(&tasks);
        let dropped = self.chance.permille(500);
        let launched = async { conductor.launch(Some(self.window())).await.wait().await };
        let asked = if dropped {
            tokio::select! {
                biased;
                _problem = launched => false,
                () = self.told.cancelled() => true,
            }
        } else {
            // The launch is not dropped: the shutdown interrupts it.
            let interrupted = async {
                self.told.cancelled().await;
                conductor.shutdown().await
            };
            tokio::select! {
                biased;
                _problem = launched => false,
                _ended = interrupted => true,
            }
        };
        let ended = conductor.shutdown().await;
        tokio::task::yield_now().await;
        self.desk.see(Seen::ShutDown { leftover: tasks.count() });
        match ended {
            _ if asked => false,
            Ok(()) => true,
            Err(problem) => match &*problem {
                // The killer of a lost seat is not disarmed: the program starts over.
                Problem::Lost(_) => false,
                Problem::NotAcquired(_) => true,
                Problem::Deposed(_)
                | Problem::Store(_)
                | Problem::Unfinished
                | Problem::Service { .. }
                | Problem::Unfit { .. } => {
                    tokio::time::sleep(self.make.lease / 20).await;
                    true
                }
            },
        }
    }

    fn window(&self) -> Duration {
        self.make.lease * 6
    }

    fn provide(&mut self, tasks: &TokioTasks) -> Conductor {
        let Make { clock, lease, seats, address, endless, calm } = self.make.clone();
        let killer: Arc<Desk> = Arc::clone(&self.desk);
        let link = Link { outbox: Arc::<Desk>::clone(&self.desk), limit: lease / 4 };
        let shared: Arc<dyn Clock> = Arc::<Drifting>::clone(&clock);
        let ids: Arc<dyn Ids> = Arc::new(Names::new(self.chance.fork()));
        let leased = Leased::new(elections::Parts {
            store: Arc::new(link),
            clock: shared,
            ids,
            killer: Arc::<Desk>::clone(&killer),
            lease,
            address,
        });
        let writer = Writer {
            desk: Arc::clone(&self.desk),
            chance: Mutex::new(self.chance.fork()),
            lease,
            calm,
        };
        let onlooker = Onlooking { desk: Arc::clone(&self.desk), clock, endless };
        Conductor::provide(conductor::Parts {
            elections: Arc::new(Observed { leased, onlooker: Arc::new(onlooker) }),
            seats: Seat::all(seats).collect(),
            pipeline: vec![Arc::new(writer)],
            tasks: Arc::new(tasks.clone()),
            trace: Arc::<Desk>::clone(&killer),
            killer,
            stop_limit: lease / 4,
        })
    }
}

/// What the simulator sees of elections, and where it lies about them.
#[derive(Debug)]
struct Onlooking {
    desk: Arc<Desk>,
    clock: Arc<Drifting>,
    endless: bool,
}

impl Onlooker for Onlooking {
    fn acquired(&self, mut tenure: Tenure) -> Tenure {
        if self.endless {
            let (record, store) = (tenure.record().clone(), Arc::clone(tenure.store()));
            let clock: Arc<dyn Clock> = Arc::<Drifting>::clone(&self.clock);
            tenure = Tenure::new(tenure.seat(), record, store, clock, Standing::for_ever());
        }
        self.desk.acquired(&tenure);
        tenure
    }
}
