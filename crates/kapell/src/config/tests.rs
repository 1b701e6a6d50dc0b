use kapell_core::workflow::show_duration;

use super::*;

fn load(file: Option<&str>, env: &[(&str, &str)], flag: Option<&str>) -> Result<Config, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    if let Some(text) = file {
        std::fs::write(&path, text).unwrap();
    }
    Config::load(file.map(|_| path.as_path()), flag.map(Path::new), |name| {
        env.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    })
}

#[test]
fn a_url_is_shown_without_its_password() {
    for (url, shown) in [
        ("postgres://u:p@h/d", "postgres://u:…@h/d"),
        ("postgres://u:p?@q@h/d?schema=s", "postgres://u:…@h/d?schema=s"),
        ("postgres://u@h/d?password=p@q&schema=s", "postgres://u@h/d?schema=s"),
        ("postgres://u@h/d?password=p", "postgres://u@h/d"),
        ("postgres://u@h/d?password_file=f", "postgres://u@h/d?password_file=f"),
        ("etcd://h:1", "etcd://h:1"),
        ("file:/a?b", "file:/a?b"),
    ] {
        assert_eq!(without_password(url), shown);
    }
    let error = load(None, &[("KAPELL_STORE", "redis://u:p@h")], None).unwrap_err();
    assert!(error.to_string().starts_with("$KAPELL_STORE is `redis://u:…@h`, but"), "{error}");
}

#[test]
fn environment_goes_before_file_and_flag_before_both() {
    let file = Some("workers: 2\nstate_dir: /a\ngrace: 3s\n");
    let config =
        load(file, &[("KAPELL_WORKERS", "7"), ("KAPELL_STATE_DIR", "/b")], Some("/c")).unwrap();
    assert_eq!(config.workers, Some(7));
    assert_eq!(config.state_dir, Path::new("/c"));
    assert_eq!(config.grace, Duration::from_secs(3));
    let origins: Vec<_> =
        config.entries().into_iter().map(|(name, _, origin)| (name, origin)).collect();
    assert_eq!(origins[0], ("state_dir", "--state-dir".to_owned()));
    assert_eq!(origins[2], ("workers", "$KAPELL_WORKERS".to_owned()));
    assert!(origins[3].1.ends_with("config.yaml"));
    assert_eq!(origins[1], ("logger", "default".to_owned()));
}

#[test]
fn bad_settings_are_all_reported_with_their_place() {
    let Err(Error::File(bad)) = load(Some("wrokers: 2\ngrace: soon\n"), &[], None) else {
        panic!()
    };
    let text: Vec<_> = bad.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "1:1: unknown setting `wrokers` (did you mean `workers`?)",
            "2:8: `soon` is no value of `grace` (write a duration such as 10s)",
        ]
    );
}

#[test]
fn a_bad_variable_is_named() {
    let error = load(None, &[("KAPELL_WORKERS", "many")], None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "$KAPELL_WORKERS is `many`, but must be a number from 1 to 10000"
    );
}

#[test]
fn state_lives_below_home_unless_told_otherwise() {
    let config = load(None, &[("HOME", "/h")], None).unwrap();
    assert_eq!(config.state_dir, Path::new("/h/.local/state/kapell"));
    let config = load(None, &[("HOME", "/h"), ("XDG_STATE_HOME", "/s")], None).unwrap();
    assert_eq!(config.state_dir, Path::new("/s/kapell"));
    assert!(!config.state_dir_is_exposed);
    let config = load(None, &[], None).unwrap();
    assert!(config.state_dir_is_exposed && config.flags.is_empty());
    let config = load(None, &[("KAPELL_STATE_DIR", "there")], None).unwrap();
    assert!(!config.state_dir_is_exposed);
    assert_eq!(config.state_dir, path::absolute("there").unwrap());
    let config = load(None, &[("KAPELL_STATE_DIR", "there")], Some("flag")).unwrap();
    assert_eq!(config.flags, [("--state-dir", PathBuf::from("flag"))]);
}

