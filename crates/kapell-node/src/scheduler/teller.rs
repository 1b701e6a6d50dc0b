//! What a backend knows of attempts, and what it has told of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapell_core::run::{Evidence, WorkEnd};
use kapell_core::seams::Timestamp;

use super::backend::{Attempt, News, Newsroom, What};

/// Tells each news of an attempt once and in order, and none before somebody has asked for the attempt.
#[derive(Debug)]
pub(super) struct Teller {
    newsroom: Newsroom,
    known: Mutex<BTreeMap<Attempt, Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// So many have asked for it.
    wanted: u32,
    started: Option<Timestamp>,
    end: Option<End>,
    told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Told {
    #[default]
    Nothing,
    Start,
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Unstartable { why: String },
    Ended(WorkEnd),
}

impl Teller {
    pub(super) fn new(newsroom: Newsroom) -> Self {
        Self { newsroom, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Attempt, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an attempt is there, of which nobody has asked yet. False if it was known before.
    pub(super) fn add(&self, attempt: &Attempt) -> bool {
        let mut known = self.known();
        let is_new = !known.contains_key(attempt);
        known.entry(attempt.clone()).or_default();
        is_new
    }

    /// Has all news of an attempt told from now on, and those that nobody was told. False if it is not known.
    pub(super) fn want(&self, attempt: &Attempt) -> bool {
        self.change(attempt, |known| known.wanted += 1)
    }

    pub(super) fn started(&self, attempt: &Attempt, at: Timestamp) {
        self.change(attempt, |known| known.started = known.started.or(Some(at)));
    }

    /// The first end counts.
    pub(super) fn ended(&self, attempt: &Attempt, mut end: End) {
        self.change(attempt, |known| {
            if let End::Ended(work) = &mut end {
                work.began = work.began.or(known.started);
                // The two may be by different clocks.
                work.at = work.began.map_or(work.at, |began| work.at.max(began));
            }
            known.end = known.end.take().or(Some(end));
        });
    }

    #[cfg(feature = "kubernetes")]
    /// Something else than before keeps it from starting.
    pub(super) fn hindered(&self, attempt: &Attempt, why: &str) {
        if self
            .known()
            .get(attempt)
            .is_some_and(|known| known.wanted > 0 && known.told == Told::Nothing)
        {
            let what = What::Hindered { why: why.to_owned() };
            drop(self.newsroom.send(News { attempt: attempt.clone(), what }));
        }
    }

    /// What is known of an attempt; what this says is not told again.
    pub(super) fn evidence(&self, attempt: &Attempt) -> Option<Evidence> {
        let mut all = self.known();
        let known = all.get_mut(attempt)?;
        known.wanted += 1;
        let (evidence, told) = match (&known.end, known.started) {
            (Some(End::Ended(work)), _) => (Evidence::Ended(work.clone()), Told::End),
            (None, Some(since)) => (Evidence::Running { since }, Told::Start),
            (Some(End::Unstartable { .. }) | None, _) => (Evidence::Launched, Told::Nothing),
        };
        known.told = known.told.max(told);
        self.tell(attempt, known);
        Some(evidence)
    }

    /// Forgets an attempt that came to nothing. Whoever launched it gets that as an answer; others were told that it is
    /// there, and so are told.
    pub(super) fn fail(&self, attempt: &Attempt, why: &str) {
        let mut all = self.known();
        if let Some(mut known) = all.remove(attempt)
            && known.wanted > 1
        {
            known.end = Some(End::Unstartable { why: why.to_owned() });
            self.tell(attempt, &mut known);
        }
    }

    pub(super) fn knows(&self, attempt: &Attempt) -> bool {
        self.known().contains_key(attempt)
    }

    /// Nothing more is told of it.
    pub(super) fn forget(&self, attempt: &Attempt) {
        self.known().remove(attempt);
    }

    pub(super) fn all(&self) -> Vec<Attempt> {
        self.known().keys().cloned().collect()
    }

    fn change(&self, attempt: &Attempt, change: impl FnOnce(&mut Known)) -> bool {
        let mut all = self.known();
        let Some(known) = all.get_mut(attempt) else { return false };
        change(known);
        self.tell(attempt, known);
        true
    }

    /// Whoever calls this holds the lock, so that news leave in the order in which they came.
    fn tell(&self, attempt: &Attempt, known: &mut Known) {
        if known.wanted == 0 {
            return;
        }
        let tell = |what| {
            // Nobody is left who listens: the host is ending.
            drop(self.newsroom.send(News { attempt: attempt.clone(), what }));
        };
        if let (Told::Nothing, Some(at)) = (known.told, known.started) {
            known.told = Told::Start;
            tell(What::Started { at });
        }
        if let (Told::Nothing | Told::Start, Some(end)) = (known.told, &known.end) {
            known.told = Told::End;
            tell(match end.clone() {
                End::Unstartable { why } => What::Unstartable { why },
                End::Ended(work) => What::Ended(work),
            });
        }
    }
}
