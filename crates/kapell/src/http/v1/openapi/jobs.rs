//! The shapes of jobs and runs.

use kapell_core::job::{CatchUpPolicy, Overlap};
use kapell_core::run::RunState;
use serde_json::{Value, json};

use super::schemas::{count, flag, list, object, of, strict, text};

pub(super) fn all() -> [Value; 4] {
    [definition(), jobs(), runs(), scheduler()]
}

fn about(schema: &Value, text: &str) -> Value {
    let mut schema = schema.clone();
    schema["description"] = text.into();
    schema
}

fn one_or_many(item: &Value) -> Value {
    json!({ "oneOf": [item, { "type": "array", "items": item }] })
}

fn length() -> Value {
    json!({ "type": ["string", "number"], "description": "`90s`, `1h30m`, or a number of seconds." })
}

fn texts() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

fn definition() -> Value {
    let overlaps = Overlap::ALL.map(Overlap::name);
    let policies = CatchUpPolicy::ALL.map(CatchUpPolicy::name);
    let constraint = json!({ "anyOf": [of("JobConstraint"), about(&text(), "One that takes nothing, by its name.")] });
    json!({
        "JobDefinition": strict(1, &[
            ("job_id", of("Id")), ("name", text()), ("domain", of("Id")),
            ("schedule", about(&one_or_many(&text()), "Lines of cron with five or six fields, `@hourly` and the like, `@every 5m`. None: it runs only when it is triggered.")),
            ("timezone", json!({ "type": "string", "default": "UTC" })),
            ("jitter", of("Length")), ("starting_deadline", of("Length")),
            ("overlap", json!({ "enum": overlaps, "default": "skip" })),
            ("max_concurrent_runs", json!({ "type": "integer", "minimum": 1, "default": 1 })),
            ("group", json!({ "oneOf": [of("Id"), of("JobGroup")] })),
            ("catch_up", json!({ "oneOf": [{ "enum": policies }, of("CatchUp")] })),
            ("exclude", list(&of("Calendar"))), ("suspend", flag()), ("suspend_note", text()),
            ("pause_after_failures", json!({ "type": "integer", "minimum": 1 })),
            ("command", json!({ "oneOf": [text(), list(&text()), of("JobCommand")] })),
            ("task", about(&json!({ "type": "object" }), "A TaskDefinition without `task_guid`, `domain` and `completion_callback_url`.")),
            ("workflow", of("JobWorkflow")), ("constraints", list(&constraint)),
            ("actions", json!({ "type": "object", "description": "Actions by name.", "additionalProperties": of("JobAction") })),
            ("retry", of("JobRetry")), ("start_timeout", of("Length")), ("max_allowed_run_time", of("Length")),
            ("tags", list(&text())), ("parameters", list(&of("JobParameter"))),
            ("manual", json!({ "type": "boolean", "default": true })), ("history", of("JobHistory")),
        ]),
        "Length": length(),
        "JobGroup": strict(1, &[("name", of("Id")), ("limit", json!({ "type": "integer", "minimum": 1, "default": 1 }))]),
        "CatchUp": strict(0, &[("policy", json!({ "enum": policies })), ("window", of("Length"))]),
        "Calendar": strict(0, &[("name", text()), ("dates", list(&text())), ("weekdays", list(&text())), ("hours", text())]),
        "JobCommand": strict(1, &[
            ("command", text()), ("args", list(&text())), ("env", list(&of("Variable"))), ("dir", text()), ("user", text()),
            ("stop_grace", of("Length")),
        ]),
        "JobWorkflow": strict(0, &[("file", text()), ("text", text()), ("params", list(&text()))]),
        "JobRetry": strict(1, &[
            ("max_retries", count()), ("initial_delay", of("Length")),
            ("backoff_multiplier", json!({ "type": "number", "minimum": 1, "default": 2 })), ("max_delay", of("Length")),
            ("jitter_percent", json!({ "type": "integer", "minimum": 0, "maximum": 100 })), ("on", list(&json!({ "enum": ["launch"] }))),
        ]),
        "JobParameter": strict(1, &[
            ("name", text()), ("default", text()), ("options", list(&text())),
            ("changeable", json!({ "type": "boolean", "default": true })), ("about", text()),
        ]),
        "JobHistory": strict(0, &[("succeeded", count()), ("failed", count()), ("skipped", count()), ("max_age", of("Length"))]),
    })
}

