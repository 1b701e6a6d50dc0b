//! Secrets, from being set to being known by work, and nowhere else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Site;
use super::site::{WORK, ask};
use crate::bench::Ran;
use crate::running::send;
use crate::terminal::pty::Terminal;

const OLD: &str = "correct-horse-battery-staple";
const NEW: &str = "tr0ub4dor-and-more";
/// The same with each letter moved on by one, so that it can be told that it is known.
const MOVED_OLD: &str = "dpssfdu-ipstf-cbuufsz-tubqmf";
const MOVED_NEW: &str = "us0vc4eps-boe-npsf";
const TELL: &str = "echo \"<$DB_PASSWORD>\"; printf %s \"$DB_PASSWORD\" | tr a-y b-z; echo;";

/// Sets a secret by standard input, as a pipe would bring it.
fn set(site: &Site, name: &str, value: &str) -> Ran {
    let file = site.bench.path("value");
    fs::write(&file, format!("{value}\n")).expect("a file");
    let mut command = site.bench.kapell(&["secret", "set", name, "--domain", "shop"]);
    command.env("KAPELL_URL", site.url()).stdin(File::open(&file).expect("a file"));
    let ran = site.bench.run_command(command);
    fs::remove_file(&file).expect("our own");
    ran
}

/// The files below a directory that have this in them.
fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

#[track_caller]
fn assert_nowhere(site: &Site, text: &str) {
    assert_eq!(files_with(site.bench.dir(), text), Vec::<PathBuf>::new());
    assert_eq!(crate::census::running(|command| command.contains(text)), []);
}

fn logs(site: &Site, what: &str) -> String {
    site.kapell(&["logs", what]).stdout
}

/// Applies a process of domain `shop` that tells what it knows, and waits.
fn apply(site: &Site) {
    let mark = &site.lrp("web", 1, "")["env"][0]["value"];
    let text = format!(
        "kind: lrp\nprocess_guid: web\ndomain: shop\naction:\n  run:\n    path: /bin/sh\n    args: [-c, '{TELL} \
         while :; do sleep 0.1; done']\nenv: {{{WORK}: {mark}, DB_PASSWORD: {{secret: db-password}}}}\n"
    );
    site.bench.write("web.yaml", text);
    site.kapell(&["apply", "-f", "web.yaml"]).expect(0);
}

#[test]
fn work_knows_its_secret_and_it_is_in_plain_text_nowhere_else() {
    let mut site = Site::up();
    set(&site, "db-password", OLD).expect(0).stderr_has("is set (version 1)");
    apply(&site);
    site.all_run("web", 1);
    site.until("it tells what it knows", || logs(&site, "web/0").contains(MOVED_OLD).then_some(()));
    assert_eq!(logs(&site, "web/0"), format!("<***>\n{MOVED_OLD}\n"));
    assert_nowhere(&site, OLD);
    // Rotation: whatever is started from now on has the new one.
    set(&site, "db-password", NEW).expect(0).stderr_has("is set (version 2)");
    for process in site.work() {
        send(process.pid, Signal::SIGKILL);
    }
    site.until("it has the new one", || logs(&site, "web/0").contains(MOVED_NEW).then_some(()));
    let task = json!({
        "task_guid": "job", "domain": "shop",
        "action": {"run": {
            "path": "/bin/sh", "args": ["-c", format!("{TELL} echo \"bad $DB_PASSWORD\" >&2; exit 3")],
            "env": [{"name": "DB_PASSWORD", "secret": "db-password"}],
        }},
    });
    site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    let done = site.completed("job").to_string();
    assert!(done.contains("bad ***") && done.contains("\"secret\":\"db-password\""), "{done}");
    let shown = site.kapell(&["lrp", "show", "web", "-o", "yaml"]).expect(0).stdout;
    assert!(shown.contains("secret: db-password"), "{shown}");
    let listed = site.kapell(&["secret", "list"]).expect(0).stdout;
    assert!(listed.contains("db-password") && listed.contains("shop"), "{listed}");
    let told = site.kapell(&["events", "-o", "json"]).expect(0).stdout;
    assert!(told.contains("\"job\"") && told.contains("db-password"), "{told}");
    let audit = site.kapell(&["audit", "-o", "json"]).expect(0).stdout;
    assert!(audit.contains("setSecret") && audit.contains("db-password"), "{audit}");
    let explained =
        site.kapell(&["explain", "web/0"]).stdout + &site.kapell(&["explain", "job"]).stdout;
    let figures = site.ask("GET", "/metrics", None).body + &site.ask("GET", "/lrps/web", None).body;
    let said = site.end(Signal::SIGINT);
    for text in [OLD, NEW] {
        assert_nowhere(&site, text);
        for told in
            [&told, &audit, &shown, &listed, &explained, &figures, &said.stdout, &said.stderr]
        {
            assert!(!told.contains(text), "{told}");
        }
    }
}

