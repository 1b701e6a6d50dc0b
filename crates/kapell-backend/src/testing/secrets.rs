use std::fs;
use std::path::{Path, PathBuf};

use kapell_core::log::Stream;
use kapell_core::secret::Secret;

use super::rig::{MAIN, Rig, until};
use crate::containers::{Error, Process};

const SECRET: &str = "correct-horse-battery-staple";
/// The same with each letter moved on by one, so that it can be told that it is known.
const MOVED: &str = "dpssfdu-ipstf-cbuufsz-tubqmf";
const TELL: &str = "printf %s \"$SECRET\" | tr a-y b-z; echo; echo ready;";
const WAIT: &str = "while [ ! -e go ]; do sleep 0.01; done";

fn knowing(process: &str, script: &str) -> Process {
    let secrets = vec![("SECRET".to_owned(), Secret::new(SECRET))];
    Process { secrets, ..Rig::process(process, script) }
}

/// The files below a directory that have this in them.
fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

fn assert_hidden(rig: &Rig) {
    assert_eq!(files_with(rig.dir.path(), SECRET), Vec::<PathBuf>::new());
    assert_eq!(Rig::count(SECRET), 0, "no argument has it");
}

pub(crate) async fn a_process_knows_its_secrets_and_no_file_and_no_argument_has_them(rig: Rig) {
    rig.create(rig.spec("web")).await;
    rig.run("web", knowing(MAIN, &format!("{TELL} {WAIT}"))).await;
    rig.says("web", MAIN, "ready").await;
    assert_eq!(rig.text("web", MAIN), format!("{MOVED}\nready\n"));
    assert_hidden(&rig);
    // Whoever starts anew needs none of them.
    let (rig, found) = rig.restart().await;
    assert_eq!(found.len(), 1);
    assert_hidden(&rig);
    rig.touch("web", "go").await;
    assert_eq!(rig.ended("web", MAIN).await.code, Some(0));
    assert_hidden(&rig);
    rig.clean_up(&["web"]).await;
}

pub(crate) async fn one_of_several_processes_knows_its_own_only(rig: Rig) {
    let mut spec = rig.spec("several");
    spec.sole = false;
    rig.create(spec).await;
    rig.run("several", knowing("one", &format!("{TELL} {WAIT}"))).await;
    rig.run("several", Rig::process("two", "echo \"has ${SECRET-none}\"")).await;
    assert_eq!(rig.ended("several", "two").await.code, Some(0));
    assert_eq!(rig.text("several", "two"), "has none\n");
    rig.says("several", "one", "ready").await;
    assert_eq!(rig.text("several", "one"), format!("{MOVED}\nready\n"));
    assert_hidden(&rig);
    rig.touch("several", "go").await;
    assert_eq!(rig.ended("several", "one").await.code, Some(0));
    rig.clean_up(&["several"]).await;
}

pub(crate) async fn secrets_are_not_seen_in_output_and_last_words(rig: Rig) {
    let script = "echo \"<$SECRET>\"; printf %s \"${SECRET%-battery*}\"; sleep 0.05; \
                  echo \"-battery${SECRET#*-battery}\"; echo correct-horse-bat; \
                  echo \"bad $SECRET\" >&2; exit 3";
    rig.create(rig.spec("chatty")).await;
    rig.run("chatty", knowing(MAIN, script)).await;
    let exit = rig.ended("chatty", MAIN).await;
    assert_eq!((exit.code, exit.last_words.as_str()), (Some(3), "bad ***"));
    assert_eq!(rig.text("chatty", MAIN), "<***>\n***\ncorrect-horse-bat\n");
    assert_eq!(rig.output("chatty", MAIN, Stream::Err), b"bad ***\n");
    assert_hidden(&rig);
    rig.clean_up(&["chatty"]).await;
}

pub(crate) async fn a_process_that_is_started_again_has_the_secrets_of_then(rig: Rig) {
    rig.create(rig.spec("again")).await;
    rig.run("again", knowing("one", TELL)).await;
    assert_eq!(rig.ended("again", "one").await.code, Some(0));
    let secrets = vec![("SECRET".to_owned(), Secret::new("another-one"))];
    rig.run("again", Process { secrets, ..Rig::process("two", TELL) }).await;
    assert_eq!(rig.ended("again", "two").await.code, Some(0));
    assert_eq!(rig.text("again", "two"), "bopuifs-pof\nready\n");
    rig.run("again", Rig::process("three", "echo \"has ${SECRET-none}\"")).await;
    assert_eq!(rig.ended("again", "three").await.code, Some(0));
    assert_eq!(rig.text("again", "three"), "has none\n");
    assert_hidden(&rig);
    rig.clean_up(&["again"]).await;
}

pub(crate) async fn what_cannot_start_leaves_no_secret_behind(rig: Rig) {
    rig.create(rig.spec("bad")).await;
    let guid = rig.guid("bad");
    let absent = Process { path: "/no/such".to_owned(), ..knowing(MAIN, "") };
    let failed = rig.driver.run(&guid, absent).await;
    assert!(matches!(failed, Err(Error::Unstartable(_))), "{failed:?}");
    for name in ["", "A=B", "KAPELL_CONTAINER"] {
        let secrets = vec![(name.to_owned(), Secret::new(SECRET))];
        let failed = rig.driver.run(&guid, Process { secrets, ..Rig::process(MAIN, "") }).await;
        let text = failed.unwrap_err().to_string();
        assert_eq!(text, format!("`{name}` is no name for an environment variable"));
    }
    assert_hidden(&rig);
    rig.run("bad", knowing(MAIN, &format!("{TELL} {WAIT}"))).await;
    rig.says("bad", MAIN, MOVED).await;
    rig.touch("bad", "go").await;
    until(|| rig.text("bad", MAIN).contains("ready")).await;
    rig.clean_up(&["bad"]).await;
}
