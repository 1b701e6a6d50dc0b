//! What hosts do on every other server, on Cassandra.

use super::cluster::Kind;
use super::{access, failover, faults, on, on_each_pair, transfer};

/// Makes a test of each of these functions of a module.
macro_rules! on_each_of {
    ($($module:ident { $($name:ident,)+ })+) => {$($(
        #[test]
        fn $name() {
            on(Kind::Cassandra, concat!("cassandra::", stringify!($name)), $module::$name);
        }
    )+)+};
}

on_each_of! {
    failover {
        a_waiting_host_takes_over_after_kill_9,
        two_instances_hand_the_seat_to_and_fro,
        the_standby_forwards_and_says_who_leads,
    }
    faults {
        a_leader_that_was_stopped_is_succeeded_and_knows_it,
        a_leader_that_slept_past_a_deadline_is_out_when_it_wakes,
        a_leader_whose_store_hangs_is_out_in_time,
        a_store_that_is_away_for_a_moment_costs_nothing,
        a_store_that_is_away_for_long_costs_the_seat_until_it_is_back,
    }
    transfer {
        a_backup_goes_into_any_store,
        a_copy_goes_into_any_store,
        a_store_with_records_is_replaced_only_when_asked,
        a_bad_backup_touches_nothing,
        nobody_leads_on_half_a_restore,
        a_store_that_is_led_is_backed_up_but_not_restored,
        a_store_is_not_copied_onto_itself,
    }
}

on_each_pair! {
    a_copy_of_a_file_store_goes_into_cassandra: File, Cassandra;
    a_copy_of_etcd_goes_into_cassandra: Etcd, Cassandra;
    a_copy_of_postgres_goes_into_cassandra: Postgres, Cassandra;
    a_copy_of_dynamodb_goes_into_cassandra: DynamoDb, Cassandra;
    a_copy_of_cassandra_goes_into_etcd: Cassandra, Etcd;
    a_copy_of_cassandra_goes_into_postgres: Cassandra, Postgres;
}

#[test]
fn a_password_opens_the_store_and_is_not_shown() {
    let name = "cassandra::a_password_opens_the_store_and_is_not_shown";
    access::a_password_opens_the_store_and_is_not_shown(Kind::Cassandra, name);
}
