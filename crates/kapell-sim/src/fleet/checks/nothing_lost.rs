use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{DesiredLrp, Record, RecordKey, Reply, Request, Task, TaskState};
use kapell_core::run::is_of_run;
use kapell_core::seams::Timestamp;

use super::{Check, clocks_are_true};
use crate::fleet::fact::Fact;
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// How much sooner than by the true clock a host may find a task old.
const SLACK: Duration = Duration::from_secs(2);

/// No acknowledged write is lost.
///
/// When a client is answered, a commit has written what the answer shows, or a later version of it. What was
/// acknowledged goes only by somebody's wish or by a rule: a desired LRP when a client has asked for it;
/// a task when a client has asked for it, when its callback was called, or when it has been complete for
/// long. No commit puts an older version over a newer one. In the end all that was acknowledged and has not
/// gone so stands in the store. What was overwritten with garbage is out of it.
#[derive(Debug, Default)]
pub(super) struct NothingLost {
    asked: Vec<(Request, Duration)>,
    /// The highest version of each creation that commits have written.
    written: BTreeMap<(RecordKey, Creation), u64>,
    /// When each key was last written, and when what stood there was last given up or deleted.
    touched: BTreeMap<RecordKey, Duration>,
    gone: BTreeMap<RecordKey, Duration>,
    /// When each task was first seen complete.
    completed: BTreeMap<Creation, Duration>,
    acknowledged: BTreeSet<RecordKey>,
    /// What is not there for a reason.
    absent: BTreeSet<RecordKey>,
}

/// Tells those apart that have had the same name.
type Creation = String;

fn of_desired(lrp: &DesiredLrp) -> Creation {
    lrp.created_at.map_or_else(String::new, |Timestamp(at)| at.to_string())
}

fn of_task(task: &Task) -> Creation {
    task.instance_guid.to_string()
}

impl NothingLost {
    /// When a client last asked for this.
    fn since(&self, request: &Request, view: &View<'_>) -> Duration {
        let last = self.asked.iter().rfind(|(asked, _)| is_same(asked, request));
        last.map_or(view.now, |(_, at)| *at)
    }

    fn has_asked(&self, is_it: impl Fn(&Request) -> bool) -> bool {
        self.asked.iter().any(|(request, _)| is_it(request))
    }

    fn wants_removed(&self, key: &RecordKey) -> bool {
        self.has_asked(|request| match (request, key) {
            (Request::RemoveDesired { process_guid }, RecordKey::Desired(guid)) => {
                process_guid == guid
            }
            (Request::DeleteTask { task_guid }, RecordKey::Task(guid)) => task_guid == guid,
            (_, _) => false,
        })
    }

    /// Whether a commit has written this version of it or a later one, or has removed it since it was asked for.
    fn is_written(
        &self,
        key: &RecordKey,
        creation: Creation,
        version: u64,
        asked: Duration,
    ) -> bool {
        let written = self.written.get(&(key.clone(), creation));
        written.is_some_and(|it| *it >= version) || self.is_gone(key, asked)
    }

    fn is_gone(&self, key: &RecordKey, asked: Duration) -> bool {
        self.gone.get(key).is_some_and(|at| *at >= asked)
    }

    fn acknowledged(
        &mut self,
        request: &Request,
        reply: &Reply,
        view: &View<'_>,
    ) -> Result<(), String> {
        let asked = self.since(request, view);
        let (key, done) = match reply {
            Reply::Desired { lrp, .. } => {
                let key = RecordKey::Desired(lrp.process_guid.clone());
                let done = self.is_written(&key, of_desired(lrp), lrp.version, asked);
                (key, done)
            }
            Reply::Task { task, .. } => {
                let key = RecordKey::Task(task.guid().clone());
                let done = self.is_written(&key, of_task(task), task.version, asked);
                (key, done)
            }
            Reply::Domain(fresh) => {
                let key = RecordKey::Domain(fresh.domain.clone());
                let expiry = fresh.expires_at.map_or_else(String::new, |at| at.0.to_string());
                let since = self.touched.get(&key).is_some_and(|at| *at >= asked);
                let done = since || self.written.contains_key(&(key.clone(), expiry));
                (key, done)
            }
            Reply::Done => {
                let Some(key) = removes(request) else { return Ok(()) };
                let done = self.is_gone(&key, asked) || !is_visible(&key, view);
                return done.then_some(()).ok_or_else(|| unwritten(request));
            }
            Reply::Instance(_) | Reply::Job { .. } | Reply::Run { .. } => return Ok(()),
        };
        self.acknowledged.insert(key);
        done.then_some(()).ok_or_else(|| unwritten(request))
    }

