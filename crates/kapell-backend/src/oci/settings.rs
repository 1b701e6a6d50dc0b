use std::net::Ipv4Addr;
use std::path::PathBuf;

/// What the containers of an agent have in common.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that starts containers; without it, the `runc` in `PATH`.
    pub runc: Option<PathBuf>,
    pub network: Network,
    /// Where the agents of this machine agree on who has which addresses and users. Lost when the machine is
    /// started anew, as are all containers.
    pub claims: PathBuf,
}

/// What containers see of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Each its own, with published ports. All agents of a machine must name the same address here: the first of
    /// 16,384 that nobody else uses.
    Own { from: Ipv4Addr },
    /// That of the machine. Containers then reach whatever listens on it.
    Host,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            runc: None,
            network: Network::Own { from: Ipv4Addr::new(10, 214, 0, 0) },
            claims: PathBuf::from("/run/kapell/realms"),
        }
    }
}
