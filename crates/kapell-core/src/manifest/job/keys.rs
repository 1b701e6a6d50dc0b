//! The keys of a job, how they may be spelt, and what may stand under each.

use crate::job::validate::{MOST_KEPT, MOST_RETRIES, MOST_RUNS};
use crate::manifest::shape::Keys;
use crate::workflow::reader::Spelling;

pub(super) const JOB: Keys = &[
    "kind",
    "job_id",
    "name",
    "domain",
    "schedule",
    "timezone",
    "jitter",
    "starting_deadline",
    "overlap",
    "max_concurrent_runs",
    "group",
    "catch_up",
    "catch_up_window",
    "exclude",
    "suspend",
    "suspend_note",
    "pause_after_failures",
    "command",
    "task",
    "workflow",
    "kubernetes",
    "constraints",
    "actions",
    "retry",
    "start_timeout",
    "max_allowed_run_time",
    "tags",
    "parameters",
    "manual",
    "history",
];
pub(super) const WORK: Keys = &["command", "task", "workflow", "kubernetes"];
pub(super) const GROUP: Keys = &["name", "limit"];
pub(super) const CATCH_UP: Keys = &["policy", "window"];
pub(super) const CALENDAR: Keys = &["name", "dates", "weekdays", "hours"];
pub(super) const COMMAND: Keys = &["command", "args", "env", "dir", "user", "stop_grace"];
pub(super) const WORKFLOW: Keys = &["file", "text", "params"];
/// Those of a step of a workflow that runs on a cluster.
pub(crate) const ON_KUBERNETES: Keys = &[
    "cluster",
    "namespace",
    "pod_spec",
    "image",
    "command",
    "args",
    "env",
    "env_from_secret",
    "resources",
    "service_account",
    "start_timeout",
];
/// A job has its start timeout beside them.
pub(super) const KUBERNETES: Keys = match ON_KUBERNETES {
    [of_both @ .., _start_timeout] => of_both,
    [] => &[],
};
pub(super) const RETRY: Keys =
    &["max_retries", "initial_delay", "backoff_multiplier", "max_delay", "jitter_percent", "on"];
pub(super) const PARAMETER: Keys = &["name", "default", "options", "changeable", "about"];
pub(super) const PARAMETER_VALUE: Keys = &["default", "options", "changeable", "about"];
pub(super) const HISTORY: Keys = &["succeeded", "failed", "skipped", "max_age"];
/// Those of a task that are not its run's to give.
pub(super) const TASK: Keys = &[
    "rootfs",
    "memory_mb",
    "disk_mb",
    "max_pids",
    "cpu_millis",
    "log_rate",
    "placement_tags",
    "env",
    "action",
    "result_file",
    "annotation",
];

pub(super) const OF_A_JOB: Spelling = Spelling { key: job_key, instead: instead_in_job };
pub(super) const OF_A_PART: Spelling = Spelling { key: part_key, instead: nothing_instead };
pub(super) const OF_A_TASK: Spelling = Spelling { key: exact_key, instead: instead_in_task };

/// These may stand beside what they are another spelling of, if both say the same.
const APART: Keys = &["maxConcurrentRuns", "catchUp", "catchUpWindow", "maxAllowedRunTime"];

const ALIASES: [(&str, &str); 5] = [
    ("id", "job_id"),
    ("time_zone", "timezone"),
    ("constraint_config", "constraints"),
    ("action_config", "actions"),
    ("retry_config", "retry"),
];

/// What other tools call our keys.
const ELSEWHERE: [(&str, &str); 12] = [
    ("cron", "schedule"),
    ("schedules", "schedule"),
    ("concurrency_policy", "overlap"),
    ("concurrency", "max_concurrent_runs"),
    ("parallelism", "max_concurrent_runs"),
    ("starting_deadline_seconds", "starting_deadline"),
    ("active_deadline_seconds", "max_allowed_run_time"),
    ("timeout", "max_allowed_run_time"),
    ("backoff_limit", "retry"),
    ("params", "parameters"),
    ("paused", "suspend"),
    ("labels", "tags"),
];

