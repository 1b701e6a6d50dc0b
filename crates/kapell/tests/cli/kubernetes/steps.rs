use nix::sys::signal::Signal;
use serde_json::Value;

use super::lab::Lab;

#[test]
fn values_and_outputs_pass_between_steps_on_kubernetes_and_here() {
    let flow = r##"
name: NAME
params: "first 'second one'"
env: {GREETING: hello, COST: '$(GREETING) $5'}
steps:
  - {name: a, command: 'echo "{\"n\": [7]}"', output: A, executor: {type: kubernetes, config: {image: IMAGE}}}
  - {name: here, command: 'echo "here $$" | cut -d" " -f1; test -n "$HOME"', when: 'test -e /proc', output: HERE}
  - {name: own, executor: {type: kubernetes, config: {image: IMAGE, command: [sh, -c], args: ['echo own "$GREETING" $(PARAM_1)']}}, output: OWN}
  - {name: script, script: "#!/bin/sh -e\necho \"$# $2\"\nfalse\n", continue_on_error: true, executor: {type: kubernetes, config: {image: IMAGE}}, console: true}
  - name: c
    command: 'printf "%s;" "$GREETING" "$COST" "$1" "$2" "${A.n[0]}" "$HERE" "$STEP" "$$"; pwd'
    env: {STEP: $GREETING there}
    dir: /usr
    depends: [a, here]
    requires: all
    when: 'test -e TRACES'
    preconditions: [{predicate: 'cd TRACES && pwd', expected: TRACES}]
    executor: {type: kubernetes, config: {image: '${REPO}:1.35', resources: {limits: {memory: 64Mi}}}}
    console: true
    output: C
  - name: many
    depends: own
    executor:
      type: kubernetes
      config:
        podSpec:
          initContainers: [{name: before, image: IMAGE, command: [sh, -c, 'echo "before $OWN"']}]
          containers:
            - {name: app, image: IMAGE, command: [sh, -c, 'echo "app $OWN"; sleep 1']}
            - {name: side, image: IMAGE, command: [echo, 'side $(OWN)']}
    output: MANY
  - {name: last, command: 'echo "$C|$MANY"', depends: [c, many], requires: all, console: true}
"##;
    let Some(lab) =
        Lab::new("steps::values_and_outputs_pass_between_steps_on_kubernetes_and_here", flow)
    else {
        return;
    };
    // As other tools find their cluster: there are no settings.
    let mut command = lab.bench.kapell(&["process", "flow.yaml", "--workers", "8"]);
    command.env_remove("KAPELL_KUBERNETES_CLUSTERS").env("KUBECONFIG", &lab.kubeconfig);
    command.env("REPO", "localhost/busybox");
    let ran = lab.bench.run_command(command).expect(0);
    let values = "hello;$(GREETING) $5;first;second one;7;here;hello there;1;/usr";
    ran.stdout_has(&format!("{values}|app own hello first"));
    ran.stdout_has("script | 2 second one\n").stdout_has("script failed (continuing)");
    lab.nothing_is_left();
    let logs = lab.bench.run(&["workflow", "logs", "flow.yaml", "--step", "many"]).expect(0);
    let mut lines: Vec<&str> = logs.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["[before] before own hello first", "[side] side own hello first", "app own hello first"]
    );
}

#[test]
fn failures_are_told_and_tried_again_as_here() {
    let flow = "
name: NAME
on_failure: continue
steps:
  - name: again
    command: 'mktemp /traces/again.XXXXXX; [ $(ls /traces/again.* | wc -l) = 2 ] || exit 75'
    executor: POD
    retry_policy: {limit: 5, delay: 100ms, backoff: 2, exit_codes: [75]}
  - {name: final, command: 'echo why >&2; exit 3', executor: POD, retry_policy: {limit: 5, exit_codes: [75]}}
  - {name: big, command: 'x=$(head -c 60000000 /dev/zero | tr \"\\\\0\" x); echo ${#x}', executor: {type: kubernetes, config: {image: IMAGE, resources: {limits: {memory: 20Mi}}}}}
  - {name: none, command: /no/such/program, args: [x], executor: POD}
  - {name: image, command: x, executor: {type: kubernetes, config: {podSpec: {containers: [{name: a, image: 'localhost/none:1', imagePullPolicy: Never}]}}}}
  - {name: full, command: x, executor: {type: kubernetes, config: {image: IMAGE, startTimeout: 2s, resources: {requests: {memory: 900Ti}}}}}
  - {name: late, command: 'echo $$ > /traces/late; exec sleep 1000', executor: POD, timeout: 4s}
  - {name: policy, command: x, executor: {type: kubernetes, config: {podSpec: {containers: [{name: a, image: b, imagePullPolicy: Sometimes}]}}}}
  - {name: nowhere, command: x, executor: {type: kubernetes, config: {image: IMAGE, namespace: no-such-namespace}}}
";
    let Some(lab) = Lab::new("steps::failures_are_told_and_tried_again_as_here", flow) else {
        return;
    };
    let flow = ["process", "flow.yaml", "--workers", "9", "--logger", "json"];
    let ran = lab.bench.run(&flow).expect(1);
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let end = |step: &str| {
        let ends = ["node_failed", "node_completed"];
        let mut of = events.iter().filter(|it| it["node"] == step);
        of.find(|it| ends.contains(&it["event"].as_str().unwrap_or_default())).expect("an end")
    };
    assert_eq!(
        (&end("again")["event"], &end("again")["attempt"]),
        (&"node_completed".into(), &1.into())
    );
    assert_eq!((&end("final")["exit_code"], &end("final")["attempt"]), (&3.into(), &0.into()));
    for (step, want) in [
        ("final", "exit status 3"),
        ("big", "out of memory: container `main` took more than its limit (137)"),
        ("none", "cannot run: container `main`: "),
        ("image", "image cannot be pulled: `localhost/none:1` (ErrImageNeverPull)"),
        ("full", "it did not start within 2.0s (start_timeout): unschedulable: "),
        ("late", "timed out after 4.0s"),
        ("policy", "refused by the cluster: kubernetes.pod_spec.containers[0].imagePullPolicy: "),
        ("nowhere", "namespaces \"no-such-namespace\" not found"),
    ] {
        let error = end(step)["error"].as_str().expect("a reason");
        assert!(error.contains(want), "{step}: {error}");
    }
    assert_eq!(lab.trace("late"), "1\n", "it was under way");
    let logs = lab.bench.run(&["workflow", "logs", "flow.yaml", "--step", "final"]).expect(0);
    assert_eq!(logs.stdout, "why\n");
    assert_eq!((lab.pods_made("again"), lab.pods_made("final")), (2, 1));
    lab.nothing_is_left();
}

