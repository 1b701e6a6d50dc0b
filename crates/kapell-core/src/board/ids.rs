//! The names of things.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One copy of each name, for those who read many records at once.
#[derive(Debug, Default)]
pub struct Names(FxHashSet<Arc<str>>);

impl Names {
    pub(super) fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.0.insert(Arc::clone(&name));
        name
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(text.into())
    }
}

macro_rules! id {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Letters, digits, `-` and `_`, at least one and at most 200 of them.
            pub fn is_valid(&self) -> bool {
                (1..=200).contains(&self.0.len())
                    && self.0.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().to_owned()
            }
        }
    };
}

id! {
    /// Names a long-running process; its instances have indices.
    ProcessGuid
}
id! {
    /// Names a task.
    TaskGuid
}
id! {
    /// Names one container, of an instance or of a task, among all there ever were.
    InstanceGuid
}
id! {
    /// Names one reservation of a cell for a task among all there ever were.
    ReservationId
}
id! {
    /// Names a cell. It outlives the cell's agent.
    CellId
}
id! {
    /// Names a secret within its domain.
    SecretName
}
id! {
    /// Names a job.
    JobId
}

/// A job is often looked for by what the id of a run says.
impl Borrow<str> for JobId {
    fn borrow(&self) -> &str {
        &self.0
    }
}
id! {
    /// Names jobs that take turns.
    GroupName
}
id! {
    /// Names a group of long-running processes or tasks whose owner says when it is up to date.
    Domain
}

impl InstanceGuid {
    /// Makes one from two drawn numbers.
    pub fn drawn(high: u64, low: u64) -> Self {
        Self::new(drawn(high, low))
    }
}

impl ReservationId {
    /// Makes one from two drawn numbers.
    pub fn drawn(high: u64, low: u64) -> Self {
        Self::new(drawn(high, low))
    }
}

fn drawn(high: u64, low: u64) -> String {
    format!("{high:016x}{low:016x}")
}
