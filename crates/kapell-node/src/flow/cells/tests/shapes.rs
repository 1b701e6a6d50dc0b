use kapell_backend::executor::{Error, Job};
use kapell_core::board::{Run, TaskGuid};
use kapell_core::workflow::OnCell;

use super::super::{definition, name};

fn of(job: &Job) -> Result<Run, Error> {
    let definition = definition::of(job, TaskGuid::new("g"), &OnCell::default(), String::new())?;
    Ok(definition.action.into_run().expect("a program to run"))
}

#[test]
fn a_task_is_named_after_its_step() {
    for (step, want) in [
        ("build", "build-00000000000000ff"),
        ("tests (unit)/ü", "tests--unit-00000000000000ff"),
        ("handlers.exit", "handlers-exit-00000000000000ff"),
        ("日本", "-00000000000000ff"),
    ] {
        let guid = name(step, 255);
        assert_eq!(guid.as_str(), want);
        assert!(guid.is_valid());
    }
    assert!(name(&"x".repeat(10_000), 1).is_valid());
}

#[test]
fn a_shell_is_asked_where_it_may_have_to_be() {
    let otherwise = Some(("sh".into(), vec!["-c".into(), "make all".into()]));
    let job = Job { program: "make".into(), args: vec!["all".into()], otherwise, ..Job::default() };
    let run = of(&job).unwrap();
    assert_eq!((run.path.as_str(), run.args), ("sh", vec!["-c".to_owned(), "make all".to_owned()]));
}

#[test]
fn what_no_cell_can_do_is_refused_here() {
    let plain = || Job { program: "x".into(), ..Job::default() };
    let error = of(&Job { dir: Some("here".into()), ..plain() }).unwrap_err();
    assert!(error.to_string().contains("`dir: here` is relative"), "{error}");
    let long = "x".repeat(128 << 10);
    let error = of(&Job { args: vec![long.clone().into()], ..plain() }).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let env = vec![("A".into(), long.clone().into()), ("B".into(), long.into())];
    let error = of(&Job { env, ..plain() }).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let error = of(&Job { env: vec![("A=".into(), "x".into())], ..plain() }).unwrap_err();
    assert!(error.to_string().contains("without `=`"), "{error}");
    let bad: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(vec![0xff]);
    let error = of(&Job { args: vec![bad], ..plain() }).unwrap_err();
    assert!(error.to_string().contains("is not UTF-8"), "{error}");
}