    fn committed(&mut self, change: &Change, view: &View<'_>) -> Result<(), String> {
        let Change { key, before, after } = change;
        if after.as_ref().is_some_and(stands_in) {
            return Ok(());
        }
        let before = before.as_ref().filter(|before| !stands_in(before));
        may_follow(key, before, after.as_ref())?;
        self.may_go(key, before, after.as_ref(), view)?;
        self.touched.insert(key.clone(), view.now);
        let (creation, version) = match after {
            None => {
                self.gone.insert(key.clone(), view.now);
                self.absent.insert(key.clone());
                return Ok(());
            }
            Some(Record::Desired(lrp)) => {
                if lrp.removing {
                    self.gone.insert(key.clone(), view.now);
                }
                (of_desired(lrp), lrp.version)
            }
            Some(Record::Task(task)) => {
                if let Some(at) = task.first_completed_at {
                    // It may have been decided long before a slow store has taken it.
                    let at = view.now.saturating_sub(view.wall.since(at));
                    self.completed.entry(of_task(task)).or_insert(at);
                }
                (of_task(task), task.version)
            }
            Some(Record::Domain(fresh)) => {
                (fresh.expires_at.map_or_else(String::new, |at| at.0.to_string()), 0)
            }
            Some(
                Record::Actual(_)
                | Record::Job(_)
                | Record::Definition(_)
                | Record::Run(_)
                | Record::Message(_),
            ) => {
                return Ok(());
            }
        };
        self.absent.remove(key);
        let written = self.written.entry((key.clone(), creation)).or_default();
        *written = version.max(*written);
        Ok(())
    }

    /// What was written goes only by a wish or a rule.
    fn may_go(
        &self,
        key: &RecordKey,
        before: Option<&Record>,
        after: Option<&Record>,
        view: &View<'_>,
    ) -> Result<(), String> {
        if !goes(before, after) || self.wants_removed(key) || !clocks_are_true(view.plan) {
            return Ok(());
        }
        let by_rule = match before {
            // Its run says when: see there.
            Some(Record::Task(task)) if is_of_run(task.guid()) => true,
            Some(Record::Task(task)) => self.may_be_forgotten(task, view),
            Some(Record::Domain(fresh)) => !fresh.is_fresh(view.wall.after(SLACK)),
            Some(
                Record::Desired(_)
                | Record::Actual(_)
                | Record::Job(_)
                | Record::Definition(_)
                | Record::Run(_)
                | Record::Message(_),
            )
            | None => false,
        };
        if by_rule { Ok(()) } else { Err(format!("{key:?} goes, and nobody has asked for that")) }
    }

    fn may_be_forgotten(&self, task: &Task, view: &View<'_>) -> bool {
        let complete = match task.state {
            TaskState::Pending | TaskState::Running => false,
            TaskState::Completed | TaskState::Resolving => true,
        };
        let called = !task.definition.completion_callback_url.is_empty();
        let since = self.completed.get(&of_task(task));
        let old = since.is_some_and(|at| view.now + SLACK >= *at + view.settings.completed_task);
        complete && (called || old)
    }
}

