//! Where runs are kept, for how long, and what happens when that goes wrong.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::bench::{Bench, skip};
use crate::gate::Gate;

/// Every file and directory below, the directory itself included.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory").flatten();
            found.extend(entries.map(|entry| entry.path()));
        }
    }
    found
}

/// The journals, oldest first.
fn journals(bench: &Bench) -> Vec<PathBuf> {
    let all = below(&bench.path("state")).into_iter();
    let mut found: Vec<_> = all.filter(|path| path.ends_with("journal.jsonl")).collect();
    found.sort();
    found
}

#[test]
fn only_the_owner_may_look_into_history() {
    let bench =
        Bench::with("steps: [{name: a, command: echo secret}, {name: b, script: echo x}]\n");
    bench.flow(&[]).expect(0);
    let all = below(&bench.path("state"));
    assert!(all.iter().any(|path| path.ends_with("output.log")));
    for path in all {
        let mode = fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
        let want = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, want, "{}", path.display());
    }
}

#[test]
fn history_keeps_as_many_runs_as_asked() {
    let bench =
        Bench::with("steps: [{name: a, command: echo x}]\n").set("KAPELL_HISTORY_RUNS", "3");
    bench.write("other.yaml", "steps: [{name: a, command: echo x}]\n");
    bench.run(&["process", "other.yaml"]).expect(0);
    let mut ids = Vec::new();
    for _ in 0..6 {
        let ran = bench.flow(&[]).expect(0);
        let line = ran.stdout.lines().next().expect("a line").to_owned();
        ids.push(line.rsplit(' ').next().expect("an id").to_owned());
    }
    let list = bench.run(&["workflow", "list", "flow.yaml"]).expect(0).stdout;
    let left: Vec<_> = list.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    ids.reverse();
    assert_eq!(left, ids[..3]);
    assert_eq!(journals(&bench).len(), 4, "the limit is for each file");
}

#[test]
fn history_never_loses_a_run_that_goes_on() {
    let flow = "steps: [{name: a, command: 'test -z \"$1\" || read _ < gate'}]\n";
    let bench = Bench::with(flow).set("KAPELL_HISTORY_RUNS", "1");
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml", "wait"]);
    let waiting = gate.reached();
    bench.flow(&[]).expect(0);
    bench.flow(&[]).expect(0);
    assert_eq!(journals(&bench).len(), 2);
    waiting.go_on();
    running.finish().expect(0);
}

#[test]
fn a_state_directory_that_cannot_be_used_is_a_warning() {
    let bench = Bench::with(
        "steps: [{name: a, command: touch ran, output: V}, {name: b, script: touch script}]\n",
    );
    let bench = bench.set("KAPELL_STATE_DIR", "flow.yaml/state");
    let ran = bench.flow(&[]).expect(0);
    assert!(bench.exists("ran") && bench.exists("script"));
    ran.stderr_has("warning: cannot keep history in `DIR/flow.yaml/state/runs/flow-");
    ran.stderr_has("this run cannot be resumed (set --state-dir or KAPELL_STATE_DIR)\n");
    ran.stdout_has("▶ flow started: 2 steps\n");
    bench.write("bad.yaml", "steps: [{name: a, command: exit 1}]\n");
    let ran = bench.run(&["process", "bad.yaml"]).expect(1);
    assert!(!ran.stderr.contains("resume with"), "{}", ran.stderr);
    let ran = bench.run(&["process", "--state-dir", "elsewhere", "flow.yaml"]).expect(0);
    assert!(!ran.stderr.contains("warning") && bench.exists("elsewhere/runs"), "{}", ran.stderr);
}

#[test]
fn a_damaged_journal_is_refused_with_its_line() {
    let flow =
        "steps: [{name: a, command: echo x >> ran}, {name: b, command: exit 1, depends: a}]\n";
    for damage in [&b"garbage"[..], b"{\"kind\":\"node\"}", b"\xff\xfe", b""] {
        let bench = Bench::with(flow);
        bench.flow(&[]).expect(1);
        let path = journals(&bench).pop().expect("a journal");
        let text = fs::read(&path).expect("a journal");
        let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let damaged = [damage, b"\n"].concat();
        lines[2] = &damaged;
        fs::write(&path, lines.concat()).expect("a journal");
        let ran = bench.run(&["process", "--resume", "flow.yaml"]).expect(2);
        ran.stderr_has("run RUN cannot be read: line 3 of the journal is damaged: ");
        ran.stderr_has("choose another run with --resume=RUN, or run without --resume");
        assert_eq!(bench.read("ran"), "x\n", "nothing ran");
        bench.run(&["workflow", "show"]).expect(2).stderr_has("line 3 of the journal is damaged");
        bench.run(&["workflow", "list"]).expect(0).stderr_has("warning: run RUN cannot be read");
        bench.flow(&[]).expect(1);
    }
}

