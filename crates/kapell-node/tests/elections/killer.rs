//! The dead man's switch, in real time and on real threads.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kapell_core::election::Loss;
use kapell_core::seams::{Clock, Moment};
use kapell_core::seat::Seat;
use kapell_node::conductor::{Conductor, DeadMan, LogTrace, Parts, TokioTasks};
use kapell_node::elections::{self, Elections, Killer, Leased, Tenure};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_node::testing::within;
use kapell_store::mem::Mem;
use kapell_store::{Store, Ttl as _, keys};
use tokio::runtime::Builder;

/// Threads are counted by name: one test at a time has such threads.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    await_threads(0);
    alone
}

fn killer_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    let names = tasks.filter_map(|task| name(task.ok()?).ok());
    names.filter(|name| name.trim_end() == "killer").count()
}

/// A thread is gone from the list some time after it has ended.
fn await_threads(count: usize) {
    let end = Instant::now() + Duration::from_secs(10);
    while killer_threads() != count {
        assert!(Instant::now() < end, "{} killer threads, not {count}", killer_threads());
        let (_nobody, never) = channel::<()>();
        assert_eq!(never.recv_timeout(MILLIS_5), Err(RecvTimeoutError::Timeout));
    }
}

const MILLIS_5: Duration = Duration::from_millis(5);
const SOON: Duration = Duration::from_millis(200);
const LATER: Duration = Duration::from_millis(500);
/// Much longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// An end of the process that was asked for.
#[derive(Debug)]
struct Death {
    thread: Option<String>,
    at: Moment,
    why: String,
}

fn dead_man() -> (DeadMan, Receiver<Death>) {
    let (tell, deaths) = channel();
    (DeadMan::new(told_to(tell)).expect("a timer"), deaths)
}

fn told_to(tell: Sender<Death>) -> impl Fn(&str) + Send + Sync + 'static {
    let tell = Mutex::new(tell);
    move |why: &str| {
        let thread = std::thread::current().name().map(ToOwned::to_owned);
        let death = Death { thread, at: SystemClock.now(), why: why.to_owned() };
        let _gone = tell.lock().unwrap().send(death);
    }
}

fn assert_on_time(death: &Death, at: Moment) {
    assert_eq!(death.thread.as_deref(), Some("killer"), "on a thread of its own");
    assert_eq!(death.why, "the seat was not renewed in time");
    assert!(death.at >= at, "too soon");
    let late = death.at.since(at);
    assert!(late < Duration::from_secs(5), "late by {late:?}");
}

#[test]
fn it_fires_while_the_runtime_is_blocked() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    let at = SystemClock.now().after(SOON);
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let death = runtime.block_on(async {
        dead_man.set(Some(at));
        // Blocks the only thread that the runtime has.
        deaths.recv_timeout(LONG)
    });
    assert_on_time(&death.expect("it fires"), at);
    await_threads(0);
}

#[test]
fn it_is_put_off() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    let begin = SystemClock.now();
    let mut at = begin.after(SOON);
    dead_man.set(Some(at));
    while SystemClock.now() < begin.after(LATER) {
        at = SystemClock.now().after(SOON);
        dead_man.set(Some(at));
        assert_eq!(deaths.recv_timeout(MILLIS_5).err(), Some(RecvTimeoutError::Timeout));
    }
    assert_eq!(killer_threads(), 1, "one thread, however often it is put off");
    assert_on_time(&deaths.recv_timeout(LONG).expect("it fires"), at);
}

#[test]
fn it_is_brought_forward() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    dead_man.set(Some(SystemClock.now().after(LONG)));
    let at = SystemClock.now().after(SOON);
    dead_man.set(Some(at));
    assert_on_time(&deaths.recv_timeout(LONG).expect("it fires"), at);
}

#[test]
fn a_moment_that_has_gone_by_is_now() {
    let _alone = alone();
    for at in [Moment::ZERO, Moment::from_origin(Duration::from_nanos(1)), SystemClock.now()] {
        let (dead_man, deaths) = dead_man();
        let begin = SystemClock.now();
        dead_man.set(Some(at));
        assert_on_time(&deaths.recv_timeout(LONG).expect("it fires"), begin);
    }
}

#[test]
fn disarmed_it_does_not_fire_and_its_thread_ends() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    assert_eq!(killer_threads(), 0, "no thread before it is armed");
    dead_man.set(None);
    assert_eq!(killer_threads(), 0);
    dead_man.set(Some(SystemClock.now().after(SOON)));
    await_threads(1);
    dead_man.set(None);
    assert_eq!(deaths.recv_timeout(LATER).err(), Some(RecvTimeoutError::Timeout));
    let at = SystemClock.now().after(LONG);
    dead_man.set(Some(at));
    dead_man.set(None);
    drop(dead_man);
    await_threads(0);
    assert_eq!(deaths.try_recv().err(), Some(std::sync::mpsc::TryRecvError::Disconnected));
}

#[test]
fn disarmed_it_can_be_armed_again() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    dead_man.set(Some(SystemClock.now().after(SOON)));
    dead_man.set(None);
    let at = SystemClock.now().after(LATER);
    dead_man.set(Some(at));
    assert_on_time(&deaths.recv_timeout(LONG).expect("it fires"), at);
}

