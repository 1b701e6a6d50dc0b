//! Workflows, run by something that stands in for `kapell`: what it is told, and what its exit codes mean.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use kapell_core::run::WorkEnd;
use serde_json::json;

use super::rig::{Lab, open_with, work};
use crate::scheduler::backend::{Attempt, Backend as _, What};
use crate::scheduler::conformance::{Rig as _, attempt};

const FLOW: &str =
    "params: [{name: DAY, default: sunday}]\nsteps: [{name: a, command: echo $DAY}]\n";

/// Says what it was given, and ends as its first parameter says.
const STAND_IN: &str = "#!/bin/sh\necho \"$@\" | sed \"s|$PWD||\"\nfor last; do :; done\n\
                        echo it was refused here >&2\nexit $last\n";

async fn lab() -> Lab {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("stand-in");
    fs::write(&program, STAND_IN).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let (backend, news) = open_with(dir.path(), &program).await;
    Lab { dir, backend, news }
}

async fn run(lab: &mut Lab, attempt: &Attempt, code: u8) -> WorkEnd {
    let flow = json!({"workflow": {"text": FLOW, "params": ["first", code.to_string()]}});
    let mut work = work(attempt, &flow);
    work.parameters.insert("DAY".to_owned(), "mon day".to_owned());
    work.parameters.insert("OTHER".to_owned(), "x".to_owned());
    lab.backend.launch(&work).await.unwrap();
    assert!(matches!(lab.next().await.what, What::Started { .. }));
    let What::Ended(end) = lab.next().await.what else { panic!("it has not ended") };
    end
}

#[tokio::test]
async fn a_workflow_gets_its_parameters_and_a_history_of_its_own() {
    let mut lab = lab().await;
    let one = attempt("flow", 0);
    let end = run(&mut lab, &one, 0).await;
    assert_eq!((end.exit_code, end.failure), (Some(0), None));
    let dir = lab.backend.logs().of(&one);
    let shown = Path::new(&dir).display();
    let told = format!(
        "--state-dir {shown} process --logger stream --param=DAY=mon day {shown}/workflow.yaml -- first 0\n"
    );
    let output = lab.output(&one);
    assert!(output.contains(&told), "{output}: only what the file declares is a parameter");
    assert_eq!(fs::read_to_string(dir.join("workflow.yaml")).unwrap(), FLOW);
    lab.close().await;
}

#[tokio::test]
async fn exit_codes_of_workflows_are_outcomes() {
    let mut lab = lab().await;
    let told = [
        (1, "the workflow failed"),
        (2, "the workflow was refused: it was refused here"),
        (130, "the workflow was interrupted"),
        (143, "the workflow was interrupted"),
        (9, "Exited with status 9: it was refused here"),
    ];
    for (number, (code, failure)) in (0..).zip(told) {
        let end = run(&mut lab, &attempt("codes", number), code).await;
        assert_eq!(end.exit_code, Some(i32::from(code)));
        assert_eq!(end.failure.as_deref(), Some(failure));
    }
    lab.close().await;
}

#[tokio::test]
async fn a_workflow_file_that_is_not_there_is_refused() {
    let lab = lab().await;
    let one = attempt("nofile", 0);
    let flow = json!({"workflow": {"file": "/no/such/flow.yaml"}});
    let refused = lab.backend.launch(&work(&one, &flow)).await.unwrap_err();
    assert!(refused.starts_with("cannot read the workflow `/no/such/flow.yaml`: "), "{refused}");
    lab.close().await;
}
