use super::stage::{Admission, START, Script, Stage, Work, full, plan, run, secs};
use crate::job::JobDefinition;
use crate::run::{
    Entry, Evidence, HOST_LOST, Happened, Noted, Rare, Run, RunState, SkippedBy, StopKind, WorkEnd,
};
use crate::seams::Timestamp;

const NOW: Timestamp = Timestamp(START.0 + 3_600_000);

fn stored(state: RunState) -> Run {
    let started_at = (state == RunState::Running).then_some(START.after(secs(3_550)));
    let retry_at = (state == RunState::Retrying).then_some(NOW.after(secs(5)));
    let attempt = u32::from(state != RunState::PreRun);
    let due_at = NOW.before(secs(1));
    let rare = Rare { retry_at, ..Rare::default() }.into();
    Run { state, attempt, started_at, due_at, scheduled_at: due_at, rare, ..run() }
}

fn ended(code: i32) -> WorkEnd {
    let failure = (code != 0).then(|| format!("exit code {code}"));
    WorkEnd { began: None, at: NOW.before(secs(2)), exit_code: Some(code), failure }
}

fn evidence() -> Vec<Evidence> {
    vec![
        Evidence::Absent,
        Evidence::Unknown { why: "its files are on another host".to_owned() },
        Evidence::Launched,
        Evidence::Running { since: START.after(secs(3_550)) },
        Evidence::Ended(ended(0)),
        Evidence::Ended(ended(9)),
    ]
}

/// A run that another leader left, and what its backend says of it.
fn adopt(run: Run, evidence: &Evidence) -> Stage {
    let mut stage = Stage::from(run, full(), Script::default(), NOW);
    for (_, happened) in &mut stage.coming {
        if let Happened::Found { evidence: found, .. } = happened {
            *found = evidence.clone();
        }
    }
    if let Evidence::Launched | Evidence::Running { .. } = evidence {
        stage.work.insert(1, Work::Launched);
    }
    stage
}

/// State, evidence, what it then is, and whether the attempt is launched. Copied from the rulings by hand. Work that ran
/// and is lost has ended: it is checked after it like any other before another attempt is made.
const TABLE: &str = "
    ContainerCreating absent   ContainerCreating launch
    ContainerCreating unknown  Retrying          -
    ContainerCreating launched ContainerCreating -
    ContainerCreating running  Running           -
    ContainerCreating ended:0  Terminating       -
    ContainerCreating ended:9  Terminating       -
    Running           absent   Terminating       -
    Running           unknown  Terminating       -
    Running           launched Running           -
    Running           running  Running           -
    Running           ended:0  Terminating       -
    Running           ended:9  Terminating       -
";

fn name(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Absent => "absent".to_owned(),
        Evidence::Unknown { .. } => "unknown".to_owned(),
        Evidence::Launched => "launched".to_owned(),
        Evidence::Running { .. } => "running".to_owned(),
        Evidence::Ended(work) => format!("ended:{}", work.exit_code.unwrap()),
    }
}

#[test]
fn an_attempt_goes_on_by_what_its_backend_knows() {
    let mut seen = 0;
    for state in [RunState::ContainerCreating, RunState::Running] {
        for evidence in evidence() {
            let mut stage = adopt(stored(state), &evidence);
            assert_eq!(stage.it.state(), state);
            assert!(stage.launches.is_empty(), "nothing is launched before the evidence is there");
            assert!(stage.next());
            let launch = if stage.launches.is_empty() { "-" } else { "launch" };
            let got = [state.name(), &name(&evidence), stage.it.state().name(), launch].join(" ");
            let rows =
                TABLE.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            assert!(rows.into_iter().any(|row| row == got), "not as ruled: {got}");
            seen += 1;
        }
    }
    assert_eq!(seen, TABLE.trim().lines().count());
}

