//! What becomes of a conductor when things do not go as they should.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::election::Loss;
use kapell_core::seat::{Epoch, Seat};
use kapell_node::conductor::{Problem, Step};
use kapell_node::elections::{Elections as _, Refusal, Tenure};
use kapell_node::testing::{Call, Fault, eventually, for_as_long, within};

use crate::players::{
    DOWN, DOWN_AFTER_LOSS, DOWN_UNSEATED, Entrance, Exit, House, LOSS, Log, Player, STOP_LIMIT,
    Turn, UP, pass, world,
};

const SEAT: Seat = Seat::FIRST;

fn steps(parts: &[&[Step]]) -> Vec<Step> {
    parts.concat()
}

/// Services start in order and stop in the opposite one, all of them before the seat is free.
#[tokio::test(start_paused = true)]
async fn services_start_in_order_and_stop_in_the_opposite_one() {
    let (world, log) = (world().await, Log::default());
    let slow = |name| Player {
        entrance: Entrance::Takes(Duration::from_secs(3)),
        exit: Exit::Takes(Duration::from_secs(15)),
        ..Player::new(&world, &log, name)
    };
    let house = House::new(&world, vec![slow("a"), slow("b"), slow("c")]).await;
    house.conductor.launch(None).await;
    assert_eq!(log.lines(), ["a up", "b up", "c up"]);
    let begin = world.now();
    house.conductor.shutdown().await.expect("no problem");
    assert_eq!(world.now().since(begin), Duration::from_secs(45), "longer than two leases");
    let stopping = [
        "c told to stop",
        "c down, the seat is held",
        "b told to stop",
        "b down, the seat is held",
        "a told to stop",
        "a down, the seat is held",
    ];
    assert_eq!(log.lines()[3..], stopping);
    assert_eq!(world.value(SEAT).await, None);
    assert_eq!(house.steps.all(), steps(&[&UP, &DOWN]));
    assert_eq!(house.member.killer.fired(), []);
    house.assert_empty().await;
}

/// What was started before one failed to start runs until the shutdown, and is stopped then.
#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_start_is_a_problem() {
    let (world, log) = (world().await, Log::default());
    let bad = Player { entrance: Entrance::Fails, ..Player::new(&world, &log, "bad") };
    let [a, b, d] = ["a", "b", "d"].map(|name| Player::new(&world, &log, name));
    let house = House::new(&world, vec![a, b, bad, d]).await;
    let signal = house.conductor.launch(None).await;
    let problem = signal.get().expect("the signal is raised when launch returns");
    assert_eq!(problem.to_string(), "service `bad` failed: no instrument");
    let holds = || async { house.conductor.tenure().is_some_and(Tenure::may_act) };
    for_as_long("the seat is held until the shutdown", world.lease() * 2, holds).await;
    assert_eq!(log.lines(), ["a up", "b up"]);
    let answer = house.conductor.shutdown().await.expect_err("the problem");
    assert!(Arc::ptr_eq(&answer, &problem));
    let stopping = [
        "b told to stop",
        "b down, the seat is held",
        "a told to stop",
        "a down, the seat is held",
    ];
    assert_eq!(log.lines()[2..], stopping);
    assert_eq!(house.steps.all(), steps(&[&UP[..5], &[Step::ProblemRaised], &DOWN]));
    assert_eq!(world.value(SEAT).await, None, "no seat was lost: it is given back");
    house.assert_empty().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_ends_is_a_problem() {
    let turns = [
        (Turn::Fails, "service `a` failed: a string broke"),
        (Turn::Ends, "service `a` failed: it ended by itself"),
        (Turn::Panics, "service `a` failed: it panicked"),
    ];
    for (turn, text) in turns {
        let (world, log) = (world().await, Log::default());
        let a = Player { turn, ..Player::new(&world, &log, "a") };
        let cue = a.cue.clone();
        let b = Player::new(&world, &log, "b");
        let house = House::new(&world, vec![a, b]).await;
        let signal = house.conductor.launch(None).await;
        pass(world.lease()).await;
        assert!(signal.get().is_none());
        cue.cancel();
        let problem = within("the problem", Duration::from_millis(1), signal.wait()).await;
        assert_eq!(problem.to_string(), text);
        let answer = house.conductor.shutdown().await.expect_err("the problem");
        assert!(Arc::ptr_eq(&answer, &problem));
        assert_eq!(log.lines()[2..], ["b told to stop", "b down, the seat is held"]);
        assert_eq!(house.steps.all(), steps(&[&UP, &[Step::ProblemRaised], &DOWN]));
        assert_eq!(house.member.killer.at(), None);
        house.assert_empty().await;
    }
}

