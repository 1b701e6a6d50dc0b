//! What work gets, and what is kept of it.

use std::fs;
use std::time::Duration;

use kapell_core::run::StopKind;
use serde_json::json;

use super::rig::{Lab, command, work};
use crate::scheduler::backend::{Backend as _, What, Work};
use crate::scheduler::conformance::{Rig as _, attempt};
use crate::testing::eventually;

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs it to its end; its failure, if it failed.
async fn run(lab: &mut Lab, work: &Work) -> Option<String> {
    lab.backend.launch(work).await.unwrap();
    assert!(matches!(lab.next().await.what, What::Started { .. }));
    let What::Ended(end) = lab.next().await.what else { panic!("it has not ended") };
    end.failure
}

#[tokio::test]
async fn a_command_has_its_variables_parameters_and_secrets() {
    let mut lab = Lab::new().await;
    let one = attempt("orders", 2);
    let text = "echo $KAPELL_JOB_ID $KAPELL_RUN_ID $KAPELL_ATTEMPT $KAPELL_SCHEDULED_AT; \
                echo $PLAIN $DAY; echo secret $HIDDEN; [ $HIDDEN = hush-hush ]";
    let env = json!([
        {"name": "PLAIN", "value": "plain"}, {"name": "DAY", "value": "of the job"},
        {"name": "HIDDEN", "secret": "password"},
    ]);
    let mut order = work(&one, &json!({"command": {"command": text, "env": env}}));
    order.parameters.insert("DAY".to_owned(), "monday; true".to_owned());
    assert_eq!(run(&mut lab, &order).await, None);
    assert_eq!(
        lab.output(&one),
        "orders orders:1763290800 2 2025-11-16T11:00:00Z\nplain monday; true\nsecret ***\n"
    );
    lab.close().await;
}

#[tokio::test]
async fn parameters_are_put_into_arguments_as_text() {
    let mut lab = Lab::new().await;
    let one = attempt("arguments", 0);
    let payload = json!({"command": {"command": "printf", "args": ["%s|", "a ${DAY}", "$OTHER"]}});
    let mut order = work(&one, &payload);
    order.parameters.insert("DAY".to_owned(), "$(id) x".to_owned());
    assert_eq!(run(&mut lab, &order).await, None);
    assert_eq!(lab.output(&one), "a $(id) x|$OTHER|");
    lab.close().await;
}

#[tokio::test]
async fn a_command_runs_as_its_user_and_in_its_directory() {
    let mut lab = Lab::new().await;
    let one = attempt("users", 0);
    let user = if crate::system::user() == 0 {
        "65534".to_owned()
    } else {
        crate::system::user().to_string()
    };
    let payload = json!({"command": {"command": "id -u; pwd", "user": user, "dir": "/"}});
    assert_eq!(run(&mut lab, &work(&one, &payload)).await, None);
    assert_eq!(lab.output(&one), format!("{user}\n/\n"));
    let none = attempt("users", 1);
    let payload = json!({"command": {"command": "true", "user": "no-such-user-here"}});
    let refused = lab.backend.launch(&work(&none, &payload)).await.unwrap_err();
    assert_eq!(refused, "there is no user `no-such-user-here` on this machine");
    lab.close().await;
}

#[tokio::test]
async fn a_stop_reaches_the_whole_group_and_kills_what_does_not_heed_it() {
    let mut lab = Lab::new().await;
    let one = attempt("stubborn", 0);
    let text = "trap '' TERM; sleep 300 & echo ready; wait; wait";
    let order = work(&one, &json!({"command": {"command": text, "stop_grace": "200ms"}}));
    lab.backend.launch(&order).await.unwrap();
    lab.next().await;
    let is_ready = || async { lab.output(&one) == "ready\n" };
    eventually("it does not heed SIGTERM", PATIENCE, is_ready).await;
    let place = lab.backend.place();
    lab.backend.stop(&one, &place, StopKind::Graceful).await.unwrap();
    let What::Ended(end) = lab.next().await.what else { panic!("it has not ended") };
    assert!(end.failure.unwrap().contains("signal 9"), "SIGKILL after the grace");
    lab.close().await;
}

#[tokio::test]
async fn a_log_outlives_the_release_and_goes_with_the_run() {
    let mut lab = Lab::new().await;
    let [first, second] = [0, 1].map(|number| attempt("logged", number));
    for (one, text) in [(&first, "echo out; echo err >&2; exit 3"), (&second, "echo again")] {
        let failure = run(&mut lab, &command(one, text)).await;
        assert_eq!(failure.is_some(), one.number == 0);
        lab.backend.release(one).await;
    }
    let logs = lab.backend.logs().clone();
    assert_eq!(logs.attempts(&first.run_id), [0, 1]);
    assert_eq!(lab.output(&first).len(), "out\nerr\n".len());
    assert_eq!(lab.output(&second), "again\n");
    logs.forget(&first.run_id).unwrap();
    logs.forget(&first.run_id).unwrap();
    assert_eq!(logs.read(&first), None);
    assert!(logs.attempts(&first.run_id).is_empty());
    assert_eq!(fs::read_dir(lab.dir.path().join("runs")).unwrap().count(), 0);
    lab.close().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_refused_and_leaves_nothing() {
    let mut lab = Lab::new().await;
    let one = attempt("missing", 0);
    let refused = lab.backend.launch(&lab.unstartable(&one)).await.unwrap_err();
    assert_eq!(refused, "`/no/such/program` is not there");
    assert_eq!(lab.backend.known().await.unwrap(), []);
    assert!(lab.news.try_recv().is_err());
    assert_eq!(fs::read_dir(lab.dir.path().join("work/containers")).unwrap().count(), 0);
    lab.close().await;
}
