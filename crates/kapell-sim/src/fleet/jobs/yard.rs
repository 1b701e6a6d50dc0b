//! The machine of a host as a place for the work of runs: it outlives the host's process and dies with the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arcstr::ArcStr;
use kapell_core::run::{Evidence, StopKind, WorkEnd};
use kapell_core::seams::{Clock as _, Timestamp};
use kapell_node::scheduler::backend::{Attempt, News, Newsroom, What};

use crate::fleet::machine::{HANG, WORK};
use crate::parts::chance::Chance;
use crate::parts::clock::Drifting;

/// How long work takes at most that ends by itself.
pub(in crate::fleet) const LONGEST_WORK: Duration = Duration::from_secs(9);
/// Between a wish that work ends and its end by force.
const GRACE: Duration = Duration::from_secs(2);

/// All work of runs on the machine of a host, and what became of it.
#[derive(Debug)]
pub(in crate::fleet) struct Yard {
    host: usize,
    clock: Arc<Drifting>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    chance: Chance,
    /// How often the machine was started.
    boot: u32,
    works: BTreeMap<Attempt, Piece>,
    /// Whom the leader on this machine has asked about.
    wanted: BTreeSet<Attempt>,
    newsroom: Option<Newsroom>,
    news: Vec<YardNews>,
    /// News get lost, doubled and late, and not everything can be ended.
    moody: bool,
}

#[derive(Debug, Clone)]
enum Piece {
    /// Somebody is about to start it.
    Launching,
    Runs {
        since: Timestamp,
        stopping: bool,
    },
    Over(WorkEnd),
}

/// What the simulator is to know.
#[derive(Debug)]
pub(in crate::fleet) enum YardNews {
    Over(Attempt),
    /// It is going to end by then, unless it ends sooner.
    EndsIn {
        attempt: Attempt,
        wait: Duration,
        code: i32,
    },
    /// The leader is to hear of this then.
    Late {
        news: News,
        wait: Duration,
    },
}

/// What a leader has done on its machine.
#[derive(Debug, Clone)]
pub(in crate::fleet) enum YardAsk {
    Launch { attempt: Attempt, told: String },
    Stop { attempt: Attempt, kind: StopKind },
    Release { attempt: Attempt },
}

impl Yard {
    pub(in crate::fleet) fn new(
        host: usize,
        clock: Arc<Drifting>,
        chance: Chance,
        moody: bool,
    ) -> Self {
        let inner = Inner {
            chance,
            boot: 0,
            works: BTreeMap::new(),
            wanted: BTreeSet::new(),
            newsroom: None,
            news: Vec::new(),
            moody,
        };
        Self { host, clock, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::fleet) const fn host(&self) -> usize {
        self.host
    }

    pub(in crate::fleet) fn take_news(&self) -> Vec<YardNews> {
        std::mem::take(&mut self.inner().news)
    }

    pub(in crate::fleet) fn calm_down(&self) {
        self.inner().moody = false;
    }

    /// What a leader on this machine calls it.
    pub(super) fn place(&self) -> ArcStr {
        arcstr::format!("host{}@{}", self.host, self.inner().boot)
    }

    pub(super) fn draw(&self, least: Duration, most: Duration) -> Duration {
        self.inner().chance.between(least, most)
    }

    /// Something that happens only where things go wrong.
    pub(super) fn mishap(&self, permille: u64) -> bool {
        let mut inner = self.inner();
        inner.moody && inner.chance.permille(permille)
    }

    /// A leader takes over what is here. What an earlier one was about to start was not started.
    pub(super) fn open(&self, newsroom: Newsroom) {
        let mut inner = self.inner();
        inner.works.retain(|_, piece| !matches!(piece, Piece::Launching));
        inner.wanted.clear();
        inner.newsroom = Some(newsroom);
    }

    /// Notes that an attempt is to be started. False if it is here already.
    pub(super) fn reserve(&self, attempt: &Attempt) -> bool {
        let mut inner = self.inner();
        inner.wanted.insert(attempt.clone());
        if inner.works.contains_key(attempt) {
            drop(inner);
            self.tell_all(attempt);
            return false;
        }
        inner.works.insert(attempt.clone(), Piece::Launching);
        true
    }

    /// It will not be started after all.
    pub(super) fn drop_launch(&self, attempt: &Attempt) {
        let mut inner = self.inner();
        if matches!(inner.works.get(attempt), Some(Piece::Launching)) {
            inner.works.remove(attempt);
        }
    }

    pub(super) fn find(&self, attempt: &Attempt, place: &str) -> Evidence {
        let mut inner = self.inner();
        inner.wanted.insert(attempt.clone());
        match inner.works.get(attempt) {
            Some(Piece::Launching) => Evidence::Launched,
            Some(Piece::Runs { since, .. }) => Evidence::Running { since: *since },
            Some(Piece::Over(work)) => Evidence::Ended(work.clone()),
            None => {
                let boot = inner.boot;
                drop(inner);
                let (here, before) = (format!("host{}@{boot}", self.host), "before a restart");
                if place == here {
                    Evidence::Absent
                } else if place.starts_with(&format!("host{}@", self.host)) {
                    Evidence::Unknown { why: before.to_owned() }
                } else {
                    Evidence::Unknown { why: format!("it was launched at {place}") }
                }
            }
        }
    }

    /// Whether work of this name may be here at all.
    pub(super) fn is_here(&self, place: &str) -> bool {
        place.starts_with(&format!("host{}@", self.host))
    }

    /// Whether it runs, or is about to.
    pub(super) fn runs(&self, attempt: &Attempt) -> bool {
        matches!(self.inner().works.get(attempt), Some(Piece::Launching | Piece::Runs { .. }))
    }

    pub(super) fn known(&self) -> Vec<Attempt> {
        self.inner().works.keys().cloned().collect()
    }
}

/// What the simulator does for those who ask.
impl Yard {
    /// Starts it. False if whoever was to start it has been told not to.
    pub(in crate::fleet) fn begin(&self, attempt: &Attempt, told: &str) -> bool {
        let since = self.clock.wall();
        {
            let mut inner = self.inner();
            if !matches!(inner.works.get(attempt), Some(Piece::Launching)) {
                return false;
            }
            inner.works.insert(attempt.clone(), Piece::Runs { since, stopping: false });
            if let Some((wait, code)) = fate(told, &mut inner.chance) {
                let attempt = attempt.clone();
                inner.news.push(YardNews::EndsIn { attempt, wait, code });
            }
        }
        self.report(attempt, What::Started { at: since });
        true
    }