#[test]
fn a_torn_last_line_is_as_if_never_written() {
    let flow = "steps: [{name: a, command: echo a >> ran}, {name: ö, command: 'echo b >> ran; test -f ready', depends: a}]\n";
    // Torn in the middle of the line, within a character, and before its newline.
    for tear in ["\"node_failed\"", "ö", "\n"] {
        let bench = Bench::with(flow);
        bench.flow(&[]).expect(1);
        let path = journals(&bench).pop().expect("a journal");
        let text = fs::read_to_string(&path).expect("a journal");
        let line = text.find("\"node_failed\"").expect("the failure");
        let cut = line + text[line..].find(tear).expect("a place to tear");
        let cut = cut + usize::from(tear == "ö");
        fs::write(&path, &text.as_bytes()[..cut]).expect("a journal");
        bench.write("ready", "");
        bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
        assert_eq!(bench.read("ran"), "a\nb\nb\n");
    }
}

#[test]
fn a_run_that_was_killed_before_its_first_line_is_as_if_it_never_was() {
    let bench = Bench::with("steps: [{name: a, command: 'echo x >> ran; test -f ready'}]\n");
    bench.flow(&[]).expect(1);
    let path = journals(&bench).pop().expect("a journal");
    let (runs, id) = (path.ancestors().nth(2).expect("a folder"), "99990101-000000000-abcdef");
    fs::create_dir(runs.join(id)).expect("a directory");
    fs::write(runs.join(id).join("journal.jsonl"), "").expect("an empty journal");
    bench.write("ready", "");
    bench.run(&["process", "--resume", "flow.yaml"]).expect(0).stderr_has("1 succeeded in TOOK\n");
    assert_eq!(bench.read("ran"), "x\nx\n");
}

#[test]
fn a_journal_of_a_newer_kapell_is_refused() {
    let bench = Bench::with("steps: [{name: a, command: exit 1}]\n");
    bench.flow(&[]).expect(1);
    let path = journals(&bench).pop().expect("a journal");
    let text = fs::read_to_string(&path).expect("a journal").replace("\"v\":1", "\"v\":9");
    fs::write(&path, text).expect("a journal");
    let ran = bench.run(&["process", "--resume", "flow.yaml"]).expect(2);
    ran.stderr_has("the journal was written by a newer kapell (format 9, this one reads 1)");
}

#[test]
fn every_line_of_a_journal_has_a_kind_and_a_version() {
    let bench = Bench::with("steps: [{name: a, command: echo x, output: V}]\n");
    bench.flow(&["p"]).expect(0);
    let text = fs::read_to_string(journals(&bench).pop().expect("a journal")).expect("text");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["run", "node", "node", "end"]);
    assert!(lines.iter().all(|line| line["v"] == 1), "{text}");
    assert_eq!(lines[0]["params"]["positional"], serde_json::json!(["p"]));
    assert_eq!(lines[2]["outputs"], serde_json::json!([["V", "x"]]));
}

#[test]
fn one_file_by_two_names_has_one_history() {
    let bench = Bench::with("steps: [{name: a, command: exit 1}]\n");
    bench.flow(&[]).expect(1);
    symlink(bench.path("home"), bench.path("link")).expect("a link");
    let ran = bench.run(&["workflow", "list", "link/../flow.yaml"]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 2);
}

/// Runs a script as somebody who may mount, with a tiny file system at `state`.
fn on_a_tiny_disk(bench: &Bench, script: &str) -> Option<crate::bench::Ran> {
    fs::create_dir(bench.path("state")).expect("a directory");
    let kapell = env!("CARGO_BIN_EXE_kapell");
    let script = format!(
        "mount -t tmpfs -o size=64k,mode=700 tmpfs state || exit 99\nkapell() {{ '{kapell}' \"$@\"; }}\n{script}"
    );
    for options in ["-m", "-rm"] {
        let mut command = bench.command("unshare");
        command.args([options, "sh", "-c", &script]);
        let ran = bench.run_command(command);
        if ran.code() != 99 && !ran.stderr.contains("unshare failed") {
            return Some(ran);
        }
    }
    None
}

