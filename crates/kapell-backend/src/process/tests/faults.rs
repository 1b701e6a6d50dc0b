//! A full disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kapell_core::log::Stream;

use super::lab::{Job, Lab, MAIN, frames, is_root, skip, until};
use crate::containers::{Containers as _, Error};
use crate::process::ProcessContainers;

/// A small file system, gone at the end.
#[derive(Debug)]
struct Small(PathBuf);

impl Small {
    fn mount(dir: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(dir).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir).status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(dir.to_owned()))
    }

    fn fill(&self) {
        let full = fs::write(self.0.join("filler"), vec![1; 8 << 20]);
        assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn small(lab: &Lab, test: &str) -> Option<Small> {
    if !is_root(test) {
        return None;
    }
    let small = Small::mount(&lab.dir.path().join("small"), "size=3m");
    if small.is_none() {
        skip(test, "this root may not mount a tmpfs");
    }
    small
}

#[tokio::test]
async fn output_that_finds_no_room_is_dropped_and_told() {
    let lab = Lab::new();
    let Some(small) = small(&lab, "faults::output_that_finds_no_room_is_dropped_and_told") else {
        return;
    };
    let logs = small.0.join("logs");
    let script = "echo before; while [ ! -e go ]; do sleep 0.01; done; head -c 5000000 /dev/zero; touch written; \
                  while [ ! -e on ]; do sleep 0.01; done; echo after; exit 6";
    let spec = Job { logs: logs.clone(), ..lab.job("full", script) };
    lab.start(spec).await;
    let logs = logs.join(MAIN);
    until(|| frames(&logs).iter().any(|frame| frame.bytes == b"before\n")).await;
    small.fill();
    let work = lab.home("full").join("work");
    fs::write(work.join("go"), "").unwrap();
    // The program is not held up.
    until(|| work.join("written").exists()).await;
    small.empty();
    // A failed write is not tried again at once.
    let start = std::time::Instant::now();
    until(|| start.elapsed() > Duration::from_millis(150)).await;
    fs::write(work.join("on"), "").unwrap();
    let exit = lab.ended("full").await;
    assert_eq!((exit.code, exit.last_words.as_str()), (Some(6), "after"));
    let frames = frames(&logs);
    let of = |stream| -> Vec<u8> {
        let frames = frames.iter().filter(|frame| frame.stream == stream);
        frames.flat_map(|frame| frame.bytes.clone()).collect()
    };
    let note = String::from_utf8(of(Stream::Note)).unwrap();
    let (lost, text) = note.split_once(' ').unwrap();
    assert_eq!(text, "bytes of output were lost: they could not be written\n");
    let kept = of(Stream::Out).len();
    assert_eq!(lost.parse::<usize>().unwrap() + kept, "before\nafter\n".len() + 5_000_000);
    drop(small);
    lab.clean_up().await;
}

#[tokio::test]
async fn a_full_disk_loses_no_exit_status_and_leaves_no_half_containers() {
    let lab = Lab::new();
    let test = "faults::a_full_disk_loses_no_exit_status_and_leaves_no_half_containers";
    let Some(small) = small(&lab, test) else { return };
    let driver = ProcessContainers::open(&small.0.join("agent")).unwrap();
    let script = "echo words; while [ ! -e go ]; do sleep 0.01; done; exit 8";
    let spec = |name: &str| Job { logs: small.0.join("logs").join(name), ..lab.job(name, script) };
    let guid = lab.guid("status");
    spec("status").start(&driver).await.unwrap();
    let home = small.0.join("agent/containers").join(&guid);
    until(|| !frames(&small.0.join("logs/status/main")).is_empty()).await;
    fs::write(home.join("work/go2"), "").unwrap();
    small.fill();
    let error = spec("late").start(&driver).await.unwrap_err();
    let Error::Io { what, source } = error else { panic!("{error:?}") };
    assert!(what.contains(&small.0.display().to_string()), "{what}");
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert!(!small.0.join("agent/containers").join(lab.guid("late")).exists());
    assert!(!small.0.join("logs/late").exists());
    let big = lab.dir.path().join("big");
    fs::write(&big, vec![1; 100_000]).unwrap();
    let error = driver.put(&guid, &big, "big").await.unwrap_err();
    let Error::Io { what, source } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{what}");
    assert_eq!(fs::read_dir(home.join("work")).unwrap().count(), 1, "no half of it is left");
    // A name needs no room.
    fs::rename(home.join("work/go2"), home.join("work/go")).unwrap();
    let exit = driver.ended(&guid, MAIN).await.unwrap();
    assert_eq!((exit.code, exit.last_words.as_str()), (Some(8), "words"));
    driver.delete(&guid).await.unwrap();
    small.empty();
    spec("late").start(&driver).await.unwrap();
    driver.delete(&lab.guid("late")).await.unwrap();
    drop(driver);
    drop(small);
    lab.clean_up().await;
}

#[tokio::test]
async fn a_full_disk_at_the_start_is_told() {
    let lab = Lab::new();
    let test = "faults::a_full_disk_at_the_start_is_told";
    let Some(small) = small(&lab, test) else { return };
    small.fill();
    let error = ProcessContainers::open(&small.0.join("agent")).unwrap_err();
    assert!(
        matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull),
        "{error:?}"
    );
    drop(small);
    lab.clean_up().await;
}
