//! `kapell exec`.

use std::fs::File;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Site;
use crate::terminal::pty::Terminal;

#[test]
fn programs_run_in_instances_and_tasks() {
    let site = Site::up();
    site.desire("web", 1, "exec sleep 1000");
    site.all_run("web", 1);
    let script = "echo \"I am $INSTANCE_INDEX of $KAPELL_PROCESS\"; echo no >&2; exit 5";
    let ran = site.kapell(&["exec", "web/0", "--", "sh", "-c", script]).expect(5);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("I am 0 of exec\n", "no\n"));
    std::fs::write(site.bench.path("input"), "a\nb\n").expect("a file");
    let mut cat = site.bench.kapell(&["exec", "-i", "web/0", "--", "cat", "-n"]);
    cat.env("KAPELL_URL", site.url());
    cat.stdin(File::open(site.bench.path("input")).expect("a file"));
    assert_eq!(site.bench.run_command(cat).expect(0).stdout, "     1\ta\n     2\tb\n");
    site.kapell(&["exec", "web/0", "--", "sh", "-c", "kill -9 $$"]).expect(137);
    let none = site.kapell(&["exec", "web/0", "--", "no-such-program"]).expect(127);
    none.stderr_has("`no-such-program` was not found in PATH");
    site.kapell(&["exec", "web/7", "--", "true"]).expect(125).stderr_has("it runs on no cell now");
    site.kapell(&["exec", "web", "--", "true"]).expect(125).stderr_has("write web/0 or task/GUID");
    site.ask("POST", "/v1/tasks", Some(&site.task("job", "exec sleep 1000"))).expect(201);
    site.until("the task runs", || {
        let ran = site.kapell(&["exec", "task/job", "--", "echo", "here"]);
        (ran.stdout == "here\n").then_some(())
    });
}

#[test]
fn a_program_ends_with_whoever_wanted_it() {
    let site = Site::up();
    site.desire("web", 1, "exec sleep 1000");
    site.all_run("web", 1);
    let before = site.work().len();
    let script = "echo ready; exec sleep 1000";
    let mut running = site.begin(&["exec", "web/0", "--", "sh", "-c", script]);
    running.until("ready\n");
    assert_eq!(site.work().len(), before + 1);
    running.signal(Signal::SIGKILL);
    running.finish();
    site.until("it is gone", || (site.work().len() == before).then_some(()));
}

fn terminal(site: &Site, script: &str) -> Terminal {
    Terminal::run(site.bench.dir(), script, &[("KAPELL_URL", &site.url())], (20, 70))
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row == text)
}

#[test]
fn a_shell_on_a_terminal_is_as_one_at_home() {
    let site = Site::up();
    site.desire("web", 1, "exec sleep 1000");
    site.all_run("web", 1);
    // What the terminal was like, and that it is so again.
    let script = "was=$(stty -g); $KAPELL exec web/0 -- sh -i; echo \"code $?\"; \
                  test \"$was\" = \"$(stty -g)\" && echo as before";
    let mut screen = terminal(&site, script);
    screen.types(b"PS1=; stty size; test -t 0 && test -t 2 && echo ter''minal\r");
    screen.until("its size", |rows| shows(rows, "20 70") && shows(rows, "terminal"));
    screen.types(b"sh -c 'echo go\"\"ing; exec sleep 1000'\r");
    screen.until("what it runs", |rows| shows(rows, "going"));
    // Not for us, but for what runs there.
    screen.types(b"\x03");
    screen.types(b"echo af''ter $?\r");
    screen.until("the shell goes on", |rows| shows(rows, "after 130"));
    screen.resize(12, 34);
    screen.types(b"until stty size | grep '12 34'; do sleep 0.02; done\r");
    screen.until("its new size", |rows| shows(rows, "12 34"));
    screen.types(b"exit 6\r");
    screen.until("its end", |rows| shows(rows, "code 6"));
    screen.end();
    assert!(shows(&screen.everything(), "as before"), "{:#?}", screen.everything());
}

#[test]
fn a_terminal_is_as_it_was_whatever_ends_us() {
    let site = Site::up();
    site.desire("web", 1, "exec sleep 1000");
    site.all_run("web", 1);
    let before = site.work().len();
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let script = "was=$(stty -g); sh -c 'echo $$ > pid; exec $KAPELL exec web/0 -- sh -c \"echo ready; sleep 1000\"'; \
             echo \"code $?\"; test \"$was\" = \"$(stty -g)\" && echo as before";
        let mut screen = terminal(&site, script);
        screen.until("it runs", |rows| shows(rows, "ready"));
        let pid = std::fs::read_to_string(site.bench.path("pid")).expect("its number");
        kill(Pid::from_raw(pid.trim().parse().expect("a number")), signal).expect("it is there");
        screen.until("its end", |rows| shows(rows, &format!("code {code}")));
        screen.end();
        assert!(shows(&screen.everything(), "as before"), "{:#?}", screen.everything());
        site.until("it is gone", || (site.work().len() == before).then_some(()));
    }
}

#[test]
fn whether_there_is_a_terminal_can_be_said() {
    let site = Site::up();
    site.desire("web", 1, "exec sleep 1000");
    site.all_run("web", 1);
    let script = "test -t 1 && echo yes || echo no";
    let ask = |flags: &[&str]| {
        let args = [&["exec"], flags, &["web/0", "--", "sh", "-c", script]].concat();
        site.kapell(&args).expect(0).stdout
    };
    assert_eq!(
        (ask(&[]).as_str(), ask(&["-t"]).as_str(), ask(&["-T"]).as_str()),
        ("no\n", "yes\r\n", "no\n")
    );
    let mut screen =
        terminal(&site, "exec $KAPELL exec -T web/0 -- sh -c 'test -t 1 || echo none'");
    screen.until("its answer", |rows| shows(rows, "none"));
    screen.end();
    site.kapell(&["exec", "web/0", "--", "/etc/passwd"]).expect(126);
    site.kapell(&["exec", "-t", "web/0", "--", "no-such-program"]).expect(127);
}
