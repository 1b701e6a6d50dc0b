//! Containers that show whether containers can be made.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::containers::{Error, Port, Process, Spec, User};
use crate::oci::tests::lab::rig;
use crate::oci::tests::leftovers::{network, realm_of, traces};
use crate::testing::{MAIN, Rig};

/// Does what a self-test does.
async fn go_through(rig: &Rig) -> Result<Option<i32>, Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("trial{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let trials = rig.driver.trials();
    assert_eq!(trials.len(), 1);
    let trial = trials[0].clone();
    let ports = vec![Port { container: 1234, host: 64_999 }];
    let (rootfs, sole) = (trial.rootfs, trial.sole);
    let spec = Spec { rootfs, sole, ports, user: User::Same, ..rig.spec(&name) };
    rig.driver.create(spec).await?;
    let process = Process { path: trial.path, args: trial.args, ..Rig::process(MAIN, "") };
    rig.run(&name, process).await;
    let code = rig.ended(&name, MAIN).await.code;
    assert_eq!(network(realm_of(rig)), (1, 1), "it has a wire and a port");
    rig.driver.delete(&rig.guid(&name)).await?;
    Ok(code)
}

fn nft(rules: &str) {
    let mut nft =
        Command::new("/usr/sbin/nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut nft.stdin.take().unwrap(), rules.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success(), "{rules}");
}

#[tokio::test]
async fn a_trial_needs_no_image_and_leaves_nothing() {
    let Some(rig) = rig("a_trial_needs_no_image_and_leaves_nothing") else { return };
    for _ in 0..2 {
        assert_eq!(go_through(&rig).await.unwrap(), Some(0));
        assert_eq!(network(realm_of(&rig)), (0, 0));
        assert_eq!(traces(&rig), Vec::<String>::new());
    }
    rig.clean_up(&[]).await;
}

/// Somebody else flushes the packet filter of the machine.
#[tokio::test]
async fn a_trial_fails_while_the_network_is_broken_and_leaves_nothing() {
    let Some(rig) = rig("a_trial_fails_while_the_network_is_broken_and_leaves_nothing") else {
        return;
    };
    nft(&format!("delete table inet kapell{}\n", realm_of(&rig)));
    let why = go_through(&rig).await.unwrap_err();
    assert!(why.to_string().starts_with("`nft` could not set up the network"), "{why:?}");
    assert_eq!(traces(&rig), Vec::<String>::new());
    let (rig, found) = rig.restart().await;
    assert_eq!(found, []);
    assert_eq!(go_through(&rig).await.unwrap(), Some(0));
    rig.clean_up(&[]).await;
}
