//! The same on several threads, where tasks really run at once.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::seat::Seat;
use kapell_node::elections::{Elections as _, Refusal};
use kapell_node::system::SystemClock;
use kapell_node::testing::{Speed, Stores, TtlStorageMock, World, eventually, within};

use crate::players::{House, Log, Player};

const LONG: Duration = Duration::from_secs(20);
const ROUNDS: usize = 200;

async fn world() -> World {
    let stores: Arc<dyn Stores> = Arc::new(TtlStorageMock::new(Arc::new(SystemClock)));
    World::new(stores, Speed { lease: LONG, ..Speed::REAL }, "races").await
}

/// A shutdown at any moment of a launch: it ends, with nothing left and the seat free.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shutdown_at_any_moment_of_a_launch() {
    let world = world().await;
    for round in 0..ROUNDS {
        let log = Log::default();
        let players = ["a", "b"].map(|name| Player::new(&world, &log, name));
        let house = House::new(&world, players.into()).await;
        let shutdown = async {
            for _ in 0..round % 40 {
                tokio::task::yield_now().await;
            }
            house.conductor.shutdown().await
        };
        let both = async { tokio::join!(house.conductor.launch(None), shutdown) };
        let (signal, answer) = within("both end", LONG, both).await;
        answer.expect("no problem");
        assert!(signal.get().is_none());
        assert_eq!(world.value(Seat::FIRST).await, None, "round {round}");
        let idle = || async { house.tasks.count() == 0 };
        eventually("no task is left", LONG, idle).await;
        let lines = log.lines();
        let up = lines.iter().filter(|line| line.ends_with(" up")).count();
        let down = lines.iter().filter(|line| line.ends_with("the seat is held")).count();
        assert_eq!(up, down, "{lines:?}");
        assert_eq!(house.member.killer.at(), None);
    }
}

/// A cleanup at any moment of an acquisition: nothing is held afterwards, whoever was first.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cleanup_at_any_moment_of_an_acquisition() {
    let world = world().await;
    for round in 0..ROUNDS {
        let member = world.member("10.0.0.1:7070").await;
        let mut racing = tokio::task::JoinSet::new();
        let elections = Arc::clone(&member.elections);
        racing.spawn(async move {
            match elections.acquire(&[Seat::FIRST], None).await {
                Ok(tenure) => drop(tenure),
                Err(refusal) => assert_eq!(refusal, Refusal::Closed),
            }
        });
        for _ in 0..round % 20 {
            tokio::task::yield_now().await;
        }
        within("cleaned up", LONG, member.elections.cleanup()).await;
        assert_eq!(world.value(Seat::FIRST).await, None, "round {round}");
        assert_eq!(member.killer.at(), None);
        within("the other ends", LONG, racing.join_all()).await;
        assert_eq!(world.value(Seat::FIRST).await, None, "round {round}");
    }
}
