//! What a command is about: `lrp/web/2`, `web/0`, `task/x`, `cell/y`, `domain/z`, `job/j`, `run/j:1`.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Lrp { process_guid: String, index: Option<u32> },
    Task(String),
    Cell(String),
    Domain(String),
    Job(String),
    Run(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write lrp/GUID, GUID/INDEX, task/GUID, cell/ID, domain/NAME, job/ID or run/ID"
                .to_owned()
        };
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(wrong());
        }
        let lrp = |guid: &str, index: Option<&str>| {
            let index = match index {
                Some(index) => {
                    let wrong = |_| format!("`{index}` is no index: write {guid}/0");
                    Some(index.parse().map_err(wrong)?)
                }
                None => None,
            };
            Ok(Self::Lrp { process_guid: guid.to_owned(), index })
        };
        match parts.as_slice() {
            ["task", guid] => Ok(Self::Task((*guid).to_owned())),
            ["cell", id] => Ok(Self::Cell((*id).to_owned())),
            ["domain", name] => Ok(Self::Domain((*name).to_owned())),
            ["job", id] => Ok(Self::Job((*id).to_owned())),
            ["run", id] => Ok(Self::Run((*id).to_owned())),
            ["lrp", guid] | [guid] => lrp(guid, None),
            ["lrp", guid, index] | [guid, index] => lrp(guid, Some(index)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lrp { process_guid, index: Some(index) } => {
                write!(f, "lrp/{process_guid}/{index}")
            }
            Self::Lrp { process_guid, index: None } => write!(f, "lrp/{process_guid}"),
            Self::Task(guid) => write!(f, "task/{guid}"),
            Self::Cell(id) => write!(f, "cell/{id}"),
            Self::Domain(name) => write!(f, "domain/{name}"),
            Self::Job(id) => write!(f, "job/{id}"),
            Self::Run(id) => write!(f, "run/{id}"),
        }
    }
}
