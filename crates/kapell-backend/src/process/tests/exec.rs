use std::fs;
use std::os::unix::fs::MetadataExt as _;

use tokio::io::AsyncReadExt as _;

use super::lab::{Lab, is_root, own_user};
use crate::containers::{Containers as _, Exec};

#[tokio::test]
async fn what_runs_beside_a_process_has_its_user_its_directory_and_its_groups() {
    if !is_root("what_runs_beside_a_process_has_its_user_its_directory_and_its_groups") {
        return;
    }
    let lab = Lab::new();
    let mut job = lab.job("web", "exec sleep 1000");
    job.user = own_user();
    lab.start(job).await;
    let tell = "id -u; id -G; pwd; cat /proc/self/cgroup";
    let args = vec!["-c".to_owned(), tell.to_owned()];
    let exec = Exec { path: "sh".to_owned(), args, env: Vec::new(), terminal: None };
    let mut session = lab.driver.exec(&lab.guid("web"), exec).await.unwrap();
    let mut told = String::new();
    session.stdout.read_to_string(&mut told).await.unwrap();
    let main = lab.pid("web", 1);
    let uid = fs::metadata(format!("/proc/{main}")).unwrap().uid();
    let dir = fs::read_link(format!("/proc/{main}/cwd")).unwrap();
    let groups = fs::read_to_string(format!("/proc/{main}/cgroup")).unwrap();
    assert_eq!(told, format!("{uid}\n{uid}\n{}\n{groups}", dir.display()));
    lab.clean_up().await;
}