#[test]
fn armed_and_dropped_it_still_fires() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    let at = SystemClock.now().after(SOON);
    dead_man.set(Some(at));
    drop(dead_man);
    assert_on_time(&deaths.recv_timeout(LONG).expect("it fires"), at);
    await_threads(0);
}

#[test]
fn fired_it_does_not_wait() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    dead_man.fire("the services did not stop");
    let death = deaths.try_recv().expect("it has fired");
    assert_eq!(death.why, "the services did not stop");
    assert_ne!(death.thread.as_deref(), Some("killer"), "whoever fires it need not wait for it");
}

const LEASE: Duration = Duration::from_secs(1);

fn leased(store: &Arc<Mem>, killer: Arc<dyn Killer>) -> Leased {
    Leased::new(elections::Parts {
        store: Arc::clone(store) as Arc<dyn Store>,
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
        killer,
        lease: LEASE,
        address: "10.0.0.1:7070".to_owned(),
    })
}

/// A process that stops, with real time and the same address: it would be dead before the
/// second leads, and if it were not, it would know.
#[test]
fn a_blocked_leader_is_dead_before_another_leads() {
    let _alone = alone();
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    let (dead_man, deaths) = dead_man();
    let first = leased(&store, Arc::new(dead_man));
    let (tell, told) = channel::<Tenure>();
    let (go_on, blocked) = channel::<()>();
    let paused = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let tenure = first.acquire(&[Seat::FIRST], None).await.expect("free");
            tell.send(tenure.clone()).unwrap();
            blocked.recv_timeout(LONG).expect("it is woken");
            assert!(!tenure.may_act());
            let loss = within("it finds out", LONG, tenure.lost()).await;
            first.cleanup().await;
            loss
        })
    });
    let old = told.recv_timeout(LONG).expect("the first leads");
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let (second, killed) = (leased(&store, Arc::new(dead_man_for_good())), old.clone());
    runtime.block_on(async {
        let new = second.acquire(&[Seat::FIRST], Some(LONG)).await.expect("it runs out");
        let leads = SystemClock.now();
        let death = deaths.try_recv().expect("the first is dead");
        assert!(death.at < leads, "before the second leads");
        assert!(!killed.may_act() && new.may_act());
        assert_eq!(
            (old.record().address.as_str(), new.epoch()),
            ("10.0.0.1:7070", old.epoch().next())
        );
        go_on.send(()).unwrap();
        second.cleanup().await;
    });
    assert_eq!(paused.join().expect("it knew"), Loss::Deadline);
}

/// A switch whose end fails the test.
fn dead_man_for_good() -> DeadMan {
    let end = |why: &str| panic!("killed: {why}");
    DeadMan::new(end).expect("a timer")
}

fn conductor(store: &Arc<Mem>, killer: &Arc<DeadMan>, tasks: &TokioTasks) -> Conductor {
    Conductor::provide(Parts {
        elections: Arc::new(leased(store, Arc::clone(killer) as _)),
        seats: vec![Seat::FIRST],
        pipeline: Vec::new(),
        tasks: Arc::new(tasks.clone()),
        trace: Arc::new(LogTrace),
        killer: Arc::clone(killer) as _,
        stop_limit: LONG,
    })
}

/// After an orderly shutdown no task and no thread is left.
#[test]
fn a_conductor_leaves_no_thread() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    let (dead_man, tasks) = (Arc::new(dead_man), TokioTasks::default());
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let conductor = conductor(&store, &dead_man, &tasks);
        let signal = conductor.launch(None).await;
        await_threads(1);
        let problem = tokio::time::timeout(LEASE * 2, signal.wait()).await;
        assert!(problem.is_err(), "it is renewed: {problem:?}");
        conductor.shutdown().await.expect("no problem");
        assert_eq!(tasks.count(), 0);
    });
    assert_eq!(runtime.metrics().num_alive_tasks(), 0);
    drop(dead_man);
    await_threads(0);
    assert!(deaths.try_recv().is_err(), "nobody was killed");
}

/// After a loss the killer is what is left, and it ends the process.
#[test]
fn after_a_loss_the_killer_is_left() {
    let _alone = alone();
    let (dead_man, deaths) = dead_man();
    let (dead_man, tasks) = (Arc::new(dead_man), TokioTasks::default());
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let lost = runtime.block_on(async {
        let conductor = conductor(&store, &dead_man, &tasks);
        let signal = conductor.launch(None).await;
        let key = keys::leader(Seat::FIRST);
        let held = store.read(&key).await.unwrap().held.expect("it is held");
        let begin = SystemClock.now();
        assert!(store.compare_and_delete(&key, &held.value).await.unwrap().is_done());
        within("the problem", LONG, signal.wait()).await;
        conductor.shutdown().await.expect_err("lost");
        assert_eq!(tasks.count(), 0);
        begin
    });
    assert_eq!(runtime.metrics().num_alive_tasks(), 0);
    drop(dead_man);
    let death = deaths.recv_timeout(LONG).expect("nothing takes it back");
    assert_on_time(&death, lost.after(LEASE / 4));
    await_threads(0);
}
