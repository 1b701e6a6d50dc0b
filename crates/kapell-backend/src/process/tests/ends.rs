//! How programs end, and why some never start.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::lab::Lab;
use crate::containers::{Containers as _, Error, Exit, Spec};

#[tokio::test]
async fn exit_codes_and_signals_come_back() {
    let lab = Lab::new();
    for code in [0, 1, 127, 255] {
        let name = format!("code{code}");
        let exit = lab.run_to_end(&name, &format!("exit {code}")).await;
        assert_eq!(exit, Exit { code: Some(code), ..Exit::default() });
    }
    for signal in [9, 15, 40] {
        let name = format!("signal{signal}");
        let exit = lab.run_to_end(&name, &format!("kill -{signal} $$")).await;
        assert_eq!(exit, Exit { signal: Some(signal), ..Exit::default() });
    }
    // Also again.
    assert_eq!(lab.ended("code1").await.code, Some(1));
    lab.clean_up().await;
}

#[tokio::test]
async fn a_program_that_cannot_start_says_why() {
    let lab = Lab::new();
    let program = |path: &str| Spec { path: path.to_owned(), ..lab.spec("bad", "") };
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
    let dir = |dir: &str| Spec { dir: Some(dir.into()), ..lab.spec("bad", "") };
    assert_eq!(lab.why_not(dir("/no/such")).await, "directory `/no/such` is not there");
    assert_eq!(lab.why_not(dir("/etc/passwd")).await, "`/etc/passwd` is not a directory");
    assert!(!lab.logs("bad").exists(), "nothing was written");
    lab.clean_up().await;
}

#[tokio::test]
async fn what_cannot_be_passed_on_is_refused() {
    let lab = Lab::new();
    let spec = || lab.spec("bad", "");
    let nul = Spec { args: vec!["a\0b".to_owned()], ..spec() };
    assert_eq!(lab.why_not(nul).await, "an argument of the container holds a NUL byte");
    let name = Spec { env: vec![("A=B".to_owned(), String::new())], ..spec() };
    assert_eq!(lab.why_not(name).await, "`A=B` is no name for an environment variable");
    let guid = Spec { guid: "../up".to_owned(), ..spec() };
    assert!(lab.driver.run(guid).await.unwrap_err().to_string().starts_with("`../up` is no name"));
    lab.clean_up().await;
}

#[tokio::test]
async fn it_sees_its_environment_and_nothing_else() {
    let lab = Lab::new();
    let bin = lab.dir.path().join("own-bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/usr/bin/env", bin.join("my-env")).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let spec = Spec {
        path: "my-env".to_owned(),
        args: Vec::new(),
        env: vec![
            pair("A", "first"),
            pair("PATH", &format!("/no/such:{}", bin.display())),
            pair("A", "two words"),
        ],
        ..lab.spec("env", "")
    };
    lab.driver.run(spec).await.unwrap();
    assert_eq!(lab.ended("env").await.code, Some(0));
    let want = format!(
        "A=two words\nKAPELL_CONTAINER={}\nPATH=/no/such:{}\n",
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
    let there = Spec { dir: Some("/usr".into()), ..lab.spec("there", "pwd") };
    lab.driver.run(there).await.unwrap();
    lab.ended("there").await;
    assert_eq!(lab.text("there"), "/usr\n");
    lab.clean_up().await;
}

#[tokio::test]
async fn one_guid_is_one_container() {
    let lab = Lab::new();
    lab.run("one", "sleep 100").await;
    let again = lab.driver.run(lab.spec("one", "true")).await.unwrap_err();
    assert!(matches!(again, Error::Io { .. }), "{again:?}");
    assert!(super::lab::is_alive(lab.pid("one", 1)), "the first one runs on");
    assert!(matches!(lab.driver.ended("other").await, Err(Error::Unknown(_))));
    assert!(matches!(lab.driver.stop("other").await, Err(Error::Unknown(_))));
    lab.driver.delete("other").await.unwrap();
    let guid = lab.guid("one");
    lab.driver.delete(&guid).await.unwrap();
    lab.driver.delete(&guid).await.unwrap();
    assert!(matches!(lab.driver.ended(&guid).await, Err(Error::Unknown(_))));
    lab.clean_up().await;
}
