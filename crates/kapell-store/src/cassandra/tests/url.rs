use std::fs;

use super::super::address::{Address, Replication, Serial};

fn parse(url: &str) -> Address {
    Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn why(url: &str) -> String {
    Address::parse(url).unwrap_err().to_string()
}

#[test]
fn hosts_keyspace_and_login_are_taken_apart() {
    let address = parse("cassandra://a%40b:p%2fw%3A@h1,h2:99,[::1],[::1]:2/prod_1?");
    assert_eq!(address.hosts, ["h1:9042", "h2:99", "[::1]:9042", "[::1]:2"]);
    assert_eq!(address.keyspace, "prod_1");
    assert_eq!(address.name(), "cassandra://h1:9042,h2:99,[::1]:9042,[::1]:2/prod_1");
    let login = address.login.unwrap();
    assert_eq!((login.user.as_str(), login.password().unwrap().as_str()), ("a@b", "p/w:"));
    let one_of_many = parse("cassandra://h/k/Blue-1.2?replication=1");
    assert_eq!((one_of_many.keyspace.as_str(), one_of_many.store.as_str()), ("k", "Blue-1.2"));
    assert_eq!(one_of_many.name(), "cassandra://h:9042/k/Blue-1.2");
    let bare = parse("cassandra://h/k");
    assert_eq!(bare.store, "main");
    assert!(bare.login.is_none() && bare.tls.is_none() && bare.dc.is_none());
    assert_eq!(
        (bare.serial, bare.replication, bare.gc_grace_seconds),
        (Serial::Global, None, 10_800)
    );
}

#[test]
fn who_agrees_and_where_copies_are_is_said() {
    let address = parse("cassandra://h/k?serial=local&dc=eu-1&gc_grace=60&replication=eu-1:3,us:2");
    assert_eq!((address.serial, address.dc.as_deref()), (Serial::Local, Some("eu-1")));
    assert_eq!(
        (address.agreement().as_str(), address.gc_grace_seconds),
        ("serial=local&dc=eu-1", 60)
    );
    let centres = vec![("eu-1".to_owned(), 3), ("us".to_owned(), 2)];
    assert_eq!(address.replication, Some(Replication::Centres(centres)));
    let cql = address.replication.unwrap().to_cql();
    assert_eq!(cql, "{'class': 'NetworkTopologyStrategy', 'eu-1': 3, 'us': 2}");
    let address = parse("cassandra://h/k?dc=eu&replication=3");
    assert_eq!(address.agreement(), "serial=global", "whom we ask is our own business");
    let cql = address.replication.unwrap().to_cql();
    assert_eq!(cql, "{'class': 'SimpleStrategy', 'replication_factor': 3}");
}

#[test]
fn passwords_come_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password").display().to_string();
    fs::write(&path, "se cret\n").unwrap();
    let login = parse(&format!("cassandra://u@h/k?password_file={path}")).login.unwrap();
    assert_eq!(login.password().unwrap(), "se cret");
    fs::write(&path, "new\n").unwrap();
    assert_eq!(login.password().unwrap(), "new", "it is read again");
    let missing = why("cassandra://u@h/k?password_file=/no/such/file");
    assert!(missing.contains("password_file `/no/such/file`: No such file"), "{missing}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = [
        ("cassandra:h/k", "does not begin with `cassandra://`"),
        ("cassandra://", "not `host` or `host:port`"),
        ("cassandra://h:0/k", "not `host` or `host:port`"),
        ("cassandra://h:x/k", "not `host` or `host:port`"),
        ("cassandra://h,,i/k", "not `host` or `host:port`"),
        ("cassandra://h", "1 to 48 lower-case letters"),
        ("cassandra://h/", "1 to 48 lower-case letters"),
        ("cassandra://h/K", "1 to 48 lower-case letters"),
        ("cassandra://h/1k", "1 to 48 lower-case letters"),
        ("cassandra://h/k-k", "1 to 48 lower-case letters"),
        ("cassandra://h/k/", "1 to 100 letters"),
        ("cassandra://h/k/a/b", "1 to 100 letters"),
        ("cassandra://h/k?seriel=local", "`seriel` is none of serial, dc, replication"),
        ("cassandra://h/k?serial=quorum", "neither `global` nor `local`"),
        ("cassandra://h/k?serial=local", "`serial=local` needs `dc`"),
        ("cassandra://h/k?dc=a'b", "no name of a data centre"),
        ("cassandra://h/k?replication=0", "no number of copies"),
        ("cassandra://h/k?replication=dc1:x", "no number of copies"),
        ("cassandra://h/k?replication=dc1:3,3", "write `replication=dc1:3,dc2:3`"),
        ("cassandra://h/k?replication='x':3", "no name of a data centre"),
        ("cassandra://h/k?gc_grace=1h", "no number of seconds"),
        ("cassandra://h/k?tls=yes", "neither `true` nor `false`"),
        ("cassandra://h/k?tls=true", "TLS needs `ca`"),
        ("cassandra://h/k?tls=true&ca=/no/such/file", "ca `/no/such/file`"),
        ("cassandra://h/k?tls=true&ca=f&cert=f", "`cert` and `key` come together"),
        ("cassandra://h/k?ca=f", "`ca` needs `tls=true`"),
        ("cassandra://h/k?password_file=f", "needs a user"),
        ("cassandra://u@h/k", "neither password nor"),
        ("cassandra://u:p@h/k?password_file=f", "two passwords"),
        ("cassandra://:p@h/k", "the user is empty"),
        ("cassandra://u:%4@h/k", "two hexadecimal digits"),
    ];
    for (url, want) in refused {
        let got = why(url);
        assert!(got.contains(want), "{url}: want {want}, got {got}");
    }
    assert!(why(&format!("cassandra://h/{}", "k".repeat(49))).contains("1 to 48"));
}

#[test]
fn no_message_shows_a_secret() {
    for url in [
        "cassandra://root:hunter2@h/k?x=1",
        "cassandra://root:hunter2@h",
        "cassandra://root:hun/ter2@h:x/k",
        "cassandra://root:hunter2?@h/k",
        "cassandra://h/k?password=hunter2",
        "cassandra://h/k?password=a@hunter2",
        "root:hunter2@h/k",
        "root:hunter2/x@h/k",
        "cassandra://root:hunter2/x@h/k",
        "cassandra://root:hunter2/ter2@h/k",
        "cassandra://root:x/hunter2@h:x/k",
        "cassandra://root:a,hunter2/x@h/k",
        "cassandra://root:9042,hunter2/x@h/k",
        "cassandra://root:hunter2",
        "cassandra://root:hunter2/k",
        "cassandra://root:a?hunter2@h/k",
        "cassandra://root:a?serial=hunter2@h/k",
        "cassandra://root:a?gc_grace=hunter2&dc=x@h/k",
        "cassandra://h:9042/k?password=hunter2:x",
    ] {
        let error = Address::parse(url).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("ter2"), "{url}: {shown}");
    }
    let address = parse("cassandra://root:hunter2@h/k");
    assert_eq!(format!("{address:?}"), "\"cassandra://h:9042/k\"");
}
