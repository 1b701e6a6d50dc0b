//! `kapell lrp run`

use anyhow::bail;
use kapell_api::client::Client;
use kapell_core::board::{Action, DesiredLrp, Run, Variable};

use super::args::LrpRun;
use crate::say;

pub(crate) async fn run(args: &LrpRun, client: &Client) -> anyhow::Result<u8> {
    let [path, arguments @ ..] = args.command.as_slice() else { bail!("no program is named") };
    let env = args.env.iter().map(|(name, value)| Variable::plain(name, value));
    let run = Run { path: path.clone(), args: arguments.to_vec(), ..Run::default() };
    let (guid, domain) = (args.process_guid.as_str().into(), args.domain.as_str().into());
    let lrp = DesiredLrp {
        instances: args.instances,
        memory_mb: args.memory,
        disk_mb: args.disk,
        env: env.collect(),
        ports: args.port.clone(),
        ..DesiredLrp::new(guid, domain, Action::Run(run))
    };
    client.desire(&lrp).await?;
    say(&format!("{} is to run\n", args.process_guid));
    Ok(0)
}
