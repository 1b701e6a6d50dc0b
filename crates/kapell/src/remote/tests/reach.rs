use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kapell_api::client::Token;

use super::super::args::Reach;
use super::super::reach::{LOCAL, Resolved};
use super::super::sign::Sign;

fn resolve(flags: &Reach, dir: &Path, env: &[(&str, &str)]) -> anyhow::Result<Resolved> {
    Resolved::new(flags, dir, |name| {
        env.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    })
}

fn token(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let none = resolve(&Reach::default(), dir.path(), &[]).unwrap();
    assert_eq!(none, Resolved { urls: LOCAL.to_owned(), token: None, ca: None });
    let env = [("KAPELL_URL", "http://a"), ("KAPELL_TOKEN", "env\n"), ("KAPELL_CA", "/ca")];
    let (state, file) = ("s".repeat(40), "f".repeat(40));
    token(&dir.path().join("token"), &state, 0o600);
    token(&dir.path().join("other"), &file, 0o600);
    let from_state = resolve(&Reach::default(), dir.path(), &[("KAPELL_TOKEN", "")]).unwrap();
    assert_eq!(from_state.token, Some(Token::new(state)));
    let from_env = resolve(&Reach::default(), dir.path(), &env).unwrap();
    let want = Resolved {
        urls: "http://a".to_owned(),
        token: Some(Token::new("env")),
        ca: Some(PathBuf::from("/ca")),
    };
    assert_eq!(from_env, want);
    let flags = Reach {
        url: Some("http://b".to_owned()),
        token_file: Some(dir.path().join("other")),
        ca: Some("/cb".into()),
    };
    let from_flags = resolve(&flags, dir.path(), &env).unwrap();
    let want = Resolved {
        urls: "http://b".to_owned(),
        token: Some(Token::new(file)),
        ca: Some(PathBuf::from("/cb")),
    };
    assert_eq!(from_flags, want);
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    token(&dir.path().join("token"), &"x".repeat(40), 0o644);
    let error = resolve(&Reach::default(), dir.path(), &[]).unwrap_err();
    assert!(error.to_string().contains("others can read the token"), "{error}");
    let flags = Reach { token_file: Some(dir.path().join("none")), ..Reach::default() };
    let error = resolve(&flags, dir.path(), &[]).unwrap_err();
    assert!(error.to_string().contains("there is no token at"), "{error}");
}

/// A sign is believed while somebody holds it, and only then.
#[test]
fn a_platform_that_runs_is_found_by_its_sign() {
    let dir = tempfile::tempdir().unwrap();
    let urls = || resolve(&Reach::default(), dir.path(), &[]).unwrap().urls;
    let sign = Sign::put_up(dir.path(), "http://127.0.0.1:7999").unwrap().unwrap();
    assert_eq!(urls(), "http://127.0.0.1:7999");
    assert!(Sign::put_up(dir.path(), "http://127.0.0.1:8000").unwrap().is_none(), "it stands");
    assert_eq!(urls(), "http://127.0.0.1:7999");
    let by_env = resolve(&Reach::default(), dir.path(), &[("KAPELL_URL", "http://a")]).unwrap();
    assert_eq!(by_env.urls, "http://a");
    drop(sign);
    assert_eq!(urls(), LOCAL);
    // Left behind by one that was killed.
    std::fs::write(dir.path().join("url"), "http://127.0.0.1:7999\n").unwrap();
    assert_eq!(urls(), LOCAL);
}
