//! Sends messages, place by place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::Domain;
use kapell_core::constraint::delivery::{self, Answer, Next};
use kapell_core::constraint::lines::{Lines, Pace, Turn};
use kapell_core::seams::Moment;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};

use super::handler::{Hold, Post, Settled, Shared};
use super::ledger::DeliveryState;

/// The one task that all messages go through.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    posts: mpsc::UnboundedReceiver<Post>,
    lines: Lines,
    waiting: BTreeMap<u64, Post>,
    calls: JoinSet<(Post, Answer)>,
    /// Who is being called and for whom, in case a call is lost.
    under_way: BTreeMap<Id, (String, Domain)>,
    /// Messages that are being kept before they are sent.
    keeping: JoinSet<(Post, Result<(), String>)>,
    /// Messages that were settled and are not to be kept any more.
    forgetting: JoinSet<()>,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        posts: mpsc::UnboundedReceiver<Post>,
        pace: Pace,
    ) -> Self {
        Self {
            shared,
            posts,
            lines: Lines::new(pace),
            waiting: BTreeMap::new(),
            calls: JoinSet::new(),
            under_way: BTreeMap::new(),
            keeping: JoinSet::new(),
            forgetting: JoinSet::new(),
        }
    }

    /// Sends what it is given until it is dropped, or until there is no handler any more and nothing is left.
    pub async fn run(mut self) {
        let mut open = true;
        while open || self.has_work() {
            let until = self.begin();
            let pause = until.map(|until| until.since(self.now()));
            tokio::select! {
                biased;
                Some(done) = self.calls.join_next_with_id() => self.end(done),
                Some(Ok((post, kept))) = self.keeping.join_next() => self.kept(post, kept),
                Some(_) = self.forgetting.join_next() => {}
                post = self.posts.recv(), if open => match post {
                    Some(post) => self.take(post),
                    None => open = false,
                },
                () = tokio::time::sleep(pause.unwrap_or(Duration::MAX)), if pause.is_some() => {}
            }
        }
    }

    fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    fn has_work(&self) -> bool {
        !(self.waiting.is_empty()
            && self.calls.is_empty()
            && self.keeping.is_empty()
            && self.forgetting.is_empty())
    }

    /// What must outlive this host is kept before anybody is called, and before its sender goes on.
    fn take(&mut self, post: Post) {
        let outgoing = post.outgoing().filter(|_| post.kept.is_some());
        let Some(outgoing) = outgoing else { return self.queue(post) };
        let outbox = Arc::clone(&self.shared.outbox);
        self.keeping.spawn(async move { (post, outbox.keep(outgoing).await) });
    }

    fn kept(&mut self, mut post: Post, kept: Result<(), String>) {
        let teller = post.kept.take();
        let told = kept.clone();
        match kept {
            Ok(()) => self.queue(post),
            Err(why) => {
                // There is nothing to be forgotten.
                post.message.hold = Hold::Keep;
                let settled = Settled::GivenUp { status: None, why };
                self.settle(post, DeliveryState::GivenUp, settled);
            }
        }
        // Whoever wanted it may have gone.
        drop(teller.map(|teller| teller.send(told)));
    }

    fn queue(&mut self, post: Post) {
        self.lines.add(&post.place, &post.message.domain, post.number, self.now());
        self.waiting.insert(post.number, post);
    }

    /// Begins all calls that may begin, and says when to look again.
    fn begin(&mut self) -> Option<Moment> {
        loop {
            match self.lines.next(self.now()) {
                Turn::Idle => return None,
                Turn::Wait(until) => return Some(until),
                Turn::Call { place, domain, number } => {
                    let Some(post) = self.waiting.remove(&number) else {
                        self.lines.done(&place, &domain, self.now());
                        continue;
                    };
                    if post.message.hold == Hold::Withdraw && post.told.is_closed() {
                        self.lines.done(&place, &domain, self.now());
                        self.shared.ledger.change(number, |it| it.state = DeliveryState::Withdrawn);
                        continue;
                    }
                    self.call(post, place);
                }
            }
        }
    }

    fn call(&mut self, mut post: Post, place: String) {
        post.attempts += 1;
        let (attempts, at) = (post.attempts, self.shared.clock.wall());
        self.shared
            .ledger
            .change(post.number, |it| (it.attempts, it.last_at) = (attempts, Some(at)));
        let (shared, domain) = (Arc::clone(&self.shared), post.message.domain.clone());
        let call = self.calls.spawn(async move {
            let limit = post.message.target.timeout;
            let withdraws = post.message.hold == Hold::Withdraw;
            let answer = tokio::select! {
                biased;
                () = post.told.closed(), if withdraws => Answer::Refused("nobody waits for it any more".to_owned()),
                answer = tokio::time::timeout(limit, shared.call(&post.message)) => answer
                    .unwrap_or_else(|_| Answer::None(format!("no answer within {}s", limit.as_secs_f64()))),
            };
            (post, answer)
        });
        self.under_way.insert(call.id(), (place, domain));
    }

    fn end(&mut self, done: Result<(Id, (Post, Answer)), JoinError>) {
        let id = match &done {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let now = self.now();
        if let Some((place, domain)) = self.under_way.remove(&id) {
            self.lines.done(&place, &domain, now);
        }
        let Ok((_, (post, answer))) = done else { return };
        if post.message.hold == Hold::Withdraw && post.told.is_closed() {
            self.shared.ledger.change(post.number, |it| it.state = DeliveryState::Withdrawn);
            return;
        }
        let status = match &answer {
            Answer::Status { status, .. } => Some(*status),
            Answer::None(_) | Answer::Refused(_) => None,
        };
        self.shared.ledger.change(post.number, |it| it.status = status);
        let most = post.message.target.max_attempts;
        match delivery::next(&answer, post.attempts, most, self.shared.ids.draw()) {
            Next::Delivered => {
                let status = status.unwrap_or_default();
                self.settle(post, DeliveryState::Delivered, Settled::Delivered { status });
            }
            Next::GivenUp { why } => {
                tracing::warn!(run_id = %post.message.run_id, what = post.message.what, place = post.place, why, "a message was not taken");
                self.settle(post, DeliveryState::GivenUp, Settled::GivenUp { status, why });
            }
            Next::Again { after, why } => {
                self.shared.ledger.change(post.number, |it| it.why = why);
                self.lines.add(&post.place, &post.message.domain, post.number, now.after(after));
                self.waiting.insert(post.number, post);
            }
        }
    }

    fn settle(&mut self, post: Post, state: DeliveryState, settled: Settled) {
        let why = match &settled {
            Settled::Delivered { .. } => String::new(),
            Settled::GivenUp { why, .. } => why.clone(),
        };
        self.shared.ledger.change(post.number, |it| (it.state, it.why) = (state, why));
        if let Hold::Outlive(id) = post.message.hold {
            let (outbox, job) = (Arc::clone(&self.shared.outbox), post.message.job_id.clone());
            self.forgetting.spawn(async move { outbox.forget(job, id).await });
        }
        // Nobody may wait for it.
        drop(post.told.send(settled));
    }
}
