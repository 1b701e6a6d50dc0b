//! Something in front of the server that answers in its place, or not at all.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// What becomes of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Passes,
    /// Turned away with this status and code; the server never hears of it.
    Refused(u16, &'static str),
    /// The server does it, and the answer is this.
    DoneBut(u16, &'static str),
    /// The transaction is cancelled for this reason; the server never hears of it.
    Cancelled(&'static str),
    /// The answer is this; the server never hears of it.
    Says(&'static str),
    /// The connection is closed; the server never hears of it.
    Cut,
    /// Passes once it is let go.
    Held,
    /// Refused if its time is not ours.
    ByTime,
}

#[derive(Debug)]
struct Plan {
    next: VecDeque<Fate>,
    then: Fate,
    /// What was asked for, and when.
    asked: Vec<(String, Instant)>,
    /// What transactions were made of.
    parts: BTreeSet<String>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    plan: Mutex<Plan>,
    held: watch::Sender<u64>,
    go: Notify,
}

/// Ends with all of its connections when it is dropped.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

impl Shared {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Front {
    pub(super) async fn of(server: SocketAddr) -> Self {
        Self::by(server, None).await
    }

    /// With TLS, if there is something to prove itself with.
    pub(super) async fn by(server: SocketAddr, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (next, then, parts) = (VecDeque::new(), Fate::Passes, BTreeSet::new());
        let plan = Plan { next, then, asked: Vec::new(), parts };
        let held = watch::Sender::new(0);
        let shared = Arc::new(Shared { server, plan: Mutex::new(plan), held, go: Notify::new() });
        let mut tasks = JoinSet::new();
        let own = Arc::clone(&shared);
        tasks.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (shared, acceptor) = (Arc::clone(&own), acceptor.clone());
                lines.spawn(async move {
                    drop(client.set_nodelay(true));
                    match acceptor {
                        None => drop(line(client, &shared).await),
                        Some(acceptor) => {
                            if let Ok(client) = acceptor.accept(client).await {
                                drop(line(client, &shared).await);
                            }
                        }
                    }
                });
                while lines.try_join_next().is_some() {}
            }
        });
        Self { address, shared, _tasks: tasks }
    }

    /// What the next requests meet, one by one, and all that follow them.
    pub(super) fn set(&self, next: impl IntoIterator<Item = Fate>, then: Fate) {
        let mut plan = self.shared.plan();
        plan.next = next.into_iter().collect();
        plan.then = then;
        plan.asked.clear();
    }

    /// What was asked for since the last [`set`](Self::set).
    pub(super) fn asked(&self) -> Vec<String> {
        self.shared.plan().asked.iter().map(|(what, _)| what.clone()).collect()
    }

    /// What all transactions so far were made of: `Put`, `Get` and so on.
    pub(super) fn parts(&self) -> BTreeSet<String> {
        self.shared.plan().parts.clone()
    }

    /// How long it took from each of those requests to the next.
    pub(super) fn pauses(&self) -> Vec<Duration> {
        let plan = self.shared.plan();
        plan.asked.windows(2).map(|pair| pair[1].1 - pair[0].1).collect()
    }

    /// Waits until so many requests have been held since it stands.
    pub(super) async fn held(&self, times: u64) {
        // This very front has the other end.
        let _ = self.shared.held.subscribe().wait_for(|held| *held >= times).await;
    }

    pub(super) fn let_go(&self) {
        self.shared.go.notify_one();
    }
}

struct Message {
    head: String,
    body: Vec<u8>,
}

impl Message {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// None if the other end is done.
    async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if from.read(&mut byte).await? == 0 {
                return Ok(None);
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut message = Self { head, body: Vec::new() };
        let length = message.header("content-length").and_then(|text| text.parse().ok());
        message.body = vec![0; length.unwrap_or(0)];
        from.read_exact(&mut message.body).await?;
        Ok(Some(message))
    }

    async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&[self.head.as_bytes(), &self.body].concat()).await?;
        to.flush().await
    }

    /// What a transaction is made of.
    fn parts(&self) -> Vec<String> {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let items = body["TransactItems"].as_array().into_iter().flatten();
        items.filter_map(|item| item.as_object()?.keys().next().cloned()).collect()
    }

    fn answer(status: u16, code: &str, more: &str) -> Self {
        let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
        let body = format!("{{\"__type\":\"{kind}\",\"message\":\"as the test wants it\"{more}}}");
        Self::said(status, &body)
    }

    fn said(status: u16, body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/x-amz-json-1.0\r\nDate: {}\r\n\
             Content-Length: {}\r\n\r\n",
            http_date(),
            body.len()
        );
        Self { head, body: body.as_bytes().to_vec() }
    }
}

/// One connection, request by request.
async fn line(mut client: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) -> io::Result<()> {
    let mut server = TcpStream::connect(shared.server).await?;
    server.set_nodelay(true)?;
    while let Some(request) = Message::read(&mut client).await? {
        let target = request.header("x-amz-target").unwrap_or_default();
        let what = target.rsplit('.').next().unwrap_or_default().to_owned();
        let fate = {
            let mut plan = shared.plan();
            plan.asked.push((what.clone(), Instant::now()));
            plan.parts.extend(request.parts());
            plan.next.pop_front().unwrap_or(plan.then)
        };
        let instead = match fate {
            Fate::Passes => None,
            Fate::Refused(status, code) => Some(Message::answer(status, code, "")),
            Fate::DoneBut(status, code) => {
                request.write(&mut server).await?;
                Message::read(&mut server).await?;
                Some(Message::answer(status, code, ""))
            }
            Fate::Cancelled(reason) => {
                let more = format!(",\"CancellationReasons\":[{{\"Code\":\"{reason}\"}}]");
                Some(Message::answer(400, "TransactionCanceledException", &more))
            }
            Fate::Says(body) => Some(Message::said(200, body)),
            Fate::Cut => return Ok(()),
            Fate::Held => {
                shared.held.send_modify(|held| *held += 1);
                shared.go.notified().await;
                None
            }
            Fate::ByTime => {
                let time = request.header("x-amz-date").unwrap_or_default();
                let is_right = is_now(time);
                (!is_right).then(|| Message::answer(400, "InvalidSignatureException", ""))
            }
        };
        if let Some(answer) = instead {
            answer.write(&mut client).await?;
            continue;
        }
        request.write(&mut server).await?;
        let Some(answer) = Message::read(&mut server).await? else { return Ok(()) };
        answer.write(&mut client).await?;
    }
    Ok(())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Years, months and days from days since 1970, as calendars have them.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

fn http_date() -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, seconds) = (now() / 86_400, now() % 86_400);
    let (year, month, day) = civil(days);
    let weekday = DAYS[usize::try_from(days % 7).unwrap_or(0)];
    let month = MONTHS[usize::try_from(month - 1).unwrap_or(0)];
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Whether the time of a signature, `20260131T235959Z`, is at most five minutes off, as the service wants it.
fn is_now(text: &str) -> bool {
    let part = |from: usize, to: usize| text.get(from..to).and_then(|it| it.parse::<u64>().ok());
    let time = || {
        let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
        let (hour, minute, second) = (part(9, 11)?, part(11, 13)?, part(13, 15)?);
        let today = now() / 86_400;
        let days = (today - 2..=today + 2).find(|days| civil(*days) == (year, month, day))?;
        Some(days * 86_400 + hour * 3600 + minute * 60 + second)
    };
    time().is_some_and(|time| time.abs_diff(now()) <= 300)
}
