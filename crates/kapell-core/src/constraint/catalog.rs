//! All constraints and actions there are, and what each takes.

use super::fields::{Field, Kind, Shape};

const DAY: u64 = 86_400;
const YEAR: u64 = 366 * DAY;

const fn may(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, required: false, about }
}

const fn must(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, required: true, about }
}

// Jobs of before may say as much as a day: they are read, and have what a check may take.
const TIMEOUT: Field = may(
    "timeout",
    Kind::Length { least: 1, most: DAY },
    "how long the check may take, at most 10m (30s)",
);
const CALL: Field =
    may("timeout", Kind::Length { least: 1, most: 600 }, "how long one call may take (10s)");
const WAIT: Field = may(
    "wait",
    Kind::Length { least: 0, most: 3_600 },
    "how long the run waits for it to be taken (0)",
);
const ATTEMPTS: Field =
    may("max_attempts", Kind::Count { least: 1, most: 20 }, "how often it is sent at most");
const URL: Field = may("url", Kind::Url, "where to");
const URL_SECRET: Field =
    may("url_secret", Kind::Secret, "the secret of the job's domain that holds the URL");
const HEADERS: Field = may("headers", Kind::Headers, "more headers: texts, or {secret: NAME}");
const SIGNED: Field = may(
    "secret",
    Kind::Secret,
    "the secret of the job's domain, `whsec_…`, that it is signed with",
);
const BODY: Field =
    may("body", Kind::Body, "what is said instead of what is known of the run, with templates");
const JOB: Field = must("job", Kind::Job, "the id of the other job");
const OWN_JOB: Field = may("job", Kind::Job, "another job than its own");
const NEGATE: Field = may("negate", Kind::Flag, "met if it is not so (false)");
const LIMIT: Field =
    must("limit", Kind::Length { least: 0, most: YEAR }, "how long the work may run");
const WITHIN: Field =
    must("within", Kind::Length { least: 1, most: YEAR }, "how recent or how soon");
const STOP: Field =
    may("stop", Kind::Choice(&["graceful", "at_once"]), "how its work is ended (graceful)");
const PLACE: &[&str] = &["url", "url_secret"];

const fn shape(
    name: &'static str,
    about: &'static str,
    main: Option<&'static str>,
    fields: &'static [Field],
) -> Shape {
    Shape { name, about, fields, main, one_of: &[] }
}

const fn calling(name: &'static str, about: &'static str, fields: &'static [Field]) -> Shape {
    Shape { name, about, fields, main: Some("url"), one_of: PLACE }
}

const HOOK: &[Field] = &[URL, URL_SECRET, HEADERS, BODY, SIGNED, ATTEMPTS, TIMEOUT];

/// Those that the definition of a job reads itself.
pub(super) const ELSEWHERE: &[&str] = &["maxConcurrentRuns", "catchUp", "catchUpWindow"];

pub(super) const CONSTRAINTS: &[Shape] = &[
    calling("preRunHook", "a webhook that must answer 200 before the work", HOOK),
    calling("postRunHook", "a webhook that must answer 200 after the work", HOOK),
    shape(
        "maxExpectedRunTime",
        "the work ran no longer than that; else it is mentioned",
        Some("limit"),
        &[LIMIT],
    ),
    shape(
        "maxAllowedRunTime",
        "the work ran no longer than that; longer, it is stopped",
        Some("limit"),
        &[LIMIT],
    ),
    shape(
        "requirePreviousSuccess",
        "the run before ended well",
        None,
        &[may("allow_first", Kind::Flag, "met if there was none before (true)"), TIMEOUT],
    ),
    shape(
        "time_window",
        "it is the time of the week at which the job may run",
        None,
        &[
            may("start", Kind::TimeOfDay, "from this time on (\"00:00\")"),
            may(
                "end",
                Kind::TimeOfDay,
                "before this time (\"24:00\"); earlier than `start`: on the next day",
            ),
            may("days", Kind::Weekdays, "the days on which it begins (all)"),
            may("timezone", Kind::Zone, "instead of that of the job"),
        ],
    ),
    shape(
        "other_job_running",
        "a run of another job is under way",
        Some("job"),
        &[JOB, NEGATE, TIMEOUT],
    ),
    shape(
        "other_job_completed_recently",
        "a run of another job has completed lately",
        None,
        &[
            JOB,
            WITHIN,
            may("success", Kind::Flag, "only one that went well counts (true)"),
            NEGATE,
            TIMEOUT,
        ],
    ),
    shape(
        "other_job_scheduled_soon",
        "a run of another job is due soon",
        None,
        &[JOB, WITHIN, NEGATE, TIMEOUT],
    ),
    calling(
        "http_health_check",
        "a place answers well",
        &[
            URL,
            URL_SECRET,
            HEADERS,
            may("method", Kind::Choice(&["get", "head"]), "how it is asked (get)"),
            may("statuses", Kind::Statuses, "which answers are good (200 to 299)"),
            TIMEOUT,
        ],
    ),
    shape(
        "resource_available",
        "cells have room",
        None,
        &[
            may("memory_mb", Kind::Count { least: 0, most: 1 << 30 }, "on each (0)"),
            may("disk_mb", Kind::Count { least: 0, most: 1 << 30 }, "on each (0)"),
            may("containers", Kind::Count { least: 0, most: 1 << 20 }, "on each (1)"),
            may("cells", Kind::Count { least: 1, most: 100_000 }, "on how many (1)"),
            may("zone", Kind::Template, "only cells of this zone"),
            may("tags", Kind::Texts, "only cells with all these placement tags"),
            TIMEOUT,
        ],
    ),
];

