use kapell_core::board::{ActualLrp, ActualState, LrpKey, Task};
use kapell_core::seams::Timestamp;

use super::super::task_run::{conclude, draw_name};
use super::super::text::{age, long, time, why};

#[test]
fn ages_are_short() {
    for (seconds, want) in [
        (0, "0s"),
        (59, "59s"),
        (60, "1m00s"),
        (192, "3m12s"),
        (7_500, "2h05m"),
        (86_400 * 3 + 3_600 * 4, "3d04h"),
        (86_400 * 400, "400d00h"),
    ] {
        assert_eq!(long(seconds * 1_000), want);
    }
    assert_eq!(age(Timestamp(5_000), Timestamp(1_000)), "0s", "a clock that is ahead");
    assert_eq!(time(Timestamp(1_500)), "1970-01-01T00:00:01.500Z");
}

#[test]
fn a_drawn_name_tells_what_runs() {
    assert_eq!(draw_name("/bin/sleep", 0xabc), "sleep-000000000abc");
    assert_eq!(draw_name("./my script.sh", u64::MAX), "my-script-sh-ffffffffffff");
    assert_eq!(draw_name("..", 1), "task-000000000001");
    assert_eq!(draw_name("é", 1), "task-000000000001");
}

#[test]
fn an_old_crash_is_told_only_for_a_while() {
    let key = LrpKey { process_guid: "web".into(), index: 0 };
    let mut lrp = ActualLrp::unclaimed(&key, "d".into(), Timestamp(0));
    lrp.crash_reason = Some("Exited with status 1".to_owned());
    let (soon, late) = (Timestamp(299_000), Timestamp(301_000));
    assert_eq!(why(&lrp, late), "Exited with status 1");
    lrp.state = ActualState::Running;
    assert_eq!(why(&lrp, soon), "restarted after: Exited with status 1");
    assert_eq!(why(&lrp, late), "");
    lrp.state = ActualState::Crashed;
    assert_eq!(why(&lrp, late), "Exited with status 1");
    lrp.crash_reason = None;
    lrp.state = ActualState::Running;
    assert_eq!(why(&lrp, soon), "");
}

#[test]
fn a_task_ends_as_a_shell_would_say_it() {
    let task = |reason: &str, code: Option<i32>| {
        let task = serde_json::json!({
            "task_guid": "t", "domain": "d", "action": { "run": { "path": "no-such" } },
            "instance_guid": "i", "state": "COMPLETED", "failed": true, "failure_reason": reason,
            "exit_code": code, "created_at": 1, "since": 1,
        });
        conclude(&serde_json::from_value::<Task>(task).unwrap())
    };
    for (reason, want) in [
        ("`no-such` was not found in PATH", 127),
        ("`no-such` is not there", 127),
        ("`no-such` may not be executed", 126),
        ("`no-such` was found in PATH but may not be executed", 126),
        ("`no-such` is neither a program for this machine nor a script with `#!`", 126),
        ("`other` is not there", 1),
        ("directory `no-such` is not there", 1),
        ("`no-such` is not there, they say", 1),
        ("cancelled", 1),
    ] {
        assert_eq!(task(reason, None), want, "{reason}");
    }
    assert_eq!(task("`no-such` is not there", Some(3)), 3);
}
