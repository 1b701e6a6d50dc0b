//! What this process has seen of entries, and when: by that they run out.

use std::collections::BTreeMap;
use std::time::Duration;

use kapell_core::seams::Moment;

use super::item::Stand;
use crate::model::{Entry, Generation, Held, Key};

#[derive(Debug, Default)]
pub(super) struct Sights(BTreeMap<Key, Sight>);

#[derive(Debug)]
struct Sight {
    stand: Stand,
    /// When this write was first seen. It was made before.
    since: Moment,
    /// It was made here.
    own: bool,
}

/// An entry as it is judged here and now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) entry: Entry,
    /// Its time is over, and it lies there all the same: under this stamp it may be removed.
    pub(super) over: Option<Vec<u8>>,
}

/// What a watch tells of. A renewal is none of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Face {
    generation: Generation,
    value: Option<Vec<u8>>,
}

impl Sight {
    fn left(&self, now: Moment) -> Option<Duration> {
        self.stand.ttl.map(|ttl| ttl.saturating_sub(now.since(self.since)))
    }

    fn judge(&self, now: Moment) -> Judged {
        let Stand { generation, value, stamp, .. } = &self.stand;
        let remaining = self.left(now);
        let is_over = value.is_some() && remaining == Some(Duration::ZERO);
        let held = value.clone().filter(|_| !is_over).map(|value| Held { value, remaining });
        let entry = Entry { generation: *generation, held };
        Judged { entry, over: is_over.then(|| stamp.clone()) }
    }
}

impl Sights {
    /// Judges an entry that was just found to lie there like this, or was just written by us.
    pub(super) fn see(&mut self, key: &Key, stand: Stand, own: bool, now: Moment) -> Judged {
        let known = self.0.get_mut(key).filter(|known| known.stand.stamp == stand.stamp);
        if let Some(known) = known {
            // Lifted, perhaps: that is no new write, and time goes on.
            known.stand = stand;
            // A look may have come before the answer to our own write.
            known.own |= own;
            return known.judge(now);
        }
        let sight = Sight { stand, since: now, own };
        let judged = sight.judge(now);
        self.0.insert(key.clone(), sight);
        judged
    }

    /// The stamp of what is known to have run out, unless somebody has written since.
    pub(super) fn over(&self, key: &Key, now: Moment) -> Option<Vec<u8>> {
        self.0.get(key)?.judge(now).over
    }

    /// What is known of an entry without looking.
    pub(super) fn face(&self, key: &Key) -> Option<Face> {
        self.0.get(key).map(|sight| Face {
            generation: sight.stand.generation,
            value: sight.stand.value.clone(),
        })
    }

    /// Whether it is held here for a while yet: then nobody else writes it, and it need not be looked at.
    pub(super) fn is_ours(&self, key: &Key, now: Moment) -> bool {
        let held = |sight: &Sight| {
            let lasts = sight.left(now).is_none_or(|left| !left.is_zero());
            sight.own && sight.stand.value.is_some() && sight.stand.ttl.is_some() && lasts
        };
        self.0.get(key).is_some_and(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(2);

    fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    fn stand(stamp: u8, generation: u64) -> Stand {
        let (value, stamp) = (Some(b"who".to_vec()), vec![stamp; 16]);
        Stand { generation: Generation(generation), value, ttl: Some(TTL), stamp }
    }

    fn left(judged: &Judged) -> Option<Duration> {
        judged.entry.held.as_ref().and_then(|held| held.remaining)
    }

    #[test]
    fn an_entry_runs_out_once_it_has_stood_unchanged_for_its_time_here() {
        let (mut sights, key) = (Sights::default(), Key::new(*b"k"));
        assert_eq!(left(&sights.see(&key, stand(1, 1), false, at(100))), Some(TTL));
        let judged = sights.see(&key, stand(1, 1), false, at(101));
        assert_eq!(left(&judged), Some(Duration::from_secs(1)));
        assert_eq!(sights.over(&key, at(101)), None);
        let judged = sights.see(&key, stand(1, 1), false, at(102));
        assert_eq!((judged.entry.held, judged.over), (None, Some(vec![1; 16])));
        assert_eq!(judged.entry.generation, Generation(1));
        assert_eq!(sights.over(&key, at(102)), Some(vec![1; 16]));
        // The same value, written anew.
        assert_eq!(left(&sights.see(&key, stand(2, 1), false, at(103))), Some(TTL));
        assert_eq!(sights.over(&key, at(103)), None);
    }

    #[test]
    fn a_lift_is_no_new_write() {
        let (mut sights, key) = (Sights::default(), Key::new(*b"k"));
        sights.see(&key, stand(1, 1), false, at(100));
        let judged = sights.see(&key, stand(1, 9), false, at(101));
        assert_eq!(judged.entry.generation, Generation(9));
        assert_eq!(left(&judged), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_write_of_ours_that_is_seen_before_its_answer_comes_is_ours_all_the_same() {
        let (mut sights, key) = (Sights::default(), Key::new(*b"k"));
        sights.see(&key, stand(1, 1), false, at(100));
        assert!(!sights.is_ours(&key, at(100)), "nobody has said yet whose it is");
        let judged = sights.see(&key, stand(1, 1), true, at(101));
        assert!(sights.is_ours(&key, at(101)));
        assert_eq!(left(&judged), Some(Duration::from_secs(1)), "it counts from the look");
        sights.see(&key, stand(1, 1), false, at(101));
        assert!(sights.is_ours(&key, at(101)), "a look takes nothing away");
    }

    #[test]
    fn what_is_held_here_need_not_be_looked_at_and_a_renewal_shows_no_other_face() {
        let (mut sights, key) = (Sights::default(), Key::new(*b"k"));
        assert!(!sights.is_ours(&key, at(100)) && sights.face(&key).is_none());
        sights.see(&key, stand(1, 1), true, at(100));
        let face = sights.face(&key);
        assert!(sights.is_ours(&key, at(101)) && !sights.is_ours(&key, at(102)));
        sights.see(&key, stand(2, 1), true, at(101));
        assert!(sights.is_ours(&key, at(102)));
        assert_eq!(sights.face(&key), face);
        sights.see(&key, stand(3, 1), false, at(102));
        assert!(!sights.is_ours(&key, at(102)), "somebody else wrote it");
        let gone = Stand { value: None, ttl: None, ..stand(4, 1) };
        sights.see(&key, gone, true, at(103));
        assert!(!sights.is_ours(&key, at(103)) && sights.face(&key) != face);
    }
}