/// Whether what was written is not there any more.
fn goes(before: Option<&Record>, after: Option<&Record>) -> bool {
    let Some(before) = before else { return false };
    let Some(after) = after else {
        return match before {
            Record::Desired(before) => !before.removing,
            Record::Task(_) | Record::Domain(_) => true,
            Record::Actual(_)
            | Record::Job(_)
            | Record::Definition(_)
            | Record::Run(_)
            | Record::Message(_) => false,
        };
    };
    if let Some((before, after)) = before.as_desired().zip(after.as_desired()) {
        return after.removing && !before.removing || of_desired(before) != of_desired(after);
    }
    let tasks = before.as_task().zip(after.as_task());
    tasks.is_some_and(|(before, after)| of_task(before) != of_task(after))
}

/// Whether it only stands in the place of what cannot be read.
fn stands_in(record: &Record) -> bool {
    record.as_desired().is_some_and(|lrp| lrp.forgotten)
}

/// No commit puts an older version over a newer one.
fn may_follow(
    key: &RecordKey,
    before: Option<&Record>,
    after: Option<&Record>,
) -> Result<(), String> {
    let Some((before, after)) = before.zip(after) else { return Ok(()) };
    let (is, was) = if let Some((before, after)) = before.as_desired().zip(after.as_desired()) {
        // That nothing is left to be given up is noted without a new version.
        let noted = DesiredLrp { retiring: after.retiring, ..before.clone() } == *after;
        if noted || of_desired(before) != of_desired(after) {
            return Ok(());
        }
        (after.version, before.version)
    } else if let Some((before, after)) = before.as_task().zip(after.as_task()) {
        if of_task(before) != of_task(after) {
            return Ok(());
        }
        (after.version, before.version)
    } else {
        return Ok(());
    };
    if is > was { Ok(()) } else { Err(format!("{key:?}: version {is} is put over {was}")) }
}

/// What is gone once this is done.
fn removes(request: &Request) -> Option<RecordKey> {
    if let Request::RemoveDesired { process_guid } = request {
        return Some(RecordKey::Desired(process_guid.clone()));
    }
    if let Request::DeleteTask { task_guid } = request {
        return Some(RecordKey::Task(task_guid.clone()));
    }
    None
}

/// The board names the container of a task where a client does not.
fn is_same(one: &Request, other: &Request) -> bool {
    match (one, other) {
        (
            Request::CreateTask { definition: one, .. },
            Request::CreateTask { definition: other, .. },
        ) => one == other,
        (one, other) => one == other,
    }
}

/// Whether something stands there, as others see it.
fn is_visible(key: &RecordKey, view: &View<'_>) -> bool {
    match view.records.get(key) {
        Some(Record::Desired(lrp)) => !lrp.removing,
        Some(
            Record::Actual(_)
            | Record::Task(_)
            | Record::Domain(_)
            | Record::Job(_)
            | Record::Definition(_)
            | Record::Run(_)
            | Record::Message(_),
        ) => true,
        None => false,
    }
}

fn unwritten(request: &Request) -> String {
    format!("acknowledged and not committed: {request:?}")
}

impl Check for NothingLost {
    fn name(&self) -> &'static str {
        "nothing lost"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        if let Fact::Asked { request } = fact {
            self.asked.push((request.clone(), view.now));
        }
        if let Fact::Acknowledged { request, reply } = fact {
            return self.acknowledged(request, reply, view);
        }
        if let Fact::Corrupted { key } = fact {
            self.absent.insert(key.clone());
        }
        if let Fact::Committed { changes, .. } = fact {
            for change in changes {
                self.committed(change, view)?;
            }
        }
        Ok(())
    }

    fn at_end(&mut self, view: &View<'_>) -> Result<(), String> {
        let stands = |key: &RecordKey| view.records.get(key).is_some();
        let lost = |key: &&RecordKey| !stands(key) && !self.absent.contains(*key);
        match self.acknowledged.iter().find(lost) {
            None => Ok(()),
            Some(key) => Err(format!("{key:?} was acknowledged and is not there in the end")),
        }
    }
}
