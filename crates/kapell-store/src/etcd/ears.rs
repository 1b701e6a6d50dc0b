//! Watches of this client, by which it knows that an entry has not changed since it looked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::model::Key;

/// A watch that is read, on one member. It is alive for as long as somebody reads it.
#[derive(Debug)]
pub(super) struct Ear {
    member: usize,
    heard: AtomicU64,
}

impl Ear {
    pub(super) fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }
}

/// How much an ear had heard at some moment.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    ear: Weak<Ear>,
    heard: u64,
}

impl Mark {
    /// Whether it would have heard of a change since, and has not.
    fn is_quiet(&self, member: usize) -> bool {
        let quiet =
            |ear: Arc<Ear>| ear.member == member && ear.heard.load(Ordering::Relaxed) == self.heard;
        self.ear.upgrade().is_some_and(quiet)
    }
}

/// What was seen to stand, and what an ear had heard before that look.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    value: Vec<u8>,
    mark: Mark,
}

impl Seen {
    pub(super) fn new(value: &[u8], mark: Mark) -> Self {
        Self { value: value.to_vec(), mark }
    }

    /// Whether this stands there still, as far as that member tells.
    pub(super) fn stands(&self, value: &[u8], member: usize) -> bool {
        self.value == value && self.mark.is_quiet(member)
    }
}

/// All watches of a client.
#[derive(Debug, Default)]
pub(super) struct Ears(Mutex<HashMap<Key, Vec<Weak<Ear>>>>);

impl Ears {
    /// For a watch that stands.
    pub(super) fn open(&self, key: &Key, member: usize) -> Arc<Ear> {
        let ear = Arc::new(Ear { member, heard: AtomicU64::new(0) });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, ears| {
            ears.retain(|ear| ear.strong_count() > 0);
            !ears.is_empty()
        });
        all.entry(key.clone()).or_default().push(Arc::downgrade(&ear));
        ear
    }

    /// What the newest one at this member has heard so far; nothing if there is none.
    pub(super) fn mark(&self, key: &Key, member: usize) -> Option<Mark> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = all.get(key)?.iter().rev().filter_map(Weak::upgrade);
        let ear = alive.into_iter().find(|ear| ear.member == member)?;
        Some(Mark { heard: ear.heard.load(Ordering::Relaxed), ear: Arc::downgrade(&ear) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ear_that_is_alive_and_has_heard_nothing_since_is_trusted() {
        let (ears, key) = (Ears::default(), Key::new(*b"k"));
        assert!(ears.mark(&key, 0).is_none());
        let ear = ears.open(&key, 0);
        assert!(ears.mark(&key, 1).is_none() && ears.mark(&Key::new(*b"l"), 0).is_none());
        ear.hear();
        let seen = Seen::new(b"v", ears.mark(&key, 0).unwrap());
        assert!(seen.stands(b"v", 0), "what it heard before the look is in the look");
        assert!(!seen.stands(b"w", 0) && !seen.stands(b"v", 1));
        ear.hear();
        assert!(!seen.stands(b"v", 0), "it has heard something");
        let seen = Seen::new(b"v", ears.mark(&key, 0).unwrap());
        assert!(seen.stands(b"v", 0));
        drop(ear);
        assert!(!seen.stands(b"v", 0) && ears.mark(&key, 0).is_none(), "nobody listens");
        let other = ears.open(&key, 0);
        assert!(!seen.stands(b"v", 0), "another one may have begun too late");
        drop(other);
    }
}
