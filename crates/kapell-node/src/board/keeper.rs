//! The keeper of one shard: the only one that changes its records.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::{Crash, Draft, Refusal, Request, decide};
use kapell_core::causes::chain;
use kapell_core::planted::Flaw;
use kapell_store::Store;
use kapell_store::model::{Commit, Fence, Limits, Shard};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::apply;
use super::group::{Decided, Fit, Group, Own};
use super::handle::{Board, Declined};
use super::lanes::{Asked, Lanes};
use super::meters::Meters;

/// Between a commit of unknown outcome and the same one again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// After so long a commit that fails is trouble that those who wait are told of.
const TROUBLE_AFTER: Duration = Duration::from_secs(2);
/// How many requests are decided in one go: others want to be served as well.
const MOST_REQUESTS: usize = 1024;
/// How long a commit under way may take after the word to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Keeper {
    board: Board,
    shard: Shard,
    /// What the next commit must name.
    fence: Fence,
    limits: Limits,
    lanes: Lanes,
    /// Decided already, but it did not fit into the last group.
    put_off: Option<Asked>,
    stop: CancellationToken,
}

/// How a commit ended.
enum Landing {
    Landed,
    /// We were told to stop; whether it landed nobody knows.
    Stopped,
}

/// What became of one request while a group is formed.
enum Formed {
    Goes,
    Waits(Asked),
}

impl Keeper {
    pub(super) fn new(
        board: Board,
        shard: Shard,
        fence: Fence,
        lanes: Lanes,
        stop: CancellationToken,
    ) -> Self {
        let limits = board.tenure().store().limits();
        Self { board, shard, fence, limits, lanes, put_off: None, stop }
    }

