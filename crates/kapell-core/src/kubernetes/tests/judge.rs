use serde_json::{Value as Json, json};

use crate::kubernetes::{
    Job, JobSight, Life, Pod, PodSight, Presence, Reason, Standing, is_overlooked, is_silent,
    judge, life,
};
use crate::seams::Timestamp;

const T1: &str = "2026-11-17T04:00:01Z";
const T2: &str = "2026-11-17T04:00:02Z";
const AT1: Timestamp = Timestamp(1_794_888_001_000);
const AT2: Timestamp = Timestamp(1_794_888_002_000);

fn pod(value: Json) -> PodSight {
    PodSight::from(&serde_json::from_value::<Pod>(value).unwrap())
}

fn job(value: Json) -> JobSight {
    JobSight::from(&serde_json::from_value::<Job>(value).unwrap())
}

fn running() -> Json {
    json!({"running": {"startedAt": T1}})
}

fn ended(code: i32, reason: &str) -> Json {
    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": T1, "finishedAt": T2, "message": "words"}})
}

fn waiting(reason: &str) -> Json {
    json!({"waiting": {"reason": reason, "message": "words"}})
}

/// A pod whose containers `main` and, if it has two states, `other` are like this.
fn of(phase: &str, states: &[Json]) -> Json {
    let names = ["main", "other"];
    let told = |(name, state): (&str, &Json)| json!({"name": name, "image": "img", "state": state});
    json!({
        "metadata": {"name": "p"},
        "spec": {"containers": names.iter().take(states.len()).map(|name| json!({"name": name})).collect::<Vec<_>>()},
        "status": {"phase": phase, "containerStatuses": names.into_iter().zip(states).map(told).rev().collect::<Vec<_>>()},
    })
}

fn with(mut value: Json, path: &str, part: Json) -> Json {
    *value
        .pointer_mut(path.rsplit_once('/').unwrap().0)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .entry(path.rsplit_once('/').unwrap().1.to_owned())
        .or_insert(Json::Null) = part;
    value
}

fn condition(kind: &str, status: &str, reason: &str) -> Json {
    json!([{"type": kind, "status": status, "reason": reason, "message": "words", "lastTransitionTime": T2}])
}

fn there(value: Json) -> Presence<PodSight> {
    Presence::There(pod(value))
}

fn active() -> Presence<JobSight> {
    Presence::There(job(json!({"status": {"active": 1}})))
}

fn failed(reason: &str) -> Presence<JobSight> {
    Presence::There(job(json!({"status": {"conditions": condition("Failed", "True", reason)}})))
}

fn end_of(job: &Presence<JobSight>, pod: &Presence<PodSight>) -> (Option<i32>, Option<Reason>) {
    let standing = judge(job, pod);
    let Standing::Ended { began, at, exit_code, failure } = standing else {
        panic!("{standing:?}")
    };
    assert_eq!((began.is_some(), at), (true, Some(AT2)));
    (exit_code, failure.map(|it| it.reason))
}

fn hopeless(job: &Presence<JobSight>, pod: &Presence<PodSight>) -> Reason {
    let standing = judge(job, pod);
    let Standing::Hopeless { why } = standing else { panic!("{standing:?}") };
    why.reason
}

#[test]
fn work_waits_runs_and_ends_by_the_phase_of_its_pod() {
    let waits = Standing::Waits { hindrance: None };
    assert_eq!(judge(&Presence::Unseen, &Presence::Unseen), waits);
    assert_eq!(judge(&active(), &Presence::Unseen), waits);
    assert_eq!(judge(&active(), &there(of("Pending", &[waiting("ContainerCreating")]))), waits);
    let runs = there(of("Running", &[running()]));
    assert_eq!(judge(&active(), &runs), Standing::Runs { since: AT1 });
    let well = there(of("Succeeded", &[ended(0, "Completed")]));
    assert_eq!(end_of(&active(), &well), (Some(0), None));
    let badly = there(of("Failed", &[ended(3, "Error")]));
    assert_eq!(end_of(&active(), &badly), (Some(3), Some(Reason::Exit)));
    let Standing::Ended { failure: Some(why), .. } = judge(&active(), &badly) else { panic!() };
    assert_eq!(why.tell(), "Exited with status 3");
}