#[test]
fn a_full_disk_does_not_stop_the_run() {
    if !crate::bench::is_there("unshare") {
        skip("a_full_disk_does_not_stop_the_run", "no unshare");
        return;
    }
    let bench = Bench::with(
        "
workers: 1
steps:
  - {name: fill, command: 'echo fill >> ran; head -c 60000 /dev/zero > state/ballast; seq 9000'}
  - {name: next, command: 'echo next >> ran; seq 9000', depends: fill}
  - {name: last, command: 'echo last >> ran', depends: next}
",
    );
    let script = "kapell process flow.yaml; echo \"code $?\"; rm state/ballast; kapell process --resume flow.yaml";
    let Some(ran) = on_a_tiny_disk(&bench, script) else {
        skip("a_full_disk_does_not_stop_the_run", "may not mount a file system");
        return;
    };
    let ran = ran.expect(0);
    ran.stdout_has("✓ last completed").stdout_has("\ncode 0\n");
    ran.stderr_has("warning: output is no longer kept: ");
    ran.stderr_has("3 succeeded in TOOK\n");
    let order = bench.read("ran");
    assert!(order.starts_with("fill\nnext\nlast\n"), "{order}");
}

#[test]
fn a_journal_that_runs_out_of_space_says_so_and_is_still_good_for_a_resume() {
    if !crate::bench::is_there("unshare") {
        skip(
            "a_journal_that_runs_out_of_space_says_so_and_is_still_good_for_a_resume",
            "no unshare",
        );
        return;
    }
    let mut flow = String::from(
        "
workers: 1
steps:
  - {name: first, command: echo first >> ran}
  - {name: fill, command: 'cat /dev/zero > state/ballast; echo fill >> ran', depends: first}
",
    );
    let mut before = "fill".to_owned();
    for number in 0..40 {
        // A long name makes a long line: the last page of the journal is soon full.
        let name = format!("{number}-{}", "x".repeat(180));
        flow.push_str(&format!(
            "  - {{name: {name}, command: 'echo {number} >> ran', depends: {before}}}\n"
        ));
        before = name;
    }
    flow.push_str(&format!("  - {{name: fails, command: test -f ready, depends: {before}}}\n"));
    let bench = Bench::with(&flow);
    let script = "kapell process flow.yaml; echo \"code $?\"; rm state/ballast; : > ready; cp ran before\n\
                  kapell process --resume flow.yaml";
    let Some(ran) = on_a_tiny_disk(&bench, script) else {
        skip(
            "a_journal_that_runs_out_of_space_says_so_and_is_still_good_for_a_resume",
            "may not mount",
        );
        return;
    };
    let ran = ran.expect(0);
    ran.stdout_has("\ncode 1\n");
    ran.stderr_has("warning: the journal is incomplete, so `--resume` may repeat steps: ");
    ran.stderr_has("No space left on device");
    let before: Vec<String> = bench.read("before").lines().map(str::to_owned).collect();
    assert_eq!(before.len(), 42, "the run went on to its end: {before:?}");
    assert_eq!(bench.read("ran").matches("first\n").count(), 1, "what was journalled is kept");
}

/// A resume that was killed while it wrote down what it keeps must not make the next one forget it.
#[test]
fn a_resume_that_was_cut_off_in_its_head_is_as_if_it_never_was() {
    let bench = Bench::with(
        "steps:\n  - {name: a, command: echo a >> ledger; true}\n  - {name: b, command: echo b >> ledger; true}\n  - {name: c, command: test -f ready, depends: [a, b]}",
    );
    bench.flow(&[]).expect(1);
    bench.run(&["process", "--resume", "flow.yaml"]).expect(1);
    let journal = fs::read_dir(bench.path("state/runs"))
        .expect("runs")
        .flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("a folder"))
        .map(|run| run.expect("a run").path().join("journal.jsonl"))
        .max()
        .expect("a journal");
    let text = fs::read_to_string(&journal).expect("text");
    assert!(text.lines().next().is_some_and(|head| head.contains("\"kept\":2")), "{text}");
    let kept: usize = text.lines().take(3).map(|line| line.len() + 1).sum();
    bench.write("ready", "");
    for cut in [kept - 1, kept - 40, text.lines().next().map_or(0, str::len) + 1] {
        fs::write(&journal, &text[..cut]).expect("written");
        bench
            .run(&["process", "--dry-run", "--resume", "flow.yaml"])
            .expect(0)
            .stdout_has("keep  b");
    }
    bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    let mut ledger: Vec<_> = bench.read("ledger").lines().map(str::to_owned).collect();
    ledger.sort();
    assert_eq!(ledger, ["a", "b"], "nobody runs again");
}
