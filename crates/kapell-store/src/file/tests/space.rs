//! Disks that are full or broken.

use std::fs::File;
use std::io::{self};
use std::process::Command;

use super::*;
use crate::file::desk::Desk;
use crate::file::job;
use crate::file::recover::OnDisk;
use crate::file::writer::Writer;
use crate::testing;

/// A small file system in memory, unmounted when it is dropped.
struct Small(TempDir);

impl Small {
    fn mount(test: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "kapell-test"])
            .arg(dir.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(dir));
        }
        testing::skip(test, "a file system cannot be mounted here");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        assert!(Command::new("umount").arg(self.0.path()).status().unwrap().success());
    }
}

#[tokio::test]
async fn a_full_disk_is_refused_and_passes() {
    let Some(disk) = Small::mount("a_full_disk_is_refused_and_passes") else { return };
    let dir = disk.0.path().join("store");
    let sizes = Sizes { segment: 16 << 10, compact_above: u64::MAX };
    let open = || FileStore::open_with(&dir, &holder(), &how(true), sizes, |_| ());
    let store = open().unwrap();
    raise(&store).await;
    let ballast = disk.0.path().join("ballast");
    fs::write(&ballast, vec![1; 100 << 10]).unwrap();
    let mut seq = 0;
    let error = loop {
        match commit(&store, 3, seq).await {
            Ok(done) => assert_eq!(done, Commit::Done),
            Err(error) => break error,
        }
        seq += 1;
        assert!(seq < 10_000, "the disk was never full");
    };
    assert_eq!(error.io().unwrap().kind(), io::ErrorKind::StorageFull);
    assert!(error.may_pass());
    assert_eq!(store.fence(shard(3)).await.unwrap(), at(seq), "nothing has happened");
    assert!(commit(&store, 3, seq).await.is_err(), "still full");
    fs::remove_file(ballast).unwrap();
    fill(&store, seq..seq + 20).await;
    drop(store);
    let store = open().unwrap();
    assert!(store.notes().is_empty());
    assert_eq!(store.fence(shard(3)).await.unwrap(), at(seq + 20));
}

#[tokio::test]
async fn after_a_write_that_failed_nothing_is_taken_any_more() {
    let dir = place();
    let there = Arc::new(Dir::open(dir.path()).unwrap());
    let Recovered { book, mut log, .. } = recover::create(&there, SMALL).unwrap();
    log.segment.file = File::open(there.segment(1)).unwrap();
    let desk = Desk::new(book, Arc::new(Hand::default()));
    let writer = Writer::new("file:x".to_owned(), desk, log, OnDisk::default(), Arc::default());
    let (jobs, queue) = tokio::sync::mpsc::channel(8);
    let thread = std::thread::spawn(move || writer.run(queue));
    let (job, answer) = job::ask("raise", 600, |desk| desk.raise(SEAT, Epoch(1)));
    jobs.send(job).await.unwrap();
    let failed = answer.await.unwrap().unwrap_err();
    assert!(matches!(failed, Error::Failed { call: "raise", .. }), "{failed}");
    assert_eq!(failed.io().unwrap().raw_os_error(), Some(nix::libc::EBADF));
    let (job, answer) = job::ask("fence", 0, |desk| desk.fence(shard(0)));
    jobs.send(job).await.unwrap();
    let stopped = answer.await.unwrap().unwrap_err();
    assert!(matches!(stopped, Error::Stopped { .. }), "{stopped}");
    drop(jobs);
    thread.join().unwrap();
}
