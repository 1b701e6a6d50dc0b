use std::fs;
use std::process::Command;

use super::lab::{Lab, Tar, is_whiteout, unpacked};
use super::unpacking::attribute;
use crate::testing::{is_root, skip};

const OPAQUE: &std::ffi::CStr = c"trusted.overlay.opaque";

#[test]
fn a_whiteout_and_a_new_directory_of_the_same_name_make_it_opaque() {
    if !is_root("image::overlays::a_whiteout_and_a_new_directory_of_the_same_name_make_it_opaque") {
        return;
    }
    let archive = Tar::default()
        .file(".wh.first", b"")
        .dir("first")
        .dir("last")
        .file(".wh.last", b"")
        .file(".wh.way", b"")
        .file("way/in", b"x")
        .file("file", b"x")
        .file(".wh.file", b"")
        .file(".wh.gone", b"")
        .file(".wh.back", b"")
        .file("back", b"x")
        .dir("plain")
        .file("hollow/.wh..wh..opq", b"")
        .file(".wh..wh.aufs", b"")
        .end();
    let (dir, _) = unpacked(&archive).unwrap();
    for name in ["first", "last", "way", "hollow"] {
        assert_eq!(attribute(&dir.path().join(name), OPAQUE).unwrap(), b"y", "{name}");
    }
    assert_eq!(attribute(&dir.path().join("plain"), OPAQUE), None);
    assert!(is_whiteout(&dir.path().join("gone")));
    for name in ["file", "back", "way/in"] {
        assert_eq!(fs::read(dir.path().join(name)).unwrap(), b"x", "{name}");
    }
    let names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".wh")), "{names:?}");
}

#[tokio::test]
async fn stacked_layers_show_what_their_image_means() {
    let test = "image::overlays::stacked_layers_show_what_their_image_means";
    if !is_root(test) {
        return;
    }
    let lab = Lab::new();
    let low = Tar::default()
        .file("gone", b"low")
        .file("kept", b"low")
        .file("both", b"low")
        .file("hollow/old", b"low")
        .file("full/old", b"low")
        .end();
    let high = Tar::default()
        .file(".wh.gone", b"")
        .file("both", b"high")
        .file("hollow/.wh..wh..opq", b"")
        .file("hollow/new", b"high")
        .file("full/new", b"high")
        .end();
    let image = lab.images.prepare(&lab.layout("l", &[low, high])).await.unwrap();
    let lower: Vec<_> = image.layers.iter().rev().map(|it| it.to_str().unwrap()).collect();
    let merged = lab.at("merged");
    fs::create_dir(&merged).unwrap();
    // In a mount namespace that ends with the command.
    let script = "mount -t overlay overlay -o ro,lowerdir=\"$1\" \"$2\" || exit 9; \
        cd \"$2\" && for f in $(find . -type f | sort); do echo $f $(cat $f); done";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", &lower.join(":")]).arg(&merged);
    let output = command.output().unwrap();
    if output.status.code() == Some(9) {
        skip(test, "this root may not mount an overlay");
        return;
    }
    let want = "./both high\n./full/new high\n./full/old low\n./hollow/new high\n./kept low\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), want);
}
