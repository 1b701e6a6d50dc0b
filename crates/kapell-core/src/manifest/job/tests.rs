mod page;
mod refusals;

use std::fmt::Write as _;
use std::time::Duration;

use super::*;
use crate::board::Variable;
use crate::job::{Command, Group, History, Payload};
use crate::manifest::{differences, read as read_all, read_job};

fn problems(text: &str) -> Vec<String> {
    read_all(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect()
}

fn jobs(text: &str) -> Vec<JobDefinition> {
    let documents = read_all(text.as_bytes()).unwrap_or_else(|found| panic!("{found:#?}"));
    let job = |placed: crate::manifest::Placed| match placed.document {
        crate::manifest::Document::Job(job) => *job,
        other @ (crate::manifest::Document::Lrp { .. } | crate::manifest::Document::Task(_)) => {
            panic!("no job: {other:?}")
        }
    };
    documents.into_iter().map(job).collect()
}

/// The one job of a text, with a command if it has none.
fn one(more: &str) -> JobDefinition {
    let has_work =
        ["task:", "workflow:", "command:", "kubernetes:"].iter().any(|it| more.contains(it));
    let work = if has_work { "" } else { "command: x\n" };
    jobs(&format!("job_id: a\n{work}{more}")).remove(0)
}

fn seconds(seconds: u64) -> Length {
    Length::new(Duration::from_secs(seconds))
}

#[test]
fn what_is_not_said_has_a_default() {
    let job = one("");
    assert_eq!(
        (job.domain.as_str(), job.timezone.as_str(), job.name.as_str()),
        ("jobs", "UTC", "")
    );
    assert_eq!((job.overlap, job.max_concurrent_runs), (Overlap::Skip, 1));
    assert_eq!(job.catch_up.policy, CatchUpPolicy::Last);
    assert_eq!(job.catch_up.window, seconds(3_600));
    assert_eq!(job.history, History { succeeded: 50, failed: 50, skipped: 50, max_age: None });
    assert!(job.manual && !job.suspend && job.retry.is_none() && job.schedule.is_empty());
    let retry = one("retry: {max_retries: 3}").retry.unwrap();
    assert_eq!((retry.initial_delay, retry.max_delay), (seconds(10), seconds(300)));
    assert_eq!((retry.backoff_multiplier.0.to_bits(), retry.jitter_percent), (2f64.to_bits(), 0));
    let written = serde_json::to_value(&job).unwrap();
    let want =
        json!({"job_id": "a", "domain": "jobs", "timezone": "UTC", "command": {"command": "x"}});
    assert_eq!(written, want);
}

const FULL: &str = "\
kind: job
job_id: report
name: The nightly report
domain: shop
schedule: ['30 2 * * *', '@every 90m']
timezone: Europe/Berlin
jitter: 90
starting_deadline: 10m
overlap: queue_one
max_concurrent_runs: 2
group: {name: database, limit: 3}
catch_up: {policy: all, window: 2h30m}
exclude:
  - {name: holidays, dates: [2026-12-24, 12-31..01-02], weekdays: sun, hours: '22:00-06:00'}
suspend: true
suspend_note: until the move is over
pause_after_failures: 5
command:
  command: ./report
  args: [--day, 1]
  env: {A: b, PASSWORD: {secret: db}}
  dir: /srv/report
  user: report
  stop_grace: 30s
constraints:
  - requirePreviousSuccess: {config: {}, onViolation: [page]}
actions: {page: {log: {message: late}}}
retry:
  max_retries: 3
  initial_delay: 0.5
  backoff_multiplier: 1.5
  max_delay: 1h
  jitter_percent: 10
  on: launch
start_timeout: 1m
max_allowed_run_time: 1h30m
tags: [nightly, shop]
parameters:
  - {name: MODE, default: fast, options: [fast, slow], changeable: false, about: how}
  - {name: DAY, default: ''}
manual: false
history: {succeeded: 5, failed: 100, skipped: 7, max_age: 30d}
";

#[test]
fn every_key_is_read() {
    let job = jobs(FULL).remove(0);
    let want = json!({
        "job_id": "report", "name": "The nightly report", "domain": "shop",
        "schedule": ["30 2 * * *", "@every 90m"], "timezone": "Europe/Berlin",
        "jitter": "1m30s", "starting_deadline": "10m",
        "overlap": "queue_one", "max_concurrent_runs": 2,
        "group": {"name": "database", "limit": 3},
        "catch_up": {"policy": "all", "window": "2h30m"},
        "exclude": [{
            "name": "holidays", "dates": ["2026-12-24", "12-31..01-02"], "weekdays": ["sun"],
            "hours": "22:00-06:00",
        }],
        "suspend": true, "suspend_note": "until the move is over", "pause_after_failures": 5,
        "command": {
            "command": "./report", "args": ["--day", "1"],
            "env": [{"name": "A", "value": "b"}, {"name": "PASSWORD", "secret": "db"}],
            "dir": "/srv/report", "user": "report", "stop_grace": "30s",
        },
        "constraints": [{"requirePreviousSuccess": {"config": {}, "onViolation": ["page"]}}],
        "actions": {"page": {"log": {"message": "late"}}},
        "retry": {
            "max_retries": 3, "initial_delay": "500ms", "backoff_multiplier": 1.5,
            "max_delay": "1h", "jitter_percent": 10, "on": ["launch"],
        },
        "start_timeout": "1m", "max_allowed_run_time": "1h30m", "tags": ["nightly", "shop"],
        "parameters": [
            {
                "name": "MODE", "default": "fast", "options": ["fast", "slow"],
                "changeable": false, "about": "how",
            },
            {"name": "DAY", "default": ""},
        ],
        "manual": false, "history": {"succeeded": 5, "failed": 100, "skipped": 7, "max_age": "30d"},
    });
    assert_eq!(serde_json::to_value(&job).unwrap(), want);
    // What is kept reads as itself again, as a file and as a request.
    assert_eq!(serde_json::from_value::<JobDefinition>(want.clone()).unwrap(), job);
    assert_eq!(jobs(&want.to_string()), std::slice::from_ref(&job));
    assert_eq!(read_job(want.to_string().as_bytes()).unwrap(), job);
}

#[test]
fn a_command_is_a_text_a_list_or_a_mapping() {
    let command = |text: &str| one(text).command.unwrap();
    let plain = |command: &str, args: Option<&[&str]>| Command {
        command: command.to_owned(),
        args: args.map(|args| args.iter().map(|&arg| arg.to_owned()).collect()),
        ..Command::default()
    };
    assert_eq!(command("command: date | cat"), plain("date | cat", None));
    assert_eq!(command("command: [date, -u, 5]"), plain("date", Some(&["-u", "5"])));
    assert_eq!(command("command: [date]"), plain("date", Some(&[])));
    assert_eq!(command("command: {command: date}"), plain("date", None));
    assert_eq!(command("command: {command: [date, -u]}"), plain("date", Some(&["-u"])));
    assert_eq!(command("command: {command: date, args: [-u]}"), plain("date", Some(&["-u"])));
    let with_env = command("command: {command: x, env: [{name: A, value: b}], stopGrace: 5}");
    assert_eq!(with_env.env, [Variable::plain("A", "b")]);
    assert_eq!(with_env.stop_grace, Some(seconds(5)));
}

#[test]
fn a_task_and_a_workflow_are_work_too() {
    let job = one("task: {memory_mb: 64, action: {run: {path: x}}, env: {A: {secret: s}}}");
    let Some(Payload::Task(task)) = job.payload() else { panic!("{job:?}") };
    assert_eq!((task.0.memory_mb, task.0.task_guid.as_str()), (64, ""));
    assert_eq!(task.0.env, [Variable::secret("A", "s")]);
    let made = task.task("run-1".into(), "jobs".into());
    assert_eq!(
        (made.task_guid.as_str(), made.domain.as_str(), made.memory_mb),
        ("run-1", "jobs", 64)
    );
    let job = one("workflow: flow.yaml");
    assert_eq!(job.workflow.unwrap().file.as_deref(), Some("flow.yaml"));
    let flow = one("workflow: {text: 'steps: []', params: [a, 5]}").workflow.unwrap();
    assert_eq!((flow.text.as_deref(), flow.params.len()), (Some("steps: []"), 2));
}

#[test]
fn a_pod_spec_is_a_mapping_or_the_text_of_one_and_is_kept_in_one_form() {
    let inline = one("kubernetes: {podSpec: {containers: [{name: a, image: b, tty: true}]}}");
    let Some(Payload::Kubernetes(payload)) = inline.payload() else { panic!("{inline:?}") };
    let spec = serde_json::json!({"containers": [{"name": "a", "image": "b", "tty": true}]});
    assert_eq!(payload.pod_spec, Some(spec));
    let yaml = "kubernetes:\n  pod_spec: |\n    containers:\n    - {name: a, image: b, tty: true}";
    let json = r#"kubernetes: {pod_spec: '{"containers":[{"name":"a","image":"b","tty":true}]}'}"#;
    for text in [yaml, json] {
        assert_eq!(one(text).kubernetes, inline.kubernetes, "{text}");
    }
}

#[test]
fn the_short_form_of_work_on_kubernetes_is_read() {
    let job = one(
        "kubernetes: {cluster: main, namespace: jobs, image: alpine, command: [sh, -c], args: exit 3, \
         env: {A: b}, envFromSecret: db, resources: {limits: {memory: 64Mi}}, serviceAccount: reporter}",
    );
    let payload = job.kubernetes.unwrap();
    assert_eq!((payload.cluster.as_str(), payload.namespace.as_str()), ("main", "jobs"));
    assert_eq!(
        (payload.image.as_deref(), payload.service_account.as_deref()),
        (Some("alpine"), Some("reporter"))
    );
    assert_eq!(
        (payload.command, payload.args),
        (vec!["sh".into(), "-c".into()], vec!["exit 3".into()])
    );
    assert_eq!(payload.env, [Variable::plain("A", "b")]);
    assert_eq!(payload.env_from_secret, ["db"]);
    assert_eq!(payload.resources, Some(serde_json::json!({"limits": {"memory": "64Mi"}})));
}

#[test]
fn a_fault_in_a_pod_spec_is_told_at_its_place() {
    let text = "\
kind: job
job_id: a
kubernetes:
  pod_spec:
    containers:
      - {name: a, image: b, comand: [sh]}
---
kind: job
job_id: b
kubernetes: {pod_spec: 'containers: ['}
";
    let told = problems(text);
    assert_eq!(
        told[0],
        "6:37: kubernetes.pod_spec.containers[0].comand: is no field; did you mean `command`?"
    );
    assert!(told[1].starts_with("10:24: the text of `pod_spec` cannot be read: "), "{told:?}");
}

#[test]
fn single_values_stand_for_lists_and_mappings() {
    assert_eq!(one("schedule: '@hourly'").schedule, ["@hourly"]);
    assert_eq!(one("tags: nightly").tags, ["nightly"]);
    assert_eq!(one("group: db").group, Some(Group { name: "db".into(), limit: 1 }));
    assert_eq!(one("retry: 4").retry.unwrap().max_retries, 4);
    assert_eq!(one("catch_up: none").catch_up.policy, CatchUpPolicy::None);
    assert_eq!(one("exclude: {weekdays: [sat, sun]}").exclude[0].weekdays, ["sat", "sun"]);
    let history = one("history: {failed: 0}").history;
    assert_eq!(history, History { failed: 0, ..History::default() });
}

#[test]
fn parameters_are_a_list_or_a_mapping() {
    let list = one("parameters: [{name: A, default: 1}, {name: B, options: [x, y]}, C]");
    let lines = one("parameters: {A: 1, B: {options: [x, y]}, C: }");
    assert_eq!(list.parameters, lines.parameters);
    let [a, b, c] = lines.parameters.as_slice() else { panic!("{:?}", lines.parameters) };
    assert_eq!((a.name.as_str(), a.default.as_deref()), ("A", Some("1")));
    assert_eq!((b.default.as_deref(), b.options.len(), b.changeable), (None, 2, true));
    assert_eq!((c.name.as_str(), c.default.as_deref()), ("C", None));
}

#[test]
fn keys_may_be_written_in_camel_case() {
    let other = "\
id: a
command: x
timeZone: Europe/Berlin
startingDeadline: 5m
maxConcurrentRuns: 2
suspendNote: why
pauseAfterFailures: 3
retryConfig: {maxRetries: 3, initialDelay: 1s, backoffMultiplier: 3, maxDelay: 1m}
startTimeout: 1m
maxAllowedRunTime: 1h
constraintConfig: [{requirePreviousSuccess: {onViolation: [b]}}]
actionConfig: {b: {log: {message: late}}}
history: {maxAge: 1d}
";
    let ours = "\
job_id: a
command: x
timezone: Europe/Berlin
starting_deadline: 5m
max_concurrent_runs: 2
suspend_note: why
pause_after_failures: 3
retry: {max_retries: 3, initial_delay: 1s, backoff_multiplier: 3, max_delay: 1m}
start_timeout: 1m
max_allowed_run_time: 1h
constraints: [{requirePreviousSuccess: {onViolation: [b]}}]
actions: {b: {log: {message: late}}}
history: {max_age: 1d}
";
    assert_eq!(jobs(&format!("kind: job\n{other}")), jobs(ours));
}

#[test]
fn catch_up_may_be_said_in_every_way_that_agrees() {
    let want = one("catch_up: {policy: all, window: 2h}").catch_up;
    for text in [
        "catchUp: all\ncatchUpWindow: 2h",
        "catch_up: all\ncatch_up_window: 7200",
        "catch_up: all\ncatchUp: {window: 120m}\ncatchUpWindow: 2h",
        "catchUp: {policy: all, window: 2h}\ncatch_up: all",
        "constraints: [{catchUp: all}, {catchUpWindow: {config: 2h}}]",
        "constraints: [{name: catch_up, config: {policy: all, window: 2h}}]",
        "catch_up: all\nconstraints: [{catchUpWindow: {config: {window: 2h}}}, {catchUp: {config: all}}]",
    ] {
        assert_eq!(one(text).catch_up, want, "{text}");
    }
}

#[test]
fn constraints_may_be_fields() {
    for text in [
        "constraints: [{maxConcurrentRuns: 3}, {maxAllowedRunTime: 1h}]",
        "constraints: [{max_concurrent_runs: {config: {limit: '3'}}}, {maxAllowedRunTime: {config: 3600}}]",
        "constraints: [{name: maxConcurrentRuns, config: 3}, {name: maxAllowedRunTime, config: {limit: 1h}, onViolation: [log]}]",
        "maxConcurrentRuns: 3\nmax_allowed_run_time: 60m\nconstraints: [{maxConcurrentRuns: 3}]",
    ] {
        let job = one(text);
        assert_eq!(job.max_concurrent_runs, 3, "{text}");
        assert_eq!(job.max_allowed_run_time, Some(seconds(3_600)), "{text}");
        // It stays and says the same, so what was stored can be applied again.
        let stored = serde_json::to_string(&job).unwrap();
        assert_eq!(read_job(stored.as_bytes()).unwrap(), job);
    }
}

#[test]
fn a_constraint_that_needs_no_config_may_be_its_name_alone() {
    let named = one("constraints: [requirePreviousSuccess, time_window]");
    let whole = one("constraints: [{requirePreviousSuccess: {config: {}}}, {time_window: {}}]");
    let read = |job: &JobDefinition| crate::constraint::read(job).unwrap();
    assert_eq!(read(&named), read(&whole));
    let stored = serde_json::to_string(&named).unwrap();
    assert_eq!(read_job(stored.as_bytes()).unwrap(), named);
}

#[test]
fn a_name_alone_is_refused_with_what_is_missing_where_more_is_needed() {
    let text = "\
kind: job
job_id: a
command: x
constraints:
  - maxExpectedRunTime
  - other_job_scheduled_soon
  - preRunHook
  - maxConcurrentRuns
  - catchUp
  - maxAllowedRunTime
  - requirePreviosSuccess
";
    let want = [
        "5:5: constraints[0].limit: is missing: how long the work may run",
        "6:5: constraints[1].job: is missing: the id of the other job",
        "6:5: constraints[1].within: is missing: how recent or how soon",
        "7:5: constraints[2]: must have exactly one of `url` and `url_secret`",
        "8:5: constraints[3].maxConcurrentRuns: must have a `config`",
        "9:5: constraints[4].catchUp: must have a `config`",
        "10:5: constraints[5].limit: is missing: how long the work may run",
        "11:5: constraints[6]: there is no constraint `requirePreviosSuccess`; did you mean `requirePreviousSuccess`?",
    ];
    assert_eq!(problems(text), want);
}

#[test]
fn contradictions_are_refused_where_they_stand() {
    let text = "\
kind: job
job_id: a
command: x
catch_up: {policy: last, window: 1h}
catchUp: all
catchUpWindow: 2h
max_concurrent_runs: 2
maxConcurrentRuns: 3
max_allowed_run_time: 1h
maxAllowedRunTime: 2h
constraints:
  - maxConcurrentRuns: 5
  - catchUp: {config: none}
  - maxAllowedRunTime: {config: 5m, onViolation: [log]}
  - maxConcurrentRuns: {config: 2, onViolation: [log]}
  - catchUp: {config: never}
  - catchUpWindow: {config: soon}
  - maxConcurrentRuns: {config: {a: 1, b: 2}}
  - maxConcurrentRuns: {}
  - maxConcurrentRuns: 0
  - catchUp: {config: {window: 1h, from: now}}
---
kind: job
job_id: b
command: x
overlap: allow
max_concurrent_runs: 1
---
kind: job
job_id: c
command: x
overlap: allow
constraints: [{maxConcurrentRuns: 4}]
";
    let want = [
        "5:10: catchUp: says all, but `catch_up.policy` says last; leave one of them out",
        "6:16: catchUpWindow: says 2h, but `catch_up.window` says 1h; leave one of them out",
        "8:20: maxConcurrentRuns: says 3, but `max_concurrent_runs` says 2; leave one of them out",
        "10:20: maxAllowedRunTime: says 2h, but `max_allowed_run_time` says 1h; leave one of them out",
        "12:5: constraints[0]: says 5, but `max_concurrent_runs` says 2; leave one of them out",
        "13:5: constraints[1]: says none, but `catch_up.policy` says last; leave one of them out",
        "14:5: constraints[2]: says 5m, but `max_allowed_run_time` says 1h; leave one of them out",
        "15:24: constraints[3].maxConcurrentRuns: takes no actions: `overlap` says what becomes of a run above the limit",
        "16:14: constraints[4].catchUp: must be one of none, last and all, not `never`",
        "17:20: constraints[5].catchUpWindow: must be a duration such as `90s` or `1h30m`, not `soon`",
        "18:24: constraints[6].maxConcurrentRuns: `config` must be the value itself, or `{limit: …}`",
        "19:24: constraints[7].maxConcurrentRuns: must have a `config`",
        "20:24: constraints[8].maxConcurrentRuns: must be a whole number from 1 to 10000, not `0`",
        "21:14: constraints[9].catchUp: `config` must be `{policy: …, window: …}`",
        "26:10: overlap: `allow` is no limit, but `max_concurrent_runs` says 1; leave one of them out",
        "32:10: overlap: `allow` is no limit, but `max_concurrent_runs` says 4; leave one of them out",
    ];
    assert_eq!(problems(text), want);
}

#[test]
fn a_fault_of_a_schedule_is_told_under_the_letters_that_are_meant() {
    let text = "\
job_id: a
command: x
schedule:
  - 61 * * * *
  - \"* 25 * * *\"
  - >-
    * * 32
    * *
";
    let problems = read_all(text.as_bytes()).unwrap_err();
    let spans: Vec<_> =
        problems.iter().map(|it| (it.span.line, it.span.column, it.span.length)).collect();
    assert_eq!(spans, [(4, 5, 2), (5, 8, 2), (7, 5, 1)], "{problems:?}");
    let want = "4:5: schedule[0]: `61` is no minute (write 0 to 59)";
    assert_eq!(problems[0].to_string(), want);
}

#[test]
fn a_request_holds_one_job() {
    let told = |text: &[u8]| {
        read_job(text).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(b""), ["1:1: the request must hold one job"]);
    assert_eq!(told(b"{}\n---\n{}"), ["1:1: the request must hold one job"]);
    assert_eq!(
        told(b"{\"job_id\": \"a b\", \"command\": \"x\"}"),
        ["1:12: job_id: must be 1 to 200 letters, digits, `-` or `_`, not `a b`",]
    );
    assert!(told(b"\xff")[0].contains("not UTF-8"));
    assert!(told(b"{\"a\": ")[0].contains("invalid YAML"));
}

#[test]
fn what_changes_is_named_by_its_fields() {
    let before = one("");
    assert_eq!(differences(&before, &one("timezone: UTC\nmax_concurrent_runs: 1")), [""; 0]);
    let after = one("schedule: '@daily'\ntimezone: Europe/Berlin\nretry: 1\ncommand: y");
    assert_eq!(differences(&before, &after), ["command", "retry", "schedule", "timezone"]);
}

#[test]
fn five_thousand_jobs_of_a_file_are_read() {
    let mut text = String::new();
    for at in 0..5_000 {
        let job = format!("job_id: j-{at}\nschedule: '{} 2 * * *'\ncommand: ./run {at}", at % 60);
        writeln!(text, "---\n{job}\nretry: 3\ntags: [a, b]").unwrap();
    }
    let jobs = jobs(&text);
    assert_eq!((jobs.len(), jobs[4_999].job_id.as_str()), (5_000, "j-4999"));
    // And all that is wrong with as many, as far as anybody reads it.
    let found = problems(&text.replace("retry:", "rety:"));
    assert_eq!(found.len(), 201);
    assert_eq!(found[0], "5:1: unknown key `rety` in the job (did you mean `retry`?)");
    assert_eq!(found[200], "and 4800 more problems");
}

#[test]
fn whatever_json_can_say_is_read() {
    let text =
        "{\"job_id\":\"a\",\n\t\"command\" : {\"command\": \"\\ud83d\\ude00 \\/ \\u00e4 \\t\"}}";
    let job = read_job(text.as_bytes()).unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!(job.command.unwrap().command, "\u{1f600} / \u{e4} \t");
}
