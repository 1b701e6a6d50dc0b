//! The live tree, in a real pseudo-terminal.

pub(crate) mod pty;

use std::path::Path;
use std::process::Command;

use pty::Terminal;
use tempfile::TempDir;

const TREE: &str = "exec \"$KAPELL\" process --logger tree flow.yaml";
const SPINNER: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";

/// Steps that wait, each for the gate of its name.
const DIAMOND: &str = "
name: diamond
steps:
  - {name: fetch, command: 'until [ -e fetch.gate ]; do sleep 0.01; done'}
  - {name: build, command: 'until [ -e build.gate ]; do sleep 0.01; done', depends: fetch}
  - {name: lint, command: 'until [ -e lint.gate ]; do sleep 0.01; done', depends: fetch}
  - {name: ship, command: 'until [ -e ship.gate ]; do sleep 0.01; done', depends: [build, lint]}
";

fn dir_with(workflow: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("flow.yaml"), workflow).expect("a file");
    dir
}

fn open(dir: &TempDir, gate: &str) {
    std::fs::write(dir.path().join(format!("{gate}.gate")), "").expect("a file");
}

/// Whether a row shows the step as running.
fn runs(rows: &[String], step: &str) -> bool {
    let is_spinner = |c| SPINNER.contains(c);
    let shown = format!(" {step} ");
    rows.iter().any(|row| row.contains(is_spinner) && format!("{row} ").contains(&shown))
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

fn count(rows: &[String], text: &str) -> usize {
    rows.iter().map(|row| row.matches(text).count()).sum()
}

#[track_caller]
fn assert_once(rows: &[String], texts: &[&str]) {
    for text in texts {
        assert_eq!(count(rows, text), 1, "`{text}` in\n{}", rows.join("\n"));
    }
}

fn position(rows: &[String], text: &str) -> usize {
    rows.iter().position(|row| row.contains(text)).expect("it is there")
}

#[test]
fn the_tree_is_drawn_and_redrawn_in_place() {
    let dir = dir_with(DIAMOND);
    // Something is on the screen already, so that the tree stands at its lower end.
    let script = format!("seq -f 'before %g' 1 20; {TREE}");
    let mut terminal = Terminal::run(dir.path(), &script, &[], (16, 80));
    terminal.until("fetch", |rows| runs(rows, "fetch"));
    let once = ["diamond: 4 steps", "/4 done", " fetch", "─ · build", "─ · lint", "also after"];
    terminal.frames(5, |rows| {
        assert_once(rows, &once);
        assert_eq!(count(rows, "before "), 20);
    });
    open(&dir, "fetch");
    terminal.until("build and lint", |rows| runs(rows, "build") && runs(rows, "lint"));
    assert!(shows(&terminal.rows(), "✓ fetch"), "{:#?}", terminal.rows());
    open(&dir, "lint");
    terminal.until("lint done", |rows| shows(rows, "✓ lint") && runs(rows, "build"));
    open(&dir, "build");
    open(&dir, "ship");
    assert_eq!(terminal.end(), 0);
    let rows = terminal.everything();
    assert_once(&rows, &["✓ fetch", "─ ✓ build", "─ ✓ lint", "─ ✓ ship", "✓ diamond completed in"]);
    assert_eq!(count(&rows, "before "), 20);
    assert!(!shows(&rows, "/4 done"), "the counts are not left behind");
    assert!(position(&rows, "✓ ship") < position(&rows, "✓ diamond completed"));
}

#[test]
fn elapsed_times_tick() {
    let dir = dir_with(DIAMOND);
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    let elapsed = |rows: &[String]| {
        let row = rows.iter().find(|row| row.contains(" fetch  "))?;
        row.split("fetch  ").nth(1).map(str::to_owned)
    };
    terminal.until("a time", |rows| elapsed(rows).is_some());
    let first = elapsed(&terminal.rows());
    terminal.until("a later time", |rows| elapsed(rows) != first);
    terminal.until("a second", |rows| elapsed(rows).is_some_and(|time| time.starts_with("1.")));
}

#[test]
fn a_resize_leaves_a_clean_screen() {
    let long = "x".repeat(60);
    let workflow = format!(
        "
name: long
steps:
  - {{name: alpha-{long}, command: 'until [ -e gate ]; do sleep 0.01; done'}}
  - {{name: beta-{long}, command: 'until [ -e gate ]; do sleep 0.01; done'}}
  - {{name: gamma-{long}, command: 'true', depends: alpha-{long}}}
  - {{name: delta-{long}, command: 'true', depends: beta-{long}}}
"
    );
    let dir = dir_with(&workflow);
    let script = format!("seq -f 'before %g' 1 9; {TREE}");
    let mut terminal = Terminal::run(dir.path(), &script, &[], (24, 100));
    let names = ["alpha-", "beta-", "gamma-", "delta-"];
    terminal.until("the tree", |rows| names.iter().all(|name| shows(rows, name)));
    for (rows, cols) in [(24, 40), (24, 120), (10, 120), (24, 30), (4, 30), (7, 90), (24, 80)] {
        terminal.resize(rows, cols);
        // What was on its way is drawn for the old size.
        terminal.frames(2, |_| {});
        terminal.until_it(&format!("a clean screen of {rows}×{cols}"), |terminal| {
            let shown = terminal.rows();
            let once = if rows > 6 { 1..=1 } else { 0..=1 };
            let clean = names.iter().all(|name| once.contains(&count(&shown, name)));
            let cut = cols > 70 || shown.last().is_some_and(|row| row.ends_with('…'));
            clean && cut && count(&shown, "/4 done") == 1 && !terminal.wraps_below("/4 done")
        });
    }
    let rows = terminal.everything();
    assert_eq!(count(&rows, "before "), 9, "{}", rows.join("\n"));
    assert_once(&rows, &["long: 4 steps"]);
    std::fs::write(dir.path().join("gate"), "").expect("a file");
    assert_eq!(terminal.end(), 0);
    assert_once(&terminal.everything(), &["✓ alpha-", "✓ beta-", "─ ✓ gamma-", "─ ✓ delta-"]);
}

/// Independent steps, two at a time, that wait for one gate.
fn many(steps: usize) -> String {
    let command = "'until [ -e all.gate ]; do sleep 0.01; done'";
    let steps: Vec<String> =
        (0..steps).map(|at| format!("  - {{name: step-{at:03}, command: {command}}}\n")).collect();
    format!("name: many\nworkers: 2\nsteps:\n{}", steps.concat())
}

#[test]
fn more_steps_than_rows_show_what_runs() {
    let dir = dir_with(&many(60));
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (12, 80));
    terminal.until("two steps", |rows| runs(rows, "step-000") && runs(rows, "step-001"));
    terminal.frames(3, |rows| {
        assert_once(rows, &["0/60 done · 2 running · 58 waiting", "step-000", "more waiting"]);
        // The first line, and a frame that leaves one row for the cursor.
        assert_eq!(rows.len(), 12, "{}", rows.join("\n"));
    });
    open(&dir, "all");
    assert_eq!(terminal.end(), 0);
    let rows = terminal.everything();
    for at in 0..60 {
        assert_once(&rows, &[&format!("✓ step-{at:03}")]);
    }
    assert!(!shows(&rows, "more waiting"), "{}", rows.join("\n"));
}

