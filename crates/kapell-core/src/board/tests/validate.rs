use super::world::*;
use crate::board::action::{EmitProgress, Nested, Several, Timeout};
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
        env: vec![Variable::plain(nul(), nul())],
        user: Some(nul()),
    };
    let problems = validate::desired(&with_action(Action::Run(run)));
    assert_eq!(problems.len(), 6, "{problems:?}");
}

#[test]
fn the_name_of_a_variable_is_there_and_has_no_equals_sign() {
    for bad in ["", "A=B", "\0"] {
        let env = vec![Variable::plain(bad, "")];
        let text = problem(&DesiredLrp { env, ..web() });
        assert!(text.starts_with("env[0].name: must be non-empty"), "{text}");
    }
}

#[test]
fn a_variable_is_a_value_or_a_secret() {
    let with = |variable: Variable| DesiredLrp { env: vec![variable], ..web() };
    assert_eq!(validate::desired(&with(Variable::secret("A", "db-password"))), [""; 0]);
    let both = Variable { value: Some("x".to_owned()), ..Variable::secret("A", "b") };
    let none = Variable { secret: None, ..Variable::secret("A", "b") };
    for bad in [both, none] {
        let right = "env[0]: must have exactly one of `value` and `secret`";
        assert_eq!(problem(&with(bad)), right);
    }
    let text = problem(&with(Variable::secret("A", "a/b")));
    let right = "env[0].secret: must be 1 to 200 letters, digits, `-` or `_`, not `a/b`";
    assert_eq!(text, right);
}

