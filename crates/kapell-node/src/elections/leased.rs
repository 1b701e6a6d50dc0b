use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::causes::chain;
use kapell_core::election::{
    Answer, Ask, Candidate, Effect, Event, Holder, Lease, Loss, Notice, Setup, Ticket,
};
use kapell_core::seams::{Clock, Ids, Moment};
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_store::{Error, Store, keys};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::tenure::Standing;
use super::{Elections, Killer, Refusal, Sight, Tenure};

/// What elections with leases are made of.
#[derive(Debug)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub killer: Arc<dyn Killer>,
    pub lease: Duration,
    /// Where requests for the holder go.
    pub address: String,
}

/// Elections over a store that others use too: a seat is held by renewing a lease.
pub struct Leased {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

struct Shared {
    parts: Parts,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    seen: BTreeMap<Seat, Sight>,
    /// By whoever looks for a seat or holds one.
    keepers: Vec<Keeper>,
    /// When the process must be gone, by whoever demands it. What was lost stays here.
    kills: BTreeMap<Owner, Moment>,
    store_error: Option<String>,
}

struct Keeper {
    owner: Owner,
    seats: Vec<Seat>,
    /// Where the one seat stands that is held; none while one is looked for.
    standing: Option<Standing>,
    resign: CancellationToken,
    ended: CancellationToken,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl Leased {
    pub fn new(parts: Parts) -> Self {
        let shared = Shared { parts, state: Mutex::default() };
        Self { shared: Arc::new(shared), tasks: TaskTracker::new() }
    }

    /// Notes down who looks for a seat, unless it is held here. Whoever is about to give it
    /// back is waited for.
    async fn enter(
        &self,
        owner: Owner,
        seats: &[Seat],
        resign: &CancellationToken,
    ) -> Result<TaskTrackerToken, Refusal> {
        loop {
            let leaving = {
                let mut state = self.shared.state();
                if state.closed {
                    return Err(Refusal::Closed);
                }
                let wanted = |keeper: &Keeper| {
                    let seat = keeper.seats.iter().find(|seat| seats.contains(seat))?;
                    Some((*seat, keeper.resign.is_cancelled().then(|| keeper.ended.clone())))
                };
                match state.keepers.iter().find_map(wanted) {
                    Some((seat, None)) => return Err(Refusal::HeldHere(seat)),
                    Some((_, Some(leaving))) => leaving,
                    None => {
                        state.store_error = None;
                        state.keepers.push(Keeper {
                            owner,
                            seats: seats.to_vec(),
                            standing: None,
                            resign: resign.clone(),
                            ended: CancellationToken::new(),
                        });
                        // A cleanup waits for the task, also before it is spawned.
                        return Ok(self.tasks.token());
                    }
                }
            };
            leaving.cancelled().await;
        }
    }

    fn setup(&self, seats: &[Seat], window: Option<Duration>) -> Setup {
        let parts = &self.shared.parts;
        let drawn = parts.ids.draw();
        // Spread out, so that those who wait for one seat do not all look at once.
        let jitter = 1.0 + f64::from(u16::try_from(drawn % 1000).unwrap_or(0)) / 4000.0;
        Setup {
            owner: Owner(drawn),
            address: parts.address.clone(),
            since: parts.clock.wall(),
            seats: seats.to_vec(),
            lease: Lease::new(parts.lease),
            window,
            poll: (parts.lease / 4).mul_f64(jitter),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the killer to the earliest moment that any seat demands: one that is renewed does
    /// not put off what another one needs.
    fn kill(&self, owner: Owner, at: Option<Moment>) {
        let mut state = self.state();
        match at {
            Some(at) => state.kills.insert(owner, at),
            None => state.kills.remove(&owner),
        };
        // Under the lock, so that no older word comes after a newer one.
        self.parts.killer.set(state.kills.values().min().copied());
    }

    /// From here on the seat may be asked for again. Whoever waits for the end hears of it
    /// when the keeper is dropped.
    fn forget(&self, owner: Owner) -> Option<Keeper> {
        let keepers = &mut self.state().keepers;
        let at = keepers.iter().position(|keeper| keeper.owner == owner)?;
        Some(keepers.swap_remove(at))
    }

    fn note(&self, error: &Error) {
        let text = chain(error);
        tracing::warn!(error = text, "the store failed");
        self.state().store_error = Some(text);
    }

    /// Asks the store. What is not answered within the time is unknown.
    async fn ask(&self, seat: Seat, ask: Ask, within: Duration) -> Answer {
        let asked_at = self.parts.clock.now();
        let answer = tokio::time::timeout(within, self.send(seat, ask)).await;
        match answer {
            Ok(Ok(answer)) => {
                self.state().store_error = None;
                if let Answer::Seen { holder, .. } = &answer {
                    let record = holder.as_ref().and_then(|holder| {
                        let until = holder.remaining.map(|remaining| asked_at.after(remaining));
                        Some(Sight { record: holder.record.clone()?, until })
                    });
                    let mut state = self.state();
                    match record {
                        Some(sight) => state.seen.insert(seat, sight),
                        None => state.seen.remove(&seat),
                    };
                }
                answer
            }
            Ok(Err(error)) => {
                self.note(&error);
                Answer::Unknown
            }
            Err(_) => {
                let text = format!("{} did not answer within {within:?}", self.parts.store.name());
                tracing::warn!(error = text, "the store failed");
                self.state().store_error = Some(text);
                Answer::Unknown
            }
        }
    }

    async fn send(&self, seat: Seat, ask: Ask) -> Result<Answer, Error> {
        let (store, key) = (&self.parts.store, keys::leader(seat));
        let ttl = Some(self.parts.lease);
        let write = match ask {
            Ask::Read => {
                let entry = store.read(&key).await?;
                let holder = entry.held.map(|held| Holder {
                    record: Record::decode(&held.value),
                    remaining: held.remaining,
                });
                return Ok(Answer::Seen { last: Epoch(entry.generation.0), holder });
            }
            Ask::Insert(record) => {
                let seen = kapell_store::model::Generation(record.epoch.0 - 1);
                store.insert_if_absent(&key, seen, &record.encode(), ttl).await?
            }
            Ask::Renew(record) => {
                let value = record.encode();
                store.compare_and_swap(&key, &value, &value, ttl).await?
            }
            Ask::Delete(record) => store.compare_and_delete(&key, &record.encode()).await?,
        };
        Ok(if write.is_done() { Answer::Done } else { Answer::Lost })
    }
}

/// Runs one candidate: the store's answers and the time go in, calls to the store come out.
struct Actor {
    shared: Arc<Shared>,
    candidate: Candidate,
    owner: Owner,
    standing: Standing,
    calls: JoinSet<(Ticket, Answer)>,
    changes: mpsc::Receiver<Seat>,
    /// Tell of changes, and keep the next insert cheap. End with the actor.
    watchers: JoinSet<()>,
    preparing: CancellationToken,
    resign: CancellationToken,
    /// An insert is under way, and how long to wait for it before it is taken back.
    inserting: Option<(Ticket, Instant)>,
    won: Option<oneshot::Sender<Option<Tenure>>>,
}

impl Actor {
    async fn run(mut self, effects: Vec<Effect>) {
        self.perform(effects);
        let mut resigned = false;
        while !self.candidate.is_over() {
            let wait = self.candidate.due().map(|due| due.since(self.shared.parts.clock.now()));
            let event = tokio::select! {
                biased;
                () = resigned_after(&self.resign, self.inserting), if !resigned => {
                    resigned = true;
                    Event::Resign
                }
                Some(done) = self.calls.join_next() => match done {
                    Ok((ticket, answer)) => {
                        self.inserting.take_if(|(insert, _)| *insert == ticket);
                        Event::Answered(ticket, answer)
                    }
                    Err(_) => Event::Due,
                },
                Some(seat) = self.changes.recv() => Event::Changed(seat),
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => Event::Due,
            };
            let effects = self.candidate.step(event, self.shared.parts.clock.now());
            self.perform(effects);
        }
        self.calls.shutdown().await;
        self.watchers.shutdown().await;
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        // What may still be done is settled before anyone hears of it.
        self.standing.act_until(self.candidate.acts_until());
        self.shared.kill(self.owner, self.candidate.kill_at());
        for effect in effects {
            match effect {
                Effect::Send { ticket, seat, ask, within } => {
                    let shared = Arc::clone(&self.shared);
                    if matches!(ask, Ask::Insert(_)) {
                        let patience = shared.parts.lease / 8;
                        self.inserting = Some((ticket, Instant::now() + patience));
                    }
                    self.calls.spawn(async move { (ticket, shared.ask(seat, ask, within).await) });
                }
                Effect::Tell(notice) => self.tell(notice),
            }
        }
    }

    fn tell(&mut self, notice: Notice) {
        match notice {
            Notice::Acquired { .. } => {
                self.preparing.cancel();
                let parts = &self.shared.parts;
                let Some((seat, record)) = self.candidate.held() else { return };
                let (store, clock) = (Arc::clone(&parts.store), Arc::clone(&parts.clock));
                let tenure = Tenure::new(seat, record.clone(), store, clock, self.standing.clone());
                let mut state = self.shared.state();
                if let Some(keeper) = state.keepers.iter_mut().find(|it| it.owner == self.owner) {
                    keeper.seats = vec![seat];
                    keeper.standing = Some(self.standing.clone());
                }
                drop(state);
                self.see_own();
                // Whoever asked has gone: nobody would ever give the seat back.
                let wanted = self.won.take().filter(|_| !self.resign.is_cancelled());
                if wanted.is_none_or(|won| won.send(Some(tenure)).is_err()) {
                    self.resign.cancel();
                }
            }
            Notice::Renewed => self.see_own(),
            Notice::NotAcquired | Notice::Resigned => {
                let owner = self.owner;
                self.shared.state().seen.retain(|_, sight| sight.record.owner != owner);
                drop(self.shared.forget(owner));
                drop(self.won.take());
            }
            Notice::Lost(why) => {
                let keeper = self.shared.forget(self.owner);
                self.standing.lose(why);
                drop(keeper);
            }
        }
    }

    /// What we hold we need not look at to know.
    fn see_own(&self) {
        let Some((seat, record)) = self.candidate.held() else { return };
        let half = self.shared.parts.lease / 2;
        let until = self.candidate.acts_until().map(|until| until.after(half));
        let sight = Sight { record: record.clone(), until };
        self.shared.state().seen.insert(seat, sight);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let keeper = self.shared.forget(self.owner);
        // Also when it is torn down in the middle: nobody keeps the seat any more.
        if self.candidate.held().is_some() {
            self.standing.lose(Loss::Deadline);
        }
        drop(keeper);
    }
}

/// Waits for the word to resign, and then for an insert that is under way: to delete what has
/// not landed yet would leave it standing for a lease.
async fn resigned_after(resign: &CancellationToken, inserting: Option<(Ticket, Instant)>) {
    resign.cancelled().await;
    if let Some((_, until)) = inserting {
        tokio::time::sleep_until(until).await;
    }
}

async fn watch(shared: Arc<Shared>, seat: Seat, changes: mpsc::Sender<Seat>) {
    let pause = shared.parts.lease / 20;
    loop {
        match shared.parts.store.watch(&keys::leader(seat)).await {
            Ok(mut watch) => {
                // What happened before the watch stood is found by looking once more.
                while changes.send(seat).await.is_ok() && watch.changed().await.is_ok() {}
            }
            Err(error) => shared.note(&error),
        }
        if changes.is_closed() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

async fn prepare(shared: Arc<Shared>, until: CancellationToken) {
    let lease = shared.parts.lease;
    let keep_ready = async {
        loop {
            if let Err(error) = shared.parts.store.prepare(lease).await {
                shared.note(&error);
            }
            tokio::time::sleep(lease / 4).await;
        }
    };
    tokio::select! {
        biased;
        () = until.cancelled() => {}
        () = keep_ready => {}
    }
}

/// Ends the search when whoever asked for a seat stops waiting.
struct Waiting(Option<CancellationToken>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(search) = &self.0 {
            search.cancel();
        }
    }
}

#[async_trait]
impl Elections for Leased {
    async fn acquire(&self, seats: &[Seat], window: Option<Duration>) -> Result<Tenure, Refusal> {
        let setup = self.setup(seats, window);
        let owner = setup.owner;
        let resign = CancellationToken::new();
        let counted = self.enter(owner, seats, &resign).await?;
        let (tell, changes) = mpsc::channel(seats.len().max(1));
        let preparing = CancellationToken::new();
        let mut watchers = JoinSet::new();
        for &seat in seats {
            watchers.spawn(watch(Arc::clone(&self.shared), seat, tell.clone()));
        }
        watchers.spawn(prepare(Arc::clone(&self.shared), preparing.clone()));
        let (candidate, effects) = Candidate::new(setup, self.shared.parts.clock.now());
        let (won, win) = oneshot::channel();
        let actor = Actor {
            shared: Arc::clone(&self.shared),
            candidate,
            owner,
            standing: Standing::new(),
            calls: JoinSet::new(),
            changes,
            watchers,
            preparing,
            resign: resign.clone(),
            inserting: None,
            won: Some(won),
        };
        self.tasks.spawn(actor.run(effects));
        drop(counted);
        let mut waiting = Waiting(Some(resign));
        match win.await {
            Ok(Some(tenure)) => {
                waiting.0 = None;
                Ok(tenure)
            }
            Ok(None) | Err(_) => {
                let state = self.shared.state();
                Err(match (state.closed, window) {
                    (true, _) | (false, None) => Refusal::Closed,
                    (false, Some(window)) => {
                        Refusal::NotAcquired { window, store_error: state.store_error.clone() }
                    }
                })
            }
        }
    }

    async fn release(&self, seat: Seat) -> bool {
        let held = {
            let state = self.shared.state();
            state.keepers.iter().filter(|keeper| keeper.seats == [seat]).find_map(|keeper| {
                let standing = keeper.standing.clone()?;
                keeper.resign.cancel();
                Some((keeper.ended.clone(), standing))
            })
        };
        match held {
            Some((ended, standing)) => {
                ended.cancelled().await;
                standing.loss().is_none()
            }
            None => false,
        }
    }

    async fn cleanup(&self) {
        {
            let mut state = self.shared.state();
            state.closed = true;
            for keeper in &state.keepers {
                keeper.resign.cancel();
            }
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn store_answers(&self) -> bool {
        self.shared.state().store_error.is_none()
    }

    fn seen(&self, seat: Seat) -> Option<Sight> {
        self.shared.state().seen.get(&seat).cloned()
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leased").field("parts", &self.shared.parts).finish_non_exhaustive()
    }
}
