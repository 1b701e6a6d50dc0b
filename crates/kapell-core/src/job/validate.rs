//! What a job may be. All problems of a definition are told at once, each with its field.

mod parameters;
mod work;

use std::collections::BTreeSet;
use std::time::Duration;

use super::definition::{Calendar, CatchUpPolicy, JobDefinition, Overlap, Retry};
use super::faults::{constraint_faults, schedule_faults};
use super::length::Length;
use super::lift;
use crate::board::validate::{self, quoted, written};

/// The largest definition, as it is written, in bytes.
pub const LARGEST: usize = 64 * 1024;
/// How many runs of a job or a group there may be at once, and how many failures in a row there may have to be.
pub const MOST_RUNS: u32 = 10_000;
pub const MOST_RETRIES: u32 = 100;
pub const LARGEST_MULTIPLIER: f64 = 1_000.0;
/// How many ended runs of either kind are kept.
pub const MOST_KEPT: u32 = 10_000;

const LONGEST_NAME: usize = 200;
const LONGEST_TEXT: usize = 1_000;
const MOST_LINES: usize = 32;
const MOST_CALENDARS: usize = 32;
const MOST_DATES: usize = 1_000;
const MOST_TAGS: usize = 64;
const A_DAY: Length = Length::new(Duration::from_secs(86_400));
const A_YEAR: Length = Length::new(Duration::from_secs(366 * 86_400));

/// Everything that is wrong with a job; nothing if it may be applied.
pub fn job(job: &JobDefinition) -> Vec<String> {
    let mut texts = fields(job);
    let elsewhere = schedule_faults(job).into_iter().chain(constraint_faults(job));
    texts.extend(elsewhere.map(|fault| fault.to_string()));
    texts
}

/// The same, without what a schedule and constraints mean.
pub(crate) fn fields(job: &JobDefinition) -> Vec<String> {
    let mut found = Found::default();
    found.names(job);
    found.when(job);
    found.how_many(job);
    if let Some(retry) = &job.retry {
        found.retry(retry);
    }
    found.work(job);
    found.texts.extend(lift::left(job));
    found.parameters(job);
    let bytes = written(job);
    if bytes > LARGEST {
        let most = LARGEST / 1024;
        found.add("the whole job", format!("must be at most {most} KiB, not {bytes} bytes"));
    }
    found.texts
}

#[derive(Debug, Default)]
struct Found {
    texts: Vec<String>,
}

impl Found {
    fn add(&mut self, field: &str, text: impl AsRef<str>) {
        self.texts.push(format!("{field}: {}", text.as_ref()));
    }

    fn names(&mut self, job: &JobDefinition) {
        self.id("job_id", job.job_id.as_str(), job.job_id.is_valid());
        self.printable("name", &job.name, LONGEST_NAME);
        self.texts.extend(validate::domain(&job.domain));
        self.printable("suspend_note", &job.suspend_note, LONGEST_TEXT);
        self.count("tags", job.tags.len(), MOST_TAGS);
        for (at, tag) in job.tags.iter().enumerate() {
            let field = format!("tags[{at}]");
            self.needed(&field, tag);
            self.printable(&field, tag, LONGEST_NAME);
        }
        self.unique("tags", &job.tags);
    }

    fn when(&mut self, job: &JobDefinition) {
        self.count("schedule", job.schedule.len(), MOST_LINES);
        for (at, line) in job.schedule.iter().enumerate() {
            let field = format!("schedule[{at}]");
            self.printable(&field, line, LONGEST_NAME);
        }
        self.printable("timezone", &job.timezone, LONGEST_NAME);
        if let Some(jitter) = job.jitter.filter(|jitter| *jitter >= A_DAY) {
            self.add("jitter", format!("must be less than a day, not {jitter}"));
        }
        self.limit("starting_deadline", job.starting_deadline, Length::MAX);
        if let (Some(deadline), Some(jitter)) = (job.starting_deadline, job.jitter)
            && deadline < jitter
            && !deadline.get().is_zero()
        {
            let text = format!("must be at least `jitter`, which is {jitter}, not {deadline}");
            self.add("starting_deadline", format!("{text}: what is put off would be too late"));
        }
        let catch_up = job.catch_up;
        if catch_up.policy != CatchUpPolicy::None {
            self.limit("catch_up.window", Some(catch_up.window), A_YEAR);
        }
        self.count("exclude", job.exclude.len(), MOST_CALENDARS);
        for (at, calendar) in job.exclude.iter().enumerate() {
            self.calendar(&format!("exclude[{at}]"), calendar);
        }
    }

