//! Who a program runs as, by the names that its image knows.

use crate::containers::Error;

/// A user of a container, with all its groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Account {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    /// Where it is at home, if the image says so.
    pub(super) home: Option<String>,
}

/// Finds `user`, `uid`, `user:group` or any mix of them; nothing stands for root. `passwd` and `group` are the
/// image's files of these names.
pub(super) fn find(wanted: &str, passwd: &str, group: &str) -> Result<Account, Error> {
    let (user, of_group) = match wanted.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (wanted, None),
    };
    let user = if user.is_empty() { "0" } else { user };
    let by_name = line(passwd, |fields| fields.first() == Some(&user));
    let by_number = || line(passwd, |fields| fields.get(2) == Some(&user));
    let known = by_name.or_else(by_number);
    let field = |at: usize| known.as_ref().and_then(|fields| fields.get(at).copied());
    let no_such = |what: &str, name: &str, file: &str| {
        Error::Unstartable(format!("the image has no {what} `{name}` in its `{file}`"))
    };
    let uid = field(2).unwrap_or(user);
    let uid = uid.parse().map_err(|_| no_such("user", user, "/etc/passwd"))?;
    let gid = match of_group {
        Some(name) if !name.is_empty() => {
            let found = line(group, |fields| fields.first() == Some(&name));
            let gid = found.and_then(|fields| fields.get(2).copied()).unwrap_or(name);
            gid.parse().map_err(|_| no_such("group", name, "/etc/group"))?
        }
        Some(_) | None => field(3).and_then(|gid| gid.parse().ok()).unwrap_or(0),
    };
    let groups = match (of_group, field(0)) {
        (None, Some(name)) => memberships(group, name, gid),
        // Whoever names a group wants no others.
        (Some(_), _) | (_, None) => Vec::new(),
    };
    let home = field(5).filter(|home| home.starts_with('/')).map(str::to_owned);
    in_range(Account { uid, gid, groups, home })
}

/// No user beyond those that a container has.
pub(super) fn in_range(account: Account) -> Result<Account, Error> {
    let ids = [account.uid, account.gid].into_iter().chain(account.groups.iter().copied());
    match ids.into_iter().find(|id| *id >= super::slot::IDS) {
        None => Ok(account),
        Some(id) => Err(Error::Unstartable(format!(
            "a container has the users and groups 0 to 65535, and {id} is not one of them"
        ))),
    }
}

fn line(file: &str, is_it: impl Fn(&[&str]) -> bool) -> Option<Vec<&str>> {
    file.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| is_it(fields))
}

fn memberships(group: &str, user: &str, but: u32) -> Vec<u32> {
    let is_member = |fields: &Vec<&str>| {
        fields.get(3).is_some_and(|members| members.split(',').any(|member| member == user))
    };
    let lines = group.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let ids = lines.filter(is_member).filter_map(|fields| fields.get(2)?.parse().ok());
    let mut ids: Vec<u32> = ids.filter(|gid| *gid != but && *gid < super::slot::IDS).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/srv:/bin/sh\n# no line\nbad:x:many:0::/:\n";
    const GROUP: &str = "root:x:0:\nwww:x:34:\nmail:x:8:web,root\nlog:x:9:web\nwww2:x:34:web\n";

    fn ids(wanted: &str) -> (u32, u32, Vec<u32>) {
        let Account { uid, gid, groups, .. } = find(wanted, PASSWD, GROUP).unwrap();
        (uid, gid, groups)
    }

    #[test]
    fn users_are_found_by_name_and_by_number() {
        assert_eq!(ids(""), (0, 0, vec![8]));
        assert_eq!(ids("web"), (33, 34, vec![8, 9]));
        assert_eq!(ids("33"), (33, 34, vec![8, 9]));
        assert_eq!(ids("web:mail"), (33, 8, vec![]));
        assert_eq!(ids("1000:1001"), (1000, 1001, vec![]));
        assert_eq!(ids("1000"), (1000, 0, vec![]));
        assert_eq!(find("web", PASSWD, GROUP).unwrap().home.as_deref(), Some("/srv"));
    }

    #[test]
    fn who_is_not_there_is_named() {
        let why = |wanted| find(wanted, PASSWD, GROUP).unwrap_err().to_string();
        assert_eq!(why("nobody"), "the image has no user `nobody` in its `/etc/passwd`");
        assert_eq!(why("web:nobody"), "the image has no group `nobody` in its `/etc/group`");
        assert_eq!(why("bad"), "the image has no user `bad` in its `/etc/passwd`");
        let beyond =
            "a container has the users and groups 0 to 65535, and 70000 is not one of them";
        assert_eq!(why("70000"), beyond);
        assert!(find("-1", "", "").is_err());
    }
}
