//! How programs are started, and how they end.

use nix::unistd::geteuid;

use super::rig::{MAIN, Rig};
use crate::containers::{Error, Exit, Process, Spec, User};

pub(crate) async fn exit_codes_and_signals_come_back(rig: Rig) {
    for code in [0, 1, 127, 255] {
        let exit = rig.run_to_end(&format!("code{code}"), &format!("exit {code}")).await;
        assert_eq!(exit, Exit { code: Some(code), ..Exit::default() });
    }
    // Whoever is the first process of its own world hears only what it asks for, unless it is killed.
    let exit = rig.run_to_end("signal9", "sh -c 'kill -9 $$'; exit 3").await;
    assert_eq!(exit.code, Some(3));
    let exit = rig.ended("code1", MAIN).await;
    assert_eq!(exit.code, Some(1), "also again");
    rig.clean_up(&["code0", "code1", "code127", "code255", "signal9"]).await;
}

pub(crate) async fn it_sees_its_environment(rig: Rig) {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut process = Rig::process(MAIN, "echo \"$A|$B|$KAPELL_TEST_OF_AGENT\"");
    process.env.extend([pair("A", "first"), pair("B", "x=y"), pair("A", "two words")]);
    rig.create(rig.spec("env")).await;
    rig.run("env", process).await;
    assert_eq!(rig.ended("env", MAIN).await.code, Some(0));
    assert_eq!(rig.text("env", MAIN), "two words|x=y|\n");
    rig.clean_up(&["env"]).await;
}

pub(crate) async fn it_runs_in_its_directory_or_another(rig: Rig) {
    rig.start("dir", "pwd; echo mine > file; ls").await;
    assert_eq!(rig.ended("dir", MAIN).await.code, Some(0));
    let want = rig.driver.dir(&rig.guid("dir"));
    assert_eq!(rig.text("dir", MAIN), format!("{}\nfile\n", want.display()));
    let there = Process { dir: Some("/tmp".into()), ..Rig::process("there", "pwd") };
    rig.run("dir", there).await;
    rig.ended("dir", "there").await;
    assert_eq!(rig.text("dir", "there"), "/tmp\n");
    rig.clean_up(&["dir"]).await;
}

pub(crate) async fn it_runs_as_its_user(rig: Rig) {
    if !geteuid().is_root() {
        rig.skip("needs root");
        return;
    }
    let user = User::Id { uid: 4001, gid: 4002, own: false };
    rig.create(Spec { user, sole: false, ..rig.spec("user") }).await;
    let script = "id -u; id -g; echo x > mine && ls -n mine";
    rig.run("user", Rig::process(MAIN, script)).await;
    assert_eq!(rig.ended("user", MAIN).await.code, Some(0));
    let text = rig.text("user", MAIN);
    assert!(text.starts_with("4001\n4002\n"), "{text}");
    let other = User::Id { uid: 4003, gid: 4004, own: false };
    rig.run("user", Process { user: Some(other), ..Rig::process("other", "id -u; id -g") }).await;
    rig.ended("user", "other").await;
    assert_eq!(rig.text("user", "other"), "4003\n4004\n");
    rig.clean_up(&["user"]).await;
}

pub(crate) async fn what_cannot_start_says_so_and_leaves_its_container(rig: Rig) {
    rig.create(rig.spec("bad")).await;
    let guid = rig.guid("bad");
    let absent = Process { path: "/no/such".to_owned(), ..Rig::process(MAIN, "") };
    let error = rig.driver.run(&guid, absent).await.unwrap_err();
    assert!(matches!(&error, Error::Unstartable(why) if why.contains("/no/such")), "{error:?}");
    let nul = Process { args: vec!["a\0b".to_owned()], ..Rig::process(MAIN, "") };
    let error = rig.driver.run(&guid, nul).await.unwrap_err();
    assert!(matches!(&error, Error::Unstartable(why) if why.contains("NUL")), "{error:?}");
    assert!(!rig.logs("bad", MAIN).exists(), "nothing was written");
    assert!(matches!(rig.driver.ended(&guid, MAIN).await, Err(Error::Unknown(_))));
    rig.run("bad", Rig::process(MAIN, "exit 4")).await;
    assert_eq!(rig.ended("bad", MAIN).await.code, Some(4), "the name is free again");
    let spec = Spec { rootfs: Some("nonsense:///x".to_owned()), ..rig.spec("root") };
    let error = rig.driver.create(spec).await.unwrap_err();
    assert!(matches!(&error, Error::Unstartable(why) if why.contains("nonsense")), "{error:?}");
    rig.clean_up(&["bad"]).await;
}

pub(crate) async fn names_are_given_once(rig: Rig) {
    rig.start("one", "sleep 100").await;
    let guid = rig.guid("one");
    let again = rig.driver.create(rig.spec("one")).await.unwrap_err();
    assert!(matches!(again, Error::Io { .. }), "{again:?}");
    let again = rig.driver.run(&guid, Rig::process(MAIN, "true")).await.unwrap_err();
    assert!(matches!(again, Error::Io { .. }), "{again:?}");
    for bad in ["../up", "", "a b"] {
        let error = rig.driver.create(Spec { guid: bad.to_owned(), ..rig.spec("x") }).await;
        assert!(matches!(error, Err(Error::Unstartable(_))), "{error:?}");
        let error = rig.driver.run(&guid, Rig::process(bad, "")).await;
        assert!(matches!(error, Err(Error::Unstartable(_))), "{error:?}");
    }
    let unknown = rig.driver.run("other", Rig::process(MAIN, "")).await;
    assert!(matches!(unknown, Err(Error::Unknown(_))));
    assert!(matches!(rig.driver.ended(&guid, "other").await, Err(Error::Unknown(_))));
    assert!(matches!(rig.driver.stop("other", MAIN).await, Err(Error::Unknown(_))));
    rig.driver.delete("other").await.unwrap();
    rig.driver.delete(&guid).await.unwrap();
    assert!(matches!(rig.driver.ended(&guid, MAIN).await, Err(Error::Unknown(_))));
    rig.start("one", "exit 2").await;
    assert_eq!(rig.ended("one", MAIN).await.code, Some(2));
    rig.clean_up(&["one"]).await;
}
