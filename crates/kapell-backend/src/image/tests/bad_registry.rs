//! Registries that do not do as they should.

use std::time::{Duration, Instant};

use kapell_core::causes::chain;
use tokio::task::JoinSet;

use super::lab::{INDEX, Lab, MANIFEST, descriptor, limits};
use super::server::{Reply, Server, good, layer_path, parts};
use crate::image::{Digest, Error, Limits, Settings};
use crate::testing::is_root;

/// The answer of an image whose layer is served by `reply`.
async fn with_layer(
    limits: Limits,
    reply: impl Fn(Vec<u8>, usize) -> Reply + Send + Sync + 'static,
) -> (Result<(), Error>, usize) {
    let parts = parts();
    let layer = layer_path(&parts);
    let path = layer.clone();
    let server = Server::start(move |asked, nth| {
        if asked.ends_with(&path) {
            reply(parts.blobs[0].clone(), nth)
        } else {
            good(&parts, asked)
        }
    })
    .await;
    let lab = Lab::with(limits);
    let done = lab.images.prepare(&server.url()).await.map(drop);
    if done.is_err() {
        assert_eq!(lab.kept(), Vec::<String>::new());
    }
    (done, server.count(&layer))
}

#[tokio::test]
async fn an_error_that_passes_is_tried_again() {
    if !is_root("image::bad_registry::an_error_that_passes_is_tried_again") {
        return;
    }
    let fails: [fn(Vec<u8>) -> Reply; 5] = [
        |_| Reply::Empty("500 Internal Server Error".to_owned()),
        |_| Reply::Empty("429 Too Many Requests".to_owned()),
        |_| Reply::Close,
        |blob| Reply::Short(blob[..1000].to_vec(), blob.len() - 1000),
        |blob| Reply::Hang(blob[..1000].to_vec()),
    ];
    for (index, fail) in fails.into_iter().enumerate() {
        let reply = move |blob: Vec<u8>, nth| match (nth, index) {
            // It announces what the manifest says, and stops early.
            (0, 4) => Reply::Hang(blob[..blob.len() - 100].to_vec()),
            (0, _) => fail(blob),
            (_, _) => Reply::Good("x/y", blob),
        };
        let stall = Duration::from_secs(2);
        let (done, asked) = with_layer(Limits { stall, ..limits() }, reply).await;
        done.unwrap_or_else(|error| panic!("{index}: {}", chain(&error)));
        assert_eq!(asked, 2, "{index}");
    }
}

#[tokio::test]
async fn an_error_that_stays_is_told_after_a_few_tries() {
    type Fail = fn(Vec<u8>) -> Reply;
    let cases: [(Fail, usize, &str); 8] = [
        (
            |_| Reply::Empty("503 Service Unavailable".to_owned()),
            3,
            "answered 503 to fetching the layer",
        ),
        (|_| Reply::Empty("403 Forbidden".to_owned()), 1, "not for everybody"),
        (|_| Reply::Empty("404 Not Found".to_owned()), 1, "there is no some/image/blobs/sha256:"),
        (|_| Reply::Close, 3, "broke while fetching the layer"),
        (|blob| Reply::Short(blob[..9].to_vec(), blob.len() - 9), 3, "broke while fetching"),
        (|blob| Reply::WrongLength(blob, 77), 1, "announces another size"),
        (|_| Reply::Endless, 1, "sends more than the"),
        (
            |mut blob| {
                blob[50] ^= 1;
                Reply::Good("x/y", blob)
            },
            1,
            "what came has the digest",
        ),
    ];
    for (fail, tries, why) in cases {
        let (done, asked) = with_layer(limits(), move |blob, _| fail(blob)).await;
        let text = chain(&done.unwrap_err());
        assert!(text.contains(why), "{why}: {text}");
        assert_eq!(asked, tries, "{why}");
    }
}