fn exact_key(word: &str, known: &[&'static str]) -> Option<&'static str> {
    known.iter().find(|&&name| name == word).copied()
}

fn part_key(word: &str, known: &[&'static str]) -> Option<&'static str> {
    exact_key(word, known).or_else(|| exact_key(&snake(word), known))
}

fn job_key(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let alias = |word: &str| ALIASES.iter().find(|(other, _)| *other == word).map(|&(_, it)| it);
    exact_key(word, APART).or_else(|| part_key(word, known)).or_else(|| alias(&snake(word)))
}

fn nothing_instead(_: &str, _: &[&'static str]) -> Option<String> {
    None
}

fn instead_in_job(word: &str, _: &[&'static str]) -> Option<String> {
    let word = &*snake(word);
    let text = match word {
        "pod_spec" | "service_account" | "env_from_secret" | "resources" | "namespace" => {
            "it belongs below `kubernetes`"
        }
        "image" => "write it below `kubernetes`, or as `rootfs` of `task`",
        "args" | "env" => "it belongs below `command`, `task` or `kubernetes`",
        "dir" | "user" => "it belongs below `command` or `task`",
        "action" => "it belongs below `task`",
        "max_retries" | "initial_delay" | "backoff_multiplier" | "max_delay" => {
            "it belongs below `retry`"
        }
        "steps" => "it belongs into the file or the text of `workflow`",
        _ => {
            let (_, ours) = ELSEWHERE.iter().find(|(other, _)| *other == word)?;
            return Some(format!("did you mean `{ours}`?"));
        }
    };
    Some(text.to_owned())
}

fn instead_in_task(word: &str, _: &[&'static str]) -> Option<String> {
    let text = match word {
        "task_guid" => "leave it out: each run has its own",
        "domain" => "write it beside `task`: it is that of the job",
        "completion_callback_url" => "leave it out: use the action `webhook` of a constraint",
        _ => return None,
    };
    Some(text.to_owned())
}

/// `catchUpWindow` as `catch_up_window`.
fn snake(word: &str) -> String {
    let mut snake = String::with_capacity(word.len() + 4);
    let mut goes_on = false;
    for letter in word.chars() {
        // Of `ID` only the first letter begins a word.
        if letter.is_ascii_uppercase() && goes_on {
            snake.push('_');
        }
        goes_on = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// What may stand under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// One text, or a list of them.
    Texts,
    /// A list of texts.
    List,
    Whole {
        least: u32,
        most: u32,
    },
    Length,
    Truth,
    Multiplier,
    Overlap,
    Policy,
    RetryOn,
    Env,
    Group,
    CatchUp,
    Calendars,
    /// What a command is made of, in one text or a list of words.
    Words,
    Command,
    Task,
    Workflow,
    Kubernetes,
    /// A mapping, or the text of one.
    PodSpec,
    /// Whatever stands there.
    Free,
    Constraints,
    Actions,
    Retry,
    Parameters,
    History,
    /// It may stand there and says nothing that is not known.
    Ignored,
}

/// What may stand under a key of a job or, with `within`, of a part of it.
pub(super) fn form(key: &str, path: &str) -> Form {
    let within = path.contains('.');
    match key {
        "command" | "args" | "env_from_secret" if path.starts_with("kubernetes.") => Form::Texts,
        "pod_spec" => Form::PodSpec,
        "resources" => Form::Free,
        "kubernetes" => Form::Kubernetes,
        "kind" => Form::Ignored,
        "schedule" | "tags" | "dates" | "weekdays" | "options" => Form::Texts,
        "args" | "params" => Form::List,
        "max_concurrent_runs" | "maxConcurrentRuns" | "pause_after_failures" | "limit" => {
            Form::Whole { least: 1, most: MOST_RUNS }
        }
        "succeeded" | "failed" | "skipped" => Form::Whole { least: 0, most: MOST_KEPT },
        "max_retries" => Form::Whole { least: 0, most: MOST_RETRIES },
        "jitter_percent" => Form::Whole { least: 0, most: 100 },
        "jitter"
        | "starting_deadline"
        | "catch_up_window"
        | "catchUpWindow"
        | "start_timeout"
        | "max_allowed_run_time"
        | "maxAllowedRunTime"
        | "window"
        | "initial_delay"
        | "max_delay"
        | "max_age"
        | "stop_grace" => Form::Length,
        "suspend" | "manual" | "changeable" => Form::Truth,
        "backoff_multiplier" => Form::Multiplier,
        "overlap" => Form::Overlap,
        "policy" => Form::Policy,
        "on" => Form::RetryOn,
        "env" => Form::Env,
        "group" => Form::Group,
        "catch_up" | "catchUp" => Form::CatchUp,
        "exclude" => Form::Calendars,
        "command" if within => Form::Words,
        "command" => Form::Command,
        "task" => Form::Task,
        "workflow" => Form::Workflow,
        "constraints" => Form::Constraints,
        "actions" => Form::Actions,
        "retry" => Form::Retry,
        "parameters" => Form::Parameters,
        "history" => Form::History,
        _ => Form::Text,
    }
}
