//! What is done for runs by tasks: begun, and answered.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use kapell_core::run::Happened;
use tokio::task::{Id, JoinError};

use super::actor::Actor;
use super::entry::Working;
use super::lanes::{Deed, Discharge, Errand, Kind};
use super::launcher::{self, Launched, Start, TOGETHER};
use super::perform::{self, Case};
use super::slab::Key;
use super::supplies::Backends;
use crate::constraint::Pulse;

/// What a task is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Something for one run, with the ticket of its errand.
    Errand(Kind, (Key, u32)),
    /// Launches, each of which is answered by itself.
    Launches(Vec<(Key, u32)>),
    /// Something for no run under way.
    Release,
}

impl Actor {
    pub(super) fn begin_errands(&mut self) {
        while let Some(errand) = self.lanes.take() {
            self.begin(errand);
        }
        while !self.starts.is_empty() {
            let rest = self.starts.split_off(self.starts.len().min(TOGETHER));
            let starts = std::mem::replace(&mut self.starts, rest);
            let runs = starts.iter().map(|start| (start.key, start.ticket)).collect();
            let answers = self.answers.clone();
            let task = self.tasks.spawn(async move {
                launcher::launch(starts, answers).await;
                None
            });
            self.purposes.insert(task.id(), Purpose::Launches(runs));
        }
        while let Some(Discharge { backend, attempts, stop }) = self.lanes.take_discharge() {
            let backend = Arc::clone(self.backends.get(backend));
            let logs = self.backends.keeps().map(|keeps| keeps.logs.clone());
            let task = self.tasks.spawn(async move {
                perform::discharge(backend, attempts, stop, logs).await;
                None
            });
            self.purposes.insert(task.id(), Purpose::Release);
        }
    }

    /// Begins what was asked for, unless it is not wanted any more.
    fn begin(&mut self, errand: Errand) {
        let Errand { key, ticket, attempt, deed } = errand;
        let kind = deed.kind();
        if matches!(deed, Deed::Launch) && !self.board.may_act() {
            // Whoever leads by now decides what becomes of it.
            return self.lanes.ended(kind);
        }
        let wanted = self.slab.get_mut(key).filter(|entry| entry.ticket == ticket);
        let Some(entry) = wanted else { return self.lanes.ended(kind) };
        let (run_id, intent) = (entry.it.run_id(), entry.intent.take());
        let look = || self.board.look(run_id.job(), |records| records.runs.get(run_id).cloned());
        let Some(run) = intent.or_else(look) else {
            // Nothing more can be stored of it; what is left of its work goes when it is let go of.
            let over = entry.it.state().is_final();
            self.lanes.ended(kind);
            let gone = Happened::Stopped { attempt, left: None };
            return self.tell(key, if over { gone } else { Happened::Silent });
        };
        let (definition, pulse) =
            (Arc::clone(&entry.it.plan().definition), Pulse::among(self.lanes.slots(kind)));
        let backend =
            Backends::number_for(&definition).map(|backend| Arc::clone(self.backends.get(backend)));
        let started_at = entry.it.started_at();
        let case = Case { definition, run, attempt, started_at, pulse: pulse.clone() };
        let checker = Arc::clone(&self.checker);
        let work: Option<BoxFuture<'static, Happened>> = match deed {
            Deed::Check => Some(Box::pin(perform::check(case, checker))),
            Deed::Act => Some(Box::pin(perform::act(case, checker))),
            Deed::CheckPost { work } => Some(Box::pin(perform::check_post(case, checker, work))),
            Deed::Launch => {
                self.starts.push(Start { key, ticket, case, backend });
                None
            }
            Deed::Find => Some(Box::pin(perform::find(case, backend))),
            Deed::Stop { kind } => Some(Box::pin(perform::stop(case, backend, kind))),
        };
        entry.launching = work.is_none();
        let abort = work.map(|work| {
            let abort = self.tasks.spawn(async move { Some(work.await) });
            self.purposes.insert(abort.id(), Purpose::Errand(kind, (key, ticket)));
            abort
        });
        let last = self.clock.now();
        entry.working = Some(Box::new(Working { abort, ticket, pulse, seen: 0, last }));
    }

    pub(super) fn task_done(&mut self, done: Result<(Id, Option<Happened>), JoinError>) {
        match done {
            Ok((id, happened)) => match self.purposes.remove(&id) {
                Some(Purpose::Errand(kind, run)) => self.answered(kind, run, happened),
                Some(Purpose::Release) => self.lanes.ended(Kind::Release),
                Some(Purpose::Launches(_)) | None => {}
            },
            Err(error) => self.task_lost(&error),
        }
    }

    pub(super) fn launches_answered(&mut self, launched: Vec<Launched>) {
        for Launched { key, ticket, happened } in launched {
            self.answered(Kind::Launch, (key, ticket), Some(happened));
        }
    }

    /// What an errand was for has been done.
    fn answered(&mut self, kind: Kind, (key, ticket): (Key, u32), happened: Option<Happened>) {
        self.lanes.ended(kind);
        if kind == Kind::Stop {
            // What it ended is told of first.
            self.hear_held();
        }
        let Some(entry) = self.slab.get_mut(key) else { return };
        let mine = entry.working.as_ref().is_some_and(|working| working.ticket == ticket);
        if mine {
            entry.working = None;
            entry.launching = false;
        }
        let (counts, attempt) = (entry.ticket == ticket, entry.it.attempt());
        if let Some(kind) = entry.stop_then.take_if(|_| mine) {
            return self.errand(key, attempt, Deed::Stop { kind });
        }
        if let Some(happened) = happened.filter(|_| counts) {
            self.tell(key, happened);
        }
    }

    /// It was let go of; or it failed in a way that nobody foresaw, and then its run is found to be silent.
    fn task_lost(&mut self, error: &JoinError) {
        let Some(purpose) = self.purposes.remove(&error.id()) else { return };
        if error.is_panic() {
            tracing::error!(%error, "a task of the scheduler failed");
        }
        match purpose {
            Purpose::Errand(kind, _) => self.lanes.ended(kind),
            Purpose::Release => self.lanes.ended(Kind::Release),
            Purpose::Launches(runs) => runs.into_iter().for_each(|run| self.launch_lost(run)),
        }
    }

    /// A launch that was not answered is under way no more: what waits for its end may go on.
    fn launch_lost(&mut self, (key, ticket): (Key, u32)) {
        let Some(entry) = self.slab.get_mut(key) else { return };
        let unanswered = entry.working.as_ref().is_some_and(|working| working.ticket == ticket);
        if !unanswered {
            return;
        }
        self.lanes.ended(Kind::Launch);
        entry.launching = false;
        let (attempt, stop) = (entry.it.attempt(), entry.stop_then.take());
        if let Some(kind) = stop {
            self.errand(key, attempt, Deed::Stop { kind });
        }
    }
}
