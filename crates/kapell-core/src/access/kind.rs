/// What a request is, as far as it matters who makes it. Every route of hosts and cells is of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// How a host or a cell is, and who leads.
    Health,
    /// What the API looks like.
    Describe,
    /// The figures of a host, which are about all domains.
    Figures,
    /// Pages for people, which are about all domains.
    Pages,
    /// What is desired, what runs, tasks, jobs, logs, events.
    Read,
    /// What would become of something.
    Plan,
    /// What is desired, tasks, freshness, jobs and their runs.
    Change,
    /// Jobs whose work runs on the hosts themselves.
    RunOnHosts,
    /// What there is of cells.
    ReadCells,
    /// Telling a cell what to do through the leader.
    CommandCells,
    /// What a cell tells the board, and asks it about itself.
    SpeakForCell,
    /// A first certificate, for a cell that has none.
    Join,
    /// The next certificate of a cell.
    Renew,
    /// Making, listing and revoking tokens.
    Tokens,
    /// Which secrets there are; never what they are.
    ReadSecrets,
    /// Setting and removing secrets.
    ChangeSecrets,
    /// What the secrets are that work on a cell refers to.
    TakeSecrets,
    /// Who changed what.
    Audit,
    /// At a cell: orders of the leader, and logs.
    Order,
}

impl Kind {
    pub const ALL: [Self; 19] = [
        Self::Health,
        Self::Describe,
        Self::Figures,
        Self::Pages,
        Self::Read,
        Self::Plan,
        Self::Change,
        Self::RunOnHosts,
        Self::ReadCells,
        Self::CommandCells,
        Self::SpeakForCell,
        Self::Join,
        Self::Renew,
        Self::Tokens,
        Self::ReadSecrets,
        Self::ChangeSecrets,
        Self::TakeSecrets,
        Self::Audit,
        Self::Order,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Describe => "describe",
            Self::Figures => "figures",
            Self::Pages => "pages",
            Self::Read => "read",
            Self::Plan => "plan",
            Self::Change => "change",
            Self::RunOnHosts => "run on hosts",
            Self::ReadCells => "read cells",
            Self::CommandCells => "command cells",
            Self::SpeakForCell => "speak for a cell",
            Self::Join => "join",
            Self::Renew => "renew",
            Self::Tokens => "tokens",
            Self::ReadSecrets => "read secrets",
            Self::ChangeSecrets => "change secrets",
            Self::TakeSecrets => "take secrets",
            Self::Audit => "audit",
            Self::Order => "order",
        }
    }

    /// What it comes to, for a sentence that begins with who may or may not.
    pub const fn deed(self) -> &'static str {
        match self {
            Self::Health => "see how hosts and cells are",
            Self::Describe => "see what the API looks like",
            Self::Figures => "see the figures of a host",
            Self::Pages => "see the pages",
            Self::Read => "read what is desired and what runs",
            Self::Plan => "plan",
            Self::Change => "change what is desired",
            Self::RunOnHosts => "have the hosts themselves run programs",
            Self::ReadCells => "look at cells",
            Self::CommandCells => "tell cells what to do",
            Self::SpeakForCell => "speak for a cell",
            Self::Join => "get a cell's first certificate",
            Self::Renew => "get a cell's next certificate",
            Self::Tokens => "make, list and revoke tokens",
            Self::ReadSecrets => "see which secrets there are",
            Self::ChangeSecrets => "set and remove secrets",
            Self::TakeSecrets => "get the secrets of a cell's work",
            Self::Audit => "read who changed what",
            Self::Order => "give orders to this cell",
        }
    }

    /// Whether it changes something, so that it is noted who did it. What a cell reports is not: it changes all the time.
    pub const fn is_change(self) -> bool {
        match self {
            Self::Change
            | Self::RunOnHosts
            | Self::CommandCells
            | Self::Join
            | Self::Renew
            | Self::Tokens
            | Self::ChangeSecrets => true,
            Self::Health
            | Self::Describe
            | Self::Figures
            | Self::Pages
            | Self::Read
            | Self::Plan
            | Self::ReadCells
            | Self::SpeakForCell
            | Self::ReadSecrets
            | Self::TakeSecrets
            | Self::Audit
            | Self::Order => false,
        }
    }
}
