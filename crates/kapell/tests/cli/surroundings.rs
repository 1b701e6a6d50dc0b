//! Odd circumstances: how we were started, what we may do, and who does not answer.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::bench::{Bench, eventually, is_there, pause, skip};

const KAPELL: &str = env!("CARGO_BIN_EXE_kapell");

/// Runs a line of shell in which `KAPELL` stands for the program.
fn shell(bench: &Bench, shell: &str, line: &str) -> crate::bench::Ran {
    let mut command = bench.command(shell);
    command.args(["-c", &line.replace("KAPELL", KAPELL)]);
    bench.run_command(command)
}

/// A shell dies of the request at once; what it started still gets its grace.
#[test]
fn what_stands_behind_a_shell_gets_its_grace() {
    for command in ["cd . && ./graceful.sh", "./graceful.sh | cat", "./graceful.sh; true"] {
        let bench = Bench::with(&format!("steps: [{{name: a, command: \"{command}\"}}]"));
        let script = "#!/bin/sh\ntrap 'sleep 0.3; echo clean > clean; exit' TERM\n: > up\nwhile :; do sleep 0.05; done\n";
        bench.write("graceful.sh", script);
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bench.path("graceful.sh"), runs).expect("permissions");
        let running = bench.start(&["process", "flow.yaml"]);
        eventually("the step", || bench.exists("up").then_some(()));
        running.signal(Signal::SIGINT);
        running.finish().expect(130);
        assert_eq!(bench.read("clean"), "clean\n", "{command}");
        bench.all_gone_within(Duration::from_secs(2));
    }
}

#[test]
fn processes_that_were_there_before_the_run_are_spared() {
    let bench = Bench::with("steps: [{name: a, command: 'echo hi'}]");
    let line =
        "sleep 600 > /dev/null 2>&1 & echo $! > stranger; exec KAPELL process -l none flow.yaml";
    shell(&bench, "sh", line).expect(0);
    let stranger = bench.read("stranger").trim().to_owned();
    let mut kill = bench.command("kill");
    kill.args(["-9", &stranger]);
    bench.run_command(kill).expect(0);
}

/// `bash` executes its last command in its own place, so the reader of the pipe is a child of ours.
#[test]
fn a_reader_that_the_shell_left_us_gets_everything() {
    if !is_there("bash") {
        return skip("surroundings::a_reader_that_the_shell_left_us_gets_everything", "no bash");
    }
    let bench = Bench::with("steps: [{name: a, command: 'echo hi'}]");
    shell(&bench, "bash", "KAPELL process flow.yaml > >(sleep 0.2; cat > log)").expect(0);
    eventually("the log", || {
        (bench.exists("log") && bench.read("log").lines().count() == 4).then_some(())
    });
}

#[test]
fn an_ignored_end_of_children_does_no_harm() {
    if !is_there("python3") {
        return skip("surroundings::an_ignored_end_of_children_does_no_harm", "no python3");
    }
    let bench = Bench::with("steps: [{name: a, command: 'exit 3'}]");
    let program = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])";
    let mut command = bench.command("python3");
    command.args(["-c", program, KAPELL, "process", "flow.yaml"]);
    bench.run_command(command).expect(1).stderr_has("first failure: a: exit status 3");
}

#[test]
fn nohup_is_heeded() {
    let bench = Bench::with("steps: [{name: a, command: ': > up; read _ < gate; : > done'}]");
    let gate = crate::gate::Gate::new(&bench, "gate");
    let mut command = bench.command("sh");
    command.args(["-c", &format!("trap '' HUP; exec {KAPELL} process -l none flow.yaml")]);
    let running = bench.start_command(command);
    let waiting = gate.reached();
    running.signal(Signal::SIGHUP);
    pause(Duration::from_millis(300));
    waiting.go_on();
    running.finish().expect(0);
    assert!(bench.exists("done"));
}

/// Nobody reads what a step shows: the worker is stuck in a write, and still we can be ended.
#[test]
fn a_stuck_worker_is_ended_by_the_second_signal() {
    let flow =
        "steps: [{name: a, command: 'head -c 400000 /dev/zero; : > up; sleep 600', console: true}]";
    let bench = Bench::with(flow);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = bench.kapell(&["process", "flow.yaml"]);
    command.stdout(writer);
    let mut child = command.spawn().expect("kapell");
    drop(command);
    let pid = i32::try_from(child.id()).expect("a pid");
    // The pipe is full, and nobody takes anything out of it.
    eventually("the worker", || {
        let worker = crate::census::children(pid).first()?.pid;
        let stat = std::fs::read_to_string(format!("/proc/{worker}/wchan")).ok()?;
        (stat.contains("pipe_write") || stat == "0").then_some(())
    });
    crate::running::send(pid, Signal::SIGINT);
    pause(Duration::from_millis(400));
    crate::running::send(pid, Signal::SIGINT);
    let status = eventually("the end", || child.try_wait().expect("a child"));
    assert!(!status.success());
    drop(reader);
    bench.all_gone_within(Duration::from_secs(2));
}

#[test]
fn a_real_time_signal_ends_a_step_like_any_other() {
    let bench = Bench::with("steps: [{name: a, command: 'kill -36 $$; sleep 5'}]");
    bench.flow(&[]).expect(1).stderr_has("first failure: a: killed by signal 36");
}

#[test]
fn as_many_descriptors_are_used_as_may_be() {
    let mut flow = String::from("workers: 40\nsteps:\n");
    for step in 0..40 {
        flow.push_str(&format!("  - {{name: s{step}, command: 'sleep 0.2; ulimit -Sn'}}\n"));
    }
    let bench = Bench::with(&flow);
    shell(&bench, "sh", "ulimit -Sn 30; exec KAPELL process -l none flow.yaml").expect(0);
    bench.run(&["workflow", "logs", "--step", "s7"]).expect(0).stdout_has("30\n");
    let ran = shell(&bench, "sh", "ulimit -n 30; exec KAPELL process flow.yaml").expect(1);
    ran.stderr_has("Too many open files").stderr_has("lower the number of workers");
}

#[test]
fn a_step_knows_its_directory_with_and_without_a_shell() {
    let flow = "steps:\n  - {name: a, dir: /usr, command: printenv PWD, output: A}\n  - {name: b, depends: a, command: 'test \"$A\" = /usr'}";
    Bench::with(flow).flow(&[]).expect(0);
}

/// A step has no terminal, so whoever asks for one is refused instead of stopped for ever.
#[test]
fn a_step_that_wants_the_terminal_is_refused() {
    let bench = Bench::with("steps: [{name: a, command: cat /dev/tty}]");
    bench.flow(&[]).expect(1).stderr_has("/dev/tty");
}
