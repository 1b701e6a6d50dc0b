//! Logs and programs, where they are: at the cells.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as HttpBody, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::request;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use kapell_api::v1::EPOCH;
use kapell_core::board::CellPresence;
use kapell_core::causes::chain;
use kapell_core::seat::Epoch;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::answer::Problem;
use super::super::body::BodyError;
use super::super::dial::{Target, dial};
use super::super::frames::PassedOn;
use super::super::place::Place;
use super::super::site::Tools;

/// The way to the cells.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) tools: Tools,
    slots: Arc<Semaphore>,
}

/// Bytes that a cell sends, with the connection that they come over.
#[derive(Debug)]
pub(super) struct Opened {
    body: Incoming,
    _connection: JoinSet<()>,
    _slot: OwnedSemaphorePermit,
}

impl Opened {
    /// The next bytes; none at the end. Nothing is lost if nobody waits any more.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, String>> {
        loop {
            match self.body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_trailers) => {}
                },
                Err(error) => return Some(Err(format!("the cell broke off: {}", chain(&error)))),
            }
        }
    }
}

impl Upstream {
    pub(super) fn new(tools: Tools) -> Self {
        let slots = Arc::new(Semaphore::new(tools.limits.forwards));
        Self { tools, slots }
    }

    /// Asks a cell; none if it has nothing there.
    pub(super) async fn open(
        &self,
        cell: &CellPresence,
        path: &str,
    ) -> Result<Option<Opened>, Box<Problem>> {
        let (status, opened) = self.ask(cell, Request::get(path), Empty::<Bytes>::new()).await?;
        match status {
            StatusCode::OK => Ok(Some(opened)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(silent(cell, &format!("it answers {status}"))),
        }
    }

    /// Has a cell run a program, and passes on what is sent for it.
    pub(super) async fn exec(
        &self,
        cell: &CellPresence,
        (path, epoch): (&str, Epoch),
        body: PassedOn,
    ) -> Result<Opened, Box<Problem>> {
        let (status, mut opened) =
            self.ask(cell, Request::post(path).header(EPOCH, epoch.0), body).await?;
        if status == StatusCode::OK {
            return Ok(opened);
        }
        let mut text = Vec::new();
        while let Some(Ok(bytes)) = opened.next().await {
            text.extend_from_slice(&bytes);
            if text.len() > self.tools.limits.body_bytes {
                break;
            }
        }
        match serde_json::from_slice::<kapell_api::v1::Problem>(&text) {
            Ok(problem) => Err(Problem::new(status, problem.code, problem.message).closing()),
            Err(_) => Err(silent(cell, &format!("it answers {status}"))),
        }
    }

    async fn ask<B>(
        &self,
        cell: &CellPresence,
        request: request::Builder,
        body: B,
    ) -> Result<(StatusCode, Opened), Box<Problem>>
    where
        B: HttpBody<Data: Send, Error: Into<BodyError>> + Send + Unpin + 'static,
    {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            let text = "too many logs are being read, or programs run";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text).passing());
        };
        let failed = |why: String| silent(cell, &why);
        let place = Place::parse(&cell.url).ok_or_else(|| failed("its address is none".into()))?;
        let target = Target::of(place).map_err(|why| failed(why.into()))?;
        let limits = &self.tools.limits;
        let late = || failed("it does not answer in time".into());
        let reach = self.tools.to_cell(&cell.cell_id, target.is_secure());
        let (trust, with_token) = reach.map_err(|error| failed(chain(&error)))?;
        let io = timeout(limits.connect, dial(trust.as_ref(), &target))
            .await
            .map_err(|_| late())?
            .map_err(|error| failed(chain(&error)))?;
        let (mut sender, driver) = http1::Builder::new()
            .max_buf_size(limits.head_bytes)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| failed(chain(&error)))?;
        let mut connection = JoinSet::new();
        connection.spawn(async move { drop(driver.await) });
        let mut request = request.header(HOST, target.authority());
        if with_token {
            let bearer = format!("Bearer {}", self.tools.token.as_str());
            request = request.header(AUTHORIZATION, bearer);
        }
        let request = request.body(body).map_err(|error| failed(chain(&error)))?;
        let answer = timeout(limits.stall, sender.send_request(request))
            .await
            .map_err(|_| late())?
            .map_err(|error| failed(chain(&error)))?;
        let (head, body) = answer.into_parts();
        Ok((head.status, Opened { body, _connection: connection, _slot: slot }))
    }
}

fn silent(cell: &CellPresence, why: &str) -> Box<Problem> {
    let text = format!("cell `{}` at {} gives no answer: {why}", cell.cell_id, cell.url);
    let problem = Problem::new(StatusCode::BAD_GATEWAY, "cell_unreachable", text);
    problem.details(json!({ "cell_id": cell.cell_id, "url": cell.url }))
}
