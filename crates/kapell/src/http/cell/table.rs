//! Every route of a cell.

use kapell_core::access::Kind;

use super::super::route::{Gives, Route, Verb};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Health,
    State,
    Work,
    Stop,
    Cancel,
    Evacuate,
    LogsOfLrp,
    LogsOfTask,
    ExecInLrp,
    ExecInTask,
}

impl Op {
    /// What it is to those who decide who may.
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Health => Kind::Health,
            Self::State
            | Self::Work
            | Self::Stop
            | Self::Cancel
            | Self::Evacuate
            | Self::LogsOfLrp
            | Self::LogsOfTask
            | Self::ExecInLrp
            | Self::ExecInTask => Kind::Order,
        }
    }
}

const fn route(
    method: Verb,
    path: &'static str,
    does: Op,
    query: &'static [&'static str],
) -> Route<Op> {
    Route { method, path, does, query, about: "", takes: None, gives: Gives::Anything }
}

const LOG: &[&str] = &["follow", "tail"];

#[rustfmt::skip]
pub(super) const ROUTES: &[Route<Op>] = &[
    route(Verb::Get,  "/healthz", Op::Health, &["verbose"]),
    route(Verb::Get,  "/v1/cell/state", Op::State, &[]),
    route(Verb::Post, "/v1/cell/work", Op::Work, &[]),
    route(Verb::Post, "/v1/cell/stop", Op::Stop, &[]),
    route(Verb::Post, "/v1/cell/cancel", Op::Cancel, &[]),
    route(Verb::Post, "/v1/cell/evacuate", Op::Evacuate, &[]),
    route(Verb::Get,  "/v1/cell/logs/lrp/{process_guid}/{index}", Op::LogsOfLrp, LOG),
    route(Verb::Get,  "/v1/cell/logs/task/{task_guid}", Op::LogsOfTask, LOG),
    route(Verb::Post, "/v1/cell/exec/lrp/{process_guid}/{index}", Op::ExecInLrp, &[]),
    route(Verb::Post, "/v1/cell/exec/task/{task_guid}", Op::ExecInTask, &[]),
];
