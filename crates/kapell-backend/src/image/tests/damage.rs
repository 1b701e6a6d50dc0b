//! Archives with random damage.

use proptest::prelude::*;

use super::lab::{Tar, limits};
use crate::image::Digest;
use crate::image::budget::Budget;
use crate::image::layer::unpack;
use crate::testing::is_root;

fn archive() -> Vec<u8> {
    Tar::default()
        .dir("d")
        .file("d/f", b"some data")
        .symlink("l", "d")
        .hard_link("l/h", "d/f")
        .pax(&[("path", b"d/long"), ("mtime", b"-1.25"), ("SCHILY.xattr.user.a", b"b")])
        .file("x", &[7; 700])
        .raw(b'L', b"././@LongLink", b"", 0o644, b"d/longer\0")
        .file("x", b"y")
        .pax(&[("GNU.sparse.map", b"0,4,100,5"), ("GNU.sparse.size", b"200")])
        .file("sparse", b"123456789")
        .pax(&[("GNU.sparse.major", b"1"), ("GNU.sparse.realsize", b"50")])
        .raw(
            b'0',
            b"newer",
            b"",
            0o644,
            &[b"1\n10\n4\n".to_vec(), vec![0; 505], b"data".to_vec()].concat(),
        )
        .file(".wh.gone", b"")
        .file("d/.wh..wh..opq", b"")
        .end()
}

/// Makes the checksum of a header right again, so that what is damaged is read.
fn mend(archive: &mut [u8], block: usize) {
    let at = block * 512;
    let mut header = tar::Header::from_byte_slice(&archive[at..at + 512]).clone();
    header.set_cksum();
    archive[at..at + 512].copy_from_slice(header.as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_damaged_archive_is_refused_and_stays_in_its_place(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        if !is_root("image::damage::a_damaged_archive_is_refused_and_stays_in_its_place") {
            return Ok(());
        }
        let mut archive = archive();
        let whole = Digest::of(&archive);
        for (index, value) in &damage {
            let at = index.index(archive.len() - 1024);
            archive[at] ^= *value | 1;
            mend(&mut archive, at / 512);
        }
        if is_cut {
            archive.truncate(cut.index(archive.len()));
        }
        prop_assume!(Digest::of(&archive) != whole);
        let around = tempfile::tempdir().unwrap();
        let dir = around.path().join("layer");
        std::fs::create_dir(&dir).unwrap();
        prop_assert!(unpack(&*archive, &dir, &whole, &Budget::new(&limits())).is_err());
        prop_assert_eq!(std::fs::read_dir(around.path()).unwrap().count(), 1);
    }
}

#[test]
fn without_damage_it_is_fine() {
    if !is_root("image::damage::without_damage_it_is_fine") {
        return;
    }
    let archive = archive();
    let (dir, _) = super::lab::unpacked(&archive).unwrap();
    let mut newer = vec![0; 50];
    newer[10..14].copy_from_slice(b"data");
    assert_eq!(std::fs::read(dir.path().join("newer")).unwrap(), newer);
    assert_eq!(std::fs::read(dir.path().join("d/longer")).unwrap(), b"y");
}
