use kapell_core::access::Invalid;

use super::*;

const LATER: Timestamp = Timestamp(5000);
const NOW: Timestamp = Timestamp(4000);

#[test]
fn what_was_signed_is_read_again() {
    let key = key("a");
    let token = key.sign(&claims(LATER));
    assert!(ClusterKey::is_signed(&token), "{token}");
    assert_eq!(key.verify(&token, NOW), Ok(claims(LATER)));
    assert_eq!(key.verify(&token, LATER), Err(Invalid::Expired));
}

#[test]
fn nothing_of_a_token_can_be_changed() {
    let key = key("a");
    let token = key.sign(&claims(LATER));
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(bytes).unwrap();
        assert_eq!(key.verify(&forged, NOW), Err(Invalid::Forged), "{at}: {forged}");
    }
    for end in 0..token.len() {
        assert_eq!(key.verify(&token[..end], NOW), Err(Invalid::Forged), "{end}");
    }
    let others = super::key("b").sign(&claims(LATER));
    assert_eq!(key.verify(&others, NOW), Err(Invalid::Forged));
    let unsigned = token.rsplit_once('.').unwrap().0.to_owned() + ".";
    assert_eq!(key.verify(&unsigned, NOW), Err(Invalid::Forged));
    assert_eq!(key.verify(&"k1.".repeat(100_000), NOW), Err(Invalid::Forged));
}

#[test]
fn keys_are_told_apart_and_not_shown() {
    assert_eq!(key("a").fingerprint(), key("a").fingerprint());
    assert_ne!(key("a").fingerprint(), key("b").fingerprint());
    assert_eq!(key("a").fingerprint().len(), 32);
    assert_eq!(format!("{:?}", key("a")), "ClusterKey(secret)");
    assert_eq!(ClusterKey::new("short").unwrap_err(), BadKey);
}

#[tokio::test]
async fn the_first_host_decides_which_key_a_store_has() {
    let store = store();
    agree(&*store, &key("a")).await.unwrap();
    agree(&*store, &key("a")).await.unwrap();
    let told = agree(&*store, &key("b")).await.unwrap_err().to_string();
    for part in ["copy the file `cluster.key`", &key("a").fingerprint(), &key("b").fingerprint()] {
        assert!(told.contains(part), "{told}");
    }
    agree(&*store, &key("a")).await.unwrap();
}