/// An error while it stops is told too.
#[tokio::test(start_paused = true)]
async fn a_service_that_fails_to_stop_well_is_a_problem() {
    let (world, log) = (world().await, Log::default());
    let a = Player { exit: Exit::Fails, ..Player::new(&world, &log, "a") };
    let house = House::new(&world, vec![a]).await;
    house.conductor.launch(None).await;
    let problem = house.conductor.shutdown().await.expect_err("the problem");
    assert_eq!(problem.to_string(), "service `a` failed: fell off the stage");
    assert_eq!(world.value(SEAT).await, None);
    house.assert_empty().await;
}

/// Only the first problem is told, to everyone and every time.
#[tokio::test(start_paused = true)]
async fn the_first_problem_counts() {
    let (world, log) = (world().await, Log::default());
    let [a, b] = ["a", "b"].map(|name| Player {
        turn: Turn::Fails,
        exit: Exit::Fails,
        ..Player::new(&world, &log, name)
    });
    let cue = b.cue.clone();
    let house = House::new(&world, vec![a, b]).await;
    let signal = house.conductor.launch(None).await;
    cue.cancel();
    let problem = signal.wait().await;
    assert_eq!(problem.to_string(), "service `b` failed: a string broke");
    world.replace(SEAT, b"modified", None).await;
    let lost = || async { house.steps.has(Step::LeadershipLost) };
    eventually("the seat is lost as well", world.lease(), lost).await;
    let answer = house.conductor.shutdown().await.expect_err("the problem");
    assert!(Arc::ptr_eq(&answer, &problem));
    let raised = house.steps.all().into_iter().filter(|step| *step == Step::ProblemRaised);
    assert_eq!(raised.count(), 1, "written once");
    let again = house.conductor.shutdown().await.expect_err("the problem");
    assert!(Arc::ptr_eq(&again, &problem));
    assert!(Arc::ptr_eq(&signal.get().expect("it stays"), &problem));
    house.assert_empty().await;
}

/// "Might be called immediately after Launch": nothing was acquired, and that is no problem.
#[tokio::test(start_paused = true)]
async fn shutdown_interrupts_a_pending_acquisition() {
    let (world, log) = (world().await, Log::default());
    let holder = world.member("10.0.0.2:7070").await;
    let held = holder.elections.acquire(&[SEAT], None).await.expect("free");
    for (window, wait) in [(None, 0), (Some(world.lease() * 6), 0), (None, 30)] {
        let house = House::new(&world, vec![Player::new(&world, &log, "it")]).await;
        let shutdown = async {
            if wait > 0 {
                pass(Duration::from_secs(wait)).await;
            }
            let begin = world.now();
            (house.conductor.shutdown().await, world.now().since(begin))
        };
        let (signal, (answer, took)) = tokio::join!(house.conductor.launch(window), shutdown);
        answer.expect("no problem");
        assert_eq!(took, Duration::ZERO, "at once");
        assert!(signal.get().is_none());
        let launched = [Step::Launched, Step::ShutdownerStarted];
        let mut want = steps(&[&launched, &DOWN_UNSEATED]);
        if wait == 0 {
            // It was asked for before the other tasks had begun.
            want.swap(1, 2);
        }
        assert_eq!(house.steps.all(), want);
        assert_eq!((house.member.store.begun(Call::Insert), house.tasks.count()), (0, 0));
    }
    assert!(held.may_act() && log.lines().is_empty());
    holder.elections.cleanup().await;
    crate::players::assert_nothing_runs().await;
}

