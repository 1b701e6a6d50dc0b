use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Barrier;

use super::super::secret::{Error, judge};
use super::{TOKEN, Token, mode, private};

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_token_is_made_once_and_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/kapell/token");
    assert!(matches!(Token::load(&path), Err(Error::Missing { .. })));
    let token = Token::load_or_create(&path).unwrap();
    assert_eq!(token.as_str().len(), 64);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", token.as_str()));
    assert_eq!(mode_of(&path), 0o600);
    assert_eq!(mode_of(path.parent().unwrap()), 0o700);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    assert_eq!(Token::load_or_create(&path).unwrap(), token);
    assert_eq!(Token::load(&path).unwrap(), token);
    let other = Token::load_or_create(&dir.path().join("other")).unwrap();
    assert_ne!(other, token);
    assert_eq!(format!("{token:?}"), "Token(secret)");
}

#[test]
fn all_who_start_at_once_get_the_same() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kapell/token");
        let barrier = Barrier::new(8);
        let tokens: Vec<Token> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                Token::load_or_create(&path).unwrap()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(tokens.iter().all(|token| *token == tokens[0]));
        assert_eq!(Token::load(&path).unwrap(), tokens[0]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}

#[test]
fn a_token_that_others_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my token");
    fs::write(&path, TOKEN).unwrap();
    for bits in [0o644, 0o640, 0o604, 0o610, 0o602, 0o666] {
        mode(&path, bits);
        for error in [Token::load(&path), Token::load_or_create(&path)] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains(&format!("(mode {bits:04o})")), "{text}");
            assert!(text.ends_with(&format!("run `chmod 600 '{}'`", path.display())), "{text}");
        }
    }
    for bits in [0o600, 0o400] {
        mode(&path, bits);
        assert_eq!(Token::load(&path).unwrap().as_str(), TOKEN);
    }
}

#[test]
fn a_token_that_somebody_else_made_is_refused() {
    let of = |owner, us| judge("token", Path::new("token"), 0o600, owner, us);
    assert!(of(1000, 1000).is_ok() && of(0, 1000).is_ok() && of(0, 0).is_ok());
    assert!(matches!(of(1001, 1000), Err(Error::Foreign { user: 1001, .. })));
    assert!(matches!(of(1000, 0), Err(Error::Foreign { user: 1000, .. })));
}

#[test]
fn what_is_no_token_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let long = "x".repeat(1025);
    let two = format!("{TOKEN}\n{TOKEN}\n");
    let spaced = format!(" {TOKEN}");
    let texts: [&[u8]; 8] = [
        b"",
        b"\n",
        b"short",
        long.as_bytes(),
        two.as_bytes(),
        spaced.as_bytes(),
        &[0xff; 40],
        &[0; 64],
    ];
    for text in texts {
        fs::write(&path, text).unwrap();
        private(&path);
        assert!(matches!(Token::load_or_create(&path), Err(Error::Garbled { .. })), "{text:?}");
        assert_eq!(fs::read(&path).unwrap(), text);
    }
    let most = "x".repeat(1024);
    fs::write(&path, format!("{most}\n")).unwrap();
    assert_eq!(Token::load(&path).unwrap().as_str(), most);
}

#[test]
fn what_cannot_be_a_token_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Token::load_or_create(dir.path()), Err(Error::Garbled { .. })));
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let below = file.join("token");
    let error = Token::load_or_create(&below).unwrap_err().to_string();
    assert!(error.contains(below.to_str().unwrap()), "{error}");
    let nowhere = dir.path().join("link");
    symlink(dir.path().join("gone"), &nowhere).unwrap();
    assert!(matches!(Token::load_or_create(&nowhere), Err(Error::Missing { .. })));
}

#[test]
fn a_secret_may_be_mounted_by_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::write(&real, TOKEN).unwrap();
    private(&real);
    symlink(&real, &link).unwrap();
    assert_eq!(Token::load(&link).unwrap().as_str(), TOKEN);
}
