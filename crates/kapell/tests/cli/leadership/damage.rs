//! File stores that are damaged, and disks that are full.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use kapell_core::board::shard_of;
use kapell_store::model::SHARDS;

use super::cluster::{Cluster, Kind, free_port};
use super::direct::{Direct, Records};
use crate::bench::{Bench, Ran, skip};

fn some(count: u32, bytes: usize) -> Records {
    let record = |number: u32| {
        let shard = u16::try_from(number % 16).expect("a shard");
        ((shard, number.to_be_bytes().to_vec()), vec![7; bytes])
    };
    (0..count).map(record).collect()
}

/// Every file of a directory.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let bytes = fs::read(entry.path()).expect("a file");
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    };
    fs::read_dir(dir).expect("a directory").map(file).collect()
}

fn host(cluster: &Cluster, more: &[&str]) -> Ran {
    let host = cluster.host_on(&cluster.url, free_port(), more);
    host.running.finish()
}

/// A store that a host led on and left.
fn led() -> (Cluster, Records) {
    let cluster = Cluster::new(Kind::File).expect("no server needed");
    let records = some(200, 100);
    Direct::open(&cluster.url).fill(1, &records);
    let mut host = cluster.host(&[]);
    host.leads(1);
    host.stop().expect(0);
    (cluster, records)
}

fn refused(cluster: &Cluster) {
    let dir = cluster.bench.path("store");
    let before = files(&dir);
    let refused = |ran: Ran| {
        let ran = ran.expect(2);
        ran.stderr_has("/log.000001` is damaged at offset ").stderr_has("kapell store restore ");
        ran.stderr_has("nothing was changed");
    };
    refused(host(cluster, &[]));
    refused(host(cluster, &["--once"]));
    refused(cluster.seats());
    refused(cluster.bench.run(&["store", "backup", &cluster.url, "backup"]));
    refused(cluster.bench.run(&["store", "copy", &cluster.url, "mem:"]));
    assert!(!cluster.bench.exists("backup") && !cluster.bench.exists("backup.unfinished"));
    assert!(files(&dir) == before, "something was changed");
}

/// Not once a second either: nothing gets better by that.
#[test]
fn a_host_does_not_lead_on_what_a_newer_version_wrote_and_ends() {
    let cluster = Cluster::new(Kind::File).expect("no server needed");
    let at = (shard_of("web", SHARDS), b"dweb".to_vec());
    let records = Records::from([(at, b"d\x02{}".to_vec())]);
    Direct::open(&cluster.url).fill(1, &records);
    for epoch in [2, 3] {
        let ran = host(&cluster, &[]).expect(1);
        ran.stderr_has("record `dweb`").stderr_has("a newer version of kapell wrote it");
        let store = Direct::open(&cluster.url);
        assert_eq!((store.epoch(), store.records()), (epoch, records.clone()));
    }
}

#[test]
fn a_file_store_with_another_byte_is_refused_and_left_as_it_is() {
    let (cluster, records) = led();
    let log = cluster.bench.path("store/log.000001");
    cluster.bench.run(&["store", "backup", &cluster.url, "whole"]).expect(0);
    let whole = fs::read(&log).expect("a log");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("something");
    for at in [0, used / 4, used / 2, used] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&log, bytes).expect("a file");
        refused(&cluster);
    }
    // What it tells to do.
    let whole = cluster.bench.path("whole");
    fs::rename(cluster.bench.path("store"), cluster.bench.path("away")).expect("a directory");
    let whole = whole.to_str().expect("a path");
    cluster.bench.run(&["store", "restore", whole, &cluster.url]).expect(0);
    assert!(Direct::open(&cluster.url).records() == records);
}

#[test]
fn a_file_store_that_was_cut_is_refused_and_left_as_it_is() {
    let (cluster, _) = led();
    let log = cluster.bench.path("store/log.000001");
    let whole = fs::read(&log).expect("a log");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("something");
    for length in [whole.len() - 1, used, used / 2, 10, 0] {
        fs::write(&log, &whole[..length]).expect("a file");
        refused(&cluster);
    }
    fs::remove_file(&log).expect("a file");
    refused(&cluster);
}

