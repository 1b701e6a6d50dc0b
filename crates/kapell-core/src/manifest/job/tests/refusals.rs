//! What is refused, with its place and the words that it is refused in.

use super::problems;

#[test]
fn what_cannot_be_read_is_told_at_its_place() {
    let text = "\
kind: job
job_id: [a]
schedule: {a: b}
jitter: soon
starting_deadline: -5s
overlap: never
max_concurrent_runs: 0
group: {limit: 0}
catch_up: sometimes
exclude: [{date: 12-24}]
suspend: maybe
pause_after_failures: many
command: []
constraints: [[requirePreviousSuccess]]
actions: [log]
retry: {initial_delay: 1s}
tags: [[a]]
parameters: [{default: 1}]
manual: 1
history: {succeeded: -1, max_age: x}
---
kind: job
retry: {max_retries: 1000, backoff_multiplier: 0.5, on: [start], jitter_percent: 101}
command: {args: [a], evn: {}}
parameters: {A: [1], B: {defualt: 1}, [c]: 1}
---
kind: job
job_id: c
retry: {max_retries: 1, backoff_multiplier: nan, max_delay: -1}
command: {command: [a, b], args: [c]}
constraints: {a: b}
parameters: A
---
kind: job
job_id: d
retry: many
command: {command: '', dir: x}
";
    let want = [
        "2:9: `job_id` must be text, not a list (write one value, quoted if it is long)",
        "3:11: `schedule` must be text, not a mapping (write one value, quoted if it is long)",
        "4:9: `jitter`: `soon` is not a duration (write for example `500ms`, `30s`, `1m30s` or `2h`)",
        "5:20: `starting_deadline`: `-5s` is not a duration (write for example `500ms`, `30s`, `1m30s` or `2h`)",
        "6:10: `overlap` cannot be `never` (write one of allow, skip, queue, queue_one, cancel_other, terminate_other)",
        "7:22: `max_concurrent_runs` must be a whole number, not `0` (write a number from 1 to 10000)",
        "8:8: `group` has no `name` (add `name: …`)",
        "8:16: `limit` must be a whole number, not `0` (write a number from 1 to 10000)",
        "9:11: `catch_up` cannot be `sometimes` (write one of none, last, all)",
        "10:12: unknown key `date` in a calendar (did you mean `dates`?)",
        "11:10: `suspend` must be true or false, not `maybe` (write `true` or `false`)",
        "12:23: `pause_after_failures` must be a whole number, not `many` (write a number from 1 to 10000)",
        "13:10: `command` is an empty list (write `[program, argument]`)",
        "14:15: a constraint must be a mapping, not a list (write `NAME: {config: …}`)",
        "15:10: `actions` must be a mapping, not a list (write `NAME: {…}` lines)",
        "16:8: `retry` has no `max_retries` (add `max_retries: …`)",
        "17:8: `tags` must be text, not a list (write one value, quoted if it is long)",
        "18:14: a parameter has no `name` (add `name: …`)",
        "19:9: `manual` must be true or false, not `1` (write `true` or `false`)",
        "20:22: `succeeded` must be a whole number, not `-1` (write a number from 0 to 10000)",
        "20:35: `max_age`: `x` is not a duration (write for example `500ms`, `30s`, `1m30s` or `2h`)",
        "22:1: the job has no `job_id` (add `job_id: …`)",
        "23:22: `max_retries` must be a whole number, not `1000` (write a number from 0 to 100)",
        "23:48: `backoff_multiplier` must be a number, not `0.5` (write a number from 1 to 1000)",
        "23:58: `on` cannot be `start` (write one of launch)",
        "23:82: `jitter_percent` must be a whole number, not `101` (write a number from 0 to 100)",
        "24:10: `command` has no `command` (add `command: …`)",
        "24:22: unknown key `evn` in `command` (did you mean `env`?)",
        "25:17: the default of a parameter must be text, not a list (write one value, quoted if it is long)",
        "25:26: unknown key `defualt` in a parameter (did you mean `default`?)",
        "25:39: the name of a parameter must be text, not a list (write one value, quoted if it is long)",
        "29:45: `backoff_multiplier` must be a number, not `nan` (write a number from 1 to 1000)",
        "29:61: `max_delay`: `-1` is not a duration (write for example `500ms`, `30s`, `1m30s` or `2h`)",
        "30:34: `args` stands beside a `command` with arguments (write all arguments in one of them)",
        "31:14: `constraints` must be a list, not a mapping (write `[a, b]`)",
        "32:13: `parameters` must be a list, not a single value (write `[a, b]`)",
        "36:8: `retry` must be a whole number, not `many` (write a number from 0 to 100)",
        "37:20: `command` is empty (write it, or remove the key)",
    ];
    assert_eq!(problems(text), want);
}

