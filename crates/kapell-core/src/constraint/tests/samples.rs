//! Configurations that are good, and such that are not.

use serde_json::Value as Json;

/// One of each, as small as it can be, and one with all that it takes.
const GOOD: &str = r##"
constraint/preRunHook {"url": "https://example.com/hook"}
constraint/preRunHook "https://example.com/hook"
constraint/preRunHook {"url_secret": "hook", "headers": {"Authorization": {"secret": "token"}, "x-a": "b"}, "body": {"run": "{{ run.id }}", "n": [1, null]}, "secret": "key", "max_attempts": 2, "timeout": "1m"}
constraint/postRunHook {"url": "https://example.com/hook", "timeout": 5}
constraint/maxExpectedRunTime "30m"
constraint/maxExpectedRunTime {"limit": 90}
constraint/maxAllowedRunTime {"limit": "1h30m"}
constraint/requirePreviousSuccess null
constraint/requirePreviousSuccess {"allow_first": false}
constraint/time_window {"start": "22:00", "end": "06:00", "days": ["mon", "Friday"], "timezone": "Europe/Berlin"}
constraint/time_window {"days": "sat", "end": "24:00"}
constraint/other_job_running "import"
constraint/other_job_running {"job": "import", "negate": true}
constraint/other_job_completed_recently {"job": "import", "within": "1h", "success": false}
constraint/other_job_scheduled_soon {"job": "import", "within": "10m"}
constraint/http_health_check {"url": "https://example.com/hook", "method": "head", "statuses": [200, 204]}
constraint/http_health_check {"url": "https://example.com/hook", "statuses": 204, "timeout": null}
constraint/resource_available {"memory_mb": 512, "disk_mb": 1, "containers": 2, "cells": 3, "zone": "z1", "tags": ["gpu"]}
constraint/resource_available null
action/retry null
action/fail {}
action/skip null
action/proceed null
action/delay "5m"
action/log "{{ job.id }} is {{ constraint.message | default(\"late\") }}"
action/log {"message": "x", "level": "error"}
action/log null
action/kickOffJob "clean-up"
action/kickOffJob {"job": "clean-up", "parameters": {"RUN": "{{ run.id }}"}}
action/killAllInstances null
action/killAllInstances {"job": "import", "stop": "at_once"}
action/killLatestInstance "import"
action/skipNextInstance 2
action/webhook {"url": "https://example.com/hook", "method": "put", "secret": "key", "wait": "10s", "timeout": "5s"}
action/webhook "https://example.com/hook"
action/slack {"url_secret": "slack", "text": "{{ run.id }}", "channel": "#ops"}
action/pagerduty {"routing_key_secret": "pd"}
action/pagerduty {"routing_key_secret": "pd", "severity": "info", "event_action": "resolve", "summary": "x", "dedup_key": "{{ job.id }}", "url": "https://events.eu.pagerduty.com/v2/enqueue"}
action/metric "late_reports"
action/metric {"metric": "lag", "value": 1.5, "kind": "gauge"}
"##;

/// Each with where it is wrong, below `config`, and what is said.
const BAD: &str = r#"
constraint/preRunHook {}
    : must have exactly one of `url` and `url_secret`
constraint/preRunHook {"url": "https://example.com/hook", "url_secret": "a"}
    : must have exactly one of `url` and `url_secret`
constraint/preRunHook "ftp://example.com"
    : must be a URL that begins with http:// or https://
constraint/preRunHook {"url": "https://me:pw@example.com"}
    .url: must not hold a user or a password: use `headers` with a secret
constraint/preRunHook {"url": "https://example.com/hook", "secret": "a b"}
    .secret: must be the name of a secret: letters, digits, `-` and `_`
constraint/preRunHook {"url": "https://example.com/hook", "headers": {"a b": "c"}}
    .headers.a b: is not the name of a header
constraint/preRunHook {"url": "https://example.com/hook", "headers": {"Webhook-Id": "c"}}
    .headers.Webhook-Id: is set by Kapell itself
