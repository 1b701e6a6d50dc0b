//! What the watches of all clusters have seen so far: everything that there was, or nothing yet, and why.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arcstr::ArcStr;
use kapell_backend::kubernetes::Event;

use super::held::Spot;

/// A watch: cluster, namespace and kind.
pub(super) type Key = (Arc<str>, Arc<str>, &'static str);

/// What a watch has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    NotYet { why: String },
    All,
}

impl Sight {
    /// What an event says about it.
    pub(super) fn of<T>(event: &Event<T>) -> Option<Self> {
        match event {
            Event::All(_) => Some(Self::All),
            Event::Blind(error) => Some(Self::NotYet { why: error.to_string() }),
            Event::Seen(_) | Event::Gone(_) => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Sights(Mutex<BTreeMap<Key, Sight>>);

impl Sights {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, Sight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A watch begins.
    pub(super) fn begin(&self, spot: &Spot, what: &'static str) -> Key {
        let key = (Arc::clone(&spot.cluster), Arc::clone(&spot.namespace), what);
        let why = format!("cluster `{}` has not said yet what it has", spot.cluster);
        self.all().insert(key.clone(), Sight::NotYet { why });
        key
    }

    /// A cluster will not be looked at.
    pub(super) fn never(&self, cluster: &Arc<str>, why: &str) {
        let key = (Arc::clone(cluster), Arc::from(""), "anything");
        self.all().insert(key, Sight::NotYet { why: why.to_owned() });
    }

    /// What was seen once stays known: a watch that is cut goes on where it was.
    pub(super) fn note(&self, key: &Key, sight: Sight) {
        let mut all = self.all();
        match (sight, all.get(key)) {
            (sight @ Sight::All, _) => {
                all.insert(key.clone(), sight);
            }
            (Sight::NotYet { why }, Some(Sight::NotYet { .. })) => {
                tracing::warn!(error = why, "a cluster cannot be looked at: tried again");
                all.insert(key.clone(), Sight::NotYet { why });
            }
            (Sight::NotYet { why }, Some(Sight::All) | None) => {
                tracing::warn!(error = why, "a watch was cut: taken up again");
            }
        }
    }

    /// Why not everything of a place is known. Without a place: of any.
    pub(super) fn blindness(&self, place: &str) -> Option<String> {
        self.all().iter().filter(|(key, _)| concerns(key, place)).find_map(|(_, sight)| match sight
        {
            Sight::NotYet { why } => Some(why.clone()),
            Sight::All => None,
        })
    }

    /// Whether anything was seen of any cluster.
    pub(super) fn sees_anything(&self) -> bool {
        self.all().values().any(|sight| *sight == Sight::All)
    }
}

/// How a place is stored with a run: names of namespaces have no slash.
pub(super) fn place(cluster: &str, namespace: &str) -> ArcStr {
    arcstr::format!("{cluster}/{namespace}")
}

fn concerns((cluster, namespace, _): &Key, place: &str) -> bool {
    let Some((of, within)) = place.rsplit_once('/') else { return true };
    **cluster == *of && (**namespace == *within || namespace.is_empty() || within.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_watches_of_a_place_say_whether_it_is_known() {
        let sights = Sights::default();
        let spot = |cluster: &str, namespace: &str| Spot {
            cluster: cluster.into(),
            namespace: namespace.into(),
        };
        let jobs = sights.begin(&spot("a", "x"), "Jobs");
        let pods = sights.begin(&spot("a", "x"), "pods");
        sights.begin(&spot("a", "y"), "Jobs");
        sights.begin(&spot("a/b", "x"), "Jobs");
        sights.never(&"c".into(), "no such file");
        assert!(!sights.sees_anything());
        sights.note(&jobs, Sight::All);
        assert!(sights.blindness(&place("a", "x")).is_some(), "its pods are not known");
        sights.note(&pods, Sight::All);
        sights.note(&pods, Sight::NotYet { why: "cut".to_owned() });
        assert_eq!(sights.blindness(&place("a", "x")), None);
        assert!(sights.sees_anything());
        for blind in ["a/y", "a/b/x", "a/", ""] {
            let why = sights.blindness(blind).unwrap();
            assert!(why.contains("has not said yet"), "{blind}: {why}");
        }
        assert_eq!(sights.blindness(&place("c", "x")).as_deref(), Some("no such file"));
        assert_eq!(sights.blindness(&place("not-there", "x")), None);
    }
}