#[test]
fn no_url_holds_a_password_and_none_is_repeated() {
    let (from, to) = ("https://ann:hunter2@host/file".to_owned(), "file".to_owned());
    let download = Download { from: from.clone(), to: to.clone(), checksum: None };
    let upload = Upload { from: to, to: from.clone() };
    let callback = TaskDefinition { completion_callback_url: from, ..definition() };
    let user = "HTTP://ann@host?x".to_owned();
    let by_name = TaskDefinition { completion_callback_url: user, ..definition() };
    for (problems, field) in [
        (validate::desired(&with_action(Action::Download(download))), "action.download.from: "),
        (validate::desired(&with_action(Action::Upload(upload))), "action.upload.to: "),
        (validate::task(&callback), "completion_callback_url: "),
        (validate::task(&by_name), "completion_callback_url: "),
    ] {
        let [text] = problems.as_slice() else { panic!("{problems:?}") };
        let rest = text.strip_prefix(field).unwrap();
        assert!(rest.starts_with("must not hold a user or a password"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let at = TaskDefinition {
        completion_callback_url: "https://host/a@b?c@d".to_owned(),
        ..definition()
    };
    assert_eq!(validate::task(&at), [""; 0]);
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
fn every_action_may_be_desired_wherever_one_stands() {
    let download = Download {
        from: "HTTPS://host/a.tgz".to_owned(),
        to: "app/a.tgz".to_owned(),
        checksum: Some(format!("sha256:{}", "0aF9".repeat(16))),
    };
    let upload = Upload { from: "./out..put".to_owned(), to: "http://host:1/p".to_owned() };
    let inner = vec![run("x"), Action::Download(download), Action::Upload(upload)];
    let several = || Several { actions: inner.clone() };
    let nested = |action: Action| Nested { action: Box::new(action) };
    let late = |action: Action| Timeout { action: Box::new(action), timeout_ms: 1 };
    let progress = EmitProgress {
        action: Box::new(Action::Codependent(several())),
        start_message: String::new(),
        success_message: String::new(),
        failure_message: String::new(),
    };
    let all = Action::Serial(Several {
        actions: vec![
            Action::Try(nested(Action::Parallel(several()))),
            Action::Timeout(late(Action::Serial(several()))),
            Action::EmitProgress(progress),
        ],
    });
    let lrp = DesiredLrp {
        setup: Some(all.clone()),
        monitor: Some(all.clone()),
        rootfs: Some("oci:///x".to_owned()),
        ..with_action(all.clone())
    };
    assert_eq!(validate::desired(&lrp), [""; 0]);
    let def =
        TaskDefinition { action: all, rootfs: Some("docker:///x".to_owned()), ..definition() };
    assert_eq!(validate::task(&def), [""; 0]);
}

#[test]
fn a_download_is_from_a_url_to_a_file_of_the_container() {
    let download = |from: &str, to: &str, checksum: Option<&str>| {
        let (from, to) = (from.to_owned(), to.to_owned());
        Action::Download(Download { from, to, checksum: checksum.map(str::to_owned) })
    };
    for good in ["http://host/x", "https://host:1/x?y#z", "file:///opt/x", "FILE:///x"] {
        assert_eq!(validate::desired(&with_action(download(good, "x", None))), [""; 0], "{good}");
    }
    for bad in [
        "",
        "x",
        "/x",
        "ftp://h/x",
        "file:x",
        "file://host/x",
        "file:///",
        "file:///a/../b",
        "http:///x",
        "http://a b/",
        "http://h/\0",
    ] {
        let text = problem(&with_action(download(bad, "x", None)));
        assert!(text.starts_with("action.download.from: must be a URL such as"), "{text}");
    }
    for bad in ["/x", "../x", "a/../b", "a/.."] {
        let text = problem(&with_action(download("http://h/x", bad, None)));
        let want = format!("action.download.to: must be a relative path without `..`, not `{bad}`");
        assert_eq!(text, want);
    }
    let short = format!("sha256:{}", "a".repeat(63));
    let odd = format!("sha256:{}", "g".repeat(64));
    let other = format!("sha1:{}", "a".repeat(64));
    for bad in ["", "a", "sha256:", &short, &odd, &other] {
        let text = problem(&with_action(download("http://h/x", "x", Some(bad))));
        assert!(text.starts_with("action.download.checksum: must be `sha256:` and 64"), "{text}");
    }
    let problems = validate::desired(&with_action(download("", "", Some(""))));
    let places = ["from: must be a URL", "to: must not be empty", "checksum: must be"];
    assert_eq!(problems.len(), places.len(), "{problems:?}");
    for (problem, place) in problems.iter().zip(places) {
        assert!(problem.starts_with(&format!("action.download.{place}")), "{problem}");
    }
}

#[test]
fn an_upload_is_from_a_file_of_the_container_to_a_url() {
    let upload = |from: &str, to: &str| {
        with_action(Action::Upload(Upload { from: from.to_owned(), to: to.to_owned() }))
    };
    assert_eq!(validate::desired(&upload("a/b", "http://host/x")), [""; 0]);
    for bad in ["", "x", "file:///x", "ftp://h/x", "https:///x"] {
        let text = problem(&upload("x", bad));
        assert!(text.starts_with("action.upload.to: must be a URL such as"), "{text}");
    }
    for (bad, why) in [
        ("", "must not be empty"),
        ("/etc/shadow", "must be a relative path without `..`, not `/etc/shadow`"),
        ("a/../../b", "must be a relative path without `..`, not `a/../../b`"),
        ("a\0", "must not contain a NUL byte"),
    ] {
        assert_eq!(problem(&upload(bad, "http://h/x")), format!("action.upload.from: {why}"));
    }
}

#[test]
fn a_recipe_is_made_of_at_most_256_actions() {
    let wide = |count| Action::Parallel(Several { actions: vec![run("x"); count] });
    assert_eq!(validate::desired(&with_action(wide(255))), [""; 0]);
    let text = problem(&with_action(wide(256)));
    assert_eq!(text, "action: must be made of at most 256 actions, not 257");
    let text = problem(&DesiredLrp { setup: Some(wide(300)), ..web() });
    assert!(text.starts_with("setup: must be made of at most 256 actions"), "{text}");
}

fn http(port: u16, path: &str) -> Check {
    Check { http: Some(HttpCheck { port, path: path.to_owned() }), ..Check::default() }
}

fn tcp(port: u16) -> Check {
    Check { tcp: Some(TcpCheck { port }), ..Check::default() }
}

fn checked(check: Check) -> DesiredLrp {
    DesiredLrp { ports: vec![8080, 9090], check: Some(check), ..web() }
}

#[test]
fn a_check_asks_one_thing_of_one_of_the_ports() {
    for good in [http(8080, "/"), http(9090, "/healthz?x=1"), tcp(9090)] {
        assert_eq!(validate::desired(&checked(good.clone())), [""; 0]);
        let lrp = DesiredLrp { readiness: Some(tcp(8080)), ..checked(good) };
        assert_eq!(validate::desired(&lrp), [""; 0]);
    }
    let right = "check: must have exactly one of `http` and `tcp`";
    assert_eq!(problem(&checked(Check::default())), right);
    assert_eq!(problem(&checked(Check { tcp: tcp(8080).tcp, ..http(8080, "/") })), right);
    assert_eq!(problem(&checked(http(80, "/"))), "check.http.port: must be one of `ports`, not 80");
    assert_eq!(problem(&checked(tcp(0))), "check.tcp.port: must be one of `ports`, not 0");
    for bad in ["", "x", "/a b", "/a\r\nHost: b"] {
        let text = problem(&checked(http(8080, bad)));
        assert!(text.starts_with("check.http.path: must begin with `/`"), "{text}");
    }
    let lrp = DesiredLrp { readiness: Some(tcp(1)), ..checked(tcp(2)) };
    let want = [
        "check.tcp.port: must be one of `ports`, not 2",
        "readiness.tcp.port: must be one of `ports`, not 1",
    ];
    assert_eq!(validate::desired(&lrp), want);
}

#[test]
fn whether_it_is_well_is_found_out_in_one_way() {
    let lrp = DesiredLrp { monitor: Some(run("x")), ..checked(tcp(8080)) };
    assert_eq!(problem(&lrp), "check: cannot stand beside `monitor`; leave one of them out");
    let lrp = DesiredLrp { check: None, readiness: Some(tcp(8080)), ..lrp };
    assert_eq!(validate::desired(&lrp), [""; 0], "being ready is another question");
}

#[test]
fn a_check_is_written_as_short_as_it_can_be() {
    let read = |text: &str| serde_json::from_str::<Check>(text).unwrap();
    let text = r#"{"http":{"port":8080}}"#;
    assert_eq!(read(text), http(8080, "/"));
    assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
    assert_eq!(read(text).timeout(), Check::USUAL_TIMEOUT);
    let text = r#"{"tcp":{"port":1},"every_ms":5,"timeout_ms":7}"#;
    assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
    assert_eq!(read(text).timeout(), std::time::Duration::from_millis(7));
    serde_json::from_str::<Check>(r#"{"udp":{"port":1}}"#).unwrap_err();
    let plain = serde_json::to_value(web()).unwrap();
    for field in ["check", "readiness", "cpu_millis", "log_rate"] {
        assert_eq!(plain.get(field), None, "{field}");
    }
}

#[test]
fn a_message_never_garbles_a_terminal() {
    let text = problem(&DesiredLrp { process_guid: "\u{1b}[2J".into(), ..web() });
    assert!(!text.contains('\u{1b}'), "{text}");
}
