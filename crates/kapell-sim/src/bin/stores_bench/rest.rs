//! What hosts ask for while nothing happens.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;
use kapell_sim::bench::hosts::Host;
use kapell_sim::figure::figure;
use tokio::time::{Instant, sleep};

use crate::Plan;
use crate::meter::Meter;
use crate::place::Place;

/// A host is at rest so long after it says that it leads, or listens.
const SETTLED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// A leader and a standby of each store, each with a wire of its own.
struct Pair<'p> {
    place: &'p Place,
    leader: Meter,
    standby: Meter,
    _hosts: [Host; 2],
}

pub(crate) async fn measure(places: &[Place], kapell: &Path, plan: Plan) -> anyhow::Result<()> {
    let state = tempfile::tempdir()?;
    let lease = format!("{}s", plan.lease.as_secs());
    let mut pairs = Vec::new();
    for place in places {
        let Some(meter) = Meter::open(place).await? else { continue };
        let standby = Meter::open(place).await?.context("it has a server")?;
        let dir = state.path().join(format!("{:?}", place.kind));
        let start =
            |meter: &Meter| Host::start(kapell, &place.url_at(&meter.server, "rest"), &dir, &lease);
        // What a host logs is read on this thread: the wires go on with the other.
        let hosts = tokio::task::block_in_place(|| {
            let mut first = start(&meter);
            first.until("leading");
            let mut second = start(&standby);
            second.until("listening");
            [first, second]
        });
        pairs.push(Pair { place, leader: meter, standby, _hosts: hosts });
    }
    sleep(SETTLED.max(plan.lease / 4)).await;
    // They rest, so they may rest side by side.
    try_join_all(pairs.iter().map(|pair| pair.count(plan))).await.map(drop)
}

impl Pair<'_> {
    async fn count(&self, plan: Plan) -> anyhow::Result<()> {
        let name = self.place.kind.name();
        let interval = plan.lease / 4;
        // From one renewal on, and a half interval longer than they take: one more would be one too many.
        let renewed = self.leader.requests();
        let until = Instant::now() + interval * 2;
        while self.leader.requests() == renewed && Instant::now() < until {
            sleep(LOOK).await;
        }
        let window = interval * plan.intervals + interval / 2;
        let (leader, standby) = (self.leader.requests(), self.standby.requests());
        sleep(window).await;
        let leader = count(self.leader.requests() - leader)?;
        let standby = count(self.standby.requests() - standby)?;
        let each = leader / f64::from(plan.intervals);
        figure(
            &format!("{name}: a leader's requests in a renewal interval, at rest"),
            &[each],
            "calls",
            Some(1.0),
        );
        let second = standby / window.as_secs_f64();
        let looks = self.place.kind.looks(plan.lease);
        figure(&format!("{name}: a standby's requests in a second"), &[second], "1/s", Some(looks));
        let hour = 3600.0 / window.as_secs_f64();
        let what = format!("{name}: requests of a leader in an hour at rest");
        figure(&what, &[leader * hour], "calls", None);
        let what = format!("{name}: requests of a standby in an hour at rest");
        figure(&what, &[standby * hour], "calls", None);
        Ok(())
    }
}

fn count(requests: u64) -> anyhow::Result<f64> {
    Ok(f64::from(u32::try_from(requests)?))
}
