//! The whole life of a real server.

use std::io::Write as _;
use std::os::unix::fs::symlink;

use super::super::life::{self, Term};
use super::super::table::{SERVERS, Server};
use super::*;
use crate::scratch::Scratch;

/// Set in runs that could have a server.
const HERE: &str = "KAPELL_TEST_CASSANDRA";
const TEST: &str = "a_server_keeps_what_it_acknowledged_and_leaves_nothing_behind";

fn server() -> &'static Server {
    SERVERS.iter().find(|server| server.name == NAME).unwrap()
}

/// The programs of the machine's own cache, and nothing else of it.
fn cache(scratch: &Scratch) -> Option<Cache> {
    if std::env::var_os(HERE).is_none() {
        let file = std::env::var_os("KAPELL_TEST_SKIPS")?;
        let mut file = fs::OpenOptions::new().append(true).open(file).unwrap();
        writeln!(file, "SKIP {TEST}: {HERE} names no server").unwrap();
        return None;
    }
    let (machine, cache) = (Cache::locate().unwrap(), Cache::at(scratch.path()));
    for path in [jars::directory(&machine), jars::archive(&machine)] {
        symlink(&path, cache.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    Some(cache)
}

#[test]
fn a_server_keeps_what_it_acknowledged_and_leaves_nothing_behind() {
    let scratch = Scratch::new("cassandra").unwrap();
    let Some(cache) = cache(&scratch) else { return };
    let mut state = State::default();
    let (record, _) = life::ensure(&cache, &mut state, server(), Term::UntilDown).unwrap();
    let dir = record.dir.clone();
    let outcome = std::panic::catch_unwind(|| {
        assert_eq!(Cassandra.programs(&cache).unwrap(), dir);
        let place = record.endpoint.rsplit_once('@').unwrap().1;
        let kapell = ("kapell", "secret");
        let mut line = Line::open(place, kapell).unwrap();
        line.ask("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            .unwrap();
        line.ask("CREATE TABLE k.t (a int PRIMARY KEY, b int)").unwrap();
        line.ask("INSERT INTO k.t (a, b) VALUES (1, 2)").unwrap();
        let first = pid(&dir).unwrap();
        end(&dir, libc::SIGKILL).unwrap();
        assert!(!is_alive(&dir) && !Cassandra.answers(&cache, &record.endpoint));
        start(&dir).unwrap();
        await_login(&dir).unwrap();
        assert_ne!(pid(&dir).unwrap(), first);
        let mut line = Line::open(place, kapell).unwrap();
        let found = line.rows("SELECT b FROM k.t WHERE a = 1").unwrap();
        assert!(
            found.ends_with(&[0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2]),
            "one row with a 2: {found:?}"
        );
        assert!(Line::open(place, ("kapell", "wrong")).is_err());
        let mut stranger = Line::open(place, ("stranger", "secret")).unwrap();
        assert!(stranger.ask("SELECT b FROM k.t WHERE a = 1").is_err());
    });
    let last = pid(&dir).unwrap();
    life::stop(&cache, &mut state, server()).unwrap();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    assert!(!process::is_running(last, JAVA, &dir) && !dir.exists());
}
