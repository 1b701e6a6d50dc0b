use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kapell_core::seat::Seat;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::bench::Bench;
use super::clock::{how, skewed};
use super::place::Place;
use super::verdict::{Failures, Verdict, Wrong};
use super::{
    bytes, commit, cuts, delete, expiry, histories as history, insert, limits, list, races as race,
    raise, read, scan, swap, watch,
};
use crate::open::How;

/// How many clients work on one store.
const CLIENTS: usize = 4;
/// No case takes longer; one that does hangs.
const LIMIT: Duration = Duration::from_secs(90);

/// A case of the suite.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    run: fn(Bench) -> BoxFuture<'static, Verdict>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        &[$($(Case {
            name: concat!(stringify!($module), "::", stringify!($case)),
            run: |bench| Box::pin($module::$case(bench)),
        },)+)+]
    };
}

#[rustfmt::skip]
pub(super) const TTL: &[Case] = cases! {
    insert: absent, exists, equal_values_of_two_owners, after_expiry, without_ttl,
            stale_generation, generation_grows;
    swap:   equal, unequal, absent, deleted, expired, from_no_ttl, to_no_ttl, to_shorter,
            to_longer, renewals;
    delete: equal, unequal, absent, expired;
    read:   never_inserted, remaining, by_every_client;
    list:   all_in_order, lift_never_lowers, lift_keeps_what_stands;
    watch:  tells_of_every_kind, tells_every_watcher, read_after_watch_misses_nothing;
    bytes:  keys, values, longest, above_limits;
    expiry: after_an_insert, after_a_swap, prepared_long_ago, cleaner_and_renewal,
            a_year;
};

#[rustfmt::skip]
pub(super) const FENCES: &[Case] = cases! {
    raise:  from_zero, again, lower, seats_are_independent, racing;
    commit: done, stale_epoch, stale_seq, sent_again, empty, last_change_wins,
            shards_are_independent, seen_whole, around_a_raise, racing;
    limits: reached, exceeded;
    scan:   pages, binary_keys, nothing;
};

#[rustfmt::skip]
pub(super) const RACES: &[Case] = cases! {
    race: inserts, swaps, deletes, inserts_and_deletes, renewal_and_takeover,
          renewal_among_contenders, contention;
};

#[rustfmt::skip]
pub(super) const HISTORIES: &[Case] = cases! {
    history: entries, entries_that_expire, entries_with_cuts, commits, commits_with_cuts;
};

#[rustfmt::skip]
pub(super) const CUTS: &[Case] = cases! {
    cuts: inserts, swaps, deletes, commits, raises, held_back_by_a_raise, slow_but_there,
          silent_server, refused;
};

pub(super) const SCAN: &[Case] = cases! { scan: while_committing; };

/// Runs all groups, one after the other.
///
/// # Panics
/// If any case fails; the message lists all that did.
pub async fn conforms(place: &dyn Place) {
    let mut failures = Vec::new();
    for group in [TTL, FENCES, RACES, HISTORIES, SCAN, CUTS] {
        failures.extend(run(place, &right(), group).await.err());
    }
    failures.extend(run(place, &skewed(), TTL).await.err());
    let failures = Failures(failures.into_iter().flat_map(|failures| failures.0).collect());
    assert!(failures.0.is_empty(), "{failures}");
}

/// Entries with a time to live: each operation in each situation.
pub async fn ttl_storage(place: &dyn Place) -> Result<(), Failures> {
    run(place, &right(), TTL).await
}

/// Shards: raising fences, committing under them, limits, pages.
pub async fn fenced_commits(place: &dyn Place) -> Result<(), Failures> {
    run(place, &right(), FENCES).await
}

/// Many tasks want the same thing and one may have it.
pub async fn races(place: &dyn Place) -> Result<(), Failures> {
    run(place, &right(), RACES).await
}

/// What concurrent clients saw can be explained by some order of single steps.
pub async fn histories(place: &dyn Place) -> Result<(), Failures> {
    run(place, &right(), HISTORIES).await
}

/// A hundred thousand records are read in pages while commits go on.
pub async fn scan_while_committing(place: &dyn Place) -> Result<(), Failures> {
    run(place, &right(), SCAN).await
}

/// Connections that break, hang or are slow. Passes at once if there is no server.
pub async fn cut_connections(place: &dyn Place) -> Result<(), Failures> {
    run(place, &right(), CUTS).await
}

/// The same as [`ttl_storage`] by clients whose clocks are hours apart.
///
/// A store without a clock of its own, and with one client, has one clock that is wrong.
pub async fn skewed_clocks(place: &dyn Place) -> Result<(), Failures> {
    run(place, &skewed(), TTL).await
}

pub(super) fn right() -> Vec<How> {
    vec![how(); CLIENTS]
}

pub(super) async fn run(place: &dyn Place, hows: &[How], cases: &[Case]) -> Result<(), Failures> {
    let bench = bench(place, hows).await.map_err(|wrong| Failures(vec![("open", wrong)]))?;
    let mut running = JoinSet::new();
    let mut names = HashMap::new();
    for (case, seat) in cases.iter().zip(1000..) {
        let bench = Bench { case: case.name, seat: Seat(seat), ..bench.clone() };
        let task = running.spawn(timeout(LIMIT, (case.run)(bench)));
        names.insert(task.id(), case.name);
    }
    let mut failures = Vec::new();
    while let Some(ended) = running.join_next_with_id().await {
        let (id, verdict) = match ended {
            Ok((id, Ok(verdict))) => (id, verdict),
            Ok((id, Err(_))) => (id, Err(Wrong::new(format!("no end after {LIMIT:?}")))),
            Err(error) => (error.id(), Err(Wrong::new(error.to_string()))),
        };
        if let Err(wrong) = verdict {
            failures.push((names[&id], wrong));
        }
    }
    failures.sort_by_key(|(name, _)| cases.iter().position(|case| case.name == *name));
    if failures.is_empty() { Ok(()) } else { Err(Failures(failures)) }
}

async fn bench(place: &dyn Place, hows: &[How]) -> Result<Bench, Wrong> {
    let first = hows.first().ok_or_else(|| Wrong::new("the suite needs a client"))?;
    let fresh = place.fresh(first).await?;
    let mut clients = Vec::with_capacity(hows.len());
    for how in hows {
        clients.push(fresh.client(how).await?);
    }
    Ok(Bench { case: "", seat: Seat::FIRST, clients: Arc::from(clients), fresh })
}
