//! `GET /v1/events`

use std::sync::Arc;

use hyper::header::HeaderName;
use kapell_api::v1::EventView;
use kapell_core::access::Who;
use kapell_core::board::Event;
use kapell_node::board::{EventId, Next};

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone, Pipe};
use super::super::desk::{Desk, Watcher};
use super::super::query::bad;
use super::super::site::Tools;
use super::call::{Call, domain_of_process, sees};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) fn events(call: &Call, tools: &Tools) -> Result<Answer, Box<Problem>> {
    // A browser that comes back sends the header, and the query that it began with.
    let header = call.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let text = header.filter(|text| !text.is_empty()).or_else(|| call.query.get("after"));
    let wrong = |text: &str| bad(&format!("`{text}` is no id of an event"), "after");
    let after = text.map(|text| EventId::parse(text).ok_or_else(|| wrong(text))).transpose()?;
    let place = tools.stream()?;
    let watcher = call.desk.events(after);
    let reader = Reader::of(call);
    Ok(answer::event_stream(Body::fed(|pipe| async move {
        let _left = tell(&pipe, watcher, &reader).await;
        drop(place);
    })))
}

/// Who is told of events.
struct Reader {
    who: Arc<Who>,
    desk: Arc<dyn Desk>,
}

impl Reader {
    fn of(call: &Call) -> Self {
        Self { who: Arc::clone(&call.who), desk: Arc::clone(&call.desk) }
    }

    /// Whether it is about something that is there for the reader. What is of no domain is for those who have all.
    fn sees(&self, next: &Next) -> bool {
        if self.who.domains.is_all() {
            return true;
        }
        let domain = match next {
            // It tells nothing but that something was missed.
            Next::Gap(_) => return true,
            Next::Event(_, event) => match &**event {
                Event::DesiredLrp(change) => change.latest().map(|lrp| lrp.domain.clone()),
                Event::ActualLrp(change) => change.latest().map(|lrp| lrp.domain.clone()),
                Event::ActualLrpCrashed(crash) => {
                    domain_of_process(&*self.desk, &crash.process_guid)
                }
                Event::Task(change) => change.latest().map(|task| task.definition.domain.clone()),
                Event::Domain(change) => change.latest().map(|it| it.domain.clone()),
                Event::Job(change) => change.latest().map(|job| job.domain.clone()),
                Event::Run(change) => change.latest().map(|run| run.domain.clone()),
                Event::Cell { .. } => None,
            },
        };
        domain.is_some_and(|domain| sees(&self.who, &domain))
    }
}

async fn tell(pipe: &Pipe, mut watcher: Box<dyn Watcher>, reader: &Reader) -> Result<(), Gone> {
    // At once, so that whoever listens knows that it is heard.
    pipe.send("retry: 1000\n\n").await?;
    while let Some(next) = pipe.meanwhile(watcher.next()).await? {
        if reader.sees(&next) {
            pipe.send(frame(next)).await?;
        }
    }
    Ok(())
}

pub(super) fn frame(next: Next) -> String {
    let view = match next {
        Next::Event(id, event) => {
            let name = event.name().to_owned();
            EventView { id: id.to_string(), name, event: Some((*event).clone()) }
        }
        Next::Gap(id) => EventView { id: id.to_string(), name: "gap".to_owned(), event: None },
    };
    let data = serde_json::to_string(&view).unwrap_or_else(|_| "{}".to_owned());
    format!("id: {}\nevent: {}\ndata: {data}\n\n", view.id, view.name)
}
