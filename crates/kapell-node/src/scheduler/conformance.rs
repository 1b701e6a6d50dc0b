//! What every backend owes the scheduler.

use std::time::Duration;

use async_trait::async_trait;
use kapell_core::run::{Evidence, RunId, StopKind, WorkEnd};
use tokio::sync::mpsc::UnboundedReceiver;

use super::backend::{Attempt, Backend, News, What, Work};
use crate::testing::{eventually, within};

/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A backend and the hand that moves its work.
#[async_trait]
pub(crate) trait Rig: Sized + Send + Sync {
    fn backend(&self) -> &dyn Backend;

    fn news(&mut self) -> &mut UnboundedReceiver<News>;

    /// Runs until [`Rig::end`].
    fn work(&self, attempt: &Attempt) -> Work;

    /// Cannot be started by anybody.
    fn unstartable(&self, attempt: &Attempt) -> Work;

    /// Sees to it that launched work runs.
    async fn start(&self, attempt: &Attempt);

    /// Has work that runs end with this code.
    async fn end(&self, attempt: &Attempt, code: i32);

    /// As the work itself counts them.
    fn launches(&self, attempt: &Attempt) -> u32;

    fn is_under_way(&self, attempt: &Attempt) -> bool;

    /// Another holder of the same work, while the one before is gone.
    async fn reopen(self) -> Self;

    /// Leaves nothing behind.
    async fn close(self);
}

pub(crate) fn attempt(job: &str, number: u32) -> Attempt {
    Attempt { run_id: RunId::parse(&format!("{job}:1763290800")).unwrap(), number }
}

/// Runs all of it, each part with a backend of its own.
pub(crate) async fn conforms<R: Rig>(open: impl AsyncFn() -> R) {
    let mut rig = open().await;
    a_launch_that_is_repeated_is_one_launch(&mut rig).await;
    rig.close().await;
    let mut rig = open().await;
    evidence_is_what_is_so(&mut rig).await;
    rig.close().await;
    let rig = what_others_left_is_found(open().await).await;
    rig.close().await;
    let mut rig = open().await;
    work_is_stopped_in_every_phase(&mut rig).await;
    rig.close().await;
    let mut rig = open().await;
    nothing_is_told_of_what_was_released(&mut rig).await;
    rig.close().await;
    let mut rig = open().await;
    news_come_once_and_in_order(&mut rig).await;
    rig.close().await;
    let mut rig = open().await;
    what_cannot_start_is_said_once(&mut rig).await;
    rig.close().await;
}

async fn next<R: Rig>(rig: &mut R) -> News {
    within("news", PATIENCE, rig.news().recv()).await.unwrap()
}

async fn started<R: Rig>(rig: &mut R, attempt: &Attempt) {
    let news = next(rig).await;
    assert_eq!(news.attempt, *attempt);
    assert!(matches!(news.what, What::Started { .. }), "{news:?}");
}

async fn ended<R: Rig>(rig: &mut R, attempt: &Attempt) -> WorkEnd {
    let news = next(rig).await;
    assert_eq!(news.attempt, *attempt);
    let What::Ended(work) = news.what else { panic!("{news:?}") };
    work
}

fn quiet<R: Rig>(rig: &mut R) {
    let news = rig.news().try_recv();
    assert!(news.is_err(), "{news:?}");
}

async fn launch<R: Rig>(rig: &mut R, attempt: &Attempt) {
    rig.backend().launch(&rig.work(attempt)).await.unwrap();
    rig.start(attempt).await;
    started(rig, attempt).await;
}

async fn find<R: Rig>(rig: &R, attempt: &Attempt) -> Evidence {
    rig.backend().find(attempt, &rig.backend().place()).await
}

async fn stop<R: Rig>(rig: &R, attempt: &Attempt, kind: StopKind) {
    let place = rig.backend().place();
    let stop = rig.backend().stop(attempt, &place, kind);
    within("a stop", PATIENCE, stop).await.unwrap();
    assert!(!rig.is_under_way(attempt), "{attempt:?}");
}

async fn a_launch_that_is_repeated_is_one_launch<R: Rig>(rig: &mut R) {
    let (one, other) = (attempt("one", 0), attempt("one", 1));
    let work = rig.work(&one);
    let (first, second) = tokio::join!(rig.backend().launch(&work), rig.backend().launch(&work));
    assert_eq!((first, second), (Ok(()), Ok(())));
    rig.backend().launch(&work).await.unwrap();
    rig.start(&one).await;
    started(rig, &one).await;
    rig.backend().launch(&work).await.unwrap();
    rig.end(&one, 0).await;
    assert_eq!(ended(rig, &one).await.failure, None);
    rig.backend().launch(&work).await.unwrap();
    assert_eq!(rig.launches(&one), 1);
    launch(rig, &other).await;
    assert_eq!(
        (rig.launches(&one), rig.launches(&other)),
        (1, 1),
        "another attempt is another launch"
    );
    rig.end(&other, 0).await;
    ended(rig, &other).await;
    quiet(rig);
}

async fn evidence_is_what_is_so<R: Rig>(rig: &mut R) {
    let one = attempt("evident", 0);
    assert_eq!(find(rig, &one).await, Evidence::Absent);
    rig.backend().launch(&rig.work(&one)).await.unwrap();
    let evidence = find(rig, &one).await;
    assert!(matches!(evidence, Evidence::Launched | Evidence::Running { .. }), "{evidence:?}");
    rig.start(&one).await;
    started(rig, &one).await;
    let evidence = find(rig, &one).await;
    assert!(matches!(evidence, Evidence::Running { .. }), "{evidence:?}");
    rig.end(&one, 3).await;
    let work = ended(rig, &one).await;
    assert_eq!(work.exit_code, Some(3));
    assert!(work.failure.is_some());
    assert_eq!(find(rig, &one).await, Evidence::Ended(work));
    quiet(rig);
}

