//! How programs end, and why some never start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::lab::{Job, Lab};
use crate::containers::Exit;

#[tokio::test]
async fn every_signal_comes_back() {
    let lab = Lab::new();
    for signal in [9, 15, 40] {
        let name = format!("signal{signal}");
        let exit = lab.run_to_end(&name, &format!("kill -{signal} $$")).await;
        assert_eq!(exit, Exit { signal: Some(signal), ..Exit::default() });
    }
    lab.clean_up().await;
}

#[tokio::test]
async fn a_program_that_cannot_start_says_why() {
    let lab = Lab::new();
    let program = |path: &str| Job { path: path.to_owned(), ..lab.job("bad", "") };
    assert_eq!(lab.why_not(program("no-such")).await, "`no-such` was not found in PATH");
    assert_eq!(lab.why_not(program("/no/such")).await, "`/no/such` is not there");
    assert_eq!(lab.why_not(program("/etc/passwd")).await, "`/etc/passwd` may not be executed");
    assert_eq!(lab.why_not(program("/etc")).await, "`/etc` may not be executed");
    let script = lab.dir.path().join("script");
    let path = script.to_str().unwrap();
    let runs = |text: &str| {
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    };
    runs("#!/no/such/interpreter\n");
    let want = format!("the interpreter that `{path}` names in its first line is not there");
    assert_eq!(lab.why_not(program(path)).await, want);
    runs("nothing\n");
    let want = format!("`{path}` is neither a program for this machine nor a script with `#!`");
    assert_eq!(lab.why_not(program(path)).await, want);
    let dir = |dir: &str| Job { dir: Some(dir.into()), ..lab.job("bad", "") };
    assert_eq!(lab.why_not(dir("/no/such")).await, "directory `/no/such` is not there");
    assert_eq!(lab.why_not(dir("/etc/passwd")).await, "`/etc/passwd` is not a directory");
    assert!(!lab.logs("bad").exists(), "nothing was written");
    lab.clean_up().await;
}

#[tokio::test]
async fn what_cannot_be_passed_on_is_refused() {
    let lab = Lab::new();
    let spec = || lab.job("bad", "");
    let nul = Job { args: vec!["a\0b".to_owned()], ..spec() };
    assert_eq!(lab.why_not(nul).await, "an argument of the container holds a NUL byte");
    let name = Job { env: vec![("A=B".to_owned(), String::new())], ..spec() };
    assert_eq!(lab.why_not(name).await, "`A=B` is no name for an environment variable");
    let guid = Job { guid: "../up".to_owned(), ..spec() };
    assert!(
        guid.start(&lab.driver).await.unwrap_err().to_string().starts_with("`../up` is no name")
    );
    lab.clean_up().await;
}

#[tokio::test]
async fn it_sees_its_environment_and_nothing_else() {
    let lab = Lab::new();
    let bin = lab.dir.path().join("own-bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/usr/bin/env", bin.join("my-env")).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let spec = Job {
        path: "my-env".to_owned(),
        args: Vec::new(),
        env: vec![
            pair("A", "first"),
            pair("PATH", &format!("/no/such:{}", bin.display())),
            pair("A", "two words"),
        ],
        ..lab.job("env", "")
    };
    lab.start(spec).await;
    assert_eq!(lab.ended("env").await.code, Some(0));
    let want = format!(
        "A=two words\nKAPELL_CONTAINER={}\nKAPELL_PROCESS=main\nPATH=/no/such:{}\n",
        lab.guid("env"),
        bin.display()
    );
    assert_eq!(lab.text("env"), want);
    lab.clean_up().await;
}

#[tokio::test]
async fn it_starts_in_an_orderly_place() {
    let lab = Lab::new();
    let script = "pwd; ls -A | wc -l; ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn|NoNewPrivs' /proc/self/status; \
                  ps -o pid=,pgid=,sid= $$ | xargs -n1 | sort -u | wc -l; cat";
    assert_eq!(lab.run_to_end("place", script).await.code, Some(0));
    let text = lab.text("place");
    let mut lines = text.lines();
    assert_eq!(lines.next(), lab.home("place").join("work").to_str());
    // An empty directory; three streams and the descriptor that lists them.
    assert_eq!((lines.next(), lines.next()), (Some("0"), Some("4")));
    let rest: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    let none = "0000000000000000";
    assert_eq!(rest, ["SigBlk:", none, "SigIgn:", none, "NoNewPrivs:", "1", "1"]);
    let there = Job { dir: Some("/usr".into()), ..lab.job("there", "pwd") };
    lab.start(there).await;
    lab.ended("there").await;
    assert_eq!(lab.text("there"), "/usr\n");
    lab.clean_up().await;
}