#[test]
fn an_empty_variable_is_not_set() {
    let empty = ["KAPELL_CONFIG", "KAPELL_STATE_DIR", "KAPELL_WORKERS", "KAPELL_GRACE"];
    let config = load(None, &empty.map(|name| (name, "")), None).unwrap();
    assert!(config.entries().iter().all(|(_, _, origin)| origin == "default"), "{config:?}");
}

/// The page about timers is made without these settings, and must tell of each what they have.
#[test]
fn every_timer_that_is_documented_can_be_set_and_has_its_usual_time() {
    let usual = load(None, &[], None).unwrap();
    let timers = kapell_core::tables::timers();
    for timer in &timers {
        let key = KEYS.iter().find(|key| key.name == timer.key);
        let key = key.unwrap_or_else(|| panic!("{} cannot be set", timer.key));
        assert_eq!((key.show)(&usual), show_duration(timer.usual), "{}", timer.key);
        let variable = format!("KAPELL_{}", timer.key.to_ascii_uppercase());
        let set = load(None, &[(&variable, "47s")], None).unwrap();
        assert_eq!((key.show)(&set), show_duration(Duration::from_secs(47)), "{}", timer.key);
    }
    let bounds = kapell_core::tables::bounds();
    for bound in &bounds {
        let key = KEYS.iter().find(|key| key.name == bound.key);
        let key = key.unwrap_or_else(|| panic!("{} cannot be set", bound.key));
        assert_eq!((key.show)(&usual), bound.usual, "{}", bound.key);
    }
    // All that lie after the store are about the platform.
    let store = KEYS.iter().position(|key| key.name == "store").unwrap();
    let told = timers.iter().map(|timer| timer.key);
    let told: Vec<&str> = told.chain(bounds.iter().map(|bound| bound.key)).collect();
    for key in &KEYS[store + 1..] {
        assert!(told.contains(&key.name), "{} is not documented", key.name);
    }
}

#[test]
fn what_bounds_cells_can_be_set() {
    let set = load(
        Some(
            "cell_cpu_millis: 1500\nchecks_at_once: 3\ndownload_root: /srv/files\ntransfers_at_once: 2\n\
             download_mib: 5\nupload_mib: 0\nself_test_failures: 9\nimage_cache_mib: 7\n",
        ),
        &[],
        None,
    );
    let set = set.unwrap();
    let CellSettings { cpu_millis, checks, downloads, transfers, .. } = set.cell.clone();
    assert_eq!((cpu_millis, checks, transfers), (Some(1500), 3, 2));
    assert_eq!(downloads.as_deref(), Some(Path::new("/srv/files")));
    assert_eq!((set.cell.download_bytes, set.cell.upload_bytes), (5 << 20, 0));
    assert_eq!((set.cell.self_test_failures, set.image_cache_bytes), (9, 7 << 20));
    for (name, bad, want) in [
        ("CELL_CPU_MILLIS", "0", "a number above 0, or none"),
        ("CHECKS_AT_ONCE", "0", "a number above 0"),
        ("TRANSFERS_AT_ONCE", "-1", "a number above 0"),
        ("SELF_TEST_FAILURES", "few", "a number above 0"),
        ("DOWNLOAD_ROOT", "files", "a directory by its whole path, or none"),
        ("DOWNLOAD_MIB", "18446744073709551615", "a number of MiB"),
        ("IMAGE_CACHE_MIB", "much", "a number of MiB"),
    ] {
        let name = format!("KAPELL_{name}");
        let error = load(None, &[(&name, bad)], None).unwrap_err();
        assert_eq!(error.to_string(), format!("${name} is `{bad}`, but must be {want}"));
    }
}

