//! The board's time goes on, whatever happens to the clock on the wall.

use kapell_core::board::request::Report;
use kapell_core::board::{ActualState, LrpKey, Request};

use super::theatre::{Theatre, desire, pass, presence, secs};
use crate::board::tests::theatre::Show;
use crate::testing::eventually;

const HOUR_MS: i64 = 3_600_000;

/// Has an instance crash until it has to wait.
async fn crash(show: &Show) {
    let key = LrpKey { process_guid: "l".into(), index: 0 };
    for crash in 0..4 {
        eventually("it is there", secs(5), async || {
            show.instance("l", 0).is_some_and(|lrp| lrp.state == ActualState::Unclaimed)
        })
        .await;
        show.run("c", "l", 0).await;
        let instance_guid = show.instance("l", 0).unwrap().instance_guid.unwrap();
        let (key, domain, reason) = (key.clone(), "d".into(), format!("crash {crash}"));
        show.report("c", Report::Crashed { key, instance_guid, incarnation: None, domain, reason })
            .await;
    }
    assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Crashed);
}

fn is_back(show: &Show) -> bool {
    show.instance("l", 0).unwrap().state != ActualState::Crashed
}

/// The wait of 60 s is one by the board's time, which is off by a tenth at most.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_neither_shortens_nor_lengthens_a_wait() {
    for jump in [HOUR_MS, -HOUR_MS] {
        let theatre = Theatre::new();
        let show = theatre.open().await;
        show.board.present(presence("c")).unwrap();
        show.board.ask(desire("l", 1)).await.unwrap();
        crash(&show).await;
        theatre.clock.set_wall(jump);
        pass(secs(50)).await;
        assert!(!is_back(&show), "{jump}");
        pass(secs(20)).await;
        assert!(is_back(&show), "{jump}");
    }
}

/// A leader whose clock was ahead does not make those after it wait.
#[tokio::test(start_paused = true)]
async fn what_a_leader_wrote_in_the_future_is_taken_as_now() {
    let theatre = Theatre::new();
    theatre.clock.set_wall(HOUR_MS);
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    let domain = Request::SetDomain { domain: "d".into(), ttl: Some(secs(600)) };
    show.board.ask(domain).await.unwrap();
    crash(&show).await;
    show.close().await;
    theatre.clock.set_wall(0);
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    let expires_at = show.board.look("d", |records| records.domains[&"d".into()].expires_at);
    let left = expires_at.unwrap().0 - kapell_core::seams::Clock::wall(&*theatre.clock).0;
    assert!((590_000..=600_000).contains(&left), "{left}");
    pass(secs(50)).await;
    assert!(!is_back(&show));
    pass(secs(20)).await;
    assert!(is_back(&show));
}
