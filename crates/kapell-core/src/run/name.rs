//! Names made of a run and one of its attempts: the same ones whoever makes them, and however often.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::id::RunId;
use super::state::RunState;
use super::update::UpdateKind;
use crate::board::TaskGuid;

/// What the guids of all tasks of runs begin with, and of no others.
pub const TASK_PREFIX: &str = "kapell-run-";

/// The namespace of our names, itself drawn once.
const NAMESPACE: Uuid = Uuid::from_u128(0x9a1c_55d2_6f0b_4e5e_8d3a_71c6_42e8_b90f);

/// The task that does the work of an attempt: [`TASK_PREFIX`] and 32 digits. Two attempts never share one.
pub fn task_guid(run: &RunId, attempt: u32) -> TaskGuid {
    let id = uuid_v5(&format!("task {attempt} {run}"));
    TaskGuid::new(format!("{TASK_PREFIX}{id:032x}"))
}

/// Whether a task does the work of a run.
pub fn is_of_run(guid: &TaskGuid) -> bool {
    guid.as_str().starts_with(TASK_PREFIX)
}

/// The id of an update: a UUID of version 5 of run, attempt and kind.
pub fn update_id(run: &RunId, attempt: u32, kind: UpdateKind) -> UpdateId {
    UpdateId::new(uuid_v5(&format!("update {attempt} {} {run}", kind.name())))
}

/// The update that brought a run there: its record is of the next attempt after a retry.
pub(super) fn told_update(run_id: &RunId, state: RunState, attempt: u32) -> Option<UpdateId> {
    let kind = UpdateKind::that_leads_to(state)?;
    let attempt = if kind == UpdateKind::Retry { attempt.checked_sub(1)? } else { attempt };
    Some(update_id(run_id, attempt, kind))
}

/// Names one update of one run. As a text it has 32 digits, for not every reader has numbers of that size; bytes, so that
/// whoever has very many runs need not leave room around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateId([u8; 16]);

impl UpdateId {
    pub const fn new(id: u128) -> Self {
        Self(id.to_be_bytes())
    }

    pub const fn get(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

impl Serialize for UpdateId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:032x}", self.get()))
    }
}

impl<'de> Deserialize<'de> for UpdateId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let id = u128::from_str_radix(&text, 16);
        id.map(Self::new)
            .map_err(|_| D::Error::custom("the id of an update has 32 hexadecimal digits"))
    }
}

fn uuid_v5(name: &str) -> u128 {
    Uuid::new_v5(&NAMESPACE, name.as_bytes()).as_u128()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_id_is_a_uuid_of_version_5_and_differs_by_run_attempt_and_kind() {
        let run = |id: &str| RunId::parse(id).unwrap();
        let ids = [
            update_id(&run("a:1"), 0, UpdateKind::Intent),
            update_id(&run("a:1"), 0, UpdateKind::Started),
            update_id(&run("a:1"), 1, UpdateKind::Intent),
            update_id(&run("b:1"), 0, UpdateKind::Intent),
        ];
        for (at, id) in ids.iter().enumerate() {
            let bits = id.get();
            assert_eq!((bits >> 76 & 0xf, bits >> 62 & 0b11), (5, 0b10), "{bits:032x}");
            assert!(!ids[..at].contains(id));
        }
        assert_eq!(ids[0], update_id(&run("a:1"), 0, UpdateKind::Intent));
    }

    #[test]
    fn the_task_of_an_attempt_has_a_guid_of_its_own_that_a_board_takes() {
        let run = RunId::parse("a:1").unwrap();
        let guid = task_guid(&run, 0);
        assert!(guid.is_valid() && is_of_run(&guid));
        assert_eq!(guid, task_guid(&run, 0));
        assert_ne!(guid, task_guid(&run, 1));
        assert!(!is_of_run(&"kapell-ru".into()));
    }

    #[test]
    fn runs_lie_in_order_of_job_and_moment() {
        let texts = ["a:9", "a:10", "a:10-0", "a:10-ff", "a:11", "a-b:1", "aa:1", "b:0"];
        let ids: Vec<RunId> = texts.iter().map(|text| RunId::parse(text).unwrap()).collect();
        let mut sorted = ids.clone();
        sorted.reverse();
        sorted.sort();
        assert_eq!(sorted, ids);
        let (before, behind) = RunId::bounds("a");
        let within = ids.iter().filter(|id| before <= **id && **id <= behind);
        assert_eq!(within.map(RunId::as_str).collect::<Vec<_>>(), texts[..5]);
    }
}
