//! Much output: it neither fills memory nor disk, and never blocks.

use std::fs;
use std::time::Duration;

use crate::bench::Bench;
use crate::census::peak_memory_kb;
use crate::gate::Gate;

const MB: u64 = 1 << 20;

/// The size of the last run's output on disk.
fn output_size(bench: &Bench) -> u64 {
    let mut command = bench.command("find");
    command.args(["state", "-name", "output.log"]);
    let found = bench.run_command(command).expect(0).stdout;
    let path = found.lines().last().expect("an output log");
    fs::metadata(bench.path(path)).expect("a file").len()
}

#[test]
fn a_gigabyte_of_output_fills_neither_memory_nor_disk() {
    let bench = Bench::with(
        "
steps:
  - {name: much, command: 'head -c 1G /dev/zero; echo the end >&2; exit 3', continue_on_error: true}
  - {name: hold, command: read _ < gate, depends: [{step: much, on: done}]}
",
    )
    .set("KAPELL_OUTPUT_LIMIT_MIB", "1");
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let waiting = gate.reached();
    let peak = peak_memory_kb(running.worker());
    waiting.go_on();
    let ran = running.finish().expect(0);
    assert!(peak < 14 * 1024, "{peak} kB");
    assert!(ran.took < Duration::from_secs(30), "{:?}", ran.took);
    ran.stderr_has("⚠ tolerated: much: exit status 3\n  │ the end\n");
    let size = output_size(&bench);
    assert!(size < MB + MB / 4, "{size} bytes on disk");
    let logs = bench.run(&["workflow", "logs", "--step", "much"]).expect(0).stdout;
    assert!(logs.contains(" bytes left out, the last of them follow …]\n"));
    assert!(logs.ends_with("the end\n"), "the end is kept");
}

#[test]
fn much_output_of_many_steps_at_once_does_not_block() {
    let mut flow = String::from("workers: 8\nsteps:\n");
    for number in 0..8 {
        flow.push_str(&format!(
            "  - {{name: s{number}, command: 'head -c 20M /dev/zero & head -c 20M /dev/zero >&2; wait'}}\n"
        ));
    }
    let bench = Bench::with(&flow).set("KAPELL_OUTPUT_LIMIT_MIB", "1");
    let ran = bench.flow(&[]).expect(0);
    assert!(ran.took < Duration::from_secs(30), "{:?}", ran.took);
    assert!(output_size(&bench) < 8 * (MB + MB / 4));
}

#[test]
fn much_output_into_a_variable_does_not_fill_memory() {
    let bench = Bench::with(
        "
steps:
  - {name: much, command: head -c 300M /dev/zero, output: V, continue_on_error: true}
  - {name: hold, command: read _ < gate, depends: [{step: much, on: done}]}
",
    )
    .set("KAPELL_OUTPUT_LIMIT_MIB", "1");
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let waiting = gate.reached();
    let peak = peak_memory_kb(running.worker());
    waiting.go_on();
    running.finish().expect(0);
    assert!(peak < 14 * 1024, "{peak} kB");
}

#[test]
fn a_long_line_is_shown_in_part() {
    let bench = Bench::with(
        "steps: [{name: a, command: 'head -c 1000000 /dev/zero | tr \"\\0\" x >&2; exit 1'}]\n",
    );
    let ran = bench.flow(&[]).expect(1);
    assert!(ran.stderr.len() < 20_000, "{} bytes", ran.stderr.len());
    ran.stderr_has("  │ xxxx");
}

#[test]
fn nothing_is_kept_of_the_output_but_its_end_if_so_asked() {
    let bench = Bench::with("steps: [{name: a, command: echo said}]\n");
    let bench = bench.set("KAPELL_OUTPUT_LIMIT_MIB", "0");
    bench.flow(&[]).expect(0);
    let ran = bench.run(&["workflow", "logs", "--step", "a"]).expect(0);
    assert_eq!(ran.stdout, "\n[… 5 bytes left out, the last of them follow …]\nsaid\n");
}
