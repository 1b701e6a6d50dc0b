//! Requests that are committed together.

use std::collections::BTreeMap;

use kapell_core::board::{Effect, Record, RecordKey};
use kapell_store::model::{Key, Limits, Op};

use super::handle::Declined;
use super::lanes::{Answer, Asked};

pub(super) type Changes = BTreeMap<RecordKey, Option<Record>>;

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

#[derive(Debug)]
pub(super) struct Group {
    limits: Limits,
    changes: Changes,
    ops: BTreeMap<RecordKey, Op>,
    bytes: usize,
    decided: Vec<Decided>,
}

impl Group {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            changes: BTreeMap::new(),
            ops: BTreeMap::new(),
            bytes: 0,
            decided: Vec::new(),
        }
    }

    pub(super) const fn changes(&self) -> &Changes {
        &self.changes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Adds the changes of a request, all of them or none.
    pub(super) fn join(&mut self, own: Changes) -> Fit {
        let ops: BTreeMap<RecordKey, Op> =
            own.iter().map(|(key, to)| (key.clone(), op(key, to.as_ref()))).collect();
        if let Some(why) = self.refusal(&ops) {
            return Fit::Never(why);
        }
        let replaced = ops.keys().filter_map(|key| self.ops.get(key));
        let (known, known_bytes) =
            replaced.fold((0, 0), |(count, bytes), op| (count + 1, bytes + op.bytes()));
        let count = self.ops.len() + ops.len() - known;
        let bytes = self.bytes - known_bytes + ops.values().map(Op::bytes).sum::<usize>();
        if count > self.limits.commit_ops || bytes > self.limits.commit_bytes {
            return Fit::Later;
        }
        self.bytes = bytes;
        self.ops.extend(ops);
        self.changes.extend(own);
        Fit::Fits
    }

    fn refusal(&self, ops: &BTreeMap<RecordKey, Op>) -> Option<String> {
        let limits = &self.limits;
        let over = |what: &str, is: usize, limit: usize| {
            (is > limit).then(|| format!("{what} of {is} is above the store's limit of {limit}"))
        };
        let bytes = ops.values().map(Op::bytes).sum();
        over("a number of records", ops.len(), limits.commit_ops)
            .or_else(|| over("a size of all records in bytes", bytes, limits.commit_bytes))
            .or_else(|| {
                ops.values().find_map(|op| {
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

    /// What to commit.
    pub(super) fn ops(&self) -> Vec<Op> {
        self.ops.values().cloned().collect()
    }

    /// What was changed, what each change weighs, and whom to answer, in the order of deciding.
    pub(super) fn into_parts(self) -> (Changes, BTreeMap<RecordKey, usize>, Vec<Decided>) {
        let weights = self.ops.iter().map(|(key, op)| (key.clone(), op.bytes())).collect();
        (self.changes, weights, self.decided)
    }

    /// Answers those from outside before it is known what became of the group.
    pub(super) fn answer_outside(&mut self, with: &Declined) {
        for decided in self.decided.iter_mut().filter(|decided| !decided.asked.inside) {
            if let Some(answer) = decided.asked.answer.take() {
                // Whoever asked may have gone.
                drop(answer.send(Err(with.clone())));
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
