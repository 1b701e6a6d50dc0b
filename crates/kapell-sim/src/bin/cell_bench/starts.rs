//! An instance with limits and a health check, from the call to RUNNING, beside its parts.

use std::path::Path;

use kapell_backend::containers::Limits;
use kapell_sim::bench::instances::{Instances, Samples};
use kapell_sim::bench::parts::Start;
use kapell_sim::bench::site::DOMAIN;
use kapell_sim::figure::{figure, median, share};
use serde_json::{Value, json};

use crate::Plan;

const LIMITS: Limits = Limits { memory_mb: Some(64), cpu_millis: Some(1000), pids: Some(64) };
const SCRIPT: &str = "exec busybox nc -ll -p $PORT -e /bin/true";

#[derive(Debug, Default)]
struct Round {
    /// Its program counts until it listens.
    starts: Samples,
    limited: Vec<f64>,
    unlimited: Vec<f64>,
}

/// Checked every millisecond: at the usual pace the first check comes after 2 s.
fn listener(guid: &str, instances: u32) -> Value {
    json!({
        "process_guid": guid,
        "domain": DOMAIN,
        "instances": instances,
        "memory_mb": LIMITS.memory_mb,
        "cpu_millis": LIMITS.cpu_millis,
        "max_pids": LIMITS.pids,
        "ports": [8080],
        "check": {"tcp": {"port": 8080}, "every_ms": 1},
        "action": {"run": {"path": "/bin/sh", "args": ["-c", SCRIPT]}},
    })
}

pub(crate) async fn measure(kapell: &Path, dir: &Path, plan: Plan) -> anyhow::Result<()> {
    let mut instances = Instances::open(kapell, &dir.join("starts"), listener).await?;
    let mut rounds = Vec::new();
    for number_of_round in 0..plan.rounds {
        let mut round = Round::default();
        for number in 0..plan.starts_a_round {
            round.unlimited.push(instances.spawns.once(&Start::SLEEPER).await?);
            let limited = Start { limits: LIMITS, ..Start::SLEEPER };
            round.limited.push(instances.spawns.once(&limited).await?);
            let guid = format!("lrp-{number_of_round}-{number}");
            instances.sample(&guid, &listening()?, &mut round.starts).await?;
        }
        rounds.push(round);
    }
    instances.close().await?;
    report(&rounds);
    Ok(())
}

fn listening() -> anyhow::Result<Start<'static>> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok(Start { limits: LIMITS, path: "/bin/sh", args: &["-c", SCRIPT], port: Some(port) })
}

fn report(rounds: &[Round]) {
    let each = |of: &dyn Fn(&Round) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
    let row = |name: &str, of: &dyn Fn(&Round) -> f64| {
        figure(&format!("process start: {name}"), &each(of), "ms", None);
    };
    let ratios = each(&|round| median(&round.starts.whole) / round.starts.parts());
    let name = "process start: call to RUNNING, limits and health / its parts, medians";
    figure(name, &ratios, "ratio", Some(1.5));
    row("call to RUNNING, median", &|it| median(&it.starts.whole));
    row("call to RUNNING, p99", &|it| share(&it.starts.whole, 990));
    row("four commits, median", &|it| median(&it.starts.commits));
    row("five round trips, median", &|it| median(&it.starts.round_trips));
    row("shim and program until it listens, median", &|it| median(&it.starts.spawn));
    row("shim and `sleep` with limits, median", &|it| median(&it.limited));
    row("shim and `sleep` without, median", &|it| median(&it.unlimited));
    let dearer = each(&|it| median(&it.limited) / median(&it.unlimited));
    figure("process start: shim and `sleep`, with limits / without", &dearer, "ratio", None);
}
