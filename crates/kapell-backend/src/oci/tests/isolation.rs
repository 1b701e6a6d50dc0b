//! What a container cannot see, reach or do.

use std::os::unix::fs::PermissionsExt as _;

use crate::containers::{Error, Process, Spec, User};
use crate::oci::tests::lab::rig;
use crate::testing::{MAIN, Rig};

async fn said(rig: &Rig, name: &str, script: &str) -> String {
    rig.run_to_end(name, script).await;
    rig.text(name, MAIN)
}

#[tokio::test]
async fn its_root_is_nobody_on_the_machine() {
    let Some(rig) = rig("its_root_is_nobody_on_the_machine") else { return };
    let script = "id -u; cat /proc/self/uid_map; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status";
    let text = said(&rig, "who", script).await;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    assert_eq!((words[0], words[1], words[3]), ("0", "0", "65536"), "{text}");
    assert!(words[2].parse::<u32>().unwrap() >= 0x4000_0000, "{text}");
    // chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service.
    for (name, value) in [
        ("CapEff:", "00000000000004fb"),
        ("CapBnd:", "00000000000004fb"),
        ("NoNewPrivs:", "1"),
        ("Seccomp:", "2"),
    ] {
        let at = words.iter().position(|word| *word == name).unwrap();
        assert_eq!(words[at + 1], value, "{text}");
    }
    rig.clean_up(&["who"]).await;
}

#[tokio::test]
async fn it_owns_the_files_of_its_image_and_changes_only_its_own_copy() {
    let Some(rig) = rig("it_owns_the_files_of_its_image") else { return };
    let script = "[ -O /etc/passwd ] && echo own; echo new > /etc/passwd; rm -r /srv; echo x > /bin/new; \
                  ls -d /srv 2>/dev/null; cat /etc/passwd";
    assert_eq!(said(&rig, "one", script).await, "own\nnew\n");
    assert_eq!(
        said(&rig, "two", "head -n 1 /etc/passwd; ls -d /srv /bin/new").await,
        "root:x:0:0::/root:/bin/sh\n/srv\n"
    );
    rig.clean_up(&["one", "two"]).await;
}

#[tokio::test]
async fn it_sees_neither_the_machine_nor_the_agent() {
    let Some(rig) = rig("it_sees_neither_the_machine_nor_the_agent") else { return };
    let script = "ps | wc -l; cat /proc/1/comm; hostname; cat /etc/hostname; ls /sys/class/net; ls /; \
                  cat /proc/keys /proc/timer_list /sys/kernel/* 2>/dev/null; \
                  echo x > /proc/sys/kernel/hostname; echo b > /proc/sysrq-trigger; ls /sys/kernel; env | sort";
    let text = said(&rig, "view", script).await;
    let guid = rig.guid("view");
    assert!(text.contains(&format!("\nsh\n{guid}\n{guid}\neth0\nlo\n")), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].trim().parse::<u32>().unwrap() <= 5, "{text}");
    for agent in ["CARGO", "RUST", rig.dir.path().to_str().unwrap()] {
        assert!(!text.contains(agent), "{agent}: {text}");
    }
    let variables: Vec<&str> = lines.iter().copied().filter(|line| line.contains('=')).collect();
    let names: Vec<&str> = variables.iter().map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(names, ["HOME", "KAPELL_CONTAINER", "KAPELL_PROCESS", "PATH", "PWD", "SHLVL"]);
    let own = rig.dir.path().join("agent/containers").join(&guid).join("oci");
    for file in ["config.json", "launch"] {
        let mode = std::fs::metadata(own.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others read `{file}`, with the environment in it");
    }
    rig.clean_up(&["view"]).await;
}

#[tokio::test]
async fn what_leads_out_is_refused() {
    let Some(rig) = rig("what_leads_out_is_refused") else { return };
    for (at, command) in [
        "unshare -U true",
        "unshare -m true",
        "mount -t tmpfs x /srv",
        "mount -o bind /bin /srv",
        "umount /proc",
        "chroot /srv true",
        "mknod /srv/disk b 8 0",
        "hostname other",
        "dmesg",
        "nsenter -t 1 -m true",
        "ip link add x type bridge",
        "ip link set eth0 down",
        "insmod x",
        "swapoff -a",
        "renice -n -5 1",
        "echo 1 > /sys/fs/cgroup/pids/pids.max",
        "echo 0 > /proc/1/oom_score_adj; echo -900 > /proc/1/oom_score_adj",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("out{at}");
        let exit =
            rig.run_to_end(&name, &format!("{command} 2>/dev/null && exit 42; exit 7")).await;
        assert_eq!(exit.code, Some(7), "{command}: {exit:?}");
        rig.driver.delete(&rig.guid(&name)).await.unwrap();
    }
    rig.clean_up(&[]).await;
}

#[tokio::test]
async fn users_of_the_image_have_no_privilege() {
    let Some(rig) = rig("users_of_the_image_have_no_privilege") else { return };
    let user = Some(User::Id { uid: 33, gid: 34, own: false });
    let script = "id -u; id -g; grep CapEff /proc/self/status; echo x > /etc/x || echo no; echo y > /tmp/y && echo yes";
    rig.create(Spec { sole: false, ..rig.spec("web") }).await;
    rig.run("web", Process { user, ..Rig::process(MAIN, script) }).await;
    rig.ended("web", MAIN).await;
    assert_eq!(rig.text("web", MAIN), "33\n34\nCapEff:\t0000000000000000\nno\nyes\n");
    let beyond = Some(User::Id { uid: 70_000, gid: 0, own: false });
    let bad = Process { user: beyond, ..Rig::process("bad", "true") };
    let error = rig.driver.run(&rig.guid("web"), bad).await.unwrap_err();
    assert!(matches!(&error, Error::Unstartable(why) if why.contains("70000")), "{error:?}");
    rig.clean_up(&["web"]).await;
}
