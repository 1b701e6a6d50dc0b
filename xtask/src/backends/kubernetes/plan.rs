//! The files that a cluster is made of, as text.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::audit;
use super::image::PAUSE;
use super::keys::{NODE, SERVICE};
use super::names::Names;

/// Everything that the files of one cluster have to agree on.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) dir: &'a Path,
    /// Where the programs are.
    pub(super) programs: PathBuf,
    pub(super) names: Names,
    pub(super) ports: Ports,
}

#[derive(Debug)]
pub(super) struct Ports {
    pub(super) etcd: u16,
    pub(super) peer: u16,
    pub(super) server: u16,
    pub(super) kubelet: u16,
}

/// What is started one by one; the node is a container runtime and a kubelet.
pub(super) const STARTED: [&str; 5] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "node"];

/// Directories of the machine that the node's programs write to, whatever they are told, and what it has in their
/// place.
const HIDDEN: [(&str, &str); 3] = [("/run", "run"), ("/var/lib", "lib"), ("/var/log", "log")];

impl Plan<'_> {
    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.server)
    }

    /// Directories below the cluster's own that have to be there.
    pub(super) fn directories() -> Vec<String> {
        let all = ["start", "pids", "logs", "cni", "kubelet", "pods"].map(str::to_owned);
        let hidden = HIDDEN.map(|(_, name)| format!("hidden/{name}"));
        all.into_iter().chain(hidden).collect()
    }

    /// Every file and what is in it, but for keys and images.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        vec![
            ("start/etcd", self.script("etcd", &self.etcd())),
            ("start/kube-apiserver", self.script("kube-apiserver", &self.api_server())),
            (
                "start/kube-controller-manager",
                self.script("kube-controller-manager", &self.controller_manager()),
            ),
            ("start/kube-scheduler", self.script("kube-scheduler", &self.scheduler())),
            ("start/node", self.node()),
            ("start/inside", self.inside()),
            ("audit.json", render(&audit::policy())),
            ("kubelet.json", render(&self.kubelet())),
            ("containerd.toml", self.containerd()),
            ("cni/bridge.conflist", render(&self.network())),
            ("rules.nft", self.rules()),
            // Pods have no resolver.
            ("resolv.conf", String::new()),
        ]
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).to_string_lossy().into_owned()
    }

    fn key(&self, name: &str) -> String {
        self.path(&format!("keys/{name}"))
    }

    fn program(&self, name: &str) -> String {
        self.programs.join(name).to_string_lossy().into_owned()
    }

    /// Becomes the program, whose pid and log have their places: whoever ends the program starts it again with this.
    fn script(&self, name: &str, words: &[String]) -> String {
        let pid = quote(&self.path(&format!("pids/{name}")));
        let log = quote(&self.path(&format!("logs/{name}.log")));
        let command: Vec<String> = words.iter().map(|word| quote(word)).collect();
        format!("echo $$ >{pid}\nexec {} </dev/null >>{log} 2>&1\n", command.join(" \\\n  "))
    }

    /// Whoever can write to it rules the cluster, and so the machine: it knows the authority's own only.
    fn etcd(&self) -> Vec<String> {
        let client = self.etcd_url();
        let peer = format!("https://127.0.0.1:{}", self.ports.peer);
        let cluster = format!("test={peer}");
        let (data, authority) = (self.path("etcd"), self.key("ca.pem"));
        let (certificate, key) = (self.key("server.pem"), self.key("server.key"));
        let mut words = vec![self.program("etcd")];
        words.extend(options(&[
            ("name", "test"),
            ("data-dir", &data),
            ("unsafe-no-fsync", "true"),
            ("listen-client-urls", &client),
            ("advertise-client-urls", &client),
            ("client-cert-auth", "true"),
            ("trusted-ca-file", &authority),
            ("cert-file", &certificate),
            ("key-file", &key),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer),
            ("initial-cluster", &cluster),
            ("peer-client-cert-auth", "true"),
            ("peer-trusted-ca-file", &authority),
            ("peer-cert-file", &certificate),
            ("peer-key-file", &key),
        ]));
        words
    }

    fn etcd_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.etcd)
    }

    fn api_server(&self) -> Vec<String> {
        let (certificate, key) = (self.key("server-client.pem"), self.key("server-client.key"));
        let mut words = vec![self.program("kube-apiserver")];
        words.extend(options(&[
            ("etcd-servers", &self.etcd_url()),
            ("etcd-cafile", &self.key("ca.pem")),
            ("etcd-certfile", &certificate),
            ("etcd-keyfile", &key),
            ("bind-address", "127.0.0.1"),
            ("secure-port", &self.ports.server.to_string()),
            ("service-cluster-ip-range", "10.96.0.0/24"),
            ("endpoint-reconciler-type", "none"),
            ("allow-privileged", "true"),
            ("authorization-mode", "Node,RBAC"),
            ("enable-admission-plugins", "NodeRestriction"),
            ("client-ca-file", &self.key("ca.pem")),
            ("tls-cert-file", &self.key("server.pem")),
            ("tls-private-key-file", &self.key("server.key")),
            ("kubelet-client-certificate", &certificate),
            ("kubelet-client-key", &key),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            ("service-account-key-file", &self.key("accounts.pub")),
            ("service-account-signing-key-file", &self.key("accounts.key")),
            ("audit-policy-file", &self.path("audit.json")),
            ("audit-log-path", &self.path("audit.log")),
        ]));
        words
    }

    fn controller_manager(&self) -> Vec<String> {
        let mut words = vec![self.program("kube-controller-manager")];
        words.extend(options(&[
            ("kubeconfig", &self.path("controller-manager.conf")),
            ("leader-elect", "false"),
            ("secure-port", "0"),
            ("root-ca-file", &self.key("ca.pem")),
            ("service-account-private-key-file", &self.key("accounts.key")),
            // What is measured is not to wait for the limits of a client of the cluster's own.
            ("kube-api-qps", "500"),
            ("kube-api-burst", "1000"),
        ]));
        words
    }

    fn scheduler(&self) -> Vec<String> {
        let mut words = vec![self.program("kube-scheduler")];
        words.extend(options(&[
            ("kubeconfig", &self.path("scheduler.conf")),
            ("leader-elect", "false"),
            ("secure-port", "0"),
        ]));
        words
    }

    /// In namespaces of its own for mounts and processes: all of them go with one process, whatever happens.
    fn node(&self) -> String {
        let words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"];
        let words = words.into_iter().map(str::to_owned).chain([self.path("start/inside")]);
        self.script("node", &words.collect::<Vec<_>>())
    }

    /// The first process of the node, whose end is the node's.
    fn inside(&self) -> String {
        let mounts: String = HIDDEN
            .iter()
            .map(|(place, name)| {
                let instead = quote(&self.path(&format!("hidden/{name}")));
                format!("mount --bind {instead} {place}\n")
            })
            .collect();
        let [containerd, kubelet] =
            ["containerd", "kubelet"].map(|name| quote(&self.path(&format!("logs/{name}.log"))));
        let (config, socket) = (quote(&self.path("containerd.toml")), quote(&self.socket()));
        let mut words = vec![self.program("kubelet")];
        words.extend(options(&[
            ("config", &self.path("kubelet.json")),
            ("kubeconfig", &self.path("kubelet.conf")),
            ("hostname-override", NODE),
            ("root-dir", &self.path("kubelet")),
            ("cert-dir", &self.path("kubelet/keys")),
        ]));
        let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
        format!(
            "set -e\n{mounts}\
             containerd --config {config} >>{containerd} 2>&1 &\n\
             until ctr --address {socket} version >/dev/null 2>&1; do kill -0 $!; sleep 0.1; done\n\
             {} >>{kubelet} 2>&1 &\n\
             wait $!\n",
            words.join(" \\\n  ")
        )
    }

    pub(super) fn socket(&self) -> String {
        self.path("containerd.sock")
    }

    fn containerd(&self) -> String {
        let (root, state) = (self.path("containerd/root"), self.path("containerd/state"));
        let (socket, cni) = (self.socket(), self.path("cni"));
        let cri = "plugins.\"io.containerd.grpc.v1.cri\"";
        format!(
            "version = 2\nroot = {root:?}\nstate = {state:?}\n\
             disabled_plugins = [\"io.containerd.internal.v1.opt\"]\n\
             [grpc]\naddress = {socket:?}\n\
             [ttrpc]\naddress = \"{socket}.ttrpc\"\n\
             [{cri}]\nsandbox_image = {PAUSE:?}\nnetns_mounts_under_state_dir = true\n\
             # Who may not make itself less likely to be killed cannot start a container that is to be.\n\
             restrict_oom_score_adj = true\n\
             [{cri}.cni]\nbin_dir = {:?}\nconf_dir = {cni:?}\n\
             [{cri}.containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n\
             [{cri}.containerd.runtimes.runc.options]\nSystemdCgroup = false\n",
            super::CNI
        )
    }

    fn kubelet(&self) -> Value {
        json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": self.ports.kubelet,
            "readOnlyPort": 0,
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": false},
                "webhook": {"enabled": true},
                "x509": {"clientCAFile": self.key("ca.pem")},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": format!("unix://{}", self.socket()),
            "podLogsDir": self.path("pods"),
            "volumePluginDir": self.path("kubelet/plugins"),
            "resolvConf": self.path("resolv.conf"),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": format!("/{}", self.names.group),
            "enforceNodeAllocatable": [],
            "failCgroupV1": false,
            "failSwapOn": false,
            // The rights to more are not everywhere.
            "oomScoreAdj": 0,
            "makeIPTablesUtilChains": false,
            // A full disk of the machine is no matter of the tests.
            "evictionHard": {"memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "maxPods": 220,
            "syncFrequency": "10s",
            "kubeAPIQPS": 500,
            "kubeAPIBurst": 1000,
            "eventRecordQPS": 0,
        })
    }

    /// The bridge is made by us, and is no gateway, or the plugin would turn on forwarding on this machine.
    fn network(&self) -> Value {
        let Names { bridge, pods, .. } = &self.names;
        let address = |last: u8| format!("{pods}.{last}");
        json!({
            "cniVersion": "0.4.0",
            "name": bridge,
            "plugins": [{
                "type": "bridge", "bridge": bridge, "isGateway": false, "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "dataDir": self.path("addresses"),
                    "ranges": [[{
                        "subnet": format!("{pods}.0/24"), "gateway": address(1),
                        "rangeStart": address(10), "rangeEnd": address(254),
                    }]],
                    "routes": [{"dst": "0.0.0.0/0", "gw": address(1)}],
                },
            }],
        })
    }

    /// The only service there is: pods find the API server.
    fn rules(&self) -> String {
        let (Names { bridge, table, .. }, port) = (&self.names, self.ports.server);
        format!(
            "table ip {table} {{\n  chain services {{\n    type nat hook prerouting priority dstnat;\n    \
             iifname \"{bridge}\" ip daddr {SERVICE} tcp dport 443 dnat to 127.0.0.1:{port}\n  }}\n}}\n"
        )
    }
}

