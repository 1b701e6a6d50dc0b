/// One life of a host: a process that starts again in the same place is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    pub slot: u8,
    pub life: u8,
}

/// What is under way between a host and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// The host that asked, also on the way back.
    pub who: Who,
    /// Held up: it arrives at any later time, or never. Others arrive before the clock moves on.
    pub late: bool,
    pub body: Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    Ask(u64, Request),
    Answer(u64, Reply),
    Raise { shard: u8, epoch: u8 },
    Commit { shard: u8, epoch: u8, seq: u8 },
}

/// What is asked about the seat; a record is named by its epoch and the asking host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    Read,
    Insert(u8),
    Renew(u8),
    Delete(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    Seen { last: u8, holder: Option<Sight> },
    Done,
    Lost,
}

/// A record as the reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sight {
    pub is_own: bool,
    pub epoch: u8,
    pub remaining: u8,
}

impl Message {
    pub const fn is_answer(&self) -> bool {
        matches!(self.body, Body::Answer(..))
    }

    /// The store hears of it before the clock moves on.
    pub const fn is_fresh_request(&self) -> bool {
        !self.late && !self.is_answer()
    }
}