#[test]
fn the_code_is_that_of_the_container_because_of_which_the_pod_failed() {
    let both = of("Failed", &[ended(4, "Error"), ended(5, "Error")]);
    assert_eq!(end_of(&active(), &there(both.clone())), (Some(4), Some(Reason::Exit)));
    let meant = with(
        both,
        "/metadata/annotations",
        json!({"kubectl.kubernetes.io/default-container": "other"}),
    );
    assert_eq!(
        end_of(&active(), &there(meant)),
        (Some(5), Some(Reason::Exit)),
        "the one that is meant"
    );
    let beside = there(of("Failed", &[ended(0, "Completed"), ended(5, "Error")]));
    assert_eq!(end_of(&active(), &beside), (Some(5), Some(Reason::Beside)));
    let memory = there(of("Failed", &[ended(137, "OOMKilled")]));
    assert_eq!(end_of(&active(), &memory), (Some(137), Some(Reason::OutOfMemory)));
}

#[test]
fn containers_that_come_before_count_and_those_that_run_beside_do_not() {
    let init = |restart: &str, code: i32, main: Json, phase: &str| {
        let pod = of(phase, &[main]);
        let pod = with(
            pod,
            "/spec/initContainers",
            json!([{"name": "before", "restartPolicy": restart}]),
        );
        let status = json!([{"name": "before", "state": ended(code, "Error")}]);
        there(with(pod, "/status/initContainerStatuses", status))
    };
    let Standing::Ended { exit_code, failure, began, .. } =
        judge(&active(), &init("", 7, waiting("PodInitializing"), "Failed"))
    else {
        panic!()
    };
    assert_eq!(
        (exit_code, failure.map(|it| it.reason), began),
        (Some(7), Some(Reason::Init), None)
    );
    let sidecar = init("Always", 143, ended(0, "Completed"), "Succeeded");
    assert_eq!(end_of(&active(), &sidecar), (Some(0), None));
    let sidecar = init("Always", 143, ended(2, "Error"), "Failed");
    assert_eq!(end_of(&active(), &sidecar), (Some(2), Some(Reason::Exit)));
}

#[test]
fn what_was_done_to_the_whole_pod_is_told_apart() {
    let by_reason = [
        ("Evicted", Reason::Evicted),
        ("Preempting", Reason::Preempted),
        ("DeadlineExceeded", Reason::Deadline),
        ("NodeLost", Reason::Node),
        ("UnexpectedAdmissionError", Reason::Node),
        ("OutOfmemory", Reason::Node),
    ];
    for (word, want) in by_reason {
        let pod = with(of("Failed", &[ended(137, "Error")]), "/status/reason", json!(word));
        assert_eq!(end_of(&active(), &there(pod)).1, Some(want), "{word}");
        let unstarted = with(of("Failed", &[]), "/status/reason", json!(word));
        assert_eq!(hopeless(&active(), &there(unstarted)), want, "{word}, before it ran");
    }
    let by_condition = [
        ("PreemptionByScheduler", Reason::Preempted),
        ("DeletionByTaintManager", Reason::Node),
        ("DeletionByPodGC", Reason::Node),
        ("EvictionByEvictionAPI", Reason::Evicted),
        ("TerminationByKubelet", Reason::Evicted),
    ];
    for (word, want) in by_condition {
        let pod = of("Failed", &[ended(143, "Error")]);
        let pod = with(pod, "/status/conditions", condition("DisruptionTarget", "True", word));
        let pod = with(pod, "/metadata/deletionTimestamp", json!(T2));
        assert_eq!(end_of(&active(), &there(pod)).1, Some(want), "{word}");
    }
}

