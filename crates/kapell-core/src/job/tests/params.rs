use std::collections::BTreeMap;

use serde_json::json;

use super::job;
use crate::board::Variable;
use crate::job::JobDefinition;
use crate::job::environment::{environment, named};
use crate::job::params::{LONGEST_VALUE, resolve};
use crate::run::RunId;
use crate::seams::Timestamp;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn declared() -> JobDefinition {
    job(json!({"parameters": [
        {"name": "TARGET"},
        {"name": "MODE", "default": "fast", "options": ["fast", "slow"]},
        {"name": "FIXED", "default": "1", "changeable": false},
        {"name": "ZONE", "options": ["a", "b"]},
    ]}))
}

#[test]
fn given_values_stand_over_defaults() {
    let given = map(&[("TARGET", "x"), ("MODE", "slow"), ("FIXED", "1"), ("ZONE", "b")]);
    assert_eq!(resolve(&declared(), &given), Ok(given));
    let given = map(&[("TARGET", ""), ("ZONE", "a")]);
    let want = map(&[("TARGET", ""), ("MODE", "fast"), ("FIXED", "1"), ("ZONE", "a")]);
    assert_eq!(resolve(&declared(), &given), Ok(want));
}

#[test]
fn all_that_is_wrong_with_given_values_is_told() {
    let given = map(&[("MDOE", "x"), ("OTHER", "x"), ("MODE", "quick"), ("FIXED", "2")]);
    assert_eq!(
        resolve(&declared(), &given).unwrap_err(),
        [
            "there is no parameter `MDOE`: did you mean `MODE`?",
            "there is no parameter `OTHER`: the job has TARGET, MODE, FIXED, ZONE",
            "parameter `TARGET` has no value: give one with `-p TARGET=VALUE`",
            "parameter `MODE` cannot be `quick`: it is one of `fast`, `slow`",
            "parameter `FIXED` cannot be changed: it is always `1`",
            "parameter `ZONE` has no value: give one with `-p ZONE=VALUE`, one of `a`, `b`",
        ]
    );
    let none = resolve(&job(json!({})), &map(&[("A", "1")])).unwrap_err();
    assert_eq!(none, ["there is no parameter `A`: the job has no parameters"]);
    let target = job(json!({"parameters": [{"name": "T"}]}));
    let long = "x".repeat(LONGEST_VALUE + 1);
    for (value, text) in [
        ("a\0b", "parameter `T` must not contain a NUL byte"),
        (long.as_str(), "parameter `T` must be at most 4 KiB, not 4097 bytes"),
    ] {
        assert_eq!(resolve(&target, &map(&[("T", value)])).unwrap_err(), [text]);
    }
}

fn told(job: &JobDefinition) -> Vec<Variable> {
    let at = Timestamp(1_763_290_800_000);
    let run_id = RunId::scheduled(&job.job_id, at);
    environment(job, &map(&[("A", "param"), ("B", "2")]), &run_id, 3, at)
}

#[test]
fn a_run_is_told_of_its_parameters_and_itself() {
    let ours = [
        Variable::plain("KAPELL_JOB_ID", "a"),
        Variable::plain("KAPELL_RUN_ID", "a:1763290800"),
        Variable::plain("KAPELL_ATTEMPT", "3"),
        Variable::plain("KAPELL_SCHEDULED_AT", "2025-11-16T11:00:00Z"),
    ];
    let env = json!([
        {"name": "A", "value": "own"},
        {"name": "S", "secret": "s"},
        {"name": "KAPELL_RUN_ID", "value": "forged"},
    ]);
    let mut want =
        vec![Variable::secret("S", "s"), Variable::plain("A", "param"), Variable::plain("B", "2")];
    want.extend(ours.clone());
    let command = job(json!({"command": {"command": "x", "env": env}}));
    assert_eq!(told(&command), want);
    let mut task = job(json!({"task": {"action": {"run": {"path": "x"}}, "env": env}}));
    task.command = None;
    assert_eq!(told(&task), want);
    let mut workflow = job(json!({"workflow": {"file": "x"}}));
    workflow.command = None;
    assert_eq!(told(&workflow), ours);
    let given = map(&[("A", "b c"), ("B", "")]);
    assert_eq!(named(&workflow, &given), ["A=b c", "B="]);
    assert_eq!(named(&command, &given), [""; 0]);
}
