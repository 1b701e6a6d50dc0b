//! What `constraints` and `actions` may look like, and what is told of those that cannot be used.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{good, job, samples, told};
use crate::constraint::{Deed, OnError, Phase, Verdict, faults, kicks, read};

/// A job with this one constraint or action.
fn with(sample: &str, config: &Json) -> Json {
    match sample.split_once('/').unwrap() {
        ("constraint", name) => json!([{ name: { "config": config } }]),
        (_, name) => {
            json!([{ "requirePreviousSuccess": { "onMet": [{ name: { "config": config } }] } }])
        }
    }
}

fn path(sample: &str) -> String {
    match sample.split_once('/').unwrap() {
        ("constraint", name) => format!("constraints[0].{name}.config"),
        (_, name) => format!("constraints[0].requirePreviousSuccess.onMet[0].{name}.config"),
    }
}

#[test]
fn every_good_sample_is_taken() {
    for (name, config) in samples::good() {
        assert_eq!(told(with(name, &config), Json::Null), [""; 0], "{name} {config}");
    }
}

#[test]
fn every_bad_sample_is_refused_with_its_place_and_what_would_be_right() {
    for (name, config, message) in samples::bad() {
        let right = format!("{}{message}", path(name));
        let all = told(with(name, &config), Json::Null);
        assert!(all.contains(&right), "{name} {config}:\n  {right}\n  {all:?}");
    }
}

#[test]
fn the_forms_of_a_constraint_are_the_same() {
    let forms = [
        json!([{ "requirePreviousSuccess": { "config": { "allowFirst": true }, "onViolation": ["skip"], "recheckOnRetry": false } }]),
        json!([{ "require_previous_success": { "config": { "allow_first": true }, "on_violation": "skip", "recheck_on_retry": false } }]),
        json!([{ "name": "requirePreviousSuccess", "onViolation": [{ "skip": {} }], "recheck_on_retry": false }]),
        json!([{ "name": "requirePreviousSuccess", "config": null, "onViolation": [{ "name": "skip" }], "recheck_on_retry": false }]),
    ];
    let first = good(forms[0].clone());
    for form in forms {
        assert_eq!(good(form.clone()), first, "{form}");
    }
    let plain = [
        json!("requirePreviousSuccess"),
        json!({ "requirePreviousSuccess": true }),
        json!({ "requirePreviousSuccess": null }),
    ];
    for form in plain {
        assert_eq!(good(json!([form])), good(json!([{ "requirePreviousSuccess": {} }])), "{form}");
    }
    assert_eq!(good(json!([{ "requirePreviousSuccess": false }])).specs, []);
}

#[test]
fn the_forms_of_an_action_are_the_same() {
    let list = |actions: Json| {
        let named =
            json!({ "tell-ops": { "webhook": { "url": "https://a/b", "required": false } } });
        let constraints = json!([{ "time_window": { "onViolation": actions } }]);
        read(&job(constraints, named)).unwrap().specs[0].on_violation.clone()
    };
    let first = list(json!([{ "webhook": { "url": "https://a/b", "required": false } }]));
    assert!(!first[0].required);
    for form in [
        json!([{ "webhook": { "config": { "url": "https://a/b" }, "required": false } }]),
        json!([{ "webhook": { "config": "https://a/b", "required": false } }]),
        json!([{ "name": "webhook", "url": "https://a/b", "required": false }]),
        json!([{ "name": "webhook", "config": { "url": "https://a/b" }, "required": false }]),
        json!(["tell-ops"]),
        json!("tell-ops"),
    ] {
        assert_eq!(list(form.clone()), first, "{form}");
    }
    assert!(list(json!([{ "webhook": "https://a/b" }]))[0].required);
    let put =
        |method: &str| list(json!([{ "webhook": { "url": "https://a/b", "method": method } }]));
    assert_eq!(put("PUT"), put("put"));
}

