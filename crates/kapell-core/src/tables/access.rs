//! Who may do what.

use super::{Page, page, table};
use crate::access::{Kind, RoleKind, grant};

pub(super) fn roles() -> Page {
    let mut text = "\
**Operator** and **reader** are borne by tokens, for all domains or for some; whoever knows the token in the hosts' state \
directory is the operator of everything. **Cell** and **host** are proved by certificates of the cluster. A **joiner** \
bears a one-time token for a cell. *In its domains*: lists show those only, and what is in others is not there for it. \
*With the state directory*: only who knows that token. *As itself*: for the cell that it is, or is to become.\n\n"
        .to_owned();
    let columns = ["request", "operator", "reader", "cell", "host", "joiner", "what it is"];
    let rows = Kind::ALL.map(|kind| {
        let [operator, reader, cell, host, joiner] =
            RoleKind::ALL.map(|role| grant(kind, role).name().to_owned());
        [kind.name().to_owned(), operator, reader, cell, host, joiner, kind.deed().to_owned()]
    });
    text.push_str(&table(columns, rows));
    page("access", "Who may do what", &text)
}
