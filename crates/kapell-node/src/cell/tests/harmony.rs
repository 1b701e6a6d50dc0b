//! Polls and events lead to the same, and nothing that lives is deleted on old knowledge.

use kapell_api::v1::CellRecords;
use kapell_core::board::{CellId, InstanceGuid};
use kapell_core::rep::container::RunResult;
use kapell_core::rep::evacuation::{Instance, Twin};
use kapell_core::rep::{lrp, task};

use super::tables::{lrp_stage, play, polled, task_stage};
use crate::cell::judge::Found;
use crate::cell::rep::{Read, Rep};

/// Every place of every table: what it is, a container, and what the board has of it.
fn places() -> Vec<(String, Rep, InstanceGuid, CellRecords)> {
    let mut places = Vec::new();
    for container in lrp::Container::ALL {
        for instance in Instance::ALL {
            for (twin, evacuating) in
                [(Twin::Missing, false)].into_iter().chain(Twin::ALL.map(|twin| (twin, true)))
            {
                let (rep, guid, records) = lrp_stage(container, instance, twin, evacuating);
                let what = format!("{container:?} x {instance:?} x {twin:?}, {evacuating}");
                places.push((what, rep, guid, records));
            }
        }
    }
    for container in task::Container::ALL {
        for record in task::Record::ALL {
            let (rep, guid, records) = task_stage(container, record);
            places.push((format!("{container:?} x {record:?}"), rep, guid, records));
        }
    }
    places
}

/// Something happened to the container when this was known of it, and nothing was read since.
fn happens(rep: &mut Rep, guid: &InstanceGuid, records: &CellRecords) {
    let found = Found::new(records);
    let entry = rep.executor.get_mut(guid).unwrap();
    entry.known = Some(found.known(&entry.tag, &CellId::new("cell")));
    rep.read = Read::InTurn;
    rep.look_at(guid.clone());
}

#[tokio::test(start_paused = true)]
async fn an_event_leads_to_what_a_poll_leads_to() {
    let polls = places();
    for ((what, rep, guid, records), (_, mut other, other_guid, _)) in
        polls.into_iter().zip(places())
    {
        if rep.executor.get(&guid).is_none() {
            continue;
        }
        let by_poll = polled(rep, &guid, &records);
        happens(&mut other, &other_guid, &records);
        let seen = play(&mut other);
        let by_event = if seen.is_empty() && other.read == Read::Now {
            polled(other, &other_guid, &records)
        } else {
            (seen, other.executor.get(&other_guid).is_none())
        };
        assert_eq!(by_event, by_poll, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_lives_is_deleted_before_its_record_was_read_again() {
    let mut checked = 0;
    for ((what, rep, guid, records), (_, mut other, ..)) in places().into_iter().zip(places()) {
        let lives = rep.executor.get(&guid).is_some_and(|it| it.life.state().is_live());
        if !lives || !polled(rep, &guid, &records).1 {
            continue;
        }
        checked += 1;
        happens(&mut other, &guid, &records);
        assert!(other.take_effects().is_empty(), "{what}");
        let entry = other.executor.get(&guid).unwrap();
        assert!(!entry.doomed && entry.is_idle(), "{what}");
        assert_eq!(other.read, Read::Now, "{what}");
    }
    assert!(checked > 30, "{checked}");
}

/// What was read before the container changed says nothing about what it is now.
#[tokio::test(start_paused = true)]
async fn a_container_that_changed_meanwhile_is_not_judged_by_what_was_read_before() {
    for (what, mut rep, guid, records) in places() {
        let lives = rep.executor.get(&guid).is_some_and(|it| it.life.state().is_live());
        if !lives {
            continue;
        }
        let (_, asked) = rep.wanted();
        let entry = rep.executor.get_mut(&guid).unwrap();
        if entry.life.state() != kapell_core::rep::container::State::Running {
            continue;
        }
        entry.known = None;
        rep.ended(&guid, RunResult::failed("x"));
        rep.read = Read::InTurn;
        rep.harmonize(&records, &asked);
        assert!(rep.take_effects().is_empty(), "{what}");
        assert_eq!(rep.read, Read::Now, "{what}");
        assert!(rep.executor.get(&guid).is_some(), "{what}");
    }
}