#[test]
fn every_stored_run_comes_to_an_end_whatever_is_found_and_no_attempt_is_launched_twice() {
    let cancels = [None, Some(StopKind::Graceful), Some(StopKind::AtOnce)];
    for state in RunState::ALL.into_iter().filter(|state| !state.is_final()) {
        for evidence in evidence() {
            for cancel in cancels {
                let mut run = stored(state);
                run.cancel = cancel;
                let mut stage = adopt(run, &evidence);
                for _ in 0..200 {
                    if !stage.next() && !stage.it.state().is_final() {
                        // News follow of what is there.
                        let attempt = stage.it.attempt();
                        let work = WorkEnd { at: stage.now, ..ended(0) };
                        stage.tell(Happened::Ended { attempt, work });
                    }
                }
                assert!(
                    stage.it.state().is_final() && stage.done,
                    "{} {evidence:?}: {:?}",
                    state.name(),
                    stage.it
                );
                if cancel.is_some() {
                    assert_eq!(
                        stage.it.state(),
                        RunState::Cancelled,
                        "{} {evidence:?}",
                        state.name()
                    );
                }
                stage.assert_launched_once();
                let launched = stage.launches.contains(&1) && state != RunState::Retrying;
                let never =
                    matches!(evidence, Evidence::Absent) && state == RunState::ContainerCreating;
                let anew = !state.is_stored();
                assert!(
                    !launched || never || anew,
                    "{} {evidence:?}: {:?}",
                    state.name(),
                    stage.launches
                );
            }
        }
    }
}

#[test]
fn work_that_ended_before_anybody_stored_its_start_took_the_time_that_it_took() {
    let began = NOW.before(secs(42));
    let work = WorkEnd { began: Some(began), ..ended(0) };
    let mut stage = adopt(stored(RunState::ContainerCreating), &Evidence::Ended(work));
    assert!(stage.next());
    assert_eq!(stage.it.started_at(), Some(began));
    stage.play();
    assert_eq!(stage.board.metrics.as_ref().unwrap().execution_ms, 40_000);
}

#[test]
fn a_run_that_waits_for_its_next_attempt_makes_that_one() {
    let mut stage = adopt(stored(RunState::Retrying), &Evidence::Absent);
    stage.play();
    stage.assert_ended(RunState::Completed);
    assert_eq!(stage.launches, [1]);
}

#[test]
fn an_attempt_that_nobody_can_account_for_fails_as_a_lost_host_and_follows_the_retry_rule() {
    let unknown = Evidence::Unknown { why: "its files are on another host".to_owned() };
    let mut stage = adopt(stored(RunState::Running), &unknown);
    stage.next();
    let checks = |(_, happened): &(Timestamp, Happened)| {
        matches!(happened, Happened::PostChecked { attempt: 1, .. })
    };
    assert!(stage.coming.iter().any(checks), "it ran: what is checked after the work is");
    stage.next();
    assert_eq!(stage.board.reason, format!("{HOST_LOST}: its files are on another host"));
    assert_eq!((stage.board.state, stage.board.attempt), (RunState::Retrying, 2));
    let once = plan(JobDefinition { retry: None, ..super::stage::definition() });
    for state in [RunState::ContainerCreating, RunState::Running] {
        let mut stage = Stage::from(stored(state), once.clone(), Script::default(), NOW);
        stage.coming.clear();
        stage.tell(Happened::Found { attempt: 1, evidence: unknown.clone() });
        stage.play();
        stage.assert_ended(RunState::Failed);
    }
}

#[test]
fn news_that_overtake_the_evidence_are_not_lost() {
    for state in [RunState::ContainerCreating, RunState::Running] {
        let mut stage = Stage::from(stored(state), full(), Script::default(), NOW);
        stage.tell(Happened::Ended { attempt: 1, work: ended(0) });
        stage.play();
        stage.assert_ended(RunState::Completed);
        let mut stage = Stage::from(stored(state), full(), Script::default(), NOW);
        stage.coming.clear();
        stage.tell(Happened::Started { attempt: 1, at: NOW });
        assert_eq!(stage.it.state(), RunState::Running);
        stage.tell(Happened::Found { attempt: 1, evidence: Evidence::Running { since: NOW } });
        stage.tell(Happened::Ended { attempt: 1, work: ended(0) });
        stage.play();
        stage.assert_ended(RunState::Completed);
    }
}