#[test]
fn work_whose_secret_is_missing_says_so_and_starts_once_it_is_set() {
    let mut site = Site::up();
    apply(&site);
    let missing = "secret \"db-password\" of domain \"shop\" is not set: kapell secret set db-password --domain shop";
    site.explains("web/0", missing);
    // It has crashed so often that it would be waited with.
    site.kapell(&["lrp", "delete", "web"]).expect(0);
    site.until("it is gone", || site.instances("web").is_empty().then_some(()));
    set(&site, "db-password", OLD).expect(0);
    apply(&site);
    site.until("it tells what it knows", || logs(&site, "web/0").contains(MOVED_OLD).then_some(()));
    // It outlives the host, however that ends, and is gone when it is removed.
    site.kill();
    site.start(&[]);
    let remove = ["secret", "remove", "db-password", "--domain", "shop"];
    let listed =
        site.kapell(&["secret", "list", "--domain", "shop", "-o", "json"]).expect(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!((&listed[0]["name"], &listed[0]["version"]), (&json!("db-password"), &json!(1)));
    site.kapell(&remove).expect(0);
    site.kapell(&remove).expect(1).stderr_has("secret `db-password`");
    for process in site.work() {
        send(process.pid, Signal::SIGKILL);
    }
    site.explains("web/0", missing);
}

#[test]
fn nobody_reads_a_secret_back_and_domains_are_kept_apart() {
    let site = Site::up();
    set(&site, "db-password", OLD).expect(0);
    apply(&site);
    let web = site.all_run("web", 1)[0].clone();
    let token = |role: &str, more: &[&str]| {
        let create = ["token", "create", "--name", "ci", "--role", role];
        site.kapell(&[&create[..], more].concat()).expect(0).stdout.trim().to_owned()
    };
    let (operator, reader) =
        (token("operator", &["--domain", "bank"]), token("reader", &["--domain", "shop"]));
    let everything = token("operator", &[]);
    let as_ = |token: &str, method: &str, path: &str, body: Option<&Value>| {
        ask(site.port, token, method, path, body).expect("an answer")
    };
    let value = json!({"value": "x"});
    let (path, own) = ("/v1/secrets/shop/db-password", "/v1/secrets/bank/pin");
    as_(&operator, "PUT", path, Some(&value)).expect(403);
    as_(&operator, "DELETE", path, None).expect(403);
    as_(&operator, "PUT", own, Some(&value)).expect(200);
    as_(&operator, "GET", "/v1/secrets?domain=shop", None).expect(403);
    assert_eq!(as_(&operator, "GET", "/v1/secrets", None).expect(200).json()[0]["name"], "pin");
    as_(&reader, "PUT", path, Some(&value)).expect(403);
    let seen = as_(&reader, "GET", "/v1/secrets", None).expect(200);
    assert_eq!(seen.json().as_array().expect("a list").len(), 1, "{}", seen.body);
    as_(&reader, "GET", path, None).expect(405);
    let cell = web["cell_id"].as_str().expect("a cell");
    let key = json!({"process_guid": "web", "index": 0});
    let holder = json!({"lrp": {"key": key, "instance_guid": web["instance_guid"]}});
    let take = |cell: &str| format!("/v1/cells/{cell}/secrets");
    for token in [&operator, &reader, &everything] {
        let refused = as_(token, "POST", &take(cell), Some(&holder)).expect(403);
        assert!(!refused.body.contains(OLD), "{}", refused.body);
    }
    // A cell gets what is placed there, and nothing else.
    let given = site.ask("POST", &take(cell), Some(&holder)).expect(200).json();
    assert_eq!(given, json!([{"name": "db-password", "value": OLD}]));
    let refused = site.ask("POST", &take("other"), Some(&holder)).expect(409).json();
    assert_eq!(refused["code"], "not_placed");
    let other = json!({"lrp": {"key": key, "instance_guid": "other"}});
    site.ask("POST", &take(cell), Some(&other)).expect(409);
    let bad = site.ask("PUT", "/v1/secrets/shop/a%20b", Some(&json!({"value": ""}))).expect(422);
    assert!(
        bad.body.contains("name: must be") && bad.body.contains("value: must not"),
        "{}",
        bad.body
    );
}

#[test]
fn at_a_terminal_a_value_is_asked_for_and_not_shown() {
    let site = Site::up();
    let url = site.url();
    let script = "$KAPELL secret set pin --domain shop; echo ended $?; stty -a; cat";
    let shows = |rows: &[String], text: &str| rows.iter().filter(|row| row.contains(text)).count();
    let type_in = |keys: &str, end: &str, code: u8| {
        let mut screen =
            Terminal::run(site.bench.dir(), script, &[("KAPELL_URL", &url)], (24, 100));
        screen.until("it asks", |rows| shows(rows, "Value (it is not shown):") == 1);
        screen.types(keys.as_bytes());
        screen.until("it ends", |rows| {
            shows(rows, end) == 1 && shows(rows, &format!("ended {code}")) == 1
        });
        // The terminal is as it was.
        screen
            .until("what it is", |rows| shows(rows, " echo ") == 1 && shows(rows, " icanon") == 1);
        assert_eq!(shows(&screen.everything(), "hunter"), 0);
    };
    type_in("hunter\u{3}", "nothing was set", 1);
    type_in("hunterü\u{7f}2\r", "is set (version 1)", 0);
    let script = "printf %s \"$PIN\" | tr a-y b-z > result";
    let task = json!({
        "task_guid": "job", "domain": "shop", "result_file": "result",
        "action": {"run": {
            "path": "/bin/sh", "args": ["-c", script], "env": [{"name": "PIN", "secret": "pin"}],
        }},
    });
    site.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    assert_eq!(site.completed("job")["result"], "ivoufs2");
}
