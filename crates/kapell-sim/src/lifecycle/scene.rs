use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kapell_core::seat::Seat;
use kapell_node::conductor::{Conductor, Parts, Problem, Service, Step};
use kapell_node::elections::Standing;
use kapell_store::mem::Mem;
use shuttle::future::{JoinHandle, spawn, yield_now};
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::order::{Steps, fault};
use super::script::{Acquire, Raise, Script, a_while};
use super::seat::{Staged, Still};
use super::service::{Actor, Stages};
use super::tasks::{Explored, Fired, STOP_LIMIT};

type Answer = Result<(), Arc<Problem>>;

/// A conductor, and all that is around it.
struct Scene {
    script: Script,
    conductor: Arc<Conductor>,
    elections: Arc<Staged>,
    tasks: Explored,
    steps: Arc<Steps>,
    stages: Arc<Stages>,
    killer: Arc<Fired>,
}

/// Plays one life from launch to the end of its shutdown.
pub(super) async fn play() {
    let scene = Scene::set(Script::draw());
    let (launch, dropped) = (scene.launch(), scene.script.dropped);
    let thief = scene.thief();
    let time = scene.time();
    let callers: Vec<_> = (0..scene.script.callers).map(|_| scene.caller()).collect();
    let mut answers = Vec::new();
    for caller in callers {
        answers.extend(caller.await.expect("a shutdown returns"));
    }
    // A launch comes back once it was shut down, if it was not dropped.
    let came_back = launch.await.expect("a launch returns");
    assert!(came_back || dropped);
    for task in [thief, time].into_iter().flatten() {
        task.abort();
    }
    scene.check(&answers).await;
}

impl Scene {
    fn set(script: Script) -> Self {
        let (killer, tasks) = (Arc::new(Fired::default()), Explored::default());
        let stages = Arc::new(Stages::new(script.services.len()));
        let steps = Arc::new(Steps::default());
        let mem = Mem::new(Arc::new(Still));
        let board = Board { mem, raise: script.raise, failed: AtomicBool::new(false) };
        let elections = Arc::new(Staged {
            acquire: script.acquire,
            store: Arc::new(board),
            stages: Arc::clone(&stages),
            standing: Standing::new(),
            won: CancellationToken::new(),
            cleanups: AtomicUsize::new(0),
            cleaned: CancellationToken::new(),
        });
        let pipeline = script.services.iter().enumerate().map(|(at, act)| {
            let actor = Actor { at, act: *act, stages: Arc::clone(&stages) };
            Arc::new(actor) as Arc<dyn Service>
        });
        let conductor = Conductor::provide(Parts {
            elections: Arc::<Staged>::clone(&elections),
            seats: vec![Seat::FIRST],
            pipeline: pipeline.collect(),
            tasks: Arc::new(tasks.clone()),
            trace: Arc::<Steps>::clone(&steps),
            killer: Arc::<Fired>::clone(&killer),
            stop_limit: STOP_LIMIT,
        });
        Self { script, conductor: Arc::new(conductor), elections, tasks, steps, stages, killer }
    }

    /// Launches. Whether the launch came back, as opposed to being dropped.
    fn launch(&self) -> JoinHandle<bool> {
        let conductor = Arc::clone(&self.conductor);
        let dropped = self.script.dropped;
        spawn(async move {
            let launch = conductor.launch(None);
            let dropping = async {
                if !dropped {
                    std::future::pending::<()>().await;
                }
                a_while().await;
                a_while().await;
            };
            tokio::select! {
                biased;
                _signal = launch => true,
                () = dropping => false,
            }
        })
    }

    /// Takes the seat away at some time.
    fn thief(&self) -> Option<JoinHandle<()>> {
        let elections = Arc::clone(&self.elections);
        self.script.loss.then(|| {
            spawn(async move {
                elections.won.cancelled().await;
                a_while().await;
                a_while().await;
                elections.lose();
            })
        })
    }

    /// Lets the time for stopping run out at some time.
    fn time(&self) -> Option<JoinHandle<()>> {
        let (tasks, steps) = (self.tasks.clone(), Arc::clone(&self.steps));
        self.script.limit.then(|| {
            spawn(async move {
                while !steps.taken().contains(&Step::ServicesStopping) {
                    yield_now().await;
                }
                for _ in 0..4 {
                    a_while().await;
                }
                tasks.time_out.cancel();
            })
        })
    }

    /// Shuts down. Nothing comes of it while a service does not stop and the killer lets us live.
    fn caller(&self) -> JoinHandle<Option<Answer>> {
        let (conductor, steps) = (Arc::clone(&self.conductor), Arc::clone(&self.steps));
        let (stuck, fired) = (self.stages.stuck.clone(), self.killer.0.clone());
        let patience = self.script.callers * 2;
        spawn(async move {
            steps.launched.cancelled().await;
            for _ in 0..patience {
                a_while().await;
            }
            let hopeless = async {
                stuck.cancelled().await;
                fired.cancelled().await;
                a_while().await;
            };
            let answer = tokio::select! {
                biased;
                answer = conductor.shutdown() => answer,
                () = hopeless => return None,
            };
            let again = conductor.shutdown().await;
            assert!(is_same(&answer, &again), "asked again: {again:?} instead of {answer:?}");
            Some(answer)
        })
    }

    async fn check(&self, answers: &[Answer]) {
        let script = &self.script;
        let steps = self.steps.taken();
        if let Some(fault) = fault(&steps) {
            panic!("{fault}: {steps:?} of {script:?}");
        }
        let may_start = matches!(script.raise, Raise::Done | Raise::Late);
        let started = steps.contains(&Step::FencesRaised);
        assert!(may_start || !started, "nothing starts on such a board: {script:?}");
        if self.stages.stuck.is_cancelled() {
            // The seat stays held: a successor beside a service that runs would be worse.
            let cleanups = self.elections.cleanups.load(Ordering::SeqCst);
            assert!(answers.is_empty() && cleanups == 0, "{answers:?} of {script:?}");
            return;
        }
        assert_eq!(answers.len(), script.callers, "a shutdown came to nothing: {script:?}");
        assert!(self.elections.cleaned.is_cancelled(), "nothing was cleaned up: {script:?}");
        assert!(!self.stages.is_any_up(), "services are up after a shutdown: {script:?}");
        for answer in answers {
            assert!(is_same(answer, &answers[0]), "{answers:?} are not the same: {script:?}");
        }
        let raised = steps.contains(&Step::ProblemRaised);
        assert_eq!(raised, answers[0].is_err(), "{steps:?} of {script:?}: {answers:?}");
        let harmless = script.acquire == Acquire::Never;
        assert!(!(harmless && raised), "a wait that was interrupted is no problem: {script:?}");
        // What has said its last word may take a moment to be gone.
        for _ in 0..50 {
            if self.tasks.count() == 0 {
                return;
            }
            yield_now().await;
        }
        panic!("{} tasks run after a shutdown: {script:?}", self.tasks.count());
    }
}

fn is_same(one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Ok(()), Ok(())) => true,
        (Err(one), Err(other)) => Arc::ptr_eq(one, other),
        (Ok(()), Err(_)) | (Err(_), Ok(())) => false,
    }
}
