use std::path::Path;

/// What a cluster is called outside of its directory; no other has the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// A bridge, and the network of pods that is on it.
    pub(super) bridge: String,
    /// Below the root of each hierarchy of control groups.
    pub(super) group: String,
    /// Of nftables.
    pub(super) table: String,
    /// The first three numbers of the pods' addresses.
    pub(super) pods: String,
}

impl Names {
    /// From what tells the directory from those of other clusters: a process and a count.
    pub(super) fn of(dir: &Path) -> Self {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let own = name.rsplit_once("kubernetes-").map_or(&*name, |(_, own)| own);
        let process: u32 = own.split('-').next().and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            // The kernel takes 15 characters.
            bridge: format!("kpl{own}").chars().take(15).collect(),
            group: format!("kapell-kubernetes-{own}"),
            table: format!("kapell_kubernetes_{}", own.replace('-', "_")),
            pods: format!("10.244.{}", process % 256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clusters_share_no_name() {
        let names = Names::of(Path::new("/tmp/kapell-backends-kubernetes-4194303-0"));
        assert_eq!(names.bridge, "kpl4194303-0");
        assert_eq!(names.group, "kapell-kubernetes-4194303-0");
        assert_eq!(names.table, "kapell_kubernetes_4194303_0");
        assert_eq!(names.pods, "10.244.255");
        let other = Names::of(Path::new("/tmp/kapell-backends-kubernetes-4194302-0"));
        assert!(names.bridge != other.bridge && names.pods != other.pods);
    }
}
