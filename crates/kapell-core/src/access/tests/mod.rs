mod rule;
mod token;

use crate::access::*;
use crate::board::{CellId, Domain};

fn only(names: &[&str]) -> Domains {
    Domains::Only(names.iter().map(|&name| name.into()).collect())
}

fn who(role: Role, domains: Domains) -> Who {
    Who { role, domains, name: "ann".into(), token: None }
}

fn domain(name: &str) -> Domain {
    name.into()
}

fn cell(name: &str) -> CellId {
    name.into()
}