#[tokio::test]
async fn a_registry_that_hangs_is_given_up() {
    let start = Instant::now();
    let limits = Limits { tries: 2, stall: Duration::from_secs(1), ..limits() };
    let (done, asked) = with_layer(limits.clone(), |_, _| Reply::Silent).await;
    let text = chain(&done.unwrap_err());
    assert!(text.contains("sent nothing for") && text.contains("fetching the layer"), "{text}");
    assert_eq!(asked, 2);
    let stall = |blob: Vec<u8>, _| Reply::Hang(blob[..blob.len() - 100].to_vec());
    let (done, asked) = with_layer(limits.clone(), stall).await;
    assert!(matches!(done, Err(Error::Stalled { .. })), "{done:?}");
    assert_eq!(asked, 2);
    // One that is never silent for long, and never done.
    let limits = Limits { image: Duration::from_millis(400), tries: 9, ..limits };
    let (done, _) = with_layer(limits, |_, _| Reply::Silent).await;
    assert!(chain(&done.unwrap_err()).contains("was not ready within"));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_manifest_must_be_small_and_what_was_asked_for() {
    let parts = parts();
    let wrong = Digest::of(b"something else");
    let server = Server::start(move |path, _| match path {
        path if path.ends_with("/endless") => Reply::Endless,
        path if path.ends_with("/nonsense") => Reply::Good(MANIFEST, b"{".to_vec()),
        _others => Reply::Good(MANIFEST, parts.manifest_bytes()),
    })
    .await;
    let lab = Lab::new();
    for (version, why) in [
        (":endless".to_owned(), "has more than 4194304 bytes"),
        (":nonsense".to_owned(), "is damaged"),
        (format!("@{wrong}"), "what came has the digest"),
    ] {
        let url = format!("docker://{}/a{version}", server.address);
        let text = chain(&lab.images.prepare(&url).await.unwrap_err());
        assert!(text.contains(why), "{version}: {text}");
    }
}

#[tokio::test]
async fn blobs_may_be_elsewhere_but_not_in_the_open() {
    if !is_root("image::bad_registry::blobs_may_be_elsewhere_but_not_in_the_open") {
        return;
    }
    let all = parts();
    let elsewhere = all.clone();
    let other = Server::start(move |path, _| good(&elsewhere, path)).await;
    let other_address = other.address.clone();
    let layer = layer_path(&all);
    for (target, why) in [
        (format!("http://{other_address}/blob/{layer}"), None),
        (format!("http://example.com/{layer}"), Some("use https")),
        ("http://169.254.169.254/latest/meta-data".to_owned(), Some("use https")),
        ("https://169.254.169.254/latest/meta-data".to_owned(), Some("no address of a registry")),
        ("file:///etc/passwd".to_owned(), Some("use https")),
        (format!("/v2/some/image/blobs/sha256:{layer}"), Some("redirects more than 5 times")),
    ] {
        let (all, layer) = (all.clone(), layer.clone());
        let line = format!("307 Temporary Redirect\r\nLocation: {target}");
        let server = Server::start(move |path, _| {
            if path.ends_with(&layer) { Reply::Empty(line.clone()) } else { good(&all, path) }
        })
        .await;
        let lab = Lab::new();
        let done = lab.images.prepare(&server.url()).await;
        match why {
            None => drop(done.unwrap_or_else(|error| panic!("{target}: {}", chain(&error)))),
            Some(why) => {
                let text = chain(&done.unwrap_err());
                assert!(text.contains(why), "{target}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn only_a_listed_registry_elsewhere_is_spoken_to_in_the_open() {
    let limits = Limits { tries: 1, connect: Duration::from_millis(50), ..limits() };
    let lab = Lab::with(limits.clone());
    // Nobody is there: what matters is how it would be spoken to.
    let error = lab.images.prepare("docker://192.0.2.1:1/a").await;
    let dir = tempfile::tempdir().unwrap();
    let insecure = vec!["192.0.2.1:1".to_owned()];
    let listed = Lab::set(dir, Settings { limits, insecure, ..Settings::default() });
    let open = listed.images.prepare("docker://192.0.2.1:1/a").await;
    for (done, scheme) in [(error, "https://192.0.2.1:1"), (open, "http://192.0.2.1:1")] {
        let text = done.unwrap_err().to_string();
        assert_eq!(text, format!("cannot reach {scheme}"));
    }
}

#[tokio::test]
async fn two_who_want_the_same_image_fetch_it_once() {
    if !is_root("image::bad_registry::two_who_want_the_same_image_fetch_it_once") {
        return;
    }
    let parts = parts();
    let layer = layer_path(&parts);
    let server = Server::start(move |path, _| good(&parts, path)).await;
    let lab = Lab::new();
    let url = server.url();
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (images, url) = (lab.images.clone(), url.clone());
        tasks.spawn(async move { images.prepare(&url).await.unwrap() });
    }
    let images = tasks.join_all().await;
    assert_eq!(server.count(&layer), 1);
    assert!(images.iter().all(|image| image.layers == images[0].layers));
}

#[tokio::test]
async fn who_gives_up_leaves_the_work_to_the_next() {
    if !is_root("image::bad_registry::who_gives_up_leaves_the_work_to_the_next") {
        return;
    }
    let parts = parts();
    let layer = layer_path(&parts);
    let path = layer.clone();
    let server = Server::start(move |asked, nth| {
        if asked.ends_with(&path) && nth == 0 { Reply::Silent } else { good(&parts, asked) }
    })
    .await;
    let lab = Lab::with(Limits { stall: Duration::from_secs(60), ..limits() });
    let mut tasks = JoinSet::new();
    let (images, url) = (lab.images.clone(), server.url());
    tasks.spawn(async move { images.prepare(&url).await.map(drop) });
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.count(&layer) == 0 {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    tasks.shutdown().await;
    lab.images.prepare(&server.url()).await.unwrap();
    assert_eq!(server.count(&layer), 2);
}

#[tokio::test]
async fn of_several_platforms_that_of_this_machine_is_taken() {
    if !is_root("image::bad_registry::of_several_platforms_that_of_this_machine_is_taken") {
        return;
    }
    let parts = parts();
    let ours = parts.manifest_bytes();
    let platform = |mut entry: serde_json::Value, name: &str| {
        entry["platform"] = serde_json::json!({ "os": "linux", "architecture": name });
        entry
    };
    let other = platform(descriptor(MANIFEST, b"other"), "s390x");
    let own = platform(descriptor(MANIFEST, &ours), crate::image::document::architecture());
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [other, own] }).to_string();
    let only_other = serde_json::json!({ "schemaVersion": 2, "manifests": [other] }).to_string();
    let (pinned, id) = (Digest::of(index.as_bytes()), Digest::of(&ours));
    let id_path = id.to_string();
    let pinned_path = pinned.to_string();
    let server = Server::start(move |path, _| match path {
        path if path.ends_with("manifests/other") => Reply::Good(INDEX, only_other.clone().into()),
        path if path.ends_with(&pinned_path) => Reply::Good(INDEX, index.clone().into()),
        path if path.ends_with("manifests/multi") => Reply::Good(INDEX, index.clone().into()),
        path if path.ends_with(&id_path) => Reply::Good(MANIFEST, ours.clone()),
        path => good(&parts, path),
    })
    .await;
    let lab = Lab::new();
    let url = |version: &str| format!("docker://{}/a{version}", server.address);
    let image = lab.images.prepare(&url(":multi")).await.unwrap();
    assert_eq!(image.id.to_string(), id.to_string());
    let error = lab.images.prepare(&url(":other")).await.unwrap_err().to_string();
    assert!(error.contains("the image is for linux/s390x"), "{error}");
    let asked = server.count("");
    // By digest, nobody has to be asked for what is here.
    for digest in [&pinned, &id] {
        let again = lab.images.prepare(&url(&format!("@{digest}"))).await.unwrap();
        assert_eq!((&again.id, &again.layers), (&image.id, &image.layers));
    }
    assert_eq!(server.count(""), asked);
}
