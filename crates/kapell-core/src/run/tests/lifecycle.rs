use super::stage::{
    Admission, Launching, START, Script, Stage, definition, full, plan, retry, run, secs,
};
use crate::constraint::Verdict;
use crate::job::{JobDefinition, Length, RetryOn};
use crate::run::RunState::{
    self, ActionPending, ActionRunning, Completed, ConditionPending, ConditionRunning,
    ContainerCreating, Failed, Orphaned, Pending, PreRun, Retrying, Running, Terminating,
};
use crate::run::{
    Ask, HOST_LOST, Happened, Noted, Orchestrator, Plan, Run, RunId, StopKind, Timer, Trigger,
};

fn played(plan: Plan, script: Script) -> Stage {
    let mut stage = Stage::new(plan, script);
    stage.play();
    stage
}

fn assert_path(stage: &Stage, path: &[RunState]) {
    assert_eq!(stage.path, path);
    stage.assert_ended(path[path.len() - 1]);
}

const BEFORE: [RunState; 4] = [PreRun, Pending, ConditionPending, ConditionRunning];

fn path(more: &[RunState]) -> Vec<RunState> {
    BEFORE.iter().chain(more).copied().collect()
}

#[test]
fn the_happy_path() {
    let stage = played(full(), Script::default());
    assert_path(&stage, &path(&[ContainerCreating, Running, Terminating, Completed]));
    assert_eq!((stage.launches, stage.ignored), (vec![0], Vec::<String>::new()));
}

#[test]
fn without_constraints_none_are_checked() {
    let stage = played(plan(definition()), Script::default());
    assert_path(&stage, &[PreRun, Pending, ContainerCreating, Running, Terminating, Completed]);
}

#[test]
fn with_actions_before_the_work() {
    let script = Script { check: (Verdict::Proceed, true), ..Script::default() };
    let stage = played(full(), script);
    let acts = [ActionPending, ActionRunning, ContainerCreating, Running, Terminating, Completed];
    assert_path(&stage, &path(&acts));
}

#[test]
fn a_check_that_fails_ends_it_with_or_without_actions() {
    let stage = played(full(), Script { check: (Verdict::Fail, false), ..Script::default() });
    assert_path(&stage, &path(&[Failed]));
    let script = Script { check: (Verdict::Fail, true), act: Verdict::Fail, ..Script::default() };
    assert_path(&played(full(), script), &path(&[ActionPending, ActionRunning, Failed]));
}

#[test]
fn a_skip_goes_through_the_actions_also_without_any() {
    for acts in [false, true] {
        let script =
            Script { check: (Verdict::Skip, acts), act: Verdict::Skip, ..Script::default() };
        let stage = played(full(), script);
        assert_path(&stage, &path(&[ActionPending, ActionRunning, Completed]));
        assert!(stage.board.skipped && stage.launches.is_empty());
    }
}

#[test]
fn a_retry_by_verdict_uses_up_a_retry_and_is_a_whole_life_anew() {
    for acts in [false, true] {
        let script =
            Script { check: (Verdict::Retry, acts), act: Verdict::Retry, ..Script::default() };
        let stage = played(full(), script);
        let checks = [Pending, ConditionPending, ConditionRunning];
        let actions: &[RunState] = if acts { &[ActionPending, ActionRunning] } else { &[] };
        let mut path = vec![PreRun];
        for end in [Retrying, Retrying, Failed] {
            path.extend(checks.iter().chain(actions).copied().chain([end]));
        }
        assert_path(&stage, &path);
        assert_eq!(stage.board.attempt, 2, "three attempts in all");
    }
}

#[test]
fn work_that_fails_is_tried_again_by_way_of_terminating() {
    let stage = played(full(), Script { exits: vec![3, 0], ..Script::default() });
    let first = [ContainerCreating, Running, Terminating, Retrying];
    let again = [
        Pending,
        ConditionPending,
        ConditionRunning,
        ContainerCreating,
        Running,
        Terminating,
        Completed,
    ];
    assert_path(&stage, &path(&[first.as_slice(), &again].concat()));
    assert_eq!(stage.launches, [0, 1]);
    assert_eq!((stage.board.exit_code, stage.board.attempt), (Some(0), 1));
}

#[test]
fn three_retries_are_four_attempts() {
    let with = JobDefinition { retry: Some(retry(3, Vec::new())), ..definition() };
    let stage = played(plan(with), Script { exits: vec![3], ..Script::default() });
    stage.assert_ended(Failed);
    assert_eq!(stage.launches, [0, 1, 2, 3]);
    assert_eq!((stage.board.exit_code, stage.board.reason.as_str()), (Some(3), "exit code 3"));
}

