//! Logs and programs, where they are: at cells, and at the hosts that led.

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

/// Somebody who is asked.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Peer<'a> {
    Cell(&'a CellPresence),
    /// Another host, by its address.
    Host(&'a str),
}

impl Peer<'_> {
    fn address(&self) -> &str {
        match self {
            Peer::Cell(cell) => &cell.url,
            Peer::Host(address) => address,
        }
    }

    fn silent(&self, why: &str) -> Box<Problem> {
        match self {
            Peer::Cell(cell) => {
                let (id, url) = (&cell.cell_id, &cell.url);
                let text = format!("cell `{id}` at {url} gives no answer: {why}");
                let problem = Problem::new(StatusCode::BAD_GATEWAY, "cell_unreachable", text);
                problem.details(json!({ "cell_id": id, "url": url }))
            }
            Peer::Host(address) => {
                let text = format!("host {address} gives no answer: {why}");
                let problem = Problem::new(StatusCode::BAD_GATEWAY, "host_unreachable", text);
                problem.details(json!({ "address": address }))
            }
        }
    }
}

/// The way to cells and to other hosts.
#[derive(Debug)]
pub(in super::super) struct Upstream {
    pub(super) tools: Tools,
    slots: Arc<Semaphore>,
}

/// Bytes that a cell sends, with the connection that they come over.
#[derive(Debug)]
pub(in super::super) struct Opened {
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
                Err(error) => {
                    return Some(Err(format!("the other end broke off: {}", chain(&error))));
                }
            }
        }
    }

    /// All of it, if it is not too long.
    async fn whole(&mut self, most: usize) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        while let Some(bytes) = self.next().await {
            text.extend_from_slice(&bytes?);
            if text.len() > most {
                return Err("its answer is too long".to_owned());
            }
        }
        Ok(text)
    }
}

impl Upstream {
    pub(in super::super) fn new(tools: Tools) -> Self {
        let slots = Arc::new(Semaphore::new(tools.limits.forwards));
        Self { tools, slots }
    }

    /// Asks for something; none if there is nothing.
    pub(super) async fn open(
        &self,
        peer: Peer<'_>,
        path: &str,
    ) -> Result<Option<Opened>, Box<Problem>> {
        let (status, opened) = self.ask(peer, Request::get(path), Empty::<Bytes>::new()).await?;
        match status {
            StatusCode::OK => Ok(Some(opened)),
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(peer.silent(&format!("it answers {status}"))),
        }
    }

    /// Asks for something, and waits for all of a short answer.
    pub(in super::super) async fn fetch(
        &self,
        peer: Peer<'_>,
        path: &str,
        most: usize,
    ) -> Result<Vec<u8>, Box<Problem>> {
        let opened = self.open(peer, path).await?;
        let mut opened = opened.ok_or_else(|| peer.silent("it does not know that question"))?;
        let answer = timeout(self.tools.limits.stall, opened.whole(most)).await;
        let late = || Err("it does not answer in time".to_owned());
        answer.unwrap_or_else(|_| late()).map_err(|why| peer.silent(&why))
    }

    /// Has a cell run a program, and passes on what is sent for it.
    pub(super) async fn exec(
        &self,
        cell: &CellPresence,
        (path, epoch): (&str, Epoch),
        body: PassedOn,
    ) -> Result<Opened, Box<Problem>> {
        let peer = Peer::Cell(cell);
        let request = Request::post(path).header(EPOCH, epoch.0);
        let (status, mut opened) = self.ask(peer, request, body).await?;
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
            Err(_) => Err(peer.silent(&format!("it answers {status}"))),
        }
    }

    async fn ask<B>(
        &self,
        peer: Peer<'_>,
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
        let failed = |why: String| peer.silent(&why);
        let place = Place::parse(peer.address());
        let place = place.ok_or_else(|| failed("its address is none".into()))?;
        let target = Target::of(place).map_err(|why| failed(why.into()))?;
        let limits = &self.tools.limits;
        let late = || failed("it does not answer in time".into());
        let (trust, with_token) = match peer {
            Peer::Cell(cell) => {
                let reach = self.tools.to_cell(&cell.cell_id, target.is_secure());
                reach.map_err(|error| failed(chain(&error)))?
            }
            Peer::Host(_) => (self.tools.trust.clone(), true),
        };
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