fn jobs() -> Value {
    let time = of("Timestamp");
    let when = json!({ "type": ["integer", "string"], "description": "Milliseconds since 1970, or a text as `2026-11-16 02:30` in the time zone of the job." });
    let pause = object(
        2,
        &[("at", time.clone()), ("cause", json!({ "type": "object" })), ("note", text())],
    );
    let passed = object(
        4,
        &[
            ("from", time.clone()),
            ("to", time.clone()),
            ("count", count()),
            ("why", object(1, &[("reason", text())])),
        ],
    );
    let view = [
        ("job_id", of("Id")),
        ("domain", of("Id")),
        ("revision", count()),
        ("mark", about(&time, "Every moment up to this one was dealt with.")),
        ("created_at", time.clone()),
        ("updated_at", time.clone()),
        ("version", count()),
        ("definition", of("JobDefinition")),
        ("active_runs", count()),
        ("next_at", about(&time, "When its next run begins, with jitter.")),
        ("last_run", of("RunBrief")),
        ("paused", pause),
        ("failures_in_a_row", count()),
        ("skip_next", count()),
        (
            "skips",
            about(&list(&time), "Moments of runs that were made already and are passed over."),
        ),
        ("figures", about(&json!({ "type": "object" }), "By the action `metric` of its runs.")),
        ("removed", flag()),
        ("cancels_runs", flag()),
        ("passed", about(&list(&passed), "Moments that came to nothing, the newest last.")),
    ];
    let changed = about(&list(&text()), "The names of the fields that changed.");
    json!({
        "JobView": object(9, &view),
        "JobApplied": { "allOf": [of("JobView"), object(1, &[("changed", changed)])] },
        "RunBrief": object(4, &[
            ("run_id", of("RunId")), ("state", of("RunState")), ("scheduled_at", time.clone()), ("skipped", flag()),
            ("started_at", time.clone()), ("completed_at", time.clone()), ("reason", text()),
        ]),
        "PauseWanted": strict(0, &[("note", text())]),
        "TriggerWanted": strict(0, &[("parameters", texts())]),
        "BackfillWanted": strict(2, &[("from", when.clone()), ("to", when), ("dry_run", flag()), ("parameters", texts()),
            ("key", about(&text(), "Another one than before makes runs anew for moments that have some by a backfill of the same parameters."))]),
        "Backfilled": object(2, &[
            ("timezone", text()), ("runs", list(&object(2, &[
                ("run_id", of("RunId")), ("scheduled_at", time.clone()), ("there", about(&flag(), "It was there already.")),
            ]))),
        ]),
        "NextMoments": object(2, &[
            ("timezone", text()),
            ("moments", list(&object(2, &[
                ("at", time.clone()), ("due_at", time), ("excluded", about(&text(), "The calendar that excludes it.")), ("clock_change", text()),
            ]))),
            ("hold", about(&text(), "What keeps these moments from becoming runs.")),
        ]),
    })
}

fn runs() -> Value {
    let time = of("Timestamp");
    let entry = object(2, &[("at", time.clone()), ("noted", text()), ("attempt", count())]);
    let view = [
        ("run_id", of("RunId")),
        ("job_id", of("Id")),
        ("timezone", about(&text(), "Of its job.")),
        ("domain", of("Id")),
        ("revision", count()),
        ("trigger", object(1, &[("by", text()), ("who", text()), ("of", of("RunId"))])),
        ("scheduled_at", time.clone()),
        ("due_at", time.clone()),
        ("state", of("RunState")),
        ("created_at", time.clone()),
        ("version", count()),
        ("parameters", texts()),
        ("previous_state", of("RunState")),
        ("attempt", count()),
        ("started_at", time.clone()),
        ("retry_at", time.clone()),
        ("completed_at", time.clone()),
        ("exit_code", json!({ "type": "integer" })),
        ("reason", text()),
        ("skipped", flag()),
        ("cancel", json!({ "enum": ["graceful", "at_once"] })),
        ("timeline", about(&list(&entry), "Every decision about it, the oldest first.")),
        ("metrics", of("RunMetrics")),
        ("update_id", text()),
        (
            "log_hosts",
            about(
                &list(&text()),
                "The addresses of hosts that may have what it wrote, the newest last.",
            ),
        ),
        ("place", about(&text(), "Where the work of this attempt was to be launched.")),
        ("live", of("RunLive")),
    ];
    json!({
        "RunId": { "type": "string", "pattern": "^[a-zA-Z0-9_-]+:[0-9]{1,12}(-[0-9a-fA-F]{1,16})?$" },
        "RunState": { "enum": RunState::ALL.map(RunState::name) },
        "RunView": object(11, &view),
        "RunLive": object(1, &[
            ("since", time.clone()),
            ("doing", about(&object(2, &[("what", text()), ("since", time.clone())]), "The constraints that are being looked at, or the action that is being taken.")),
            ("heartbeats", about(&count(), "How often it gave a sign of life; not told in lists.")),
            ("timer", about(&object(2, &[("what", text()), ("at", time)]), "What happens to it by the clock; not told in lists.")),
        ]),
        "KnownRun": object(2, &[("run_id", of("RunId")), ("active", flag())]),
        "CancelWanted": strict(0, &[("at_once", flag())]),
        "RunMetrics": { "type": "object", "description": "What it took, all attempts together, in milliseconds." },
    })
}

fn scheduler() -> Value {
    let percentiles = object(3, &[("p50_ms", count()), ("p95_ms", count()), ("p99_ms", count())]);
    let by = |schema: &Value| json!({ "type": "object", "additionalProperties": schema });
    json!({
        "SchedulerStats": object(4, &[
            ("active", by(&count())), ("all", of("RunStats")), ("jobs", by(&of("RunStats"))), ("lateness", of("Percentiles")),
        ]),
        "Percentiles": percentiles,
        "RunStats": object(9, &[
            ("completed", count()), ("skipped", count()), ("failed", count()), ("cancelled", count()), ("orphaned", count()),
            ("retries", count()), ("kubernetes_api_calls", count()), ("phases", by(&of("Percentiles"))), ("last", of("RunMetrics")),
        ]),
        "WebhookDelivery": object(8, &[
            ("webhook_id", text()), ("job_id", of("Id")), ("run_id", of("RunId")), ("what", text()), ("place", text()),
            ("asked_at", of("Timestamp")), ("attempts", count()),
            ("state", json!({ "enum": ["waiting", "delivered", "given_up", "withdrawn"] })),
            ("last_at", of("Timestamp")), ("status", count()), ("why", text()),
        ]),
    })
}
