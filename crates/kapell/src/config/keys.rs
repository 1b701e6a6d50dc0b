//! Every setting by its name.

use std::path::PathBuf;

use clap::ValueEnum as _;
use kapell_core::workflow::{parse_duration, show_duration};
use kapell_store::Location;

use super::{Config, STORES, without_password};
use crate::cli::Logger;

/// One setting as text, and what it means.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Takes the text if it is a value of this setting, else says what one would be.
    pub(super) set: fn(&mut Config, &str) -> Result<(), &'static str>,
    pub(super) show: fn(&Config) -> String,
}

/// A setting that is a time.
macro_rules! time {
    ($name:literal, $($part:ident).+) => {
        Key {
            name: $name,
            set: |config, text| {
                let time = parse_duration(text).filter(|time| !time.is_zero());
                config.$($part).+ = time.ok_or("a duration such as 30s")?;
                Ok(())
            },
            show: |config| show_duration(config.$($part).+),
        }
    };
}

/// A setting that is a time between two others.
macro_rules! time_within {
    ($name:literal, $($part:ident).+, $range:expr, $want:literal) => {
        Key {
            name: $name,
            set: |config, text| {
                let time = parse_duration(text).filter(|time| $range.contains(&time.as_secs()));
                config.$($part).+ = time.ok_or($want)?;
                Ok(())
            },
            show: |config| show_duration(config.$($part).+),
        }
    };
}

/// A setting that is a number of something, of which there must be at least one.
macro_rules! count {
    ($name:literal, $($part:ident).+) => {
        Key {
            name: $name,
            set: |config, text| {
                let count = text.parse().ok().filter(|count| *count > 0);
                config.$($part).+ = count.ok_or("a number above 0")?;
                Ok(())
            },
            show: |config| config.$($part).+.to_string(),
        }
    };
}

/// The same, where there may be no limit.
macro_rules! count_or_none {
    ($name:literal, $($part:ident).+) => {
        Key {
            name: $name,
            set: |config, text| {
                let count = text.parse().ok().filter(|count: &u32| *count > 0);
                config.$($part).+ = match text {
                    "none" => None,
                    _ => Some(count.ok_or("a number above 0, or none")?),
                };
                Ok(())
            },
            show: |config| {
                config.$($part).+.map_or_else(|| "none".to_owned(), |count| count.to_string())
            },
        }
    };
}

/// A setting that is a size.
macro_rules! size {
    ($name:literal, $($part:ident).+) => {
        Key {
            name: $name,
            set: |config, text| {
                let mib = text.parse::<u64>().ok().filter(|mib| *mib <= MOST_MIB);
                config.$($part).+ = mib.ok_or("a number of MiB")? << 20;
                Ok(())
            },
            show: |config| (config.$($part).+ >> 20).to_string(),
        }
    };
}

/// More than any disk has.
const MOST_MIB: u64 = 1 << 40;

