//! A disk without room: who cannot go on says so, all others do, and with room all go on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Site;
use super::life::{STAYS, text};
use super::site::Answer;
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
fn site_on(name: &str, bench: Bench, below: &str) -> Option<(Site, SmallDisk)> {
    match SmallDisk::mount(&bench.path(below), 32) {
        Ok(disk) => {
            let mut site = Site::new(bench, free_port());
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
    let Some((mut site, disk)) = site_on(name, quick(), "up/cell") else { return };
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

/// A platform whose cell is lost soon if it is not heard of.
fn quick() -> Bench {
    let bench = Bench::new().set("KAPELL_CRASH_WAIT", "500ms").set("KAPELL_CONVERGE_EVERY", "1s");
    bench.set("KAPELL_PRESENCE_TTL", "3s")
}

/// Writes until the store has used up what it has set aside; says what was acknowledged.
#[track_caller]
fn until_refused(site: &Site) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0..20_000 {
        let guid = format!("more-{number}");
        let mut lrp = site.lrp(&guid, 0, STAYS);
        lrp["annotation"] = "x".repeat(9_000).into();
        let answer = site.ask("POST", "/v1/desired-lrps", Some(&lrp));
        match answer.status {
            201 => acknowledged.push(guid),
            _ => {
                let problem = answer.expect(503).json();
                assert_eq!(problem["code"], "store_unavailable", "{problem}");
                assert!(text(&problem, "message").ends_with("is not known yet"), "{problem}");
                return acknowledged;
            }
        }
    }
    panic!("the disk is never full");
}

/// Reads go on, and nothing else does.
#[track_caller]
fn is_read_only(site: &Site, code: &str, reason: &str) {
    let problem = site.ask("POST", "/v1/tasks", Some(&site.task("t", "true"))).expect(503).json();
    assert_eq!(problem["code"], code, "{problem}");
    let message = text(&problem, "message");
    assert!(message.contains(reason) && message.contains("nothing was done"), "{message}");
    let health = site.get("/healthz");
    assert_eq!((&health["status"], &health["writes"]), (&"leading".into(), &"refused".into()));
    assert!(text(&health, "reason").contains(reason), "{health}");
    assert!(health["refused_since"].as_u64() > health["since"].as_u64(), "{health}");
    site.ask("GET", "/v1/tasks/t", None).expect(404);
}

fn gauge(site: &Site) -> Option<bool> {
    let metrics = site.ask("GET", "/metrics", None).expect(200).body;
    metrics.lines().find_map(|line| Some(line.strip_prefix("kapell_read_only ")? == "1"))
}

#[test]
fn without_room_at_all_it_is_read_only_and_goes_on_by_itself_with_room() {
    let name = "without_room_at_all_it_is_read_only_and_goes_on_by_itself_with_room";
    let Some((mut site, disk)) = site_on(name, quick(), "up") else { return };
    site.desire("old", 2, STAYS);
    let before = site.all_run("old", 2);
    let processes = super::fleet::pids(&site.work());
    let pid = site.running.as_ref().expect("it runs").pid();
    disk.fill();
    let acknowledged = until_refused(&site);
    is_read_only(&site, "read_only", "No space left on device");
    assert_eq!(gauge(&site), Some(true));
    let page = site.ask("GET", "/", None).expect(200).body;
    assert!(page.contains("read-only") && page.contains("No space left"), "{page}");
    // For longer than it takes to lose a cell.
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        let cells = site.get("/v1/cells");
        assert_eq!(cells[0]["state"], "present", "{cells}");
        assert_eq!(site.instances("old"), before);
        crate::bench::pause(Duration::from_millis(100));
    }
    is_read_only(&site, "read_only", "No space left on device");
    assert_eq!(super::fleet::pids(&site.work()), processes, "what runs goes on");
    disk.make_room();
    site.until("writes", || (site.get("/healthz")["writes"] == "accepted").then_some(()));
    assert_eq!(gauge(&site), Some(false));
    site.desire("after", 1, STAYS);
    site.all_run("after", 1);
    for guid in acknowledged {
        site.ask("GET", &format!("/v1/desired-lrps/{guid}"), None).expect(200);
    }
    assert_eq!(site.instances("old"), before, "nothing was moved or started anew");
    assert!(super::fleet::pids(&site.work()).is_superset(&processes));
    let running = site.running.as_mut().expect("it runs");
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    let log = running.stderr_so_far();
    for told in ["read-only: the store does not take writes", "read-only no more"] {
        assert_eq!(log.matches(told).count(), 1, "`{told}` in:\n{log}");
    }
}

/// The token, the audit files and the key of the cluster are there, as they would be with everything on one disk.
#[test]
fn without_room_to_note_who_changes_what_nothing_is_changed_until_there_is() {
    let name = "without_room_to_note_who_changes_what_nothing_is_changed_until_there_is";
    let Some((mut site, disk)) = site_on(name, quick(), "state") else { return };
    site.desire("old", 1, STAYS);
    let before = site.all_run("old", 1);
    disk.fill();
    // The file has some bytes left.
    let refused = |it: &Answer| (it.status == 503).then_some(());
    site.until("no room", || {
        refused(&site.ask("PUT", "/v1/domains/filler", Some(&serde_json::json!({}))))
    });
    is_read_only(&site, "audit_unavailable", "No space left on device");
    disk.make_room();
    site.until("writes", || (site.get("/healthz")["writes"] == "accepted").then_some(()));
    site.desire("after", 1, STAYS);
    site.all_run("after", 1);
    assert_eq!(site.instances("old"), before);
    let log = site.running.as_mut().expect("it runs").stderr_so_far();
    for told in ["read-only: the audit file", "read-only no more: the audit file"] {
        assert_eq!(log.matches(told).count(), 1, "`{told}` in:\n{log}");
    }
}

#[test]
fn a_store_on_a_full_disk_is_opened_once_there_is_room() {
    let name = "a_store_on_a_full_disk_is_opened_once_there_is_room";
    let Some((mut site, disk)) = site_on(name, quick(), "up/store") else { return };
    site.desire("old", 1, STAYS);
    let before = site.all_run("old", 1);
    site.kill();
    disk.fill();
    site.launch(&[]).until_told("the store's disk is full", 1);
    let health = site.get("/healthz");
    assert_eq!((&health["status"], &health["writes"]), (&"standby".into(), &"refused".into()));
    assert_eq!(health["store_reachable"], false, "{health}");
    disk.make_room();
    site.until("it to lead", || (site.get("/healthz")["writes"] == "accepted").then_some(()));
    site.desire("after", 1, STAYS);
    site.all_run("after", 1);
    assert_eq!(site.all_run("old", 1), before, "what ran meanwhile is taken up again");
}
