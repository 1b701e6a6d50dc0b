//! What a pass of convergence waits for.

use std::collections::{BTreeSet, VecDeque};

use kapell_core::board::{CellId, LrpKey, Request, TaskGuid, converge};
use kapell_store::model::SHARDS;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::handle::{Board, Declined};
use super::lanes::Answer;

/// How many requests of a pass may wait for their answers: the lanes are not to be filled by it.
const MOST_OPEN: usize = 4096;

/// What was asked and is not answered yet.
#[derive(Debug, Default)]
pub(super) struct Open {
    answers: VecDeque<Waiting>,
    /// What is being rescued: it is not asked for again while it is.
    rescues: BTreeSet<Rescue>,
    count: usize,
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Receiver<Answer>,
    rescue: Option<Rescue>,
}

/// What a lost cell held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Rescue {
    Instance(LrpKey, CellId),
    Task(TaskGuid, CellId),
}

impl Rescue {
    fn of(request: &Request) -> Option<Self> {
        if let Request::Rescue { key, cell_id } = request {
            Some(Self::Instance(key.clone(), cell_id.clone()))
        } else if let Request::FailLostTask { task_guid, cell_id } = request {
            Some(Self::Task(task_guid.clone(), cell_id.clone()))
        } else {
            None
        }
    }
}

/// The seat is lost: there is no use in going on.
pub(super) struct Lost;

impl Open {
    /// Asks, and waits for the oldest answer if too many are open.
    pub(super) async fn add(&mut self, board: &Board, request: Request) -> Result<(), Lost> {
        self.ask(board, request);
        if self.answers.len() > MOST_OPEN { self.next(board).await } else { Ok(()) }
    }

    /// How many were asked.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    fn ask(&mut self, board: &Board, request: Request) {
        let rescue = Rescue::of(&request);
        if rescue.as_ref().is_none_or(|rescue| self.rescues.insert(rescue.clone())) {
            self.count += 1;
            self.answers.push_back(Waiting { answer: board.ask_inside(request), rescue });
        }
    }

    /// Waits for the oldest answer, and meanwhile looks after the cells that are lost.
    async fn next(&mut self, board: &Board) -> Result<(), Lost> {
        while let Some(first) = self.answers.front_mut() {
            tokio::select! {
                biased;
                () = board.alarm().lost() => self.rescue(board),
                answer = &mut first.answer => {
                    let rescue = self.answers.pop_front().and_then(|first| first.rescue);
                    if let Some(rescue) = rescue {
                        self.rescues.remove(&rescue);
                    }
                    return match answer {
                        Ok(
                            Ok(_)
                            | Err(
                                Declined::Refused(_)
                                | Declined::Busy
                                | Declined::ReadOnly(_)
                                | Declined::Unsettled(_),
                            ),
                        ) => Ok(()),
                        Ok(Err(Declined::NotLeading)) | Err(_) => Err(Lost),
                    };
                }
            }
        }
        Ok(())
    }

    pub(super) async fn end(mut self, board: &Board) -> Result<(), Lost> {
        while !self.answers.is_empty() {
            self.next(board).await?;
        }
        Ok(())
    }

    /// Asks for all that cells held that are not there, whatever else is open.
    fn rescue(&mut self, board: &Board) {
        self.forget_answered();
        for shard in 0..SHARDS {
            let found = {
                let sheet = board.sheet(shard);
                let records = sheet.records();
                let gone = board.presences().absent(records.cells(), board.clock().now());
                converge::rescues(records, &gone, board.settings())
            };
            for request in found {
                self.ask(board, request);
            }
        }
    }

    /// Answers are taken in order: what was rescued behind one that is late may be lost again.
    fn forget_answered(&mut self) {
        let rescues = &mut self.rescues;
        self.answers.retain_mut(|waiting| {
            let is_open = waiting.answer.try_recv() == Err(TryRecvError::Empty);
            if let Some(rescue) = waiting.rescue.as_ref().filter(|_| !is_open) {
                rescues.remove(rescue);
            }
            is_open
        });
    }
}
