//! A container by our driver, from nothing to a program that runs, beside `runc run` of the same bundle.

use std::path::Path;
use std::time::{Duration, Instant};

use kapell_backend::containers::{Containers as _, Limits, Output, Process, Spec, User};
use kapell_backend::image::{self, Images};
use kapell_backend::oci::{OciContainers, Settings};
use kapell_sim::bench::parts::ms;
use kapell_sim::figure::{figure, median, share};

use crate::Plan;
use crate::root::Root;
use crate::runc::{Bare, Ends};

/// The kernel clears up behind a network namespace in the background, and who makes one meanwhile waits for it.
const SETTLED: Duration = Duration::from_millis(60);

#[derive(Debug, Default)]
struct Samples {
    ours: Vec<f64>,
    /// Without making the container.
    run: Vec<f64>,
    bare: Vec<f64>,
    detached: Vec<f64>,
}

pub(crate) async fn measure(dir: &Path, root: &Root, plan: Plan) -> anyhow::Result<()> {
    let dir = dir.join("oci");
    std::fs::create_dir(&dir)?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(&dir, open)?;
    let allowed =
        image::Settings { local_roots: vec![root.dir.clone()], ..image::Settings::default() };
    let images = Images::open(&dir.join("images"), allowed)?;
    let containers = OciContainers::open(&dir.join("agent"), images, &Settings::default())?;
    containers.recover().await?;
    let agent = Agent { containers, dir: dir.clone(), rootfs: root.url() };
    agent.start("model").await?;
    let bundle = dir.join("agent/containers/model/oci");
    let bare = Bare::like(&bundle, root, dir.join("bare"))?;
    agent.end("model").await?;
    let mut rounds = Vec::new();
    for round in 0..plan.rounds {
        let mut samples = Samples::default();
        for number in 0..plan.oci_a_round {
            let guid = format!("r{round}-{number}");
            settle().await;
            samples.bare.push(bare.run(Ends::WithProgram)?);
            settle().await;
            let (ours, run) = agent.start(&guid).await?;
            samples.ours.push(ours);
            samples.run.push(run);
            agent.end(&guid).await?;
            settle().await;
            samples.detached.push(bare.run(Ends::Before)?);
        }
        rounds.push(samples);
    }
    report(&rounds);
    Ok(())
}

async fn settle() {
    tokio::time::sleep(SETTLED).await;
}

#[derive(Debug)]
struct Agent {
    containers: OciContainers,
    dir: std::path::PathBuf,
    rootfs: String,
}

impl Agent {
    /// What it took until its program ran, and how much of it was running, in milliseconds.
    async fn start(&self, guid: &str) -> anyhow::Result<(f64, f64)> {
        let spec = Spec {
            guid: guid.to_owned(),
            tag: b"bench".to_vec(),
            rootfs: Some(self.rootfs.clone()),
            user: User::Same,
            limits: Limits { memory_mb: Some(64), cpu_millis: Some(1000), pids: Some(64) },
            ports: Vec::new(),
            logs: self.dir.join("logs").join(guid),
            log_bytes: 1 << 20,
            log_rate: None,
            sole: true,
        };
        let process = Process {
            name: "0".to_owned(),
            path: "/bin/true".to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            secrets: Vec::new(),
            dir: None,
            user: None,
            stop_grace: Duration::from_secs(1),
            output: Output::Kept,
        };
        let begun = Instant::now();
        self.containers.create(spec).await?;
        let created = Instant::now();
        if let Err(error) = self.containers.run(guid, process).await {
            self.containers.delete(guid).await?;
            return Err(error.into());
        }
        Ok((ms(begun.elapsed()), ms(created.elapsed())))
    }

    async fn end(&self, guid: &str) -> anyhow::Result<()> {
        self.containers.ended(guid, "0").await?;
        Ok(self.containers.delete(guid).await?)
    }
}

fn report(rounds: &[Samples]) {
    let each = |of: &dyn Fn(&Samples) -> f64| -> Vec<f64> { rounds.iter().map(of).collect() };
    let ratios = each(&|it| median(&it.ours) / median(&it.bare));
    figure("OCI start / `runc run` of the same bundle, medians", &ratios, "ratio", Some(1.15));
    figure("OCI start, median", &each(&|it| median(&it.ours)), "ms", None);
    figure(
        "OCI start: without making the container, median",
        &each(&|it| median(&it.run)),
        "ms",
        None,
    );
    figure("`runc run`, median", &each(&|it| median(&it.bare)), "ms", None);
    figure("`runc run --detach`, median", &each(&|it| median(&it.detached)), "ms", None);
    // What a busy machine adds is least in these.
    figure("OCI start, least", &each(&|it| share(&it.ours, 0)), "ms", None);
    figure("`runc run`, least", &each(&|it| share(&it.bare, 0)), "ms", None);
    let detached = each(&|it| median(&it.ours) / median(&it.detached));
    figure("OCI start / `runc run --detach`, medians", &detached, "ratio", None);
}