    /// Has it end, after its grace if it is given one.
    pub(in crate::fleet) fn stop(&self, attempt: &Attempt, kind: StopKind) {
        let ms = Duration::from_millis;
        let mut inner = self.inner();
        match inner.works.get_mut(attempt) {
            Some(Piece::Launching) => drop(inner.works.remove(attempt)),
            Some(Piece::Runs { stopping, .. }) => {
                let hurries = kind == StopKind::AtOnce;
                if std::mem::replace(stopping, true) && !hurries {
                    return;
                }
                let most = if hurries { ms(20) } else { GRACE };
                let wait = inner.chance.between(ms(1), most);
                let code = if hurries { 137 } else { 143 };
                let attempt = attempt.clone();
                inner.news.push(YardNews::EndsIn { attempt, wait, code });
            }
            Some(Piece::Over(_)) | None => {}
        }
    }

    /// Nothing is kept of it any more; what runs is ended.
    pub(in crate::fleet) fn release(&self, attempt: &Attempt) {
        let mut inner = self.inner();
        inner.wanted.remove(attempt);
        if let Some(Piece::Runs { .. }) = inner.works.remove(attempt) {
            inner.news.push(YardNews::Over(attempt.clone()));
        }
    }

    /// It ends by itself, or its time to stop is over.
    pub(in crate::fleet) fn end(&self, attempt: &Attempt, code: i32) {
        let at = self.clock.wall();
        let failure = (code != 0).then(|| format!("exit code {code}"));
        let work = WorkEnd { began: None, at, exit_code: Some(code), failure };
        {
            let mut inner = self.inner();
            let Some(piece @ Piece::Runs { .. }) = inner.works.get_mut(attempt) else { return };
            *piece = Piece::Over(work.clone());
            inner.news.push(YardNews::Over(attempt.clone()));
        }
        self.report(attempt, What::Ended(work));
    }

    /// The power fails: what runs is gone. What had ended may be found again.
    pub(in crate::fleet) fn crash(&self, finds_ended: bool) {
        let mut inner = self.inner();
        inner.boot += 1;
        inner.newsroom = None;
        for (attempt, piece) in std::mem::take(&mut inner.works) {
            match piece {
                Piece::Runs { .. } => inner.news.push(YardNews::Over(attempt)),
                Piece::Over(_) if finds_ended => drop(inner.works.insert(attempt, piece)),
                Piece::Over(_) | Piece::Launching => {}
            }
        }
    }

    pub(in crate::fleet) fn boot(&self) -> u32 {
        self.inner().boot
    }

    /// Hands on what was late.
    pub(in crate::fleet) fn deliver(&self, news: News) {
        let inner = self.inner();
        if let Some(newsroom) = &inner.newsroom {
            // Who has gone hears nothing.
            drop(newsroom.send(news));
        }
    }

    fn report(&self, attempt: &Attempt, what: What) {
        let news = News { attempt: attempt.clone(), what };
        let mut inner = self.inner();
        if !inner.wanted.contains(attempt) {
            return;
        }
        let luck = if inner.moody { inner.chance.below(100) } else { 99 };
        drop(inner);
        match luck {
            0..3 => {}
            3..8 => {
                self.deliver(news.clone());
                self.deliver(news);
            }
            8..16 => {
                let wait = self.draw(Duration::ZERO, Duration::from_secs(3));
                self.inner().news.push(YardNews::Late { news, wait });
            }
            _ => self.deliver(news),
        }
    }

    /// Tells what is known of an attempt by now.
    fn tell_all(&self, attempt: &Attempt) {
        let piece = self.inner().works.get(attempt).cloned();
        match piece {
            Some(Piece::Launching) | None => {}
            Some(Piece::Runs { since, .. }) => self.report(attempt, What::Started { at: since }),
            Some(Piece::Over(work)) => self.report(attempt, What::Ended(work)),
        }
    }
}

/// When work ends by itself, and with what.
fn fate(told: &str, chance: &mut Chance) -> Option<(Duration, i32)> {
    let ms = Duration::from_millis;
    match told {
        HANG => None,
        WORK => {
            let code = i32::from(chance.permille(200));
            Some((chance.between(ms(10), LONGEST_WORK), code))
        }
        _ => Some((chance.between(ms(1), ms(800)), i32::from(chance.permille(100)))),
    }
}
