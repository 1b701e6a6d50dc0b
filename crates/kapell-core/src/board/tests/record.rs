use std::sync::Arc;

use super::world::*;
use crate::board::aside::{Aside, admit};
use crate::board::ids::Names;
use crate::board::record::Corrupt;
use crate::board::*;
use crate::job::Definition;
use crate::run::{Entry, Noted, Run, RunId, RunState, Timeline, Trigger, UpdateId};
use crate::seams::Timestamp;

fn all() -> Vec<ActualLrp> {
    let full = ActualLrp {
        crash_count: 7,
        crash_reason: Some("it said \"no\"\n".to_owned()),
        incarnation: 3,
        version: 9,
        ..running("cell-1", "ä\u{7}")
    };
    let waits = ActualLrp { placement_error: Some("no room".to_owned()), ..unclaimed() };
    let unready = ActualLrp { ready: Some(false), ..running("a", "x") };
    let leaving = ActualLrp { ready: Some(false), ..twin("b", "y") };
    vec![
        unclaimed(),
        waits,
        claimed("a", "x"),
        full,
        unready,
        crashed(200),
        twin("b", "y"),
        leaving,
    ]
}

#[test]
fn an_instance_comes_back_from_its_record() {
    for lrp in all() {
        let record = Record::Actual(Box::new(lrp));
        let back = Record::decode(&record.key().encode(), &record.encode());
        assert_eq!(back, Ok(record));
    }
}

/// Stores of the version before hold objects.
#[test]
fn an_instance_comes_back_from_a_record_of_the_former_format() {
    for lrp in all() {
        let kind = if lrp.evacuating { b'e' } else { b'a' };
        let former = [&[kind, 1], &serde_json::to_vec(&lrp).unwrap()[..]].concat();
        let record = Record::Actual(Box::new(lrp));
        assert_eq!(Record::decode(&record.key().encode(), &former), Ok(record));
    }
}

/// Fixed for ever, or until the version is another one.
#[test]
fn an_instance_is_written_so() {
    let lrp = ActualLrp { since: Timestamp(5), version: 2, ..running("a", "x") };
    let text = br#"["d","RUNNING","x","a",["10.0.0.1",[[8080,61000]]],5,0,null,null,null,0,2]"#;
    let record = Record::Actual(Box::new(lrp));
    assert_eq!(record.encode(), [b"a\x02", &text[..]].concat());
    assert_eq!(record.key().encode(), b"aweb\0\0\0\0\0");
}

/// Only what a host of the version before could not take in says that it is of a later one.
#[test]
fn an_instance_that_is_not_ready_is_written_so() {
    let lrp = ActualLrp { since: Timestamp(5), ready: Some(false), ..running("a", "x") };
    let text =
        br#"["d","RUNNING","x","a",["10.0.0.1",[[8080,61000]]],5,0,null,null,null,0,1,false]"#;
    let record = Record::Actual(Box::new(lrp));
    assert_eq!(record.encode(), [b"a\x03", &text[..]].concat());
}

#[test]
fn what_runs_by_an_older_record_is_ready() {
    let key = Record::Actual(Box::new(running("a", "x"))).key().encode();
    let row = br#"["d","RUNNING","x","a",["10.0.0.1",[]],5,0,null,null,null,0,2]"#;
    let object = br#"{"process_guid":"web","index":0,"domain":"d","state":"RUNNING",
        "instance_guid":"x","cell_id":"a","net":{"address":"10.0.0.1","ports":[]},"since":5}"#;
    for former in [[b"a\x02", &row[..]].concat(), [b"a\x01", &object[..]].concat()] {
        let Ok(Record::Actual(lrp)) = Record::decode(&key, &former) else { panic!("not read") };
        assert_eq!((lrp.ready, lrp.is_ready()), (Some(true), true));
    }
    let row = br#"["d","CLAIMED","x","a",null,5,0,null,null,null,0,2]"#;
    let Ok(Record::Actual(lrp)) = Record::decode(&key, &[b"a\x02", &row[..]].concat()) else {
        panic!("not read")
    };
    assert_eq!((lrp.ready, lrp.is_ready()), (None, false));
}

#[test]
fn every_key_says_what_it_is_about() {
    let keys = [
        RecordKey::Desired("p".into()),
        RecordKey::Instance(key(300)),
        RecordKey::Evacuating(key(0)),
        RecordKey::Task("t".into()),
        RecordKey::Domain("d".into()),
        RecordKey::Job("j".into()),
        RecordKey::Definition("j".into(), 300),
        RecordKey::Run(RunId::parse("j:1763290800").unwrap()),
        RecordKey::Run(RunId::parse("j:1763290800-3f9a0c1d").unwrap()),
    ];
    for key in keys {
        assert_eq!(RecordKey::decode(&key.encode()), Some(key));
    }
    for bytes in [
        &b""[..],
        b"x",
        b"aweb",
        b"aweb\x01\0\0\0\0",
        b"d\xff",
        b"vj\0\0",
        b"rj",
        b"rj\0x",
        b"r\x001",
    ] {
        assert_eq!(RecordKey::decode(bytes), None, "{bytes:?}");
    }
}

