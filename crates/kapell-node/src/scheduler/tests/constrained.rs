//! What constraints and actions know of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::board::CellState;
use kapell_core::constraint::lines::Pace;
use kapell_core::run::RunState;
use tokio::sync::mpsc;

use super::stage::{job, secs, triggered};
use crate::constraint::{Cells, Checker, Inbox, Means, Message, Pulse};
use crate::scheduler::checker::{Checker as _, Subject};
use crate::scheduler::constrained::Constrained;
use crate::scheduler::tests::fakes::Manner;
use crate::testing::TokioClock;
use crate::webhook::tests::stage::post;

#[derive(Debug)]
struct NoCells;

#[async_trait]
impl Cells for NoCells {
    async fn states(&self) -> Result<Vec<CellState>, String> {
        Ok(Vec::new())
    }
}

/// A run by the schedule is given no parameters: its work has the defaults, and so have templates.
#[tokio::test(start_paused = true)]
async fn templates_know_the_parameters_that_the_work_has() {
    let more = r#", "parameters": [{"name": "KIND", "default": "fast"}]"#;
    let (stage, lead, run_id) = triggered(Manner::Ends(&[0]), more).await;
    lead.until(&run_id, RunState::Completed, secs(5)).await;
    let of_work = stage.fake.state().parameters.clone();
    assert_eq!(of_work, BTreeMap::from([("KIND".to_owned(), "fast".to_owned())]));

    let (sender, mut inbox) = mpsc::channel(8);
    let post = post(Pace::default());
    let constrained = Constrained::new(Checker::new(Means {
        inbox: Inbox::new(sender),
        webhooks: post.handler.clone(),
        cells: Arc::new(NoCells),
        clock: Arc::new(TokioClock::new()),
    }));
    let kick =
        r#"{"kickOffJob": {"job": "other", "parameters": {"OF": "{{ run.parameters.KIND }}"}}}"#;
    let always = r#"{"start": "00:00", "end": "24:00"}"#;
    let constraints = format!(
        r#", "constraints": [{{"time_window": {{"config": {always}, "onMet": [{kick}]}}}}]"#
    );
    let subject = Subject {
        definition: Arc::new(job("once", &format!("{more}{constraints}"))),
        run: Arc::new(lead.run(&run_id)),
        attempt: 0,
        started_at: None,
    };
    let pulse = Pulse::default();
    let checked = constrained.check(&subject, &pulse).await;
    assert!(checked.acts, "{checked:?}");
    let listen = async {
        loop {
            if let Message::Trigger { parameters, reply, .. } = inbox.recv().await.unwrap() {
                drop(reply.send(Ok(())));
                return parameters;
            }
        }
    };
    let (_, kicked) = tokio::join!(constrained.act(&subject, &pulse), listen);
    assert_eq!(kicked, BTreeMap::from([("OF".to_owned(), "fast".to_owned())]));
}
