//! A course and what is under way of it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use kapell_backend::containers::{Exit, FoundProcess, Output};
use kapell_core::recipe::{Course, Deed, Event, Leaf, Order, Outcome, Phase, Recipe};
use kapell_core::seams::Moment;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::deed::{Doing, Ended, Job};
use super::notes::{History, Note};
use super::outcome;
use super::tag::Tag;
use super::timers::LONG;
use super::tools::Tools;

const UNSURE: &str = "the agent was restarted when this program was about to be started: whether it ran is not known, \
     and a task is never started twice";

/// Whose course it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// What a container is there for. If `noted`, whatever happens is kept for the next agent.
    Main { noted: bool },
    /// A check of it, counted.
    Monitor(u64),
}

/// What came of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Something was begun.
    Begun,
    Going,
    Over(Outcome),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Walk {
    tools: Arc<Tools>,
    tag: Arc<Tag>,
    part: Part,
    course: Course,
    /// What of its time had passed at that moment.
    passed: (Duration, Moment),
    orders: Vec<Order>,
    doing: JoinSet<(Leaf, Ended)>,
    stops: BTreeMap<Leaf, CancellationToken>,
    begun: (mpsc::UnboundedSender<Leaf>, mpsc::UnboundedReceiver<Leaf>),
    /// What an earlier agent has begun, and how it ended.
    found: BTreeMap<String, Option<Exit>>,
    /// What an earlier agent was about to begin; none: nobody knows what.
    noted: Option<BTreeSet<Leaf>>,
    /// How the program ended that ended last.
    last: Option<Exit>,
    /// What it does broke down.
    broken: Option<Outcome>,
}

impl Walk {
    pub(super) fn begin(tools: Arc<Tools>, tag: Arc<Tag>, part: Part, recipe: Recipe) -> Self {
        let (course, orders) = Course::begin(recipe);
        let mut walk = Self::new(tools, tag, part, course);
        walk.note(&Note::Began(walk.tools.clock.wall()));
        walk.orders = orders;
        walk
    }

    fn new(tools: Arc<Tools>, tag: Arc<Tag>, part: Part, course: Course) -> Self {
        Self {
            passed: (Duration::ZERO, tools.clock.now()),
            tools,
            tag,
            part,
            course,
            orders: Vec::new(),
            doing: JoinSet::new(),
            stops: BTreeMap::new(),
            begun: mpsc::unbounded_channel(),
            found: BTreeMap::new(),
            noted: Some(BTreeSet::new()),
            last: None,
            broken: None,
        }
    }

    /// Goes on where an earlier agent was. What has ended since is taken in at once.
    pub(super) fn resume(
        (tools, tag): (Arc<Tools>, Arc<Tag>),
        part: Part,
        history: Option<&History>,
        processes: Vec<FoundProcess>,
    ) -> Self {
        let events = history.map(|history| history.events.as_slice()).unwrap_or_default();
        let (course, orders) = Course::resume(tag.recipe(), events);
        let mut walk = Self::new(tools, tag, part, course);
        let latest = events.last().map_or(Duration::ZERO, |(at, _)| *at);
        let began = history.and_then(|history| history.began);
        let passed = began.map_or(Duration::ZERO, |began| walk.tools.clock.wall().since(began));
        walk.passed.0 = passed.max(latest);
        walk.found = processes.into_iter().map(|found| (found.name, found.exit)).collect();
        walk.noted = history.map(|history| history.begun.clone());
        walk.orders = orders;
        let late = walk.course.time(walk.passed.0);
        walk.orders.extend(late);
        walk.take_in();
        walk
    }

    /// Takes in what of that which is to be begun has ended already, or must not be begun.
    fn take_in(&mut self) {
        loop {
            let order = self.orders.iter().enumerate().find_map(|(at, order)| match order {
                Order::Begin(leaf) => self.has_ended(*leaf).map(|ended| (at, *leaf, ended)),
                Order::Stop(_) | Order::Say(_) => None,
            });
            let Some((at, leaf, ended)) = order else { return };
            self.orders.remove(at);
            self.ended(leaf, ended);
        }
    }

    /// What is known of the end of something that an earlier agent may have begun.
    fn has_ended(&self, leaf: Leaf) -> Option<Ended> {
        let Some(Deed::Run(_)) = self.course.deed(leaf) else {
            let never = self.course.is_told_to_stop(leaf);
            return never.then(|| Ended { outcome: Outcome::default(), exit: None });
        };
        match self.found.get(&self.name(leaf)) {
            Some(None) => None,
            Some(Some(exit)) => Some(Ended::exited(exit.clone())),
            None if self.course.is_told_to_stop(leaf) => {
                Some(Ended { outcome: Outcome::default(), exit: None })
            }
            None => {
                let maybe = self.noted.as_ref().is_none_or(|noted| noted.contains(&leaf));
                (maybe && self.tag.is_task()).then(|| Ended::failed(UNSURE))
            }
        }
    }

