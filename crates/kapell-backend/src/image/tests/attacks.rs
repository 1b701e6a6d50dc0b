use std::fs;
use std::io::Read;

use kapell_core::causes::chain;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::lab::{Lab, Parts, Tar, gzip, limits, unpacked, unpacked_within, write_layout};
use crate::image::budget::Budget;
use crate::image::layer::unpack;
use crate::image::{Digest, Error, Limits};
use crate::testing::is_root;

fn why_not(archive: Tar) -> String {
    let archive = archive.end();
    chain(&unpacked(&archive).unwrap_err())
}

#[test]
fn nothing_gets_out_of_its_layer() {
    if !is_root("image::attacks::nothing_gets_out_of_its_layer") {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "untouched").unwrap();
    let out = outside.path().to_str().unwrap();
    let up = format!("{}{}", "../".repeat(20), &out[1..]);
    let tar = Tar::default;
    for (archive, entry, why) in [
        (tar().symlink("l", out).file("l/new", b"x"), "l/new", "leads to no directory"),
        (tar().symlink("l", &up).file("l/secret", b"x"), "l/secret", "leads to no directory"),
        (tar().symlink("l", out).dir("l/d"), "l/d", "leads to no directory"),
        (tar().symlink("l", "/proc/self/root").file("l/x", b""), "l/x", "leads to no directory"),
        (tar().symlink("l", "l").file("l/x", b""), "l/x", "leads to no directory"),
        (tar().file("../new", b"x"), "../new", "`..`"),
        (tar().file("a/../../new", b"x"), "a/../../new", "`..`"),
        (tar().file(&format!("{out}/new"), b"x"), "/new", "absolute"),
        (tar().pax(&[("path", b"../new")]).file("fine", b"x"), "../new", "`..`"),
        (tar().hard_link("h", "/etc/passwd"), "h", "absolute"),
        (tar().hard_link("h", "../secret"), "h", "`..`"),
        (tar().hard_link("h", "etc/passwd"), "h", "not in the layer"),
        (tar().symlink("l", out).hard_link("h", "l/secret"), "h", "not in the layer"),
        (tar().file(".wh...", b""), ".wh...", "hides nothing"),
        (tar().file(".wh.", b""), ".wh.", "hides nothing"),
        (
            tar().symlink("l", out).file("l/.wh.secret", b""),
            "l/.wh.secret",
            "leads to no directory",
        ),
        (tar().symlink("l", out).file("l/.wh..wh..opq", b""), "l/.wh..wh..opq", "leads to no"),
    ] {
        let text = why_not(archive);
        assert!(text.contains("layer sha256:") && text.contains(why), "{entry}: {text}");
        assert!(text.contains(&format!("{entry}`")), "{entry}: {text}");
    }
    // A link that is replaced through itself, or written to, stays a thing of the layer.
    let secret = format!("{out}/secret");
    let archive =
        tar().symlink("l", &secret).file("l", b"x").symlink("m", &secret).hard_link("n", "m");
    unpacked(&archive.end()).unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "untouched");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_link_inside_a_layer_is_followed_inside_it() {
    if !is_root("image::attacks::a_link_inside_a_layer_is_followed_inside_it") {
        return;
    }
    let archive = Tar::default()
        .dir("usr/lib")
        .symlink("lib", "/usr/lib")
        .symlink("up", "../../usr")
        .file("lib/a", b"a")
        .file("up/new/b", b"b")
        .end();
    let (dir, _) = unpacked(&archive).unwrap();
    assert_eq!(fs::read(dir.path().join("usr/lib/a")).unwrap(), b"a");
    assert_eq!(fs::read(dir.path().join("usr/new/b")).unwrap(), b"b");
}

#[test]
fn what_must_not_be_in_a_layer_is_refused_by_name() {
    if !is_root("image::attacks::what_must_not_be_in_a_layer_is_refused_by_name") {
        return;
    }
    let tar = Tar::default;
    let deep = "d/".repeat(300);
    for (archive, why) in [
        (tar().raw(b'3', b"dev", b"", 0o600, b""), "would hide files"),
        (tar().pax(&[("path", b"a\0b")]).file("x", b""), "zero byte"),
        (tar().pax(&[("path", &[b'n'; 256])]).file("x", b""), "more than 255 bytes"),
        (tar().pax(&[("path", deep.as_bytes())]).file("x", b""), "256 parts"),
        (tar().dir("d").file("d", b""), "replace a directory"),
        (tar().dir("d").hard_link("h", "d"), "hard link to a directory"),
        (tar().file("f", b"").file("f/x", b""), "no directory"),
        (tar().hard_link("h", "h"), "not in the layer"),
        (tar().file(".wh.x", b"").hard_link("h", "x"), "not in the layer"),
        (tar().symlink("l", ""), "a name that cannot be"),
        (tar().raw(b'V', b"label", b"", 0, b""), "kind `V`"),
        (tar().raw(b'0', b".", b"", 0, b""), "replace the root"),
        (tar().file("a", b"").data(&[7; 512]), "no header of an archive"),
        (tar().pax(&[("size", b"-1")]).file("x", b""), "bad number"),
        (tar().pax(&[("uid", b"4294967295")]).file("x", b""), "a user that cannot be"),
        (tar().raw(b'x', b"p", b"", 0, b"99 path=x\n").file("x", b""), "cannot be read"),
        (tar().pax(&[("GNU.sparse.offset", b"0")]).file("x", b""), "format 0.0"),
        (
            tar()
                .pax(&[("GNU.sparse.map", b"0,9"), ("GNU.sparse.size", b"5")])
                .file("x", b"123456789"),
            "bad map",
        ),
        (
            tar()
                .pax(&[("GNU.sparse.map", b"0,4"), ("GNU.sparse.size", b"5")])
                .file("x", b"123456789"),
            "does not fit",
        ),
        (tar().header(b'L', b"l", b"", |it| it.set_size(1 << 40)), "more than 4096 bytes"),
        (tar().header(b'x', b"x", b"", |it| it.set_size(1 << 40)), "more than 1048576 bytes"),
        (tar().header(b'0', b"f", b"", |it| it.set_size(u64::MAX)), "ends too early"),
    ] {
        let text = why_not(archive);
        assert!(text.contains(why), "want {why}: {text}");
    }
}

