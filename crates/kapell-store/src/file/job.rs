//! What callers ask of the writer.

use std::fmt;

use tokio::sync::oneshot;

use super::desk::Desk;
use crate::error::Error;

/// A question that is decided at once and answered when all it rests on is on disk.
pub(super) trait Job: Send {
    /// What it is called in messages.
    fn call(&self) -> &'static str;

    /// At most how many bytes it adds to a group; none if it only reads.
    fn bound(&self) -> usize;

    fn decide(&mut self, desk: &mut Desk);

    /// Answers with what was decided, or with the error.
    fn answer(self: Box<Self>, outcome: Result<(), Error>);
}

impl fmt::Debug for dyn Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.call())
    }
}

struct Asked<T, F> {
    call: &'static str,
    bound: usize,
    decide: Option<F>,
    decided: Option<T>,
    reply: oneshot::Sender<Result<T, Error>>,
}

/// Makes a job and the end at which its answer comes out.
pub(super) fn ask<T, F>(
    call: &'static str,
    bound: usize,
    decide: F,
) -> (Box<dyn Job>, oneshot::Receiver<Result<T, Error>>)
where
    T: Send + 'static,
    F: FnOnce(&mut Desk) -> T + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Asked { call, bound, decide: Some(decide), decided: None, reply }), answer)
}

impl<T, F> Job for Asked<T, F>
where
    T: Send,
    F: FnOnce(&mut Desk) -> T + Send,
{
    fn call(&self) -> &'static str {
        self.call
    }

    fn bound(&self) -> usize {
        self.bound
    }

    fn decide(&mut self, desk: &mut Desk) {
        self.decided = self.decide.take().map(|decide| decide(desk));
    }

    fn answer(self: Box<Self>, outcome: Result<(), Error>) {
        // Nobody to answer: whoever asked has given up.
        drop(match (outcome, self.decided) {
            (Ok(()), Some(decided)) => self.reply.send(Ok(decided)),
            (Ok(()), None) => return,
            (Err(error), _) => self.reply.send(Err(error)),
        });
    }
}
