//! What is seen of the Jobs and pods of a namespace, by two watches for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapell_backend::kubernetes::{Error, Event};
use kapell_core::kubernetes::{
    Job, JobSight, Life, Pod, PodSight, Presence, Standing, is_overlooked, judge, life,
};
use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Sight {
    state: Mutex<State>,
    seen: Seen,
}

#[derive(Debug)]
struct Seen(watch::Sender<u64>);

impl Default for Seen {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

#[derive(Debug, Default)]
struct State {
    /// By the names of the Jobs.
    all: BTreeMap<String, Held>,
    /// The kinds of which everything was seen once.
    listed: BTreeSet<&'static str>,
    trouble: Option<Trouble>,
}

/// A watch that sees nothing, or did not see anything for a while.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) since: Instant,
    pub(super) error: Error,
}

/// What is known of one Job.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    pub(super) job: Presence<JobSight>,
    pub(super) pod: Presence<PodSight>,
}

impl Held {
    pub(super) fn standing(&self) -> Standing {
        judge(&self.job, &self.pod)
    }

    /// How far one of its containers is.
    pub(super) fn life(&self, container: &str) -> Life {
        life(&self.job, &self.pod, container)
    }

    /// Its pod is to be asked for.
    pub(super) fn is_overlooked(&self) -> bool {
        is_overlooked(&self.job, &self.pod)
    }

    /// Nothing of it is left.
    pub(super) const fn is_gone(&self) -> bool {
        matches!(self.job, Presence::Gone(_)) && !self.pod.is_there()
    }
}

/// One of the two kinds of objects.
pub(super) trait Part {
    const KIND: &'static str;
    fn job_name(&self) -> &str;
    fn put(&self, held: &mut Held);
    fn is_there(held: &Held) -> bool;
    fn gone(held: &mut Held);
}

impl Part for Job {
    const KIND: &'static str = "jobs";

    fn job_name(&self) -> &str {
        &self.metadata.name
    }

    fn put(&self, held: &mut Held) {
        held.job = Presence::There(JobSight::from(self));
    }

    fn is_there(held: &Held) -> bool {
        held.job.is_there()
    }

    fn gone(held: &mut Held) {
        held.job = std::mem::take(&mut held.job).gone();
    }
}

impl Part for Pod {
    const KIND: &'static str = "pods";

    fn job_name(&self) -> &str {
        self.metadata.labels.get("batch.kubernetes.io/job-name").map_or("", String::as_str)
    }

    fn put(&self, held: &mut Held) {
        held.pod = Presence::There(PodSight::from(self));
    }

    fn is_there(held: &Held) -> bool {
        held.pod.is_there()
    }

    fn gone(held: &mut Held) {
        held.pod = std::mem::take(&mut held.pod).gone();
    }
}

impl Sight {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a watch tells.
    pub(super) fn take<T: Part>(&self, event: Event<T>) {
        {
            let mut state = self.state();
            match event {
                Event::All(items) => state.all::<T>(&items),
                Event::Seen(item) => state.see(&item),
                Event::Gone(item) => {
                    state.see(&item);
                    state.all.get_mut(item.job_name()).into_iter().for_each(T::gone);
                }
                Event::Blind(error) => {
                    let since = state.trouble.as_ref().map_or_else(Instant::now, |it| it.since);
                    state.trouble = Some(Trouble { since, error });
                }
            }
        }
        self.seen.0.send_modify(|count| *count += 1);
    }

    /// Everything was seen once.
    pub(super) fn is_listed(&self) -> bool {
        self.state().listed.len() == 2
    }

    pub(super) fn held(&self, name: &str) -> Held {
        self.state().all.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.state().trouble.clone()
    }

    /// The cluster has answered otherwise.
    pub(super) fn is_fine(&self) {
        self.state().trouble = None;
    }

    /// Takes in the pods of a Job, as the cluster has told them to whoever asked, unless they were seen meanwhile.
    pub(super) fn found(&self, name: &str, pods: &[Pod]) {
        {
            let mut state = self.state();
            let Some(held) = state.all.get_mut(name).filter(|held| held.is_overlooked()) else {
                return;
            };
            match pods.first() {
                Some(pod) => pod.put(held),
                None => held.pod = Presence::Absent,
            }
        }
        self.seen.0.send_modify(|count| *count += 1);
    }

    /// Another one of this name is to come.
    pub(super) fn forget(&self, name: &str) {
        self.state().all.remove(name);
    }

    /// Tells of changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.seen.0.subscribe()
    }
}

impl State {
    fn see<T: Part>(&mut self, item: &T) {
        self.trouble = None;
        item.put(self.all.entry(item.job_name().to_owned()).or_default());
    }

    fn all<T: Part>(&mut self, items: &[T]) {
        self.trouble = None;
        self.listed.insert(T::KIND);
        let there: BTreeSet<&str> = items.iter().map(T::job_name).collect();
        for (name, held) in &mut self.all {
            if T::is_there(held) && !there.contains(name.as_str()) {
                T::gone(held);
            }
        }
        for item in items {
            self.see(item);
        }
    }
}
