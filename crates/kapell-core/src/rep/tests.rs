mod views;

use super::*;
use crate::board::{ActualLrp, ActualState, InstanceKey, LrpKey, Task, TaskState};
use crate::seams::Timestamp;

/// One cell of a table as the specification below writes it.
fn show(rule: Rule) -> String {
    if rule.actions.is_empty() {
        return "-".to_owned();
    }
    rule.actions.iter().map(|action| action.name()).collect::<Vec<_>>().join("+")
}

/// Compares a table with its transcription; all wrong places at once.
fn check(spec: &str, rows: &[&str], columns: &[&str], look_up: impl Fn(usize, usize) -> String) {
    let lines: Vec<Vec<&str>> =
        spec.trim().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), rows.len(), "one row a record state");
    let mut wrong = Vec::new();
    for (row, (line, name)) in lines.iter().zip(rows).enumerate() {
        assert_eq!(line[0], *name);
        assert_eq!(line.len(), 1 + columns.len(), "one place a container state: {line:?}");
        for (column, want) in line[1..].iter().enumerate() {
            let got = look_up(row, column);
            if got != **want {
                wrong.push(format!("{} x {name}: want {want}, got {got}", columns[column]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} places differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Copied by hand from the specification's long table, never from `harmonize`.
/// Columns: reserved, starting, running, crashed, stopped, missing.
const LRP: &str = "
    missing           delete      delete  mark-running            note-crash+delete  delete              -
    unclaimed         claim+run   claim   mark-running            delete             delete              -
    claimed-here      run         -       mark-running+drop-twin  note-crash+delete  drop-record+delete  drop-record
    claimed-elsewhere delete      delete  mark-running            delete             delete              -
    running-here      claim+run   claim   -                       note-crash+delete  drop-record+delete  drop-record
    running-elsewhere delete      delete  delete                  delete             delete              -
    crashed           delete      delete  mark-running            delete             delete              -
";

/// How the specification calls each: e(xpected), c(onceivable), i(nconceivable); `.` where it does not say.
const LRP_SURPRISE: &str = "
    missing           c c c . c .
    unclaimed         e i c . c .
    claimed-here      c e e . c c
    claimed-elsewhere c c c . c .
    running-here      i i e . e c
    running-elsewhere c c c . c .
    crashed           c c c . c .
";

#[test]
fn instances_are_harmonized_as_specified() {
    let rows = lrp::Record::ALL.map(lrp::Record::name);
    let columns = lrp::Container::ALL.map(lrp::Container::name);
    let rule = |row: usize, column: usize| {
        lrp::harmonize(lrp::Container::ALL[column], lrp::Record::ALL[row])
    };
    check(LRP, &rows, &columns, |row, column| show(rule(row, column)));
    check_surprise(LRP_SURPRISE, &rows, &columns, rule);
}

fn check_surprise(
    spec: &str,
    rows: &[&str],
    columns: &[&str],
    rule: impl Fn(usize, usize) -> Rule,
) {
    let said: Vec<Vec<&str>> =
        spec.trim().lines().map(|line| line.split_whitespace().skip(1).collect()).collect();
    check(spec, rows, columns, |row, column| {
        if said[row][column] == "." {
            return ".".to_owned();
        }
        match rule(row, column).surprise {
            Surprise::Expected => "e".to_owned(),
            Surprise::Conceivable => "c".to_owned(),
            Surprise::Inconceivable => "i".to_owned(),
        }
    });
}

/// Copied by hand from the specification, with the one place that a ruling adds
/// (unplaced x elsewhere). Columns: no twin, twin here, twin elsewhere.
const EVACUATING: &str = "
    missing           delete             drop-twin+delete  delete
    unclaimed         make-twin          -                 delete
    unplaced          -                  -                 delete
    claimed-here      make-twin+unclaim  unclaim           make-twin+unclaim
    claimed-elsewhere make-twin          -                 delete
    running-here      make-twin+unclaim  unclaim           make-twin+unclaim
    running-elsewhere delete             drop-twin+delete  delete
    crashed           delete             drop-twin+delete  delete
";

const EVACUATING_SURPRISE: &str = "
    missing           c e c
    unclaimed         i e c
    unplaced          i c .
    claimed-here      c c c
    claimed-elsewhere i e c
    running-here      e c c
    running-elsewhere c e c
    crashed           c e c
";

#[test]
fn running_containers_are_evacuated_as_specified() {
    use evacuation::{Instance, Twin};
    let rows = Instance::ALL.map(Instance::name);
    let columns = Twin::ALL.map(Twin::name);
    let rule =
        |row: usize, column: usize| evacuation::running(Instance::ALL[row], Twin::ALL[column]);
    check(EVACUATING, &rows, &columns, |row, column| show(rule(row, column)));
    check_surprise(EVACUATING_SURPRISE, &rows, &columns, rule);
}

/// Written by hand from the specification's three sentences and the ruling on them.
/// Columns: starting, crashed, stopped, missing; no twin of ours.
const IDLE: &str = "
    missing           delete          note-crash+delete  delete              -
    unclaimed         delete          delete             delete              -
    unplaced          delete          delete             delete              -
    claimed-here      delete+unclaim  note-crash+delete  drop-record+delete  drop-record
    claimed-elsewhere delete          delete             delete              -
    running-here      delete+unclaim  note-crash+delete  drop-record+delete  drop-record
    running-elsewhere delete          delete             delete              -
    crashed           delete          delete             delete              -
";

/// The same beside a twin that is ours.
const IDLE_WITH_TWIN: &str = "
    missing           delete+drop-twin          drop-twin+note-crash+delete  drop-twin+delete              drop-twin
    unclaimed         delete+drop-twin          drop-twin+delete             drop-twin+delete              drop-twin
    unplaced          delete+drop-twin          drop-twin+delete             drop-twin+delete              drop-twin
    claimed-here      delete+drop-twin+unclaim  drop-twin+note-crash+delete  drop-twin+drop-record+delete  drop-twin+drop-record
    claimed-elsewhere delete+drop-twin          drop-twin+delete             drop-twin+delete              drop-twin
    running-here      delete+drop-twin+unclaim  drop-twin+note-crash+delete  drop-twin+drop-record+delete  drop-twin+drop-record
    running-elsewhere delete+drop-twin          drop-twin+delete             drop-twin+delete              drop-twin
    crashed           delete+drop-twin          drop-twin+delete             drop-twin+delete              drop-twin
";

#[test]
fn idle_containers_are_evacuated_as_specified() {
    use evacuation::{Idle, Instance, Twin};
    let rows = Instance::ALL.map(Instance::name);
    let columns = Idle::ALL.map(Idle::name);
    for (spec, twin) in
        [(IDLE, Twin::Missing), (IDLE, Twin::Elsewhere), (IDLE_WITH_TWIN, Twin::Here)]
    {
        check(spec, &rows, &columns, |row, column| {
            show(evacuation::not_running(Idle::ALL[column], Instance::ALL[row], twin))
        });
    }
}

#[test]
fn an_evacuating_cell_looks_every_container_up_in_the_right_table() {
    use evacuation::{Idle, Instance, Twin};
    let cases = [
        (lrp::Container::Reserved, Idle::Starting),
        (lrp::Container::Starting, Idle::Starting),
        (lrp::Container::Crashed, Idle::Crashed),
        (lrp::Container::Stopped, Idle::Stopped),
        (lrp::Container::Missing, Idle::Missing),
    ];
    for instance in Instance::ALL {
        for twin in Twin::ALL {
            let running = evacuation::harmonize(lrp::Container::Running, instance, twin);
            assert_eq!(running, evacuation::running(instance, twin));
            for (container, idle) in cases {
                let rule = evacuation::harmonize(container, instance, twin);
                assert_eq!(rule, evacuation::not_running(idle, instance, twin));
            }
        }
    }
}

/// Copied by hand from the specification's long table. Columns: reserved, running, completed, missing.
const TASK: &str = "
    missing             delete     delete  delete           -
    pending             start+run  start   complete+delete  -
    running-here        -          -       complete+delete  fail
    running-elsewhere   delete     delete  delete           -
    completed-here      delete     delete  delete           -
    completed-elsewhere delete     delete  delete           -
    resolving-here      delete     delete  delete           -
    resolving-elsewhere delete     delete  delete           -
";

const TASK_SURPRISE: &str = "
    missing             c c c .
    pending             e i i .
    running-here        e e e c
    running-elsewhere   c i i .
    completed-here      c c c e
    completed-elsewhere c i i .
    resolving-here      c c c e
    resolving-elsewhere c i i .
";

#[test]
fn tasks_are_harmonized_as_specified() {
    let rows = task::Record::ALL.map(task::Record::name);
    let columns = task::Container::ALL.map(task::Container::name);
    let rule = |row: usize, column: usize| {
        task::harmonize(task::Container::ALL[column], task::Record::ALL[row])
    };
    check(TASK, &rows, &columns, |row, column| show(rule(row, column)));
    check_surprise(TASK_SURPRISE, &rows, &columns, rule);
}

#[test]
fn a_container_is_never_run_without_the_board_knowing_first() {
    for container in lrp::Container::ALL {
        for record in lrp::Record::ALL {
            let actions = lrp::harmonize(container, record).actions;
            let runs = actions.contains(&Action::RunContainer);
            let known =
                actions.first() == Some(&Action::Claim) || record == lrp::Record::ClaimedHere;
            assert!(!runs || known, "{container:?} x {record:?}");
        }
    }
}

fn us() -> InstanceKey {
    InstanceKey { instance_guid: "x".into(), cell_id: "a".into() }
}

fn record(state: ActualState, owner: Option<(&str, &str)>) -> ActualLrp {
    let key = LrpKey { process_guid: "web".into(), index: 0 };
    ActualLrp {
        state,
        instance_guid: owner.map(|(guid, _)| guid.into()),
        cell_id: owner.map(|(_, cell)| cell.into()),
        ..ActualLrp::unclaimed(&key, "d".into(), Timestamp(0))
    }
}

#[test]
fn only_this_container_on_this_cell_is_here() {
    use lrp::Record;
    assert_eq!(lrp::classify(None, &us(), None), Record::Missing);
    let look = |state, owner| lrp::classify(Some(&record(state, owner)), &us(), Some(0));
    assert_eq!(look(ActualState::Unclaimed, None), Record::Unclaimed);
    assert_eq!(look(ActualState::Crashed, None), Record::Crashed);
    assert_eq!(look(ActualState::Claimed, Some(("x", "a"))), Record::ClaimedHere);
    assert_eq!(look(ActualState::Running, Some(("x", "a"))), Record::RunningHere);
    for other in [("x", "b"), ("y", "a"), ("y", "b")] {
        assert_eq!(look(ActualState::Claimed, Some(other)), Record::ClaimedElsewhere);
        assert_eq!(look(ActualState::Running, Some(other)), Record::RunningElsewhere);
    }
}

#[test]
fn a_record_of_another_incarnation_is_as_good_as_one_that_runs_elsewhere() {
    use evacuation::Instance;
    use lrp::Record;
    let of = |state, owner| ActualLrp { incarnation: 7, ..record(state, owner) };
    for (lrp, same) in [
        (of(ActualState::Unclaimed, None), Record::Unclaimed),
        (of(ActualState::Crashed, None), Record::Crashed),
        (of(ActualState::Claimed, Some(("y", "b"))), Record::ClaimedElsewhere),
        (of(ActualState::Running, Some(("y", "b"))), Record::RunningElsewhere),
    ] {
        assert_eq!(lrp::classify(Some(&lrp), &us(), Some(7)), same);
        assert_eq!(lrp::classify(Some(&lrp), &us(), None), same, "an older agent does not know");
        for other in [0, 6, 8] {
            let looked = lrp::classify(Some(&lrp), &us(), Some(other));
            assert_eq!(looked, Record::RunningElsewhere, "{other}");
            assert_eq!(Instance::of(Some(&lrp), &us(), Some(other)), Instance::RunningElsewhere);
        }
    }
    let ours = of(ActualState::Claimed, Some(("x", "a")));
    assert_eq!(lrp::classify(Some(&ours), &us(), Some(6)), Record::ClaimedHere, "it is our own");
}

#[test]
fn an_evacuating_cell_sees_placement_errors_and_twins() {
    use evacuation::{Instance, Twin};
    let waiting = record(ActualState::Unclaimed, None);
    assert_eq!(Instance::of(Some(&waiting), &us(), None), Instance::Unclaimed);
    let failed = ActualLrp { placement_error: Some("full".to_owned()), ..waiting };
    assert_eq!(Instance::of(Some(&failed), &us(), None), Instance::Unplaced);
    assert_eq!(Twin::of(None, &us()), Twin::Missing);
    let twin = |owner| record(ActualState::Running, Some(owner));
    assert_eq!(Twin::of(Some(&twin(("x", "a"))), &us()), Twin::Here);
    assert_eq!(Twin::of(Some(&twin(("x", "b"))), &us()), Twin::Elsewhere);
}

#[test]
fn a_start_whose_answer_was_not_heard_is_asked_for_again_only_where_it_may_have_been_given() {
    for record in task::Record::ALL {
        let rule = task::unheard(record);
        if record == task::Record::RunningHere {
            assert_eq!(rule.actions, [Action::StartTask, Action::RunContainer]);
        } else {
            assert_eq!(rule, task::harmonize(task::Container::Reserved, record));
        }
    }
}

#[test]
fn a_task_of_another_instance_guid_is_another_task() {
    use task::Record;
    let task: Task = serde_json::from_str(
        r#"{"task_guid":"t","domain":"d","action":{"run":{"path":"true"}},
            "instance_guid":"x","state":"PENDING","created_at":0,"since":0}"#,
    )
    .unwrap();
    assert_eq!(task::classify(Some(&task), &us()), Record::Pending);
    let other = InstanceKey { instance_guid: "y".into(), ..us() };
    assert_eq!(task::classify(Some(&task), &other), Record::Missing);
    assert_eq!(task::classify(None, &us()), Record::Missing);
    let on = |state, cell: Option<&str>| {
        let task = Task { state, cell_id: cell.map(Into::into), ..task.clone() };
        task::classify(Some(&task), &us())
    };
    assert_eq!(on(TaskState::Running, Some("a")), Record::RunningHere);
    assert_eq!(on(TaskState::Running, Some("b")), Record::RunningElsewhere);
    assert_eq!(on(TaskState::Completed, None), Record::CompletedElsewhere);
    assert_eq!(on(TaskState::Completed, Some("a")), Record::CompletedHere);
    assert_eq!(on(TaskState::Resolving, Some("a")), Record::ResolvingHere);
    assert_eq!(on(TaskState::Resolving, Some("b")), Record::ResolvingElsewhere);
}
