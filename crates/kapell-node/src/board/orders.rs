//! Orders to cells.
//!
//! A stop is said again until the record of the instance is gone, for the agent may die before or after
//! it hears of it, or until there is no reason for it any more. A cancellation is said once, for the cell's poll makes up for it.

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_api::v1::{Cancel, Stop};
use kapell_core::board::{
    CellId, CellPresence, Domain, Ground, InstanceGuid, InstanceKey, LrpKey, TaskGuid,
};
use kapell_core::planted::Flaw;
use kapell_core::seams::Moment;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::handle::Board;
use super::meters::Meters;
use crate::link::LinkError;

/// How many orders are on their way at once.
const AT_ONCE: usize = 32;
/// How many may wait.
pub(super) const WAITING: usize = 16 << 10;
/// How long a cell may take, and for how long one that did not answer is left alone.
const LIMIT: Duration = Duration::from_secs(5);
/// How often a stop is said again.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(super) enum Order {
    Stop { key: LrpKey, instance: InstanceKey },
    Cancel { task_guid: TaskGuid, instance: InstanceKey },
}

impl Order {
    const fn cell_id(&self) -> &CellId {
        match self {
            Self::Stop { instance, .. } | Self::Cancel { instance, .. } => &instance.cell_id,
        }
    }
}

/// Sends orders until it is dropped.
pub(super) async fn run(board: Board, mut orders: mpsc::Receiver<Order>) {
    let mut sent = JoinSet::new();
    let mut silent = Silent::default();
    let mut stops = Stops::default();
    loop {
        let rest = stops.due.map(|due| due.since(board.clock().now()));
        let (order, is_new) = tokio::select! {
            biased;
            Some(done) = sent.join_next() => {
                if let Ok((cell, outcome)) = done {
                    note(&board, &mut silent, cell, outcome);
                }
                continue;
            }
            order = orders.recv(), if sent.len() < AT_ONCE => {
                let Some(order) = order else { return };
                if !may_send(&board, &order) {
                    continue;
                }
                stops.add(&order, board.clock().now());
                (order, true)
            }
            () = tokio::time::sleep(rest.unwrap_or_default()), if rest.is_some() && sent.len() < AT_ONCE => {
                let Some(order) = stops.next(&board) else { continue };
                (order, false)
            }
        };
        let now = board.clock().now();
        silent.retain(|_, until| now < *until);
        // Nobody to tell: what it held, convergence looks after, or it is told when it is there.
        let Some(cell) = board.cell(order.cell_id()) else { continue };
        if !board.may_act() || silent.contains_key(&cell.url) {
            Meters::add(&board.meters().orders_failed, usize::from(is_new));
            continue;
        }
        let board = board.clone();
        sent.spawn(async move {
            let outcome = send(&board, &cell, &order).await;
            (cell, outcome)
        });
    }
}

/// Until when agents that did not answer are left alone, by where they were reached: one that is
/// started again is reached elsewhere.
type Silent = BTreeMap<String, Moment>;

fn note(board: &Board, silent: &mut Silent, cell: CellPresence, outcome: Result<(), LinkError>) {
    let Err(error) = outcome else {
        Meters::add(&board.meters().orders_done, 1);
        return;
    };
    Meters::add(&board.meters().orders_failed, 1);
    tracing::warn!(cell_id = %cell.cell_id, %error, "an order to a cell failed");
    if matches!(error, LinkError::NoAnswer(_)) {
        silent.insert(cell.url, board.clock().now().after(LIMIT));
    }
}

/// Stops whose instances may still be there.
#[derive(Debug, Default)]
struct Stops {
    open: BTreeMap<InstanceGuid, Order>,
    /// Those of this round that are still to be looked at.
    round: Vec<InstanceGuid>,
    /// When the next one is looked at, or the next round begins.
    due: Option<Moment>,
}

impl Stops {
    fn add(&mut self, order: &Order, now: Moment) {
        if let Order::Stop { instance, .. } = order
            && self.open.len() < WAITING
        {
            self.open.insert(instance.instance_guid.clone(), order.clone());
            self.due.get_or_insert(now.after(AGAIN));
        }
    }

    /// The next one that is to be said again.
    fn next(&mut self, board: &Board) -> Option<Order> {
        let now = board.clock().now();
        if self.round.is_empty() {
            self.open.retain(|_, order| is_to_stop(board, order));
            self.round = self.open.keys().cloned().collect();
        }
        let order = self.round.pop().and_then(|guid| self.open.get(&guid).cloned());
        self.due = if !self.round.is_empty() {
            Some(now)
        } else if self.open.is_empty() {
            None
        } else {
            Some(now.after(AGAIN))
        };
        order.filter(|order| is_to_stop(board, order))
    }
}

/// Whether the board still has the instance, and a reason to stop it.
fn is_to_stop(board: &Board, order: &Order) -> bool {
    match order {
        Order::Stop { key, instance } => has_reason(board, key, instance).unwrap_or(false),
        Order::Cancel { .. } => false,
    }
}

/// Whether nothing speaks against it: a commit may have taken long, and its reason may be gone.
fn may_send(board: &Board, order: &Order) -> bool {
    match order {
        // The record of a container that runs elsewhere as well is gone by now.
        Order::Stop { key, instance } => has_reason(board, key, instance).unwrap_or(true),
        Order::Cancel { .. } => true,
    }
}

/// Whether there is a reason to stop a container, if the board still has it.
fn has_reason(board: &Board, key: &LrpKey, instance: &InstanceKey) -> Option<bool> {
    let ground = board.look(key.process_guid.as_str(), |records| records.ground(key, instance));
    let planted = board.settings().planted;
    Some(match ground? {
        Ground::None => {
            planted.has(Flaw::StaleDomainStops) || planted.has(Flaw::EffectsBeforeCommit)
        }
        Ground::GivenUp | Ground::Elsewhere => true,
        Ground::Extra(domain) => is_fresh(board, &domain),
    })
}

fn is_fresh(board: &Board, domain: &Domain) -> bool {
    let now = board.clock().wall();
    let is_fresh = board.look(domain.as_str(), |records| {
        records.domains.get(domain).is_some_and(|it| it.is_fresh(now))
    });
    is_fresh || board.settings().planted.has(Flaw::StaleDomainStops)
}

async fn send(board: &Board, cell: &CellPresence, order: &Order) -> Result<(), LinkError> {
    let told = async {
        match order {
            Order::Stop { key, instance } => {
                let instance_guid = instance.instance_guid.clone();
                let stop = Stop { key: key.clone(), instance_guid };
                board.link().stop(cell, board.epoch(), &stop).await
            }
            Order::Cancel { task_guid, instance } => {
                let instance_guid = instance.instance_guid.clone();
                let at_once = false;
                let cancel = Cancel { task_guid: task_guid.clone(), instance_guid, at_once };
                board.link().cancel(cell, board.epoch(), &cancel).await
            }
        }
    };
    let answer = tokio::time::timeout(LIMIT, told).await;
    answer.unwrap_or_else(|_| Err(LinkError::NoAnswer(format!("no answer within {LIMIT:?}"))))
}
