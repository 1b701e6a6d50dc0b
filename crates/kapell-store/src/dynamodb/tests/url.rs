use super::super::address::{Address, Credentials};

fn parse(text: &str) -> Result<Address, String> {
    text.parse::<Address>().map_err(|error| error.to_string())
}

#[test]
fn a_url_names_a_region_and_a_table() {
    let plain = parse("dynamodb://eu-central-1/kapell").unwrap();
    assert_eq!((&*plain.region, &*plain.table), ("eu-central-1", "kapell"));
    assert_eq!((plain.endpoint.clone(), plain.create), (None, false));
    assert_eq!(plain.credentials, Credentials::Found);
    assert_eq!(plain.name(), "dynamodb://eu-central-1/kapell");
    let local =
        "dynamodb://local/a.b_c-1?endpoint=http://127.0.0.1:8000/&credentials=none&create=true";
    let local = parse(local).unwrap();
    assert_eq!(local.endpoint.as_deref(), Some("http://127.0.0.1:8000"));
    assert_eq!((local.credentials.clone(), local.create), (Credentials::Nobody, true));
    assert_eq!(local.name(), "dynamodb://local/a.b_c-1?endpoint=http://127.0.0.1:8000");
    let other = parse("dynamodb://eu-central-1/kapell?profile=ops&ca=/ca.pem&pool=2").unwrap();
    assert_eq!((plain.pool, other.pool), (16, 2));
    assert_eq!(other.credentials, Credentials::Profile("ops".to_owned()));
    assert_eq!(other.ca.as_deref(), Some(std::path::Path::new("/ca.pem")));
}

#[test]
fn a_bad_url_is_refused_with_what_is_right_and_without_its_secrets() {
    for (text, want) in [
        ("dynamodb://", "the region comes first"),
        ("dynamodb:///table", "the region comes first"),
        ("dynamodb://eu_central/table", "the region comes first"),
        ("dynamodb://eu-central-1", "the table's name must be 3 to 255"),
        ("dynamodb://eu-central-1/ab", "the table's name must be 3 to 255"),
        ("dynamodb://eu-central-1/a/table", "the table's name must be 3 to 255"),
        ("dynamodb://AKIA:verysecret@eu-central-1/table", "keys come from the environment"),
        ("dynamodb://eu-central-1:8000/table", "where another server is says `endpoint=URL`"),
        ("dynamodb://eu-central-1/table?secret=verysecret", "unknown option `secret`"),
        ("dynamodb://eu-central-1/table?credentials=verysecret", "credentials is `none`"),
        ("dynamodb://eu-central-1/table?create=yes", "create is `true` or `false`"),
        ("dynamodb://eu-central-1/table?pool=0", "pool is a number from 1 to 1000"),
        ("dynamodb://eu-central-1/table?endpoint=here", "endpoint is no URL"),
        ("dynamodb://eu-central-1/table?endpoint=ftp://h", "endpoint is `https://HOST"),
        (
            "dynamodb://eu-central-1/table?endpoint=http://u:verysecret@h",
            "endpoint is `https://HOST",
        ),
    ] {
        let why = parse(text).unwrap_err();
        assert!(why.contains(want), "{text}: {why}");
        assert!(why.starts_with("`dynamodb:…` names no store: "), "{why}");
        assert!(!why.contains("verysecret"), "{why}");
    }
}
