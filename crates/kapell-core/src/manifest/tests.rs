use super::*;
use crate::board::Variable;

fn problems(text: &str) -> Vec<String> {
    read(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn documents_are_read_in_all_their_forms() {
    let text = "\
kind: lrp
process_guid: web
domain: shop
instances: 3
memory_mb: 64
action: {run: {path: /bin/server, args: [--port, 8080], env: [{name: A, value: b}]}}
env: {GREETING: hello, N: 5}
ports: [8080]
annotation: 5
routes: {cf-router: [{hostnames: [a.example], port: 8080, on: true, w: 1.5, q: \"5\", n: null}]}
---
---
process_guid: inferred
domain: d
action: {run: {path: x}}
version: 7
created_at: 1
---
{\"kind\": \"task\", \"domain\": \"d\", \"action\": {\"run\": {\"path\": \"true\"}}}
";
    let documents = read(text.as_bytes()).unwrap();
    let [Placed { document: Document::Lrp { lrp, counts: true }, span }, second, third] =
        documents.as_slice()
    else {
        panic!("{documents:?}")
    };
    assert_eq!((span.line, lrp.instances, lrp.memory_mb), (2, 3, 64));
    assert_eq!(lrp.annotation, "5");
    let env: Vec<_> =
        lrp.env.iter().map(|it| (it.name.as_str(), it.value.as_deref().unwrap())).collect();
    assert_eq!(env, [("GREETING", "hello"), ("N", "5")]);
    let want = serde_json::json!([{
        "hostnames": ["a.example"], "port": 8080, "on": true, "w": 1.5, "q": "5", "n": null
    }]);
    assert_eq!(lrp.routes["cf-router"], want);
    let Document::Lrp { lrp, counts: false } = &second.document else { panic!("{second:?}") };
    assert_eq!((lrp.process_guid.as_str(), lrp.instances, lrp.version), ("inferred", 1, 0));
    let Document::Task(task) = &third.document else { panic!("{third:?}") };
    assert_eq!(task.task_guid.as_str(), "");
}

#[test]
fn a_variable_may_refer_to_a_secret() {
    let text = "\
kind: lrp
process_guid: web
domain: shop
action: {run: {path: x, env: [{name: C, secret: c}]}}
env: {A: 1, DB_PASSWORD: {secret: db-password}, B: 2}
";
    let documents = read(text.as_bytes()).unwrap();
    let Document::Lrp { lrp, .. } = &documents[0].document else { panic!("{documents:?}") };
    let [a, b, secret] = lrp.env.as_slice() else { panic!("{:?}", lrp.env) };
    assert_eq!((a, b), (&Variable::plain("A", "1"), &Variable::plain("B", "2")));
    assert_eq!(secret, &Variable::secret("DB_PASSWORD", "db-password"));
    assert_eq!(lrp.action.as_run().unwrap().env, [Variable::secret("C", "c")]);
}

#[test]
fn what_is_wrong_with_a_reference_is_told_at_its_place() {
    let text = "\
kind: task
domain: d
action: {run: {path: x, env: [{name: A}, {name: B, value: x, secret: y}]}}
env:
  C: {secrte: c}
  D: {secret: a b}
  E: 1
  E: {secret: e}
";
    assert_eq!(
        problems(text),
        [
            "3:31: action.run.env[0]: must have exactly one of `value` and `secret`",
            "3:42: action.run.env[1]: must have exactly one of `value` and `secret`",
            "5:6: a variable has no `secret` (add `secret: …`)",
            "5:7: unknown key `secrte` in a variable (did you mean `secret`?)",
            "6:15: env[2].secret: must be 1 to 200 letters, digits, `-` or `_`, not `a b`",
            "8:3: variable `E` is set twice (remove one of the two)",
        ]
    );
}

#[test]
fn every_problem_is_told_at_its_place() {
    let text = "\
kind: lrp
process_guid: a b
domain: d
instances: many
action: {run: {path: x}}
---
kind: lrp
process_guid: a b
domain: d
action: {run: {path: '', args: [a], evn: {}}}
ports: 80
---
kind: lrp
process_guid: ok!
domain: ''
rootfs: nowhere
action: {run: {path: ''}}
---
kind: task
action: sleep 5
---
kind: lpr
---
kind: job
---
- 1
---
a: b
";
    let want = [
        "2:15: process_guid: must be 1 to 200 letters, digits, `-` or `_`, not `a b`",
        "4:12: `instances` must be a whole number, not `many` (write a number from 0 to 4294967295)",
        "8:15: process_guid: must be 1 to 200 letters, digits, `-` or `_`, not `a b`",
        "10:22: action.run.path: must not be empty",
        "10:37: unknown key `evn` in `run` (did you mean `env`?)",
        "11:8: `ports` must be a list, not a single value (write `[a, b]`)",
        "14:15: process_guid: must be 1 to 200 letters, digits, `-` or `_`, not `ok!`",
        "15:9: domain: must be 1 to 200 bytes of printable text without `/`, not ``",
        "16:9: rootfs: must be a URL with a scheme such as `oci:///path` or `docker:///image`, not `nowhere`",
        "17:22: action.run.path: must not be empty",
        "19:1: the task has no `domain` (add `domain: …`)",
        "20:9: an action must be a mapping, not a single value (write `key: value` lines; keys are run, download, upload, timeout, try, parallel, serial, codependent, emit_progress)",
        "22:7: kind cannot be `lpr` (write one of lrp, task, job, workflow)",
        "24:1: the job has no `job_id` (add `job_id: …`)",
        "24:1: the job does nothing (add one of `command`, `task`, `workflow` and `kubernetes`)",
        "26:1: a document must be a mapping, not a list (begin with `kind: lrp`)",
        "28:1: the document does not say what it is (add `kind: job`, `kind: lrp` or `kind: task`)",
    ];
    assert_eq!(problems(text), want);
}

#[test]
fn actions_within_actions_are_checked() {
    let text = "\
kind: task
domain: d
action:
  timeout:
    timeout_ms: 5
    action:
      serial:
        actions:
          - run: {path: x}
          - {}
          - run:
";
    let want = [
        "10:13: an action must have exactly one name (for several, use `serial: {actions: […]}`)",
        "11:13: `run` says nothing (its keys are path, args, dir, env, user)",
    ];
    assert_eq!(problems(text), want);
}

#[test]
fn files_that_are_none_are_told_so() {
    assert_eq!(
        problems("# nothing\n"),
        [
            "1:1: the file holds nothing to apply (write a document with `kind: job`, `kind: lrp` or `kind: task`)"
        ]
    );
    assert!(problems("a: [\n")[0].contains("invalid YAML"));
    assert!(read(b"\xff").unwrap_err()[0].message.contains("not UTF-8"));
    assert_eq!(
        problems("steps: []\n"),
        ["1:8: workflows cannot be applied yet (run it here by `kapell process FILE`)"]
    );
}

#[test]
fn differences_are_named_but_not_those_of_the_board() {
    let read_one = |text: &str| match read(text.as_bytes()).unwrap().remove(0).document {
        Document::Lrp { lrp, .. } => lrp,
        Document::Task(_) | Document::Job(_) => panic!("no lrp"),
    };
    let one = read_one("{process_guid: a, domain: d, action: {run: {path: x}}}");
    let mut other =
        read_one("{process_guid: a, domain: d, action: {run: {path: y}}, annotation: z}");
    other.version = 9;
    assert_eq!(differences(&one, &other), ["action", "annotation"]);
    assert_eq!(differences(&one, &one), [""; 0]);
}

#[test]
fn checks_and_limits_are_read() {
    let text = "\
kind: lrp
process_guid: web
domain: d
ports: [8080]
cpu_millis: 500
log_rate: 65536
check: {http: {port: 8080, path: /health}, every_ms: 5000, timeout_ms: 1000}
readiness: {tcp: {port: 8080}}
action: {run: {path: x}}
---
kind: task
domain: d
cpu_millis: 250
log_rate: 1
action: {download: {from: 'https://host/x', to: x}}
";
    let mut documents = read(text.as_bytes()).unwrap();
    let Document::Task(task) = documents.remove(1).document else { panic!("no task") };
    assert_eq!((task.cpu_millis, task.log_rate), (250, 1));
    let Document::Lrp { lrp, .. } = documents.remove(0).document else { panic!("no lrp") };
    assert_eq!((lrp.cpu_millis, lrp.log_rate), (500, 65_536));
    let check = lrp.check.unwrap();
    let http = check.http.unwrap();
    assert_eq!((http.port, http.path.as_str()), (8080, "/health"));
    assert_eq!((check.every_ms, check.timeout_ms), (5_000, 1_000));
    assert_eq!(lrp.readiness.unwrap().tcp.unwrap().port, 8080);
}

#[test]
fn a_fault_in_a_check_is_told_once_and_where_it_is() {
    let text = "\
kind: lrp
process_guid: web
domain: d
ports: [8080]
check: {http: {path: /}}
readiness: {tcp: {port: 70000}, evry_ms: 5}
action: {download: {to: x}}
---
kind: lrp
process_guid: web
domain: d
ports: [8080]
check: {http: {port: 80, path: x}}
readiness: {}
monitor: {run: {path: x}}
action: {run: {path: x}}
---
kind: task
domain: d
check: {tcp: {port: 1}}
monitor: {run: {path: x}}
action: {upload: {from: /x, to: x}}
";
    let want = [
        "5:15: `http` has no `port` (add `port: …`)",
        "6:25: a port must be a whole number, not `70000` (write a number from 1 to 65535)",
        "6:33: unknown key `evry_ms` in `readiness` (did you mean `every_ms`?)",
        "7:20: `download` has no `from` (add `from: …`)",
        "13:8: check: cannot stand beside `monitor`; leave one of them out",
        "13:22: check.http.port: must be one of `ports`, not 80",
        "13:32: check.http.path: must begin with `/` and have no spaces, not `x`",
        "14:12: readiness: must have exactly one of `http` and `tcp`",
        "20:1: unknown key `check` in the task (known keys are kind, task_guid, domain, rootfs, memory_mb, disk_mb, max_pids, cpu_millis, log_rate, placement_tags, env, action, result_file, completion_callback_url, annotation)",
        "21:1: unknown key `monitor` in the task (known keys are kind, task_guid, domain, rootfs, memory_mb, disk_mb, max_pids, cpu_millis, log_rate, placement_tags, env, action, result_file, completion_callback_url, annotation)",
        "22:25: action.upload.from: must be a relative path without `..`, not `/x`",
        "22:33: action.upload.to: must be a URL such as `https://host/path`, not `x`",
    ];
    assert_eq!(problems(text), want);
}

#[test]
fn a_fault_is_told_at_its_item_even_behind_one_that_cannot_be_read() {
    let text = "{kind: task, domain: d, action: {run: {path: x, args: [[a], \"\\0\"]}}}";
    assert_eq!(
        problems(text),
        [
            "1:56: `args` must be text, not a list (write one value, quoted if it is long)",
            "1:61: action.run.args[0]: must not contain a NUL byte",
        ]
    );
}
