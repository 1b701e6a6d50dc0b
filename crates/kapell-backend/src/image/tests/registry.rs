//! Against a real registry on this machine.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use kapell_core::causes::chain;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;

use super::lab::{Lab, MANIFEST, Parts, Tar, gzip};
use crate::image::Digest;
use crate::testing::{is_root, skip};

/// The address of the registry; none, and the test is reported as skipped, if there is none.
fn registry(test: &str) -> Option<String> {
    if !is_root(test) {
        return None;
    }
    let Ok(url) = std::env::var("KAPELL_TEST_REGISTRY") else {
        skip(test, "KAPELL_TEST_REGISTRY names no registry");
        return None;
    };
    Some(url.strip_prefix("http://").unwrap().to_owned())
}

/// Sends a request; gives the status and the head of the answer.
fn send(address: &str, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn push(address: &str, name: &str, tag: &str, parts: &Parts) -> Digest {
    for blob in parts.all_blobs() {
        let (status, answer) =
            send(address, "POST", &format!("/v2/{name}/blobs/uploads/"), "x/y", b"");
        assert_eq!(status, 202, "{answer}");
        let line = answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
        let place = line.trim().strip_prefix(&format!("http://{address}")).unwrap_or(line.trim());
        let path = format!("{place}&digest={}", Digest::of(&blob));
        let (status, answer) = send(address, "PUT", &path, "application/octet-stream", &blob);
        assert_eq!(status, 201, "{answer}");
    }
    let manifest = parts.manifest_bytes();
    let path = format!("/v2/{name}/manifests/{tag}");
    let (status, answer) = send(address, "PUT", &path, MANIFEST, &manifest);
    assert_eq!(status, 201, "{answer}");
    Digest::of(&manifest)
}

#[tokio::test]
async fn an_image_is_pulled_by_tag_and_by_digest() {
    let Some(address) = registry("image::registry::an_image_is_pulled_by_tag_and_by_digest") else {
        return;
    };
    let low = Tar::default().dir("bin").file("bin/x", b"one").file("old", b"").end();
    let high = Tar::default().file("bin/y", b"two").file(".wh.old", b"").end();
    let zstd = compress_to_vec(high.as_slice(), CompressionLevel::Fastest);
    let mut parts = Parts::with_blobs(&[low.clone(), high], vec![gzip(&low), zstd]);
    parts.manifest["layers"][1]["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar+zstd");
    let digest = push(&address, "kapell/pulled", "v1", &parts);
    let lab = Lab::new();
    let image = lab.images.prepare(&format!("docker://{address}/kapell/pulled:v1")).await.unwrap();
    assert_eq!(image.id.to_string(), digest.to_string());
    assert_eq!(std::fs::read(image.layers[0].join("bin/x")).unwrap(), b"one");
    assert_eq!(std::fs::read(image.layers[1].join("bin/y")).unwrap(), b"two");
    assert!(super::lab::is_whiteout(&image.layers[1].join("old")));
    assert_eq!(image.config.entrypoint, ["/bin/x"]);
    let other = Lab::new();
    let url = format!("docker://{address}/kapell/pulled@{digest}");
    assert_eq!(other.images.prepare(&url).await.unwrap().id, image.id);
}

#[tokio::test]
async fn a_tag_that_was_moved_is_another_image_that_shares_layers() {
    let test = "image::registry::a_tag_that_was_moved_is_another_image_that_shares_layers";
    let Some(address) = registry(test) else { return };
    let base = Tar::default().file("base", b"base").end();
    let url = format!("docker://{address}/kapell/moved:now");
    let lab = Lab::new();
    let mut images = Vec::new();
    for name in ["first", "second"] {
        let top = Tar::default().file(name, b"x").end();
        push(&address, "kapell/moved", "now", &Parts::of(&[base.clone(), top]));
        images.push(lab.images.prepare(&url).await.unwrap());
    }
    assert_ne!(images[0].id, images[1].id);
    assert_eq!(images[0].layers[0], images[1].layers[0]);
    assert!(images[1].layers[1].join("second").exists());
}

#[tokio::test]
async fn what_a_registry_does_not_have_is_named() {
    let Some(address) = registry("image::registry::what_a_registry_does_not_have_is_named") else {
        return;
    };
    let lab = Lab::new();
    let url = format!("docker://{address}/kapell/absent:v9");
    let text = chain(&lab.images.prepare(&url).await.unwrap_err());
    assert_eq!(text, format!("there is no kapell/absent/manifests/v9 at http://{address}"));
}