#[test]
fn what_keeps_a_pod_from_starting_is_told_and_what_cannot_change_ends_it() {
    let cases = [
        ("ErrImagePull", Reason::Image, false),
        ("ImagePullBackOff", Reason::Image, false),
        ("ErrImageNeverPull", Reason::Image, true),
        ("InvalidImageName", Reason::Image, true),
        ("CreateContainerConfigError", Reason::Needs, false),
        ("CreateContainerError", Reason::Needs, false),
        ("RunContainerError", Reason::Needs, false),
    ];
    for (word, want, for_ever) in cases {
        let seen = there(of("Pending", &[waiting(word)]));
        let reason = match judge(&active(), &seen) {
            Standing::Hopeless { why } if for_ever => why.reason,
            Standing::Waits { hindrance: Some(why) } if !for_ever => why.reason,
            other @ (Standing::Waits { .. }
            | Standing::Hopeless { .. }
            | Standing::Runs { .. }
            | Standing::Ended { .. }) => panic!("{word}: {other:?}"),
        };
        assert_eq!(reason, want, "{word}");
    }
    let nowhere = with(
        of("Pending", &[]),
        "/status/conditions",
        condition("PodScheduled", "False", "Unschedulable"),
    );
    let Standing::Waits { hindrance: Some(why) } = judge(&active(), &there(nowhere)) else {
        panic!()
    };
    assert_eq!(why.tell(), "unschedulable: words");
    let program = there(of(
        "Failed",
        &[
            json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file",
        "startedAt": "1970-01-01T00:00:00Z", "finishedAt": T2}}),
        ],
    ));
    assert_eq!(hopeless(&active(), &program), Reason::CannotRun);
}

#[test]
fn who_deleted_the_pod_is_known_once_the_job_says_what_became_of_it() {
    let pod = with(of("Failed", &[ended(143, "Error")]), "/metadata/deletionTimestamp", json!(T2));
    let (there, gone) = (there(pod.clone()), Presence::Gone(super::judge::pod(pod)));
    let stopped = |status: Json| {
        let metadata = json!({"annotations": {"kapell/stopped": "while-it-ran"}});
        Presence::There(job(json!({"metadata": metadata, "status": status})))
    };
    let deleting = Presence::There(job(json!({"metadata": {"deletionTimestamp": T1}})));
    let job_gone = Presence::Gone(job(json!({})));
    for seen in [&there, &gone] {
        assert_eq!(
            judge(&active(), seen),
            Standing::Runs { since: AT1 },
            "who did it is not known yet"
        );
        let cases = [
            (failed("BackoffLimitExceeded"), Reason::PodDeleted),
            (failed("DeadlineExceeded"), Reason::Deadline),
            (stopped(json!({"active": 1})), Reason::Stopped),
            (deleting.clone(), Reason::JobDeleted),
            (job_gone.clone(), Reason::JobDeleted),
            (Presence::Unseen, Reason::PodDeleted),
        ];
        for (job, want) in cases {
            assert_eq!(end_of(&job, seen), (Some(143), Some(want)), "{job:?}");
        }
    }
    let well =
        with(of("Succeeded", &[ended(0, "Completed")]), "/metadata/deletionTimestamp", json!(T2));
    assert_eq!(end_of(&active(), &super::judge::there(well)), (Some(0), None), "it had ended well");
}

#[test]
fn a_pod_that_is_gone_without_an_end_has_failed_or_never_ran() {
    let runs = Presence::Gone(pod(of("Running", &[running()])));
    let never = Presence::Gone(pod(of("Pending", &[])));
    assert_eq!(judge(&active(), &runs), Standing::Runs { since: AT1 });
    let failed = failed("BackoffLimitExceeded");
    let Standing::Ended { began, exit_code, failure, .. } = judge(&failed, &runs) else { panic!() };
    assert_eq!(
        (began, exit_code, failure.map(|it| it.reason)),
        (Some(AT1), None, Some(Reason::PodDeleted))
    );
    assert_eq!(hopeless(&failed, &never), Reason::PodDeleted);
}

