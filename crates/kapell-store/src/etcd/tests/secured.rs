use std::env::var;

use etcd_client::{Client, ConnectOptions};

use super::{fresh_root, key, open, skip};
use crate::error::Error;
use crate::etcd::address::Address;
use crate::model::Generation;
use crate::store::{Store, Ttl};

struct Secured {
    host: String,
    ca: String,
}

impl Secured {
    /// A server with TLS and users, of which `root` has the password `secret`.
    fn find(test: &str) -> Option<Self> {
        let (Ok(url), Ok(ca)) = (var("KAPELL_TEST_ETCD_TLS"), var("KAPELL_TEST_CA")) else {
            skip(test, "KAPELL_TEST_ETCD_TLS and KAPELL_TEST_CA name no server");
            return None;
        };
        let host = url.trim_start_matches("https://").trim_end_matches('/').to_owned();
        Some(Self { host, ca })
    }

    fn url(&self, login: &str) -> String {
        let Self { host, ca } = self;
        format!("etcds://{login}{host}/{}?ca={ca}", fresh_root())
    }
}

#[tokio::test]
async fn who_may_not_is_told_so() {
    let Some(secured) = Secured::find("who_may_not_is_told_so") else { return };
    let etcd = open(&secured.url("root:secret@")).await.unwrap();
    let name = format!("etcds://{}/test-", secured.host);
    assert!(etcd.name().starts_with(&name) && !etcd.name().contains('?'), "{}", etcd.name());
    assert!(!format!("{etcd:?}").contains("secret"));

    for login in ["root:terces@", "nobody:secret@", ""] {
        let error = open(&secured.url(login)).await.unwrap_err();
        assert!(matches!(error, Error::Denied { .. }), "{login}: {error:?}");
        assert!(!format!("{error:?}").contains("terces"));
    }
}

#[tokio::test]
async fn who_is_not_trusted_is_not_talked_to() {
    let Some(secured) = Secured::find("who_is_not_trusted_is_not_talked_to") else { return };
    let plain = open(&format!("etcd://root:secret@{}", secured.host)).await.unwrap_err();
    assert!(matches!(plain, Error::Unreachable { .. }), "{plain:?}");
    let url = format!("{}&domain=elsewhere.example", secured.url("root:secret@"));
    let misnamed = open(&url).await.unwrap_err();
    assert!(matches!(misnamed, Error::Unreachable { .. }), "{misnamed:?}");
}

#[tokio::test]
async fn a_login_that_ran_out_is_renewed() {
    let Some(secured) = Secured::find("a_login_that_ran_out_is_renewed") else { return };
    let user = fresh_root();
    let mut root = root(&secured).await;
    root.user_add(user.as_str(), "one", None).await.unwrap();
    root.user_grant_role(user.as_str(), "root").await.unwrap();
    let etcd = open(&secured.url(&format!("{user}:one@"))).await.unwrap();
    let key = key("k");

    // A new password, even the same, makes all earlier logins of that user void.
    root.user_change_password(user.as_str(), "one").await.unwrap();
    assert!(etcd.insert_if_absent(&key, Generation(0), b"v", None).await.unwrap().is_done());
    root.user_change_password(user.as_str(), "one").await.unwrap();
    let mut watch = etcd.watch(&key).await.unwrap();
    assert!(etcd.compare_and_delete(&key, b"v").await.unwrap().is_done());
    watch.changed().await.unwrap();

    root.user_change_password(user.as_str(), "two").await.unwrap();
    let error = etcd.read(&key).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    root.user_delete(user.as_str()).await.unwrap();
}

async fn root(secured: &Secured) -> Client {
    let address = Address::parse(&secured.url("root:secret@")).unwrap();
    let endpoints: Vec<_> = address.endpoints().collect();
    let options: ConnectOptions = address.options();
    Client::connect(endpoints, Some(options)).await.unwrap()
}
