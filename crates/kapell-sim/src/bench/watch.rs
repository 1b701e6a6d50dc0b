//! What happens on the board, with the time at which it was told.

use std::time::Instant;

use anyhow::{Context as _, bail};
use kapell_api::client::{Client, Events};
use kapell_core::board::{ActualLrp, ActualState, Change, Event, Record, Task, TaskState};

use crate::bench::site::PATIENCE;

/// A stream of events, opened before anything happens.
#[derive(Debug)]
pub struct Watch {
    events: Events,
    /// What was put on the board since it was last asked, for whoever wants to write the same.
    written: Vec<Record>,
}

impl Watch {
    pub async fn begin(client: &Client) -> anyhow::Result<Self> {
        Ok(Self { events: client.events(None).await?, written: Vec::new() })
    }

    /// Waits for an event that `is_it`, and tells when it came.
    pub async fn until(
        &mut self,
        mut is_it: impl FnMut(&Event) -> bool,
    ) -> anyhow::Result<Instant> {
        let search = async {
            loop {
                let view = self.events.next().await?.context("the events end")?;
                let now = Instant::now();
                let Some(event) = view.event else { bail!("events were missed") };
                let found = is_it(&event);
                self.written.extend(written(event));
                if found {
                    return Ok(now);
                }
            }
        };
        tokio::time::timeout(PATIENCE, search).await.context("it does not happen")?
    }

    pub async fn task(&mut self, guid: &str, state: TaskState) -> anyhow::Result<Instant> {
        self.until(|event| {
            task(event).is_some_and(|task| task.guid().as_str() == guid && task.state == state)
        })
        .await
    }

    pub fn written(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.written)
    }
}

fn task(event: &Event) -> Option<&Task> {
    if let Event::Task(Change { after: Some(task), .. }) = event { Some(task) } else { None }
}

/// The instance that an event says to be running.
pub fn running(event: &Event) -> Option<&ActualLrp> {
    let Event::ActualLrp(Change { after: Some(lrp), .. }) = event else { return None };
    (lrp.state == ActualState::Running).then_some(lrp)
}

fn written(event: Event) -> Option<Record> {
    match event {
        Event::DesiredLrp(change) => change.after.map(Record::Desired),
        Event::ActualLrp(change) => change.after.map(Record::Actual),
        Event::Task(change) => change.after.map(Record::Task),
        Event::Job(change) => change.after.map(Record::Job),
        Event::Run(change) => change.after.map(Record::Run),
        Event::ActualLrpCrashed(_) | Event::Domain(_) | Event::Cell { .. } => None,
    }
}

/// Whether an event says that an instance of this process is there no more.
pub fn is_gone(event: &Event, process: &str) -> bool {
    let Event::ActualLrp(change) = event else { return false };
    let was = change.before.as_ref().is_some_and(|lrp| lrp.process_guid.as_str() == process);
    was && change.after.is_none()
}
