//! Each constraint with facts that meet it, and with such that do not.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{good, map};
use crate::board::{CellState, Resources};
use crate::constraint::{Finding, JobState, OtherJob, PastRun, Rule};
use crate::run::{RunId, RunState};
use crate::seams::Timestamp;

/// 2026-11-16, a Monday, 12:00 UTC.
const NOON: Timestamp = Timestamp(1_794_830_400_000);
const HOUR: i64 = 3_600_000;

fn rule(name: &str, config: Json) -> Rule {
    good(json!([{ name: map([("config", config)]) }])).specs.remove(0).rule
}

fn is_met(finding: &Finding) -> bool {
    matches!(finding, Finding::Met(_))
}

fn past(job: &str, state: RunState, ago_seconds: i64, skipped: bool) -> PastRun {
    let completed_at = Timestamp(NOON.0 - ago_seconds * 1000);
    PastRun { run_id: RunId::scheduled(&job.into(), completed_at), state, skipped, completed_at }
}

#[test]
fn a_window_holds_from_its_start_until_its_end() {
    let judge = |config: Json, hours: i64| {
        let Rule::TimeWindow(window) = rule("time_window", config) else { panic!() };
        is_met(&window.judge(Timestamp(NOON.0 + hours * HOUR), "UTC").unwrap())
    };
    let day = json!({ "start": "12:00", "end": "14:00" });
    let met: Vec<i64> = (-24..48).filter(|hours| judge(day.clone(), *hours)).collect();
    assert_eq!(met, [-24, -23, 0, 1, 24, 25]);
    let night = json!({ "start": "22:00", "end": "02:00", "days": ["mon"] });
    let met: Vec<i64> = (-24..48).filter(|hours| judge(night.clone(), *hours)).collect();
    assert_eq!(met, [10, 11, 12, 13], "what begins on Monday ends on Tuesday");
    assert!(judge(json!({}), 5) && !judge(json!({ "days": "sunday" }), 5));
}

#[test]
fn a_window_goes_by_its_own_zone_or_by_that_of_the_job() {
    let Rule::TimeWindow(window) = rule("time_window", json!({ "start": "13:00", "end": "13:30" }))
    else {
        panic!()
    };
    assert!(is_met(&window.judge(NOON, "Europe/Berlin").unwrap()));
    let told = window.judge(NOON, "UTC").unwrap();
    assert_eq!(
        told,
        Finding::Violated("it is monday 12:00 in UTC, not within 13:00-13:30".to_owned())
    );
    let own = json!({ "start": "13:00", "end": "13:30", "timezone": "Europe/Berlin" });
    let Rule::TimeWindow(window) = rule("time_window", own) else { panic!() };
    assert!(is_met(&window.judge(NOON, "UTC").unwrap()));
    // In summer it is an hour later there.
    assert!(!is_met(&window.judge(Timestamp(NOON.0 - 120 * 24 * HOUR), "UTC").unwrap()));
    let Rule::TimeWindow(window) = rule("time_window", json!({})) else { panic!() };
    assert!(window.judge(NOON, "Nowhere/Land").is_err());
}

#[test]
fn the_run_before_must_have_gone_well() {
    let Rule::RequirePreviousSuccess(rule) = rule("requirePreviousSuccess", json!({})) else {
        panic!()
    };
    assert!(is_met(&rule.judge(&[])));
    for (state, met) in [
        (RunState::Completed, true),
        (RunState::Failed, false),
        (RunState::Cancelled, false),
        (RunState::Orphaned, false),
    ] {
        let history = [
            past("report", RunState::Completed, 1, true),
            past("report", state, 2, false),
            past("report", RunState::Completed, 3, false),
        ];
        assert_eq!(
            is_met(&rule.judge(&history)),
            met,
            "{state:?}: one that was skipped says nothing"
        );
    }
}

#[test]
fn what_was_skipped_takes_no_room_from_what_says_something_and_nor_do_failures_from_successes() {
    let skipped = (0..200).map(|ago| past("report", RunState::Completed, ago, true));
    let failed = (200..300).map(|ago| past("report", RunState::Failed, ago, false));
    let good = (300..400).map(|ago| past("report", RunState::Completed, ago, false));
    let newest = PastRun::newest(good.chain(skipped).chain(failed), 50);
    let ago = |run: &PastRun| (NOON.0 - run.completed_at.0) / 1000;
    let want: Vec<i64> = (200..250).chain(300..350).collect();
    assert_eq!(newest.iter().map(ago).collect::<Vec<_>>(), want);
    let Rule::RequirePreviousSuccess(rule) = rule("requirePreviousSuccess", json!({})) else {
        panic!()
    };
    assert!(!is_met(&rule.judge(&newest)), "it does not open by itself");
}

#[test]
fn without_a_run_before_it_depends_on_allow_first() {
    let Rule::RequirePreviousSuccess(rule) =
        rule("requirePreviousSuccess", json!({ "allow_first": false }))
    else {
        panic!()
    };
    assert_eq!(rule.judge(&[]), Finding::Violated("no run has done anything yet".to_owned()));
}

fn other(name: &str, config: Json) -> OtherJob {
    let Rule::OtherJob(rule) = rule(name, config) else { panic!() };
    rule
}

