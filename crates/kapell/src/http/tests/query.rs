use super::super::query::{Query, decoded};

#[test]
fn what_is_encoded_is_decoded() {
    for (text, want) in [
        ("a%20b", Some("a b")),
        ("a+b", Some("a+b")),
        ("%C3%a4", Some("ä")),
        ("%", None),
        ("%4", None),
        ("%zz", None),
        ("%ff", None),
        ("", Some("")),
    ] {
        assert_eq!(decoded(text).as_deref(), want, "{text}");
    }
}

#[test]
fn a_switch_is_on_or_off() {
    for (text, want) in [
        ("", Some(false)),
        ("a", Some(true)),
        ("a=", Some(true)),
        ("a=true", Some(true)),
        ("a=0", Some(false)),
        ("a=no", None),
    ] {
        let query = Query::parse(text, &["a"]).unwrap();
        assert_eq!(query.switch("a").ok(), want, "{text}");
    }
}
