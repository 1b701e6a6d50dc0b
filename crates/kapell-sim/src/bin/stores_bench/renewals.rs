//! What a renewal costs.

use std::time::{Duration, Instant};

use anyhow::ensure;
use kapell_core::seat::Seat;
use kapell_sim::bench::show::open;
use kapell_sim::figure::{figure, median};
use kapell_store::keys;
use kapell_store::model::Write;

use crate::Plan;
use crate::meter::Meter;
use crate::place::Place;

const TTL: Duration = Duration::from_secs(20);
const VALUE: &[u8] =
    br#"{"epoch":1,"owner":"00000000000000ab","address":"127.0.0.1:7070","since":1}"#;

pub(crate) async fn measure(place: &Place, plan: Plan) -> anyhow::Result<()> {
    let name = place.kind.name();
    let Some(meter) = Meter::open(place).await? else { return Ok(()) };
    let store = open(&place.url_at(&meter.server, "renewals")).await?;
    let key = keys::leader(Seat::FIRST);
    store.prepare(TTL).await?;
    let seen = store.read(&key).await?.generation;
    let inserted = store.insert_if_absent(&key, seen, VALUE, Some(TTL)).await?;
    ensure!(inserted == Write::Done, "it is alone");
    // As a leader has it: a watch, and a renewal behind it.
    let _watch = store.watch(&key).await?;
    let renewed = store.compare_and_swap(&key, VALUE, VALUE, Some(TTL)).await?;
    ensure!(renewed == Write::Done, "it is alone");
    let (before, mut took) = (meter.requests(), Vec::new());
    for _ in 0..plan.renewals {
        let begun = Instant::now();
        let renewed = store.compare_and_swap(&key, VALUE, VALUE, Some(TTL)).await?;
        ensure!(renewed == Write::Done, "it is alone");
        took.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let requests = u32::try_from(meter.requests() - before)?;
    let each = f64::from(requests) / f64::from(plan.renewals);
    figure(&format!("{name}: requests of a renewal"), &[each], "calls", Some(1.0));
    figure(&format!("{name}: renewal, median"), &[median(&took)], "ms", None);
    Ok(())
}
