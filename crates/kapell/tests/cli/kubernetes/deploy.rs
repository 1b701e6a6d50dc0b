//! What lies in `deploy`, on a real cluster.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hyper::Request;
use kube::Client;
use serde_json::{Value, json};

use super::lab::{Lab, client};
use crate::bench::{Bench, eventually};
use crate::platform::site::Site;

/// Where objects of a kind are.
fn path(kind: &str, namespace: &str) -> String {
    let (group, resource) = match kind {
        "Role" => ("apis/rbac.authorization.k8s.io/v1", "roles"),
        "RoleBinding" => ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
        "PodDisruptionBudget" => ("apis/policy/v1", "poddisruptionbudgets"),
        "StatefulSet" => ("apis/apps/v1", "statefulsets"),
        "ServiceAccount" => ("api/v1", "serviceaccounts"),
        "ConfigMap" => ("api/v1", "configmaps"),
        "Service" => ("api/v1", "services"),
        other => panic!("no test knows {other}"),
    };
    format!("/{group}/namespaces/{namespace}/{resource}")
}

/// The documents of a manifest, each with its kind and name.
fn documents(file: &str) -> Vec<(String, String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    let text = fs::read_to_string(path).expect("a manifest");
    let documents = text.split("\n---\n").map(|document| {
        let find = |key: &str| document.lines().find_map(|line| line.strip_prefix(key));
        let (kind, name) = (find("kind: ").expect("a kind"), find("  name: ").expect("a name"));
        (kind.to_owned(), name.to_owned(), document.to_owned())
    });
    documents.collect()
}

async fn send(
    client: &Client,
    (verb, path): (&str, &str),
    kind: &str,
    body: String,
) -> Result<Value, kube::Error> {
    let request = Request::builder().method(verb).uri(path).header("content-type", kind);
    client.request(request.body(body.into_bytes()).expect("a request")).await
}

/// Applies a document as `kubectl apply --server-side` does.
async fn apply(
    client: &Client,
    namespace: &str,
    (kind, name, document): &(String, String, String),
    more: &str,
) -> Result<Value, kube::Error> {
    let query = format!("fieldManager=test&fieldValidation=Strict{more}");
    let path = format!("{}/{name}?{query}", path(kind, namespace));
    send(client, ("PATCH", &path), "application/apply-patch+yaml", document.clone()).await
}

#[test]
fn the_manifests_are_what_a_cluster_takes() {
    let test = "deploy::the_manifests_are_what_a_cluster_takes";
    let Some(lab) = Lab::new(test, "name: NAME\nsteps: [{name: a}]\n") else { return };
    let mut kinds = Vec::new();
    for document in documents("rbac.yaml").iter().chain(&documents("hosts.yaml")) {
        let applied = lab.ask(apply(&lab.admin, "default", document, "&dryRun=All"));
        assert_eq!(applied["metadata"]["name"], *document.1);
        if document.0 == "StatefulSet" {
            let container = &applied["spec"]["template"]["spec"]["containers"][0];
            for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
                let asks = container[probe]["exec"]["command"][2].as_str().expect("a command");
                assert!(asks.ends_with("/healthz\""), "{probe}: {asks}");
            }
            assert_eq!(applied["spec"]["template"]["spec"]["serviceAccountName"], "kapell");
        }
        kinds.push(document.0.clone());
    }
    let all = "Role RoleBinding ServiceAccount ConfigMap Service PodDisruptionBudget StatefulSet";
    assert_eq!(kinds.join(" "), all);
}

