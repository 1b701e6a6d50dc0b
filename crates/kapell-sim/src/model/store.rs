use super::Mutant;
use super::wire::{Reply, Request, Sight, Who};

/// A store with one seat and two shards, each request one atomic step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Store {
    /// The last epoch given out; the seat's generation.
    pub generation: u8,
    pub entry: Option<Entry>,
    pub fences: [Fence; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    pub who: Who,
    pub epoch: u8,
    pub until: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Fence {
    pub epoch: u8,
    pub seq: u8,
}

/// What a request did to the seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    None,
    Inserted,
    Renewed,
    Deleted(Entry),
}

impl Store {
    /// Drops what has run out.
    pub fn expire(&mut self, now: u8) {
        self.entry = self.entry.filter(|entry| now < entry.until);
    }

    pub fn ask(
        &mut self,
        who: Who,
        request: Request,
        until: u8,
        now: u8,
        mutant: Option<Mutant>,
    ) -> (Reply, Change) {
        let change = match request {
            Request::Read => {
                let holder = self.entry.map(|entry| Sight {
                    is_own: entry.who == who || mutant == Some(Mutant::NoOwner),
                    epoch: entry.epoch,
                    remaining: entry.until - now,
                });
                return (Reply::Seen { last: self.generation, holder }, Change::None);
            }
            Request::Insert(epoch) => {
                let is_next = self.generation + 1 == epoch || mutant == Some(Mutant::NoGeneration);
                if self.entry.is_some() || !is_next {
                    return (Reply::Lost, Change::None);
                }
                self.entry = Some(Entry { who, epoch, until });
                self.generation = self.generation.max(epoch);
                Change::Inserted
            }
            Request::Renew(epoch) | Request::Delete(epoch) => {
                let Some(entry) = self.entry.filter(|it| stands(*it, who, epoch, mutant)) else {
                    return (Reply::Lost, Change::None);
                };
                if matches!(request, Request::Delete(_)) {
                    self.entry = None;
                    Change::Deleted(entry)
                } else {
                    self.entry = Some(Entry { until, ..entry });
                    Change::Renewed
                }
            }
        };
        (Reply::Done, change)
    }

    /// Whether a request can have no effect any more, whenever it arrives.
    pub fn is_moot(&self, who: Who, request: Request) -> bool {
        match request {
            Request::Read => true,
            Request::Insert(epoch) => epoch <= self.generation,
            Request::Renew(epoch) | Request::Delete(epoch) => {
                let is_gone = !self.entry.is_some_and(|entry| stands(entry, who, epoch, None));
                is_gone && epoch <= self.generation
            }
        }
    }

    /// Raises a fence; where it stands then, if nobody stands higher.
    pub fn raise(&mut self, shard: u8, epoch: u8) -> Option<u8> {
        let fence = &mut self.fences[usize::from(shard)];
        if fence.epoch < epoch {
            *fence = Fence { epoch, seq: 0 };
        }
        (fence.epoch == epoch).then_some(fence.seq)
    }

    /// Whether the commit landed.
    pub fn commit(&mut self, shard: u8, at: Fence, mutant: Option<Mutant>) -> bool {
        let fence = &mut self.fences[usize::from(shard)];
        let is_let_in = *fence == at || mutant == Some(Mutant::NoFence);
        if is_let_in && fence.epoch == at.epoch {
            fence.seq = at.seq + 1;
        }
        is_let_in
    }
}

fn stands(entry: Entry, who: Who, epoch: u8, mutant: Option<Mutant>) -> bool {
    mutant == Some(Mutant::NoOwner) || (entry.who == who && entry.epoch == epoch)
}
