use super::rig::Lab;
use crate::scheduler::conformance::conforms;

#[tokio::test]
async fn processes_of_the_host_do_what_every_backend_does() {
    conforms(Lab::new).await;
}
