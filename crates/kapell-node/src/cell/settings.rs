use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use kapell_core::planted::Planted;
use kapell_core::recipe::Wait;

/// Users that cells give to containers, each cell some of them.
pub const OWN_USERS: Range<u32> = 300_000..4_396_000;

/// Every timer and bound of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellSettings {
    pub poll_every: Duration,
    pub evacuating_poll_every: Duration,
    /// How soon something that could not be reported is tried again; doubles up to `poll_every`.
    pub first_retry: Duration,
    /// How often presence is sent until the board says how long it lasts.
    pub present_every: Duration,
    pub reservation: Duration,
    pub evacuation: Duration,
    /// Between asking an instance to stop and killing it, where it says nothing itself.
    pub stop_grace: Duration,
    /// How long a cell that ends waits for what is under way.
    pub ending: Duration,
    /// Containers that are made at once, which may take long.
    pub starts: usize,
    /// Programs that are started at once in containers that are there.
    pub runs: usize,
    /// Checks of instances that are under way at once.
    pub checks: usize,
    /// How often an instance is checked until it is well.
    pub first_checks: Duration,
    /// How often it is checked then, where it says nothing itself.
    pub later_checks: Duration,
    /// How long a `monitor` may take.
    pub monitor_limit: Duration,
    /// Downloads and uploads that are under way at once.
    pub transfers: usize,
    pub transfer_limit: Duration,
    pub download_bytes: u64,
    pub upload_bytes: u64,
    /// Where `file:` URLs of downloads must lead to; without it, there are none.
    pub downloads: Option<PathBuf>,
    /// Thousandths of a processor to be given to containers; without it, nobody counts.
    pub cpu_millis: Option<u32>,
    pub self_test_every: Duration,
    /// How soon it is done again after a failure.
    pub self_test_retry: Duration,
    pub self_test_limit: Duration,
    /// After so many failures in a row the cell takes no more work.
    pub self_test_failures: u32,
    /// Calls with reports that are under way at once.
    pub report_calls: usize,
    /// Reports in one call.
    pub report_batch: usize,
    /// Host ports for what instances listen on.
    pub ports: Range<u16>,
    /// Users to run containers as, one each; without it, they run as the agent. Other cells of the
    /// machine must have others: the agent chooses a block of its own.
    pub users: Option<Range<u32>>,
    /// Whether work may ask to be run as root.
    pub allow_root: bool,
    /// Of the output of a container, the last so many bytes are kept.
    pub log_bytes: u64,
    /// So many bytes of output a second are kept of a container that does not say; without it, all.
    pub log_rate: Option<u64>,
    /// Containers of one key whose logs are kept.
    pub logs_per_key: usize,
    /// Keys without a container whose logs are kept.
    pub log_keys: usize,
    /// How long logs of a key without a container are kept.
    pub log_age: Duration,
    /// How often it looks for logs, and for whatever its driver keeps, of which there is too much.
    pub prune_every: Duration,
    pub planted: Planted,
}

impl Default for CellSettings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let own_users = (crate::system::user() == 0).then_some(OWN_USERS);
        Self {
            poll_every: seconds(30),
            evacuating_poll_every: seconds(10),
            first_retry: Duration::from_millis(250),
            present_every: seconds(5),
            reservation: seconds(60),
            evacuation: seconds(10 * 60),
            stop_grace: seconds(10),
            ending: seconds(30),
            starts: 32,
            runs: 32,
            checks: 64,
            first_checks: Wait::USUAL.first,
            later_checks: Wait::USUAL.then,
            monitor_limit: seconds(60),
            transfers: 16,
            transfer_limit: seconds(30 * 60),
            download_bytes: 2 << 30,
            upload_bytes: 64 << 20,
            downloads: None,
            cpu_millis: None,
            self_test_every: seconds(10 * 60),
            self_test_retry: seconds(30),
            self_test_limit: seconds(2 * 60),
            self_test_failures: 3,
            report_calls: 4,
            report_batch: 100,
            ports: 61_000..65_000,
            users: own_users,
            allow_root: false,
            log_bytes: 16 << 20,
            log_rate: None,
            logs_per_key: 3,
            log_keys: 1_000,
            log_age: seconds(24 * 60 * 60),
            prune_every: seconds(10 * 60),
            planted: Planted::default(),
        }
    }
}