#[test]
fn thousands_of_steps_show_a_window() {
    let steps: Vec<String> =
        (0..1_500).map(|at| format!("  - {{name: step-{at:04}, depends: gate}}\n")).collect();
    let gate = "  - {name: gate, command: 'until [ -e all.gate ]; do sleep 0.01; done'}\n";
    let bad = "  - {name: bad, command: 'exit 3', depends: gate}\n";
    let dir = dir_with(&format!("name: huge\nsteps:\n{gate}{}{bad}", steps.concat()));
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (12, 80));
    terminal.until("the gate", |rows| runs(rows, "gate"));
    assert_once(&terminal.rows(), &["0/1502 done · 1 running · 1501 waiting", "more waiting"]);
    open(&dir, "all");
    assert_eq!(terminal.end(), 1);
    let rows = terminal.everything();
    assert_once(&rows, &["✗ huge failed in", "✗ bad "]);
    assert!(rows.len() < 30, "{}", rows.join("\n"));
}

#[test]
fn a_failure_is_shown_with_its_error_and_the_handler() {
    let dir = dir_with(
        "
name: failing
handlers: {failure: 'until [ -e handler.gate ]; do sleep 0.01; done'}
steps:
  - {name: bad, command: 'exit 3'}
  - {name: tolerated, command: 'exit 4', continue_on_error: true, depends: first}
  - {name: first, command: 'true'}
  - {name: never, command: 'true', depends: bad}
",
    );
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    terminal.until("the handler", |rows| runs(rows, "handlers.failure"));
    let rows = terminal.rows();
    let bad = &rows[position(&rows, "✗ bad")];
    assert!(bad.contains("exit status 3"), "{bad}");
    assert!(position(&rows, " never") < position(&rows, "handlers.failure"));
    open(&dir, "handler");
    assert_eq!(terminal.end(), 1);
    let rows = terminal.everything();
    assert_once(&rows, &["✓ handlers.failure", "✗ failing failed in"]);
}

