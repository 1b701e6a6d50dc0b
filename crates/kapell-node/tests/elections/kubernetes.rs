use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::coordination::v1::Lease;
use kapell_core::seat::Seat;
use kapell_node::elections::Elections as _;
use kapell_node::system::SystemClock;
use kapell_node::testing::{Speed, World, elections_test_suite};
use kapell_store::kubernetes::Leases;
use kapell_store::{How, Store};
use kube::api::{DeleteParams, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::servers::{Open, Server, server, unique};

const NAMESPACE: &str = "default";

#[derive(Debug)]
struct Names {
    kubeconfig: String,
    prefix: String,
}

#[async_trait]
impl Open for Names {
    async fn open(&self, store: &str) -> Arc<dyn Store> {
        let name = format!("{}-{}", self.prefix, store.replace(['_', ' '], "-"));
        let name = name.chars().take(60).collect::<String>();
        let name = name.trim_end_matches('-');
        let url = format!("kubernetes://{NAMESPACE}/{name}?kubeconfig={}", self.kubeconfig);
        let timeout = Duration::from_secs(5);
        let how = How { create: true, timeout, clock: Arc::new(SystemClock) };
        let opened = Leases::open(&url, &how).await;
        Arc::new(opened.unwrap_or_else(|error| panic!("{url}: {error:?}")))
    }
}

/// The Leases of a cluster, as its administrator sees them.
async fn leases(kubeconfig: &str) -> Api<Lease> {
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    Api::namespaced(Client::try_from(config.unwrap()).unwrap(), NAMESPACE)
}

async fn clear(leases: &Api<Lease>, prefix: &str) {
    for lease in leases.list(&ListParams::default()).await.unwrap().items {
        let name = lease.metadata.name.unwrap_or_default();
        if name.starts_with(prefix) {
            leases.delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }
}

/// The seed's ElectionsByDriverTests, on Leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elections_by_driver_kubernetes() {
    let name = "elections::kubernetes::elections_by_driver_kubernetes";
    let Some(kubeconfig) = server(name, "KAPELL_TEST_KUBERNETES") else { return };
    let prefix = unique();
    let names = Names { kubeconfig: kubeconfig.clone(), prefix: prefix.clone() };
    elections_test_suite(Arc::new(Server(names)), Speed::REAL).await;
    clear(&leases(&kubeconfig).await, &prefix).await;
}

/// Somebody deletes Leases: whoever leads next has a higher epoch than any before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_grow_over_leases_that_were_deleted() {
    let name = "elections::kubernetes::epochs_grow_over_leases_that_were_deleted";
    let Some(kubeconfig) = server(name, "KAPELL_TEST_KUBERNETES") else { return };
    let prefix = unique();
    let names = Names { kubeconfig: kubeconfig.clone(), prefix: prefix.clone() };
    let world = World::new(Arc::new(Server(names)), Speed::REAL, "deleted").await;
    let leases = leases(&kubeconfig).await;
    let seat = format!("{prefix}-deleted-0000000100000001");
    let mut last = None;
    for gone in [vec![seat.clone()], vec![format!("{prefix}-deleted-ledger")]] {
        // Of a process of its own each time, which remembers nothing.
        let member = world.member("10.0.0.1:1").await;
        let tenure = member.elections.acquire(&[Seat::FIRST], None).await.expect("free");
        assert!(last.is_none_or(|last| tenure.epoch() > last), "{last:?} {:?}", tenure.epoch());
        last = Some(tenure.epoch());
        for name in gone {
            leases.delete(&name, &DeleteParams::default()).await.unwrap();
        }
        member.elections.cleanup().await;
    }
    let member = world.member("10.0.0.1:1").await;
    let tenure = member.elections.acquire(&[Seat::FIRST], None).await.expect("free");
    assert!(last.is_some_and(|last| tenure.epoch() > last), "{last:?} {:?}", tenure.epoch());
    let shown = leases.get(&seat).await.unwrap().spec.unwrap();
    assert_eq!(shown.lease_duration_seconds, Some(3));
    assert!(shown.renew_time.is_none() && shown.acquire_time.is_none(), "no clock is written");
    member.elections.cleanup().await;
    clear(&leases, &prefix).await;
}
