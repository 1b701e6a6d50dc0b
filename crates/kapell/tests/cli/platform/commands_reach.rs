//! How commands find their host, and what they say if they do not.

use nix::sys::signal::Signal;

use super::Site;
use crate::bench::{Bench, Ran};

/// `kapell`, with nothing but what the test says.
fn run(bench: &Bench, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut command = bench.kapell(args);
    command.envs(env.iter().copied());
    bench.run_command(command)
}

#[test]
fn flags_and_the_environment_name_host_and_token() {
    let site = Site::up();
    let (url, token) = (site.url(), site.token());
    let elsewhere = Bench::new();
    elsewhere.write("token", &token);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(elsewhere.path("token"), mode).expect("our own");
    let list = ["cells"];
    run(&elsewhere, &list, &[("KAPELL_URL", &url), ("KAPELL_TOKEN", &token)]).expect(0);
    let by_flags = ["cells", "--url", &url, "--token-file", "token"];
    let wrong = [("KAPELL_URL", "http://127.0.0.1:1"), ("KAPELL_TOKEN", "wrong")];
    run(&elsewhere, &by_flags, &wrong).expect(0).stdout_has("local");
    run(&elsewhere, &list, &[("KAPELL_URL", &url), ("KAPELL_TOKEN", "wrong")])
        .expect(1)
        .stderr_has("error: the token is wrong")
        .stderr_has("hint: the token is not that of this host: give another by KAPELL_TOKEN");
    run(&elsewhere, &list, &[("KAPELL_URL", &url)])
        .expect(1)
        .stderr_has("hint: no token was found: give it by KAPELL_TOKEN or --token-file");
    let dead = "http://127.0.0.1:1";
    let unreachable = run(&elsewhere, &list, &[("KAPELL_URL", dead), ("KAPELL_TOKEN", &token)]);
    unreachable
        .expect(1)
        .stderr_has("no host answers at http://127.0.0.1:1: is `kapell up` running?")
        .stderr_has("Connection refused");
    for both in [format!("{dead},{url}"), format!("{url},{dead}")] {
        let env = [("KAPELL_TOKEN", token.as_str())];
        for args in [
            &["cells", "--url", &both][..],
            &["lrp", "list", "--url", &both],
            &["task", "run", "--wait", "--url", &both, "--", "true"],
        ] {
            run(&elsewhere, args, &env).expect(0);
        }
    }
    run(&elsewhere, &["cells", "--url", "nonsense"], &[])
        .expect(2)
        .stderr_has("is no URL of a host");
}

#[test]
fn a_platform_on_any_port_is_found_while_it_runs() {
    let mut site = Site::up();
    let port = site.port.to_string();
    assert_eq!(site.bench.read("state/url"), format!("{}\n", site.url()));
    run(&site.bench, &["cells"], &[]).expect(0).stdout_has("local");
    // A second one has its own directory and port, and is named by hand.
    let second = Site::with(Bench::new().set("KAPELL_STATE_DIR", site.bench.path("state")), &[]);
    assert_eq!(site.bench.read("state/url"), format!("{}\n", site.url()));
    drop(second);
    site.kill();
    assert!(site.bench.exists("state/url"));
    let lost = run(&site.bench, &["cells"], &[]);
    assert!(lost.code() != 0 && !lost.stderr.contains(&port), "{}", lost.stderr);
    site.start(&[]);
    run(&site.bench, &["cells"], &[]).expect(0).stdout_has("local");
    site.end(Signal::SIGTERM).expect(0);
    assert!(!site.bench.exists("state/url"));
}

#[test]
fn what_kapell_up_says_to_try_works_as_it_stands() {
    for demo in [false, true] {
        let more: &[&str] = if demo { &["--demo"] } else { &[] };
        let mut site = Site::with(Bench::new(), more);
        let said = site.end(Signal::SIGTERM).stdout;
        let commands: Vec<String> = said
            .lines()
            .skip_while(|line| *line != "Try:")
            .skip(1)
            .map(|line| line.trim().to_owned())
            .collect();
        assert_eq!(commands.len(), 3, "{said}");
        site.start(more);
        let bin = std::path::Path::new(env!("CARGO_BIN_EXE_kapell")).parent().expect("a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        std::fs::create_dir(site.bench.path("empty")).expect("a directory");
        for line in commands {
            let mut command = site.bench.command("sh");
            command
                .args(["-c", &format!("exec {line}")])
                .current_dir(site.bench.path("empty"))
                .env("PATH", format!("{}:{path}", bin.display()));
            let mut running = site.bench.start_command(command);
            if line.contains(" -f ") {
                running.until("UTC");
                running.signal(Signal::SIGINT);
                running.finish();
            } else {
                running.finish().expect(0);
            }
        }
    }
}

#[test]
fn a_second_platform_in_one_directory_is_refused_before_it_says_anything() {
    let site = Site::up();
    let dir = site.dir();
    let dir = dir.to_str().expect("text");
    let pid = site.running.as_ref().expect("it runs").pid();
    let ran = site.bench.run(&["up", "--dir", dir, "--port", "0"]).expect(2);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    ran.stderr_has(&format!("error: another `kapell up` (process {pid}) runs in `DIR/up`"));
    site.get("/v1/cells");
}

#[test]
fn the_port_that_was_found_is_the_one_that_is_told() {
    let mut site = Site::with_port(0);
    let url = site.bench.read("state/url");
    let port = url.trim().rsplit(':').next().expect("a port").to_owned();
    assert_ne!(port, "0");
    site.port = port.parse().expect("a number");
    assert_eq!(site.get("/leader")["address"], format!("127.0.0.1:{port}"));
    let said = site.running.as_mut().expect("it runs").stderr_so_far();
    assert!(said.contains(&format!("127.0.0.1:{port}")) && !said.contains("127.0.0.1:0"), "{said}");
}
