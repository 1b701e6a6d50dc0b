use std::time::Duration;

use crate::error::Error;
use crate::postgres::target::Target;
use crate::postgres::tls::Trust;

fn target(url: &str) -> Target {
    Target::parse(url, Duration::from_secs(1)).unwrap()
}

fn refusal(url: &str) -> String {
    let error = Target::parse(url, Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, Error::BadUrl { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn names_have_no_secrets() {
    for (url, name) in [
        ("postgres://me:s3cret@db:5433/prod?sslmode=require", "postgres://me@db:5433/prod"),
        ("postgresql://me@db?password=s3cret&schema=other", "postgres://me@db:5432?schema=other"),
        ("postgres://me@a,b:5433/x", "postgres://me@a:5432,b:5433/x"),
        ("postgres://[::1]:1/x", "postgres://[::1]:1/x"),
        ("postgres:///x?host=/run/postgresql&user=me", "postgres://me@/run/postgresql:5432/x"),
        ("postgres://me@h/x?schema=kapell", "postgres://me@h:5432/x"),
    ] {
        assert_eq!(target(url).name, name);
        assert!(!format!("{:?}", target(url)).contains("s3cret"));
    }
}

#[test]
fn refusals_have_no_secrets_either() {
    for url in [
        "postgres://me:s3cret@db:port/prod",
        "postgres://me:s3@cret@db/prod",
        "postgres://me@db/prod?password=s3cret&nonsense=1",
        "postgres://me:s3cret@db/prod?password_file=/f",
        "mysql://me:s3cret@db",
    ] {
        let text = refusal(url);
        assert!(!text.contains("s3") && !text.contains("cret"), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (url, why) in [
        ("postgres://db?colour=red", "parameter `colour` is unknown; known are schema, sslmode,"),
        ("postgres:///db", "it has no host"),
        ("postgres://db?schema=Kapell", "schema is at most 63 lower-case letters"),
        ("postgres://db?schema=x;drop", "schema is at most 63 lower-case letters"),
        ("postgres://db?schema=", "schema is at most 63 lower-case letters"),
        ("postgres://db?schema=pg_catalog", "nor `pg_`"),
        ("postgres://db?pool=0", "pool is a number from 1 to 64, not `0`"),
        ("postgres://db?sslmode=prefer", "sslmode is disable, require or verify-full"),
        ("postgres://db?sslmode=require&sslrootcert=x", "only checked with sslmode=verify-full"),
        ("postgres://db?port=x", "port is a list of port numbers, not `x`"),
        ("postgres://u:a@b@db/x", "is written `%40`"),
        ("postgres://db?password=a&password_file=b", "both a password and a password_file"),
        ("host=db", "it does not begin with `postgres://`"),
    ] {
        let text = refusal(url);
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn only_what_stays_on_this_machine_goes_without_proof() {
    for (url, trust) in [
        ("postgres://127.0.0.1", Trust::Plain),
        ("postgres://[::1]", Trust::Plain),
        ("postgres://localhost", Trust::Plain),
        ("postgres://?host=/run/postgresql", Trust::Plain),
        ("postgres://db?hostaddr=127.0.0.1", Trust::Plain),
        ("postgres://db", Trust::Roots(None)),
        ("postgres://localhost,db", Trust::Roots(None)),
        ("postgres://localhost?hostaddr=10.0.0.1", Trust::Roots(None)),
        ("postgres://localhost?sslrootcert=/a+b", Trust::Roots(Some("/a+b".into()))),
        ("postgres://db?sslmode=disable", Trust::Plain),
        ("postgres://db?sslmode=require", Trust::Anyone),
        ("postgres://localhost?sslmode=verify-full", Trust::Roots(None)),
    ] {
        assert_eq!(target(url).trust, trust, "{url}");
    }
}

#[test]
fn the_password_file_is_read_anew_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password");
    let target = target(&format!("postgres://me@localhost?password_file={}", path.display()));
    assert!(matches!(target.config(), Err(Error::BadUrl { .. })));
    for password in ["first", "second"] {
        std::fs::write(&path, format!("{password}\n")).unwrap();
        assert_eq!(target.config().unwrap().get_password(), Some(password.as_bytes()));
    }
}
