//! How to have a message sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kapell_core::board::{Domain, JobId, SecretName};
use kapell_core::constraint::delivery::Answer;
use kapell_core::constraint::lines::Pace;
use kapell_core::constraint::{Header, Place, Target};
use kapell_core::run::RunId;
use kapell_core::seams::{Clock, Ids};
use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use url::Url;

use super::keys::Keys;
use super::ledger::{Delivery, DeliveryState, Ledger};
use super::outbound::{Outbound, Sent};
use super::sign::Signer;
use super::worker::Worker;

/// The longest body.
const LONGEST: usize = 256 << 10;

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct Message {
    /// The same for the same message, however often it is asked for: `webhook-id`.
    pub webhook_id: String,
    pub job_id: JobId,
    pub run_id: RunId,
    /// Whose secrets it may use.
    pub domain: Domain,
    /// For people.
    pub what: String,
    pub target: Target,
    /// Filled in.
    pub body: Json,
    /// Keys of the body whose value is a secret.
    pub secret_fields: Vec<(&'static str, SecretName)>,
    pub hold: Hold,
}

/// What becomes of a message for which nobody waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is sent all the same.
    Keep,
    /// It is not sent any more.
    Withdraw,
}

/// There are too many messages already, or nobody sends any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("too many messages wait to be sent already")]
    Full,
    #[error("messages are not sent any more: this host is stopping")]
    Closed,
}

/// How a message ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    Delivered {
        status: u16,
    },
    /// The status is that of the last answer, if one came.
    GivenUp {
        status: Option<u16>,
        why: String,
    },
}

/// Waits for the end of a message.
#[derive(Debug)]
pub struct Ticket(oneshot::Receiver<Settled>);

impl Ticket {
    pub async fn settled(self) -> Settled {
        let gone = |_| Settled::GivenUp { status: None, why: Full::Closed.to_string() };
        self.0.await.unwrap_or_else(gone)
    }
}

/// A message with a number, on its way to the worker.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) number: u64,
    pub(super) message: Message,
    /// Scheme, host and port, or the name of the secret that holds them.
    pub(super) place: String,
    pub(super) attempts: u32,
    pub(super) told: oneshot::Sender<Settled>,
    /// Given back when the message is settled.
    _room: OwnedSemaphorePermit,
}

/// What handle and worker have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outbound: Arc<dyn Outbound>,
    pub(super) keys: Arc<dyn Keys>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    pub(super) ledger: Ledger,
    /// For messages that wait or are being sent.
    room: Arc<Semaphore>,
    numbers: AtomicU64,
}

/// Takes messages and lists them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handler {
    shared: Arc<Shared>,
    /// As long as there is room.
    inbox: mpsc::UnboundedSender<Post>,
}

impl Handler {
    /// A handler, and the worker that must be run for it.
    pub fn new(
        outbound: Arc<dyn Outbound>,
        keys: Arc<dyn Keys>,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn Ids>),
        pace: Pace,
    ) -> (Self, Worker) {
        let (inbox, posts) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(pace.waiting));
        let (ledger, numbers) = (Ledger::default(), AtomicU64::new(0));
        let shared = Arc::new(Shared { outbound, keys, clock, ids, ledger, room, numbers });
        let worker = Worker::new(Arc::clone(&shared), posts, pace);
        (Self { shared, inbox }, worker)
    }

    /// Puts a message into the queue.
    pub fn deliver(&self, message: Message) -> Result<Ticket, Full> {
        let (told, ticket) = oneshot::channel();
        if self.inbox.is_closed() {
            return Err(Full::Closed);
        }
        let room = Arc::clone(&self.shared.room).try_acquire_owned().map_err(|_| Full::Full)?;
        let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let place = place(&message.domain, &message.target.place);
        self.shared.ledger.add(Delivery {
            number,
            webhook_id: message.webhook_id.clone(),
            job_id: message.job_id.clone(),
            run_id: message.run_id.clone(),
            what: message.what.clone(),
            place: place.clone(),
            asked_at: self.shared.clock.wall(),
            attempts: 0,
            last_at: None,
            status: None,
            state: DeliveryState::Waiting,
            why: String::new(),
        });
        let post = Post { number, message, place, attempts: 0, told, _room: room };
        self.inbox.send(post).map_err(|_| Full::Closed)?;
        Ok(Ticket(ticket))
    }

    /// Asks a place once, now. An error is ours: nobody was asked.
    pub async fn ask(&self, domain: &Domain, target: &Target) -> Result<Answer, String> {
        match self.shared.prepare(domain, target, "", None, Vec::new()).await {
            Ok(sent) => Ok(self.shared.outbound.send(&Sent { follow: false, ..sent }).await),
            Err(Answer::None(why) | Answer::Refused(why)) => Err(why),
            Err(Answer::Status { status, .. }) => Err(format!("the answer was {status}")),
        }
    }

    /// The messages that are still known, the newest first.
    pub fn deliveries(&self, wanted: impl Fn(&Delivery) -> bool) -> Vec<Delivery> {
        self.shared.ledger.list(wanted)
    }
}

