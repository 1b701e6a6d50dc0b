//! A disk without room: who cannot go on says so, all others do, and with room all go on.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Site;
use super::life::{STAYS, text};
use crate::bench::{Bench, skip};
use crate::leadership::cluster::free_port;

/// A small file system of its own, gone with this.
struct SmallDisk {
    dir: PathBuf,
}

impl SmallDisk {
    /// The reason if there can be none.
    fn mount(dir: &Path, megabytes: u32) -> Result<Self, String> {
        std::fs::create_dir_all(dir).expect("a directory");
        let options = format!("size={megabytes}m,mode=755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(dir)
            .output()
            .map_err(|error| error.to_string())?;
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned());
        }
        Ok(Self { dir: dir.to_owned() })
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.dir.join("filler")).expect("a file");
        let block = vec![1; 1 << 16];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        // To the last byte.
        while std::io::Write::write_all(&mut file, &[1]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.dir.join("filler")).expect("our own");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
    }
}

/// A platform, with a small disk below this directory of its bench.
fn site_on(name: &str, below: &str) -> Option<(Site, SmallDisk)> {
    let bench = Bench::new().set("KAPELL_CRASH_WAIT", "500ms").set("KAPELL_CONVERGE_EVERY", "1s");
    match SmallDisk::mount(&bench.path(below), 32) {
        Ok(disk) => {
            let mut site = Site { bench, port: free_port(), running: None };
            site.start(&[]);
            Some((site, disk))
        }
        Err(reason) => {
            skip(&format!("platform::disk::{name}"), &reason);
            None
        }
    }
}

#[test]
fn without_room_for_containers_a_start_fails_with_that_reason_until_there_is() {
    let name = "without_room_for_containers_a_start_fails_with_that_reason_until_there_is";
    let Some((mut site, disk)) = site_on(name, "up/cell") else { return };
    site.desire("old", 1, "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done");
    let before = site.all_run("old", 1);
    disk.fill();
    site.desire("new", 1, STAYS);
    let crashed = site.until("a reason", || {
        site.instances("new").pop().filter(|lrp| lrp["crash_count"].as_u64() >= Some(1))
    });
    assert!(text(&crashed, "crash_reason").contains("No space left"), "{crashed}");
    site.explains("lrp/new/0", "No space left");
    let log = site.running.as_mut().expect("it runs").stderr_so_far();
    let told = |line: &&str| line.contains("this machine could not start a container");
    let line = log.lines().find(told).unwrap_or_else(|| panic!("nobody is told:\n{log}"));
    assert!(line.contains("No space left") && line.contains("up/cell"), "{line}");
    site.ask("POST", "/v1/tasks", Some(&site.task("task", "true"))).expect(201);
    let done = site.completed("task");
    assert!(text(&done, "failure_reason").contains("No space left"), "{done}");
    let still = site.instances("old");
    assert_eq!(still[0]["instance_guid"], before[0]["instance_guid"], "what runs goes on");
    assert_eq!(still[0]["crash_count"], 0);
    site.explains("cell/local", "is present and takes work");
    disk.make_room();
    site.all_run("new", 1);
    site.ask("POST", "/v1/tasks", Some(&site.task("again", "true"))).expect(201);
    assert_eq!(site.completed("again")["failed"], false);
    // Its log goes on, too.
    let lines = || {
        let log = site.ask("GET", "/v1/logs/lrp/old/0?tail=1", None).body;
        log.trim().parse::<u64>().ok()
    };
    let now = site.until("a line", lines);
    site.until("more lines", || lines().filter(|&line| line > now + 5));
}

#[test]
fn without_room_at_all_nothing_is_acknowledged_that_is_lost_and_all_goes_on_with_room() {
    let name = "without_room_at_all_nothing_is_acknowledged_that_is_lost_and_all_goes_on_with_room";
    let Some((mut site, disk)) = site_on(name, "up") else { return };
    site.desire("old", 2, STAYS);
    let before = super::fleet::guids(&site.all_run("old", 2));
    let processes = super::fleet::pids(&site.work());
    disk.fill();
    let mut acknowledged = Vec::new();
    let mut refused = None;
    // The store has some room set aside.
    for number in 0..20_000 {
        let guid = format!("more-{number}");
        let mut lrp = site.lrp(&guid, 0, STAYS);
        lrp["annotation"] = "x".repeat(9_000).into();
        let answer = site.try_ask("POST", "/v1/desired-lrps", Some(&lrp));
        match answer {
            Some(answer) if answer.status == 201 => acknowledged.push(guid),
            answer => {
                refused = Some(answer);
                break;
            }
        }
    }
    assert!(refused.is_some(), "the disk is never full");
    site.running.as_mut().expect("it runs").until_told("No space left on device", 1);
    assert_eq!(super::fleet::pids(&site.work()), processes, "what runs goes on");
    disk.make_room();
    // Either it goes on by itself, or it has ended and is started anew.
    let ended =
        site.running.as_ref().is_none_or(|it| !Path::new(&format!("/proc/{}", it.pid())).exists());
    if ended {
        site.kill();
        site.start(&[]);
    }
    let made = site.until("it to go on", || {
        let lrp = site.lrp("after", 1, STAYS);
        site.try_ask("POST", "/v1/desired-lrps", Some(&lrp)).filter(|it| it.status < 300)
    });
    assert!(matches!(made.status, 200 | 201));
    site.all_run("after", 1);
    for guid in acknowledged {
        site.ask("GET", &format!("/v1/desired-lrps/{guid}"), None).expect(200);
    }
    assert_eq!(super::fleet::guids(&site.all_run("old", 2)), before);
    assert!(super::fleet::pids(&site.work()).is_superset(&processes));
}
