use kapell_core::board::secrets::Due;
use kapell_core::secret::{LARGEST, Secret};
use kapell_store::keys;
use kapell_store::model::Generation;

use super::*;
use crate::access::secrets::{ListedSecret, Secrets, SecretsError};

fn secrets(store: &Arc<dyn Store>, key_text: &str) -> Secrets {
    Secrets::new(Arc::clone(store), Arc::new(SystemClock), &key(key_text)).unwrap()
}

async fn set(secrets: &Secrets, name: &str, value: &str) -> Result<ListedSecret, SecretsError> {
    secrets.set(&"shop".into(), &name.into(), &Secret::new(value)).await
}

async fn open_one(secrets: &Secrets, domain: &str, name: &str) -> Result<String, SecretsError> {
    let due = Due { domain: domain.into(), names: [name.into()].into() };
    let opened = secrets.open(&due).await?;
    Ok(opened[0].1.reveal().to_owned())
}

#[tokio::test]
async fn a_secret_is_set_again_and_removed_whoever_leads() {
    let store = store();
    let (one, two) = (secrets(&store, "a"), secrets(&store, "a"));
    assert_eq!(set(&one, "db", "hunter2").await.unwrap().version, 1);
    assert_eq!(open_one(&two, "shop", "db").await.unwrap(), "hunter2");
    assert_eq!(set(&two, "db", "hunter3").await.unwrap().version, 2);
    assert_eq!(open_one(&one, "shop", "db").await.unwrap(), "hunter3");
    set(&one, "api", &"x".repeat(LARGEST)).await.unwrap();
    assert_eq!(open_one(&one, "shop", "api").await.unwrap().len(), LARGEST);
    let listed: Vec<_> =
        two.list().await.unwrap().into_iter().map(|it| (it.name.to_string(), it.version)).collect();
    assert_eq!(listed, [("api".to_owned(), 1), ("db".to_owned(), 2)]);
    two.remove(&"shop".into(), &"db".into()).await.unwrap();
    let none = one.remove(&"shop".into(), &"db".into()).await;
    assert!(matches!(none, Err(SecretsError::NoSuchSecret { .. })), "{none:?}");
    let missing = open_one(&one, "shop", "db").await.unwrap_err();
    let right = "secret \"db\" of domain \"shop\" is not set: kapell secret set db --domain shop";
    assert_eq!(missing.to_string(), right);
    assert_eq!(set(&one, "db", "again").await.unwrap().version, 1);
    assert_eq!(open_one(&two, "shop", "db").await.unwrap(), "again");
}

#[tokio::test]
async fn many_who_set_one_at_once_leave_one_whole_value() {
    let store = store();
    let one = secrets(&store, "a");
    let all = futures_util::future::join_all(["a1", "b2", "c3"].map(|it| set(&one, "db", it)));
    assert!(all.await.iter().all(Result::is_ok));
    let value = open_one(&one, "shop", "db").await.unwrap();
    assert!(["a1", "b2", "c3"].contains(&value.as_str()), "{value}");
    assert_eq!(one.list().await.unwrap()[0].version, 3);
}

#[tokio::test]
async fn the_store_has_nothing_in_plain_text_and_no_value_can_be_moved() {
    let store = store();
    let one = secrets(&store, "a");
    set(&one, "db", "correct-horse").await.unwrap();
    for (key, entry) in store.list().await.unwrap() {
        let value = entry.held.unwrap().value;
        assert!(!value.windows(7).any(|part| part == b"correct"), "{key}");
    }
    let held = store.read(&keys::secret("shop", "db")).await.unwrap().held.unwrap().value;
    for (domain, name) in [("shop", "other"), ("bank", "db")] {
        let key = keys::secret(domain, name);
        let put = store.insert_if_absent(&key, Generation(0), &held, None).await.unwrap();
        assert!(put.is_done());
        let moved = open_one(&one, domain, name).await;
        assert!(matches!(moved, Err(SecretsError::Sealed { .. })), "{moved:?}");
    }
    // Nor can an older one be shown as a later version.
    let text = String::from_utf8_lossy(&held[..12]).replace(":1", ":7").into_bytes();
    let later = [&text, &held[12..]].concat();
    let key = keys::secret("shop", "db");
    assert!(store.compare_and_swap(&key, &held, &later, None).await.unwrap().is_done());
    let changed = open_one(&one, "shop", "db").await;
    assert!(matches!(changed, Err(SecretsError::Sealed { .. })), "{changed:?}");
}

#[tokio::test]
async fn what_another_key_has_sealed_says_so_and_what_to_do() {
    let store = store();
    set(&secrets(&store, "a"), "db", "hunter2").await.unwrap();
    let other = secrets(&store, "b");
    let text = open_one(&other, "shop", "db").await.unwrap_err().to_string();
    assert!(text.contains("sealed by another cluster key"), "{text}");
    assert!(text.contains("kapell secret set db --domain shop"), "{text}");
    assert_eq!(set(&other, "db", "hunter3").await.unwrap().version, 2);
    assert_eq!(open_one(&other, "shop", "db").await.unwrap(), "hunter3");
    assert!(!format!("{other:?}").contains("hunter"));
}

#[tokio::test]
async fn what_cannot_be_a_secret_is_not_kept() {
    let store = store();
    let one = secrets(&store, "a");
    let bad = set(&one, "a b", "\0").await;
    assert!(matches!(&bad, Err(SecretsError::Faults(all)) if all.len() == 2), "{bad:?}");
    assert!(store.list().await.unwrap().is_empty());
}
