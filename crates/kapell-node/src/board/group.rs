//! Requests that are committed together.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};

use kapell_core::board::{Crash, Effect, Record, RecordKey};
use kapell_store::model::{Key, Limits, Op};

use super::handle::Declined;
use super::lanes::{Answer, Asked};

pub(super) type Changes = BTreeMap<RecordKey, Option<Record>>;

/// What one request changes, in the order in which those who watch are told of it.
pub(super) type Own = Vec<(RecordKey, Option<Record>)>;

/// A request that is decided and not answered yet.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) asked: Asked,
    pub(super) answer: Answer,
    pub(super) effects: Vec<Effect>,
}

/// Whether the changes of a request can go with those of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    Fits,
    /// With a later group they can.
    Later,
    /// Never: the store does not take them.
    Never(String),
}

/// What those who watch are told of, once it is committed.
#[derive(Debug)]
pub(super) enum News {
    /// A key has its next value, which took so many bytes to write down.
    Changed {
        key: RecordKey,
        bytes: usize,
    },
    Crashed(Box<Crash>),
}

/// What each key becomes, value after value.
#[derive(Debug, Default)]
pub(super) struct Values {
    last: Changes,
    /// Replaced within the group: never written, and told of all the same.
    passing: BTreeMap<RecordKey, VecDeque<Option<Record>>>,
}

impl Values {
    /// What each key is in the end.
    pub(super) const fn last(&self) -> &Changes {
        &self.last
    }

    fn add(&mut self, key: RecordKey, to: Option<Record>) {
        match self.last.entry(key) {
            Entry::Vacant(free) => drop(free.insert(to)),
            Entry::Occupied(mut there) => {
                let former = there.insert(to);
                self.passing.entry(there.key().clone()).or_default().push_back(former);
            }
        }
    }

    /// The next value of a key, in the order of deciding.
    pub(super) fn next(&mut self, key: &RecordKey) -> Option<Record> {
        if let Some(former) = self.passing.get_mut(key).and_then(VecDeque::pop_front) {
            return former;
        }
        self.last.remove(key).flatten()
    }
}

#[derive(Debug)]
pub(super) struct Group {
    limits: Limits,
    values: Values,
    /// One a key: only what it is in the end is written.
    ops: Vec<Op>,
    bytes: usize,
    news: Vec<News>,
    decided: Vec<Decided>,
}

impl Group {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            values: Values::default(),
            ops: Vec::new(),
            bytes: 0,
            news: Vec::new(),
            decided: Vec::new(),
        }
    }

    pub(super) const fn changes(&self) -> &Changes {
        self.values.last()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.last.is_empty()
    }

    /// Adds the changes of a request, all of them or none, and the crash that they tell of.
    pub(super) fn join(&mut self, mut own: Own, crash: Option<Box<Crash>>) -> Fit {
        let only = own.pop_if(|(key, _)| crash.is_none() && !self.values.last.contains_key(key));
        match only {
            Some((key, to)) if own.is_empty() => return self.join_one(key, to),
            Some(last) => own.push(last),
            None => {}
        }
        let ops: Vec<Op> = own.iter().map(|(key, to)| op(key, to.as_ref())).collect();
        if let Some(why) = self.refusal(&ops) {
            return Fit::Never(why);
        }
        let replaced: Vec<Option<usize>> =
            own.iter().zip(&ops).map(|((key, _), op)| self.place(key, op)).collect();
        let (known, known_bytes) = replaced
            .iter()
            .flatten()
            .fold((0, 0), |(count, bytes), at| (count + 1, bytes + self.ops[*at].bytes()));
        let count = self.ops.len() + ops.len() - known;
        let bytes = self.bytes - known_bytes + ops.iter().map(Op::bytes).sum::<usize>();
        if count > self.limits.commit_ops || bytes > self.limits.commit_bytes {
            return Fit::Later;
        }
        self.bytes = bytes;
        for (((key, to), op), at) in own.into_iter().zip(ops).zip(replaced) {
            self.news.push(News::Changed { key: key.clone(), bytes: op.bytes() });
            match at {
                Some(at) => self.ops[at] = op,
                None => self.ops.push(op),
            }
            self.values.add(key, to);
        }
        self.news.extend(crash.map(News::Crashed));
        Fit::Fits
    }

    /// The same for one change of a key that nothing here has changed yet: most requests are like that.
    fn join_one(&mut self, key: RecordKey, to: Option<Record>) -> Fit {
        let op = op(&key, to.as_ref());
        if let Some(why) = self.refusal(std::slice::from_ref(&op)) {
            return Fit::Never(why);
        }
        let bytes = self.bytes + op.bytes();
        if self.ops.len() == self.limits.commit_ops || bytes > self.limits.commit_bytes {
            return Fit::Later;
        }
        self.bytes = bytes;
        self.news.push(News::Changed { key: key.clone(), bytes: op.bytes() });
        self.ops.push(op);
        self.values.add(key, to);
        Fit::Fits
    }

    /// Where an earlier change of the key stands.
    fn place(&self, key: &RecordKey, op: &Op) -> Option<usize> {
        if !self.values.last.contains_key(key) {
            return None;
        }
        self.ops.iter().position(|known| known.key() == op.key())
    }

    fn refusal(&self, ops: &[Op]) -> Option<String> {
        let limits = &self.limits;
        let over = |what: &str, is: usize, limit: usize| {
            (is > limit).then(|| format!("{what} of {is} is above the store's limit of {limit}"))
        };
        let bytes = ops.iter().map(Op::bytes).sum();
        over("a number of records", ops.len(), limits.commit_ops)
            .or_else(|| over("a size of all records in bytes", bytes, limits.commit_bytes))
            .or_else(|| {
                ops.iter().find_map(|op| {
                    let key = op.key().as_bytes().len();
                    over("a key size in bytes", key, limits.key_bytes).or_else(|| match op {
                        Op::Put(_, value) => {
                            over("a record size in bytes", value.len(), limits.value_bytes)
                        }
                        Op::Delete(_) => None,
                    })
                })
            })
    }

    pub(super) fn push(&mut self, decided: Decided) {
        self.decided.push(decided);
    }

    /// What to commit. Nothing joins afterwards.
    pub(super) fn take_ops(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.ops)
    }

    /// What was changed, what to tell of it and whom to answer, in the order of deciding.
    pub(super) fn into_parts(self) -> (Values, Vec<News>, Vec<Decided>) {
        (self.values, self.news, self.decided)
    }

    /// Answers those from outside before it is known what became of the group.
    pub(super) fn answer_outside(&mut self, with: &Declined) {
        for decided in self.decided.iter_mut().filter(|decided| !decided.asked.inside) {
            if let Some(asker) = decided.asked.answer.take() {
                asker.tell(Err(with.clone()));
            }
        }
    }

    /// Whom to tell that it is not known what became of it.
    pub(super) fn into_decided(self) -> Vec<Decided> {
        self.decided
    }
}

fn op(key: &RecordKey, to: Option<&Record>) -> Op {
    let at = Key::new(key.encode());
    match to {
        Some(record) => Op::Put(at, record.encode()),
        None => Op::Delete(at),
    }
}
