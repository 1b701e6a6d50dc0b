use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::lab::{Tar, gzip, limits, unpacked, unpacked_within};
use crate::image::Digest;
use crate::testing::is_root;

#[test]
fn what_an_archive_says_of_a_file_is_kept() {
    if !is_root("image::unpacking::what_an_archive_says_of_a_file_is_kept") {
        return;
    }
    let archive = Tar::default()
        .header(b'5', b"./", b"", |header| header.set_mode(0o711))
        .header(b'5', b"d/", b"", |header| header.set_mode(0o2775))
        .header(b'0', b"d/su", b"", |header| {
            header.set_mode(0o4755);
            header.set_uid(1001);
            header.set_gid(1002);
            header.set_size(3);
        })
        .data(b"abc")
        .hard_link("d/other", "d/su")
        .symlink("d/link", "/etc/passwd")
        .raw(b'6', b"d/pipe", b"", 0o620, b"")
        .raw(b'3', b"d/null", b"", 0o666, b"")
        .open();
    let mut archive = archive;
    // The device gets its numbers here: 1, 3.
    let at = archive.len() - 512;
    let mut header = tar::Header::from_byte_slice(&archive[at..]).clone();
    header.set_device_major(1).unwrap();
    header.set_device_minor(3).unwrap();
    header.set_cksum();
    archive[at..].copy_from_slice(header.as_bytes());
    archive.resize(archive.len() + 1024, 0);
    let (dir, done) = unpacked(&archive).unwrap();
    let about = |name: &str| fs::symlink_metadata(dir.path().join(name)).unwrap();
    assert_eq!(done.entries, 6, "a device is left out");
    assert_eq!(about("").mode() & 0o7777, 0o711);
    assert_eq!(about("d").mode() & 0o7777, 0o2775);
    let su = about("d/su");
    assert_eq!((su.mode() & 0o7777, su.uid(), su.gid(), su.nlink()), (0o4755, 1001, 1002, 2));
    assert_eq!((su.ino(), su.mtime()), (about("d/other").ino(), 1_000_000_000));
    assert_eq!(about("d").mtime(), 1_000_000_000, "set after all that is in it");
    let target = fs::read_link(dir.path().join("d/link")).unwrap();
    assert_eq!((target.to_str(), about("d/link").mtime()), (Some("/etc/passwd"), 1_000_000_000));
    assert!(about("d/pipe").file_type().is_fifo());
    assert_eq!(about("d/pipe").permissions().mode() & 0o7777, 0o620);
    assert!(!dir.path().join("d/null").exists());
}