constraint/preRunHook {"url": "https://example.com/hook", "headers": {"a": "b\r\nc"}}
    .headers.a: must be a text of plain characters or {secret: NAME}
constraint/preRunHook {"url": "https://example.com/hook", "body": {"a": ["{{ run.di }}"]}}
    .body.a[0]: `run.di` is no field; did you mean `run.id`?
constraint/preRunHook {"url": "https://example.com/hook", "max_attempts": 0}
    .max_attempts: must be a whole number from 1 to 20
constraint/maxExpectedRunTime {}
    .limit: is missing: how long the work may run
constraint/maxExpectedRunTime "soon"
    : `soon` is not a duration: write it as `90s` or `1h30m`
constraint/maxAllowedRunTime {"limit": true}
    .limit: a duration is a text as `2m` or a number of seconds
constraint/requirePreviousSuccess {"allow_frist": true}
    .allow_frist: `requirePreviousSuccess` has no such field; did you mean `allow_first`?
constraint/requirePreviousSuccess {"allow_first": "yes"}
    .allow_first: must be true or false
constraint/requirePreviousSuccess 7
    : must be a mapping; it takes allow_first, timeout
constraint/time_window {"start": "8:30"}
    .start: must be a time of day as "08:30", up to "24:00"
constraint/time_window {"days": ["mon", "mo"]}
    .days[1]: must be a day as `mon` or `monday`, not "mo"
constraint/time_window {"days": []}
    .days: must have from 1 to 32 entries
constraint/time_window {"timezone": "Europe/Berln"}
    .timezone: `Europe/Berln` is no time zone; write it as `Europe/Berlin`; did you mean `Europe/Berlin`?
constraint/other_job_running {"job": "a/b"}
    .job: must be the id of a job: letters, digits, `-` and `_`
constraint/other_job_running null
    .job: is missing: the id of the other job
constraint/other_job_completed_recently {"job": "a"}
    .within: is missing: how recent or how soon
constraint/http_health_check {"url": "https://example.com/hook", "statuses": [200, 99]}
    .statuses[1]: must be a status of HTTP, from 100 to 599, not 99
constraint/http_health_check {"url": "https://example.com/hook", "method": "gett"}
    .method: must be one of get, head, not `gett`; did you mean `get`?
constraint/resource_available {"memory_mb": -1}
    .memory_mb: must be a whole number from 0 to 1073741824
action/delay null
    .time: is missing: how long
action/delay "2d"
    : must be from 0ms to 1d, not 2d
action/log "{{ run.id"
    : `{{` has no `}}`
action/skip "now"
    : must be a mapping; it takes none
action/kickOffJob {"job": "a", "parameters": {"P": 1}}
    .parameters.P: must be a text of at most 4096 bytes
action/killAllInstances {"stop": "hard"}
    .stop: must be one of graceful, at_once, not `hard`
action/skipNextInstance 0
    : must be a whole number from 1 to 1000
action/pagerduty {"routing_key": "x"}
    .routing_key: `pagerduty` has no such field; did you mean `routing_key_secret`?
action/metric "1st"
    : must be the name of a figure: letters, digits and `_`, at most 100
action/metric {"metric": "a", "value": "1"}
    .value: must be a number
"#;

fn sample(line: &'static str) -> (&'static str, Json) {
    let (name, config) = line.split_once(' ').unwrap();
    (name, serde_json::from_str(config).unwrap())
}

pub(super) fn good() -> Vec<(&'static str, Json)> {
    GOOD.trim().lines().map(sample).collect()
}

pub(super) fn bad() -> Vec<(&'static str, Json, &'static str)> {
    let lines: Vec<&str> = BAD.trim().lines().collect();
    let pair = |pair: &[&'static str]| {
        let (name, config) = sample(pair[0]);
        (name, config, pair[1].trim_start())
    };
    lines.chunks(2).map(pair).collect()
}
