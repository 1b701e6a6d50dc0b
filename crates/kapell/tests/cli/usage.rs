//! The command line itself: help, bad usage, settings.

use crate::bench::Bench;

const GOOD: &str = "steps: [{name: build, command: touch ran}, {name: test, depends: build}]\n";

/// Bad usage: exit code 2, nothing executed, and a message that holds all of `want`.
#[track_caller]
fn refused(bench: &Bench, args: &[&str], want: &[&str]) {
    let ran = bench.run(args).expect(2);
    assert_eq!(ran.stdout, "");
    assert!(!bench.exists("ran") && !bench.exists("state"), "something was done");
    for text in want {
        ran.stderr_has(text);
    }
}

#[test]
fn help_mentions_every_option() {
    let bench = Bench::new();
    let help = bench.run(&["process", "--help"]).expect(0);
    for text in [
        "-l, --logger <LOGGER>",
        "stream:",
        "tree:",
        "json:",
        "none:",
        "--workers <N>",
        "--dry-run",
        "--resume[=<RUN>]",
        "--from <STEP>",
        "--only <STEP>",
        "-p, --param <NAME=VALUE>",
        "--metrics <FILE>",
        "--on <URL[,URL]>",
        "<FILE>",
        "[PARAM]...",
    ] {
        help.stdout_has(text);
    }
    let help = bench.run(&["workflow", "--help"]).expect(0);
    for text in ["validate", "graph", "schema", "list", "show", "logs"] {
        help.stdout_has(&format!("\n  {text} "));
    }
    let help = bench.run(&["workflow", "graph", "--help"]).expect(0);
    help.stdout_has("--format <FORMAT>").stdout_has("[possible values: tree, dot, mermaid]");
    let help = bench.run(&["--help"]).expect(0);
    for text in ["process", "workflow", "config"] {
        help.stdout_has(&format!("\n  {text} "));
    }
    bench.run(&["--version"]).expect(0).stdout_has("kapell ");
}

#[test]
fn bad_usage_is_refused() {
    let bench = Bench::with(GOOD);
    refused(&bench, &[], &["Usage: kapell"]);
    refused(&bench, &["proces", "flow.yaml"], &["unrecognized subcommand", "process"]);
    refused(&bench, &["process"], &["<FILE>"]);
    refused(&bench, &["process", "--nope", "flow.yaml"], &["unexpected argument '--nope'"]);
    refused(&bench, &["process", "-l", "loud", "flow.yaml"], &["'loud'", "stream, tree, json"]);
    refused(&bench, &["workflow", "graph", "--format", "png", "flow.yaml"], &["'png'", "mermaid"]);
}

#[test]
fn bad_workers_are_refused() {
    let bench = Bench::with(GOOD);
    for workers in ["0", "-1", "10001", "many", ""] {
        refused(
            &bench,
            &["process", &format!("--workers={workers}"), "flow.yaml"],
            &["--workers <N>"],
        );
    }
}

#[test]
fn unknown_steps_are_refused_with_what_was_meant() {
    let bench = Bench::with(GOOD);
    for option in ["--from", "--only"] {
        let want = "error: there is no step `biuld` in flow.yaml: did you mean `build`?\n";
        refused(&bench, &["process", option, "biuld", "flow.yaml"], &[want]);
        let want = "error: there is no step `handlers.exit` in flow.yaml\n";
        refused(&bench, &["process", option, "handlers.exit", "flow.yaml"], &[want]);
    }
}

#[test]
fn bad_parameters_are_refused() {
    let flow = format!("params: [{{name: target, default: x}}]\n{GOOD}");
    let bench = Bench::with(&flow);
    refused(&bench, &["process", "-p", "target", "flow.yaml"], &["'target'", "write NAME=VALUE"]);
    refused(&bench, &["process", "-p", "=x", "flow.yaml"], &["'=x'", "write NAME=VALUE"]);
    let want = "error: there is no parameter `taget`: did you mean `target`?\n";
    refused(&bench, &["process", "-p", "taget=x", "flow.yaml"], &[want]);
    let want = "error: there is no parameter `zzz`: the file declares target\n";
    refused(&bench, &["process", "-p", "zzz=x", "flow.yaml"], &[want]);
    let bench = Bench::with(GOOD);
    let want = "error: there is no parameter `x`: the file declares no named parameters\n";
    refused(&bench, &["process", "-p", "x=1", "flow.yaml"], &[want]);
}