#[test]
fn unknown_keys_are_told_with_what_was_meant() {
    let text = "\
kind: job
job_id: a
job_id: b
maxRetries: 3
shedule: '@daily'
cron: '@daily'
concurrencyPolicy: Forbid
podSpec: {}
image: alpine
env: {A: b}
whatever: 1
command: x
constraints: [{maxExpectedRunTime: {config: 1m, config: 2m}}]
---
job_id: b
timeout: 5m
retry: {max_retry: 1}
task:
  task_guid: x
  domain: d
  completion_callback_url: http://x
  memory: 5
  action: {run: {path: x}}
---
job_id: c
workflow: {path: flow.yaml}
---
job_id: d
schedule: '@daily'
command: x
task: {action: {run: {path: x}}}
workflow: x
---
schedule: '@daily'
task: {}
---
job_id: e
task: run
";
    let want = [
        "3:1: key `job_id` stands twice in the job (remove one of the two)",
        "4:1: unknown key `maxRetries` in the job (it belongs below `retry`)",
        "5:1: unknown key `shedule` in the job (did you mean `schedule`?)",
        "6:1: unknown key `cron` in the job (did you mean `schedule`?)",
        "7:1: unknown key `concurrencyPolicy` in the job (did you mean `overlap`?)",
        "8:1: unknown key `podSpec` in the job (it belongs below `kubernetes`)",
        "9:1: unknown key `image` in the job (write it below `kubernetes`, or as `rootfs` of `task`)",
        "10:1: unknown key `env` in the job (it belongs below `command`, `task` or `kubernetes`)",
        "11:1: unknown key `whatever` in the job (known keys are kind, job_id, name, domain, schedule, timezone, jitter, starting_deadline, overlap, max_concurrent_runs, group, catch_up, catch_up_window, exclude, suspend, suspend_note, pause_after_failures, command, task, workflow, kubernetes, constraints, actions, retry, start_timeout, max_allowed_run_time, tags, parameters, manual, history)",
        "13:49: key `config` stands twice (remove one of the two)",
        "16:1: unknown key `timeout` in the job (did you mean `max_allowed_run_time`?)",
        "17:8: `retry` has no `max_retries` (add `max_retries: …`)",
        "17:9: unknown key `max_retry` in `retry` (did you mean `max_retries`?)",
        "19:3: unknown key `task_guid` in `task` (leave it out: each run has its own)",
        "20:3: unknown key `domain` in `task` (write it beside `task`: it is that of the job)",
        "21:3: unknown key `completion_callback_url` in `task` (leave it out: use the action `webhook` of a constraint)",
        "22:3: unknown key `memory` in `task` (did you mean `memory_mb`?)",
        "26:12: unknown key `path` in `workflow` (known keys are file, text, params)",
        "31:1: the job has both `command` and `task` (leave all but one of them out)",
        "34:1: the job has no `job_id` (add `job_id: …`)",
        "35:7: `task` has no `action` (add `action: …`)",
        "38:7: `task` must be a mapping, not a single value (write `key: value` lines; keys are rootfs, memory_mb, disk_mb, max_pids, cpu_millis, log_rate, placement_tags, env, action, result_file, annotation)",
    ];
    assert_eq!(problems(text), want);
}