#[test]
fn what_is_not_said_has_a_default() {
    let all = good(json!(["requirePreviousSuccess", { "maxExpectedRunTime": "1m" }]));
    let spec = &all.specs[0];
    assert_eq!(
        (spec.on_error, spec.recheck_on_retry, spec.timeout),
        (OnError::Block, true, Duration::from_secs(30))
    );
    assert_eq!((spec.on_met.len(), spec.on_violation.len()), (0, 0));
    let late = &all.specs[1];
    assert_eq!(late.on_violation.len(), 1, "whoever is late is mentioned");
    assert!(matches!(&late.on_violation[0].deed, Deed::Log { .. }));
    let quiet = good(json!([{ "maxExpectedRunTime": { "config": "1m", "onViolation": [] } }]));
    assert_eq!(quiet.specs[0].on_violation, []);
    assert!(all.has(Phase::Before) && all.has(Phase::After) && !quiet.has(Phase::Before));
}

#[test]
fn a_check_that_may_take_too_long_is_refused_and_one_that_is_stored_is_shortened() {
    let with =
        |timeout: &str| json!([{ "requirePreviousSuccess": { "config": { "timeout": timeout } } }]);
    assert_eq!(told(with("10m"), Json::Null), [""; 0]);
    let all = told(with("1d"), Json::Null);
    let want = "constraints[0].requirePreviousSuccess.config.timeout: must be at most 10m, not 1d: all runs share the places in which they are checked";
    assert_eq!(all, [want]);
    // Jobs that were stored when they could say so go on.
    let stored = read(&job(with("1d"), Json::Null)).unwrap();
    assert_eq!(stored.specs[0].timeout, Duration::from_secs(600));
}

#[test]
fn what_the_definition_reads_itself_is_passed_over() {
    let all = good(
        json!([{ "maxConcurrentRuns": 3 }, { "catchUp": "all" }, { "catch_up_window": { "config": "2h" } }]),
    );
    assert_eq!(all.specs, []);
}