/// Whoever runs in a namespace reaches the Secrets and accounts of it, and those of the hosts would be all of them.
#[test]
fn jobs_run_where_neither_the_secret_nor_the_account_of_the_hosts_is() {
    let (hosts, rights) = (documents("hosts.yaml"), documents("rbac.yaml"));
    let text = |all: &[(String, String, String)], kind: &str| {
        let mut found = all.iter().filter(|it| it.0 == kind);
        let document = found.next().unwrap_or_else(|| panic!("no {kind}")).2.clone();
        assert!(found.next().is_none(), "one {kind}");
        document
    };
    let clusters = text(&hosts, "ConfigMap");
    assert!(clusters.contains("{in_cluster: true, namespaces: [kapell-jobs]}"), "{clusters}");
    let bound = text(&rights, "RoleBinding");
    assert!(bound.ends_with("  - kind: ServiceAccount\n    name: kapell\n    namespace: kapell\n"));
    assert!(text(&hosts, "ServiceAccount").ends_with("\n  name: kapell"), "the one that is bound");
    assert_eq!(rights.len(), 2, "a Role and its binding, and no account");
    // What people are told to do is what puts each where it belongs.
    let told = &hosts[0].2;
    for line in [
        "kubectl create secret generic kapell --namespace kapell ",
        "kubectl apply --namespace kapell-jobs -f rbac.yaml\n",
        "kubectl apply --namespace kapell -f hosts.yaml\n",
    ] {
        assert!(told.contains(line), "{line}");
    }
}

const JOBS: &str = r#"
kind: job
job_id: well
kubernetes: {image: "localhost/busybox:1.35", command: [echo, hello]}
---
kind: job
job_id: slow
kubernetes: {podSpec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "localhost/busybox:1.35", command: [sleep, "1000"]}]}}
"#;
const FLOW: &str = "
name: NAME
on_failure: continue
steps:
  - {name: well, command: 'echo hello', executor: {type: kubernetes, config: {image: IMAGE}}, console: true}
  - name: late
    executor:
      type: kubernetes
      config:
        startTimeout: 3s
        podSpec:
          initContainers: [{name: before, image: IMAGE, command: [sleep, '1000']}]
          containers: [{name: app, image: IMAGE, command: ['true']}]
";

#[test]
fn the_rights_of_the_manifest_are_enough_and_none_is_too_many() {
    let test = "deploy::the_rights_of_the_manifest_are_enough_and_none_is_too_many";
    let Some(mut lab) = Lab::new(test, FLOW) else { return };
    let namespace = lab.name.clone();
    let role = bind_to_stranger(&lab, &namespace);
    let kubeconfig = lab.kubeconfig.with_file_name("stranger.kubeconfig");
    let clusters =
        format!("main: {{kubeconfig: '{}', namespaces: {namespace}}}\n", kubeconfig.display());
    lab.bench.write("clusters.yaml", clusters);
    lab.bench.write("jobs.yaml", JOBS);
    let site = Site::with(std::mem::replace(&mut lab.bench, Bench::new()), &[]);
    site.kapell(&["job", "apply", "-f", "jobs.yaml"]).expect(0);
    site.kapell(&["job", "trigger", "slow"]).expect(0);
    let steps = site.bench.start(&["process", "flow.yaml"]);
    site.kapell(&["job", "trigger", "--wait", "well"]).expect(0);
    let run = |job: &str, state: &str| {
        let listed = site.try_ask("GET", &format!("/v1/runs?job={job}"), None)?.json();
        let run = listed.as_array()?.first()?.clone();
        (run["state"] == state).then(|| run["run_id"].as_str().expect("an id").to_owned())
    };
    let well = eventually("an end", || run("well", "Completed"));
    eventually("its log", || {
        site.kapell(&["run", "logs", &well]).out().contains("hello").then_some(())
    });
    let slow = eventually("a start", || run("slow", "Running"));
    site.kapell(&["run", "cancel", &slow]).expect(0);
    eventually("its end", || run("slow", "Cancelled"));
    let ran = steps.finish().expect(1);
    ran.stdout_has("hello\n").stdout_has("late failed");
    lab.nothing_is_left();
    assert_eq!(used(&lab, &namespace), granted(&role));
    every_right_is_needed(&lab, &namespace, &role);
    lab.ask(send(
        &lab.admin,
        ("DELETE", &format!("/api/v1/namespaces/{namespace}")),
        "application/json",
        String::new(),
    ));
}

