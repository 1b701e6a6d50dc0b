//! Pages for people: rendered here, kept up to date by a small script that fetches a fragment when something changed.

mod attention;
mod counts;
mod deliveries;
mod events;
mod frame;
mod gantt;
mod html;
mod job;
mod jobs;
mod log;
mod lrp;
mod overview;
mod parts;
mod run;
mod run_parts;
mod runs;
mod table;
mod task;

#[cfg(test)]
mod tests;

use kapell_core::board::{JobId, LrpKey, ProcessGuid, TaskGuid};
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;

use crate::http::{Desk, Scheduler, look};
use frame::Frame;
pub(crate) use frame::{asset, login, sorry};
use html::{Html, html};
use kapell_core::percent;
use runs::Filter;

/// What somebody wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Page(About),
    /// Only what changes of it.
    Fragment(About),
    Log(LogOf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum About {
    Overview,
    Lrp(ProcessGuid),
    Task(TaskGuid),
    Jobs,
    Job(JobId),
    Runs(Filter),
    Run(RunId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogOf {
    Lrp(LrpKey),
    Task(TaskGuid),
    Run(RunId),
}

impl Wanted {
    /// Reads the path of a page. Names that are no ids name nothing.
    pub(crate) fn at(path: &str, query: impl Iterator<Item = (String, String)>) -> Option<Self> {
        let lrp = |text: &str| Some(ProcessGuid::from(text)).filter(ProcessGuid::is_valid);
        let task = |text: &str| Some(TaskGuid::from(text)).filter(TaskGuid::is_valid);
        let job = |text: &str| Some(JobId::from(text)).filter(JobId::is_valid);
        // Browsers may write the `:` in another way.
        let run = |text: &str| RunId::parse(&percent::decode(text).ok()?);
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        Some(match parts.as_slice() {
            [""] => Self::Page(About::Overview),
            ["lrp", guid] => Self::Page(About::Lrp(lrp(guid)?)),
            ["task", guid] => Self::Page(About::Task(task(guid)?)),
            ["jobs"] => Self::Page(About::Jobs),
            ["job", id] => Self::Page(About::Job(job(id)?)),
            ["runs"] => Self::Page(About::Runs(Filter::read(query))),
            ["run", id] => Self::Page(About::Run(run(id)?)),
            ["run", id, "log"] => Self::Log(LogOf::Run(run(id)?)),
            ["fragments", "jobs"] => Self::Fragment(About::Jobs),
            ["fragments", "job", id] => Self::Fragment(About::Job(job(id)?)),
            ["fragments", "runs"] => Self::Fragment(About::Runs(Filter::read(query))),
            ["fragments", "run", id] => Self::Fragment(About::Run(run(id)?)),
            ["fragments", "overview"] => Self::Fragment(About::Overview),
            ["fragments", "lrp", guid] => Self::Fragment(About::Lrp(lrp(guid)?)),
            ["fragments", "task", guid] => Self::Fragment(About::Task(task(guid)?)),
            ["lrp", guid, index, "log"] => {
                let key = LrpKey { process_guid: lrp(guid)?, index: index.parse().ok()? };
                Self::Log(LogOf::Lrp(key))
            }
            ["task", guid, "log"] => Self::Log(LogOf::Task(task(guid)?)),
            _ => return None,
        })
    }

    /// The whole page; nothing if there is no such thing.
    pub(crate) async fn render(
        &self,
        desk: &dyn Desk,
        scheduler: Option<&dyn Scheduler>,
        now: Timestamp,
    ) -> Option<String> {
        let seen = desk.last_event();
        let html = match self {
            Self::Fragment(about) => about.render(desk, scheduler, now).await?,
            Self::Page(about) => Frame {
                title: about.title(),
                fragment: Some(about.path()),
                after: Some(format!("{}-{}", seen.epoch, seen.number)),
                below: about.below(desk),
            }
            .around(&about.render(desk, scheduler, now).await?),
            Self::Log(of) => {
                let frame = Frame { title: of.title(), fragment: None, after: None, below: None };
                frame.around(&log::render(of))
            }
        };
        Some(html.into_string())
    }
}

impl About {
    fn title(&self) -> String {
        match self {
            Self::Overview => "Overview".to_owned(),
            Self::Lrp(guid) => format!("LRP {guid}"),
            Self::Task(guid) => format!("Task {guid}"),
            Self::Jobs => "Jobs".to_owned(),
            Self::Job(id) => format!("Job {id}"),
            Self::Runs(_) => "Runs".to_owned(),
            Self::Run(id) => format!("Run {id}"),
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Overview => "/fragments/overview".to_owned(),
            Self::Lrp(guid) => format!("/fragments/lrp/{guid}"),
            Self::Task(guid) => format!("/fragments/task/{guid}"),
            Self::Jobs => "/fragments/jobs".to_owned(),
            Self::Job(id) => format!("/fragments/job/{id}"),
            Self::Runs(filter) => format!("/fragments/runs{}", filter.query()),
            Self::Run(id) => format!("/fragments/run/{id}"),
        }
    }

    /// The log of a run, unless it has ended without any.
    fn below(&self, desk: &dyn Desk) -> Option<Html> {
        match self {
            Self::Run(id) => {
                let run =
                    look(desk, id.job(), |records| records.runs.get(id).cloned()).flatten()?;
                let writes = !run.state.is_final() || !run.log_hosts.is_empty();
                writes.then(|| log::panel(&LogOf::Run(id.clone())))
            }
            Self::Overview
            | Self::Lrp(_)
            | Self::Task(_)
            | Self::Jobs
            | Self::Job(_)
            | Self::Runs(_) => None,
        }
    }

    async fn render(
        &self,
        desk: &dyn Desk,
        scheduler: Option<&dyn Scheduler>,
        now: Timestamp,
    ) -> Option<Html> {
        match self {
            Self::Overview => Some(overview::render(desk, now).await),
            Self::Lrp(guid) => lrp::render(desk, guid, now),
            Self::Task(guid) => task::render(desk, guid, now),
            Self::Jobs => Some(jobs::render(desk, now)),
            Self::Job(id) => job::render(desk, scheduler, id, now),
            Self::Runs(filter) => Some(runs::render(desk, filter, now)),
            Self::Run(id) => run::render(desk, scheduler, id, now).await,
        }
    }
}

impl LogOf {
    fn title(&self) -> String {
        match self {
            Self::Lrp(key) => format!("Log of {key}"),
            Self::Task(guid) => format!("Log of task {guid}"),
            Self::Run(id) => format!("Log of run {id}"),
        }
    }
}