#[test]
fn a_launch_that_fails_is_final_unless_the_job_says_otherwise() {
    for launch in [Launching::Fails, Launching::Unstartable, Launching::NeverStarts] {
        let script = Script { launch, ..Script::default() };
        let once = JobDefinition { retry: Some(retry(2, Vec::new())), ..definition() };
        let stage = played(plan(once), script.clone());
        assert_path(&stage, &[PreRun, Pending, ContainerCreating, Failed]);
        assert_eq!(stage.stops, [(0, StopKind::AtOnce)], "whatever there is of it is ended");
        let thrice = JobDefinition { retry: Some(retry(2, vec![RetryOn::Launch])), ..definition() };
        let stage = played(plan(thrice), script);
        let again = [Pending, ContainerCreating, Terminating, Retrying];
        let last = [Pending, ContainerCreating, Failed];
        assert_path(&stage, &[[PreRun].as_slice(), &again, &again, &last].concat());
        assert_eq!(stage.stops.len(), 3);
    }
}

#[test]
fn a_start_timeout_says_so() {
    let stage = played(full(), Script { launch: Launching::NeverStarts, ..Script::default() });
    stage.assert_ended(Failed);
    assert_eq!(stage.board.reason, "it did not start within 30s (start_timeout)");
    let stage =
        played(plan(definition()), Script { launch: Launching::NeverStarts, ..Script::default() });
    assert_eq!(stage.board.reason, "it did not start within 5m (start_timeout)");
    let set = Plan { start_timeout_s: 7, ..plan(definition()) };
    let stage = played(set, Script { launch: Launching::NeverStarts, ..Script::default() });
    assert_eq!(stage.board.reason, "it did not start within 7s (start_timeout)");
}

#[test]
fn a_start_timeout_says_what_kept_the_work_from_starting() {
    let stage = played(full(), Script { launch: Launching::Hindered, ..Script::default() });
    stage.assert_ended(Failed);
    let want = "it did not start within 30s (start_timeout): image cannot be pulled";
    assert_eq!(stage.board.reason, want, "what was said last counts");
}

#[test]
fn work_that_runs_too_long_is_stopped_and_has_failed() {
    let stage = played(full(), Script { endless: true, ..Script::default() });
    stage.assert_ended(Failed);
    assert_eq!(
        stage.stops,
        [(0, StopKind::Graceful), (1, StopKind::Graceful), (2, StopKind::Graceful)]
    );
    assert_eq!(stage.board.reason, "it ran longer than 1m40s (maxAllowedRunTime) and was stopped");
    assert_eq!(stage.board.exit_code, Some(143));
}

#[test]
fn beside_work_that_could_not_be_ended_there_is_no_other_attempt() {
    let script = Script { endless: true, left: Some("pid 7 is stuck"), ..Script::default() };
    let stage = played(full(), script);
    stage.assert_ended(Failed);
    assert_eq!(stage.launches, [0]);
    assert!(stage.board.reason.ends_with("was stopped; pid 7 is stuck"), "{}", stage.board.reason);
}

#[test]
fn checks_after_the_work_may_fail_it_or_have_it_tried_again() {
    let stage = played(full(), Script { post: Verdict::Fail, ..Script::default() });
    assert_path(&stage, &path(&[ContainerCreating, Running, Terminating, Failed]));
    let stage = played(full(), Script { post: Verdict::Retry, ..Script::default() });
    stage.assert_ended(Failed);
    assert_eq!(stage.launches, [0, 1, 2]);
    let stage = played(full(), Script { post: Verdict::Skip, ..Script::default() });
    stage.assert_ended(Completed);
}

#[test]
fn work_that_ends_before_its_launch_is_answered_is_no_surprise() {
    let stage = played(full(), Script { launch: Launching::EndsFirst, ..Script::default() });
    assert_path(&stage, &path(&[ContainerCreating, Running, Terminating, Completed]));
    assert!(stage.ignored.is_empty(), "{:?}", stage.ignored);
}

