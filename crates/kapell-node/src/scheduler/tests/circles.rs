//! Nobody closes a circle of `kickOffJob`.

use std::pin::pin;

use futures_util::future::{join_all, poll_immediate};
use kapell_core::board::{Refusal, Request};
use kapell_core::job::{JobDefinition, JobRequest};

use super::stage::{Stage, job};
use crate::board::Declined;
use crate::board::tests::theatre::pass;

fn kicks(id: &str, other: &str) -> JobDefinition {
    job(
        id,
        &format!(
            r#", "constraints": [{{"requirePreviousSuccess": {{"onMet": [{{"kickOffJob": "{other}"}}]}}}}]"#
        ),
    )
}

fn apply(definition: JobDefinition) -> Request {
    Request::Job(JobRequest::Apply { definition: Box::new(definition) })
}

#[tokio::test(start_paused = true)]
async fn two_changes_at_once_cannot_close_a_circle() {
    let stage = Stage::new();
    let lead = stage.open().await;
    let board = &lead.show.board;
    // In as many shards as there are.
    for length in 2..=9_usize {
        let name = |at: usize| format!("ring{length}-{}", at % length);
        let changes = (0..length).map(|at| board.ask(apply(kicks(&name(at), &name(at + 1)))));
        let answers = join_all(changes).await;
        let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
        let [Declined::Refused(Refusal::Invalid { problems })] = refused.as_slice() else {
            panic!("{refused:?}")
        };
        assert!(problems[0].contains("kickOffJob goes in a circle"), "{problems:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_asker_has_left_counts_all_the_same() {
    let stage = Stage::new();
    let lead = stage.open().await;
    let board = &lead.show.board;
    {
        let mut left = pin!(board.ask(apply(kicks("a", "b"))));
        assert!(poll_immediate(&mut left).await.is_none());
    }
    let closing = board.ask(apply(kicks("b", "a"))).await;
    assert!(matches!(closing, Err(Declined::Refused(_))), "{closing:?}");
    pass(std::time::Duration::from_secs(1)).await;
    // What kicks nobody off any more is in nobody's way.
    board.ask(apply(job("a", ""))).await.unwrap();
    board.ask(apply(kicks("b", "a"))).await.unwrap();
}