#[test]
fn how_long_an_evacuation_takes_holds_for_board_and_cell() {
    let config = load(None, &[("KAPELL_EVACUATION_TIMEOUT", "3m")], None).unwrap();
    assert_eq!(config.board.evacuation, Duration::from_secs(180));
    assert_eq!(config.cell.evacuation, Duration::from_secs(180));
    let usual = load(None, &[], None).unwrap();
    assert_eq!(usual.board.evacuation, usual.cell.evacuation);
}

#[test]
fn how_many_start_at_once_is_a_number_or_none() {
    let most = |text: &str| {
        let config = load(None, &[("KAPELL_IN_FLIGHT_STARTS", text)], None);
        config.map(|config| config.board.in_flight_starts).map_err(|error| error.to_string())
    };
    assert_eq!(most("100"), Ok(Some(100)));
    assert_eq!(most("none"), Ok(None));
    assert_eq!(load(None, &[], None).unwrap().board.in_flight_starts, None);
    for bad in ["0", "-1", "many"] {
        assert!(most(bad).unwrap_err().contains("must be a number above 0, or none"), "{bad}");
    }
    let shown = load(Some("in_flight_starts: 7\n"), &[], None).unwrap().entries();
    assert!(shown.iter().any(|(name, value, _)| *name == "in_flight_starts" && value == "7"));
}

#[test]
fn timers_and_bounds_of_the_scheduler_can_be_set_and_are_checked() {
    let set = load(
        Some(
            "run_ahead: 30s\nrun_heartbeat: 5s\nrun_missed_beats: 4\nrun_safety_pass: 2m\nrun_stats_flush: 10s\nrun_start_timeout: 7m\n\
             run_checks_at_once: 1\nrun_actions_at_once: 2\nrun_launches_at_once: 3\nrun_stops_at_once: 4\n\
             run_finds_at_once: 5\nrun_releases_at_once: 6\nblobs: /srv/blobs\nrun_logs_mib: 7\nkubernetes_clusters: /etc/clusters.yaml\n",
        ),
        &[("KAPELL_RUN_AHEAD", "20s")],
        None,
    );
    let set = set.unwrap();
    let scheduler::Settings {
        ahead,
        heartbeat,
        most_missed,
        safety_pass,
        start_timeout,
        stats_flush,
        limits,
    } = set.scheduler;
    let times = [ahead, heartbeat, safety_pass, start_timeout, stats_flush];
    assert_eq!(
        (times.map(|time| time.as_secs()), most_missed),
        ([20, 5, 120, 420, 10], 4),
        "the environment goes before the file"
    );
    let at_once = [limits.checks, limits.actions, limits.launches, limits.stops, limits.finds];
    assert_eq!((at_once, limits.releases), ([1, 2, 3, 4, 5], 6));
    assert_eq!(
        (set.blobs.as_deref(), set.run_logs_bytes),
        (Some(Path::new("/srv/blobs")), 7 << 20)
    );
    assert_eq!(set.kubernetes_clusters.as_deref(), Some(Path::new("/etc/clusters.yaml")));
    for (name, bad, want) in [
        ("RUN_AHEAD", "0s", "a duration from 1s to 1m"),
        ("RUN_AHEAD", "61s", "a duration from 1s to 1m"),
        ("RUN_HEARTBEAT", "1h", "a duration from 1s to 10m"),
        ("RUN_MISSED_BEATS", "0", "a number above 0"),
        ("RUN_SAFETY_PASS", "soon", "a duration from 1s to 1h"),
        ("RUN_START_TIMEOUT", "2d", "a duration from 1s to 1d"),
        ("RUN_LAUNCHES_AT_ONCE", "-1", "a number above 0"),
        ("BLOBS", "here", "a directory by its whole path, or none"),
        ("RUN_LOGS_MIB", "x", "a number of MiB"),
        ("KUBERNETES_CLUSTERS", "here", "a file by its whole path, or none"),
    ] {
        let error = load(None, &[(&format!("KAPELL_{name}"), bad)], None).unwrap_err();
        let told = format!("$KAPELL_{name} is `{bad}`, but must be {want}");
        assert_eq!(error.to_string(), told);
    }
}