/// A seat that was about to be won is given back.
#[tokio::test(start_paused = true)]
async fn shutdown_while_the_seat_is_being_won() {
    let (world, log) = (world().await, Log::default());
    let house = House::new(&world, vec![Player::new(&world, &log, "it")]).await;
    let slow = world.lease() / 20;
    house.member.store.next(Call::Insert, 1, Fault::Delay(slow));
    let shutdown = async {
        let inserting = || async { house.member.store.begun(Call::Insert) == 1 };
        eventually("it inserts", Duration::from_secs(1), inserting).await;
        let begin = world.now();
        house.conductor.shutdown().await.expect("no problem");
        assert!(world.now().since(begin) <= slow);
    };
    tokio::join!(house.conductor.launch(None), shutdown);
    assert_eq!(world.value(SEAT).await, None);
    let free = || async { world.value(SEAT).await.is_none() };
    for_as_long("it stays free", world.lease(), free).await;
    assert!(log.lines().is_empty() && house.conductor.tenure().is_none());
    house.assert_empty().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_while_services_start() {
    let (world, log) = (world().await, Log::default());
    let a = Player::new(&world, &log, "a");
    let never = Player { entrance: Entrance::Never, ..Player::new(&world, &log, "never") };
    let house = House::new(&world, vec![a, never]).await;
    let shutdown = async {
        pass(world.lease() * 2).await;
        let begin = world.now();
        house.conductor.shutdown().await.expect("no problem");
        assert_eq!(world.now(), begin, "at once");
    };
    let (signal, ()) = tokio::join!(house.conductor.launch(None), shutdown);
    assert!(signal.get().is_none());
    assert_eq!(log.lines(), ["a up", "a told to stop", "a down, the seat is held"]);
    assert_eq!(house.steps.all(), steps(&[&UP[..5], &DOWN]));
    assert_eq!(world.value(SEAT).await, None);
    house.assert_empty().await;
}

/// Whoever launches hears of a loss, also while a service takes its time to start.
#[tokio::test(start_paused = true)]
async fn a_loss_while_services_start_ends_the_launch() {
    let (world, log) = (world().await, Log::default());
    let a = Player::new(&world, &log, "a");
    let never = Player { entrance: Entrance::Never, ..Player::new(&world, &log, "never") };
    let house = House::new(&world, vec![a, never]).await;
    let steal = async {
        pass(world.lease()).await;
        world.remove(SEAT).await;
    };
    let launch = within("launch returns", world.lease() * 2, house.conductor.launch(None));
    let (signal, ()) = tokio::join!(launch, steal);
    let problem = signal.get().expect("raised");
    assert!(matches!(&*problem, Problem::Lost(Loss::Deleted)), "{problem}");
    house.conductor.shutdown().await.expect_err("lost");
    assert_eq!(log.lines(), ["a up", "a told to stop", "a down, the seat is gone"]);
    assert_eq!(house.steps.all(), steps(&[&UP[..5], &LOSS, &DOWN_AFTER_LOSS]));
    house.assert_empty().await;
}

/// The limit is the killer's; meanwhile the seat is renewed, and it is free only when the
/// services are down.
#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_stop_is_left_to_the_killer() {
    let (world, log) = (world().await, Log::default());
    let stuck = Player { exit: Exit::Never, ..Player::new(&world, &log, "stuck") };
    let cue = stuck.cue.clone();
    let house = House::new(&world, vec![stuck]).await;
    house.conductor.launch(None).await;
    let begin = world.now();
    let watch = async {
        let tenure = house.conductor.tenure().expect("it leads");
        for_as_long("the seat is renewed", STOP_LIMIT * 3, || async {
            tenure.may_act() && world.record(SEAT).await.as_ref() == Some(tenure.record())
        })
        .await;
        let fired = house.member.killer.fired();
        let why = "the services did not stop within 60s".to_owned();
        assert_eq!(fired, [(begin.after(STOP_LIMIT), why)]);
        assert!(!house.steps.has(Step::ServicesStopped));
        cue.cancel();
    };
    let (answer, ()) = tokio::join!(house.conductor.shutdown(), watch);
    answer.expect("no problem");
    assert_eq!(log.lines().pop().unwrap(), "stuck down, the seat is held");
    assert_eq!(world.value(SEAT).await, None);
    assert_eq!(house.steps.all(), steps(&[&UP, &DOWN]));
    house.assert_empty().await;
}

