//! Work and constraints that do as they are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_core::constraint::Verdict;
use kapell_core::job::JobDefinition;
use kapell_core::run::{ActionsDone, Checked, Counts, Evidence, StopKind, WorkEnd};
use kapell_core::seams::{Clock, Timestamp};

use crate::constraint::Pulse;
use crate::scheduler::backend::{Attempt, Backend, Leftover, News, Newsroom, What, Work};
use crate::scheduler::checker::{Checker, Subject, Wants};

/// How work goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It starts and ends at once, with these exit codes by attempt.
    Ends(&'static [i32]),
    /// It starts, and somebody ends it.
    Held,
    NeverStarts,
    Refused,
    Unstartable,
    /// Whoever launches it gets no answer.
    Hangs,
    /// It takes so many seconds until it is launched, then it runs.
    Slow(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    Launched,
    Running(Timestamp),
    Ended(WorkEnd),
}

#[expect(clippy::struct_excessive_bools, reason = "each is set by a test of its own")]
#[derive(Debug)]
pub(super) struct State {
    pub(super) manner: Manner,
    pub(super) works: BTreeMap<Attempt, Known>,
    pub(super) launches: Vec<(Attempt, Timestamp)>,
    pub(super) stops: Vec<(Attempt, StopKind)>,
    pub(super) released: Vec<Attempt>,
    pub(super) finds: usize,
    /// Nobody is told anything.
    pub(super) mute: bool,
    pub(super) unstoppable: bool,
    /// So long a launch may take.
    pub(super) launch_limit: Option<Duration>,
    /// Whoever stops anything gets no answer.
    pub(super) stop_hangs: bool,
    /// What no run knows is to be left alone.
    pub(super) keeps: bool,
    pub(super) parameters: BTreeMap<String, String>,
}

/// Work in memory: it outlives leaders.
#[derive(Debug)]
pub(super) struct Fake {
    clock: Arc<dyn Clock>,
    /// Of the leader that leads.
    news: Mutex<Option<Newsroom>>,
    state: Mutex<State>,
}

impl Fake {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State {
            manner: Manner::Ends(&[0]),
            works: BTreeMap::new(),
            launches: Vec::new(),
            stops: Vec::new(),
            released: Vec::new(),
            finds: 0,
            mute: false,
            unstoppable: false,
            launch_limit: Some(Duration::from_secs(60)),
            stop_hangs: false,
            keeps: false,
            parameters: BTreeMap::new(),
        };
        Self { clock, news: Mutex::default(), state: Mutex::new(state) }
    }

    pub(super) fn report_to(&self, newsroom: Newsroom) {
        *self.news.lock().unwrap_or_else(PoisonError::into_inner) = Some(newsroom);
    }

    fn report(&self, news: News) {
        let newsroom = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newsroom) = newsroom.as_ref() {
            drop(newsroom.send(news));
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, attempt: &Attempt, what: What) {
        if !self.state().mute {
            self.report(News { attempt: attempt.clone(), what });
        }
    }

    pub(super) fn start(&self, attempt: &Attempt) {
        let at = self.clock.wall();
        self.state().works.insert(attempt.clone(), Known::Running(at));
        self.tell(attempt, What::Started { at });
    }

    pub(super) fn end(&self, attempt: &Attempt, code: i32) {
        let failure = (code != 0).then(|| format!("exit code {code}"));
        let work = WorkEnd { began: None, at: self.clock.wall(), exit_code: Some(code), failure };
        self.state().works.insert(attempt.clone(), Known::Ended(work.clone()));
        self.tell(attempt, What::Ended(work));
    }

    /// How often each attempt was launched, as the work itself counts it.
    pub(super) fn assert_launched_once(&self) {
        let mut launches: Vec<Attempt> =
            self.state().launches.iter().map(|(it, _)| it.clone()).collect();
        let count = launches.len();
        launches.sort();
        launches.dedup();
        assert_eq!(launches.len(), count, "an attempt was launched twice");
    }
}