#[test]
fn another_job_is_running_or_must_not_be() {
    let runs = JobState { running: 2, next_at: None };
    for (config, state, met) in [
        (json!("import"), &runs, true),
        (json!("import"), &JobState::default(), false),
        (json!({ "job": "import", "negate": true }), &runs, false),
        (json!({ "job": "import", "negate": true }), &JobState::default(), true),
    ] {
        let found =
            other("other_job_running", config.clone()).judge(Some(state), &[], NOON).unwrap();
        assert_eq!(is_met(&found), met, "{config} {state:?}");
    }
    let unknown = other("other_job_running", json!({ "job": "import", "negate": true })).judge(
        None,
        &[],
        NOON,
    );
    assert_eq!(unknown, Err("there is no job `import`".to_owned()), "an error, not a no");
}

#[test]
fn another_job_has_completed_recently() {
    let name = "other_job_completed_recently";
    let state = JobState::default();
    let judge = |config: Json, history: &[PastRun]| {
        is_met(&other(name, config).judge(Some(&state), history, NOON).unwrap())
    };
    let config = json!({ "job": "import", "within": "1h" });
    assert!(!judge(config.clone(), &[]));
    assert!(judge(config.clone(), &[past("import", RunState::Completed, 3600, false)]));
    assert!(!judge(config.clone(), &[past("import", RunState::Completed, 3601, false)]));
    assert!(!judge(config.clone(), &[past("import", RunState::Failed, 10, false)]));
    assert!(
        !judge(config, &[past("import", RunState::Completed, 10, true)]),
        "it has done nothing"
    );
    assert!(judge(
        json!({ "job": "import", "within": "1h", "success": false }),
        &[past("import", RunState::Failed, 10, false)]
    ));
    assert!(!judge(
        json!({ "job": "import", "within": "1h", "negate": true }),
        &[past("import", RunState::Completed, 10, false)]
    ));
}

#[test]
fn another_job_is_due_soon() {
    let judge = |next_at: Option<i64>| {
        let next_at = next_at.map(|seconds| Timestamp(NOON.0 + seconds * 1000));
        let rule = other("other_job_scheduled_soon", json!({ "job": "import", "within": "10m" }));
        is_met(&rule.judge(Some(&JobState { running: 0, next_at }), &[], NOON).unwrap())
    };
    assert!(judge(Some(600)) && judge(Some(-5)));
    assert!(!judge(Some(601)) && !judge(None));
}

#[test]
fn cells_have_room_if_enough_of_them_do() {
    let cell = |id: &str, memory_mb: u32, tag: &str| {
        let available = Resources { memory_mb, disk_mb: 100, containers: 4 };
        let placement_tags = vec![tag.to_owned()];
        let empty = json!({
            "cell_id": id, "zone": "z1", "total": available, "available": available, "rootfs_schemes": [],
            "placement_tags": placement_tags, "optional_placement_tags": [], "starting": 0, "lrps": [], "tasks": [],
            "evacuating": false, "unhealthy": false,
        });
        serde_json::from_value::<CellState>(empty).unwrap()
    };
    let cells = [cell("a", 100, "gpu"), cell("b", 50, "cpu")];
    let judge = |config: Json, cells: &[CellState]| {
        let Rule::ResourceAvailable(room) = rule("resource_available", config) else { panic!() };
        room.judge(cells)
    };
    assert!(is_met(&judge(json!({ "memory_mb": 50, "cells": 2 }), &cells)));
    let told = "1 of 2 cells have room for 51 MB of memory, 0 MB of disk and 1 containers, 2 must";
    assert_eq!(
        judge(json!({ "memory_mb": 51, "cells": 2 }), &cells),
        Finding::Violated(told.to_owned())
    );
    assert!(is_met(&judge(json!({ "tags": ["gpu"], "zone": "z1" }), &cells)));
    for config in [
        json!({ "tags": ["tpu"] }),
        json!({ "zone": "z2" }),
        json!({ "disk_mb": 101 }),
        json!({ "containers": 5 }),
    ] {
        assert!(!is_met(&judge(config.clone(), &cells)), "{config}");
    }
    let leaving = [
        CellState { evacuating: true, ..cells[0].clone() },
        CellState { unhealthy: true, ..cells[1].clone() },
    ];
    assert!(!is_met(&judge(json!({}), &leaving)) && !is_met(&judge(json!({}), &[])));
}

#[test]
fn answers_are_judged_by_their_status() {
    let health = |config: Json, status: u16| {
        let Rule::HttpHealthCheck(health) = rule("http_health_check", config) else { panic!() };
        is_met(&health.judge(status))
    };
    let plain = json!("https://a/");
    assert!(health(plain.clone(), 200) && health(plain.clone(), 204));
    assert!(!health(plain.clone(), 302) && !health(plain, 500));
    assert!(health(json!({ "url": "https://a/", "statuses": 302 }), 302));
    for name in ["preRunHook", "postRunHook"] {
        let (Rule::PreRunHook(hook) | Rule::PostRunHook(hook)) = rule(name, json!("https://a/"))
        else {
            panic!()
        };
        assert!(is_met(&hook.judge(200)));
        assert_eq!(
            hook.judge(204),
            Finding::Violated("the answer was 204".to_owned()),
            "200 and nothing else"
        );
    }
}

#[test]
fn work_that_ran_too_long_violates_its_limit() {
    for name in ["maxExpectedRunTime", "maxAllowedRunTime"] {
        let rule = rule(name, json!("1m"));
        let judge = |millis: u64| rule.judge_run_time(Duration::from_millis(millis)).unwrap();
        assert!(is_met(&judge(60_000)));
        let told = format!("it ran for 1m1ms, longer than 1m ({name})");
        assert_eq!(judge(60_001), Finding::Violated(told));
    }
    assert_eq!(rule("requirePreviousSuccess", json!({})).judge_run_time(Duration::MAX), None);
}
