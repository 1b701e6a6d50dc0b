use std::collections::BTreeMap;
use std::time::Duration;

use crate::seams::Moment;

/// How often it is noted of one peer that it was refused.
pub const EVERY: Duration = Duration::from_secs(60);
/// How many peers are told apart. All others are counted together.
pub const PEERS: usize = 256;
/// What those others are called.
pub const OTHERS: &str = "others";

/// What is to be noted of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knock {
    pub peer: String,
    /// Refused since it was last noted.
    pub count: u64,
    /// The reason for the last one.
    pub code: String,
}

/// Counts who was not let in, so that whoever tries all day fills no disk.
#[derive(Debug, Default)]
pub struct Knocks(BTreeMap<String, Seen>);

#[derive(Debug)]
struct Seen {
    noted: Moment,
    since: u64,
    code: String,
}

impl Knocks {
    /// Counts one. The first of a peer is noted at once.
    pub fn refused(&mut self, peer: &str, code: &str, now: Moment) -> Option<Knock> {
        let known = self.0.contains_key(peer);
        let peer = if known || self.0.len() < PEERS { peer } else { OTHERS };
        if let Some(seen) = self.0.get_mut(peer) {
            seen.since += 1;
            code.clone_into(&mut seen.code);
            return None;
        }
        self.0.insert(peer.to_owned(), Seen { noted: now, since: 0, code: code.to_owned() });
        Some(Knock { peer: peer.to_owned(), count: 1, code: code.to_owned() })
    }

    /// What was counted for long enough. Peers that came no more are forgotten.
    pub fn due(&mut self, now: Moment) -> Vec<Knock> {
        let mut due = Vec::new();
        self.0.retain(|peer, seen| {
            if now.since(seen.noted) < EVERY {
                return true;
            }
            if seen.since == 0 {
                return false;
            }
            due.push(Knock { peer: peer.clone(), count: seen.since, code: seen.code.clone() });
            (seen.noted, seen.since) = (now, 0);
            true
        });
        due
    }

    /// All that was counted and not noted.
    pub fn rest(&mut self) -> Vec<Knock> {
        let all = std::mem::take(&mut self.0).into_iter();
        let counted = all.filter(|(_, seen)| seen.since > 0);
        counted.map(|(peer, seen)| Knock { peer, count: seen.since, code: seen.code }).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
