//! Files that someone or something has changed.

use std::ops::Range;

use super::*;
use crate::file::frame::{FORMAT, HEADER, Head, Kind};

/// A store of several segments behind a snapshot, as a crash would leave it.
async fn crashed(dir: &Path) {
    let live = place();
    let store = open(live.path()).unwrap();
    raise(&store).await;
    fill(&store, 0..20).await;
    drop(store);
    crash::plan(live.path()).run(&|| false).unwrap();
    let store = open(live.path()).unwrap();
    fill(&store, 20..50).await;
    copy(live.path(), dir);
    drop(store);
}

/// Where the header and the frames of a file lie.
fn frames(bytes: &[u8], kind: Kind) -> Vec<Range<usize>> {
    let header = 0..HEADER;
    let mut at = header.end;
    let mut found = vec![header];
    while let Some(head) = bytes.get(at..).and_then(|rest| Head::decode(rest, kind)) {
        found.push(at..at + head.framed());
        at += head.framed();
    }
    found
}

fn files(dir: &Path) -> Vec<(PathBuf, Kind)> {
    let found = Listing::of(dir).unwrap().unwrap();
    let there = Dir::open(dir).unwrap();
    let snapshots = found.snapshots.iter().map(|number| (there.snapshot(*number), Kind::Snapshot));
    let segments = found.segments.iter().map(|number| (there.segment(*number), Kind::Log));
    snapshots.chain(segments).collect()
}

