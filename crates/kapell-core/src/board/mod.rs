//! The board: what is desired, what is there, and every rule that brings the one to the other.
//!
//! `decide` goes from the committed records of a shard and one request to changes, a reply and
//! effects. Who calls it commits the changes first and only then shows the reply and has the effects.

pub mod action;
pub mod actual;
pub mod aside;
pub mod cell;
pub mod check;
pub mod converge;
pub mod crash;
pub mod desired;
pub mod domain;
pub mod draft;
pub mod duty;
pub mod event;
pub mod explain;
pub mod ground;
pub mod ids;
mod index;
mod job_draft;
pub(crate) mod job_index;
mod job_records;
mod leaving;
mod of_kind;
pub mod placement;
pub mod plan;
pub mod reasons;
pub mod record;
mod records;
pub mod request;
mod row;
pub mod rules;
pub mod secrets;
pub mod settings;
pub mod task;
pub(crate) mod text;
pub mod time;
pub mod validate;

#[cfg(test)]
mod tests;

pub use action::{Action, Download, EnvVar, Run, Upload, Variable};
pub use actual::{ActualLrp, ActualState, InstanceKey, LrpKey, NetInfo, PortMapping, shown};
pub use cell::{CellPresence, CellState, Held, Resources};
pub use check::{Check, HttpCheck, TcpCheck};
pub use desired::{DesiredLrp, DesiredUpdate};
pub use domain::Freshness;
pub use draft::Draft;
pub use duty::Duty;
pub use event::{Change, Crash, Event};
pub use ground::Ground;
pub use ids::{
    CellId, Domain, GroupName, InstanceGuid, JobId, ProcessGuid, ReservationId, SecretName,
    TaskGuid,
};
pub use record::{Record, RecordKey, shard_of};
pub use records::{Gathering, Records, Table};
pub use request::{Effect, Refusal, Reply, Request, RunTask, Verdict};
pub use rules::decide;
pub use settings::Settings;
pub use task::{Task, TaskDefinition, TaskState};