async fn what_others_left_is_found<R: Rig>(mut rig: R) -> R {
    let [runs, over, again] = ["runs", "over", "again"].map(|job| attempt(job, 0));
    for each in [&runs, &over, &again] {
        launch(&mut rig, each).await;
    }
    rig.end(&over, 4).await;
    let told = ended(&mut rig, &over).await;
    let mut rig = rig.reopen().await;
    let mut known = rig.backend().known().await.unwrap();
    known.sort();
    assert_eq!(known, [again.clone(), over.clone(), runs.clone()]);
    quiet(&mut rig);
    let evidence = find(&rig, &runs).await;
    assert!(matches!(evidence, Evidence::Running { .. }), "{evidence:?}");
    let Evidence::Ended(found) = find(&rig, &over).await else { panic!("{over:?} has ended") };
    assert_eq!((found.exit_code, &found.failure), (Some(4), &told.failure));
    rig.backend().launch(&rig.work(&again)).await.unwrap();
    started(&mut rig, &again).await;
    rig.end(&runs, 0).await;
    assert_eq!(ended(&mut rig, &runs).await.exit_code, Some(0));
    rig.end(&again, 0).await;
    assert_eq!(ended(&mut rig, &again).await.exit_code, Some(0));
    for each in [&runs, &over, &again] {
        assert_eq!(rig.launches(each), 1);
    }
    quiet(&mut rig);
    rig
}

async fn work_is_stopped_in_every_phase<R: Rig>(rig: &mut R) {
    for kind in [StopKind::Graceful, StopKind::AtOnce] {
        let [never, pending, runs, over] =
            ["never", "pending", "runs", "over"].map(|job| attempt(job, kind as u32));
        stop(rig, &never, kind).await;
        assert_eq!(find(rig, &never).await, Evidence::Absent);

        rig.backend().launch(&rig.work(&pending)).await.unwrap();
        stop(rig, &pending, kind).await;
        let mut told = vec![next(rig).await];
        if matches!(told[0].what, What::Started { .. }) {
            told.push(next(rig).await);
        }
        let last = told.pop().unwrap();
        assert!(matches!(last.what, What::Ended(_) | What::Unstartable { .. }), "{last:?}");
        assert_ne!(find(rig, &pending).await, Evidence::Absent, "what was launched stays known");

        launch(rig, &runs).await;
        stop(rig, &runs, kind).await;
        assert!(ended(rig, &runs).await.failure.is_some());
        stop(rig, &runs, kind).await;
        let evidence = find(rig, &runs).await;
        assert!(matches!(evidence, Evidence::Ended(_)), "{evidence:?}");

        launch(rig, &over).await;
        rig.end(&over, 0).await;
        assert_eq!(ended(rig, &over).await.failure, None);
        stop(rig, &over, kind).await;
        let Evidence::Ended(work) = find(rig, &over).await else { panic!("{over:?} has ended") };
        assert_eq!(work.failure, None, "it had ended well before");
        quiet(rig);
    }
}

async fn nothing_is_told_of_what_was_released<R: Rig>(rig: &mut R) {
    let [over, runs, never] = ["over", "runs", "never"].map(|job| attempt(job, 0));
    launch(rig, &over).await;
    launch(rig, &runs).await;
    rig.end(&over, 0).await;
    ended(rig, &over).await;
    assert_eq!(rig.backend().known().await.unwrap(), [over.clone(), runs.clone()]);
    rig.backend().release(&over).await;
    rig.backend().release(&over).await;
    rig.backend().release(&never).await;
    assert_eq!(rig.backend().known().await.unwrap(), std::slice::from_ref(&runs));
    rig.backend().release(&runs).await;
    assert_eq!(rig.backend().known().await.unwrap(), []);
    let gone = || async { !rig.is_under_way(&runs) };
    eventually("what is released is not under way", PATIENCE, gone).await;
    quiet(rig);
}

async fn news_come_once_and_in_order<R: Rig>(rig: &mut R) {
    let all: Vec<Attempt> = (0..20).map(|number| attempt("many", number)).collect();
    let works: Vec<Work> = all.iter().map(|attempt| rig.work(attempt)).collect();
    let launches = works.iter().map(|work| rig.backend().launch(work));
    for launched in futures_util::future::join_all(launches).await {
        launched.unwrap();
    }
    for each in &all {
        rig.start(each).await;
    }
    for each in &all {
        rig.end(each, i32::try_from(each.number).unwrap()).await;
    }
    let mut told: Vec<Vec<What>> = vec![Vec::new(); all.len()];
    for _ in 0..2 * all.len() {
        let News { attempt, what } = next(rig).await;
        told[usize::try_from(attempt.number).unwrap()].push(what);
    }
    for (code, told) in (0..).zip(told) {
        let [What::Started { .. }, What::Ended(work)] = &told[..] else { panic!("{told:?}") };
        assert_eq!((work.exit_code, work.failure.is_some()), (Some(code), code != 0));
    }
    quiet(rig);
}

async fn what_cannot_start_is_said_once<R: Rig>(rig: &mut R) {
    let one = attempt("unstartable", 0);
    if rig.backend().launch(&rig.unstartable(&one)).await.is_ok() {
        rig.start(&one).await;
        let news = next(rig).await;
        assert!(matches!(news.what, What::Unstartable { .. }), "{news:?}");
    }
    quiet(rig);
    assert_eq!(rig.launches(&one), 0);
}
