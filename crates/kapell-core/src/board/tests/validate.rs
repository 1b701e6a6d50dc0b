use super::world::*;
use crate::board::action::{Nested, Several, Timeout};
use crate::board::validate;
use crate::board::*;

fn problem(lrp: &DesiredLrp) -> String {
    let problems = validate::desired(lrp);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.into_iter().next().unwrap()
}

fn with_action(action: Action) -> DesiredLrp {
    DesiredLrp { action, ..web() }
}

fn run(path: &str) -> Action {
    Action::Run(Run { path: path.to_owned(), ..Run::default() })
}

fn nested(depth: usize) -> Action {
    (1..depth).fold(run("x"), |action, _| Action::Try(Nested { action: Box::new(action) }))
}

#[test]
fn a_good_desired_lrp_and_a_good_task_have_no_problem() {
    assert_eq!(validate::desired(&web()), [""; 0]);
    assert_eq!(validate::task(&definition()), [""; 0]);
    assert_eq!(validate::unsupported_in_desired(&web()), [""; 0]);
    assert_eq!(validate::unsupported_in_task(&definition()), [""; 0]);
}

#[test]
fn a_guid_is_letters_digits_dashes_and_underscores() {
    for bad in ["", "a b", "a/b", "ä", "a\n", &"x".repeat(201)] {
        let text = problem(&DesiredLrp { process_guid: bad.into(), ..web() });
        assert!(text.starts_with("process_guid: must be 1 to 200 letters"), "{text}");
    }
    for good in ["a", "A_1-b", &"x".repeat(200)] {
        assert_eq!(validate::desired(&DesiredLrp { process_guid: good.into(), ..web() }), [""; 0]);
    }
}

#[test]
fn a_domain_is_printable_text_without_a_slash() {
    for bad in ["", "a/b", "a\nb", &"x".repeat(201)] {
        let text = problem(&DesiredLrp { domain: bad.into(), ..web() });
        assert!(text.starts_with("domain: "), "{text}");
    }
    assert_eq!(validate::domain(&"cf apps.v1".into()), [""; 0]);
}

#[test]
fn a_rootfs_is_a_url_with_a_scheme() {
    for bad in ["", "ubuntu", ":x", "docker:", "1a:x", "a b:x"] {
        let text = problem(&DesiredLrp { rootfs: Some(bad.to_owned()), ..web() });
        assert!(text.starts_with("rootfs: must be a URL with a scheme"), "{text}");
    }
    for good in ["docker:///busybox#1", "preloaded:cflinuxfs4", "oci:///var/img"] {
        let lrp = DesiredLrp { rootfs: Some(good.to_owned()), ..web() };
        assert_eq!(validate::desired(&lrp), [""; 0]);
    }
}

#[test]
fn texts_and_routes_have_a_size() {
    let long = problem(&DesiredLrp { annotation: "x".repeat(10 * 1024 + 1), ..web() });
    assert_eq!(long, "annotation: must be at most 10 KiB, not 10241 bytes");
    let routes = [("r".to_owned(), "x".repeat(128 * 1024).into())].into();
    let text = problem(&DesiredLrp { routes, ..web() });
    assert!(text.starts_with("routes: must be at most 128 KiB"), "{text}");
    let args = vec!["x".repeat(210 * 1024)];
    let text =
        problem(&with_action(Action::Run(Run { path: "x".to_owned(), args, ..Run::default() })));
    assert!(text.starts_with("the whole DesiredLRP: must be at most 200 KiB"), "{text}");
}

#[test]
fn there_are_at_most_100_000_instances() {
    let text = problem(&DesiredLrp { instances: 100_001, ..web() });
    assert_eq!(text, "instances: must be at most 100000, not 100001");
}

#[test]
fn ports_are_numbers_that_are_named_once() {
    assert_eq!(
        problem(&DesiredLrp { ports: vec![0], ..web() }),
        "ports: must be 1 to 65535, not 0"
    );
    let twice = problem(&DesiredLrp { ports: vec![80, 443, 80], ..web() });
    assert_eq!(twice, "ports: must name each port once, not 80 again");
}

