//! Who is believed, and what is shown to whom.

use kapell_core::causes::chain;
use std::fs;

use super::lab::{Lab, limits};
use super::server::{Reply, Server, certificate, good, layer_path, parts};
use crate::image::Settings;
use crate::testing::is_root;

#[tokio::test]
async fn a_server_is_known_by_its_certificate() {
    if !is_root("image::trust::a_server_is_known_by_its_certificate") {
        return;
    }
    let all = parts();
    let (acceptor, pem) = certificate();
    let elsewhere = all.clone();
    let secured = Server::start_with(Some(acceptor), move |path, _| good(&elsewhere, path)).await;
    let port = secured.address.rsplit(':').next().unwrap();
    let layer = layer_path(&all);
    let line = format!("307 Moved\r\nLocation: https://localhost:{port}/blob/{layer}");
    let server = Server::start(move |path, _| {
        if path.ends_with(&layer) { Reply::Empty(line.clone()) } else { good(&all, path) }
    })
    .await;
    for (ca, why) in [
        (Some(pem), None),
        (Some(certificate().1), Some("invalid peer certificate")),
        (Some("nothing".to_owned()), Some("there is none in it")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let ca = ca.map(|text| fs::write(&path, text).map(|()| path.clone()).unwrap());
        let lab = Lab::set(dir, Settings { limits: limits(), ca, ..Settings::default() });
        let done = lab.images.prepare(&server.url()).await;
        match why {
            None => drop(done.unwrap()),
            Some(why) => {
                let text = chain(&done.unwrap_err());
                assert!(text.contains(why), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_registry_may_want_a_token_that_anybody_gets() {
    if !is_root("image::trust::a_registry_may_want_a_token_that_anybody_gets") {
        return;
    }
    let all = parts();
    let server = Server::start(move |path, _| {
        if let Some(query) = path.strip_prefix("/token?") {
            assert_eq!(query, "service=some+thing&scope=repository%3Asome%2Fimage%3Apull");
            return Reply::Good("application/json", br#"{"token":"abc"}"#.to_vec());
        }
        let challenge = r#"Bearer realm="/token",service="some thing",scope="x""#.to_owned();
        Reply::Guarded { token: "abc", challenge, behind: Box::new(good(&all, path)) }
    })
    .await;
    let lab = Lab::new();
    lab.images.prepare(&server.url()).await.unwrap();
    assert_eq!(server.count("/token"), 1, "one for all that is fetched");
}

#[tokio::test]
async fn a_token_is_not_shown_to_others_and_not_fetched_in_the_open() {
    if !is_root("image::trust::a_token_is_not_shown_to_others_and_not_fetched_in_the_open") {
        return;
    }
    let all = parts();
    let elsewhere = all.clone();
    // It answers only to those who show the token: nobody may.
    let other = Server::start(move |path, _| Reply::Guarded {
        token: "abc",
        challenge: "Basic".to_owned(),
        behind: Box::new(good(&elsewhere, path)),
    })
    .await;
    let layer = layer_path(&all);
    let line = format!("302 Found\r\nLocation: http://{}/{layer}", other.address);
    let server = Server::start(move |path, _| {
        if path.starts_with("/token") {
            return Reply::Good("application/json", br#"{"access_token":"abc"}"#.to_vec());
        }
        let behind =
            if path.ends_with(&layer) { Reply::Empty(line.clone()) } else { good(&all, path) };
        let challenge = r#"Bearer realm="/token""#.to_owned();
        Reply::Guarded { token: "abc", challenge, behind: Box::new(behind) }
    })
    .await;
    let text = chain(&Lab::new().images.prepare(&server.url()).await.unwrap_err());
    assert!(text.contains("answered 401") && text.contains("nobody can log in yet"), "{text}");
    let realm = format!(r#"Bearer realm="http://{}/token""#, other.address);
    let server = Server::start(move |_, _| Reply::Guarded {
        token: "abc",
        challenge: realm.clone(),
        behind: Box::new(Reply::Close),
    })
    .await;
    let text = chain(&Lab::new().images.prepare(&server.url()).await.unwrap_err());
    assert!(text.contains("it must be https"), "{text}");
}
