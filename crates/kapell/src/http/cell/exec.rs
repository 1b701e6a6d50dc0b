//! `POST /v1/cell/exec/…`: a program beside those of a container, for as long as somebody wants it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use kapell_api::v1::ExecEnd;
use kapell_backend::containers::{Error, Exec, Session};
use kapell_core::causes::chain;
use kapell_core::exec::{Kind, Size, encode};
use kapell_node::cell::LogOf;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;

use super::super::answer::{self, Answer, Problem};
use super::super::body::{Body, Gone, Pipe};
use super::super::frames::Frames;
use super::super::site::Tools;
use super::follow::is_id;
use super::rep::Rep;

/// How much is read at once.
const PIECE: usize = 16 * 1024;
/// How often it is said that the way is still open: only who writes learns that nobody reads.
const BEAT: Duration = Duration::from_secs(15);

pub(super) async fn exec(
    rep: Arc<dyn Rep>,
    of: LogOf,
    body: Incoming,
    tools: &Tools,
) -> Result<Answer, Box<Problem>> {
    if !is_id(&of) {
        return Err(refused(&Error::Unknown(of.to_string())));
    }
    let place = tools.exec()?;
    let (wanted, input, _) = Frames::start(body, tools.limits.stall).await?;
    let env = wanted.env.into_iter().map(|each| (each.name, each.value)).collect();
    let (path, args, terminal) = (wanted.path, wanted.args, wanted.terminal);
    let exec = Exec { path, args, env, terminal };
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
        Error::Absent(_) => (StatusCode::UNPROCESSABLE_ENTITY, "program_not_found"),
        Error::Unstartable(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unstartable"),
        Error::Io { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
    };
    Problem::new(status, code, chain(error)).closing()
}

/// Passes on what is for the program. Returns when whoever sends it is gone.
async fn pass(
    mut input: Frames,
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    resize: Option<Box<dyn Fn(Size) + Send + Sync>>,
) {
    let mut stdin = Some(stdin);
    loop {
        match input.next().await {
            Ok(Some((Kind::Input, bytes))) if bytes.is_empty() => close(stdin.take()).await,
            Ok(Some((Kind::Input, bytes))) => {
                if let Some(mut open) = stdin.take()
                    && open.write_all(&bytes).await.is_ok()
                {
                    stdin = Some(open);
                }
            }
            Ok(Some((Kind::Resize, bytes))) => {
                if let (Some(resize), Some(size)) = (&resize, Size::from_bytes(&bytes)) {
                    resize(size);
                }
            }
            Ok(Some((Kind::Start | Kind::Out | Kind::Err | Kind::End, _))) | Err(_) => return,
            Ok(None) => {
                close(stdin.take()).await;
                std::future::pending::<()>().await;
            }
        }
    }
}

async fn close(stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>) {
    if let Some(mut stdin) = stdin {
        // Who reads no more needs no end.
        let _ended = stdin.shutdown().await;
    }
}

async fn talk(session: Session, input: Frames, pipe: &Pipe) -> Result<(), Gone> {
    let Session { stdin, stdout, stderr, resize, ended } = session;
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
    let all = async {
        tokio::select! {
            biased;
            done = run => done,
            () = pass(input, stdin, resize) => Err(Gone),
            Err(gone) = beat(pipe) => Err(gone),
        }
    };
    pipe.meanwhile_if(false, all).await?
}

async fn beat(pipe: &Pipe) -> Result<Infallible, Gone> {
    loop {
        sleep(BEAT).await;
        pipe.send(encode(Kind::Out, b"")).await?;
    }
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