#[test]
fn attempts_are_shown_while_retrying() {
    let dir = dir_with(
        "
name: flaky
steps:
  - name: flaky
    command: 'if [ -e tried ]; then until [ -e go.gate ]; do sleep 0.01; done; else touch tried; exit 7; fi'
    retry_policy: {limit: 2, delay: 1s}
",
    );
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    terminal.until("the wait", |rows| shows(rows, "exit status 7, attempt 2 of 3 follows"));
    terminal.until("the retry", |rows| {
        runs(rows, "flaky") && rows.iter().any(|row| row.ends_with("s  attempt 2 of 3"))
    });
    open(&dir, "go");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn colours_are_there_unless_refused() {
    let dir = dir_with("name: plain\nsteps:\n  - {name: one, command: 'true'}\n");
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    assert_eq!(terminal.end(), 0);
    let at = position(&terminal.rows(), "✓ one");
    let sign = terminal.screen().cell(u16::try_from(at).expect("a row"), 0).expect("a cell");
    assert_eq!((sign.contents(), sign.fgcolor()), ("✓", vt100::Color::Idx(2)));

    let mut terminal = Terminal::run(dir.path(), TREE, &[("NO_COLOR", "1")], (16, 80));
    assert_eq!(terminal.end(), 0);
    assert_once(&terminal.rows(), &["✓ one", "✓ plain completed"]);
    let text = String::from_utf8_lossy(&terminal.raw);
    let coloured = text.split('\x1b').skip(1).any(|rest| {
        rest.strip_prefix('[').is_some_and(|rest| {
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
        })
    });
    assert!(!coloured, "{text:?}");
}

#[test]
fn output_of_steps_appears_above_the_tree() {
    let dir = dir_with(
        "
name: talking
steps:
  - name: talks
    console: true
    command: |
      printf 'first line\\nsecond '
      echo 'a complaint' >&2
      until [ -e half.gate ]; do sleep 0.01; done
      printf 'line\\n\\033[2J\\033[31mred\\n'
      until [ -e all.gate ]; do sleep 0.01; done
      printf 'without an end'
",
    );
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    terminal.until("a line", |rows| shows(rows, "first line") && shows(rows, "a complaint"));
    terminal.frames(2, |rows| {
        assert_once(rows, &["first line", "a complaint", "0/1 done", " talks"]);
        assert!(position(rows, "first line") < position(rows, "0/1 done"));
        assert!(!shows(rows, "second"), "it has no end yet");
    });
    open(&dir, "half");
    terminal.until("the rest of the line", |rows| shows(rows, "second line"));
    terminal.until("more", |rows| shows(rows, "red"));
    let rows = terminal.rows();
    assert_once(&rows, &["first line", "second line", "red", "0/1 done", " talks"]);
    assert!(position(&rows, "red") < position(&rows, "0/1 done"));
    let at = u16::try_from(position(&rows, " talks")).expect("a row");
    let name = terminal.screen().cell(at, 2).expect("a cell");
    assert_eq!((name.contents(), name.fgcolor()), ("t", vt100::Color::Default));
    open(&dir, "all");
    assert_eq!(terminal.end(), 0);
    let rows = terminal.everything();
    assert_once(&rows, &["first line", "second line", "without an end", "✓ talks"]);
    assert!(position(&rows, "without an end") < position(&rows, "✓ talks"));
}

#[test]
fn standard_error_that_goes_elsewhere_is_left_alone() {
    let command = "echo said; echo \\\"a \\e[31mcomplaint\\\" >&2";
    let dir = dir_with(&format!(
        "name: talking\nsteps:\n  - {{name: talks, console: true, command: \"{command}\"}}\n"
    ));
    let script = format!("{TREE} 2> errors");
    let mut terminal = Terminal::run(dir.path(), &script, &[], (16, 80));
    assert_eq!(terminal.end(), 0);
    assert_once(&terminal.rows(), &["said", "✓ talks"]);
    assert!(!shows(&terminal.rows(), "complaint"));
    let errors = std::fs::read_to_string(dir.path().join("errors")).expect("a file");
    assert!(errors.starts_with("a \x1b[31mcomplaint\n"), "{errors:?}");
}

#[test]
fn much_output_scrolls_past_above_the_tree() {
    let dir = dir_with(
        "
name: flood
steps:
  - {name: flood, console: true, command: 'seq -f \"line %g.\" 1 30000; until [ -e all.gate ]; do sleep 0.01; done'}
",
    );
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    terminal.until("the last line", |rows| shows(rows, "line 30000."));
    terminal.frames(1, |rows| {
        assert_once(rows, &["line 29500.", "line 30000.", "0/1 done", " flood  "]);
    });
    open(&dir, "all");
    assert_eq!(terminal.end(), 0);
    assert_once(&terminal.everything(), &["line 30000.", "✓ flood  ", "✓ flood completed"]);
}

#[test]
fn the_cursor_is_hidden_while_live_and_back_at_the_end() {
    let dir = dir_with(DIAMOND);
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    terminal.until("the tree", |rows| runs(rows, "fetch"));
    assert!(terminal.screen().hide_cursor());
    for gate in ["fetch", "build", "lint", "ship"] {
        open(&dir, gate);
    }
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.screen().hide_cursor());
}

