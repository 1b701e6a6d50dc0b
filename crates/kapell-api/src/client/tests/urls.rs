use crate::client::address::Base;
use crate::client::egress::may_be_called;
use crate::client::routes::path;
use crate::client::{Client, Error, Options, Token};

#[test]
fn urls_are_read_as_written() {
    let show = |text: &str| match Base::parse_all(text) {
        Ok(bases) => bases.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string(),
    };
    for (text, want) in [
        ("http://127.0.0.1:7070", "http://127.0.0.1:7070"),
        ("http://a, https://b:8443/", "http://a:80 https://b:8443"),
        ("https://[::1]", "https://[::1]:443"),
    ] {
        assert_eq!(show(text), want);
    }
    for bad in ["", "a:7070", "ftp://a", "http://a/x", "http://u:p@a", "http://", "http://a?b"] {
        assert!(show(bad).contains("is no URL of a host: write http://HOST:PORT"), "{bad}");
    }
}

#[test]
fn a_token_goes_to_no_other_machine_in_the_clear() {
    let options = || Options { token: Some(Token::new("secret")), ..Options::default() };
    for good in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"] {
        assert!(Client::new(good, options()).is_ok(), "{good}");
    }
    let refused = Client::new("http://127.0.0.1:1,http://10.0.0.1:1", options());
    assert!(matches!(refused, Err(Error::Insecure { url }) if url == "http://10.0.0.1:1"));
    assert!(Client::new("http://10.0.0.1:1", Options::default()).is_ok());
    let garbled = Options { token: Some(Token::new("a\nb")), ..Options::default() };
    assert!(matches!(Client::new("http://127.0.0.1:1", garbled), Err(Error::BadToken)));
    assert!(!format!("{:?}", options()).contains("secret\""));
}

#[test]
fn names_in_paths_stay_one_name() {
    assert_eq!(path(&["domains", "a/b c"]), "/v1/domains/a%2Fb%20c");
    assert_eq!(path(&["domains", "..", "v1.2"]), "/v1/domains/%2E%2E/v1.2");
    assert_eq!(path(&["domains", "ä?"]), "/v1/domains/%C3%A4%3F");
}

#[test]
fn secrets_of_the_machine_are_out_of_reach() {
    for (address, allowed) in [
        ("169.254.169.254", false),
        ("::ffff:169.254.169.254", false),
        ("fe80::1", false),
        ("fd00:ec2::254", false),
        ("100.100.100.200", false),
        ("192.0.0.192", false),
        ("::ffff:168.63.129.16", false),
        ("64:ff9b::169.254.169.254", false),
        ("64:ff9b::100.100.100.200", false),
        ("64:ff9b::10.1.2.3", true),
        ("64:ff9b:1::169.254.169.254", true),
        ("100.100.100.201", true),
        ("127.0.0.1", true),
        ("10.1.2.3", true),
        ("fd00::1", true),
    ] {
        assert_eq!(may_be_called(address.parse().unwrap()), allowed, "{address}");
    }
}