/// The seat is lost while services stop: the answer says so, the record is left alone.
#[tokio::test(start_paused = true)]
async fn a_loss_while_services_stop() {
    let (world, log) = (world().await, Log::default());
    let slow =
        Player { exit: Exit::Takes(Duration::from_secs(10)), ..Player::new(&world, &log, "slow") };
    let house = House::new(&world, vec![slow]).await;
    house.conductor.launch(None).await;
    let steal = async {
        pass(Duration::from_secs(1)).await;
        world.replace(SEAT, b"modified", None).await;
    };
    let (answer, ()) = tokio::join!(house.conductor.shutdown(), steal);
    let problem = answer.expect_err("lost");
    assert!(matches!(&*problem, Problem::Lost(Loss::Stolen(None))));
    let want = steps(&[&UP, &DOWN[..2], &LOSS, &DOWN_AFTER_LOSS[2..]]);
    assert_eq!(house.steps.all(), want);
    assert_eq!(world.value(SEAT).await.as_deref(), Some(b"modified".as_slice()));
    assert!(house.member.killer.at().is_some());
    house.assert_empty().await;
}

/// Persistent errors of the store: services stop at half of the lease, with the record still
/// there, so that no successor starts beside them.
#[tokio::test(start_paused = true)]
async fn store_errors_stop_the_services_before_a_successor_starts() {
    for fault in [Fault::Fail, Fault::Hang] {
        let (world, log) = (world().await, Log::default());
        let old = House::new(&world, vec![Player::new(&world, &log, "old")]).await;
        let signal = old.conductor.launch(None).await;
        let sent = world.now();
        old.member.store.set(&Call::ALL, fault);
        let new = House::new(&world, vec![Player::new(&world, &log, "new")]).await;
        let host = async {
            let problem = signal.wait().await;
            assert!(matches!(&*problem, Problem::Lost(Loss::StoreErrors | Loss::Deadline)));
            assert_eq!(world.now().since(sent), world.lease() / 2);
            old.conductor.shutdown().await.expect_err("lost");
            assert!(world.value(SEAT).await.is_some(), "not deleted");
        };
        let (signal, ()) = tokio::join!(new.conductor.launch(None), host);
        assert!(signal.get().is_none());
        assert!(world.now() >= sent.after(world.lease()));
        let lines = ["old up", "old told to stop", "old down, the seat is held", "new up"];
        assert_eq!(log.lines(), lines);
        assert_eq!(old.member.store.begun(Call::Delete), 0);
        assert_eq!(old.member.killer.at(), Some(sent.after(world.lease() * 3 / 4)));
        new.conductor.shutdown().await.expect("no problem");
        new.assert_empty().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_shutdown_gives_the_same_answer() {
    let (world, log) = (world().await, Log::default());
    let slow =
        Player { exit: Exit::Takes(Duration::from_secs(9)), ..Player::new(&world, &log, "a") };
    let house = House::new(&world, vec![slow]).await;
    house.conductor.launch(None).await;
    let (a, b) = tokio::join!(house.conductor.shutdown(), house.conductor.shutdown());
    assert!(a.is_ok() && b.is_ok());
    let begin = world.now();
    house.conductor.shutdown().await.expect("no problem");
    assert_eq!(world.now(), begin);
    assert_eq!(log.lines(), ["a up", "a told to stop", "a down, the seat is held"]);
    house.assert_empty().await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the conductor is launched already")]
async fn launched_twice() {
    let world = world().await;
    let house = House::new(&world, Vec::new()).await;
    house.conductor.launch(None).await;
    house.conductor.launch(None).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the conductor is launched already")]
async fn launched_again_after_shutdown() {
    let world = world().await;
    let house = House::new(&world, Vec::new()).await;
    house.conductor.launch(None).await;
    house.conductor.shutdown().await.expect("no problem");
    house.conductor.launch(None).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the conductor is not launched")]
async fn shut_down_before_launch() {
    let world = world().await;
    let house = House::new(&world, Vec::new()).await;
    let _answer = house.conductor.shutdown().await;
}

/// Nothing runs before it is launched.
#[tokio::test(start_paused = true)]
async fn provide_launches_nothing() {
    let (world, log) = (world().await, Log::default());
    let house = House::new(&world, vec![Player::new(&world, &log, "it")]).await;
    pass(world.lease()).await;
    assert!(house.steps.all().is_empty() && log.lines().is_empty());
    let calls = Call::ALL.map(|call| house.member.store.begun(call));
    assert_eq!(calls, [0; 12]);
    house.assert_empty().await;
}

/// Elections that were cleaned up are a problem like any other refusal.
#[tokio::test(start_paused = true)]
async fn closed_elections_are_a_problem() {
    let world = world().await;
    let house = House::new(&world, Vec::new()).await;
    house.member.elections.cleanup().await;
    let signal = house.conductor.launch(None).await;
    let problem = signal.get().expect("raised");
    assert!(matches!(&*problem, Problem::NotAcquired(Refusal::Closed)));
    house.conductor.shutdown().await.expect_err("the problem");
    let begun = [Step::Launched, Step::ProblemRaised, Step::ShutdownAsked, Step::ShutdownerStarted];
    assert_eq!(house.steps.all(), steps(&[&begun, &DOWN_UNSEATED[1..]]));
    house.assert_empty().await;
}

/// The fences of the board are raised before any service starts, again and again if the store
/// fails, and not at all for one that was overtaken.
#[tokio::test(start_paused = true)]
async fn fences_are_raised_before_services_start() {
    let (world, log) = (world().await, Log::default());
    let house = House::new(&world, vec![Player::new(&world, &log, "it")]).await;
    house.member.store.next(Call::Raise, 3, Fault::Fail);
    let signal = house.conductor.launch(None).await;
    assert!(signal.get().is_none());
    assert_eq!(house.member.store.begun(Call::Raise), 4);
    house.conductor.shutdown().await.expect("no problem");
    assert_eq!(log.lines()[0], "it up");

    let late = House::new(&world, vec![Player::new(&world, &log, "late")]).await;
    let _raised = world.store.raise(SEAT, Epoch(9)).await.unwrap();
    let signal = late.conductor.launch(None).await;
    let problem = signal.get().expect("deposed");
    assert!(matches!(&*problem, Problem::Deposed(Epoch(9))), "{problem}");
    let started = steps(&[&UP[..4], &[Step::ProblemRaised]]);
    late.conductor.shutdown().await.expect_err("deposed");
    assert_eq!(late.steps.all(), steps(&[&started, &DOWN]));
    assert!(!log.lines().contains(&"late up".to_owned()));
    late.assert_empty().await;
}

/// Fences that cannot be raised: an error that needs a person is told at once; a store that
/// hangs costs the seat, and launch returns with that.
#[tokio::test(start_paused = true)]
async fn fences_that_cannot_be_raised() {
    let (world, log) = (world().await, Log::default());
    let denied = House::new(&world, vec![Player::new(&world, &log, "denied")]).await;
    denied.member.store.set(&[Call::Raise], Fault::Deny);
    let signal = denied.conductor.launch(None).await;
    assert!(matches!(&*signal.get().expect("raised"), Problem::Store(_)));
    denied.conductor.shutdown().await.expect_err("the problem");

    let hung = House::new(&world, vec![Player::new(&world, &log, "hung")]).await;
    hung.member.store.set(&[Call::Raise, Call::Swap], Fault::Hang);
    let launch = hung.conductor.launch(None);
    let signal = within("launch returns", world.lease(), launch).await;
    assert!(matches!(&*signal.get().expect("raised"), Problem::Lost(_)));
    hung.conductor.shutdown().await.expect_err("lost");
    assert!(log.lines().is_empty());
    hung.assert_empty().await;
}

/// The host stops waiting for the launch: nothing more is started, and a shutdown ends it all.
#[tokio::test(start_paused = true)]
async fn a_launch_that_nobody_waits_for() {
    let (world, log) = (world().await, Log::default());
    let never = Player { entrance: Entrance::Never, ..Player::new(&world, &log, "never") };
    let house = House::new(&world, vec![Player::new(&world, &log, "a"), never]).await;
    let launch = house.conductor.launch(None);
    assert!(tokio::time::timeout(world.lease(), launch).await.is_err());
    house.conductor.shutdown().await.expect("no problem");
    assert_eq!(log.lines(), ["a up", "a told to stop", "a down, the seat is held"]);
    assert_eq!(world.value(SEAT).await, None);
    house.assert_empty().await;
}
