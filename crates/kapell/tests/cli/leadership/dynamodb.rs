//! What hosts do on every store, on DynamoDB; and what only it has.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::cluster::{Cluster, Kind, LEASE, free_port};
use super::throttle::{Share, Throttle};
use super::{failover, faults, on_each_pair, servers, transfer};
use crate::bench::{Bench, eventually, skip};

/// Makes tests of functions that take a cluster.
macro_rules! on_each_way_of_dynamodb {
    ($($module:ident: $($name:ident),+;)*) => {$($(
        #[test]
        fn $name() {
            super::on(Kind::DynamoDb, concat!("dynamodb::", stringify!($name)), $module::$name);
        }
    )+)*};
}

on_each_way_of_dynamodb! {
    failover:
        a_waiting_host_takes_over_after_kill_9,
        two_instances_hand_the_seat_to_and_fro,
        the_standby_forwards_and_says_who_leads;
    faults:
        a_leader_that_was_stopped_is_succeeded_and_knows_it,
        a_leader_that_slept_past_a_deadline_is_out_when_it_wakes,
        a_leader_whose_store_hangs_is_out_in_time,
        a_leader_that_cannot_even_log_is_killed_in_time,
        a_store_that_is_away_for_a_moment_costs_nothing,
        a_store_that_is_away_for_long_costs_the_seat_until_it_is_back,
        kill_9_at_any_moment;
    transfer:
        a_backup_goes_into_any_store,
        a_copy_goes_into_any_store,
        a_store_with_records_is_replaced_only_when_asked,
        a_bad_backup_touches_nothing,
        nobody_leads_on_half_a_restore,
        a_store_that_is_led_is_backed_up_but_not_restored,
        a_store_is_not_copied_onto_itself;
}

on_each_pair! {
    a_copy_of_etcd_goes_into_dynamodb: Etcd, DynamoDb;
    a_copy_of_postgres_goes_into_dynamodb: Postgres, DynamoDb;
}

#[test]
fn a_copy_of_a_file_store_goes_into_dynamodb() {
    let source = Cluster::new(Kind::File).expect("no server needed");
    transfer::a_copy_goes_into(&source, &[Kind::DynamoDb]);
}

#[test]
fn somebody_leads_after_a_crash_of_dynamodb() {
    let name = "dynamodb::somebody_leads_after_a_crash_of_dynamodb";
    servers::somebody_leads_after_a_restart(Kind::DynamoDb, name, Signal::SIGKILL);
}

fn cluster(test: &str) -> Option<Cluster> {
    let cluster = Cluster::new(Kind::DynamoDb);
    cluster.map_err(|reason| skip(&format!("leadership::dynamodb::{test}"), &reason)).ok()
}

/// It is sent again as long as there is time, and that is over when the lease demands it.
#[test]
fn a_leader_that_is_throttled_for_good_is_out_in_time_and_succeeded() {
    const SLACK: Duration = Duration::from_millis(500);
    let test = "a_leader_that_is_throttled_for_good_is_out_in_time_and_succeeded";
    let Some(cluster) = cluster(test) else { return };
    let throttle = Throttle::before(&cluster.server());
    let url = throttle.instead_of_server(&cluster.url);
    let mut first = cluster.host_on(&url, free_port(), &[]);
    assert_eq!(first.leads(1), 1);
    let mut second = cluster.host(&[]);
    second.listens();
    // It counts from its first look.
    eventually("the second to see who leads", || {
        second.get(&cluster, "/leader").stdout.contains("\"epoch\":1").then_some(())
    });
    throttle.set(Share::All);
    let since = Instant::now();
    first.running.until_told("\"message\":\"no longer leading\"", 1);
    let stopped = since.elapsed();
    assert!(stopped <= LEASE / 2 + SLACK, "services stopped after {stopped:?}");
    first.is_out((LEASE * 3 / 4 + SLACK).saturating_sub(since.elapsed()));
    assert_eq!(second.leads(1), 2);
    let took = since.elapsed();
    assert!(took <= LEASE + Duration::from_secs(1), "took over after {took:?}");
    assert!(throttle.turned_away() >= 3, "it was sent again, after pauses");
    let (former, latter) = (first.reigns(), second.reigns());
    let [(_, Some(end))] = &former[..] else { panic!("{former:?}") };
    let [(begin, None)] = &latter[..] else { panic!("{latter:?}") };
    assert!(end < begin, "{end} is not before {begin}");
    second.stop().expect(0);
}

/// Its server takes any: that they are found is what is shown here, and that they are shown to nobody.
#[test]
fn credentials_come_from_the_environment_or_from_a_profile() {
    let Some(cluster) = cluster("credentials_come_from_the_environment_or_from_a_profile") else {
        return;
    };
    let mut host = cluster.host(&[]);
    host.leads(1);
    let url = cluster.url.replace("&credentials=none", "");
    let bench = || Bench::new().set("AWS_EC2_METADATA_DISABLED", "true");
    let seats = |bench: &Bench, url: &str| bench.run(&["seats", "--store", url]);
    let none = seats(&bench(), &url).expect(2);
    none.stderr_has("refused the credentials");
    let secret = "terces+terces";
    let from_environment =
        bench().set("AWS_ACCESS_KEY_ID", "AKIDTEST").set("AWS_SECRET_ACCESS_KEY", secret);
    let ran = seats(&from_environment, &url).expect(0);
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(secret));
    let from_file = bench();
    let file = format!("[ops]\naws_access_key_id = AKIDTEST\naws_secret_access_key = {secret}\n");
    from_file.write("credentials", file);
    let from_file = from_file.set("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    seats(&from_file, &url).expect(2).stderr_has("refused the credentials");
    seats(&from_file, &format!("{url}&profile=ops")).expect(0);
    host.stop().expect(0);
}

#[test]
fn a_url_with_keys_or_without_a_table_is_refused_with_what_is_right() {
    let bench = Bench::new();
    let refused = |url: &str| bench.run(&["seats", "--store", url]).expect(2);
    let ran = refused("dynamodb://AKID:terces@eu-central-1/kapell");
    ran.stderr_has("keys come from the environment or from a profile");
    assert!(!ran.stderr.contains("terces"), "{}", ran.stderr);
    refused("dynamodb://eu-central-1").stderr_has("the table's name must be");
}

#[test]
fn a_table_that_is_not_there_is_told_with_the_command_that_makes_it() {
    let test = "a_table_that_is_not_there_is_told_with_the_command_that_makes_it";
    let Some(cluster) = cluster(test) else { return };
    let url = cluster.url.replace("&create=true", "");
    let words = ["host", "--store", &url, "--advertise", "127.0.0.1:1", "--listen", "127.0.0.1:0"];
    let ran = cluster.bench.run(&words).expect(2);
    ran.stderr_has("there is no table `cli-").stderr_has("add `create=true` to the URL once");
    ran.stderr_has("aws dynamodb create-table --table-name cli-");
    cluster.seats().expect(2).stderr_has("there is no Kapell store at dynamodb://local/cli-");
}