impl Shared {
    /// One call for a message, secrets put in.
    pub(super) async fn call(&self, message: &Message) -> Answer {
        let Message { domain, target, .. } = message;
        let mut body = message.body.clone();
        for (key, name) in &message.secret_fields {
            match self.secret(domain, name).await {
                Ok(secret) => body[*key] = secret.reveal().into(),
                Err(answer) => return answer,
            }
        }
        let bytes = match serde_json::to_vec(&body) {
            Ok(bytes) if bytes.len() <= LONGEST => bytes,
            Ok(bytes) => {
                return Answer::Refused(format!("the message is too long: {} bytes", bytes.len()));
            }
            Err(error) => {
                return Answer::Refused(format!("the message cannot be written: {error}"));
            }
        };
        let sent =
            self.prepare(domain, target, &message.webhook_id, target.secret.as_ref(), bytes).await;
        match sent {
            Ok(sent) => self.outbound.send(&sent).await,
            Err(answer) => answer,
        }
    }

    async fn secret(
        &self,
        domain: &Domain,
        name: &SecretName,
    ) -> Result<kapell_core::secret::Secret, Answer> {
        match self.keys.key(domain, name).await {
            Ok(Ok(secret)) => Ok(secret),
            Ok(Err(why)) => Err(Answer::Refused(why)),
            Err(why) => Err(Answer::None(why)),
        }
    }

    async fn prepare(
        &self,
        domain: &Domain,
        target: &Target,
        webhook_id: &str,
        key: Option<&SecretName>,
        body: Vec<u8>,
    ) -> Result<Sent, Answer> {
        let url = match &target.place {
            Place::Url(url) => url.clone(),
            Place::Secret(name) => self.secret(domain, name).await?.reveal().trim().to_owned(),
        };
        let mut headers = vec![("user-agent".to_owned(), "kapell".to_owned())];
        let mut private = Vec::new();
        for (name, header) in &target.headers {
            let text = match header {
                Header::Text(text) => text.clone(),
                Header::Secret(secret) => self.secret(domain, secret).await?.reveal().to_owned(),
            };
            private.push((name.to_ascii_lowercase(), text));
        }
        if !body.is_empty() && !private.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if !webhook_id.is_empty() {
            let seconds = self.clock.wall().0.div_euclid(1000);
            headers.push(("webhook-id".to_owned(), webhook_id.to_owned()));
            headers.push(("webhook-timestamp".to_owned(), seconds.to_string()));
            if let Some(name) = key {
                let signer = Signer::new(&self.secret(domain, name).await?);
                let signer = signer
                    .map_err(|error| Answer::Refused(format!("secret \"{name}\": {error}")))?;
                let signature = signer.sign(webhook_id, seconds, &body);
                headers.push(("webhook-signature".to_owned(), signature));
            }
        }
        let (method, limit) = (target.method, target.timeout);
        Ok(Sent { method, url, headers, private, body: body.into(), limit, follow: true })
    }
}

/// The line in which a message waits.
fn place(domain: &Domain, place: &Place) -> String {
    match place {
        Place::Url(url) => Url::parse(url)
            .map_or_else(|_| "no URL".to_owned(), |url| url.origin().ascii_serialization()),
        Place::Secret(name) => format!("secret {domain}/{name}"),
    }
}