#[test]
fn the_timeline_says_on_what_evidence_it_went_on() {
    let mut stage = adopt(stored(RunState::Running), &Evidence::Ended(ended(0)));
    stage.play();
    let told = |entry: &Entry| matches!(&entry.noted, Noted::Adopted { evidence } if evidence == "its work has ended");
    assert_eq!(stage.board.timeline.iter().filter(told).count(), 1);
}

#[test]
fn a_limit_on_its_length_counts_from_when_it_started_under_another_leader() {
    let mut stage =
        adopt(stored(RunState::Running), &Evidence::Running { since: START.after(secs(3_550)) });
    stage.next();
    let (_, at) = stage.ring.unwrap();
    assert_eq!(at, START.after(secs(3_650)));
}

#[test]
fn work_that_outlived_its_limit_when_nobody_led_has_failed_whatever_it_ended_with() {
    let once = plan(JobDefinition { retry: None, ..(*full().definition).clone() });
    // It may run for 100 seconds.
    for (took, state) in [(100, RunState::Completed), (101, RunState::Failed)] {
        for running in [true, false] {
            let work = WorkEnd { began: Some(NOW.before(secs(took + 2))), ..ended(0) };
            let mut run = stored(RunState::ContainerCreating);
            if running {
                (run.state, run.started_at) = (RunState::Running, work.began);
            }
            let mut stage = Stage::from(run, once.clone(), Script::default(), NOW);
            stage.coming.clear();
            stage.tell(Happened::Found { attempt: 1, evidence: Evidence::Ended(work) });
            stage.play();
            stage.assert_ended(state);
            let why = if state == RunState::Failed {
                "it ran longer than 1m40s (maxAllowedRunTime)"
            } else {
                ""
            };
            assert_eq!((stage.board.reason.as_str(), stage.board.exit_code), (why, Some(0)));
        }
    }
}

#[test]
fn a_start_that_is_yet_to_come_by_a_clock_that_was_set_back_counts_from_when_it_is_found() {
    for evidence in [Evidence::Running { since: NOW.after(secs(600)) }, Evidence::Launched] {
        let mut run = stored(RunState::Running);
        run.started_at = Some(NOW.after(secs(600)));
        let mut stage = adopt(run, &evidence);
        stage.next();
        let (_, at) = stage.ring.unwrap();
        assert_eq!(at, stage.now.after(secs(100)), "{evidence:?}");
    }
}

#[test]
fn one_that_has_not_begun_may_be_passed_over_and_says_why() {
    let over = || Happened::PassedOver { by: SkippedBy::CatchUp, why: "missed".to_owned() };
    for waits in [false, true] {
        let script = Script { admission: Admission::Never, ..Script::default() };
        let mut stage = Stage::new(full(), script);
        if waits {
            stage.play_to(RunState::Pending);
        }
        stage.tell(over());
        stage.play();
        stage.assert_ended(RunState::Completed);
        assert!(stage.board.skipped && stage.launches.is_empty());
        assert_eq!(stage.board.reason, "missed");
        let told = |entry: &Entry| {
            let by = |by: SkippedBy| by == SkippedBy::CatchUp;
            matches!(&entry.noted, Noted::Skipped { by: of, .. } if by(*of))
        };
        assert_eq!(stage.board.timeline.iter().filter(told).count(), 1);
    }
    let mut stage = Stage::new(full(), Script::default());
    stage.play_to(RunState::Running);
    stage.tell(over());
    assert_eq!(stage.it.state(), RunState::Running);
    assert_eq!(stage.ignored, ["a word not to begin"]);
}
