//! A connection that is kept, and requests that are written down before anything is measured.

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One connection to a host.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    answer: Vec<u8>,
}

/// Where a host is, and what it wants to see.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Place {
    pub(crate) fn request(&self, line: &str, body: &str) -> Vec<u8> {
        let Self { address, token } = self;
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{kind}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

impl Wire {
    pub(crate) async fn open(place: &Place) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(&place.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer: Vec::new() })
    }

    /// Sends a request and gives back the body of the answer, which must be a success.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.answer.clear();
        let (head, length) = loop {
            let read = self.stream.read_buf(&mut self.answer).await?;
            ensure!(read > 0, "the connection was closed");
            if let Some(found) = whole(&self.answer)? {
                break found;
            }
        };
        let answer = &self.answer;
        ensure!(
            answer.starts_with(b"HTTP/1.1 200 "),
            "{}",
            String::from_utf8_lossy(&answer[..answer.len().min(2000)])
        );
        Ok(&self.answer[head..head + length])
    }
}

/// Where the body begins and how long it is, once all of it is there.
fn whole(answer: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let Some(end) = answer.windows(4).position(|it| it == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&answer[..end])?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim())
    });
    let length: usize = length.context("a length")?.parse()?;
    let begin = end + 4;
    Ok((answer.len() >= begin + length).then_some((begin, length)))
}
