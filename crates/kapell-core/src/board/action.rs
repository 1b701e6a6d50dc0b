//! What a container does.

use serde::{Deserialize, Serialize};

use super::ids::SecretName;

/// What a container does. Only [`Action::Run`] starts a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Run(Run),
    Download(Download),
    Upload(Upload),
    Timeout(Timeout),
    Try(Nested),
    Parallel(Several),
    Serial(Several),
    Codependent(Several),
    EmitProgress(EmitProgress),
}

impl Action {
    /// The program to run, if that is all it is.
    pub fn into_run(self) -> Option<Run> {
        if let Self::Run(run) = self { Some(run) } else { None }
    }

    /// The same, looked at.
    pub const fn as_run(&self) -> Option<&Run> {
        if let Self::Run(run) = self { Some(run) } else { None }
    }

    /// This one and all that it is made of, in no order. How deep that goes is not for us to say, so it is no recursion.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        let mut left = vec![self];
        std::iter::from_fn(move || {
            let action = left.pop()?;
            match action {
                Self::Run(_) | Self::Download(_) | Self::Upload(_) => {}
                Self::Timeout(timeout) => left.push(&timeout.action),
                Self::Try(nested) => left.push(&nested.action),
                Self::EmitProgress(progress) => left.push(&progress.action),
                Self::Parallel(several) | Self::Serial(several) | Self::Codependent(several) => {
                    left.extend(&several.actions);
                }
            }
            Some(action)
        })
    }
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The program: an absolute path, a path relative to `dir`, or a name to be found in `PATH`.
    pub path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Where it runs; without it, in a directory of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    /// The user it runs as; without it, one of its own where the cell can give it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// A variable of a recipe: what it is, or the secret that it is. Exactly one of both is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Of the domain of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretName>,
}

impl Variable {
    pub fn plain(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: Some(value.into()), secret: None }
    }

    pub fn secret(name: impl Into<String>, secret: impl Into<SecretName>) -> Self {
        Self { name: name.into(), value: None, secret: Some(secret.into()) }
    }
}

/// A variable of a program that somebody runs beside those of a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvVar {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    pub from: String,
    pub to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upload {
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeout {
    pub action: Box<Action>,
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nested {
    pub action: Box<Action>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Several {
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmitProgress {
    pub action: Box<Action>,
    #[serde(default)]
    pub start_message: String,
    #[serde(default)]
    pub success_message: String,
    #[serde(default)]
    pub failure_message: String,
}