/// A small file system of its own, unmounted when it is dropped.
struct Disk(Bench);

impl Disk {
    fn mount(test: &str, size: &str) -> Option<Self> {
        let bench = Bench::new();
        fs::create_dir(bench.path("disk")).expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "kapell-test"]);
        let mounted = mount.arg(bench.path("disk")).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(bench));
        }
        skip(&format!("leadership::damage::{test}"), "a file system cannot be mounted here");
        None
    }

    fn resize(&self, size: &str) {
        let mut mount = Command::new("mount");
        mount.args(["-o", &format!("remount,size={size}")]).arg(self.0.path("disk"));
        assert!(mount.status().expect("mount").success());
    }

    /// Leaves no more than this free.
    fn fill(&self, free: usize) {
        let path = self.0.path("disk/ballast");
        let mut bytes = vec![1; 1 << 26];
        // A file system that is full takes a part.
        let _full = fs::write(&path, &bytes);
        let taken = fs::metadata(&path).expect("the ballast").len();
        bytes.truncate(usize::try_from(taken).expect("a size").saturating_sub(free));
        fs::write(&path, bytes).expect("less than before");
    }

    fn free(&self) {
        fs::remove_file(self.0.path("disk/ballast")).expect("the ballast");
    }

    /// A cluster with its store there.
    fn cluster(&self) -> Cluster {
        let url = format!("file:{}", self.0.path("disk/store").display());
        Cluster { url, ..Cluster::new(Kind::File).expect("no server needed") }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: after a failure a process may still be there.
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path("disk")).status();
        assert!(std::thread::panicking() || unmounted.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_host_on_a_full_disk_says_so_and_works_once_there_is_space() {
    let name = "a_host_on_a_full_disk_says_so_and_works_once_there_is_space";
    let Some(disk) = Disk::mount(name, "20m") else { return };
    let cluster = disk.cluster();
    let begin_on_full = || {
        let mut host = cluster.host(&[]);
        host.running.until_told("the store's disk is full; waiting until there is room", 1);
        let told = host.running.stderr_so_far();
        let place = disk.0.path("disk/store").display().to_string();
        assert!(told.contains(&place) && told.contains("No space left on device"), "{told}");
        host
    };
    // No room for a store.
    disk.fill(1 << 20);
    let mut first = begin_on_full();
    disk.free();
    assert_eq!(first.leads(1), 1);
    first.stop().expect(0);
    let records = some(500, 1000);
    Direct::open(&cluster.url).fill(2, &records);
    // No room for anything more.
    disk.fill(0);
    let mut second = begin_on_full();
    disk.free();
    let epoch = second.leads(1);
    assert!(epoch > 2, "{epoch}");
    second.stop().expect(0);
    assert!(Direct::open(&cluster.url).records() == records);
}

#[test]
fn a_restore_into_a_full_disk_fails_and_can_be_run_again() {
    let name = "a_restore_into_a_full_disk_fails_and_can_be_run_again";
    let Some(disk) = Disk::mount(name, "12m") else { return };
    let cluster = disk.cluster();
    let source = Cluster::new(Kind::File).expect("no server needed");
    let records = some(3000, 4 << 10);
    Direct::open(&source.url).fill(5, &records);
    cluster.bench.run(&["store", "backup", &source.url, "backup"]).expect(0);
    let restore = || cluster.bench.run(&["store", "restore", "backup", &cluster.url]);
    let failed = restore().expect(2);
    failed.stderr_has("No space left on device").stderr_has("/disk/store");
    let refused = host(&cluster, &["--once"]).expect(1);
    refused.stderr_has("kapell host: a restore into the store has not ended: run it again");
    disk.resize("128m");
    restore().expect(0);
    assert!(Direct::open(&cluster.url).records() == records);
    let mut host = cluster.host(&[]);
    assert!(host.leads(1) > (1 << 32) + 5);
    host.stop().expect(0);
}