/// Bytes that come as long as somebody reads.
#[derive(Debug)]
struct Entries {
    left: u64,
    block: Vec<u8>,
}

impl Read for Entries {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.block.is_empty() {
            if self.left == 0 {
                return Ok(0);
            }
            self.left -= 1;
            self.block = Tar::default().file(&format!("d/{}", self.left), b"").open();
        }
        let length = buffer.len().min(self.block.len());
        buffer[..length].copy_from_slice(&self.block[..length]);
        self.block.drain(..length);
        Ok(length)
    }
}

#[test]
fn a_million_entries_end_at_the_limit() {
    if !is_root("image::attacks::a_million_entries_end_at_the_limit") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { entries: 2_000, ..limits() };
    let blob = Entries { left: 1_000_000, block: Vec::new() };
    let error = unpack(blob, dir.path(), &Digest::of(b""), &Budget::new(&limits)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the unpacked image has more than 2000 entries, which is the limit of this cell"
    );
    assert_eq!(fs::read_dir(dir.path().join("d")).unwrap().count(), 1_999);
    // A long name makes many directories: they count too.
    let name = "d/".repeat(200);
    let archive = Tar::default().pax(&[("path", name.as_bytes())]).file("x", b"").end();
    let limits = Limits { entries: 100, ..limits };
    let error = unpacked_within(&archive, &Digest::of(&archive), &limits).unwrap_err();
    assert!(matches!(error, Error::TooBig { unit: "entries", .. }), "{error}");
}

#[tokio::test]
async fn a_bomb_of_10_gb_ends_at_the_limit_and_leaves_nothing() {
    if !is_root("image::attacks::a_bomb_of_10_gb_ends_at_the_limit_and_leaves_nothing") {
        return;
    }
    let size = 10 << 30;
    let head = Tar::default().header(b'0', b"bomb", b"", |header| header.set_size(size)).open();
    let zeros = gzip(&vec![0; 64 << 20]);
    let mut blob = gzip(&head);
    for _ in 0..size / (64 << 20) {
        blob.extend_from_slice(&zeros);
    }
    let lab = Lab::with(Limits { unpacked_bytes: 32 << 20, ..limits() });
    write_layout(&lab.at("l"), &Parts::with_blobs(&[head], vec![blob]));
    let error =
        lab.images.prepare(&format!("oci://{}#v1", lab.at("l").display())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the unpacked image has more than 33554432 bytes, which is the limit of this cell"
    );
    assert_eq!(lab.kept(), Vec::<String>::new());
}

#[tokio::test]
async fn a_bad_layer_leaves_nothing_and_names_what_is_bad() {
    if !is_root("image::attacks::a_bad_layer_leaves_nothing_and_names_what_is_bad") {
        return;
    }
    let lab = Lab::new();
    let noise: Vec<u8> = (0..99_999_u32)
        .flat_map(|n| n.wrapping_mul(n).wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let good = Tar::default().file("good", &noise).end();
    let blob = gzip(&good);
    let zstd = compress_to_vec(good.as_slice(), CompressionLevel::Fastest);
    let other = Tar::default().file("other", b"").end();
    let evil = Tar::default().file("fine", b"x").file("../evil", b"x").end();
    let mut broken = blob.clone();
    let end = broken.len();
    broken[end / 2] ^= 0xff;
    let mut checksum = blob.clone();
    checksum[end - 5] ^= 0xff;
    for (name, archive, blob, why) in [
        ("escape", &evil, gzip(&evil), "entry `../evil` has `..` in its name"),
        ("truncated", &good, blob[..end / 2].to_vec(), "entry `good`"),
        ("truncated zstd", &good, zstd[..zstd.len() / 2].to_vec(), "is damaged"),
        ("broken", &good, broken, "is damaged"),
        ("checksum", &good, checksum, "is damaged"),
        ("diff-id", &other, blob.clone(), "it unpacks to sha256:"),
        ("no archive", &other, b"what is this".repeat(99), "no header of an archive"),
    ] {
        write_layout(&lab.at(name), &Parts::with_blobs(std::slice::from_ref(archive), vec![blob]));
        let url = format!("oci://{}#v1", lab.at(name).display());
        let text = chain(&lab.images.prepare(&url).await.unwrap_err());
        assert!(text.contains(why) && text.contains("layer sha256:"), "{name}: {text}");
        assert_eq!(lab.kept(), Vec::<String>::new(), "{name}");
    }
    // A blob that is not what its name says.
    let url = lab.layout("digest", &[good]);
    fs::write(lab.at("digest/blobs/sha256").join(Digest::of(&blob).hex()), vec![0; blob.len()])
        .unwrap();
    let text = chain(&lab.images.prepare(&url).await.unwrap_err());
    assert!(text.contains("is damaged: its digest is sha256:"), "{text}");
    assert_eq!(lab.kept(), Vec::<String>::new());
}
