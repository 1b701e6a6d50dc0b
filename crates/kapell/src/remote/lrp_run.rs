//! `kapell lrp run`

use anyhow::bail;
use kapell_api::client::Client;
use kapell_core::board::{Action, DesiredLrp, EnvVar, Run};

use super::args::LrpRun;
use crate::say;

pub(crate) async fn run(args: &LrpRun, client: &Client) -> anyhow::Result<u8> {
    let [path, arguments @ ..] = args.command.as_slice() else { bail!("no program is named") };
    let env =
        args.env.iter().map(|(name, value)| EnvVar { name: name.clone(), value: value.clone() });
    let run = Run { path: path.clone(), args: arguments.to_vec(), ..Run::default() };
    let lrp = DesiredLrp {
        process_guid: args.process_guid.as_str().into(),
        domain: args.domain.as_str().into(),
        instances: args.instances,
        rootfs: None,
        memory_mb: args.memory,
        disk_mb: args.disk,
        max_pids: 0,
        placement_tags: Vec::new(),
        setup: None,
        action: Action::Run(run),
        monitor: None,
        start_timeout_ms: 0,
        stop_grace_ms: None,
        env: env.collect(),
        ports: args.port.clone(),
        annotation: String::new(),
        routes: std::collections::BTreeMap::new(),
        version: 0,
        created_at: None,
        updated_at: None,
        incarnation: 0,
        removing: false,
        retiring: false,
    };
    client.desire(&lrp).await?;
    say(&format!("{} is to run\n", args.process_guid));
    Ok(0)
}
