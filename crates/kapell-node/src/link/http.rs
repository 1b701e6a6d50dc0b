//! The links over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use kapell_api::client::{Client, Egress, EgressError, Error, Options};
use kapell_api::identity::{Identity, Subject, Trust};
use kapell_api::v1::{
    Cancel, CellRecords, RecordsWanted, ReportAnswer, SecretGiven, Stop, Welcome, Work, WorkAnswer,
};
use kapell_core::board::request::Report;
use kapell_core::board::secrets::Holder;
use kapell_core::board::{CellId, CellPresence, CellState, TaskGuid};
use kapell_core::causes::chain;
use kapell_core::log::Frame;
use kapell_core::seat::Epoch;

use super::{BoardLink, CellLink, LinkError};
use crate::board::{CallbackOutcome, Callbacks};
use crate::scheduler::cells::TaskLogs;

/// How long a callback may take.
const CALLBACK: Duration = Duration::from_secs(30);

impl From<Error> for LinkError {
    fn from(error: Error) -> Self {
        match error {
            Error::Problem { problem, .. } => Self::Refused(*problem),
            // Its text is for a person at a command line.
            Error::Unreachable { url, source } => {
                Self::NoAnswer(format!("nobody answers at {url}: {source}"))
            }
            error @ (Error::BadUrl { .. }
            | Error::BadToken
            | Error::Insecure { .. }
            | Error::Tls(_)
            | Error::NoAnswer { .. }
            | Error::Protocol { .. }) => Self::NoAnswer(chain(&error)),
        }
    }
}

/// A cell's way to the board, over whichever host leads.
#[derive(Debug, Clone)]
pub struct HttpBoard {
    urls: String,
    options: Options,
    client: Arc<RwLock<Client>>,
}

impl HttpBoard {
    /// `urls` are those of the hosts, with commas between them.
    ///
    /// The cell tries again by itself, so nobody waits here for a leader to be found.
    pub fn new(urls: &str, options: Options) -> Result<Self, Error> {
        let options = Options { patience: Duration::ZERO, ..options };
        let client = Client::new(urls, options.clone())?;
        Ok(Self { urls: urls.to_owned(), options, client: Arc::new(RwLock::new(client)) })
    }

    /// From now on new connections are made: those of before were made with another certificate.
    pub fn reconnect(&self) -> Result<(), Error> {
        let client = Client::new(&self.urls, self.options.clone())?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(())
    }

    /// What asks the hosts.
    pub fn client(&self) -> Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl BoardLink for HttpBoard {
    async fn present(&self, presence: &CellPresence) -> Result<Welcome, LinkError> {
        Ok(self.client().present(presence).await?)
    }

    async fn leave(&self, cell_id: &CellId) -> Result<(), LinkError> {
        Ok(self.client().leave(cell_id).await?)
    }

    async fn reports(
        &self,
        cell_id: &CellId,
        reports: &[Report],
    ) -> Result<Vec<ReportAnswer>, LinkError> {
        let answers = self.client().reports(cell_id, reports).await?;
        if answers.len() != reports.len() {
            let (sent, came) = (reports.len(), answers.len());
            return Err(LinkError::NoAnswer(format!("{sent} reports got {came} answers")));
        }
        Ok(answers)
    }

    async fn records(
        &self,
        cell_id: &CellId,
        wanted: &RecordsWanted,
    ) -> Result<CellRecords, LinkError> {
        Ok(self.client().records(cell_id, wanted).await?)
    }

    async fn secrets(
        &self,
        cell_id: &CellId,
        holder: &Holder,
    ) -> Result<Vec<SecretGiven>, LinkError> {
        Ok(self.client().take_secrets(cell_id, holder).await?)
    }
}

/// The leader's way to every cell.
#[derive(Debug)]
pub struct HttpCells {
    options: Options,
    /// How those are known that joined, and we by them.
    joined: Option<(Trust, Identity)>,
    /// By cell, where it was last said to be.
    clients: Mutex<BTreeMap<CellId, (String, Client)>>,
}

impl HttpCells {
    /// With `joined`, cells are known by their certificates where they speak TLS, and not shown the token.
    pub fn new(options: Options, joined: Option<(Trust, Identity)>) -> Self {
        // Whoever asks a cell decides itself when to ask again.
        let options = Options { patience: Duration::ZERO, ..options };
        Self { options, joined, clients: Mutex::default() }
    }

