use std::collections::BTreeSet;
use std::fmt;

use arcstr::ArcStr;

use super::token::TokenId;
use crate::board::{CellId, Domain};

/// What somebody is to the platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Changes and reads what is in its domains.
    Operator,
    /// Reads what is in its domains.
    Reader,
    /// One cell, which speaks for itself only.
    Cell(CellId),
    /// Another host of the cluster.
    Host,
    /// Wants to become a cell: the one that is named, or any.
    Joiner(Option<CellId>),
}

/// A [`Role`] without whom it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleKind {
    Operator,
    Reader,
    Cell,
    Host,
    Joiner,
}

impl RoleKind {
    pub const ALL: [Self; 5] = [Self::Operator, Self::Reader, Self::Cell, Self::Host, Self::Joiner];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Reader => "reader",
            Self::Cell => "cell",
            Self::Host => "host",
            Self::Joiner => "joiner",
        }
    }
}

impl Role {
    pub const fn kind(&self) -> RoleKind {
        match self {
            Self::Operator => RoleKind::Operator,
            Self::Reader => RoleKind::Reader,
            Self::Cell(_) => RoleKind::Cell,
            Self::Host => RoleKind::Host,
            Self::Joiner(_) => RoleKind::Joiner,
        }
    }
}

/// The domains that somebody has to do with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domains {
    All,
    Only(BTreeSet<Domain>),
}

impl Domains {
    pub fn has(&self, domain: &Domain) -> bool {
        match self {
            Self::All => true,
            Self::Only(some) => some.contains(domain),
        }
    }

    pub const fn is_all(&self) -> bool {
        match self {
            Self::All => true,
            Self::Only(_) => false,
        }
    }
}

impl fmt::Display for Domains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all domains"),
            Self::Only(some) => {
                let names: Vec<String> = some.iter().map(|it| format!("`{it}`")).collect();
                f.write_str(&names.join(", "))
            }
        }
    }
}

/// Somebody who has proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub role: Role,
    pub domains: Domains,
    /// What people call them.
    pub name: ArcStr,
    /// The token that proved it, unless it was the hosts' own, or a certificate.
    pub token: Option<TokenId>,
}

impl Who {
    /// Whoever knows the token in the hosts' state directory.
    pub fn owner() -> Self {
        let name = arcstr::literal!("state directory");
        Self { role: Role::Operator, domains: Domains::All, name, token: None }
    }

    /// Whether it is [`Who::owner`], and not somebody who bears a token that was made.
    pub fn is_owner(&self) -> bool {
        self.role == Role::Operator && self.token.is_none() && self.domains.is_all()
    }

    pub fn cell(id: CellId) -> Self {
        let name = id.as_str().into();
        Self { role: Role::Cell(id), domains: Domains::All, name, token: None }
    }

    pub fn host(name: impl Into<ArcStr>) -> Self {
        Self { role: Role::Host, domains: Domains::All, name: name.into(), token: None }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, domains, name, .. } = self;
        let of = match domains {
            Domains::All => String::new(),
            Domains::Only(_) => format!(" of {domains}"),
        };
        match role {
            Role::Operator | Role::Reader => write!(f, "{} `{name}`{of}", role.kind().name()),
            Role::Cell(id) => write!(f, "cell `{id}`"),
            Role::Host => write!(f, "host `{name}`"),
            Role::Joiner(Some(id)) => write!(f, "a token for joining as cell `{id}`"),
            Role::Joiner(None) => f.write_str("a token for joining as a cell"),
        }
    }
}