    /// Decides and commits until it is told to stop.
    pub(super) async fn run(mut self) -> Result<(), String> {
        while let Some(first) = self.next().await {
            // A store in memory never makes us wait, and then nobody else gets a turn.
            tokio::task::coop::consume_budget().await;
            if !self.board.may_act() {
                first.answer(Err(Declined::NotLeading));
                continue;
            }
            let mut group = self.form(first);
            if group.is_empty() {
                continue;
            }
            match self.commit(&mut group).await {
                Ok(Landing::Landed) => apply::landed(&self.board, self.shard, group),
                Ok(Landing::Stopped) => {
                    let_go(group);
                    return Ok(());
                }
                Err(why) => {
                    let_go(group);
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Option<Asked> {
        if self.stop.is_cancelled() {
            return None;
        }
        if let Some(asked) = self.put_off.take() {
            return Some(asked);
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            asked = self.lanes.next() => asked,
        }
    }

    /// Decides what waits, as much of it as goes into one commit.
    fn form(&mut self, first: Asked) -> Group {
        let mut group = Group::new(self.limits);
        let mut next = Some(first);
        let mut left = MOST_REQUESTS;
        while let Some(asked) = next {
            match self.join(&mut group, asked) {
                Formed::Goes => {}
                Formed::Waits(asked) => {
                    self.put_off = Some(asked);
                    break;
                }
            }
            left -= 1;
            next = if left == 0 { None } else { self.lanes.try_next() };
        }
        group
    }

    fn join(&self, group: &mut Group, asked: Asked) -> Formed {
        let (verdict, own) = {
            let sheet = self.board.sheet(self.shard.number);
            let mut draft = Draft::new(sheet.records(), group.changes());
            // People's clocks say when jobs are due, and the scheduler goes by them too.
            let is_of_jobs = matches!(asked.request, Request::Job(_));
            let now = if is_of_jobs { self.board.wall() } else { self.board.clock().wall() };
            let verdict = decide(&mut draft, &asked.request, now, self.board.settings());
            (verdict, draft.into_changes())
        };
        let (answer, effects) = match verdict {
            Err(refusal) => (Err(refusal.into()), Vec::new()),
            Ok(verdict) => match fit(group, own, &asked) {
                Fit::Fits => (Ok(verdict.reply), verdict.effects),
                Fit::Later => return Formed::Waits(asked),
                Fit::Never(why) => {
                    (Err(Refusal::Invalid { problems: vec![why] }.into()), Vec::new())
                }
            },
        };
        let meters = self.board.meters();
        Meters::add(if answer.is_ok() { &meters.decided } else { &meters.refused }, 1);
        let mut decided = Decided { asked, answer, effects };
        let planted = self.board.settings().planted;
        if planted.has(Flaw::EffectsBeforeCommit) {
            decided.effects.drain(..).for_each(|effect| self.board.perform(effect));
        }
        if group.is_empty() || planted.has(Flaw::AnswersBeforeCommit) {
            // It rests on nothing but what is committed.
            apply::settle(&self.board, decided);
        } else {
            group.push(decided);
        }
        Formed::Goes
    }

    /// Sends the group until it is known to have landed.
    async fn commit(&mut self, group: &mut Group) -> Result<Landing, String> {
        let ops = group.take_ops();
        let store = Arc::clone(self.board.tenure().store());
        let begun = self.board.clock().now();
        let impatient = Instant::now() + TROUBLE_AFTER;
        let mut pause = FIRST_PAUSE;
        let mut failure: Option<String> = None;
        let planted = self.board.settings().planted;
        loop {
            let sent_before = failure.is_some();
            let mut sent = store.commit(self.shard, self.fence, &ops);
            let answer = loop {
                let waits = sent_before && Instant::now() < impatient;
                tokio::select! {
                    biased;
                    answer = &mut sent => break answer,
                    why = self.board.tenure().lost() => return Err(self.unseated(&why.to_string())),
                    () = patience(&self.stop) => return Ok(Landing::Stopped),
                    () = sleep_until(impatient), if waits => self.give_up_on(group, failure.as_deref()),
                }
            };
            match answer {
                Ok(Commit::Done) => break,
                // Only a try of our own can have moved it there.
                Ok(Commit::Fenced(at)) if sent_before && at == self.fence.next() => break,
                Ok(Commit::Fenced(at)) if planted.has(Flaw::UnfencedCommit) => {
                    self.fence = at;
                    continue;
                }
                Ok(Commit::Fenced(at)) => return Err(self.deposed(at, store.as_ref())),
                Err(error) if planted.has(Flaw::UnknownIsDone) && error.may_pass() => break,
                Err(_) if self.stop.is_cancelled() => return Ok(Landing::Stopped),
                Err(error) if error.may_pass() && self.board.may_act() => {
                    let (shard, error) = (self.shard, chain(&error));
                    tracing::debug!(%shard, error, "a commit failed; sending it again");
                    failure = Some(error);
                }
                Err(error) => {
                    return Err(format!(
                        "a commit to shard {} failed: {}",
                        self.shard,
                        chain(&error)
                    ));
                }
            }
            if Instant::now() >= impatient {
                self.give_up_on(group, failure.as_deref());
            }
            Meters::add(&self.board.meters().resent, 1);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if !self.board.may_act() {
                return Err(self.unseated("it may not act any more"));
            }
        }
        self.board.trouble().end(self.shard.number, self.board.clock().wall());
        self.fence = self.fence.next();
        let meters = self.board.meters();
        Meters::add(&meters.commits, 1);
        Meters::add(&meters.commit_ops, ops.len());
        Meters::add_time(&meters.commit_micros, self.board.clock().now().since(begun));
        Ok(Landing::Landed)
    }

    /// The commit is sent on, but nobody from outside waits for it any more.
    fn give_up_on(&mut self, group: &mut Group, failure: Option<&str>) {
        let why = failure.unwrap_or("it does not answer");
        self.board.trouble().begin(self.shard.number, why, self.board.clock().wall());
        group.answer_outside(&Declined::Unsettled(why.to_owned()));
        let untried = Declined::ReadOnly(why.to_owned());
        self.lanes.turn_away(&untried);
        if let Some(asked) = self.put_off.take_if(|asked| !asked.inside) {
            asked.answer(Err(untried));
        }
    }

    fn unseated(&self, why: &str) -> String {
        format!("the seat was lost before a commit to shard {} landed: {why}", self.shard)
    }

    fn deposed(&self, at: Fence, store: &dyn Store) -> String {
        let (shard, ours) = (self.shard, self.fence);
        let name = store.name();
        format!(
            "deposed: the fence of shard {shard} in {name} stands at {at}, ours is {ours}: \
             another host leads"
        )
    }
}

/// Adds what a request changes.
fn fit(group: &mut Group, own: Own, asked: &Asked) -> Fit {
    if own.is_empty() {
        return Fit::Fits;
    }
    let crash = Crash::of(&asked.request, &own).map(Box::new);
    group.join(own, crash)
}

/// Nobody knows what became of these; the next leader will.
fn let_go(group: Group) {
    for decided in group.into_decided() {
        decided.asked.answer(Err(Declined::NotLeading));
    }
}

async fn patience(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
}