fn why(key: &[u8], value: &[u8]) -> Corrupt {
    Record::decode(key, value).unwrap_err()
}

#[test]
fn what_is_no_record_says_why() {
    let lrp = Record::Actual(Box::new(running("a", "x")));
    let (key, value) = (lrp.key().encode(), lrp.encode());
    assert_eq!(why(&key, b"a"), Corrupt::Short);
    assert_eq!(why(&key, b"a\x09[]"), Corrupt::Newer { version: 9 });
    assert_eq!(why(&key, b"a\x00[]"), Corrupt::Unknown { kind: b'a', version: 0 });
    assert_eq!(why(&key, b"d\x09[]"), Corrupt::Unknown { kind: b'd', version: 9 });
    assert_eq!(why(&key, b"z\x01{}"), Corrupt::Unknown { kind: b'z', version: 1 });
    assert!(matches!(why(&key, &value[..20]), Corrupt::Garbled(_)));
    assert_eq!(why(b"e", &value), Corrupt::Misplaced);
    assert_eq!(why(b"aweb", &value), Corrupt::Misplaced);
    assert_eq!(why(&Record::Desired(Box::new(web())).key().encode(), &value), Corrupt::Misplaced);
    let desired = Record::Desired(Box::new(web())).encode();
    assert_eq!(why(b"dother", &desired), Corrupt::Misplaced);
}

#[test]
fn fields_that_do_not_fit_the_state_make_no_record() {
    let lrps = [
        ActualLrp { net: None, ..running("a", "x") },
        ActualLrp { cell_id: None, ..claimed("a", "x") },
        ActualLrp { state: ActualState::Crashed, ..running("a", "x") },
        ActualLrp { evacuating: true, ..claimed("a", "x") },
        ActualLrp { ready: Some(false), ..claimed("a", "x") },
        ActualLrp { ready: Some(false), ..unclaimed() },
    ];
    let lrps = lrps.map(|lrp| Record::Actual(Box::new(lrp)));
    let tasks = [
        task(TaskState::Running, None),
        task(TaskState::Pending, Some("a")),
        Task { first_completed_at: None, ..task(TaskState::Completed, Some("a")) },
        Task { first_completed_at: Some(NOW), ..task(TaskState::Running, Some("a")) },
    ];
    for record in lrps.into_iter().chain(tasks.map(|task| Record::Task(Box::new(task)))) {
        assert_eq!(why(&record.key().encode(), &record.encode()), Corrupt::Inconsistent);
    }
}

#[test]
fn a_record_of_another_shard_is_not_admitted() {
    let record = Record::Desired(Box::new(web()));
    let (key, value) = (record.key().encode(), record.encode());
    let home = shard_of("web", 16);
    let admit = |shard| admit(&key, &value, (shard, 16), &mut Names::default());
    assert_eq!(admit(home), Ok(record));
    assert_eq!(admit(home + 1), Err(Corrupt::Astray));
}

#[test]
fn what_was_set_aside_keeps_its_key_and_has_a_place_of_its_own() {
    let aside = Aside { epoch: 7, seq: 1, key: b"dweb" };
    let encoded = aside.encode();
    assert_eq!(encoded, b"!\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01dweb");
    assert_eq!(Aside::decode(&encoded), Some(aside));
    assert_eq!(Aside::decode(b"dweb"), None);
    assert_eq!(RecordKey::decode(&encoded), None);
    let home = shard_of("web", 16);
    let stands_in = aside::replacement(b"dweb", (home, 16)).unwrap();
    assert_eq!(stands_in, Record::Desired(Box::new(DesiredLrp::forgotten("web".into()))));
    assert_eq!(Record::decode(b"dweb", &stands_in.encode()), Ok(stands_in));
    assert_eq!(aside::replacement(b"dweb", (home + 1, 16)), None);
    assert_eq!(aside::replacement(b"tweb", (home, 16)), None);
}

