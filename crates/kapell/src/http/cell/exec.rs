//! `POST /v1/cell/exec/…`: a program beside those of a container, for as long as somebody wants it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use kapell_api::v1::{ExecEnd, ExecWanted};
use kapell_backend::containers::{Error, Exec, Session};
use kapell_core::causes::chain;
use kapell_core::exec::{Decoder, Kind, encode};
use kapell_node::cell::LogOf;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone, Pipe};
use super::super::site::Tools;
use super::follow::is_id;
use super::rep::Rep;

/// How much is read at once.
const PIECE: usize = 16 * 1024;

pub(super) async fn exec(
    rep: Arc<dyn Rep>,
    of: LogOf,
    body: Incoming,
    tools: &Tools,
) -> Result<Answer, Box<Problem>> {
    if !is_id(&of) {
        return Err(refused(&Error::Unknown(of.to_string())));
    }
    let place = tools.stream()?;
    let mut input = Input { body, decoder: Decoder::default() };
    let wanted = input.start(tools.limits.stall).await?;
    let env = wanted.env.into_iter().map(|each| (each.name, each.value)).collect();
    let exec = Exec { path: wanted.path, args: wanted.args, env };
    let session = rep.exec(&of, exec).await.map_err(|error| refused(&error))?;
    let kind = HeaderValue::from_static("application/octet-stream");
    let body = Body::fed(move |pipe| async move {
        let _left: Result<(), Gone> = talk(session, input, &pipe).await;
        drop(place);
    });
    Ok(answer::stream(kind, body))
}

fn refused(error: &Error) -> Box<Problem> {
    let (status, code) = match error {
        Error::Unknown(_) => (StatusCode::NOT_FOUND, "not_found"),
        Error::Unstartable(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unstartable"),
        Error::Io { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
    };
    Problem::new(status, code, chain(error)).closing()
}

/// What whoever wants it sends.
struct Input {
    body: Incoming,
    decoder: Decoder,
}

impl Input {
    /// What to run, which comes first.
    async fn start(&mut self, stall: Duration) -> Result<ExecWanted, Box<Problem>> {
        let bad = |why: &str| {
            let text = format!("the first frame must say what to run: {why}");
            Problem::new(StatusCode::BAD_REQUEST, "bad_body", text).closing()
        };
        match timeout(stall, self.next()).await {
            Ok(Ok(Some((Kind::Start, json)))) => {
                serde_json::from_slice(&json).map_err(|error| bad(&error.to_string()))
            }
            Ok(Ok(Some(_))) => Err(bad("it is another one")),
            Ok(Ok(None)) => Err(bad("there is none")),
            Ok(Err(error)) => Err(bad(&error.to_string())),
            Err(_) => Err(bad("it does not come")),
        }
    }

    /// None when all has come; an error if whoever sends it is gone.
    async fn next(&mut self) -> io::Result<Option<(Kind, Vec<u8>)>> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.decoder.push(bytes);
                    }
                }
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(None),
            }
        }
    }

    /// Passes on what is for the program. Returns when whoever sends it is gone.
    async fn pass(mut self, stdin: Box<dyn AsyncWrite + Send + Unpin>) {
        let mut stdin = Some(stdin);
        loop {
            match self.next().await {
                Ok(Some((Kind::Input, bytes))) => {
                    let open = stdin.take().filter(|_| !bytes.is_empty());
                    if let Some(mut open) = open
                        && open.write_all(&bytes).await.is_ok()
                    {
                        stdin = Some(open);
                    }
                }
                Ok(Some((Kind::Start | Kind::Out | Kind::Err | Kind::End, _))) | Err(_) => return,
                Ok(None) => {
                    drop(stdin.take());
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

async fn talk(session: Session, input: Input, pipe: &Pipe) -> Result<(), Gone> {
    let Session { stdin, stdout, stderr, ended } = session;
    let run = async {
        let (out, err) = tokio::join!(copy(stdout, Kind::Out, pipe), copy(stderr, Kind::Err, pipe));
        out.and(err)?;
        let end = match ended.await {
            Ok(exit) => ExecEnd { code: exit.code, signal: exit.signal, trouble: exit.trouble },
            Err(error) => ExecEnd { code: None, signal: None, trouble: Some(chain(&error)) },
        };
        // Our types have text keys only, so this cannot fail.
        let json = serde_json::to_vec(&end).unwrap_or_default();
        pipe.send(encode(Kind::End, &json)).await
    };
    // Whatever is dropped here while it runs is killed.
    let both = async {
        tokio::select! {
            biased;
            done = run => done,
            () = input.pass(stdin) => Err(Gone),
        }
    };
    pipe.meanwhile_if(false, both).await?
}

async fn copy(
    mut from: Box<dyn AsyncRead + Send + Unpin>,
    kind: Kind,
    pipe: &Pipe,
) -> Result<(), Gone> {
    let mut bytes = vec![0; PIECE];
    loop {
        match from.read(&mut bytes).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(length) => pipe.send(encode(kind, &bytes[..length])).await?,
        }
    }
}
