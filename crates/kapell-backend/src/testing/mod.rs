//! What every driver of containers must do, whatever its containers are made of.
//!
//! A case has a [`Rig`] with a driver in an empty place. Nothing here knows the root file system of a container
//! beyond `/bin/sh` and the usual small tools, nor where a container's directory is: files get there with `put`.

pub(crate) mod cells;
pub(crate) mod ends;
pub(crate) mod execs;
pub(crate) mod files;
pub(crate) mod limits;
pub(crate) mod output;
pub(crate) mod restarts;
mod rig;
pub(crate) mod secrets;
pub(crate) mod stops;

pub(crate) use rig::{MAIN, Rig, frames, is_alive, is_root, skip, until};

/// A test for each case, of the driver that `$rig` sets up: a function that takes the name of the test, and returns
/// nothing where it has reported that it cannot run.
macro_rules! conformance {
    ($rig:path) => {
        $crate::testing::on_each_case! { $rig =>
            ends::exit_codes_and_signals_come_back,
            ends::it_sees_its_environment,
            ends::it_runs_in_its_directory_or_another,
            ends::it_runs_as_its_user,
            ends::what_cannot_start_says_so_and_leaves_its_container,
            ends::names_are_given_once,
            stops::a_program_that_heeds_sigterm_ends_by_itself,
            stops::a_program_that_ignores_sigterm_is_killed_after_its_grace_time,
            stops::nothing_outlives_a_sole_process,
            stops::delete_ends_daemons,
            cells::several_processes_run_side_by_side,
            cells::one_ends_and_the_others_go_on,
            cells::one_is_stopped_and_the_others_go_on,
            cells::delete_ends_all_processes,
            restarts::running_and_ended_processes_are_found_again,
            restarts::a_container_without_processes_is_found_again,
            files::what_is_put_is_the_users_own,
            files::what_it_leaves_can_be_read,
            files::no_link_is_followed,
            execs::it_has_its_streams_and_its_own_exit_code,
            execs::it_has_the_user_the_directory_and_the_environment_of_the_process,
            execs::it_is_in_the_namespaces_and_the_groups_of_the_process,
            execs::what_cannot_run_is_told_and_leaves_nothing,
            execs::whoever_goes_away_ends_it_and_all_that_it_began,
            execs::it_ends_with_its_container,
            execs::it_ends_with_the_sole_process,
            execs::it_runs_beside_one_of_several,
            execs::what_a_killed_agent_left_is_in_nobodys_way,
            execs::a_terminal_is_its_own_and_has_a_size,
            execs::job_control_works_on_a_terminal,
            output::streams_are_kept_apart_and_byte_for_byte,
            output::dropped_output_leaves_only_last_words,
            output::output_above_its_rate_is_dropped_and_told,
            secrets::a_process_knows_its_secrets_and_no_file_and_no_argument_has_them,
            secrets::one_of_several_processes_knows_its_own_only,
            secrets::secrets_are_not_seen_in_output_and_last_words,
            secrets::a_process_that_is_started_again_has_the_secrets_of_then,
            secrets::what_cannot_start_leaves_no_secret_behind,
            limits::limits_are_enforced_where_they_can_be,
            limits::who_needs_too_much_memory_is_ended_and_that_is_told,
            limits::a_child_that_needs_too_much_memory_is_told_too,
            limits::a_fork_bomb_stays_inside_its_limit_and_can_be_deleted,
            limits::a_busy_loop_gets_its_share_of_the_processor,
        }
    };
}

macro_rules! on_each_case {
    ($rig:path => $($module:ident::$case:ident,)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let test = concat!(module_path!(), "::", stringify!($case));
                if let Some(rig) = $rig(test) {
                    $crate::testing::$module::$case(rig.named(test)).await;
                }
            }
        )*
    };
}

pub(crate) use {conformance, on_each_case};
