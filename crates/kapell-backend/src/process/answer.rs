//! What a shim says when it has started its program, or has not.

use std::io;
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::Receiver;

use super::trouble::{Failure, Stage};
use super::words;

/// What a shim says of its program.
#[derive(Debug)]
pub(crate) enum Answer {
    Runs,
    Failed(Failure),
    /// It was killed before it could say anything.
    Nothing,
}

pub(crate) async fn listen(status: OwnedFd) -> Answer {
    let mut told = Vec::new();
    let Ok(pipe) = Receiver::from_owned_fd(status) else { return Answer::Nothing };
    loop {
        let mut part = [0; 64];
        match pipe.try_read(&mut part) {
            Ok(0) => break,
            Ok(length) => told.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if pipe.readable().await.is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    match told[..] {
        [b'R', ..] => Answer::Runs,
        [b'F', stage, a, b, c, d, ref words @ ..] => {
            Stage::from_byte(stage).map_or(Answer::Nothing, |stage| {
                let words = words::clean(words);
                Answer::Failed(Failure { stage, errno: i32::from_be_bytes([a, b, c, d]), words })
            })
        }
        _ => Answer::Nothing,
    }
}