/// Fixed for ever, or until the version is another one.
#[test]
fn jobs_and_runs_are_written_so() {
    let run = Run {
        update_id: Some(UpdateId::new(0xab)),
        ..Run::unreadable(RunId::parse("j:17").unwrap())
    };
    let run = Record::Run(Arc::new(run));
    assert_eq!(run.key().encode(), b"rj\x0017");
    let encoded = run.encode();
    let begins = b"r\x03\x04jobs\x00\xd0\x89\x02\x00\x00\x01\x0d\x80\x85\x04\x00\x4eits record";
    assert!(encoded.starts_with(begins), "{encoded:?}");
    assert!(encoded.ends_with(b"not known\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xab"), "{encoded:?}");
    assert_eq!(Record::decode(&run.key().encode(), &run.encode()), Ok(run));
    // As the first hosts with runs wrote it.
    let first = b"r\x01{\"run_id\":\"j:17\",\"domain\":\"jobs\",\"revision\":3,\"trigger\":{\"by\":\"schedule\"},\
        \"scheduled_at\":17000,\"due_at\":17000,\"state\":\"PreRun\",\"created_at\":9000,\"version\":1}";
    let Ok(Record::Run(first)) = Record::decode(b"rj\x0017", first) else { panic!("it is read") };
    assert_eq!((first.revision, first.created_at), (3, Timestamp(9_000)));
    let packed = b"r\x03\x04jobs\x03\xd0\x89\x02\x00\xff\x7c\x01\x00\x00";
    assert_eq!(Record::Run(Arc::clone(&first)).encode(), packed);
    // As later ones did.
    let row = b"r\x02[\"jobs\",3,null,17000,0,-8000,1,\"PreRun\"]";
    assert_eq!(Record::decode(b"rj\x0017", row), Ok(Record::Run(first)));
    let row = b"r\x02[\"jobs\",3,{\"by\":\"manual\",\"who\":\"ann\"},17000,5,-8000,2,\"Running\",{\"b\":\"ContainerCreating\",\"n\":1,\
        \"l\":\"here\",\"h\":[\"there\"],\"s\":7,\"t\":[[5,1,\"Running\",\"the work runs\"],\
        {\"at\":17009,\"noted\":\"cancel\",\"why\":\"so\"}],\"q\":\"at_once\",\"u\":\"00ab\"}]";
    let Ok(Record::Run(row)) = Record::decode(b"rj\x0017", row) else { panic!("it is read") };
    assert_eq!(row.trigger, Trigger::Manual { who: "ann".into() });
    assert_eq!((row.due_at, row.started_at), (Timestamp(17_005), Some(Timestamp(17_007))));
    assert_eq!((row.update_id, row.attempt), (Some(UpdateId::new(0xab)), 1));
    let noted = Noted::State { to: RunState::Running, why: "the work runs".into() };
    let runs = Entry { at: Timestamp(17_005), attempt: 1, noted };
    let noted = Noted::Cancel { why: "so".to_owned() };
    let cancelled = Entry { at: Timestamp(17_009), attempt: 0, noted };
    assert_eq!(row.timeline, Timeline::from([runs, cancelled]));
    let definition =
        serde_json::from_str(r#"{"job_id":"j","command":{"command":"true"}}"#).unwrap();
    let of = Record::Definition(Definition { revision: 2, definition: Arc::new(definition) });
    assert_eq!(of.key().encode(), b"vj\0\0\0\0\0\0\0\0\x02");
    assert_eq!(
        of.encode(),
        br#"v.{"job_id":"j","domain":"jobs","timezone":"UTC","command":{"command":"true"}}"#
            .map(|byte| if byte == b'.' { 1 } else { byte })
    );
    assert_eq!(Record::decode(&of.key().encode(), &of.encode()), Ok(of.clone()));
    assert_eq!(why(b"vk\0\0\0\0\0\0\0\0\x02", &of.encode()), Corrupt::Misplaced);
    assert_eq!(why(&of.key().encode(), b"v\x02{}"), Corrupt::Newer { version: 2 });
}

#[test]
fn a_run_whose_fields_do_not_fit_its_state_is_no_record() {
    let run = Run::unreadable(RunId::parse("j:17").unwrap());
    let mut unended = run.clone();
    unended.completed_at = None;
    for run in [unended, Run { state: RunState::Running, ..run }] {
        let record = Record::Run(Arc::new(run));
        assert_eq!(why(&record.key().encode(), &record.encode()), Corrupt::Inconsistent);
    }
}

/// Otherwise its moment would be taken for one that nobody dealt with.
#[test]
fn for_a_run_that_cannot_be_read_another_stands_in() {
    let home = shard_of("j", 16);
    let stands_in = aside::replacement(b"rj\x0017", (home, 16)).unwrap();
    let Record::Run(run) = &stands_in else { panic!("{stands_in:?}") };
    assert_eq!((run.scheduled_at, run.state), (Timestamp(17_000), RunState::Orphaned));
    assert_eq!(Record::decode(b"rj\x0017", &stands_in.encode()), Ok(stands_in));
    assert_eq!(aside::replacement(b"rj\x0017-ab", (home, 16)), None);
}

/// Otherwise its run would take it for one that was never launched.
#[test]
fn for_the_task_of_a_run_that_cannot_be_read_another_stands_in() {
    let guid = crate::run::task_guid(&RunId::parse("j:17").unwrap(), 0);
    let (key, home) = (RecordKey::Task(guid.clone()).encode(), shard_of(guid.as_str(), 16));
    let stands_in = aside::replacement(&key, (home, 16)).unwrap();
    let Record::Task(task) = &stands_in else { panic!("{stands_in:?}") };
    assert_eq!((task.state, task.failed), (TaskState::Completed, true));
    assert_eq!(Record::decode(&key, &stands_in.encode()), Ok(stands_in));
}
