//! Processes of the host that leads, on its simulated machine.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_core::job::Payload;
use kapell_core::run::{Evidence, StopKind};
use kapell_node::board::Board;
use kapell_node::scheduler::backend::{Attempt, Backend, Work};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::yard::{Yard, YardAsk};
use crate::fleet::desk::Desk;
use crate::fleet::mail::{Answer, Ask, Party};

/// Longer than anything that a machine is asked for takes.
const LIMIT: Duration = Duration::from_secs(20);
/// Between two looks whether work has ended.
const LOOK: Duration = Duration::from_millis(50);

/// What a leader has of its machine.
#[derive(Debug)]
pub(super) struct Place {
    board: Board,
    desk: Arc<Desk>,
    yard: Arc<Yard>,
    launches: Mutex<JoinSet<()>>,
}

impl Place {
    pub(super) fn new(board: Board, desk: Arc<Desk>, yard: Arc<Yard>) -> Self {
        Self { board, desk, yard, launches: Mutex::default() }
    }
}

async fn ask(desk: &Desk, yard: &Yard, ask: YardAsk) -> Result<(), String> {
    match desk.ask(Party::Yard(yard.host()), Ask::Yard(ask), LIMIT).await {
        Ok(Answer::Nothing) => Ok(()),
        Ok(other) => Err(format!("answered in another kind: {other:?}")),
        Err(failed) => Err(format!("{failed:?}")),
    }
}

/// Starts the work of an attempt that was noted just now.
async fn start(board: &Board, desk: &Desk, yard: &Yard, work: &Work) -> Result<(), String> {
    let attempt = work.attempt.clone();
    let slow = if yard.mishap(250) { 4_000 } else { 300 };
    sleep(yard.draw(Duration::from_millis(1), Duration::from_millis(slow))).await;
    if yard.mishap(5) {
        std::future::pending::<()>().await;
    }
    if yard.mishap(30) {
        return Err("there is no such program".to_owned());
    }
    let told = match work.definition.payload() {
        Some(Payload::Command(command)) => command.command.clone(),
        Some(Payload::Task(_) | Payload::Workflow(_) | Payload::Kubernetes(_)) | None => {
            String::new()
        }
    };
    if !board.may_act() {
        return Err("this host does not lead any more".to_owned());
    }
    ask(desk, yard, YardAsk::Launch { attempt, told }).await
}

#[async_trait]
impl Backend for Place {
    fn name(&self) -> &'static str {
        "machine"
    }

    fn place(&self) -> ArcStr {
        self.yard.place()
    }

    async fn launch(&self, work: &Work) -> Result<(), String> {
        if !self.yard.reserve(&work.attempt) {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let (board, work) = (self.board.clone(), work.clone());
        let (desk, yard) = (Arc::clone(&self.desk), Arc::clone(&self.yard));
        // Whoever asks may be gone before it is started: then it is started nonetheless.
        self.launches.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            let started = start(&board, &desk, &yard, &work).await;
            if started.is_err() {
                yard.drop_launch(&work.attempt);
            }
            drop(answer.send(started));
        });
        answered.await.unwrap_or_else(|_| Err("the host is ending".to_owned()))
    }

    async fn find(&self, attempt: &Attempt, place: &str) -> Evidence {
        let slow = if self.yard.mishap(50) { 8_000 } else { 50 };
        sleep(self.yard.draw(Duration::ZERO, Duration::from_millis(slow))).await;
        self.yard.find(attempt, place)
    }

    async fn stop(&self, attempt: &Attempt, place: &str, kind: StopKind) -> Result<(), String> {
        if !self.yard.is_here(place) {
            return Err(format!("it may still run: it was launched at {place}"));
        }
        if self.yard.mishap(100) {
            return Err("it does not go away".to_owned());
        }
        ask(&self.desk, &self.yard, YardAsk::Stop { attempt: attempt.clone(), kind }).await?;
        while self.yard.runs(attempt) {
            sleep(LOOK).await;
        }
        Ok(())
    }

    async fn release(&self, attempt: &Attempt) {
        let attempt = attempt.clone();
        // What is not released is found by the next leader.
        drop(ask(&self.desk, &self.yard, YardAsk::Release { attempt }).await);
    }

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        if self.yard.mishap(200) {
            return Err("the machine has too much to do".to_owned());
        }
        Ok(self.yard.known())
    }
}