/// Makes a namespace in which the user `stranger` has the rights of the manifest, and gives the Role.
fn bind_to_stranger(lab: &Lab, namespace: &str) -> Value {
    let create = |path: &str, object: Value| {
        lab.ask(send(&lab.admin, ("POST", path), "application/json", object.to_string()));
    };
    create("/api/v1/namespaces", json!({"metadata": {"name": namespace}}));
    let documents = documents("rbac.yaml");
    let role = documents.iter().find(|(kind, ..)| kind == "Role").expect("a Role");
    let role = lab.ask(apply(&lab.admin, namespace, role, ""));
    let binding = json!({
        "metadata": {"name": "stranger"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "stranger"}],
    });
    create(&path("RoleBinding", namespace), binding);
    // Pods need the account that the cluster makes for every namespace.
    let account = format!("{}/default", path("ServiceAccount", namespace));
    eventually("an account", || {
        let asked = send(&lab.admin, ("GET", &account), "application/json", String::new());
        lab.runtime.block_on(asked).ok()
    });
    role
}

/// Resources and verbs of a Role.
fn granted(role: &Value) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for rule in role["rules"].as_array().expect("rules") {
        let texts = |key: &str| {
            let texts = rule[key].as_array().into_iter().flatten();
            texts.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        for resource in texts("resources") {
            all.extend(texts("verbs").into_iter().map(|verb| (resource.clone(), verb)));
        }
    }
    all
}

/// What the cluster has allowed the stranger to do, by its own count.
fn used(lab: &Lab, namespace: &str) -> BTreeSet<(String, String)> {
    let log = fs::read_to_string(lab.kubeconfig.with_file_name("audit.log")).expect("it counts");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut used = BTreeSet::new();
    for line in log.lines().filter(|line| line.contains(namespace)) {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let about = &entry["objectRef"];
        if entry["user"]["username"] != "stranger" || about["namespace"] != *namespace {
            continue;
        }
        assert_ne!(entry["responseStatus"]["code"], 403, "{entry}");
        let resource = match about["subresource"].as_str() {
            Some(part) => format!("{}/{part}", text(&about["resource"])),
            None => text(&about["resource"]),
        };
        used.insert((resource, text(&entry["verb"])));
    }
    used
}

/// Takes each right away, and sees that what it is for is refused.
fn every_right_is_needed(lab: &Lab, namespace: &str, role: &Value) {
    let stranger =
        lab.runtime.block_on(client(&lab.kubeconfig.with_file_name("stranger.kubeconfig")));
    let role_path = format!(
        "{}/{}",
        path("Role", namespace),
        role["metadata"]["name"].as_str().expect("a name")
    );
    for (resource, verb) in granted(role) {
        let mut less = role.clone();
        for rule in less["rules"].as_array_mut().expect("rules") {
            if rule["resources"] == json!([resource]) {
                rule["verbs"].as_array_mut().expect("verbs").retain(|it| *it != *verb);
            }
        }
        less["rules"].as_array_mut().expect("rules").retain(|rule| rule["verbs"] != json!([]));
        less["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
        lab.ask(send(&lab.admin, ("PUT", &role_path), "application/json", less.to_string()));
        let group = if resource == "jobs" { "apis/batch/v1" } else { "api/v1" };
        let (kind, part) = resource.split_once('/').unwrap_or((&resource, ""));
        let all = format!("/{group}/namespaces/{namespace}/{kind}");
        let one = format!("{all}/nobody/{part}").trim_end_matches('/').to_owned();
        let (method, path, body) = match verb.as_str() {
            "create" => ("POST", format!("{all}?dryRun=All"), "{}"),
            "list" => ("GET", all, ""),
            "watch" => ("GET", format!("{all}?watch=true&timeoutSeconds=1"), ""),
            "get" => ("GET", one, ""),
            "patch" => ("PATCH", one, "{}"),
            "delete" => ("DELETE", one, ""),
            other => panic!("no test knows {other}"),
        };
        let content =
            if verb == "patch" { "application/merge-patch+json" } else { "application/json" };
        let refused = eventually("a refusal", || {
            let asked = send(&stranger, (method, &path), content, body.to_owned());
            match lab.runtime.block_on(asked) {
                Err(kube::Error::Api(status)) if status.code == 403 => Some(status.message.clone()),
                Ok(_) | Err(_) => None,
            }
        });
        let want = format!("cannot {verb} resource \"{resource}\"");
        assert!(refused.contains(&want), "{want}: {refused}");
    }
}