    /// From now on new connections are made: those of before were made with another certificate.
    pub fn reconnect(&self) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn options(&self, cell: &CellPresence) -> Result<Options, LinkError> {
        let options = self.options.clone();
        match &self.joined {
            Some((trust, identity)) if cell.url.starts_with("https://") => {
                let expected = Subject::Cell(cell.cell_id.clone());
                let tls = trust.client(expected, Some(identity));
                let tls = tls.map_err(|error| LinkError::NoAnswer(chain(&error)))?;
                Ok(Options { token: None, tls: Some(tls), ..options })
            }
            Some(_) | None => Ok(options),
        }
    }

    fn client(&self, cell: &CellPresence) -> Result<Client, LinkError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((url, client)) = clients.get(&cell.cell_id)
            && *url == cell.url
        {
            return Ok(client.clone());
        }
        let client = Client::new(&cell.url, self.options(cell)?)?;
        clients.insert(cell.cell_id.clone(), (cell.url.clone(), client.clone()));
        Ok(client)
    }
}

#[async_trait]
impl CellLink for HttpCells {
    async fn state(&self, cell: &CellPresence, epoch: Epoch) -> Result<CellState, LinkError> {
        Ok(self.client(cell)?.cell_state(epoch).await?)
    }

    async fn work(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        work: &Work,
    ) -> Result<WorkAnswer, LinkError> {
        Ok(self.client(cell)?.cell_work(epoch, work).await?)
    }

    async fn stop(&self, cell: &CellPresence, epoch: Epoch, stop: &Stop) -> Result<(), LinkError> {
        Ok(self.client(cell)?.cell_stop(epoch, stop).await?)
    }

    async fn cancel(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        cancel: &Cancel,
    ) -> Result<(), LinkError> {
        Ok(self.client(cell)?.cell_cancel(epoch, cancel).await?)
    }

    async fn evacuate(&self, cell: &CellPresence, epoch: Epoch) -> Result<(), LinkError> {
        Ok(self.client(cell)?.cell_evacuate(epoch).await?)
    }
}

#[async_trait]
impl TaskLogs for HttpCells {
    async fn read(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        task_guid: &TaskGuid,
        take: &mut (dyn FnMut(Frame) -> bool + Send),
    ) -> Result<(), String> {
        let client = self.client(cell).map_err(|error| error.to_string())?;
        let read = client.cell_task_logs(epoch, task_guid).await;
        let mut logs = match read {
            // It has nothing of it.
            Err(error) if error.is_not_found() => return Ok(()),
            read => read.map_err(|error| chain(&error))?,
        };
        while let Some(frame) = logs.next().await.map_err(|error| chain(&error))? {
            if !take(frame) {
                break;
            }
        }
        Ok(())
    }
}

/// The way out to those who want to be told that a task is complete.
#[derive(Debug, Clone)]
pub struct HttpCallbacks {
    egress: Egress,
}

impl HttpCallbacks {
    /// `ca` names whose certificates are trusted; without it, those that the system trusts.
    pub const fn new(ca: Option<PathBuf>) -> Self {
        Self { egress: Egress { ca, limit: CALLBACK } }
    }
}

#[async_trait]
impl Callbacks for HttpCallbacks {
    async fn call(&self, url: &str, body: &[u8]) -> CallbackOutcome {
        match self.egress.post_json(url, body.to_vec().into()).await {
            Ok(status) => CallbackOutcome::Answered(status.as_u16()),
            Err(
                error @ (EgressError::BadUrl(_)
                | EgressError::BadHeader(_)
                | EgressError::Forbidden { .. }),
            ) => CallbackOutcome::Refused(chain(&error)),
            Err(
                error @ (EgressError::Tls(_)
                | EgressError::Unreachable { .. }
                | EgressError::NoAnswer { .. }),
            ) => CallbackOutcome::NoAnswer(chain(&error)),
        }
    }
}
