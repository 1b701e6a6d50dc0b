//! `kapell cell`: runs the work of hosts on this machine.

use anyhow::Context as _;

use crate::agent::{Agent, Plan};
use crate::cli;
use crate::config::Config;
use crate::host::{self, log, signals::Signals};
use crate::http::{self, TlsFiles, Token};
use crate::member::Member;
use crate::remote::LOCAL;
use crate::say;

/// The board does not take this cell.
const REFUSED: u8 = 1;

pub(crate) fn run(args: &cli::Cell, config: &Config) -> anyhow::Result<u8> {
    log::begin(args.log);
    host::block_on(work(args, config))?
}

async fn work(args: &cli::Cell, config: &Config) -> anyhow::Result<u8> {
    let mut signals = Signals::catch()?;
    let agent = Agent::start(plan(args, config)?, std::future::ready(())).await?;
    let stop = tokio::select! {
        biased;
        stop = signals.next() => stop,
        () = agent.cell.evacuated() => {
            agent.stop(false).await;
            say("kapell cell: evacuated\n");
            return Ok(0);
        }
        problem = agent.cell.refused() => {
            agent.stop(false).await;
            say(&format!("error: {}\n", problem.message));
            return Ok(REFUSED);
        }
    };
    tokio::select! {
        biased;
        () = agent.stop(false) => {}
        again = signals.next() => again.exit_at_once("kapell cell"),
    }
    say(&format!("kapell cell: stopped on {}; its work goes on\n", stop.name()));
    Ok(0)
}

fn plan(args: &cli::Cell, config: &Config) -> anyhow::Result<Plan> {
    let access = &args.access;
    let dir = args.dir.clone().unwrap_or_else(|| config.state_dir.join("cell"));
    let joins = args.join.is_some() || Member::is_at(&dir);
    if joins && (access.tls_cert.is_some() || access.token_file.is_some()) {
        anyhow::bail!(
            "a cell that joins gets its certificate from the hosts and needs no token: leave --tls-cert and \
             --token-file out"
        );
    }
    if !args.listen.ip().is_loopback() && access.tls_cert.is_none() && !joins {
        return Err(http::Error::NeedsTls { address: args.listen }.into());
    }
    let tls = match (&access.tls_cert, &access.tls_key) {
        (Some(cert), Some(key)) => Some(TlsFiles { cert: cert.clone(), key: key.clone() }),
        _ => None,
    };
    let token = match std::env::var("KAPELL_TOKEN") {
        _ if joins => None,
        Ok(text) if access.token_file.is_none() && !text.is_empty() => {
            Some(Token::parse(text.trim().as_bytes()).context("$KAPELL_TOKEN is no token")?)
        }
        _ => {
            let usual = config.state_dir.join("token");
            Some(Token::load(access.token_file.as_ref().unwrap_or(&usual))?)
        }
    };
    Ok(Plan {
        id: args.id.clone(),
        dir,
        zone: args.zone.clone(),
        hosts: args.url.clone().unwrap_or_else(|| LOCAL.to_owned()),
        token,
        join: args.join.clone(),
        listen: args.listen,
        advertise: args.advertise.clone(),
        tls,
        ca: access.tls_ca.clone(),
        allowed_hosts: access.allow_host.clone(),
        memory_mb: args.memory,
        disk_mb: args.disk,
        containers: args.containers,
        placement_tags: args.tag.clone(),
        optional_placement_tags: args.optional_tag.clone(),
        stay: args.stay,
        rooted: args.rooted.clone(),
        image_cache_bytes: config.image_cache_bytes,
        settings: config.cell.clone(),
    })
}