pub(super) const KEYS: [Key; 58] = [
    Key {
        name: "state_dir",
        set: |config, text| {
            if text.is_empty() {
                return Err("a directory");
            }
            config.state_dir = PathBuf::from(text);
            Ok(())
        },
        show: |config| config.state_dir.display().to_string(),
    },
    Key {
        name: "logger",
        set: |config, text| {
            config.logger =
                Logger::from_str(text, false).map_err(|_| "stream, tree, json or none")?;
            Ok(())
        },
        show: |config| config.logger.name().to_owned(),
    },
    Key {
        name: "workers",
        set: |config, text| {
            let workers = text.parse().ok().filter(|workers| (1..=10_000).contains(workers));
            config.workers = Some(workers.ok_or("a number from 1 to 10000")?);
            Ok(())
        },
        show: |config| config.workers.unwrap_or(5).to_string(),
    },
    Key {
        name: "grace",
        set: |config, text| {
            config.grace = parse_duration(text).ok_or("a duration such as 10s")?;
            Ok(())
        },
        show: |config| show_duration(config.grace),
    },
    Key {
        name: "history_runs",
        set: |config, text| {
            config.history_runs =
                text.parse().ok().filter(|&runs| runs > 0).ok_or("a number above 0")?;
            Ok(())
        },
        show: |config| config.history_runs.to_string(),
    },
    Key {
        name: "history_age",
        set: |config, text| {
            config.history_age = parse_duration(text).ok_or("a duration such as 90d")?;
            Ok(())
        },
        show: |config| format!("{}d", config.history_age.as_secs() / 86_400),
    },
    Key {
        name: "output_limit_mib",
        set: |config, text| {
            config.output_limit_mib = text.parse().map_err(|_| "a number of MiB")?;
            Ok(())
        },
        show: |config| config.output_limit_mib.to_string(),
    },
    time!("host_patience", host_patience),
    Key {
        name: "audit",
        set: |config, text| {
            config.audit = match text {
                "file" => true,
                "off" => false,
                _ => return Err("file or off"),
            };
            Ok(())
        },
        show: |config| if config.audit { "file" } else { "off" }.to_owned(),
    },
    Key {
        name: "audit_file_mib",
        set: |config, text| {
            let mib = text.parse::<u64>().ok().filter(|mib| (1..=1024).contains(mib));
            config.audit_limits.file_bytes = mib.ok_or("a number of MiB from 1 to 1024")? << 20;
            Ok(())
        },
        show: |config| (config.audit_limits.file_bytes >> 20).to_string(),
    },
    Key {
        name: "audit_files",
        set: |config, text| {
            let files = text.parse().ok().filter(|files| (2..=1000).contains(files));
            config.audit_limits.files = files.ok_or("a number from 2 to 1000")?;
            Ok(())
        },
        show: |config| config.audit_limits.files.to_string(),
    },
    Key {
        name: "store",
        set: |config, text| {
            text.parse::<Location>().map_err(|_| STORES)?;
            config.store = Some(text.to_owned());
            Ok(())
        },
        show: |config| config.store.as_deref().map(without_password).unwrap_or_default(),
    },
    time!("certificate_life", certificate_life),
    time!("presence_ttl", board.presence_ttl),
    time!("converge_every", board.converge_every),
    time!("stale_unclaimed", board.stale_unclaimed),
    time!("kick_task", board.kick_task),
    time!("pending_task", board.pending_task),
    time!("completed_task", board.completed_task),
    Key {
        name: "evacuation_timeout",
        set: |config, text| {
            let time = parse_duration(text).filter(|time| !time.is_zero());
            config.board.evacuation = time.ok_or("a duration such as 30s")?;
            // A twin lasts for as long as its cell has to move it.
            config.cell.evacuation = config.board.evacuation;
            Ok(())
        },
        show: |config| show_duration(config.board.evacuation),
    },
    time!("crash_wait", board.crash_wait),
    time!("longest_crash_wait", board.longest_crash_wait),
    time!("crash_reset", board.crash_reset),
    count_or_none!("in_flight_starts", board.in_flight_starts),
    time!("cell_poll", cell.poll_every),
    time!("cell_poll_evacuating", cell.evacuating_poll_every),
    time!("reservation_expiry", cell.reservation),
    time!("stop_grace", cell.stop_grace),
    count_or_none!("cell_cpu_millis", cell.cpu_millis),
    time!("first_checks", cell.first_checks),
    time!("later_checks", cell.later_checks),
    time!("monitor_timeout", cell.monitor_limit),
    count!("checks_at_once", cell.checks),
    Key {
        name: "download_root",
        set: |config, text| {
            let root = PathBuf::from(text);
            config.cell.downloads = match text {
                "none" => None,
                _ if root.is_absolute() => Some(root),
                _ => return Err("a directory by its whole path, or none"),
            };
            Ok(())
        },
        show: |config| {
            let root = config.cell.downloads.as_ref();
            root.map_or_else(|| "none".to_owned(), |root| root.display().to_string())
        },
    },
    time!("transfer_timeout", cell.transfer_limit),
    count!("transfers_at_once", cell.transfers),
    size!("download_mib", cell.download_bytes),
    size!("upload_mib", cell.upload_bytes),
    time!("self_test_every", cell.self_test_every),
    time!("self_test_retry", cell.self_test_retry),
    time!("self_test_timeout", cell.self_test_limit),
    count!("self_test_failures", cell.self_test_failures),
    size!("image_cache_mib", image_cache_bytes),
    time_within!("run_ahead", scheduler.ahead, 1..=60, "a duration from 1s to 1m"),
    time_within!("run_heartbeat", scheduler.heartbeat, 1..=600, "a duration from 1s to 10m"),
    count!("run_missed_beats", scheduler.most_missed),
    time_within!("run_safety_pass", scheduler.safety_pass, 1..=3_600, "a duration from 1s to 1h"),
    time_within!(
        "run_start_timeout",
        scheduler.start_timeout,
        1..=86_400,
        "a duration from 1s to 1d"
    ),
    time_within!("run_stats_flush", scheduler.stats_flush, 1..=3_600, "a duration from 1s to 1h"),
    count!("run_checks_at_once", scheduler.limits.checks),
    count!("run_actions_at_once", scheduler.limits.actions),
    count!("run_launches_at_once", scheduler.limits.launches),
    count!("run_stops_at_once", scheduler.limits.stops),
    count!("run_finds_at_once", scheduler.limits.finds),
    count!("run_releases_at_once", scheduler.limits.releases),
    Key {
        name: "blobs",
        set: |config, text| {
            let dir = PathBuf::from(text);
            config.blobs = match text {
                "none" => None,
                _ if dir.is_absolute() => Some(dir),
                _ => return Err("a directory by its whole path, or none"),
            };
            Ok(())
        },
        show: |config| {
            let dir = config.blobs.as_ref();
            dir.map_or_else(|| "none".to_owned(), |dir| dir.display().to_string())
        },
    },
    size!("run_logs_mib", run_logs_bytes),
    Key {
        name: "kubernetes_clusters",
        set: |config, text| {
            let file = PathBuf::from(text);
            config.kubernetes_clusters = match text {
                "none" => None,
                _ if file.is_absolute() => Some(file),
                _ => return Err("a file by its whole path, or none"),
            };
            Ok(())
        },
        show: |config| {
            let file = config.kubernetes_clusters.as_ref();
            file.map_or_else(|| "none".to_owned(), |file| file.display().to_string())
        },
    },
];