#[test]
fn actions_are_checked_through_and_through() {
    let empty = Action::Parallel(Several { actions: vec![] });
    let late = Action::Timeout(Timeout { action: Box::new(run("x")), timeout_ms: 0 });
    let several = Several { actions: vec![run(""), late, empty] };
    let problems = validate::desired(&with_action(Action::Serial(several)));
    assert_eq!(
        problems,
        [
            "action.serial.actions[0].run.path: must not be empty",
            "action.serial.actions[1].timeout.timeout_ms: must be more than 0",
            "action.serial.actions[2].parallel.actions: must hold at least one action",
        ]
    );
}

#[test]
fn actions_are_nested_at_most_so_deep() {
    assert_eq!(validate::desired(&with_action(nested(16))), [""; 0]);
    assert!(problem(&with_action(nested(17))).contains("must be nested at most 16 deep"));
}

#[test]
fn no_text_for_a_process_holds_a_nul_byte() {
    let nul = || "a\0b".to_owned();
    let run = Run {
        path: nul(),
        args: vec![nul()],
        dir: Some(nul()),
        env: vec![EnvVar { name: nul(), value: nul() }],
        user: Some(nul()),
    };
    let problems = validate::desired(&with_action(Action::Run(run)));
    assert_eq!(problems.len(), 6, "{problems:?}");
}

#[test]
fn the_name_of_a_variable_is_there_and_has_no_equals_sign() {
    for bad in ["", "A=B", "\0"] {
        let env = vec![EnvVar { name: bad.to_owned(), value: String::new() }];
        let text = problem(&DesiredLrp { env, ..web() });
        assert!(text.starts_with("env[0].name: must be non-empty"), "{text}");
    }
}

#[test]
fn a_callback_is_an_http_url() {
    for bad in ["x", "ftp://host/", "http://", "https:///path", "http://a b/", "http:host"] {
        let def = TaskDefinition { completion_callback_url: bad.to_owned(), ..definition() };
        let problems = validate::task(&def);
        assert_eq!(problems.len(), 1, "{bad}");
        assert!(problems[0].starts_with("completion_callback_url: must be a URL"), "{problems:?}");
    }
    for good in ["http://host", "HTTPS://host:1/p?q", "http://[::1]:8080/done"] {
        let def = TaskDefinition { completion_callback_url: good.to_owned(), ..definition() };
        assert_eq!(validate::task(&def), [""; 0], "{good}");
    }
}

#[test]
fn all_problems_of_a_task_are_told_at_once() {
    let def = TaskDefinition {
        task_guid: "".into(),
        domain: "".into(),
        rootfs: Some("x".to_owned()),
        placement_tags: vec![String::new()],
        action: run(""),
        result_file: "\0".to_owned(),
        completion_callback_url: "x".to_owned(),
        annotation: "x".repeat(10 * 1024 + 1),
        ..definition()
    };
    let problems = validate::task(&def);
    let fields = [
        "task_guid",
        "domain",
        "rootfs",
        "placement_tags",
        "action.run.path",
        "result_file",
        "completion_callback_url",
        "annotation",
    ];
    assert_eq!(problems.len(), fields.len(), "{problems:?}");
    for (problem, field) in problems.iter().zip(fields) {
        assert!(problem.starts_with(&format!("{field}: ")), "{problem}");
    }
}

#[test]
fn what_cells_cannot_run_yet_is_refused() {
    let parallel = Action::Parallel(Several { actions: vec![run("x")] });
    let text = "action: `parallel` cannot be run by cells yet; use `run`";
    assert_eq!(validate::unsupported(&parallel), [text]);
    let lrp = DesiredLrp {
        setup: Some(run("x")),
        monitor: Some(run("x")),
        rootfs: Some("oci:///x".to_owned()),
        ..with_action(parallel)
    };
    let texts = validate::unsupported_in_desired(&lrp);
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert!(texts[3].contains("only the process driver is there"));
    let def = TaskDefinition { rootfs: Some("oci:///x".to_owned()), ..definition() };
    assert_eq!(validate::unsupported_in_task(&def).len(), 1);
}

#[test]
fn a_message_never_garbles_a_terminal() {
    let text = problem(&DesiredLrp { process_guid: "\u{1b}[2J".into(), ..web() });
    assert!(!text.contains('\u{1b}'), "{text}");
}
