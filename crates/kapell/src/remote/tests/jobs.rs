use std::fs;

use kapell_api::v1::{JobView, NextMoment, NextMoments, RunBrief, RunView};
use kapell_core::job::simulate::simulate;
use kapell_core::job::{Job, JobDefinition, Pause, PauseCause, when};
use kapell_core::manifest::{Document, read, read_job};
use kapell_core::run::{Entry, Noted, Run, RunId, RunState, Trigger};
use kapell_core::schedule::Schedule;
use kapell_core::schedule::crontab::{Columns, read as read_crontab};
use kapell_core::seams::Timestamp;

use super::super::apply::{Step, compare_job};
use super::super::files::{Source, complaints};
use super::super::show::Text;
use super::super::wait::{Progress, judge_run};
use super::super::{job, job_import, job_times, run, run_wait, workflow_files, yaml};
use crate::logger::Style;

/// 2026-11-16 12:00 in UTC.
const NOW: Timestamp = Timestamp(1_794_830_400_000);
const HOUR: i64 = 3_600_000;

fn definition(more: &str) -> JobDefinition {
    let text = format!(
        r#"{{"job_id":"nightly","domain":"d","schedule":"30 2 * * *","timezone":"Europe/Berlin","command":"backup"{more}}}"#
    );
    read_job(text.as_bytes()).unwrap()
}

fn view(definition: JobDefinition) -> JobView {
    let job = Job {
        job_id: definition.job_id.clone(),
        domain: definition.domain.clone(),
        revision: 3,
        revised: Vec::new(),
        mark: NOW,
        again: None,
        paused: None,
        failures_in_a_row: 0,
        skip_next: 0,
        skips: Vec::new(),
        taken: Vec::new(),
        figures: std::collections::BTreeMap::new(),
        removed: false,
        cancels_runs: false,
        passed: Vec::new(),
        created_at: NOW,
        updated_at: Timestamp(NOW.0 - HOUR),
        version: 1,
    };
    let next_at = Some(Timestamp(NOW.0 + 13 * HOUR + HOUR / 2));
    JobView { job, definition, next_at, active_runs: 0, last_run: None }
}

fn ran(id: &str, state: RunState) -> RunView {
    let mut run = Run::unreadable(RunId::parse(id).unwrap());
    run.state = state;
    run.reason = String::new();
    run.completed_at = state.is_final().then_some(Timestamp(NOW.0 - HOUR + 5_000));
    let at = Timestamp(NOW.0 - HOUR);
    (run.scheduled_at, run.due_at, run.created_at) = (at, at, at);
    RunView { job_id: run.run_id.job_id(), run, timezone: "Europe/Berlin".to_owned(), live: None }
}

fn shown(text: Text) -> String {
    let style = Style { colour: false };
    match text {
        Text::Table(table) => table.render(None, style),
        Text::Page(page, table) => page + &table.render(None, style),
    }
}

#[test]
fn jobs_are_listed_with_their_next_and_last_runs() {
    let mut paused = view(definition(""));
    paused.job.job_id = "paused".into();
    let cause = PauseCause::Person { who: "ann".to_owned() };
    paused.job.paused = Some(Pause { at: NOW, cause, note: String::new() });
    paused.next_at = None;
    let mut on = view(definition(""));
    let mut last = ran("nightly:1", RunState::Failed).run;
    last.started_at = Some(Timestamp(NOW.0 - HOUR));
    on.last_run = Some(RunBrief::of(&last));
    on.active_runs = 2;
    let want = "\
JOB      STATE   SCHEDULE    NEXT       LAST        LAST STATE  ACTIVE  DOMAIN
nightly  on      30 2 * * *  in 13h30m  1h00m ago   Failed      2       d
paused   paused  30 2 * * *  -          -           -           0       d
";
    let table = job::list(&[on, paused], NOW).render(None, Style { colour: false });
    let words = |text: &str| {
        let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(line).collect::<Vec<_>>()
    };
    assert_eq!(words(&table), words(want));
    assert_eq!(job::list(&[], NOW).render(None, Style { colour: false }), "no jobs\n");
}

