//! `GET /v1/events`

use hyper::header::HeaderName;
use kapell_api::v1::EventView;
use kapell_node::board::{EventId, Next};

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone, Pipe};
use super::super::desk::Watcher;
use super::super::query::bad;
use super::super::site::Tools;
use super::call::Call;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) fn events(call: &Call, tools: &Tools) -> Result<Answer, Box<Problem>> {
    // A browser that comes back sends the header, and the query that it began with.
    let header = call.headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let text = header.filter(|text| !text.is_empty()).or_else(|| call.query.get("after"));
    let wrong = |text: &str| bad(&format!("`{text}` is no id of an event"), "after");
    let after = text.map(|text| EventId::parse(text).ok_or_else(|| wrong(text))).transpose()?;
    let place = tools.stream()?;
    let watcher = call.desk.events(after);
    Ok(answer::event_stream(Body::fed(|pipe| async move {
        let _left = tell(&pipe, watcher).await;
        drop(place);
    })))
}

async fn tell(pipe: &Pipe, mut watcher: Box<dyn Watcher>) -> Result<(), Gone> {
    // At once, so that whoever listens knows that it is heard.
    pipe.send("retry: 1000\n\n").await?;
    while let Some(next) = pipe.meanwhile(watcher.next()).await? {
        pipe.send(frame(next)).await?;
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
