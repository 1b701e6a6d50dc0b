//! Whatever a definition is, it reads back as it was written.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::board::Variable;
use crate::job::{
    Calendar, CatchUp, CatchUpPolicy, Command, Group, History, JobDefinition, Length, Multiplier,
    Overlap, Parameter, Retry, RetryOn, TaskPayload, WorkflowPayload, validate,
};
use crate::manifest;

fn length() -> impl Strategy<Value = Length> {
    (1..10_000_000_u64).prop_map(|millis| Length::new(Duration::from_millis(millis)))
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec("[ -~äß]{0,12}", 0..4)
}

fn env() -> impl Strategy<Value = Vec<Variable>> {
    let value = prop_oneof![
        "[ -~]{0,8}".prop_map(|value| Variable::plain("PLAIN", value)),
        "[a-z]{1,8}".prop_map(|name| Variable::secret("SECRET", name)),
    ];
    vec(value, 0..2)
}

fn command() -> impl Strategy<Value = Command> {
    ("[a-z][ -~]{0,20}", of(texts()), env(), of("/[a-z]{0,5}"), of("[a-z]{1,8}"), of(length()))
        .prop_map(|(command, args, env, dir, user, stop_grace)| Command {
            command,
            args,
            env,
            dir,
            user,
            stop_grace,
        })
}

fn work()
-> impl Strategy<Value = (Option<Command>, Option<Box<TaskPayload>>, Option<WorkflowPayload>)> {
    let task = (0..9_u32, env(), "[a-z]{1,9}").prop_map(|(memory_mb, env, path)| {
        let task = json!({"memory_mb": memory_mb, "env": env, "action": {"run": {"path": path}}});
        Some(Box::new(serde_json::from_value(task).unwrap()))
    });
    let workflow = ("[a-z]{1,9}", any::<bool>(), texts()).prop_map(|(text, is_file, params)| {
        let (file, text) = if is_file { (Some(text), None) } else { (None, Some(text)) };
        Some(WorkflowPayload { file, text, params })
    });
    prop_oneof![
        command().prop_map(|command| (Some(command), None, None)),
        task.prop_map(|task| (None, task, None)),
        workflow.prop_map(|workflow| (None, None, workflow)),
    ]
}

fn retry() -> impl Strategy<Value = Retry> {
    (0..=100_u32, length(), 1.0..1_000.0_f64, length(), 0..=100_u8, any::<bool>()).prop_map(
        |(max_retries, one, multiplier, other, jitter_percent, launch)| Retry {
            max_retries,
            initial_delay: one.min(other),
            backoff_multiplier: Multiplier(multiplier),
            max_delay: one.max(other),
            jitter_percent,
            on: if launch { vec![RetryOn::Launch] } else { Vec::new() },
        },
    )
}

fn parameter() -> impl Strategy<Value = Parameter> {
    ("[A-J][A-Z0-9_]{0,6}", texts(), "[ -~]{0,9}", any::<bool>(), "[ -~\n]{0,9}").prop_map(
        |(name, mut options, default, changeable, about)| {
            options.sort();
            options.dedup();
            let default = options.first().cloned().unwrap_or(default);
            Parameter { name, default: Some(default), options, changeable, about }
        },
    )
}

fn calendar() -> impl Strategy<Value = Calendar> {
    let dates = vec(select(vec!["12-24", "2026-12-24..2027-01-02"]).prop_map(str::to_owned), 0..3);
    let weekdays = vec(select(vec!["sat", "sunday"]).prop_map(str::to_owned), 0..3);
    ("[a-z]{0,5}", dates, weekdays).prop_map(|(name, dates, weekdays)| Calendar {
        name,
        dates,
        weekdays,
        hours: Some("22:00-06:00".to_owned()),
    })
}

prop_compose! {
    fn when()(
        schedule in vec(select(vec!["0 4 * * *", "@hourly", "H H * * 1-5", "*/10 * * * * *", "@every 90s"]).prop_map(str::to_owned), 0..3),
        timezone in select(vec!["UTC", "Europe/Berlin", "Australia/Lord_Howe"]).prop_map(str::to_owned),
        jitter in of(length()),
        more in of(length()),
        exclude in vec(calendar(), 0..3),
        policy in select(CatchUpPolicy::ALL.to_vec()),
        window in length(),
    ) -> JobDefinition {
        let mut job: JobDefinition = serde_json::from_value(json!({"job_id": "a"})).unwrap();
        (job.schedule, job.timezone, job.jitter) = (schedule, timezone, jitter);
        let least = jitter.unwrap_or_default().get();
        job.starting_deadline = more.map(|more| Length::new(more.get() + least));
        (job.exclude, job.catch_up) = (exclude, CatchUp { policy, window });
        job
    }
}

prop_compose! {
    fn definition()(
        job in when(),
        (command, task, workflow) in work(),
        (retry, group) in (of(retry()), of(("[a-z]{1,9}", 1..9_u32))),
        (overlap, runs) in (select(Overlap::ALL.to_vec()), 1..9_u32),
        parameters in vec(parameter(), 0..4),
        (flags, failures) in (any::<(bool, bool)>(), of(1..9_u32)),
        (kept, max_age) in ((0..99_u32, 0..99_u32, 0..99_u32), of(length())),
        (start, run_time) in (of(length()), of(length())),
        constrained in any::<bool>(),
    ) -> JobDefinition {
        let mut parameters = parameters;
        parameters.sort_by(|one, other| one.name.cmp(&other.name));
        parameters.dedup_by(|one, other| one.name == other.name);
        let constraints = if constrained {
            vec![json!({"time_window": {"config": {"start": "22:00", "end": "06:00", "days": ["mon", "fri"]}}})]
        } else {
            Vec::new()
        };
        JobDefinition {
            command, task, workflow, retry, overlap, parameters, constraints,
            name: "n".repeat(flags.0.into()),
            group: group.map(|(name, limit)| Group { name: name.into(), limit }),
            max_concurrent_runs: if overlap == Overlap::Allow { 1 } else { runs },
            suspend: flags.0,
            manual: flags.1,
            pause_after_failures: failures,
            history: History { succeeded: kept.0, failed: kept.1, skipped: kept.2, max_age },
            start_timeout: start,
            max_allowed_run_time: run_time,
            ..job
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_definition_reads_back_as_it_was_written(job in definition()) {
        let written = serde_json::to_string(&job).unwrap();
        prop_assert_eq!(&serde_json::from_str::<JobDefinition>(&written).unwrap(), &job);
        prop_assert_eq!(validate::job(&job), Vec::<String>::new());
        // As a request, and as a file, which are read by another reader.
        let read = manifest::read_job(written.as_bytes());
        prop_assert_eq!(read.as_ref(), Ok(&job));
        let pretty = serde_json::to_string_pretty(&job).unwrap();
        prop_assert_eq!(manifest::read_job(pretty.as_bytes()), read);
    }
}