#[test]
fn settings_come_from_file_environment_and_flag() {
    let bench = Bench::new().set("KAPELL_WORKERS", "7");
    bench.write("kapell.yaml", "workers: 2\ngrace: 3s\nlogger: json\n");
    let args = ["--config", "kapell.yaml", "--state-dir", "/elsewhere", "config", "show"];
    let ran = bench.run(&args).expect(0);
    let want = "\
SETTING               VALUE       FROM
state_dir             /elsewhere  --state-dir
logger                json        kapell.yaml
workers               7           $KAPELL_WORKERS
grace                 3.0s        kapell.yaml
history_runs          100         default
history_age           90d         default
output_limit_mib      64          default
host_patience         5m00s       default
audit                 file        default
audit_file_mib        16          default
audit_files           16          default
store                             default
certificate_life      720h00m     default
presence_ttl          15.0s       default
converge_every        30.0s       default
stale_unclaimed       30.0s       default
kick_task             30.0s       default
pending_task          30m00s      default
completed_task        2m00s       default
evacuation_timeout    10m00s      default
crash_wait            30.0s       default
longest_crash_wait    16m00s      default
crash_reset           5m00s       default
in_flight_starts      none        default
cell_poll             30.0s       default
cell_poll_evacuating  10.0s       default
reservation_expiry    1m00s       default
stop_grace            10.0s       default
cell_cpu_millis       none        default
first_checks          2.0s        default
later_checks          30.0s       default
monitor_timeout       1m00s       default
checks_at_once        64          default
download_root         none        default
transfer_timeout      30m00s      default
transfers_at_once     16          default
download_mib          2048        default
upload_mib            64          default
self_test_every       10m00s      default
self_test_retry       30.0s       default
self_test_timeout     2m00s       default
self_test_failures    3           default
image_cache_mib       20480       default
run_ahead             10.0s       default
run_heartbeat         10.0s       default
run_missed_beats      3           default
run_safety_pass       1m00s       default
run_start_timeout     5m00s       default
run_stats_flush       30.0s       default
run_checks_at_once    256         default
run_actions_at_once   1024        default
run_launches_at_once  128         default
run_stops_at_once     256         default
run_finds_at_once     64          default
run_releases_at_once  16          default
blobs                 none        default
run_logs_mib          10240       default
kubernetes_clusters   none        default
";
    assert_eq!(ran.out(), want);
    let ran = bench.run(&["config", "show", "--output", "json"]).expect(0);
    let values: serde_json::Value = serde_json::from_str(&ran.out()).expect("JSON");
    let want = serde_json::json!({
        "name": "state_dir", "value": "DIR/state", "from": "$KAPELL_STATE_DIR",
    });
    assert_eq!(values[0], want);
}

#[test]
fn settings_below_home_are_used() {
    let bench = Bench::with("steps: [{name: a, command: echo x}]\n");
    std::fs::create_dir_all(bench.path("home/.config/kapell")).expect("a directory");
    bench.write("home/.config/kapell/config.yaml", "logger: none\n");
    let ran = bench.flow(&[]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    bench.run(&["process", "-l", "stream", "flow.yaml"]).expect(0).stdout_has("✓ a completed");
}

#[test]
fn bad_settings_are_refused_with_their_place() {
    let bench = Bench::with(GOOD);
    bench.write("kapell.yaml", "wrokers: 2\ngrace: soon\n");
    let ran = bench.run(&["--config", "kapell.yaml", "process", "flow.yaml"]).expect(2);
    let want = "\
error: unknown setting `wrokers`
 --> kapell.yaml:1:1
  |
1 | wrokers: 2
  | ^^^^^^^ did you mean `workers`?
error: `soon` is no value of `grace`
 --> kapell.yaml:2:8
  |
2 | grace: soon
  |        ^^^^ write a duration such as 10s

kapell.yaml: 2 errors
";
    assert_eq!(ran.err(), want);
    refused(
        &bench,
        &["--config", "nope.yaml", "process", "flow.yaml"],
        &["cannot read `nope.yaml`"],
    );
    let bench = Bench::with(GOOD).set("KAPELL_GRACE", "soon");
    let want = "error: $KAPELL_GRACE is `soon`, but must be a duration such as 10s\n";
    refused(&bench, &["process", "flow.yaml"], &[want]);
}

#[test]
fn the_number_of_workers_comes_from_the_flag_then_the_file_then_the_settings() {
    // Each of three steps notes how many stand beside it, the highest number counts.
    let steps = "
steps:
  - {name: a, command: &c 'mkdir in.$$; ls -d in.* | wc -l >> seen; sleep 0.2; rmdir in.$$'}
  - {name: b, command: *c}
  - {name: c, command: *c}
";
    let most = |bench: &Bench| -> u32 {
        let seen = bench.read("seen");
        seen.lines().map(|line| line.trim().parse().expect("a number")).max().expect("a line")
    };
    let bench = Bench::with(&format!("workers: 2\n{steps}"));
    bench.flow(&[]).expect(0);
    assert_eq!(most(&bench), 2);
    let bench = Bench::with(&format!("workers: 2\n{steps}"));
    bench.run(&["process", "--workers", "1", "flow.yaml"]).expect(0);
    assert_eq!(most(&bench), 1);
    let bench = Bench::with(steps).set("KAPELL_WORKERS", "1");
    bench.flow(&[]).expect(0);
    assert_eq!(most(&bench), 1);
}

#[test]
fn metrics_are_written() {
    let bench = Bench::with(
        "workers: 1\nsteps: [{name: a, command: exit 1, continue_on_error: true}, {name: b, command: echo x}]\n",
    );
    bench.run(&["process", "--metrics", "m.prom", "flow.yaml"]).expect(0);
    let text = bench.read("m.prom");
    for line in [
        "kapell_workflow_success 1\n",
        "kapell_workflow_steps{state=\"succeeded\"} 1\n",
        "kapell_workflow_steps{state=\"failed_continue\"} 1\n",
        "kapell_step_attempts{step=\"a\"} 1\n",
        "# TYPE kapell_step_duration_seconds gauge\n",
        "kapell_step_duration_seconds{step=\"b\",state=\"succeeded\"} ",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    let left: Vec<_> = std::fs::read_dir(bench.dir()).expect("a directory").flatten().collect();
    let aside = left.iter().filter(|entry| entry.file_name().to_string_lossy().contains("m.prom"));
    assert_eq!(aside.count(), 1, "nothing is left aside");
}
