//! A backend whose work does what a test says.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_core::run::{Evidence, StopKind, WorkEnd};
use kapell_core::seams::{Clock, Timestamp};

use super::backend::{Attempt, Backend, Newsroom, Work};
use super::teller::{End, Teller};

/// What a [`FakeBackend`] should do when it is asked for something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Manner {
    #[default]
    Good,
    /// Work starts as soon as it is launched.
    Prompt,
    /// Launches fail.
    Refuses { why: String },
    /// Nothing that it is asked for is ever answered.
    Hangs,
}

/// All work that there is: it outlives whoever launched it. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FakeWork(Arc<Mutex<World>>);

#[derive(Debug, Default)]
struct World {
    manner: Manner,
    work: BTreeMap<Attempt, Piece>,
    /// How often each was launched, also of what was released.
    launches: BTreeMap<Attempt, u32>,
}

#[derive(Debug, Clone, Default)]
struct Piece {
    started: Option<Timestamp>,
    end: Option<End>,
}

impl FakeWork {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn behave(&self, manner: Manner) {
        self.world().manner = manner;
    }

    pub fn launches(&self, attempt: &Attempt) -> u32 {
        self.world().launches.get(attempt).copied().unwrap_or_default()
    }

    /// Whether it was launched and has not ended.
    pub fn is_under_way(&self, attempt: &Attempt) -> bool {
        self.world().work.get(attempt).is_some_and(|piece| piece.end.is_none())
    }

    fn change(&self, attempt: &Attempt, change: impl FnOnce(&mut Piece)) {
        if let Some(piece) = self.world().work.get_mut(attempt) {
            change(piece);
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct FakeBackend {
    work: FakeWork,
    teller: Teller,
    clock: Arc<dyn Clock>,
}

impl FakeBackend {
    /// Finds what others have left in `work`.
    pub fn new(work: FakeWork, newsroom: Newsroom, clock: Arc<dyn Clock>) -> Self {
        let this = Self { work, teller: Teller::new(newsroom), clock };
        let left: Vec<Attempt> = this.work.world().work.keys().cloned().collect();
        for attempt in left {
            this.teller.add(&attempt);
            this.look(&attempt);
        }
        this
    }

    /// The work begins to run.
    pub fn start(&self, attempt: &Attempt) {
        let now = self.clock.wall();
        self.work.change(attempt, |piece| piece.started = piece.started.or(Some(now)));
        self.look(attempt);
    }

    /// The work ends with this code.
    pub fn end(&self, attempt: &Attempt, code: i32) {
        let failure = (code != 0).then(|| format!("Exited with status {code}"));
        self.finish(attempt, Some(code), failure);
    }

    /// It turns out that the work cannot be started.
    pub fn cannot_start(&self, attempt: &Attempt, why: &str) {
        let end = End::Unstartable { why: why.to_owned() };
        self.work.change(attempt, |piece| piece.end = piece.end.take().or(Some(end)));
        self.look(attempt);
    }

    fn finish(&self, attempt: &Attempt, exit_code: Option<i32>, failure: Option<String>) {
        let end = End::Ended(WorkEnd { began: None, at: self.clock.wall(), exit_code, failure });
        self.work.change(attempt, |piece| piece.end = piece.end.take().or(Some(end)));
        self.look(attempt);
    }

    fn look(&self, attempt: &Attempt) {
        let piece = self.work.world().work.get(attempt).cloned();
        let Some(Piece { started, end }) = piece else { return };
        if let Some(at) = started {
            self.teller.started(attempt, at);
        }
        if let Some(end) = end {
            self.teller.ended(attempt, end);
        }
    }

    async fn manner(&self) -> Manner {
        let manner = self.work.world().manner.clone();
        match manner {
            Manner::Hangs => std::future::pending().await,
            Manner::Good | Manner::Prompt | Manner::Refuses { .. } => manner,
        }
    }
}

#[async_trait]
impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn place(&self) -> ArcStr {
        ArcStr::new()
    }

    async fn launch(&self, work: &Work) -> Result<(), String> {
        let manner = self.manner().await;
        let attempt = &work.attempt;
        {
            let mut world = self.work.world();
            match (&manner, world.work.contains_key(attempt)) {
                (_, true) => {}
                (Manner::Refuses { why }, false) => return Err(why.clone()),
                (Manner::Good | Manner::Prompt | Manner::Hangs, false) => {
                    world.work.insert(attempt.clone(), Piece::default());
                    *world.launches.entry(attempt.clone()).or_default() += 1;
                }
            }
        }
        self.teller.add(attempt);
        self.teller.want(attempt);
        if manner == Manner::Prompt {
            self.start(attempt);
        }
        self.look(attempt);
        Ok(())
    }

    async fn find(&self, attempt: &Attempt, _place: &str) -> Evidence {
        self.manner().await;
        self.teller.evidence(attempt).unwrap_or(Evidence::Absent)
    }

    async fn stop(&self, attempt: &Attempt, _place: &str, _kind: StopKind) -> Result<(), String> {
        self.manner().await;
        self.finish(attempt, None, Some("Killed by signal 15 (SIGTERM)".to_owned()));
        Ok(())
    }

    async fn release(&self, attempt: &Attempt) {
        self.manner().await;
        self.teller.forget(attempt);
        self.work.world().work.remove(attempt);
    }

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        self.manner().await;
        Ok(self.work.world().work.keys().cloned().collect())
    }
}
