//! The table.

use super::kind::Kind;
use super::who::{Role, RoleKind, Who};
use crate::board::{CellId, Domain};

/// On what terms a role may make a request of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    Always,
    /// In the domains that it has.
    InItsDomains,
    /// Only if it has all domains.
    WithAllDomains,
    /// Only if it knows the token in the hosts' state directory.
    AsOwner,
    /// For the cell that it is, or is to become.
    AsItself,
    Never,
}

impl Grant {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "yes",
            Self::InItsDomains => "in its domains",
            Self::WithAllDomains => "with all domains",
            Self::AsOwner => "with the state directory",
            Self::AsItself => "as itself",
            Self::Never => "no",
        }
    }
}

/// Decides who may do what.
#[rustfmt::skip]
pub const fn grant(kind: Kind, role: RoleKind) -> Grant {
    use Grant::{Always, AsItself, AsOwner, InItsDomains, Never, WithAllDomains};
    use {Kind as K, RoleKind as R};
    match kind {
        K::Health | K::Describe => match role {
            R::Operator | R::Reader | R::Cell | R::Host => Always,
            R::Joiner   => Never,
        },
        K::Figures | K::Pages | K::ReadCells => match role {
            R::Operator | R::Reader => WithAllDomains,
            R::Cell | R::Host | R::Joiner => Never,
        },
        K::Read | K::ReadSecrets => match role {
            R::Operator | R::Reader => InItsDomains,
            R::Cell | R::Host | R::Joiner => Never,
        },
        K::Plan | K::Change | K::ChangeSecrets => match role {
            R::Operator => InItsDomains,
            R::Reader | R::Cell | R::Host | R::Joiner => Never,
        },
        // A host knows the cluster's key: whoever runs programs on it can do everything.
        K::RunOnHosts | K::CommandCells | K::Tokens | K::Audit => match role {
            R::Operator => WithAllDomains,
            R::Reader | R::Cell | R::Host | R::Joiner => Never,
        },
        // Where all share one machine, cells bear the hosts' own token.
        K::SpeakForCell => match role {
            R::Operator => WithAllDomains,
            R::Cell     => AsItself,
            R::Reader | R::Host | R::Joiner => Never,
        },
        // The same; but nobody else reads back what was once set.
        K::TakeSecrets => match role {
            R::Operator => AsOwner,
            R::Cell     => AsItself,
            R::Reader | R::Host | R::Joiner => Never,
        },
        K::Join => match role {
            R::Joiner   => AsItself,
            R::Operator | R::Reader | R::Cell | R::Host => Never,
        },
        K::Renew => match role {
            R::Cell     => AsItself,
            R::Operator | R::Reader | R::Host | R::Joiner => Never,
        },
        K::Order => match role {
            R::Operator => WithAllDomains,
            R::Host     => Always,
            R::Reader | R::Cell | R::Joiner => Never,
        },
    }
}

/// What a request is about, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About<'a> {
    /// Nothing that belongs to somebody, or it is not known yet: only the role is judged.
    Anything,
    Domain(&'a Domain),
    Cell(&'a CellId),
}

/// Why somebody may not. The text is for them: it says nothing that they did not send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{who} may not {deed}")]
    Role { who: String, deed: &'static str },
    #[error("{who} may not {deed}: that needs all domains")]
    Scope { who: String, deed: &'static str },
    #[error("{who} may not {deed}: that is for cells")]
    Owner { who: String, deed: &'static str },
    #[error("{who} has nothing to do with domain `{domain}`")]
    Domain { who: String, domain: Domain },
    #[error("{who} may not {deed}: it would be cell `{cell}`")]
    Cell { who: String, deed: &'static str, cell: CellId },
}

/// Judges a request. One that is judged before it is known what it is about is judged again then.
pub fn allows(who: &Who, kind: Kind, about: About<'_>) -> Result<(), Refusal> {
    let (name, deed) = (|| who.to_string(), kind.deed());
    match grant(kind, who.role.kind()) {
        Grant::Always => Ok(()),
        Grant::Never => Err(Refusal::Role { who: name(), deed }),
        Grant::WithAllDomains if who.domains.is_all() => Ok(()),
        Grant::WithAllDomains => Err(Refusal::Scope { who: name(), deed }),
        Grant::AsOwner if who.is_owner() => Ok(()),
        Grant::AsOwner => Err(Refusal::Owner { who: name(), deed }),
        Grant::InItsDomains => match about {
            About::Domain(domain) if !who.domains.has(domain) => {
                Err(Refusal::Domain { who: name(), domain: domain.clone() })
            }
            About::Anything | About::Domain(_) | About::Cell(_) => Ok(()),
        },
        Grant::AsItself => match about {
            About::Cell(cell) if !is_itself(&who.role, cell) => {
                Err(Refusal::Cell { who: name(), deed, cell: cell.clone() })
            }
            About::Anything | About::Domain(_) | About::Cell(_) => Ok(()),
        },
    }
}

fn is_itself(role: &Role, cell: &CellId) -> bool {
    match role {
        Role::Cell(id) | Role::Joiner(Some(id)) => id == cell,
        Role::Joiner(None) => true,
        Role::Operator | Role::Reader | Role::Host => false,
    }
}
