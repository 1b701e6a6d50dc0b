//! Giving a cell its share: in requests that are not too large, one after the other.

use std::collections::BTreeMap;
use std::io;

use kapell_api::v1::{Work, WorkAnswer};
use kapell_core::board::CellPresence;
use serde::Serialize;

use super::round::limited;
use super::starts::Start;
use super::wanted::{lrp_work, task_work};
use crate::board::{Board, Meters};
use crate::link::LinkError;

/// How much one request holds at most. What a cell reads at most is a little more.
const MOST_UNITS: usize = 500;
const MOST_BYTES: usize = 3 * 1024 * 1024 + 512 * 1024;

/// What became of a cell's share.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// How much the cell has taken.
    pub(super) placed: usize,
    /// What it refused, and what it was not sent after it failed.
    pub(super) carried: Vec<Start>,
    /// Why it refused what it refused.
    pub(super) refused: Vec<(Start, String)>,
    /// The cell did not answer: it may have taken what it was sent then.
    pub(super) silent: Option<LinkError>,
}

/// One request in the making.
#[derive(Debug, Default)]
struct Parcel {
    work: Work,
    starts: Vec<Start>,
    bytes: usize,
}

impl Parcel {
    fn is_full_for(&self, bytes: usize) -> bool {
        let units = self.starts.len();
        units > 0 && (units >= MOST_UNITS || self.bytes + bytes > MOST_BYTES)
    }
}

/// Hands a cell all of this that is still wanted.
pub(super) async fn hand_over(board: &Board, cell: &CellPresence, starts: Vec<Start>) -> Share {
    let mut share = Share::default();
    let mut parcel = Parcel::default();
    let mut rest = starts.into_iter();
    while let Some(start) = rest.next() {
        let mut one = Work::default();
        match &start {
            Start::Lrp(key) => one.lrps.extend(lrp_work(board, key)),
            Start::Task(guid) => one.tasks.extend(task_work(board, guid)),
        }
        if one == Work::default() {
            continue;
        }
        let bytes = size(&one);
        if parcel.is_full_for(bytes)
            && !send(board, cell, std::mem::take(&mut parcel), &mut share).await
        {
            share.carried.push(start);
            share.carried.extend(rest);
            return share;
        }
        parcel.bytes += bytes;
        parcel.work.lrps.append(&mut one.lrps);
        parcel.work.tasks.append(&mut one.tasks);
        parcel.starts.push(start);
    }
    if !parcel.starts.is_empty() {
        send(board, cell, parcel, &mut share).await;
    }
    share
}

/// Sends one request; answers whether the cell goes on to take work.
async fn send(board: &Board, cell: &CellPresence, parcel: Parcel, share: &mut Share) -> bool {
    if !board.may_act() {
        return false;
    }
    let Parcel { work, starts, .. } = parcel;
    match limited(board.link().work(cell, board.epoch(), &work)).await {
        Ok(answer) => {
            taken(board, starts, answer, share);
            true
        }
        Err(LinkError::Refused(problem)) => {
            let cell_id = &cell.cell_id;
            Meters::add(&board.meters().refused_by_cells, starts.len());
            tracing::warn!(%cell_id, %problem, "a cell refused all of its work");
            let reasons = starts.iter().map(|start| (start.clone(), problem.message.clone()));
            share.refused.extend(reasons);
            share.carried.extend(starts);
            false
        }
        // It may have taken it. Convergence asks again for what it has not.
        Err(error @ LinkError::NoAnswer(_)) => {
            share.silent = Some(error);
            false
        }
    }
}

/// What a cell refuses is carried over; all else it has.
fn taken(board: &Board, starts: Vec<Start>, answer: WorkAnswer, share: &mut Share) {
    let lrps = answer.refused_lrps.into_iter().map(|(key, why)| (Start::Lrp(key), why));
    let tasks = answer.refused_tasks.into_iter().map(|(guid, why)| (Start::Task(guid), why));
    let mut refused: BTreeMap<Start, String> = lrps.chain(tasks).collect();
    let (all, before) = (starts.len(), share.carried.len());
    for start in starts {
        if let Some(why) = refused.remove(&start) {
            tracing::debug!(?start, why, "the chosen cell refused");
            share.refused.push((start.clone(), why));
            share.carried.push(start);
        }
    }
    let refused = share.carried.len() - before;
    share.placed += all - refused;
    Meters::add(&board.meters().refused_by_cells, refused);
    Meters::add(&board.meters().placed, all - refused);
}

/// How long it is on its way.
fn size(work: &impl Serialize) -> usize {
    let mut count = Count(0);
    // What cannot be written is found out by the link.
    drop(serde_json::to_writer(&mut count, work));
    count.0
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
