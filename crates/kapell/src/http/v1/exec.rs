//! `POST …/exec`: passes on what goes between a program in a container and whoever wants it.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use kapell_node::cell::LogOf;

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone};
use super::super::frames::Frames;
use super::call::{Call, intend_process, intend_task};
use super::logs::LogSource;
use super::upstream::Upstream;

pub(super) async fn answer(
    call: Call,
    source: &LogSource,
    upstream: &Arc<Upstream>,
) -> Result<Answer, Box<Problem>> {
    if !source.is_seen(&call) {
        return Err(source.missing());
    }
    let place = upstream.tools.stream()?;
    let Some(presence) = source.current_cells(&*call.desk).into_iter().next() else {
        let text = "it runs on no cell now";
        return Err(Problem::new(StatusCode::CONFLICT, "not_running", text).closing());
    };
    let path = match source.of() {
        LogOf::Lrp(key) => format!("/v1/cell/exec/lrp/{}/{}", key.process_guid, key.index),
        LogOf::Task(guid) => format!("/v1/cell/exec/task/{guid}"),
    };
    let (wanted, frames, came) =
        Frames::start(call.payload.body, upstream.tools.limits.stall).await?;
    // Not its arguments nor its variables, which may be secrets.
    call.note.about("program", &wanted.path);
    match source {
        LogSource::Lrp(key) => intend_process(&call.note, &*call.desk, &key.process_guid).await?,
        LogSource::Task(guid) => intend_task(&call.note, &*call.desk, guid).await?,
    }
    let mut opened =
        upstream.exec(&presence, (&path, call.desk.epoch()), frames.passed_on(came)).await?;
    let kind = HeaderValue::from_static("application/octet-stream");
    let body = Body::fed(move |pipe| async move {
        let pass = async {
            while let Some(bytes) = pipe.meanwhile_if(false, opened.next()).await? {
                match bytes {
                    Ok(bytes) => pipe.send(bytes).await?,
                    Err(why) => {
                        pipe.break_off(why).await;
                        return Err(Gone);
                    }
                }
            }
            Ok(())
        };
        let _left: Result<(), Gone> = pass.await;
        drop(place);
    });
    Ok(answer::stream(kind, body))
}