pub(super) const ACTIONS: &[Shape] = &[
    shape(
        "retry",
        "this attempt has failed, and another one is made if there are any left",
        None,
        &[],
    ),
    shape("fail", "the run fails", None, &[]),
    shape("skip", "the run ends well without its work", None, &[]),
    shape("proceed", "the run goes on although a constraint is violated", None, &[]),
    shape(
        "delay",
        "waits, and then the run goes on",
        Some("time"),
        &[must("time", Kind::Length { least: 0, most: DAY }, "how long")],
    ),
    shape(
        "log",
        "writes a line to the log of the host",
        Some("message"),
        &[
            may("message", Kind::Template, "what is written"),
            may(
                "level",
                Kind::Choice(&["debug", "info", "warn", "error"]),
                "how grave it is (warn)",
            ),
        ],
    ),
    shape(
        "kickOffJob",
        "triggers a run of another job",
        Some("job"),
        &[JOB, may("parameters", Kind::Parameters, "parameters of that run, with templates")],
    ),
    shape("killAllInstances", "cancels all other runs of the job", Some("job"), &[OWN_JOB, STOP]),
    shape(
        "killLatestInstance",
        "cancels the newest other run of the job",
        Some("job"),
        &[OWN_JOB, STOP],
    ),
    shape(
        "skipNextInstance",
        "passes over the next moment of the job",
        Some("count"),
        &[OWN_JOB, may("count", Kind::Count { least: 1, most: 1_000 }, "how many moments (1)")],
    ),
    calling(
        "webhook",
        "tells somebody",
        &[
            URL,
            URL_SECRET,
            may("method", Kind::Choice(&["post", "put"]), "how it is sent (post)"),
            HEADERS,
            BODY,
            SIGNED,
            ATTEMPTS,
            CALL,
            WAIT,
        ],
    ),
    calling(
        "slack",
        "tells a channel of Slack",
        &[
            URL,
            URL_SECRET,
            may("text", Kind::Template, "what is said"),
            may("channel", Kind::Template, "instead of the one that the URL is for"),
            ATTEMPTS,
            CALL,
            WAIT,
        ],
    ),
    shape(
        "pagerduty",
        "makes an event of PagerDuty",
        None,
        &[
            must(
                "routing_key_secret",
                Kind::Secret,
                "the secret of the job's domain that holds the routing key",
            ),
            may("summary", Kind::Template, "what is said"),
            may(
                "severity",
                Kind::Choice(&["critical", "error", "warning", "info"]),
                "how grave it is (error)",
            ),
            may(
                "event_action",
                Kind::Choice(&["trigger", "acknowledge", "resolve"]),
                "what is done (trigger)",
            ),
            may("dedup_key", Kind::Template, "which alert it is about"),
            may("url", Kind::Url, "instead of that of PagerDuty"),
            ATTEMPTS,
            CALL,
            WAIT,
        ],
    ),
    shape(
        "metric",
        "sets or adds to a figure of the host",
        Some("metric"),
        &[
            must("metric", Kind::Figure, "its name"),
            may("value", Kind::Number, "the value (1)"),
            may("kind", Kind::Choice(&["counter", "gauge"]), "added or set (counter)"),
        ],
    ),
];
