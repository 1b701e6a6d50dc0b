//! The specification draws two of its tables twice. Where the short drawing differs, the long one holds.

use super::{Rule, lrp, show, task};

/// Where a table differs from its short drawing: column, row, and what the drawing has.
fn differences(
    drawing: &str,
    columns: &[&str],
    rows: &[&str],
    rule: impl Fn(usize, usize) -> Rule,
) -> Vec<String> {
    let lines: Vec<Vec<&str>> =
        drawing.trim().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), rows.len());
    let mut found = Vec::new();
    for (column, container) in columns.iter().enumerate() {
        for (row, name) in rows.iter().enumerate() {
            assert_eq!((lines[row][0], lines[row].len()), (*name, 1 + columns.len()));
            let drawn = lines[row][1 + column];
            // It leaves some places empty.
            if drawn != "." && drawn != show(rule(row, column)) {
                found.push(format!("{container} x {name}: {drawn}"));
            }
        }
    }
    found
}

/// Copied by hand. Columns: reserved, starting, running, stopped, crashed, missing.
const LRP: &str = "
    missing           -  delete  mark-running  delete              note-crash+delete  .
    unclaimed         -  claim   mark-running  delete              delete             .
    claimed-here      -  -       mark-running  drop-record+delete  note-crash+delete  drop-record
    claimed-elsewhere -  delete  mark-running  delete              delete             .
    running-here      -  claim   -             drop-record+delete  note-crash+delete  drop-record
    running-elsewhere -  delete  delete        delete              delete             .
    crashed           -  delete  mark-running  delete              delete             .
";

#[test]
fn the_short_drawing_for_instances_is_wrong_for_reservations_only() {
    use lrp::Container as C;
    let order = [C::Reserved, C::Starting, C::Running, C::Stopped, C::Crashed, C::Missing];
    let rows = lrp::Record::ALL.map(lrp::Record::name);
    let found = differences(LRP, &order.map(C::name), &rows, |row, column| {
        lrp::harmonize(order[column], lrp::Record::ALL[row])
    });
    let mut want: Vec<String> = rows.iter().map(|row| format!("reserved x {row}: -")).collect();
    // It says nothing of the evacuating twin.
    want.push("running x claimed-here: mark-running".to_owned());
    assert_eq!(found, want);
}

/// Copied by hand. Columns: reserved, running, completed, missing.
const TASK: &str = "
    missing             delete     delete     delete           .
    pending             start+run  start+run  complete+delete  .
    running-here        -          -          complete+delete  fail
    running-elsewhere   delete     delete     delete           .
    completed-here      delete     delete     delete           -
    completed-elsewhere delete     delete     delete           .
    resolving-here      delete     delete     delete           -
    resolving-elsewhere delete     delete     delete           .
";

#[test]
fn the_short_drawing_for_tasks_runs_again_what_runs() {
    let columns = task::Container::ALL.map(task::Container::name);
    let rows = task::Record::ALL.map(task::Record::name);
    let found = differences(TASK, &columns, &rows, |row, column| {
        task::harmonize(task::Container::ALL[column], task::Record::ALL[row])
    });
    assert_eq!(found, ["running x pending: start+run"]);
}
