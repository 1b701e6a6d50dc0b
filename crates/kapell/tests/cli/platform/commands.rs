//! `kapell apply`, `lrp`, `domain` and `cells`, as people use them.

use std::fs::File;

use serde_json::{Value, json};

use super::Site;
use super::life::STAYS;
use crate::bench::Ran;

const WEB: &str = "
kind: lrp
process_guid: web
domain: test
instances: 2
action: {run: {path: sleep, args: ['1000']}}
";

pub(super) const JOB: &str = "
kind: task
task_guid: job
domain: test
action: {run: {path: 'true'}}
";

pub(crate) fn parsed(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

pub(super) fn from_stdin(site: &Site, args: &[&str], file: &str) -> Ran {
    let mut command = site.bench.kapell(args);
    command.env("KAPELL_URL", site.url());
    command.stdin(File::open(site.bench.path(file)).expect("a file"));
    site.bench.run_command(command)
}

#[test]
fn files_directories_and_standard_input_are_applied_once() {
    let site = Site::up();
    std::fs::create_dir(site.bench.path("dir")).expect("a directory");
    site.bench.write("dir/web.yaml", WEB);
    site.bench.write("dir/job.yml", JOB);
    site.bench.write(
        "dir/other.json",
        json!({
            "kind": "lrp", "process_guid": "other", "domain": "test", "instances": 0,
            "action": {"run": {"path": "true"}},
        })
        .to_string(),
    );
    site.bench.write("dir/notes.txt", "not ours: {");
    let dry = site.kapell(&["apply", "-f", "dir", "--dry-run"]).expect(0);
    let would = "task/job would be created\nlrp/other would be created\nlrp/web would be created\n";
    assert_eq!(dry.stdout, would);
    assert_eq!((site.get("/v1/desired-lrps"), site.get("/v1/tasks")), (json!([]), json!([])));
    let applied = site.kapell(&["apply", "-f", "dir"]).expect(0);
    assert_eq!(applied.stdout, would.replace("would be ", ""));
    let again = site.kapell(&["apply", "-f", "dir"]).expect(0);
    assert_eq!(again.stdout, "task/job unchanged\nlrp/other unchanged\nlrp/web unchanged\n");
    site.bench.write("more.yaml", format!("{}---\n{JOB}", WEB.replace('2', "3")));
    let changed = from_stdin(&site, &["apply", "-f", "-", "--dry-run"], "more.yaml").expect(0);
    assert_eq!(changed.stdout, "lrp/web would be updated (instances)\ntask/job unchanged\n");
    let changed = from_stdin(&site, &["apply", "-f", "-"], "more.yaml").expect(0);
    assert_eq!(changed.stdout, "lrp/web updated (instances)\ntask/job unchanged\n");
    assert_eq!(site.get("/v1/desired-lrps/web")["instances"], 3);
    // Without a number the one that stands stays.
    site.bench.write("bare.yaml", WEB.replace("instances: 2\n", ""));
    let bare = site.kapell(&["apply", "-f", "bare.yaml"]).expect(0);
    assert_eq!(bare.stdout, "lrp/web unchanged\n");
}

#[test]
fn what_shows_a_process_can_be_applied_again() {
    let site = Site::up();
    site.bench.write("web.yaml", WEB.to_owned() + "annotation: \"a: 'b' # c\"\nports: [8080]\n");
    site.kapell(&["apply", "-f", "web.yaml"]).expect(0);
    site.all_run("web", 2);
    for output in ["yaml", "json"] {
        let shown = site.kapell(&["lrp", "show", "web", "--output", output]).expect(0);
        site.bench.write("shown", shown.stdout);
        let again = site.kapell(&["apply", "-f", "shown"]).expect(0);
        assert_eq!(again.stdout, "lrp/web unchanged\n", "{output}");
    }
}

#[test]
fn a_refused_change_names_its_fields_and_changes_nothing() {
    let site = Site::up();
    site.bench.write("web.yaml", WEB);
    site.bench.write("job.yaml", JOB);
    site.kapell(&["apply", "-f", "web.yaml", "-f", "job.yaml"]).expect(0);
    let before = site.get("/v1/desired-lrps/web");
    let new = WEB.replace("process_guid: web", "process_guid: new");
    let other = WEB.replace("1000", "2000").replace("domain: test", "domain: moved");
    let other_job = JOB.replace("'true'", "'false'");
    site.bench.write("all.yaml", format!("{new}---\n{other}---\n{other_job}"));
    let refused = site.kapell(&["apply", "-f", "all.yaml"]).expect(1);
    assert_eq!(
        refused.stdout,
        "lrp/web refused: action, domain differ\ntask/job refused: action differs\n"
    );
    refused.stderr_has("nothing was changed");
    assert_eq!(site.get("/v1/desired-lrps"), json!([before]));
}

#[test]
fn bad_files_are_told_with_every_place_and_nothing_is_applied() {
    let site = Site::up();
    site.bench.write("good.yaml", WEB);
    let bad =
        "kind: lrp\nprocess_guid: a b\ninstances: -1\ncolour: red\naction: {run: {path: ''}}\n";
    site.bench.write("bad.yaml", bad);
    site.bench.write("worse.yaml", "kind: lrp\n  process_guid: [\n");
    site.bench.write("twice.yaml", WEB);
    let files = ["good.yaml", "bad.yaml", "worse.yaml", "twice.yaml"];
    let args: Vec<&str> =
        ["apply"].into_iter().chain(files.iter().flat_map(|file| ["-f", file])).collect();
    let ran = site.kapell(&args).expect(2);
    for text in [
        "bad.yaml:1:1",
        "has no `domain`",
        "bad.yaml:2:15",
        "process_guid: must be",
        "bad.yaml:3:12",
        "`instances` must be a whole number",
        "bad.yaml:4:1",
        "unknown key `colour`",
        "bad.yaml:5:22",
        "action.run.path: must not be empty",
        "worse.yaml:2",
        "twice.yaml:3:15",
        "lrp/web stands at good.yaml:3 already",
    ] {
        ran.stderr_has(text);
    }
    assert_eq!((ran.stdout.as_str(), site.get("/v1/desired-lrps")), ("", json!([])));
    site.kapell(&["apply", "-f", "none.yaml"]).expect(2).stderr_has("cannot read `none.yaml`");
    site.kapell(&["apply"]).expect(2);
}

#[test]
fn processes_are_run_listed_shown_scaled_and_deleted() {
    let site = Site::up();
    let nothing = site.kapell(&["lrp", "list"]).expect(0);
    assert_eq!(nothing.stdout, "no long-running processes\n");
    let run =
        ["lrp", "run", "web", "--instances", "2", "--port", "80", "-e", "A=B", "--", "sh", "-c"];
    let run: Vec<&str> = run.into_iter().chain(["echo $A; exec sleep 1000"]).collect();
    site.kapell(&run).expect(0).stderr_has("web is to run");
    site.kapell(&run).expect(0);
    site.kapell(&["lrp", "run", "web", "--", "false"]).expect(1).stderr_has("differs in");
    site.kapell(&["lrp", "run", "a b", "--instances", "100001", "--", "x"])
        .expect(1)
        .stderr_has("process_guid: must be")
        .stderr_has("instances: must be at most");
    site.kapell(&["wait", "lrp/web"]).expect(0);
    let list = site.kapell(&["lrp", "list"]).expect(0);
    list.stdout_has("PROCESS").stdout_has("2/2").stdout_has("running");
    let json = parsed(&site.kapell(&["lrp", "ls", "--output", "json"]).expect(0));
    assert_eq!(json[0]["actual_lrps"].as_array().map(Vec::len), Some(2));
    let shown = site.kapell(&["lrp", "show", "web"]).expect(0);
    shown.stdout_has("process    web").stdout_has("RUNNING").stdout_has("127.0.0.1:");
    site.kapell(&["lrp", "scale", "web", "1"]).expect(0).stderr_has("web scaled to 1");
    site.all_run("web", 1);
    assert_eq!(site.kapell(&["logs", "web/0"]).expect(0).stdout, "B\n");
    site.desire("second", 1, STAYS);
    let gone = site.kapell(&["lrp", "rm", "web", "second"]).expect(0);
    gone.stderr_has("web deleted").stderr_has("second deleted");
    site.kapell(&["lrp", "delete", "web"]).expect(1).stderr_has("there is no desired LRP `web`");
    for args in [&["lrp", "show", "web"][..], &["lrp", "scale", "web", "2"]] {
        site.kapell(args).expect(1).stderr_has("there is no desired LRP `web`");
    }
    site.kapell(&["lrp", "scale", "web", "many"]).expect(2);
}

#[test]
fn domains_and_cells_are_shown_and_set() {
    let site = Site::up();
    assert_eq!(site.kapell(&["domain", "list"]).expect(0).stdout, "no domains\n");
    let set = site.kapell(&["domain", "set", "apps", "--ttl", "2m"]).expect(0);
    set.stderr_has("apps is fresh for 2m");
    site.kapell(&["domain", "set", "always"]).expect(0).stderr_has("always is fresh for ever");
    let list = site.kapell(&["domain", "list"]).expect(0);
    list.stdout_has("never").stdout_has("fresh");
    assert!(list.stdout.contains("in 1m5"), "{}", list.stdout);
    let json = parsed(&site.kapell(&["domain", "list", "-o", "json"]).expect(0));
    assert_eq!((&json[0]["domain"], &json[1]["fresh"]), (&json!("always"), &json!(true)));
    site.kapell(&["domain", "list", "-o", "yaml"]).expect(0).stdout_has("- domain: always");
    site.kapell(&["domain", "set", "apps", "--ttl", "soon"]).expect(2);
    let cells = site.kapell(&["cells"]).expect(0);
    cells.stdout_has("local").stdout_has("present");
    assert_eq!(parsed(&site.kapell(&["cells", "-o", "json"]).expect(0))[0]["cell_id"], "local");
    let none = site.kapell(&["cells", "evacuate", "none"]).expect(1);
    none.stderr_has("there is no cell `none`");
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
    site.kapell(&["cells", "--watch", "evacuate", "local"]).expect(2).stderr_has("--watch");
    let dir = site.bench.path("state").display().to_string();
    site.kapell(&["cells", "--state-dir", &dir, "evacuate", "local"])
        .expect(0)
        .stderr_has("local is being evacuated");
    site.until("it to say so", || {
        site.kapell(&["cells"]).stdout.contains("evacuating").then_some(())
    });
}

#[test]
fn it_is_explained_why_things_are_as_they_are() {
    let site = Site::up();
    site.desire("web", 1, STAYS);
    site.all_run("web", 1);
    let why = site.kapell(&["explain", "lrp/web/0"]).expect(0);
    why.stdout_has("lrp/web/0: ").stdout_has("local");
    why.stdout_has("rule: as desired: nothing is to be done").stdout_has("state=RUNNING");
    let same = parsed(&site.kapell(&["explain", "web/0", "-o", "json"]).expect(0));
    assert_eq!(same["subject"], "lrp/web/0");
    assert_eq!(same["rule"], "as desired: nothing is to be done");
    site.kapell(&["lrp", "run", "huge", "--memory", "4000000000", "--", "true"]).expect(0);
    site.explains("lrp/huge/0", "insufficient resources: memory");
    let why = site.kapell(&["explain", "lrp/huge/0"]).expect(0);
    why.stdout_has("rule: auction: what fits on no cell is carried over to the next batch")
        .stdout_has("memory_mb=4000000000")
        .stdout_has("to change it: start a cell with at least 4000000000 MB of memory")
        .stdout_has("next try in ");
    let json = parsed(&site.kapell(&["explain", "huge/0", "-o", "json"]).expect(0));
    assert!(json["next_try_at"].is_i64() && json["remedies"].is_array(), "{json}");
    site.kapell(&["explain", "cell/local"]).expect(0).stdout_has("cell/local: ");
    site.kapell(&["explain", "task/none"]).expect(1).stderr_has("there is no task `none`");
    let whole = site.kapell(&["explain", "lrp/web"]).expect(0);
    whole.stdout_has("lrp/web: of `web` 1 of 1 desired instance run");
    site.kapell(&["explain", "lrp/none"]).expect(1).stderr_has("there is no process `none`");
    site.kapell(&["explain", "lrp/web/x"]).expect(2).stderr_has("`x` is no index");
}

#[test]
fn watching_into_a_pipe_prints_again_whatever_changed() {
    let site = Site::up();
    let mut text = site.begin(&["domain", "list", "--watch"]);
    let mut json = site.begin(&["domain", "list", "--watch", "-o", "json"]);
    text.until("no domains\n");
    json.until("[]\n");
    site.kapell(&["domain", "set", "one"]).expect(0);
    text.until("one     fresh  never\n");
    json.until("\"one\"");
    for watcher in [text, json] {
        watcher.signal(nix::sys::signal::Signal::SIGINT);
        let told = watcher.finish().stdout;
        assert!(told.matches("one").count() == 1 && !told.contains('\x1b'), "{told:?}");
    }
}
