//! A cell that looks at itself, with containers that have a root and a network of their own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kapell_backend::both::Both;
use kapell_backend::image::{self, Images};
use kapell_backend::oci::{self, OciContainers};
use kapell_backend::process::ProcessContainers;
use tokio::task::JoinSet;

use super::board::FakeBoard;
use super::outside::Outside;
use super::stage::{Counter, EPOCH, settings};
use crate::cell::{Cell, CellSettings, Parts};
use crate::system::SystemClock;
use crate::testing::eventually;

fn skip(reason: &str) {
    let Some(file) = std::env::var_os("KAPELL_TEST_SKIPS") else { return };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    let line = format!("SKIP a_cell_without_runc_is_out_until_it_has_it_again: {reason}\n");
    file.write_all(line.as_bytes()).unwrap();
}

fn find(tool: &str) -> Option<PathBuf> {
    let dirs = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    dirs.iter().map(|dir| Path::new(dir).join(tool)).find(|path| path.exists())
}

/// How many containers a driver has in this directory, in whatever state.
fn count(dir: &Path) -> usize {
    fs::read_dir(dir.join("containers")).unwrap().count()
}

fn parts(dir: &Path, runc: PathBuf, board: &Arc<FakeBoard>, settings: CellSettings) -> Parts {
    let images = Images::open(&dir.join("images"), image::Settings::default()).unwrap();
    let with = oci::Settings { runc: Some(runc), ..oci::Settings::default() };
    let rooted = OciContainers::open(&dir.join("oci"), images, &with).unwrap();
    let plain = ProcessContainers::open(dir).unwrap();
    let outside = Arc::new(Outside::default());
    Parts {
        id: "cell".into(),
        home: "here".to_owned(),
        dir: Some(dir.to_owned()),
        settings,
        clock: Arc::new(SystemClock),
        ids: Arc::new(Counter::default()),
        containers: Arc::new(Both::new(Arc::new(plain), Arc::new(rooted))),
        transfers: Arc::clone(&outside) as _,
        probes: outside,
        board: Arc::clone(board) as _,
        capacity: kapell_core::board::Resources { memory_mb: 10, disk_mb: 10, containers: 10 },
        zone: String::new(),
        url: "http://cell".to_owned(),
        advertise_host: "127.0.0.1".to_owned(),
        placement_tags: Vec::new(),
        optional_placement_tags: Vec::new(),
    }
}

#[tokio::test]
async fn a_cell_without_runc_is_out_until_it_has_it_again() {
    if crate::system::user() != 0 {
        return skip("needs root");
    }
    for tool in ["runc", "nft", "ip"] {
        if find(tool).is_none() {
            return skip(&format!("needs {tool}"));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let runc = dir.path().join("runc");
    symlink(find("runc").unwrap(), &runc).unwrap();
    let board = Arc::new(FakeBoard::default());
    *board.epoch.lock().unwrap() = EPOCH;
    let settings = CellSettings {
        self_test_every: Duration::from_secs(3600),
        self_test_retry: Duration::from_millis(50),
        ..settings()
    };
    let parts = parts(dir.path(), runc.clone(), &board, settings);
    fs::remove_file(&runc).unwrap();
    let (cell, running) = Cell::start(parts).await.unwrap();
    let mut agent = JoinSet::new();
    agent.spawn(running.run());
    let is_unhealthy = || cell.state(EPOCH).unwrap().unhealthy;
    let limit = Duration::from_secs(60);
    eventually("it is out", limit, async || is_unhealthy()).await;
    symlink(find("runc").unwrap(), &runc).unwrap();
    eventually("it is back", limit, async || !is_unhealthy()).await;
    // The next one is far away, so that whatever is there now stays.
    assert_eq!((count(dir.path()), count(&dir.path().join("oci"))), (0, 0));
    cell.shutdown(true);
    agent.join_next().await.unwrap().unwrap();
}
