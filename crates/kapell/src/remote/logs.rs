//! `kapell logs`

use std::time::Duration;

use anyhow::bail;
use kapell_api::client::{ActualFilter, Client, Error, Logs as LogStream};
use kapell_api::v1::LogQuery;
use kapell_core::board::{ActualLrp, InstanceGuid};
use kapell_core::log::{Frame, Mark};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::args::Logs;
use super::sink::{Dress, Sink};
use super::target::Target;
use crate::logger::Style;
use crate::logger::style::Colour;

/// Between two tries to read on.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two looks for a container that is to come.
const LOOK: Duration = Duration::from_secs(1);

/// Whose log it is.
#[derive(Debug, Clone)]
pub(crate) enum Of {
    Instance { process_guid: String, index: u32 },
    Task(String),
}

/// A log that is read on where it was when the connection broke.
#[derive(Debug)]
pub(crate) struct Trail {
    client: Client,
    of: Of,
    follow: bool,
    tail: Option<u64>,
    stream: Option<LogStream>,
    mark: Mark,
}

impl Trail {
    pub(crate) fn new(client: &Client, of: Of, follow: bool, tail: Option<u64>) -> Self {
        let mark = if tail.is_some() { Mark::of_tail() } else { Mark::default() };
        Self { client: client.clone(), of, follow, tail, stream: None, mark }
    }

    /// The next frame; none at the end. Nothing is lost if this is dropped while it waits.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            let opened = match &mut self.stream {
                Some(stream) => stream.next().await,
                None => match self.open().await {
                    Ok(stream) => {
                        self.stream = Some(stream);
                        self.mark.restart();
                        continue;
                    }
                    Err(error) => Err(error),
                },
            };
            match opened {
                Ok(Some(frame)) if !self.mark.is_news(&frame) => {}
                Err(error) if error.passes() && self.follow => {
                    self.stream = None;
                    sleep(PAUSE).await;
                }
                done => return done,
            }
        }
    }

    async fn open(&mut self) -> Result<LogStream, Error> {
        let tail = self.tail.filter(|_| self.mark.is_new());
        let query = LogQuery { follow: self.follow, tail, ..LogQuery::default() };
        match &self.of {
            Of::Instance { process_guid, index } => {
                self.client.lrp_logs(process_guid, *index, query).await
            }
            Of::Task(guid) => self.client.task_logs(guid, query).await,
        }
    }
}

pub(crate) async fn run(args: &Logs, client: &Client) -> anyhow::Result<u8> {
    match &args.of {
        Target::Lrp { process_guid, index: Some(index) } => {
            one(client.clone(), process_guid.clone(), *index, How::of(args, String::new())).await?;
        }
        Target::Lrp { process_guid, index: None } => all(args, client, process_guid).await?,
        Target::Task(guid) => {
            let how = How::of(args, String::new());
            let mut trail = Trail::new(client, Of::Task(guid.clone()), how.follow, how.tail);
            pour(&mut trail, &mut Sink::new(how.dress, false)).await?;
        }
        Target::Run(id) => {
            let how = How::of(args, String::new());
            let mut sink = Sink::new(how.dress, false);
            super::run_wait::pour(client, id, None, how.follow, how.tail, &mut sink).await?;
        }
        Target::Cell(_) | Target::Domain(_) | Target::Job(_) => {
            bail!("only instances, tasks and runs have logs: write web/0, web, task/GUID or run/ID")
        }
    }
    Ok(0)
}

#[derive(Debug, Clone)]
struct How {
    follow: bool,
    tail: Option<u64>,
    dress: Dress,
}

impl How {
    fn of(args: &Logs, prefix: String) -> Self {
        let dress = Dress { prefix, timestamps: args.timestamps };
        Self { follow: args.follow, tail: args.tail, dress }
    }
}

/// Writes a log to its end. False if nobody reads it any more.
async fn pour(trail: &mut Trail, sink: &mut Sink) -> Result<bool, Error> {
    while let Some(frame) = trail.next().await? {
        if sink.take(&frame).is_err() {
            return Ok(false);
        }
    }
    Ok(sink.end().is_ok())
}

/// Every instance, each line with its name before it.
async fn all(args: &Logs, client: &Client, process_guid: &str) -> anyhow::Result<()> {
    let how = |index: u32| {
        let name = format!("{process_guid}/{index} | ");
        let colours = [Colour::Blue, Colour::Green, Colour::Yellow];
        let colour = colours[index as usize % colours.len()];
        How::of(args, Style::of_stdout().paint(colour, &name))
    };
    if !args.follow {
        let instances = instances(client, process_guid).await?;
        if instances.is_empty() {
            bail!("`{process_guid}` has no instances");
        }
        for lrp in instances.iter().filter(|lrp| !lrp.evacuating) {
            let read = one(client.clone(), process_guid.to_owned(), lrp.index, how(lrp.index));
            match read.await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // It never ran, so it wrote nothing.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        return Ok(());
    }
    // As many as are desired, and more as more are.
    let mut readers = JoinSet::new();
    let mut begun = 0;
    loop {
        let desired = match client.desired_lrp(process_guid).await {
            Ok(lrp) => lrp.instances,
            Err(error) if error.passes() && begun > 0 => begun,
            Err(error) if error.is_not_found() && begun > 0 => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for index in begun..desired {
            readers.spawn(one(client.clone(), process_guid.to_owned(), index, how(index)));
        }
        begun = begun.max(desired);
        tokio::select! {
            Some(done) = readers.join_next() => {
                if let Ok(Ok(false)) = done {
                    return Ok(());
                }
                if let Ok(Err(error)) = done {
                    return Err(error.into());
                }
            }
            () = sleep(LOOK) => {}
        }
    }
}

/// One instance, and with `--follow` whatever container comes after the present one.
async fn one(client: Client, process_guid: String, index: u32, how: How) -> Result<bool, Error> {
    let mut sink = Sink::new(how.dress, false);
    let mut last_lines = how.tail;
    let mut before = None;
    loop {
        let present = match container(&client, &process_guid, index).await {
            Ok(present) => present,
            Err(error) if error.passes() && before.is_some() => {
                sleep(LOOK).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        if before.is_none() || (present.is_some() && before.as_ref() != Some(&present)) {
            let of = Of::Instance { process_guid: process_guid.clone(), index };
            let mut trail = Trail::new(&client, of, how.follow, last_lines.take());
            match pour(&mut trail, &mut sink).await {
                Ok(true) if how.follow => {}
                Err(error) if error.is_not_found() && how.follow => {}
                done => return done,
            }
            before = Some(present);
        }
        // It is gone for good once nobody wants it any more.
        match client.desired_lrp(&process_guid).await {
            Ok(lrp) if index >= lrp.instances => return Ok(true),
            Err(error) if error.is_not_found() => return Ok(true),
            Ok(_) | Err(_) => {}
        }
        sleep(LOOK).await;
    }
}

/// The container that an instance is in now.
async fn container(
    client: &Client,
    process_guid: &str,
    index: u32,
) -> Result<Option<InstanceGuid>, Error> {
    let instances = instances(client, process_guid).await?;
    let mut here = instances.into_iter().filter(|lrp| lrp.index == index && !lrp.evacuating);
    Ok(here.next().and_then(|lrp| lrp.instance_guid))
}

async fn instances(client: &Client, process_guid: &str) -> Result<Vec<ActualLrp>, Error> {
    let filter = ActualFilter { process_guid: Some(process_guid), ..ActualFilter::default() };
    Ok(client.actual_lrps(filter).await?.items)
}