#[test]
fn a_run_waits_for_its_turn_or_is_turned_away() {
    let stage = played(full(), Script { admission: Admission::After(30_000), ..Script::default() });
    stage.assert_ended(Completed);
    let waits =
        |noted: &Noted| matches!(noted, Noted::Waits { why } if why == "another run is in its way");
    assert!(stage.board.timeline.iter().any(|entry| waits(&entry.noted)));
    let stage = played(full(), Script { admission: Admission::No, ..Script::default() });
    assert_path(&stage, &path(&[ActionPending, ActionRunning, Completed]));
    assert_eq!(
        (stage.board.skipped, stage.board.reason.as_str()),
        (true, "another run is in its way")
    );
}

#[test]
fn a_run_whose_turn_does_not_come_in_time_does_not_begin() {
    let stage = played(full(), Script { admission: Admission::Never, ..Script::default() });
    stage.assert_ended(Completed);
    assert!(stage.board.skipped && stage.launches.is_empty());
    assert_eq!(
        stage.board.reason,
        "60.0s after its moment it is too late to begin (starting_deadline)"
    );
    let mut late = Stage::new(full(), Script::default());
    late.now = START.after(secs(71));
    late.play();
    late.assert_ended(Completed);
    assert!(late.board.skipped, "it was due long ago");
}

#[test]
fn a_run_of_a_backfill_waits_for_its_turn_however_long_that_takes() {
    let asked = |trigger: Trigger| {
        let run_id = RunId::asked_for(&run().run_id.job_id(), START, 7);
        let script = Script { admission: Admission::After(3_600_000), ..Script::default() };
        let mut stage = Stage::from(Run { run_id, trigger, ..run() }, full(), script, START);
        stage.play();
        stage.assert_ended(Completed);
        stage.board.skipped
    };
    let who = || "ann".to_owned();
    assert!(!asked(Trigger::Backfill { who: who().into() }));
    assert!(asked(Trigger::Manual { who: who().into() }), "it was to run then");
}

#[test]
fn a_change_of_its_job_reaches_it_while_it_waits_for_its_time_and_the_latest_counts() {
    let mut stage = Stage::new(plan(definition()), Script::default());
    let newer = |revision| Plan { revision, ..full() };
    assert!(stage.it.update(newer(2)) && stage.it.update(newer(3)));
    stage.play_to(Pending);
    assert!(!stage.it.update(newer(4)));
    stage.play();
    stage.assert_ended(Completed);
    assert_eq!(stage.board.revision, 3);
    assert!(stage.path.contains(&ConditionRunning));
    let told = stage
        .board
        .timeline
        .iter()
        .filter(|entry| matches!(entry.noted, Noted::Revision { revision: 3 }));
    assert_eq!(told.count(), 1);
}

#[test]
fn silence_orphans_it_in_every_state_and_what_is_left_is_ended() {
    let states = [
        (PreRun, false),
        (Pending, false),
        (ConditionRunning, false),
        (ActionRunning, false),
        (ContainerCreating, false),
        (Running, true),
        (Terminating, false),
        (Retrying, false),
    ];
    for (state, leftover) in states {
        let script =
            Script { check: (Verdict::Proceed, true), exits: vec![3], ..Script::default() };
        let mut stage = Stage::new(full(), script);
        stage.play_to(state);
        stage.tell(Happened::Silent);
        stage.play();
        stage.assert_ended(Orphaned);
        assert_eq!(!stage.stops.is_empty(), leftover, "{}", state.name());
    }
}

#[test]
fn silence_while_a_launch_is_under_way_leaves_nothing_behind() {
    let mut stage = Stage::new(full(), Script::default());
    while stage.launches.is_empty() {
        assert!(stage.next());
    }
    stage.tell(Happened::Silent);
    assert!(stage.stops.is_empty(), "its end is on disk before anything else is done");
    stage.play();
    stage.assert_ended(Orphaned);
    assert_eq!(stage.stops, [(0, StopKind::AtOnce)]);
}

#[test]
fn work_that_is_looked_after_and_gone_is_a_lost_host() {
    let mut stage = Stage::new(full(), Script { endless: true, ..Script::default() });
    stage.play_to(Running);
    stage.work.clear();
    stage.find(0);
    stage.play_to(Retrying);
    assert!(stage.board.reason.starts_with(HOST_LOST), "{}", stage.board.reason);
}

#[test]
fn news_that_did_not_come_are_made_up_for() {
    let mut stage = Stage::new(full(), Script::default());
    stage.play_to(Running);
    let work = |(_, happened): &(_, Happened)| {
        if let Happened::Ended { work, .. } = happened { Some(work.clone()) } else { None }
    };
    let end = stage.coming.iter().find_map(work);
    stage.coming.retain(|(_, happened)| !matches!(happened, Happened::Ended { .. }));
    stage.work.insert(0, super::stage::Work::Ended(end.unwrap()));
    stage.find(0);
    stage.play();
    stage.assert_ended(Completed);
}

