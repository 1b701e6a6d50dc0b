//! What tokens say, and whether they still count.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::who::{Domains, Role, Who};
use crate::board::{CellId, Domain};
use crate::seams::Timestamp;

/// Names a token. It may be known to anybody.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(String);

impl TokenId {
    /// Makes one from a drawn number.
    pub fn drawn(number: u64) -> Self {
        Self(format!("{number:016x}"))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 16 && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for TokenId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Operator,
    Reader,
    /// Counts once.
    CellJoin,
}

impl Purpose {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Reader => "reader",
            Self::CellJoin => "cell-join",
        }
    }
}

/// What a token says, under the signature of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    pub id: TokenId,
    #[serde(rename = "for")]
    pub purpose: Purpose,
    /// None: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<BTreeSet<Domain>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub expires_at: Timestamp,
    /// The only cell that may join by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
}

impl Claims {
    /// The longest life of a token, so that what can be forgotten about it is forgotten one day.
    pub const LONGEST: Duration = Duration::from_secs(366 * 86_400);
    /// How many bytes a name may have.
    pub const LONGEST_NAME: usize = 64;
    /// How many domains a token may name, and their bytes: it travels with every request.
    pub const MOST_DOMAINS: usize = 32;
    pub const DOMAINS_BYTES: usize = 360;

    /// What is wrong with a token that is asked for.
    pub fn faults(&self, now: Timestamp) -> Vec<String> {
        let mut faults = Vec::new();
        if self.expires_at <= now || self.expires_at > now.after(Self::LONGEST) {
            faults.push("ttl: a token lasts for more than nothing and at most 366 days".to_owned());
        }
        let is_shown = |letter: char| !letter.is_control();
        if self.name.len() > Self::LONGEST_NAME || !self.name.chars().all(is_shown) {
            faults.push(format!("name: at most {} bytes in one line", Self::LONGEST_NAME));
        }
        match (&self.domains, self.purpose) {
            (Some(_), Purpose::CellJoin) => {
                faults.push("domains: a cell runs work of all domains".to_owned());
            }
            (Some(some), _) => {
                let bytes: usize = some.iter().map(|it| it.as_str().len()).sum();
                let (most, most_bytes) = (Self::MOST_DOMAINS, Self::DOMAINS_BYTES);
                if some.is_empty() || some.len() > most || bytes > most_bytes {
                    faults.push(format!(
                        "domains: 1 to {most} of {most_bytes} letters together, or none for all"
                    ));
                }
                let bad = some.iter().filter(|it| !it.is_valid());
                faults.extend(bad.map(|it| format!("domains: `{it}` is no name of a domain")));
            }
            (None, _) => {}
        }
        match (&self.cell_id, self.purpose) {
            (Some(id), Purpose::CellJoin) if !id.is_valid() => {
                faults.push(format!("cell_id: `{id}` is no id of a cell"));
            }
            (Some(_), Purpose::Operator | Purpose::Reader) => {
                faults.push("cell_id: only a token for joining names a cell".to_owned());
            }
            (Some(_) | None, _) => {}
        }
        faults
    }

    /// Who bears it.
    pub fn who(&self) -> Who {
        let role = match self.purpose {
            Purpose::Operator => Role::Operator,
            Purpose::Reader => Role::Reader,
            Purpose::CellJoin => Role::Joiner(self.cell_id.clone()),
        };
        let domains = self.domains.clone().map_or(Domains::All, Domains::Only);
        let name = if self.name.is_empty() { self.id.as_str() } else { self.name.as_str() };
        Who { role, domains, name: name.into(), token: Some(self.id.clone()) }
    }
}

/// What is kept of a token that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    pub claims: Claims,
    pub created_at: Timestamp,
}

/// That a token counts no more, before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub at: Timestamp,
    pub how: How,
    /// When nobody asks for it any more.
    pub expires_at: Timestamp,
    /// Drawn: tells who ended it from others that tried to at the same moment.
    pub mark: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Revoked,
    /// It made this one a cell.
    Used(CellId),
}

/// Why a token does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Not said to be anything else: whoever tries around learns nothing.
    #[error("the token is wrong")]
    Forged,
    #[error("the token has expired")]
    Expired,
    #[error("the token was revoked")]
    Revoked,
    #[error("the token was used: it lets one cell join once")]
    Used,
    #[error("the token is not known here: it was made for another store, or before a restore")]
    Unknown,
}

impl Invalid {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Forged => "unauthorized",
            Self::Expired => "token_expired",
            Self::Revoked => "token_revoked",
            Self::Used => "token_used",
            Self::Unknown => "token_unknown",
        }
    }
}

impl Claims {
    /// Judges what the token itself tells. `now` is exclusive: at that moment it is over.
    pub fn in_time(&self, now: Timestamp) -> Result<(), Invalid> {
        if now < self.expires_at { Ok(()) } else { Err(Invalid::Expired) }
    }

    /// Judges it by what is kept: only what was made here and has not ended counts.
    pub fn stands(&self, issued: Option<&Issued>, ended: Option<&Ended>) -> Result<(), Invalid> {
        match ended.map(|it| &it.how) {
            Some(How::Revoked) => return Err(Invalid::Revoked),
            Some(How::Used(_)) => return Err(Invalid::Used),
            None => {}
        }
        match issued {
            Some(issued) if issued.claims == *self => Ok(()),
            Some(_) | None => Err(Invalid::Unknown),
        }
    }
}
