use std::sync::Arc;

use crate::board::Record;
use crate::run::{
    Entry, Noted, Rare, Run, RunId, RunMetrics, RunState, SkippedBy, StopKind, Trigger, UpdateId,
    UpdateKind, record::Rarely, update_id,
};
use crate::seams::Timestamp;

use super::stage::{START, run};

fn read_back(run: &Run) -> Run {
    let record = Record::Run(Arc::new(run.clone()));
    let Ok(Record::Run(run)) = Record::decode(&record.key().encode(), &record.encode()) else {
        panic!("it is a record");
    };
    Arc::unwrap_or_clone(run)
}

fn length(run: &Run) -> usize {
    Record::Run(Arc::new(run.clone())).encode().len()
}

fn noted() -> Vec<Noted> {
    let text = || "so \"it\" is\n".to_owned();
    vec![
        Noted::State { to: RunState::Pending, why: "its time has come".into() },
        Noted::Revision { revision: 7 },
        Noted::Waits { why: text() },
        Noted::Skipped { by: SkippedBy::Overlap, why: text() },
        Noted::Constraint { name: text(), met: true, message: text() },
        Noted::ConstraintError { name: text(), message: text() },
        Noted::Action { name: text(), ok: false, message: text() },
        Noted::Adopted { evidence: text() },
        Noted::Cancel { why: text() },
        Noted::Ignored { what: text() },
        Noted::State { to: RunState::Failed, why: text().into() },
    ]
}

#[test]
fn a_run_is_read_as_it_was_written() {
    let at = |after: i64| Timestamp(START.0 + after);
    let entry = |(noted, number)| Entry { at: at(-5), attempt: number, noted };
    let metrics = RunMetrics {
        total_ms: 7,
        heartbeats_sent: 3,
        pod_exit_code: Some(9),
        ..Default::default()
    };
    let whole = Run {
        trigger: Trigger::Manual { who: "ann".into() },
        state: RunState::Failed,
        previous_state: Some(RunState::Running),
        attempt: 2,
        place: "host".into(),
        started_at: Some(at(3)),
        timeline: noted().into_iter().zip(0..).map(entry).collect(),
        update_id: Some(UpdateId::new(1)),
        version: 9,
        rare: Rarely::from(Rare {
            parameters: [("REGION".to_owned(), "eu".to_owned())].into(),
            log_hosts: vec!["10.0.0.1:7".into()],
            retry_at: Some(at(4)),
            completed_at: Some(at(86_400_000)),
            exit_code: Some(-1),
            reason: "it did not work".to_owned(),
            skipped: true,
            cancel: Some(StopKind::AtOnce),
            metrics: Some(Box::new(metrics)),
        }),
        ..run()
    };
    assert_eq!(read_back(&whole), whole);
    assert_eq!(read_back(&run()), run());
    let none = Run { update_id: None, ..whole.clone() };
    assert_eq!(read_back(&none), none);
    let usual = Some(update_id(&whole.run_id, 2, UpdateKind::Ended));
    let usual = Run { update_id: usual, ..whole.clone() };
    assert_eq!(read_back(&usual), usual);
    for trigger in [
        Trigger::CatchUp,
        Trigger::Backfill { who: "ann".into() },
        Trigger::Retry { of: RunId::parse("j:17").unwrap(), who: "ann".into() },
        Trigger::Action { of: RunId::parse("j:17").unwrap(), depth: 3 },
    ] {
        let run = Run { trigger, ..run() };
        assert_eq!(read_back(&run), run);
    }
}

#[test]
fn a_run_that_waits_is_written_in_32_bytes_and_one_that_works_in_80() {
    let entry = |(at, to, why): (i64, RunState, &'static str)| Entry {
        at: Timestamp(START.0 + at),
        attempt: 0,
        noted: Noted::State { to, why: why.into() },
    };
    let timeline = [
        (1, RunState::Pending, "its time has come"),
        (1, RunState::ContainerCreating, "no constraints to check"),
        (12, RunState::Running, "the work runs"),
    ];
    let works = Run {
        state: RunState::Running,
        previous_state: Some(RunState::ContainerCreating),
        started_at: Some(Timestamp(START.0 + 12)),
        timeline: timeline.map(entry).into(),
        update_id: Some(update_id(&run().run_id, 0, UpdateKind::Started)),
        version: 3,
        ..run()
    };
    let lengths = (length(&run()), length(&works));
    assert!(lengths.0 <= 32 && lengths.1 <= 80, "{lengths:?}");
}