/// It waits before it ends: of what a container writes in its last moment, containerd may lose a part.
#[test]
fn output_comes_while_the_step_runs_and_all_of_it() {
    let flow = "
name: NAME
steps:
  - name: slow
    command: 'echo first; until [ -e /traces/go ]; do sleep 0.05; done; seq 20000; sleep 1; printf end'
    executor: POD
    console: true
";
    let Some(lab) = Lab::new("steps::output_comes_while_the_step_runs_and_all_of_it", flow) else {
        return;
    };
    let mut running = lab.bench.start(&["process", "flow.yaml"]);
    running.until("first\n");
    lab.leave("go");
    let ran = running.finish().expect(0);
    let numbers = ran.stdout.lines().filter(|line| line.parse::<u32>().is_ok());
    assert!(numbers.eq((1..=20_000).map(|number| number.to_string())), "in order, and all of it");
    ran.stdout_has("\nend\n");
    lab.nothing_is_left();
}

#[test]
fn an_interrupt_ends_the_pods_and_removes_the_jobs() {
    let flow = "
name: NAME
steps:
  - {name: long, command: 'trap \"sleep 0.5; echo bye; echo bye > /traces/bye; exit\" TERM; echo up > /traces/up; while :; do sleep 0.1; done', executor: POD, console: true}
  - {name: waits, command: x, executor: {type: kubernetes, config: {image: IMAGE, resources: {requests: {memory: 900Ti}}}}}
  - {name: never, command: x, depends: long, executor: POD}
";
    let test = "steps::an_interrupt_ends_the_pods_and_removes_the_jobs";
    let labs = [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)].map(|it| (it, Lab::new(test, flow)));
    let under_way = labs.into_iter().filter_map(|(how, lab)| {
        let lab = lab?;
        let running = lab.bench.start(&["process", "--logger", "tree", "flow.yaml"]);
        Some((how, lab, running))
    });
    for ((signal, code), lab, mut running) in under_way.collect::<Vec<_>>() {
        lab.until_traced("up");
        running.until_told("it waits: unschedulable", 1);
        running.signal(signal);
        let ran = running.finish().expect(code);
        ran.stdout_has("bye\n");
        for step in ["long", "waits", "never"] {
            let line = ran.stdout.lines().rfind(|line| line.contains(step)).expect("a line");
            assert!(line.contains("cancelled"), "{line}");
        }
        assert_eq!(lab.trace("bye"), "bye\n", "it had its grace");
        // It was waited for, so the cluster has nothing more to do.
        assert_eq!(lab.jobs(), [], "{signal}");
        lab.nothing_is_left();
    }
}

#[test]
fn one_that_does_not_want_to_end_is_killed() {
    let flow = "
name: NAME
steps: [{name: deaf, command: 'trap \"\" TERM; echo up > /traces/up; while :; do sleep 0.1; done', executor: {type: kubernetes, config: {podSpec: {terminationGracePeriodSeconds: 600, containers: [{name: main, image: IMAGE, volumeMounts: [{name: t, mountPath: /traces}]}], volumes: [{name: t, hostPath: {path: TRACES}}]}}}}]
";
    let Some(mut lab) = Lab::new("steps::one_that_does_not_want_to_end_is_killed", flow) else {
        return;
    };
    lab.bench = lab.bench.set("KAPELL_GRACE", "1s");
    let running = lab.bench.start(&["process", "flow.yaml"]);
    lab.until_traced("up");
    running.signal(Signal::SIGINT);
    let ran = running.finish().expect(130);
    assert!(!ran.stderr.contains("may still run"), "{}", ran.stderr);
    lab.nothing_is_left();
}