fn digest(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

#[tokio::test]
async fn every_flipped_byte_is_found_at_its_place() {
    let dir = place();
    crashed(dir.path()).await;
    let (content, notes) = recovered(dir.path()).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let last = segments(dir.path()).pop().unwrap();
    let mut refused = 0;
    for (path, kind) in files(dir.path()) {
        let good = fs::read(&path).unwrap();
        let frames = frames(&good, kind);
        for (flip, offset) in
            [1, 0xff].into_iter().flat_map(|flip| (0..good.len()).map(move |o| (flip, o)))
        {
            let mut bad = good.clone();
            bad[offset] ^= flip;
            fs::write(&path, &bad).unwrap();
            let before = (offset % 64 == 0).then(|| digest(dir.path()));
            let outcome = recovered(dir.path());
            let case = format!("{} at {offset} ^ {flip}", path.display());
            let within = frames.iter().find(|range| range.contains(&offset));
            match outcome {
                Err(Error::Damaged { path: named, offset: told, why }) => {
                    assert_eq!(named, path, "{case}: {why}");
                    let told = usize::try_from(told).unwrap();
                    let end = frames.last().unwrap().end;
                    let within = within.cloned().unwrap_or(end..good.len());
                    assert!(within.contains(&told), "{case}: {told}, {why}");
                    if let Some(before) = before {
                        assert_eq!(digest(dir.path()), before, "{case}: it was touched");
                    }
                    refused += 1;
                }
                Err(other) => panic!("{case}: {other}"),
                // Behind the end of the log nothing can be lost.
                Ok((found, notes)) => {
                    assert!(within.is_none() && path == last, "{case}: taken as good");
                    assert_eq!(found, content, "{case}");
                    assert_eq!(notes.len(), 1, "{case}");
                }
            }
        }
        fs::write(&path, &good).unwrap();
    }
    assert!(refused > 5_000, "only {refused}");
    assert_eq!(recovered(dir.path()).unwrap().0, content);
}

#[tokio::test]
async fn a_file_of_any_other_length_is_refused() {
    let dir = place();
    crashed(dir.path()).await;
    for (path, _) in files(dir.path()) {
        let good = fs::read(&path).unwrap();
        for length in (0..good.len() + 2).filter(|length| *length != good.len()) {
            let mut bad = good.clone();
            bad.resize(length, 0);
            fs::write(&path, &bad).unwrap();
            let Err(Error::Damaged { path: named, offset, .. }) = recovered(dir.path()) else {
                panic!("{} with {length} bytes was taken", path.display());
            };
            assert_eq!((named, offset), (path.clone(), length.min(good.len()) as u64));
        }
        fs::write(&path, &good).unwrap();
    }
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let dir = place();
    crashed(dir.path()).await;
    for (path, kind) in files(dir.path()) {
        let good = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let Err(Error::Damaged { path: named, .. }) = open(dir.path()).map(drop) else {
            panic!("{} was not missed", path.display());
        };
        if kind == Kind::Log {
            assert_eq!(named, path);
        }
        fs::write(&path, &good).unwrap();
    }
    let files = files(dir.path());
    drop(open(dir.path()).unwrap());
    for (path, _) in files {
        fs::remove_file(path).unwrap();
    }
    let gone = open(dir.path()).unwrap_err();
    assert!(
        matches!(gone, Error::Damaged { .. }),
        "a store that was emptied is not laid out again"
    );
}

#[tokio::test]
async fn a_group_that_was_cut_off_while_it_was_written_is_set_aside() {
    let dir = place();
    crashed(dir.path()).await;
    let path = segments(dir.path()).pop().unwrap();
    let good = fs::read(&path).unwrap();
    let all = frames(&good, Kind::Log);
    let last = all.last().unwrap().clone();
    let mut without = good.clone();
    without[last.clone()].fill(0);
    fs::write(&path, &without).unwrap();
    let (want, notes) = recovered(dir.path()).unwrap();
    assert!(notes.is_empty());
    for cut in last.start + 1..=last.end - 4 {
        let mut bad = good.clone();
        bad[cut..].fill(0);
        fs::write(&path, &bad).unwrap();
        let (found, notes) = recovered(dir.path()).unwrap();
        assert_eq!(found, want, "cut at {cut}");
        let [Note::Torn { path: named, offset, kept }] = &notes[..] else { panic!("{notes:?}") };
        assert_eq!((named, *offset), (&path, last.start as u64));
        let aside = fs::read(kept).unwrap();
        assert!(bad[last.start..].starts_with(&aside) && !aside.is_empty());
        assert_eq!(recovered(dir.path()).unwrap(), (want.clone(), Vec::new()));
        fs::remove_file(kept).unwrap();
    }
    // The same in the group before it: it was acknowledged, for another one was begun.
    let before = all[all.len() - 2].clone();
    for cut in before.start..before.end {
        let mut bad = good.clone();
        bad[cut..before.end].fill(0);
        fs::write(&path, &bad).unwrap();
        let Err(Error::Damaged { offset, .. }) = recovered(dir.path()) else {
            panic!("a hole at {cut} was taken");
        };
        assert_eq!(offset, before.start as u64);
    }
}

#[tokio::test]
async fn nothing_can_be_cut_off_a_store_that_was_closed() {
    let dir = place();
    let store = open(dir.path()).unwrap();
    raise(&store).await;
    fill(&store, 0..3).await;
    drop(store);
    let (content, _) = recovered(dir.path()).unwrap();
    let path = segments(dir.path()).pop().unwrap();
    let good = fs::read(&path).unwrap();
    let last = frames(&good, Kind::Log).pop().unwrap();
    for cut in HEADER..last.start {
        let mut bad = good.clone();
        bad[cut..last.start].fill(0);
        fs::write(&path, &bad).unwrap();
        assert!(matches!(recovered(dir.path()), Err(Error::Damaged { .. })), "hole at {cut}");
    }
    let mut bad = good;
    bad[last].fill(0);
    fs::write(&path, &bad).unwrap();
    assert_eq!(recovered(dir.path()).unwrap().0, content, "nothing was in the last group");
}

#[tokio::test]
async fn files_of_another_store_or_place_are_refused() {
    let (one, two) = (place(), place());
    crashed(one.path()).await;
    crashed(two.path()).await;
    let (ours, theirs) = (segments(one.path()), segments(two.path()));
    assert!(ours.len() > 2);
    let good = fs::read(&ours[1]).unwrap();
    for other in [&theirs[1], &ours[0], &ours[2]] {
        fs::copy(other, &ours[1]).unwrap();
        let Err(Error::Damaged { path, offset: 0, .. }) = recovered(one.path()) else {
            panic!("{} was taken", other.display());
        };
        assert_eq!(path, ours[1]);
    }
    fs::write(&ours[1], good).unwrap();
    recovered(one.path()).unwrap();
}

#[tokio::test]
async fn another_format_is_refused_by_its_number() {
    let dir = place();
    crashed(dir.path()).await;
    for (path, _) in files(dir.path()) {
        let good = fs::read(&path).unwrap();
        let mut other = good.clone();
        other[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
        let crc = crc32fast::hash(&other[..HEADER - 4]);
        other[HEADER - 4..HEADER].copy_from_slice(&crc.to_le_bytes());
        fs::write(&path, &other).unwrap();
        let error = recovered(dir.path()).unwrap_err();
        assert!(
            matches!(&error, Error::Format { found, known: FORMAT, .. } if found == "2"),
            "{error}"
        );
        fs::write(&path, &good).unwrap();
    }
}