#[test]
fn a_job_without_a_pod_says_what_it_can() {
    let complete =
        json!({"status": {"completionTime": T2, "conditions": condition("Complete", "True", "")}});
    let complete = Presence::There(job(complete));
    let want = Standing::Ended { began: None, at: Some(AT2), exit_code: Some(0), failure: None };
    assert_eq!(judge(&complete, &Presence::Absent), want);
    for (word, want) in
        [("BackoffLimitExceeded", Reason::Unknown), ("DeadlineExceeded", Reason::Deadline)]
    {
        let Standing::Ended { exit_code, failure, .. } = judge(&failed(word), &Presence::Absent)
        else {
            panic!()
        };
        assert_eq!((exit_code, failure.map(|it| it.reason)), (None, Some(want)));
    }
    let stopped = |when: &str, status: Json| {
        let metadata = json!({"annotations": {"kapell/stopped": when}});
        Presence::There(job(json!({"metadata": metadata, "status": status})))
    };
    let over = || json!({"conditions": condition("Suspended", "True", "JobSuspended")});
    let early = stopped("before-it-ran", over());
    assert_eq!(hopeless(&early, &Presence::Unseen), Reason::Stopped);
    let Standing::Ended { failure, .. } =
        judge(&stopped("while-it-ran", over()), &Presence::Unseen)
    else {
        panic!()
    };
    assert_eq!(failure.map(|it| it.reason), Some(Reason::Stopped));
    let not_yet = stopped("before-it-ran", json!({"active": 1}));
    assert_eq!(judge(&not_yet, &Presence::Unseen), Standing::Waits { hindrance: None });
    let gone = Presence::Gone(job(json!({})));
    assert_eq!(hopeless(&gone, &Presence::Unseen), Reason::JobDeleted);
}

#[test]
fn a_pod_that_was_not_told_of_yet_is_asked_for_before_its_job_counts_as_over() {
    let complete =
        json!({"status": {"completionTime": T2, "conditions": condition("Complete", "True", "")}});
    let waits = Standing::Waits { hindrance: None };
    let ended = there(of("Succeeded", &[ended(0, "Completed")]));
    for over in [Presence::There(job(complete)), failed("BackoffLimitExceeded")] {
        assert!(is_overlooked(&over, &Presence::Unseen));
        assert_eq!(judge(&over, &Presence::Unseen), waits);
        assert!(!is_silent(&over, &Presence::Unseen), "it may have written something");
        assert!(!is_overlooked(&over, &Presence::Absent) && is_silent(&over, &Presence::Absent));
        assert!(!is_overlooked(&over, &ended) && !is_overlooked(&over.clone().gone(), &ended));
    }
    assert!(!is_overlooked(&active(), &Presence::Unseen), "its pod is yet to come");
    assert!(!is_overlooked(&Presence::Unseen, &Presence::Unseen));
}

#[test]
fn a_container_writes_from_its_start_to_its_own_end_whatever_the_others_do() {
    use Life::{Over, Waits, Writes};
    let begun = json!({
        "metadata": {"name": "p"},
        "spec": {
            "initContainers": [{"name": "first"}, {"name": "helper", "restartPolicy": "Always"}],
            "containers": [{"name": "main"}, {"name": "other"}],
        },
        "status": {"phase": "Running", "initContainerStatuses": [
            {"name": "first", "state": ended(0, "Completed")},
            {"name": "helper", "state": ended(1, "Error")},
        ], "containerStatuses": [{"name": "main", "state": running()}]},
    });
    let lives = |pod: &Presence<PodSight>| {
        ["first", "helper", "main", "other", "none"].map(|name| life(&active(), pod, name))
    };
    let pod = there(begun.clone());
    assert_eq!(lives(&pod), [Over, Writes, Writes, Waits, Waits], "a helper is started again");
    assert_eq!(lives(&Presence::Unseen), [Waits; 5]);
    assert_eq!(lives(&there(with(begun, "/status/phase", json!("Failed")))), [Over; 5]);
    assert_eq!(lives(&pod.gone()), [Over; 5]);
    let waits = there(of("Pending", &[waiting("ContainerCreating")]));
    assert_eq!(life(&active(), &waits, "main"), Waits);
}

#[test]
fn what_is_kept_of_a_container_is_small() {
    assert!(size_of::<crate::kubernetes::ContainerSight>() <= size_of::<String>());
}
