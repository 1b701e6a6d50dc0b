//! Connections that wait for work.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::Row;

use crate::error::Error;

use super::fault;
use super::query::Query;
use super::session::{Door, Params, Session};

/// How many calls that elections make may be under way at a time, beside those of shards: a
/// renewal does not queue behind commits.
const ELECTION_LANES: usize = 2;

/// Lends each call a connection of its own. Nothing queues inside a connection, so what a caller
/// gave up before it was sent never is sent.
pub(super) struct Pool {
    door: Door,
    elections: Semaphore,
    shards: Semaphore,
    idle: Mutex<Vec<Session>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Lane {
    Elections,
    Shards,
}

impl Pool {
    pub(super) fn new(door: Door, first: Session) -> Self {
        Self {
            elections: Semaphore::new(ELECTION_LANES),
            shards: Semaphore::new(door.target.pool),
            idle: Mutex::new(vec![first]),
            door,
        }
    }

    pub(super) const fn door(&self) -> &Door {
        &self.door
    }

    /// Asks once. A caller that goes away takes the connection with it: nobody is handed one that
    /// still owes an answer to someone else.
    pub(super) async fn ask(
        &self,
        lane: Lane,
        query: Query,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        let work = self.ask_at_leisure(lane, query, params);
        let answer = self.door.within(query.call(), work).await;
        if let Err(Error::Timeout { .. }) = answer {
            self.forget_idle();
        }
        answer
    }

    async fn ask_at_leisure(
        &self,
        lane: Lane,
        query: Query,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        let (_permit, session) = self.lend(lane).await?;
        let answer = session.ask(query, params).await;
        if answer.as_ref().err().is_none_or(fault::is_survived) {
            self.keep(session);
        } else {
            self.forget_idle();
        }
        answer.map_err(|error| self.door.fault(error, query.call()))
    }

    /// Makes sure that the next call finds a connection.
    pub(super) async fn warm(&self, lane: Lane) -> Result<(), Error> {
        let warmed = async {
            let (_permit, session) = self.lend(lane).await?;
            self.keep(session);
            Ok(())
        };
        self.door.within("prepare", warmed).await
    }

    /// A closed connection was never asked anything, so that another takes its place is safe.
    async fn lend(&self, lane: Lane) -> Result<(Option<SemaphorePermit<'_>>, Session), Error> {
        // Nobody closes the lanes, so there always is a permit.
        let permit = self.lane(lane).acquire().await.ok();
        let session = match self.take_idle() {
            Some(session) => session,
            // On the heap, so that calls that find one do not carry what connecting takes.
            None => Box::pin(self.door.session()).await?,
        };
        Ok((permit, session))
    }

    const fn lane(&self, lane: Lane) -> &Semaphore {
        match lane {
            Lane::Elections => &self.elections,
            Lane::Shards => &self.shards,
        }
    }

    fn take_idle(&self) -> Option<Session> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|session| !session.is_closed());
        idle.pop()
    }

    fn keep(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    /// Where one connection broke, the others are likely to be broken too, noticed or not.
    fn forget_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
