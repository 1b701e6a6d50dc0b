//! What hosts are put to on every store, on DynamoDB.

use super::kills::hosts_die_under_load;
use super::once::{ALL_VICTIMS, tasks_run_at_most_once};
use crate::leadership::cluster::Kind;

#[test]
fn hosts_are_killed_under_load_and_nothing_is_lost() {
    hosts_die_under_load(Kind::DynamoDb, 2, 2, "dynamodb::hosts_are_killed_under_load");
}

#[test]
fn a_task_runs_at_most_once_with_a_standby() {
    tasks_run_at_most_once(Kind::DynamoDb, 2, &ALL_VICTIMS, "dynamodb::a_task_runs_at_most_once");
}
