//! The network of an agent's containers: a wire to each, which its launcher makes, and rules for all of them.

use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::rules::{self, Published};
use super::slot::{PREFIX, Realm, Slot};
use crate::containers::Error;
use crate::process::trouble;

const LINKS: &str = "/sys/class/net";
const ROUTES: &str = "/proc/net/route";
/// Says that we have turned forwarding on.
const MARK: &str = "forwarding";
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

#[derive(Debug)]
pub(super) struct Wires {
    realm: Realm,
    /// Forwarding was off before us, so it stays so for all but containers.
    forbid_others: bool,
    /// One change of the rules at a time.
    changing: Mutex<()>,
}

impl Wires {
    /// Sets it up, or finds that this machine cannot.
    pub(super) fn open(realm: Realm, claims: &Path) -> Result<Self, Error> {
        let routes = Path::new(ROUTES);
        let known = fs::read_to_string(routes).map_err(trouble::io("read", routes))?;
        if let Some(other) = used_by(&known, realm) {
            let what = format!(
                "addresses from {} on are in use on `{other}`: name others for the network of containers",
                realm.network()
            );
            return Err(Error::Io { what, source: io::ErrorKind::AddrInUse.into() });
        }
        let wires =
            Self { realm, forbid_others: turn_on_forwarding(claims)?, changing: Mutex::default() };
        wires.publish_all(&[])?;
        Ok(wires)
    }

    /// Makes all rules anew, with these ports and no others.
    pub(super) fn publish_all(&self, published: &[Published]) -> Result<(), Error> {
        self.filter(&rules::table(self.realm, published, self.forbid_others))
    }

    pub(super) fn publish(&self, published: &Published) -> Result<(), Error> {
        if published.ports.is_empty() {
            return Ok(());
        }
        self.filter(&rules::publish(self.realm, published))
    }

    pub(super) fn withdraw(&self, published: &Published) -> Result<(), Error> {
        if published.ports.is_empty() {
            return Ok(());
        }
        self.filter(&rules::withdraw(self.realm, published))
    }

    fn filter(&self, rules: &str) -> Result<(), Error> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        run("nft", &["-f", "-"], rules)
    }

    /// Removes the wire of a container that is gone, if the kernel has not done so yet.
    pub(super) fn cut(&self, slot: Slot) -> Result<(), Error> {
        let wire = slot.wire(self.realm);
        if !is_link(&wire) {
            return Ok(());
        }
        match run("ip", &["link", "delete", &wire], "") {
            // The kernel was faster.
            Err(_) if !is_link(&wire) => Ok(()),
            cut => cut,
        }
    }

    /// Removes wires that belong to no container.
    pub(super) fn cut_strays(&self, is_used: impl Fn(Slot) -> bool) -> Result<(), Error> {
        let prefix = self.realm.wires();
        let links = fs::read_dir(LINKS).map_err(trouble::io("read", Path::new(LINKS)))?;
        for link in links.flatten() {
            let name = link.file_name();
            let slot = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse().ok());
            if let Some(slot) = slot.map(Slot).filter(|slot| !is_used(*slot)) {
                self.cut(slot)?;
            }
        }
        Ok(())
    }

    /// Removes all of it.
    pub(super) fn close(&self) {
        let table = self.realm.table();
        let _gone_already = run("nft", &["-f", "-"], &format!("delete table inet {table}\n"));
    }
}

/// True if it was off before some agent of ours turned it on.
fn turn_on_forwarding(claims: &Path) -> Result<bool, Error> {
    let mark = claims.join(MARK);
    let is_on = fs::read_to_string(FORWARDING).is_ok_and(|text| text.trim() == "1");
    if !is_on {
        fs::write(&mark, "").map_err(trouble::io("write", &mark))?;
        write(FORWARDING, "1")?;
    }
    Ok(mark.exists())
}

/// Sets it back, if it was off before: nobody needs it any more.
pub(super) fn restore_forwarding(claims: &Path) {
    if fs::remove_file(claims.join(MARK)).is_ok() {
        let _best_effort = write(FORWARDING, "0");
    }
}

/// Which other link of this machine has addresses of ours. Whatever goes everywhere does not count.
fn used_by(routes: &str, realm: Realm) -> Option<String> {
    let own = u32::from(realm.network());
    let own_mask = u32::from(Ipv4Addr::BROADCAST) << (32 - PREFIX);
    let number = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::swap_bytes);
    routes.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (link, to, mask) = (*fields.first()?, number(fields.get(1)?)?, number(fields.get(7)?)?);
        let common = mask & own_mask;
        let is_same = mask != 0 && to & common == own & common;
        (is_same && !link.starts_with(&realm.wires())).then(|| link.to_owned())
    })
}

fn is_link(name: &str) -> bool {
    Path::new(LINKS).join(name).exists()
}

fn write(file: &str, value: &str) -> Result<(), Error> {
    fs::write(file, value).map_err(trouble::io("write", Path::new(file)))
}

/// Runs a tool of the system with this input. Blocks.
fn run(tool: &str, arguments: &[&str], input: &str) -> Result<(), Error> {
    let failed = |source: io::Error| {
        let package = if tool == "ip" { "iproute2" } else { "nftables" };
        let advice = if source.kind() == io::ErrorKind::NotFound {
            format!(": install {package}, or have containers use the network of the machine")
        } else {
            String::new()
        };
        Error::Io { what: format!("cannot run `{tool}`{advice}"), source }
    };
    let mut started = Command::new(tool)
        .args(arguments)
        .env("PATH", super::PATH)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut pipe) = started.stdin.take() {
        // One that ends without reading says why.
        let _unread = pipe.write_all(input.as_bytes());
    }
    let ended = started.wait_with_output().map_err(failed)?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.lines().next().unwrap_or("it said nothing").to_owned();
    Err(Error::Io {
        what: format!(
            "`{tool}` could not set up the network of containers; they can use that of the machine \
             instead, if that is allowed"
        ),
        source: io::Error::other(said),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_another_link_are_not_taken() {
        let head =
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";
        let realm = Realm { number: 1, networks: Ipv4Addr::new(10, 214, 0, 0) };
        let of = |link: &str, to: &str, mask: &str| {
            let line = format!("{head}{link}\t{to}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0\n");
            used_by(&line, realm)
        };
        assert_eq!(of("eth0", "00000000", "00000000"), None, "the way to everywhere");
        assert_eq!(of("eth0", "0004D60A", "00FCFFFF").as_deref(), Some("eth0"), "10.214.4.0/22");
        assert_eq!(of("kap1-7", "0004D60A", "00FCFFFF"), None, "our own");
        assert_eq!(of("vpn", "0000000A", "000000FF").as_deref(), Some("vpn"), "10.0.0.0/8");
        assert_eq!(of("vpn", "0507D60A", "FFFFFFFF").as_deref(), Some("vpn"), "10.214.7.5");
        assert_eq!(of("vpn", "0000D60A", "00FCFFFF"), None, "10.214.0.0/22 is another realm's");
    }
}