    fn calendar(&mut self, field: &str, calendar: &Calendar) {
        let Calendar { name, dates, weekdays, hours } = calendar;
        self.printable(&format!("{field}.name"), name, LONGEST_NAME);
        for (part, texts) in [("dates", dates), ("weekdays", weekdays)] {
            self.count(&format!("{field}.{part}"), texts.len(), MOST_DATES);
            for (at, text) in texts.iter().enumerate() {
                self.printable(&format!("{field}.{part}[{at}]"), text, LONGEST_NAME);
            }
        }
        if let Some(hours) = hours {
            self.printable(&format!("{field}.hours"), hours, LONGEST_NAME);
        }
    }

    fn how_many(&mut self, job: &JobDefinition) {
        self.between("max_concurrent_runs", job.max_concurrent_runs, 1, MOST_RUNS);
        if job.overlap == Overlap::Allow && job.max_concurrent_runs != 1 {
            self.add("overlap", lift::no_limit(job.max_concurrent_runs));
        }
        if let Some(group) = &job.group {
            self.id("group.name", group.name.as_str(), group.name.is_valid());
            self.between("group.limit", group.limit, 1, MOST_RUNS);
        }
        if let Some(failures) = job.pause_after_failures {
            self.between("pause_after_failures", failures, 1, MOST_RUNS);
        }
        self.limit("start_timeout", job.start_timeout, Length::MAX);
        self.limit("max_allowed_run_time", job.max_allowed_run_time, Length::MAX);
        self.between("history.succeeded", job.history.succeeded, 0, MOST_KEPT);
        self.between("history.failed", job.history.failed, 0, MOST_KEPT);
        self.between("history.skipped", job.history.skipped, 0, MOST_KEPT);
        self.limit("history.max_age", job.history.max_age, Length::MAX);
    }

    fn retry(&mut self, retry: &Retry) {
        self.between("retry.max_retries", retry.max_retries, 0, MOST_RETRIES);
        let multiplier = retry.backoff_multiplier.0;
        if !(1.0..=LARGEST_MULTIPLIER).contains(&multiplier) {
            let right = format!("must be a number from 1 to {LARGEST_MULTIPLIER}");
            self.add("retry.backoff_multiplier", format!("{right}, not {multiplier}"));
        }
        if retry.initial_delay > retry.max_delay {
            let (initial, most) = (retry.initial_delay, retry.max_delay);
            let text = format!("must be at most `max_delay`, which is {most}, not {initial}");
            self.add("retry.initial_delay", text);
        }
        self.between("retry.jitter_percent", u32::from(retry.jitter_percent), 0, 100);
        for (at, on) in retry.on.iter().enumerate() {
            if retry.on[..at].contains(on) {
                self.add(&format!("retry.on[{at}]"), "stands there twice");
            }
        }
    }

    fn id(&mut self, field: &str, text: &str, valid: bool) {
        if !valid {
            let right = "must be 1 to 200 letters, digits, `-` or `_`";
            self.add(field, format!("{right}, not {}", quoted(text)));
        }
    }

    fn needed(&mut self, field: &str, text: &str) {
        if text.trim().is_empty() {
            self.add(field, "must not be empty");
        }
    }

    fn no_nul(&mut self, field: &str, text: &str) {
        if text.contains('\0') {
            self.add(field, "must not contain a NUL byte");
        }
    }

    /// What people read, on one line.
    fn printable(&mut self, field: &str, text: &str, most: usize) {
        if text.contains(char::is_control) {
            self.add(field, format!("must be printable text on one line, not {}", quoted(text)));
        }
        self.bytes(field, text, most);
    }

    fn bytes(&mut self, field: &str, text: &str, most: usize) {
        if text.len() > most {
            self.add(field, format!("must be at most {most} bytes, not {}", text.len()));
        }
    }

    fn count(&mut self, field: &str, count: usize, most: usize) {
        if count > most {
            self.add(field, format!("must hold at most {most}, not {count}"));
        }
    }

    fn between(&mut self, field: &str, number: u32, least: u32, most: u32) {
        if !(least..=most).contains(&number) {
            self.add(field, format!("must be {least} to {most}, not {number}"));
        }
    }

    /// A time that something may take, so not none at all.
    fn limit(&mut self, field: &str, limit: Option<Length>, most: Length) {
        match limit {
            Some(limit) if limit.get().is_zero() => {
                self.add(field, "must be more than 0, or it leaves no time at all");
            }
            Some(limit) if limit > most => {
                self.add(field, format!("must be at most {most}, not {limit}"));
            }
            Some(_) | None => {}
        }
    }

    fn unique(&mut self, field: &str, texts: &[String]) {
        let mut seen = BTreeSet::new();
        for (at, text) in texts.iter().enumerate() {
            if !seen.insert(text) {
                self.add(&format!("{field}[{at}]"), format!("{} stands there twice", quoted(text)));
            }
        }
    }
}