#[test]
fn what_may_not_be_is_told_at_its_place() {
    let text = "\
job_id: a b
name: \"two\\nlines\"
domain: a/b
schedule: ['', '@daily']
timezone: ''
jitter: 24h
starting_deadline: 0
group: a b
catch_up: {window: 400d}
exclude: [{name: nothing}]
command:
  command: x
  args: [\"\\0\"]
  env: {KAPELL_RUN_ID: x, A: {secret: a b}}
  dir: relative
  user: ''
  stop_grace: 25h
retry: {max_retries: 1, initial_delay: 10m, on: [launch, launch]}
start_timeout: 0s
max_allowed_run_time: 0
tags: [a, '', a]
parameters:
  - {name: 1A, default: x}
  - {name: KAPELL_X, default: x}
  - {name: A, default: z, options: [x, y, x]}
  - {name: B}
  - {name: B, changeable: false}
history: {max_age: 0}
---
job_id: b
task: {env: {A: b}, action: {serial: {actions: [{run: {path: '', env: {B: c}}}]}}}
parameters: {A: 1, B: 2, C: 3}
---
job_id: c
workflow: {params: [\"\\0\"]}
---
job_id: d
workflow: {file: x, text: y}
---
job_id: e
workflow: ''
";
    let want = [
        "1:9: job_id: must be 1 to 200 letters, digits, `-` or `_`, not `a b`",
        "2:7: name: must be printable text on one line, not `two\\nlines`",
        "3:9: domain: must be 1 to 200 bytes of printable text without `/`, not `a/b`",
        "4:13: schedule[0]: the line is empty (write five fields as in `0 4 * * *`, or leave it out)",
        "5:12: timezone: the time zone `` is not known (write the name of a place as in `Europe/Berlin`, or UTC)",
        "6:9: jitter: must be less than a day, not 1d",
        "7:20: starting_deadline: must be more than 0, or it leaves no time at all",
        "8:8: group.name: must be 1 to 200 letters, digits, `-` or `_`, not `a b`",
        "9:20: catch_up.window: must be at most 366d, not 400d",
        "10:11: exclude[0]: the calendar excludes nothing (write `dates`, `weekdays` or `hours`, or leave it out)",
        "13:10: command.args[0]: must not contain a NUL byte",
        "14:8: command.env[0].name: `KAPELL_RUN_ID` is set by Kapell for every run; use another name",
        "14:39: command.env[1].secret: must be 1 to 200 letters, digits, `-` or `_`, not `a b`",
        "15:8: command.dir: must be an absolute path, not `relative`",
        "16:9: command.user: must not be empty",
        "17:15: command.stop_grace: must be at most 1d, not 1d1h",
        "18:40: retry.initial_delay: must be at most `max_delay`, which is 5m, not 10m",
        "18:58: retry.on[1]: stands there twice",
        "19:16: start_timeout: must be more than 0, or it leaves no time at all",
        "20:23: max_allowed_run_time: must be more than 0, or it leaves no time at all",
        "21:11: tags[1]: must not be empty",
        "21:15: tags[2]: `a` stands there twice",
        "23:12: parameters[0].name: must be 1 to 100 letters, digits or `_`, not beginning with a digit, not `1A`",
        "24:12: parameters[1].name: `KAPELL_X` begins with `KAPELL_`, which is for what Kapell sets; use another name",
        "25:12: parameters[2].name: `A` is set by `env` too; leave one of them out",
        "25:24: parameters[2].default: must be one of `x`, `y`, `x`, not `z`",
        "25:43: parameters[2].options[2]: `x` stands there twice",
        "26:5: parameters[3].default: must be there: a run by the schedule is given no values",
        "27:5: parameters[4].default: must be there: nobody may change it",
        "27:12: parameters[4].name: `B` stands there twice",
        "28:20: history.max_age: must be more than 0, or it leaves no time at all",
        "31:62: task.action.serial.actions[0].run.path: must not be empty",
        "32:14: parameters[0].name: `A` is set by `env` too; leave one of them out",
        "32:20: parameters[1].name: `B` is set by `env` too; leave one of them out",
        "35:11: workflow: must have exactly one of `file` and `text`",
        "35:21: workflow.params[0]: must not contain a NUL byte",
        "38:11: workflow: must have exactly one of `file` and `text`",
        "41:11: workflow.file: must not be empty",
    ];
    assert_eq!(problems(text), want);
}