fn options(options: &[(&str, &str)]) -> Vec<String> {
    options.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

fn render(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A word that a shell takes as it is.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<(&'static str, String)> {
        let dir = Path::new("/tmp/kapell-backends-kubernetes-7-0");
        let ports = Ports { etcd: 1001, peer: 1002, server: 1003, kubelet: 1004 };
        let names = Names::of(dir);
        Plan { dir, programs: "/cache/it's".into(), names, ports }.files()
    }

    fn file(name: &str) -> String {
        files().into_iter().find(|(each, _)| *each == name).unwrap().1
    }

    #[test]
    fn every_program_has_a_script_that_becomes_it_and_says_who_it_is() {
        for name in STARTED {
            let text = file(&format!("start/{name}"));
            let own = "/tmp/kapell-backends-kubernetes-7-0";
            assert!(text.starts_with(&format!("echo $$ >'{own}/pids/{name}'\nexec '")), "{text}");
            assert!(text.ends_with(&format!(" >>'{own}/logs/{name}.log' 2>&1\n")), "{text}");
        }
        let text = file("start/kube-scheduler");
        assert!(text.contains(r"exec '/cache/it'\''s/kube-scheduler' \"), "{text}");
    }

    #[test]
    fn files_agree_on_ports_names_and_places() {
        let parse = |name| serde_json::from_str::<Value>(&file(name)).unwrap();
        let own = "/tmp/kapell-backends-kubernetes-7-0";
        assert!(file("start/etcd").contains("'--listen-client-urls=https://127.0.0.1:1001'"));
        let server = file("start/kube-apiserver");
        assert!(server.contains("'--etcd-servers=https://127.0.0.1:1001'"));
        assert!(server.contains("'--secure-port=1003'"));
        let kubelet = parse("kubelet.json");
        assert_eq!(kubelet["port"], 1004);
        assert_eq!(kubelet["cgroupRoot"], "/kapell-kubernetes-7-0");
        assert_eq!(kubelet["containerRuntimeEndpoint"], format!("unix://{own}/containerd.sock"));
        assert!(
            file("containerd.toml").contains(&format!("address = \"{own}/containerd.sock\"\n"))
        );
        let network = parse("cni/bridge.conflist");
        assert_eq!(network["plugins"][0]["bridge"], "kpl7-0");
        let range = &network["plugins"][0]["ipam"]["ranges"][0][0];
        assert_eq!(
            (&range["subnet"], &range["gateway"]),
            (&json!("10.244.7.0/24"), &json!("10.244.7.1"))
        );
        let rules = file("rules.nft");
        assert!(rules.contains(
            "iifname \"kpl7-0\" ip daddr 10.96.0.1 tcp dport 443 dnat to 127.0.0.1:1003\n"
        ));
    }

    #[test]
    fn nothing_of_the_machine_is_written_to_but_what_has_a_place_below_the_clusters_own() {
        let inside = file("start/inside");
        for (place, name) in HIDDEN {
            let own = "/tmp/kapell-backends-kubernetes-7-0/hidden";
            assert!(inside.contains(&format!("mount --bind '{own}/{name}' {place}\n")), "{inside}");
            assert!(Plan::directories().contains(&format!("hidden/{name}")));
        }
    }
}
