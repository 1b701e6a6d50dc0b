//! `kapell plan`, against a real cell.

use serde_json::json;

use super::Site;
use super::commands::{JOB, from_stdin, parsed};

const WEB: &str = "
kind: lrp
process_guid: web
domain: test
instances: 2
memory_mb: 1
action: {run: {path: sleep, args: ['1000']}}
";

#[test]
fn a_plan_says_what_would_run_where_and_changes_nothing() {
    let site = Site::up();
    site.bench.write("all.yaml", format!("{WEB}---\n{JOB}"));
    let plan = site.kapell(&["plan", "-f", "all.yaml"]).expect(0);
    plan.stdout_has("lrp/web").stdout_has("create").stdout_has("0 → 2");
    plan.stdout_has("lrp/web/1").stdout_has("task/job").stdout_has("local");
    plan.stdout_has("all fits: 3 would start; nothing was changed");
    assert_eq!((site.get("/v1/desired-lrps"), site.get("/v1/tasks")), (json!([]), json!([])));
    let json = from_stdin(&site, &["plan", "-f", "-", "-o", "json"], "all.yaml").expect(0);
    let json = parsed(&json);
    assert_eq!((&json["fits"], &json["units"][0]["cell_id"]), (&json!(true), &json!("local")));
}

#[test]
fn a_plan_comes_true_when_it_is_applied() {
    let site = Site::up();
    site.bench.write("web.yaml", WEB);
    site.kapell(&["plan", "-f", "web.yaml"]).expect(0);
    site.kapell(&["apply", "-f", "web.yaml"]).expect(0);
    site.all_run("web", 2);
    let same = site.kapell(&["plan", "-f", "web.yaml"]).expect(0);
    same.stdout_has("unchanged").stdout_has("all fits: 0 would start");
    site.bench.write("less.yaml", WEB.replace("instances: 2", "instances: 1"));
    let less = site.kapell(&["plan", "-f", "less.yaml"]).expect(0);
    less.stdout_has("scale down").stdout_has("2 → 1").stdout_has("1 would be stopped");
    site.bench.write("more.yaml", WEB.replace("instances: 2", "instances: 3"));
    let more = parsed(&site.kapell(&["plan", "-f", "more.yaml", "-o", "json"]).expect(0));
    assert_eq!(more["wishes"][0]["step"], "scale_up");
    assert_eq!(more["units"].as_array().map(Vec::len), Some(1), "{more}");
    // Without a number the one that stands stays.
    site.bench.write("bare.yaml", WEB.replace("instances: 2\n", ""));
    site.kapell(&["plan", "-f", "bare.yaml"]).expect(0).stdout_has("unchanged");
    assert_eq!(site.get("/v1/desired-lrps/web")["instances"], 2);
}

#[test]
fn a_plan_that_does_not_fit_says_why_and_ends_with_1() {
    let site = Site::up();
    site.bench.write("huge.yaml", WEB.replace("memory_mb: 1", "memory_mb: 4000000000"));
    let huge = site.kapell(&["plan", "-f", "huge.yaml"]).expect(1);
    huge.stdout_has("no cell").stdout_has("insufficient resources: memory");
    huge.stdout_has("not all fits: 0 would start, 2 would find no cell; nothing was changed");
    site.bench.write("web.yaml", WEB);
    site.kapell(&["apply", "-f", "web.yaml"]).expect(0);
    let refused = site.kapell(&["plan", "-f", "huge.yaml"]).expect(1);
    refused.stdout_has("refused").stdout_has("differs in memory_mb");
    refused.stdout_has("nothing would be done: 1 would be refused; nothing was changed");
    site.bench.write("both.yaml", format!("{JOB}---\n{}", WEB.replace("_mb: 1", "_mb: 2")));
    let both = site.kapell(&["plan", "-f", "both.yaml"]).expect(1);
    both.stdout_has("nothing would be done: 1 would be refused, 1 not done because of that");
    site.kapell(&["apply", "-f", "both.yaml"]).expect(1).stderr_has("nothing was changed");
    assert_eq!(site.get("/v1/tasks"), json!([]));
    site.bench.write("bad.yaml", "kind: lrp\nprocess_guid: a b\n");
    site.kapell(&["plan", "-f", "bad.yaml"]).expect(2).stderr_has("bad.yaml:2:15");
    site.kapell(&["plan", "-f", "none.yaml"]).expect(2).stderr_has("cannot read `none.yaml`");
    std::fs::create_dir(site.bench.path("empty")).expect("a directory");
    for command in ["plan", "apply"] {
        let empty = site.kapell(&[command, "-f", "empty"]).expect(2);
        empty.stderr_has("`empty` has no .yaml, .yml or .json file");
    }
    site.kapell(&["plan"]).expect(2);
}