#[test]
fn what_is_unknown_is_refused_with_what_was_meant() {
    let constraints = json!([
        { "time_windw": {} },
        "nonsense-of-mine",
        { "time_window": { "onViolaton": [], "start": "08:00", "on_error": "ignore", "recheck_on_retry": 1 } },
        { "time_window": { "onViolation": ["skp", "tell-op", { "a": 1, "b": 2 }, 7], "on_violation": [] } },
        { "a": 1, "b": 2 },
        7,
    ]);
    let actions = json!({ "tell-ops": { "log": "x" }, "log": { "log": "x" }, "odd": "skipp" });
    let all = told(constraints, actions);
    let right = [
        "actions.log: `log` is an action itself: choose another name",
        "actions.odd: there is no action `skipp`; did you mean `skip`?",
        "constraints[0]: there is no constraint `time_windw`; did you mean `time_window`?",
        "constraints[1]: there is no constraint `nonsense-of-mine`; there are preRunHook, postRunHook, maxExpectedRunTime, \
         maxAllowedRunTime, requirePreviousSuccess, time_window, other_job_running, other_job_completed_recently, \
         other_job_scheduled_soon, http_health_check, resource_available, maxConcurrentRuns, catchUp, catchUpWindow",
        "constraints[2].time_window.onViolaton: a constraint has no such key; did you mean `on_violation`?",
        "constraints[2].time_window.start: belongs below `config`",
        "constraints[2].time_window.on_error: must be one of block, allow, retry",
        "constraints[2].time_window.recheck_on_retry: must be true or false",
        "constraints[3].time_window: `onViolation` and `on_violation` are the same key: write one of them",
        "constraints[4]: must be the name of a constraint with what it takes below it, as `- NAME: {…}`",
        "constraints[5]: must be a constraint: a name, or a name with what it takes",
    ];
    for text in right {
        assert!(all.iter().any(|it| it == text), "{text}\n{all:#?}");
    }
    let list = told(
        json!([{ "time_window": { "onViolation": ["skp", "tell-op", { "a": 1, "b": 2 }, 7] } }]),
        json!({ "tell-ops": "log" }),
    );
    let at = "constraints[0].time_window.onViolation";
    assert_eq!(
        list,
        [
            format!("{at}[0]: there is no action `skp`; did you mean `skip`?"),
            format!("{at}[1]: there is no action `tell-op`; did you mean `tell-ops`?"),
            format!(
                "{at}[2]: must be the name of an action with what it takes below it, as `- NAME: {{…}}`"
            ),
            format!("{at}[3]: must be an action: a name, or a name with what it takes"),
        ]
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let twice =
        told(json!([{ "time_window": { "onViolation": ["skip", "log", "fail"] } }]), Json::Null);
    let right = "constraints[0].time_window.onViolation: `skip` and `fail` contradict each other: a list says one of retry, \
                 fail, skip, proceed once";
    assert_eq!(twice, [right]);
    let never = "constraints[0].time_window.recheck_on_retry: must be true where a violation or an error means `retry`: else \
                 the next attempt passes it over";
    for more in [json!({ "onViolation": ["retry"] }), json!({ "onError": "retry" })] {
        let mut entry = more.clone();
        entry["recheckOnRetry"] = false.into();
        assert_eq!(told(json!([{ "time_window": entry }]), Json::Null), [never], "{more}");
    }
    let both = told(
        json!([{ "time_window": { "onViolation": [{ "delay": { "config": "1m", "time": "2m" } }] } }]),
        Json::Null,
    );
    assert_eq!(
        both,
        [
            "constraints[0].time_window.onViolation[0].delay.time: belongs below `config`, as there is one"
        ]
    );
}

#[test]
fn lists_are_bounded() {
    let many: Vec<Json> = (0..33).map(|_| json!("requirePreviousSuccess")).collect();
    assert_eq!(told(many.into(), Json::Null), ["constraints: must be at most 32"]);
    let logs: Vec<Json> = (0..33).map(|_| json!("log")).collect();
    let all = told(json!([{ "time_window": { "onMet": logs } }]), Json::Null);
    assert_eq!(all, ["constraints[0].time_window.onMet: must be at most 32 actions"]);
    assert_eq!(
        told(json!([]), json!(["log"])),
        ["actions: must be a mapping of at most 32 names, each with an action"]
    );
}

#[test]
fn the_jobs_and_secrets_that_it_refers_to_are_known() {
    let constraints = json!([
        { "preRunHook": { "config": { "url_secret": "place", "secret": "key", "headers": { "a": { "secret": "token" } } },
            "onMet": [{ "kickOffJob": "b" }], "onViolation": [{ "kickOffJob": "a" }, { "kickOffJob": "b" }] } },
        { "maxExpectedRunTime": { "config": "1m", "onViolation": [{ "pagerduty": { "routing_key_secret": "pd" } }, { "slack": { "url_secret": "slack" } }] } },
    ]);
    let definition = job(constraints, Json::Null);
    assert_eq!(kicks(&definition), ["a".into(), "b".into()]);
    let secrets: Vec<String> =
        read(&definition).unwrap().secrets().iter().map(ToString::to_string).collect();
    assert_eq!(secrets, ["key", "pd", "place", "slack", "token"]);
    assert_eq!(faults(&definition), []);
}

#[test]
fn only_four_actions_say_what_becomes_of_a_run() {
    let all = good(
        json!([{ "time_window": { "onMet": ["retry"], "onViolation": [{ "delay": 1 }, "log", "killAllInstances"] } }]),
    );
    assert_eq!(all.specs[0].on_met[0].verdict(), Some(Verdict::Retry));
    assert!(all.specs[0].on_violation.iter().all(|action| action.verdict().is_none()));
    assert!(all.specs[0].on_violation[0].delays());
}
