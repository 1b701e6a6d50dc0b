//! How to have a message sent.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kapell_core::board::{Domain, JobId, SecretName};
use kapell_core::constraint::delivery::Answer;
use kapell_core::constraint::lines::{Pace, Shares};
use kapell_core::constraint::outgoing::LARGEST;
use kapell_core::constraint::{Header, Outgoing, Place, Target};
use kapell_core::job::ActionId;
use kapell_core::run::RunId;
use kapell_core::seams::{Clock, Ids, Timestamp};
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};
use url::Url;

use super::keys::Keys;
use super::ledger::{Delivery, DeliveryState, Ledger};
use super::outbound::{Outbound, Sent};
use super::outbox::Outbox;
use super::sign::Signer;
use super::worker::Worker;

/// The longest body.
const LONGEST: usize = LARGEST;

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
    pub secret_fields: Vec<(String, SecretName)>,
    pub hold: Hold,
}

/// What becomes of a message for which nobody waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is sent all the same.
    Keep,
    /// It is not sent any more.
    Withdraw,
    /// It is sent all the same, by whoever leads next if need be.
    Outlive(ActionId),
}

/// There are too many messages already, or nobody sends any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("too many messages of its domain wait to be sent already")]
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
    /// Whoever waits for it to be kept.
    pub(super) kept: Option<oneshot::Sender<Result<(), String>>>,
    pub(super) asked_at: Timestamp,
    /// Given back when the message is settled.
    _room: Room,
}

/// The room that a message takes.
#[derive(Debug)]
struct Room {
    shared: Arc<Shared>,
    domain: Domain,
    outlives: Option<ActionId>,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.shares.give_back(&self.domain);
        if let Some(id) = self.outlives {
            queue.outliving.remove(&id);
        }
    }
}

/// Who waits.
#[derive(Debug, Default)]
struct Queue {
    shares: Shares,
    /// Messages that are kept, or are about to be.
    outliving: BTreeSet<ActionId>,
}

/// What handle and worker have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outbound: Arc<dyn Outbound>,
    pub(super) keys: Arc<dyn Keys>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    pub(super) ledger: Ledger,
    pub(super) outbox: Arc<dyn Outbox>,
    queue: Mutex<Queue>,
    /// So many messages wait or are being sent, in all.
    most: usize,
    numbers: AtomicU64,
}

/// What a handler is made of.
#[derive(Debug)]
pub struct Parts {
    pub outbound: Arc<dyn Outbound>,
    pub keys: Arc<dyn Keys>,
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
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
    pub fn new(parts: Parts, pace: Pace) -> (Self, Worker) {
        let Parts { outbound, keys, outbox, clock, ids } = parts;
        let (inbox, posts) = mpsc::unbounded_channel();
        let (ledger, numbers) = (Ledger::default(), AtomicU64::new(0));
        let (queue, most) = (Mutex::default(), pace.waiting);
        let shared =
            Arc::new(Shared { outbound, keys, clock, ids, ledger, outbox, queue, most, numbers });
        let worker = Worker::new(Arc::clone(&shared), posts, pace);
        (Self { shared, inbox }, worker)
    }

    /// Puts a message into the queue.
    pub fn deliver(&self, message: Message) -> Result<Ticket, Full> {
        let room = self.room(&message).ok_or(Full::Full)?;
        self.put(message, room, None, self.shared.clock.wall())
    }

    /// Has a message sent whatever becomes of this host: answers when it is on disk. The same again is as good as done.
    pub async fn entrust(&self, message: Message) -> Result<(), String> {
        if let Hold::Outlive(id) = message.hold
            && self.shared.queue().outliving.contains(&id)
        {
            return Ok(());
        }
        let room = self.room(&message).ok_or_else(|| Full::Full.to_string())?;
        let (kept, answer) = oneshot::channel();
        let put = self.put(message, room, Some(kept), self.shared.clock.wall());
        drop(put.map_err(|full| full.to_string())?);
        answer.await.unwrap_or_else(|_| Err(Full::Closed.to_string()))
    }

    /// Has a message sent that another leader has kept.
    pub fn resume(&self, kept: Outgoing) {
        let (target, hold) = (kept.target(), Hold::Outlive(kept.id));
        let Outgoing { job_id, id, run_id, domain, what, body, secret_fields, asked_at, .. } = kept;
        let message = Message {
            webhook_id: webhook_id(id),
            job_id,
            run_id,
            domain,
            what,
            target,
            body,
            secret_fields,
            hold,
        };
        let room = self.take_room(&message, |shares, domain| {
            shares.add(domain);
            true
        });
        // Whoever stops sends nothing; it is still kept.
        if let Some(room) = room {
            drop(self.put(message, room, None, asked_at));
        }
    }

    fn room(&self, message: &Message) -> Option<Room> {
        let most = self.shared.most;
        self.take_room(message, |shares, domain| shares.take(domain, most))
    }

    fn take_room(
        &self,
        message: &Message,
        take: impl FnOnce(&mut Shares, &Domain) -> bool,
    ) -> Option<Room> {
        let outlives = match message.hold {
            Hold::Outlive(id) => Some(id),
            Hold::Keep | Hold::Withdraw => None,
        };
        let mut queue = self.shared.queue();
        if !take(&mut queue.shares, &message.domain) {
            return None;
        }
        queue.outliving.extend(outlives);
        let (shared, domain) = (Arc::clone(&self.shared), message.domain.clone());
        Some(Room { shared, domain, outlives })
    }

    fn put(
        &self,
        message: Message,
        room: Room,
        kept: Option<oneshot::Sender<Result<(), String>>>,
        asked_at: Timestamp,
    ) -> Result<Ticket, Full> {
        if self.inbox.is_closed() {
            return Err(Full::Closed);
        }
        let (told, ticket) = oneshot::channel();
        let number = self.shared.numbers.fetch_add(1, Ordering::Relaxed);
        let place = place(&message.domain, &message.target.place);
        self.shared.ledger.add(Delivery {
            number,
            webhook_id: message.webhook_id.clone(),
            job_id: message.job_id.clone(),
            run_id: message.run_id.clone(),
            what: message.what.clone(),
            place: place.clone(),
            asked_at,
            attempts: 0,
            last_at: None,
            status: None,
            state: DeliveryState::Waiting,
            why: String::new(),
        });
        let post = Post { number, message, place, attempts: 0, told, kept, asked_at, _room: room };
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

impl Post {
    /// As it is kept, if it is to be.
    pub(super) fn outgoing(&self) -> Option<Outgoing> {
        let Hold::Outlive(id) = self.message.hold else { return None };
        let Message { job_id, run_id, domain, what, target, body, secret_fields, .. } =
            self.message.clone();
        let Target { place, method, headers, secret, timeout, max_attempts, .. } = target;
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Some(Outgoing {
            job_id,
            id,
            run_id,
            domain,
            what,
            place,
            method,
            headers,
            secret,
            timeout_ms,
            max_attempts,
            body,
            secret_fields,
            asked_at: self.asked_at,
        })
    }
}

/// What a receiver knows a message by.
pub fn webhook_id(id: ActionId) -> String {
    format!("msg_{id}")
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call for a message, secrets put in.
    pub(super) async fn call(&self, message: &Message) -> Answer {
        let Message { domain, target, .. } = message;
        let mut body = message.body.clone();
        for (key, name) in &message.secret_fields {
            match self.secret(domain, name).await {
                Ok(secret) => body[key.as_str()] = secret.reveal().into(),
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
        let (method, limit) = (target.method.name(), target.timeout);
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