#[test]
fn a_job_is_shown_with_its_times_in_its_zone() {
    let mut one =
        view(definition(r#","tags":["db"],"parameters":[{"name":"SIZE","default":"s"}]"#));
    let cause = PauseCause::Failures { run_id: RunId::parse("nightly:1").unwrap() };
    one.job.paused =
        Some(Pause { at: Timestamp(NOW.0 - HOUR), cause, note: "see \u{1b}[31m".into() });
    let want = "\
job        nightly
domain     d
state      paused
paused     after nightly:1 failed, 2026-11-16 12:00:00 CET, 1h00m ago: see ?[31m
schedule   30 2 * * * (Europe/Berlin)
next       2026-11-17 02:30:00 CET, in 13h30m
does       backup
overlap    skip, at most 1 at once
tags       db
parameters SIZE=s
revision   3
changed    2026-11-16 12:00:00 CET, 1h00m ago
it has not run yet
";
    let got = shown(job::page(&one, &[], NOW));
    let clean = crate::logger::style::clean("see \u{1b}[31m").into_owned();
    assert_eq!(got, want.replace("see ?[31m", &clean));
}

#[test]
fn a_run_is_shown_with_every_decision_about_it() {
    let mut one = ran("nightly:1", RunState::Failed);
    one.run.reason = "exit code 3".to_owned();
    one.run.exit_code = Some(3);
    one.run.started_at = Some(Timestamp(NOW.0 - HOUR + 1_000));
    one.run.trigger = Trigger::Manual { who: "ann".into() };
    one.run.parameters.insert("SIZE".to_owned(), "large".to_owned());
    let at = Timestamp(NOW.0 - HOUR);
    let noted = Noted::State { to: RunState::Pending, why: "its time has come".into() };
    one.run.timeline.push(Entry { at, attempt: 0, noted });
    let noted = Noted::Constraint { name: "time_window".into(), met: true, message: String::new() };
    one.run.timeline.push(Entry { at, attempt: 0, noted });
    let want = "\
run        nightly:1
job        nightly, revision 0
state      Failed
why        exit code 3
trigger    ann, by hand
scheduled  2026-11-16 12:00:00 CET, 1h00m ago
started    2026-11-16 12:00:01 CET, 59m59s ago
ended      2026-11-16 12:00:05 CET, 59m55s ago
took       4s
exit code  3
parameter  SIZE=large
AT                       TRY  WHAT                    WHY
2026-11-16 12:00:00 CET  0    Pending                 its time has come
2026-11-16 12:00:00 CET  0    constraint time_window  met
";
    assert_eq!(shown(run::page(&one, NOW)), want);
}

#[test]
fn the_outcome_of_a_run_is_the_exit_code() {
    let code = |state, exit_code| {
        let mut run = ran("nightly:1", state).run;
        run.exit_code = exit_code;
        run_wait::conclude(&run)
    };
    assert_eq!(code(RunState::Completed, Some(0)), 0);
    assert_eq!(code(RunState::Failed, Some(3)), 3);
    assert_eq!(code(RunState::Failed, Some(0)), 1);
    assert_eq!(code(RunState::Failed, None), 1);
    assert_eq!(code(RunState::Failed, Some(256)), 1);
    assert_eq!(code(RunState::Cancelled, None), 1);
    assert_eq!(code(RunState::Orphaned, Some(7)), 1);
    let judged = |state| judge_run(&ran("nightly:1", state).run);
    assert_eq!(judged(RunState::Completed), Progress::Done);
    assert_eq!(judged(RunState::Failed), Progress::Failed("run nightly:1 is Failed".to_owned()));
    assert_eq!(judged(RunState::Running), Progress::Waiting("run nightly:1 is Running".to_owned()));
}

#[test]
fn moments_are_shown_with_what_calendars_and_clocks_do_to_them() {
    let next = NextMoments {
        timezone: "Europe/Berlin".to_owned(),
        hold: None,
        moments: vec![
            NextMoment {
                at: NOW,
                due_at: Timestamp(NOW.0 + 9_000),
                excluded: None,
                clock_change: None,
            },
            NextMoment {
                at: Timestamp(NOW.0 + HOUR),
                due_at: Timestamp(NOW.0 + HOUR),
                excluded: Some("holidays".to_owned()),
                clock_change: Some("odd".to_owned()),
            },
        ],
    };
    let want = "\
MOMENT                   IN        BEGINS                   NOTE
2026-11-16 13:00:00 CET  0s ago    2026-11-16 13:00:09 CET
2026-11-16 14:00:00 CET  in 1h00m  -                        does not run: excluded by holidays; odd
";
    assert_eq!(job_times::table(&next, NOW).render(None, Style { colour: false }), want);
}

#[test]
fn a_simulation_marks_clock_changes() {
    let definition = definition("");
    let schedule = Schedule::of(&definition).unwrap();
    let at = |text: &str| when::read(text, "Europe/Berlin", NOW).unwrap();
    let range = (at("2026-03-28"), at("2026-03-31"));
    let told = job_times::told(&definition, &simulate(&definition, &schedule, range, 100));
    let want = "\
job/nightly: 3 of 3 moments would run
MOMENT                    BEGINS  RUNS  NOTE
2026-03-28 02:30:00 CET   -       yes
2026-03-29 03:00:00 CEST  -       yes   its local time does not exist that day: it is at the first instant after the gap
2026-03-30 02:30:00 CEST  -       yes
";
    assert_eq!(told, want);
}

#[test]
fn a_job_changes_in_every_field_and_it_is_told_which() {
    let stands = definition("");
    assert_eq!(compare_job(&definition(""), &stands), Step::Unchanged);
    let other = definition(r#","overlap":"queue","tags":["x"]"#);
    let fields = vec!["overlap".to_owned(), "tags".to_owned()];
    assert_eq!(compare_job(&other, &stands), Step::Change { fields });
}

#[test]
fn a_crontab_becomes_jobs_that_can_be_applied() {
    let text = "SHELL=/bin/bash\n*/5 * * * * /usr/bin/backup --all\n@daily /usr/bin/backup\nCRON_TZ=Asia/Tokyo\n0 4 * * 1 : # odd\n";
    let lines = read_crontab(text, Columns::User).unwrap();
    let documents = job_import::documents(&lines, "cron", "Europe/Berlin");
    let ids: Vec<_> = documents.iter().map(|it| it["job_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["cron-backup", "cron-backup-2", "cron-job"]);
    let zones: Vec<_> = documents.iter().map(|it| it["timezone"].as_str().unwrap()).collect();
    assert_eq!(zones, ["Europe/Berlin", "Europe/Berlin", "Asia/Tokyo"]);
    let text: Vec<String> = documents.iter().map(yaml::emit).collect();
    let placed = read(text.join("---\n").as_bytes()).unwrap();
    let Document::Job(first) = &placed[0].document else { panic!("no job") };
    assert_eq!(first.command.as_ref().unwrap().command, "/usr/bin/backup --all");
    assert_eq!(placed.len(), 3);
}

#[test]
fn the_text_of_a_workflow_file_becomes_part_of_its_job() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("good.yaml"), "steps: [{name: a, command: 'true'}]\n").unwrap();
    fs::write(dir.path().join("bad.yaml"), "steps: [{name: a, comand: 'true'}]\n").unwrap();
    let text = "\
kind: job
job_id: one
schedule: '@daily'
workflow: {file: good.yaml}
---
kind: job
job_id: two
schedule: '@daily'
workflow:
  file: none.yaml
---
kind: job
job_id: three
schedule: '@daily'
workflow: {file: bad.yaml}
---
kind: job
job_id: four
workflow: gone.yaml
";
    let path = dir.path().join("jobs.yaml").display().to_string();
    let mut sources = vec![Source::parse(path.clone(), text.as_bytes().to_vec())];
    workflow_files::put_in(&mut sources);
    let Document::Job(one) = &sources[0].documents[0].document else { panic!("no job") };
    let workflow = one.workflow.as_ref().unwrap();
    assert_eq!(workflow.text.as_deref(), Some("steps: [{name: a, command: 'true'}]\n"));
    assert_eq!(workflow.file, None);
    let told = complaints(&sources).unwrap();
    let missing = format!(
        "\
error: the workflow `none.yaml` cannot be read: No such file or directory (os error 2)
  --> {path}:10:9
   |
10 |   file: none.yaml
   |         ^^^^^^^^^ a path is relative to this file
"
    );
    assert!(told.contains(&missing), "{told}");
    assert!(told.contains("|           ^^^^^^^^^ a path is relative to this file"), "{told}");
    assert!(told.contains("bad.yaml:1:19") && told.contains("did you mean `command`?"), "{told}");
}
