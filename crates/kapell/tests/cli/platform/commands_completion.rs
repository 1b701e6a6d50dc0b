//! Completion, in a real shell.

use super::Site;
use super::life::STAYS;
use crate::bench::{Bench, is_there, skip};

/// What bash offers after these words, the last of which is being typed.
fn offered(site: &Site, words: &[&str]) -> Vec<String> {
    // The function is asked as the shell does it, whatever it is called.
    const SCRIPT: &str = r#"
        source <(kapell completions bash)
        set -- "$@"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9 COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        known=$(complete -p kapell) || exit 9
        known=${known##*-F }; known=${known%% *}
        "$known" kapell "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        ((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_kapell"));
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = site.bench.command("bash");
    command
        .args(["--norc", "-c", SCRIPT, "bash"])
        .args(words)
        .env("PATH", format!("{}:{path}", bin.parent().expect("a directory").display()));
    let ran = site.bench.run_command(command).expect(0);
    ran.stdout.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn bash_completes_commands_and_ids() {
    if !is_there("bash") {
        return skip("bash_completes_commands_and_ids", "there is no bash");
    }
    let site = Site::up();
    site.desire("web-one", 1, STAYS);
    site.desire("web-two", 1, STAYS);
    site.desire("other", 0, STAYS);
    site.all_run("web-one", 1);
    site.all_run("web-two", 1);
    site.kapell(&["task", "run", "--name", "nightly", "--", "true"]).expect(0);
    site.kapell(&["domain", "set", "apps"]).expect(0);
    let is = |words: &[&str], want: &[&str]| assert_eq!(offered(&site, words), want, "{words:?}");
    is(&["kapell", "lrp", "sc"], &["scale"]);
    is(&["kapell", "lrp", "show", "web-"], &["web-one", "web-two"]);
    is(&["kapell", "lrp", "delete", "other", "web-t"], &["web-two"]);
    is(&["kapell", "task", "show", "n"], &["nightly"]);
    is(&["kapell", "domain", "set", "a"], &["apps"]);
    is(&["kapell", "cells", "evacuate", "l"], &["local"]);
    is(&["kapell", "logs", "web-o"], &["web-one", "web-one/0"]);
    is(&["kapell", "explain", "lrp/web-t"], &["lrp/web-two", "lrp/web-two/0"]);
    is(&["kapell", "wait", "task/"], &["task/nightly"]);
    is(&["kapell", "lrp", "show", "nobody"], &[]);
}

#[test]
fn completion_says_nothing_when_nobody_answers_and_every_shell_has_one() {
    let bench = Bench::new().set("KAPELL_URL", "http://127.0.0.1:1");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.run(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("kapell"), "{shell}: {script}");
    }
    bench.run(&["completions", "csh"]).expect(2);
    let mut command = bench.kapell(&["--", "kapell", "lrp", "show", ""]);
    command.env("KAPELL_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3");
    let ran = bench.run_command(command).expect(0);
    assert_eq!(ran.stderr, "");
    for shell in ["zsh", "fish"] {
        if is_there(shell) {
            let mut command = bench.command(shell);
            command.args(["-n", "script"]);
            bench.write("script", bench.run(&["completions", shell]).expect(0).stdout);
            bench.run_command(command).expect(0);
        }
    }
}