#[test]
fn a_run_that_waits_is_a_timer_and_nothing_else() {
    let run = run();
    let (it, asks) = Orchestrator::begin(&run, plan(definition()), START);
    assert_eq!(asks, [Ask::Ring { timer: Timer::Due, at: run.due_at }]);
    assert!(!it.holds_place() && !it.awaits_news());
    assert!(size_of::<Orchestrator>() <= 120, "{} bytes", size_of::<Orchestrator>());
}

#[test]
fn deadlines_count_from_the_moment_and_limits_from_the_start_of_the_work() {
    let limited =
        JobDefinition { max_allowed_run_time: Some(Length::new(secs(7))), ..definition() };
    let mut stage = Stage::new(plan(limited), Script { endless: true, ..Script::default() });
    stage.play_to(Running);
    let started_at = stage.it.started_at().unwrap();
    assert_eq!(stage.ring, Some((Timer::RunTime, started_at.after(secs(7)))));
}

#[test]
fn a_start_that_is_yet_to_come_by_a_clock_that_was_set_back_counts_from_now() {
    let limited =
        JobDefinition { max_allowed_run_time: Some(Length::new(secs(7))), ..definition() };
    let script = Script { launch: Launching::NeverStarts, ..Script::default() };
    let mut stage = Stage::new(plan(limited), script);
    stage.play_to(ContainerCreating);
    while !stage.it.awaits_news() {
        assert!(stage.next());
    }
    let now = stage.now;
    stage.tell(Happened::Started { attempt: 0, at: now.after(secs(600)) });
    assert_eq!(stage.it.started_at(), Some(now));
    assert_eq!(stage.ring, Some((Timer::RunTime, now.after(secs(7)))));
}

#[test]
fn what_is_plainly_due_begins_at_once_as_it_would_step_by_step() {
    let due = run().due_at;
    let begin = || Orchestrator::begin(&run(), plan(definition()), START).0;
    let (mut by_steps, mut at_once) = (begin(), begin());
    assert_eq!(by_steps.handle(Happened::Rang(Timer::Due), due), [Ask::Admit]);
    let stored = Ask::Store(at_once.begin_at_once(due));
    assert_eq!(by_steps.handle(Happened::Admitted, due), [Ask::Quiet, stored]);
    assert_eq!(format!("{by_steps:?}"), format!("{at_once:?}"));
}

#[test]
fn what_has_more_to_ask_is_not_plainly_due() {
    let due = run().due_at;
    let is_plain =
        |run: &Run, plan: Plan| Orchestrator::begin(run, plan, START).0.is_plainly_due(due);
    assert!(is_plain(&run(), plan(definition())));
    assert!(!is_plain(&run(), Plan { checks_before: true, ..plan(definition()) }));
    assert!(!is_plain(&run(), Plan { revision: 2, ..plan(definition()) }));
    assert!(!is_plain(&Run { state: Retrying, ..run() }, plan(definition())));
    let mut cancelled = run();
    cancelled.cancel = Some(StopKind::Graceful);
    assert!(!is_plain(&cancelled, plan(definition())));
    let late = Run { scheduled_at: START, ..run() };
    let deadline = Some(Length::new(secs(5)));
    let hasty = JobDefinition { starting_deadline: deadline, ..definition() };
    assert!(!is_plain(&late, plan(hasty)));
}

#[test]
fn an_intent_that_is_refused_fails_the_run_and_nothing_is_launched() {
    let (mut it, _) = Orchestrator::begin(&run(), plan(definition()), START);
    it.handle(Happened::Rang(Timer::Due), START);
    let asks = it.handle(Happened::Admitted, START);
    assert!(matches!(&asks[..], [.., Ask::Store(_)]), "{asks:?}");
    let refused = |attempt| Happened::IntentRefused { attempt, why: "no such run".to_owned() };
    assert!(matches!(&it.handle(refused(1), START)[..], [Ask::Ignored { .. }]));
    let asks = it.handle(refused(0), START);
    let [Ask::Quiet, Ask::Store(update)] = &asks[..] else { panic!("{asks:?}") };
    let want = "that it begins could not be stored: no such run";
    assert_eq!((update.state, update.reason.as_str()), (Failed, want));
    assert!(matches!(&it.handle(refused(0), START)[..], [Ask::Ignored { .. }]), "once");
}