#[test]
fn an_interrupt_leaves_the_tree_with_what_was_cancelled() {
    let dir = dir_with(DIAMOND);
    let mut terminal = Terminal::run(dir.path(), TREE, &[], (16, 80));
    terminal.until("the tree", |rows| runs(rows, "fetch"));
    terminal.types(b"\x03");
    assert_eq!(terminal.end(), 130);
    let rows = terminal.everything();
    for step in ["fetch", "build", "lint", "ship"] {
        let row = &rows[position(&rows, &format!("⊘ {step} "))];
        assert!(row.contains("cancelled"), "{row}");
    }
    assert_once(&rows, &["✗ diamond failed in"]);
    assert!(!shows(&rows, "^C"), "{}", rows.join("\n"));
    assert!(!terminal.screen().hide_cursor());
}

#[test]
fn control_characters_do_not_garble_the_screen() {
    let dir = dir_with(
        "
name: evil name
steps:
  - {name: good, command: 'true'}
  - {name: 'wide 日本語', command: 'true'}
  - {name: bad, command: \"/nowhere/\\e[2J\\e[H\\n\", args: [x], depends: good}
",
    );
    let script = format!("{TREE} 2> /dev/null");
    let mut terminal = Terminal::run(dir.path(), &script, &[], (24, 80));
    assert_eq!(terminal.end(), 1);
    let rows = terminal.rows();
    assert_once(&rows, &["evil name: 3 steps", "✓ good", "wide 日本語", "─ ✗ bad"]);
}

#[test]
fn without_a_terminal_the_tree_is_a_stream() {
    let dir = dir_with("name: plain\nsteps:\n  - {name: one, command: 'true'}\n");
    let output = plain(dir.path());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(!text.contains('\x1b'), "{text:?}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines.iter().all(|line| line.starts_with('[')), "{text}");
    assert!(lines[1].ends_with("… one started") && lines[2].contains("✓ one completed"), "{text}");
}

fn plain(dir: &Path) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_kapell"))
        .args(["process", "--logger", "tree", "flow.yaml"])
        .current_dir(dir)
        .env("HOME", dir)
        .env("KAPELL_STATE_DIR", dir.join("state"))
        .env_remove("KAPELL_CONFIG")
        .output()
        .expect("kapell runs")
}
