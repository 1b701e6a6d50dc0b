//! What is kept, for how long, and over restarts.

use kapell_core::causes::chain;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::lab::{Lab, Parts, Tar, limits, write_layout};
use crate::image::{Collected, Digest, ImageId, Images, Limits, Settings};
use crate::testing::is_root;

fn archive(name: &str) -> Vec<u8> {
    Tar::default().file(name, &vec![b'x'; 100_000]).end()
}

#[tokio::test]
async fn an_image_of_a_layout_is_its_layers_and_what_it_says_of_itself() {
    if !is_root("image::shelf::an_image_of_a_layout_is_its_layers_and_what_it_says_of_itself") {
        return;
    }
    let lab = Lab::new();
    let url = lab.layout("l", &[archive("a"), archive("b"), archive("a")]);
    let image = lab.images.prepare(&url).await.unwrap();
    assert_eq!(image.layers.len(), 2, "no directory twice");
    assert!(image.layers[0].join("b").exists() && image.layers[1].join("a").exists());
    assert_eq!(
        (&*image.config.env, &*image.config.entrypoint),
        (&["A=1".to_owned()][..], &["/bin/x".to_owned()][..])
    );
    assert_eq!(
        (image.config.cmd.len(), &*image.config.working_dir, &*image.config.user),
        (0, "/w", "7:8")
    );
    let layers = fs::metadata(lab.at("store/layers")).unwrap();
    assert_eq!(layers.permissions().mode() & 0o777, 0o700, "there are setuid programs below");
    let mode = fs::metadata(&image.layers[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    // Without a tag, if there is one image only.
    let same = lab.images.prepare(url.strip_suffix("#v1").unwrap()).await.unwrap();
    assert_eq!(same.id, image.id);
    let error = lab.images.prepare(&url.replace("#v1", "#v2")).await.unwrap_err().to_string();
    assert!(error.contains("there is no `v2`") && error.contains("it has v1"), "{error}");
}

#[tokio::test]
async fn only_directories_below_the_roots_may_be_used() {
    let lab = Lab::new();
    fs::create_dir(lab.at("root")).unwrap();
    std::os::unix::fs::symlink("/etc", lab.at("way-out")).unwrap();
    let url = |name: &str| format!("dir://{}", lab.at(name).display());
    let image = lab.images.prepare(&url("root")).await.unwrap();
    assert_eq!(image.layers, [fs::canonicalize(lab.at("root")).unwrap()]);
    assert_eq!(lab.images.hold(&image.id).await.unwrap().layers, image.layers);
    for bad in ["dir:///etc".to_owned(), url("way-out"), "oci:///etc#v1".to_owned()] {
        let error = lab.images.prepare(&bad).await.unwrap_err().to_string();
        assert!(error.contains("add a directory above it"), "{bad}: {error}");
    }
    let error = chain(&lab.images.prepare(&url("absent")).await.unwrap_err());
    assert!(error.contains("No such file"), "{error}");
}

#[tokio::test]
async fn layers_go_least_recently_used_first_and_never_while_they_are_held() {
    if !is_root("image::shelf::layers_go_least_recently_used_first_and_never_while_they_are_held") {
        return;
    }
    let lab = Lab::new();
    let base = archive("base");
    let urls: Vec<String> =
        ["a", "b", "c"].map(|name| lab.layout(name, &[base.clone(), archive(name)])).into();
    let size = base.len() as u64;
    let held = lab.images.prepare(&urls[0]).await.unwrap();
    for url in [&urls[1], &urls[2], &urls[1]] {
        lab.images.prepare(url).await.unwrap();
    }
    // Used last: a (held), c, b. The base is in all of them.
    let done = lab.images.collect(3 * size).await.unwrap();
    assert_eq!(done, Collected { removed_layers: 1, removed_bytes: size, kept_bytes: 3 * size });
    let c = Digest::of(&archive("c"));
    assert!(!lab.at("store/layers").join(format!("sha256-{}", c.hex())).exists());
    let done = lab.images.collect(0).await.unwrap();
    assert_eq!(done, Collected { removed_layers: 1, removed_bytes: size, kept_bytes: 2 * size });
    assert!(held.layers.iter().all(|layer| layer.exists()));
    let clone = held.clone();
    drop(held);
    assert_eq!(lab.images.collect(0).await.unwrap().removed_layers, 0, "a clone holds too");
    drop(clone);
    assert_eq!(lab.images.collect(0).await.unwrap().removed_layers, 2);
    assert_eq!(lab.kept(), Vec::<String>::new());
    lab.images.prepare(&urls[0]).await.unwrap();
}

#[tokio::test]
async fn after_a_restart_found_containers_hold_their_images_and_the_order_of_use_is_known() {
    if !is_root(
        "image::shelf::after_a_restart_found_containers_hold_their_images_and_the_order_of_use_is_known",
    ) {
        return;
    }
    let lab = Lab::new();
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        let url = lab.layout(name, &[archive(name)]);
        ids.push(lab.images.prepare(&url).await.unwrap().id);
    }
    lab.images.hold(&ids[0]).await.unwrap();
    let lab = lab.restart();
    let held = lab.images.hold(&ids[1]).await.unwrap();
    let size = archive("a").len() as u64;
    assert_eq!(lab.images.collect(2 * size).await.unwrap().removed_layers, 1);
    assert!(lab.images.hold(&ids[0]).await.is_ok(), "used after c, before the restart");
    let error = lab.images.hold(&ids[2]).await.unwrap_err().to_string();
    assert_eq!(error, format!("there is no image {} here", ids[2]));
    drop(held);
    assert!(lab.images.hold(&ImageId::new("nonsense")).await.is_err());
}

#[tokio::test]
async fn what_a_killed_agent_left_unfinished_is_removed_and_what_is_whole_stays() {
    if !is_root(
        "image::shelf::what_a_killed_agent_left_unfinished_is_removed_and_what_is_whole_stays",
    ) {
        return;
    }
    let lab = Lab::new();
    let url = lab.layout("l", &[archive("a")]);
    let id = lab.images.prepare(&url).await.unwrap().id;
    let whole = lab.kept();
    let store = lab.at("store");
    let other = Digest::of(b"other").hex().to_owned();
    fs::create_dir_all(store.join("tmp/3/half/unpacked")).unwrap();
    fs::write(store.join("tmp/4"), "half a blob").unwrap();
    fs::create_dir(store.join(format!("layers/sha256-{other}"))).unwrap();
    fs::write(store.join(format!("records/sha256-{}", Digest::of(b"gone").hex())), "{}").unwrap();
    let second = Images::open(&store, Settings::default()).unwrap_err().to_string();
    assert!(second.contains("in use by another agent"), "{second}");
    let lab = lab.restart();
    assert_eq!(lab.kept(), whole);
    lab.images.hold(&id).await.unwrap();
}

#[tokio::test]
async fn an_image_counts_as_a_whole_against_the_limits() {
    if !is_root("image::shelf::an_image_counts_as_a_whole_against_the_limits") {
        return;
    }
    let parts = [archive("a"), archive("b"), archive("c")];
    let size = parts[0].len() as u64;
    let blobs: u64 = Parts::of(&parts).blobs.iter().map(|blob| blob.len() as u64).sum();
    for (limits, want) in [
        (Limits { unpacked_bytes: 3 * size - 1, ..limits() }, "the unpacked image has more than"),
        (Limits { entries: 2, ..limits() }, "more than 2 entries"),
        (Limits { layers: 2, ..limits() }, "more than 2 layers"),
        (Limits { image_bytes: blobs - 1, ..limits() }, "the image has more than"),
        (Limits { blob_bytes: 10, ..limits() }, "more than 10 bytes"),
        (Limits { document_bytes: 10, ..limits() }, "more than 10 bytes"),
    ] {
        let lab = Lab::with(limits);
        let error = lab.images.prepare(&lab.layout("l", &parts)).await.unwrap_err().to_string();
        assert!(error.contains(want), "{want}: {error}");
    }
    let limits = Limits { unpacked_bytes: 3 * size, entries: 3, image_bytes: blobs, ..limits() };
    let lab = Lab::with(limits);
    let url = lab.layout("l", &parts);
    lab.images.prepare(&url).await.unwrap();
    let more = lab.layout("m", &[archive("a"), archive("b"), archive("c"), archive("d")]);
    let error = lab.images.prepare(&more).await.unwrap_err().to_string();
    assert!(error.contains("more than"), "layers that are there count too: {error}");
}

#[tokio::test]
async fn an_image_for_another_machine_is_refused() {
    let lab = Lab::new();
    let mut parts = Parts::of(&[archive("a")]);
    parts.config["architecture"] = "s390x".into();
    let config = parts.config_bytes();
    parts.manifest["config"]["digest"] = Digest::of(&config).to_string().into();
    parts.manifest["config"]["size"] = config.len().into();
    write_layout(&lab.at("l"), &parts);
    let url = format!("oci://{}", lab.at("l").display());
    let error = lab.images.prepare(&url).await.unwrap_err().to_string();
    assert!(error.starts_with("the image is for linux/s390x, this machine is linux/"), "{error}");
}
