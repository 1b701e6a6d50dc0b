//! Who waits to be called back for, by whom is called: nobody waits for the calls of others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kapell_core::board::{InstanceGuid, Task, TaskGuid};

/// How many calls are made at once.
const IN_ALL: usize = 64;
/// How many of them one receiver may have.
const OF_ONE: usize = 8;
/// The places beyond these are kept for receivers that have none: many that hang do not take all.
const SHARED: usize = 32;
/// From so many on, those are sought out that need no call any more.
const MANY: usize = 4096;

/// A task that is to be called back for. What is said is read when its turn comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) task_guid: TaskGuid,
    pub(super) instance_guid: InstanceGuid,
    receiver: String,
}

impl Due {
    pub(super) fn of(task: &Task) -> Self {
        Self {
            task_guid: task.guid().clone(),
            instance_guid: task.instance_guid.clone(),
            receiver: receiver(&task.definition.completion_callback_url),
        }
    }
}

/// Scheme, host and port.
fn receiver(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (scheme, host) = (scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
    let usual = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(usual).unwrap_or(&host);
    format!("{scheme}://{host}")
}

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Due>,
    calling: usize,
}

/// One queue for each receiver. They take turns.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    lines: BTreeMap<String, Line>,
    /// Those for whom something waits.
    turns: VecDeque<String>,
    /// All that wait or are being called for: each is here once.
    known: BTreeSet<InstanceGuid>,
    calling: usize,
    /// When to look next for those that need no call any more.
    crowded: usize,
}

impl Receivers {
    /// Takes it to the end of its queue, unless it is here already. Those for which `stands` says
    /// no are forgotten when they become too many: a receiver that hangs gathers them.
    pub(super) fn add(&mut self, due: Due, stands: impl Fn(&Due) -> bool) {
        if !self.known.insert(due.instance_guid.clone()) {
            return;
        }
        let line = self.lines.entry(due.receiver.clone()).or_default();
        if line.waiting.is_empty() {
            self.turns.push_back(due.receiver.clone());
        }
        line.waiting.push_back(due);
        if self.known.len() > self.crowded.max(MANY) {
            self.weed(stands);
            self.crowded = self.known.len() * 2;
        }
    }

    fn weed(&mut self, stands: impl Fn(&Due) -> bool) {
        let known = &mut self.known;
        self.lines.retain(|_, line| {
            line.waiting.retain(|due| {
                let stays = stands(due);
                if !stays {
                    known.remove(&due.instance_guid);
                }
                stays
            });
            line.calling > 0 || !line.waiting.is_empty()
        });
        let lines = &self.lines;
        self.turns.retain(|name| lines.get(name).is_some_and(|line| !line.waiting.is_empty()));
    }

    /// The next one to call for. Whoever takes it says when that is [`Receivers::done`].
    pub(super) fn next(&mut self) -> Option<Due> {
        if self.calling >= IN_ALL {
            return None;
        }
        // At most so many are passed over as there are calls.
        let may_call = |name: &String| {
            let calling = self.lines.get(name).map_or(0, |line| line.calling);
            calling == 0 || (calling < OF_ONE && self.calling < SHARED)
        };
        let turn = self.turns.iter().position(may_call)?;
        let name = self.turns.remove(turn)?;
        let line = self.lines.get_mut(&name)?;
        let due = line.waiting.pop_front()?;
        line.calling += 1;
        self.calling += 1;
        if !line.waiting.is_empty() {
            self.turns.push_back(name);
        }
        Some(due)
    }

    pub(super) fn done(&mut self, due: &Due) {
        self.known.remove(&due.instance_guid);
        self.calling = self.calling.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&due.receiver) {
            line.calling = line.calling.saturating_sub(1);
            if line.calling == 0 && line.waiting.is_empty() {
                self.lines.remove(&due.receiver);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(number: usize, url: &str) -> Due {
        Due {
            task_guid: format!("t{number}").as_str().into(),
            instance_guid: format!("i{number}").as_str().into(),
            receiver: receiver(url),
        }
    }

    fn all(receivers: &mut Receivers) -> Vec<Due> {
        std::iter::from_fn(|| receivers.next()).collect()
    }

    #[test]
    fn a_receiver_is_a_scheme_a_host_and_a_port() {
        for (url, want) in [
            ("http://example.com/done?x=1", "http://example.com"),
            ("HTTP://Example.com:80", "http://example.com"),
            ("https://me:secret@example.com:443/a@b", "https://example.com"),
            ("http://example.com:8080#x", "http://example.com:8080"),
            ("http://[::1]:80/", "http://[::1]"),
            ("nonsense", "://nonsense"),
        ] {
            assert_eq!(receiver(url), want, "{url}");
        }
    }

    #[test]
    fn one_receiver_has_a_bounded_number_of_calls_and_they_come_in_order() {
        let mut receivers = Receivers::default();
        for n in 0..20 {
            receivers.add(due(n, "http://a/x"), |_| true);
            receivers.add(due(n, "http://a/x"), |_| true);
        }
        let first = all(&mut receivers);
        assert_eq!(first, (0..OF_ONE).map(|n| due(n, "http://a")).collect::<Vec<_>>());
        receivers.add(due(3, "http://a"), |_| true);
        receivers.done(&first[0]);
        assert_eq!(all(&mut receivers), [due(OF_ONE, "http://a")], "one under way is not added");
    }

    #[test]
    fn receivers_take_turns_and_half_of_the_places_are_for_those_without_a_call() {
        let mut receivers = Receivers::default();
        let hanging = |n: usize| format!("http://h{}", n / 10);
        for n in 0..200 {
            receivers.add(due(n, &hanging(n)), |_| true);
        }
        let first = all(&mut receivers);
        assert_eq!(first.len(), SHARED);
        for n in 0..20 {
            let calls = first.iter().filter(|it| it.receiver == format!("http://h{n}")).count();
            assert!((1..=2).contains(&calls), "{calls} for {n}");
        }
        receivers.add(due(1000, "http://healthy"), |_| true);
        assert_eq!(all(&mut receivers), [due(1000, "http://healthy")]);
        for n in 2000..2100 {
            receivers.add(due(n, &format!("http://r{n}")), |_| true);
        }
        assert_eq!(all(&mut receivers).len(), IN_ALL - SHARED - 1);
    }

    #[test]
    fn what_needs_no_call_any_more_does_not_gather() {
        let mut receivers = Receivers::default();
        let last = 20 * MANY;
        for n in 0..last {
            receivers.add(due(n, "http://hangs"), |it| it.instance_guid == "i7".into());
            assert!(receivers.known.len() <= MANY + 1);
            if n == 0 {
                assert_eq!(receivers.next(), Some(due(0, "http://hangs")));
            }
        }
        assert_eq!(receivers.next(), Some(due(7, "http://hangs")));
        for it in [due(0, "http://hangs"), due(7, "http://hangs")] {
            receivers.done(&it);
        }
        for it in all(&mut receivers) {
            receivers.done(&it);
        }
        assert!(receivers.calling == 0 && receivers.known.len() <= MANY);
    }
}