#[test]
fn only_harmless_attributes_are_kept() {
    if !is_root("image::unpacking::only_harmless_attributes_are_kept") {
        return;
    }
    let capability: &[u8] = &[1, 0, 0, 2, 0, 4, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let archive = Tar::default()
        .pax(&[
            ("SCHILY.xattr.user.note", b"two\nlines"),
            ("SCHILY.xattr.security.capability", capability),
            ("SCHILY.xattr.trusted.overlay.opaque", b"y"),
            ("SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
            ("SCHILY.xattr.user.overlay.opaque", b"y"),
            ("SCHILY.xattr.security.selinux", b"x"),
            ("mtime", b"1234567890.5"),
            ("uid", b"70000"),
        ])
        .file("file", b"x")
        .end();
    let (dir, _) = unpacked(&archive).unwrap();
    let path = dir.path().join("file");
    assert_eq!(attribute(&path, c"user.note").unwrap(), b"two\nlines");
    assert_eq!(attribute(&path, c"security.capability").unwrap(), capability);
    for name in [c"trusted.overlay.opaque", c"trusted.overlay.redirect", c"user.overlay.opaque"] {
        assert_eq!(attribute(&path, name), None, "{name:?}");
    }
    let about = fs::metadata(&path).unwrap();
    assert_eq!((about.mtime(), about.mtime_nsec()), (1_234_567_890, 500_000_000));
    assert_eq!(about.uid(), 70_000);
}

#[expect(unsafe_code, reason = "getxattr has no safe wrapper in std or nix")]
pub(super) fn attribute(path: &std::path::Path, name: &std::ffi::CStr) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let mut value = vec![0; 4096];
    // SAFETY: the pointers are valid for the call, the length is that of `value`.
    let length = unsafe {
        libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

#[test]
fn names_may_be_long_and_hold_any_byte_but_zero_and_slash() {
    if !is_root("image::unpacking::names_may_be_long_and_hold_any_byte_but_zero_and_slash") {
        return;
    }
    let long = format!("{}/{}", "a".repeat(200), "b".repeat(200));
    let longer = format!("{}/{}", "c".repeat(255), "d".repeat(255));
    let archive = Tar::default()
        .raw(b'L', b"././@LongLink", b"", 0o644, format!("{long}\0").as_bytes())
        .file("short", b"gnu")
        .pax(&[("path", longer.as_bytes())])
        .file("short", b"pax")
        .raw(b'K', b"././@LongLink", b"", 0o644, format!("{long}\0").as_bytes())
        .symlink("link", "short")
        .pax(&[("linkpath", long.as_bytes())])
        .hard_link("hard", "short")
        .raw(b'0', b"new\nline \xff", b"", 0o644, b"odd")
        .end();
    let (dir, _) = unpacked(&archive).unwrap();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(
        (read(&long), read(&longer), read("hard")),
        ("gnu".into(), "pax".into(), "gnu".into())
    );
    assert_eq!(fs::read_link(dir.path().join("link")).unwrap().to_str(), Some(&*long));
    let odd = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"new\nline \xff");
    assert_eq!(fs::read(dir.path().join(odd)).unwrap(), b"odd");
    assert!(!dir.path().join("short").exists());
}

#[test]
fn sparse_files_of_every_format_keep_their_holes() {
    let test = "image::unpacking::sparse_files_of_every_format_keep_their_holes";
    if !is_root(test) {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let script = "truncate -s 64M f && for n in 1 9 17 25 33 41 49; do \
        echo \"piece $n\" | dd of=f bs=1M seek=$n conv=notrunc status=none; done";
    run(Command::new("sh").args(["-c", script]).current_dir(work.path()));
    let whole = fs::read(work.path().join("f")).unwrap();
    for format in
        [&["--format=gnu"][..], &["--format=posix"], &["--format=posix", "--sparse-version=0.1"]]
    {
        let mut tar = Command::new("tar");
        tar.args(format).args(["-S", "-cf", "s.tar", "f"]).current_dir(work.path());
        run(&mut tar);
        let archive = fs::read(work.path().join("s.tar")).unwrap();
        assert!(archive.len() < 1 << 20, "{format:?} is not sparse");
        let (dir, _) = unpacked(&archive).unwrap();
        let path = dir.path().join("f");
        assert!(fs::read(&path).unwrap() == whole, "{format:?}");
        assert!(fs::metadata(&path).unwrap().blocks() < 4096, "{format:?} has no holes");
    }
}

pub(super) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_layer_is_the_same_however_it_is_compressed() {
    if !is_root("image::unpacking::a_layer_is_the_same_however_it_is_compressed") {
        return;
    }
    let data: Vec<u8> = (0..300_000_u32).flat_map(|n| n.to_string().into_bytes()).collect();
    let archive = Tar::default().file("data", &data).end();
    let (left, right) = archive.split_at(archive.len() / 3);
    let zstd = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
    let note = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let digest = Digest::of(&archive);
    for (how, blob) in [
        ("plain", archive.clone()),
        ("gzip", gzip(&archive)),
        ("gzip in two parts", [gzip(left), gzip(right)].concat()),
        ("zstd", zstd(&archive)),
        ("zstd in two parts and a note", [zstd(left), note.to_vec(), zstd(right)].concat()),
    ] {
        let (dir, done) = unpacked_within(&blob, &digest, &limits()).expect(how);
        assert!(fs::read(dir.path().join("data")).unwrap() == data, "{how}");
        assert_eq!(done.bytes, archive.len() as u64, "{how}");
    }
}

#[test]
fn a_later_entry_takes_the_place_of_an_earlier_one() {
    if !is_root("image::unpacking::a_later_entry_takes_the_place_of_an_earlier_one") {
        return;
    }
    let archive = Tar::default()
        .file("a", b"old")
        .file("a", b"new")
        .symlink("b", "a")
        .file("b", b"no link")
        .dir("c")
        .file("c/in", b"kept")
        .dir("c")
        .symlink("e", "c")
        .dir("e")
        .end();
    let (dir, _) = unpacked(&archive).unwrap();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!((&*read("a"), &*read("b"), &*read("c/in")), ("new", "no link", "kept"));
    assert!(fs::symlink_metadata(dir.path().join("e")).unwrap().is_dir());
}
