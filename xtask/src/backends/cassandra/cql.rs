//! As much of Cassandra's own protocol (version 4) as it takes to log in and to run a statement.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::error::{Error, Result, failed};

const VERSION: u8 = 4;
const ANSWER: u8 = 0x80 | VERSION;
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer answers are none that we ask for.
const LONGEST: usize = 1 << 20;

const FAILED: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const AUTHENTICATE: u8 = 0x03;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
const LOGIN: u8 = 0x0f;
const WELCOME: u8 = 0x10;
const ONE: u16 = 1;

/// A connection whose user the server knows.
#[derive(Debug)]
pub(super) struct Line(TcpStream);

impl Line {
    pub(super) fn open(place: &str, (user, password): (&str, &str)) -> Result<Self> {
        let place: SocketAddr =
            place.parse().map_err(|error| failed(format!("`{place}`: {error}")))?;
        let stream = TcpStream::connect_timeout(&place, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = Self(stream);
        let startup = [&[0, 1][..], &text("CQL_VERSION"), &text("3.0.0")].concat();
        match line.turn(STARTUP, &startup)? {
            (READY, _) => return Ok(line),
            (AUTHENTICATE, _) => {}
            (other, body) => return Err(refusal(other, &body)),
        }
        let login = format!("\0{user}\0{password}");
        match line.turn(LOGIN, &sized(login.as_bytes()))? {
            (WELCOME, _) => Ok(line),
            (other, body) => Err(refusal(other, &body)),
        }
    }

    pub(super) fn ask(&mut self, statement: &str) -> Result<()> {
        self.rows(statement).map(drop)
    }

    /// The answer as the server encodes it.
    pub(super) fn rows(&mut self, statement: &str) -> Result<Vec<u8>> {
        let body = [&sized(statement.as_bytes())[..], &ONE.to_be_bytes(), &[0]].concat();
        match self.turn(QUERY, &body)? {
            (RESULT, rows) => Ok(rows),
            (other, body) => Err(refusal(other, &body)),
        }
    }

    /// Sends one message and reads one.
    fn turn(&mut self, kind: u8, body: &[u8]) -> Result<(u8, Vec<u8>)> {
        let head = [VERSION, 0, 0, 0, kind];
        self.0.write_all(&[&head[..], &sized(body)].concat())?;
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let [version, _, _, _, kind, length @ ..] = head;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if version != ANSWER || length > LONGEST {
            return Err(failed("this is no Cassandra"));
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((kind, body))
    }
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), bytes].concat()
}

fn refusal(kind: u8, body: &[u8]) -> Error {
    if kind != FAILED {
        return failed(format!("an answer of kind {kind} that was not expected"));
    }
    // A code and a length stand before the text.
    let told = body.get(6..).unwrap_or_default();
    failed(String::from_utf8_lossy(told).into_owned())
}