    fn at(&self) -> Duration {
        let (passed, then) = self.passed;
        passed.saturating_add(self.tools.clock.now().since(then))
    }

    fn name(&self, leaf: Leaf) -> String {
        match self.part {
            Part::Main { .. } => leaf.0.to_string(),
            Part::Monitor(count) => format!("m{count}-{}", leaf.0),
        }
    }

    fn is_noted(&self) -> bool {
        self.part == Part::Main { noted: true }
    }

    /// Keeps something for the next agent.
    pub(super) fn note(&self, note: &Note) {
        if !self.is_noted() {
            return;
        }
        if let Err(error) = self.tools.notes.add(&self.tag.instance_guid, note) {
            let container = &self.tag.instance_guid;
            tracing::warn!(%container, %error, "cannot note what has happened to a container");
        }
    }

    fn happened(&mut self, event: Event) {
        let at = self.at();
        let orders = self.course.happened(&event, at);
        self.orders.extend(orders);
        let after_ms = at.as_millis().try_into().unwrap_or(u64::MAX);
        self.note(&Note::Happened { after_ms, event });
    }

    fn ended(&mut self, leaf: Leaf, ended: Ended) {
        self.stops.remove(&leaf);
        self.last = ended.exit.or(self.last.take());
        self.happened(Event::Ended(leaf, ended.outcome));
    }

    pub(super) fn stop(&mut self) {
        if !self.course.is_stopping() {
            self.happened(Event::Stop);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.course.is_stopping()
    }

    /// How the program ended that ended last.
    pub(super) const fn last(&self) -> Option<&Exit> {
        self.last.as_ref()
    }

    pub(super) fn phase(&self) -> Phase {
        self.broken.clone().map_or_else(|| self.course.phase(), Phase::Over)
    }

    /// Whether a program of the action is there that an earlier agent has begun.
    pub(super) fn found_running(&self) -> bool {
        self.orders.iter().any(|order| match order {
            Order::Begin(leaf) => self.found.contains_key(&self.name(*leaf)),
            Order::Stop(_) | Order::Say(_) => false,
        })
    }

    /// Waits for the next thing to happen. May be given up and called again.
    pub(super) async fn turn(&mut self) -> Turn {
        self.obey();
        if let Phase::Over(outcome) = self.phase() {
            return Turn::Over(outcome);
        }
        let due = self.course.next_due();
        let rest = due.map_or(LONG, |due| due.saturating_sub(self.at()));
        tokio::select! {
            biased;
            Some(_) = self.begun.1.recv() => return Turn::Begun,
            Some(done) = self.doing.join_next() => match done {
                Ok((leaf, ended)) => self.ended(leaf, ended),
                Err(error) => {
                    tracing::error!(%error, "what a container does broke down");
                    self.broken = Some(outcome::failed("the agent could not do what it does"));
                }
            },
            () = tokio::time::sleep(rest) => {
                let orders = self.course.time(self.at());
                self.orders.extend(orders);
            }
        }
        Turn::Going
    }

    fn obey(&mut self) {
        for order in mem::take(&mut self.orders) {
            match order {
                Order::Begin(leaf) => self.do_it(leaf),
                Order::Stop(leaf) => {
                    if let Some(stop) = self.stops.get(&leaf) {
                        stop.cancel();
                    }
                }
                Order::Say(text) => self.say(&text),
            }
        }
    }

    fn do_it(&mut self, leaf: Leaf) {
        let Some(deed) = self.course.deed(leaf) else { return };
        let name = self.name(leaf);
        let job = if self.found.contains_key(&name) { Job::Watch } else { Job::of(deed) };
        let stop = CancellationToken::new();
        self.stops.insert(leaf, stop.clone());
        let output = match self.part {
            Part::Main { .. } => Output::Kept,
            Part::Monitor(_) => Output::Dropped,
        };
        let doing = Doing {
            tools: Arc::clone(&self.tools),
            tag: Arc::clone(&self.tag),
            leaf,
            name,
            output,
            noted: self.is_noted(),
            stop,
            begun: self.begun.0.clone(),
        };
        self.doing.spawn(doing.until_its_end(job));
    }

    /// A container tells how it goes among what it writes itself.
    fn say(&self, text: &str) {
        match self.part {
            Part::Main { .. } => super::logs::say(&self.tag.logs, self.tools.clock.wall(), text),
            Part::Monitor(_) => {}
        }
    }
}
