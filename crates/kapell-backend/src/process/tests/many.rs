//! Many containers at once.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::lab::Lab;
use crate::containers::Containers as _;

#[tokio::test]
async fn a_hundred_start_at_once_and_are_known_again() {
    let lab = Lab::new();
    let specs: Vec<_> = (0..100).map(|at| lab.job(&format!("many{at}"), "sleep 100")).collect();
    let lab = Arc::new(lab);
    let mut starts = JoinSet::new();
    let start = Instant::now();
    for spec in specs {
        let lab = Arc::clone(&lab);
        starts.spawn(async move { spec.start(&lab.driver).await });
    }
    while let Some(ran) = starts.join_next().await {
        ran.unwrap().unwrap();
    }
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    let lab = Arc::into_inner(lab).unwrap().restart();
    assert_eq!(lab.driver.recover().await.unwrap().len(), 100);
    lab.clean_up().await;
}
