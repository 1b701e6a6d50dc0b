//! Orders to cells. They are hints: what does not arrive, convergence and the cell's poll make up for.

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_api::v1::{Cancel, Stop};
use kapell_core::board::{CellId, InstanceKey, LrpKey, TaskGuid};
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

#[derive(Debug)]
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
    let mut silent: BTreeMap<CellId, Moment> = BTreeMap::new();
    loop {
        tokio::select! {
            biased;
            Some(done) = sent.join_next() => {
                let Ok((cell_id, outcome)) = done else { continue };
                match outcome {
                    Ok(()) => Meters::add(&board.meters().orders_done, 1),
                    Err(error) => {
                        Meters::add(&board.meters().orders_failed, 1);
                        tracing::warn!(%cell_id, %error, "an order to a cell failed");
                        if matches!(error, LinkError::NoAnswer(_)) {
                            silent.insert(cell_id, board.clock().now().after(LIMIT));
                        }
                    }
                }
            }
            order = orders.recv(), if sent.len() < AT_ONCE => {
                let Some(order) = order else { return };
                let now = board.clock().now();
                silent.retain(|_, until| now < *until);
                if !board.may_act() || silent.contains_key(order.cell_id()) {
                    Meters::add(&board.meters().orders_failed, 1);
                    continue;
                }
                let board = board.clone();
                sent.spawn(async move {
                    let outcome = send(&board, &order).await;
                    (order.cell_id().clone(), outcome)
                });
            }
        }
    }
}

async fn send(board: &Board, order: &Order) -> Result<(), LinkError> {
    let Some(cell) = board.cell(order.cell_id()) else {
        // Nobody to tell. What it held, convergence looks after.
        return Ok(());
    };
    let told = async {
        match order {
            Order::Stop { key, instance } => {
                let instance_guid = instance.instance_guid.clone();
                let stop = Stop { key: key.clone(), instance_guid };
                board.link().stop(&cell, board.epoch(), &stop).await
            }
            Order::Cancel { task_guid, instance } => {
                let instance_guid = instance.instance_guid.clone();
                let cancel = Cancel { task_guid: task_guid.clone(), instance_guid };
                board.link().cancel(&cell, board.epoch(), &cancel).await
            }
        }
    };
    let answer = tokio::time::timeout(LIMIT, told).await;
    answer.unwrap_or_else(|_| Err(LinkError::NoAnswer(format!("no answer within {LIMIT:?}"))))
}