#[async_trait]
impl Backend for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn place(&self) -> ArcStr {
        arcstr::literal!("here")
    }

    async fn launch(&self, work: &Work) -> Result<(), String> {
        let attempt = work.attempt.clone();
        let manner = self.state().manner;
        if let Manner::Slow(seconds) = manner {
            tokio::time::sleep(Duration::from_secs(seconds)).await; // tidy: allow(sleep) the work is slow
        }
        if manner == Manner::Hangs {
            std::future::pending::<()>().await;
        }
        if manner == Manner::Refused {
            return Err("no such program".to_owned());
        }
        {
            let mut state = self.state();
            if state.works.contains_key(&attempt) {
                return Ok(());
            }
            let at = self.clock.wall();
            state.launches.push((attempt.clone(), at));
            state.works.insert(attempt.clone(), Known::Launched);
            state.parameters.clone_from(&work.parameters);
        }
        match manner {
            Manner::Ends(codes) => {
                self.start(&attempt);
                let number = usize::try_from(attempt.number).unwrap().min(codes.len() - 1);
                self.end(&attempt, codes[number]);
            }
            Manner::Held | Manner::Slow(_) => self.start(&attempt),
            Manner::Unstartable => {
                self.tell(&attempt, What::Unstartable { why: "no cell takes it".to_owned() });
            }
            Manner::NeverStarts | Manner::Refused | Manner::Hangs => {}
        }
        Ok(())
    }

    async fn find(&self, attempt: &Attempt, place: &str) -> Evidence {
        assert!(place == "here" || place.is_empty(), "{place}");
        let mut state = self.state();
        state.finds += 1;
        match state.works.get(attempt) {
            None => Evidence::Absent,
            Some(Known::Launched) => Evidence::Launched,
            Some(Known::Running(since)) => Evidence::Running { since: *since },
            Some(Known::Ended(work)) => Evidence::Ended(work.clone()),
        }
    }

    async fn stop(&self, attempt: &Attempt, _: &str, kind: StopKind) -> Result<(), String> {
        self.state().stops.push((attempt.clone(), kind));
        if self.state().stop_hangs {
            std::future::pending::<()>().await;
        }
        if self.state().unstoppable {
            return Err("it does not go away".to_owned());
        }
        let runs =
            matches!(self.state().works.get(attempt), Some(Known::Running(_) | Known::Launched));
        if runs {
            tokio::time::sleep(Duration::from_secs(1)).await; // tidy: allow(sleep) the work takes its time to end
            self.end(attempt, 143);
        }
        Ok(())
    }

    async fn release(&self, attempt: &Attempt) {
        let mut state = self.state();
        state.works.remove(attempt);
        state.released.push(attempt.clone());
    }

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        Ok(self.state().works.keys().cloned().collect())
    }

    fn launch_limit(&self) -> Option<Duration> {
        self.state().launch_limit
    }

    fn calls(&self, attempt: &Attempt) -> u32 {
        if self.state().works.contains_key(attempt) { 3 + attempt.number } else { 0 }
    }

    fn leftover(&self, _attempt: &Attempt) -> Leftover {
        Leftover { place: "somewhere".to_owned(), stays: self.state().keeps }
    }
}

/// How a check or an action goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    Done(Verdict),
    /// So many seconds, with a tick each.
    Busy(u64),
    /// For ever, without a tick.
    Stuck,
    Panics,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    pub(super) wants: Wants,
    pub(super) check: Course,
    pub(super) acts: bool,
    pub(super) act: Course,
    pub(super) post: Course,
}

#[derive(Debug)]
pub(super) struct Scripted(pub(super) Mutex<Script>);

impl Default for Scripted {
    fn default() -> Self {
        let done = Course::Done(Verdict::Proceed);
        Self(Mutex::new(Script {
            wants: Wants::default(),
            check: done,
            acts: false,
            act: done,
            post: done,
        }))
    }
}

impl Scripted {
    pub(super) fn set(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.0.lock().unwrap());
    }

    fn get(&self) -> Script {
        *self.0.lock().unwrap()
    }
}

async fn go(course: Course, pulse: &Pulse) -> ActionsDone {
    let verdict = match course {
        Course::Done(verdict) => verdict,
        Course::Busy(seconds) => {
            for _ in 0..seconds {
                pulse.beat();
                tokio::time::sleep(Duration::from_secs(1)).await; // tidy: allow(sleep) a long action
            }
            Verdict::Proceed
        }
        Course::Stuck => std::future::pending().await,
        Course::Panics => panic!("a mistake of a constraint"),
    };
    let counts = Counts { checked: 1, violated: 0, executed: 1, failed: 0 };
    ActionsDone { verdict, message: format!("{verdict:?}"), counts, notes: Vec::new() }
}

#[async_trait]
impl Checker for Scripted {
    fn wants(&self, _: &JobDefinition) -> Wants {
        self.get().wants
    }

    async fn check(&self, subject: &Subject, pulse: &Pulse) -> Checked {
        assert_eq!(subject.run.run_id.job(), subject.definition.job_id.as_str());
        let ActionsDone { verdict, message, counts, notes } = go(self.get().check, pulse).await;
        Checked { verdict, message, acts: self.get().acts, counts, notes }
    }

    async fn act(&self, _: &Subject, pulse: &Pulse) -> ActionsDone {
        go(self.get().act, pulse).await
    }

    async fn check_post(&self, subject: &Subject, _: &WorkEnd, pulse: &Pulse) -> ActionsDone {
        assert!(subject.started_at.is_some());
        go(self.get().post, pulse).await
    }
}
