//! What the API says and does on the embedded store it says and does on the databases.
//!
//! Only what kills a platform and starts it again at once is left out: its lease would have to run out first.

use super::site::on;
use super::{api, api_callbacks, api_lists, api_logs, api_openapi, api_validation, events};
use crate::leadership::cluster::Kind;

/// Makes a test of each of these on a store.
macro_rules! all_of_the_api {
    ($kind:expr, $store:literal) => {
        all_of_the_api! { $kind, $store;
            api: a_process_is_desired_once_and_changed_by_version, a_task_is_created_once_and_cancelled_and_deleted, what_cannot_be_asked_is_refused_with_its_reason;
            api_callbacks: a_callback_is_called_once_with_the_task_which_then_is_gone, a_callback_that_was_not_there_is_called_again, nobody_has_us_call_link_local_addresses;
            api_lists: lists_are_filtered, a_domain_is_fresh_until_its_time_runs_out, endpoints_and_cells_are_told, everything_is_explained;
            api_logs: a_log_comes_raw_in_frames_and_as_events, the_log_of_a_task_ends_with_it_and_outlives_its_record, following_goes_on_with_the_next_container;
            api_openapi: the_document_is_openapi_and_every_path_in_it_answers_as_it_says;
            api_validation: every_rule_that_a_process_breaks_is_told, what_does_not_fit_is_told_together_with_the_rules, every_rule_that_a_task_breaks_is_told;
            events: resuming_neither_misses_nor_repeats_anything_while_things_happen, a_slow_reader_holds_nobody_up;
        }
    };
    ($kind:expr, $store:literal; $($module:ident: $($name:ident),+;)+) => {$($(
        #[test]
        fn $name() {
            let name = concat!("platform::", $store, "::", stringify!($name));
            super::on($kind, name, super::$module::$name);
        }
    )+)+};
}

#[cfg(feature = "cassandra")]
mod cassandra {
    use super::Kind;

    all_of_the_api!(Kind::Cassandra, "on_databases::cassandra");
}

#[cfg(feature = "dynamodb")]
mod dynamodb {
    use super::Kind;

    all_of_the_api!(Kind::DynamoDb, "on_databases::dynamodb");
}
