//! What actions count is counted once, and what they say is kept until it was sent.

use std::collections::BTreeMap;

use serde_json::json;

use super::world::*;
use crate::board::{Refusal, Reply};
use crate::constraint::outgoing::MOST_OF_A_JOB;
use crate::constraint::{Header, Method, MetricKind, Outgoing, Place};
use crate::job::figure::Figure;
use crate::job::record::{MOST_FIGURES, TAKEN_KEPT};
use crate::job::{ActionId, Job, JobRequest};
use crate::run::{RunId, RunState, RunUpdate, UpdateKind};

fn figure(world: &mut World, action: u128, metric: &str, kind: MetricKind, value: f64) {
    let (action, metric) = (ActionId(action), metric.to_owned());
    let figure = Figure { kind, value, at: NOW };
    world.ask(JobRequest::Figure { job_id: id(), action, metric, figure }).unwrap();
}

fn shown(job: &Job) -> BTreeMap<String, f64> {
    job.figures.iter().map(|(name, it)| (name.clone(), it.value)).collect()
}

fn skip(world: &mut World, action: u128, count: u32) {
    let action = ActionId(action);
    world.ask(JobRequest::SkipNext { job_id: id(), action, count }).unwrap();
}

#[test]
fn moments_are_passed_over_once_for_each_action_however_often_it_is_taken() {
    let mut world = World::with(&definition());
    for (action, want) in [(1, 2), (1, 2), (2, 4), (1, 4), (2, 4)] {
        skip(&mut world, action, 2);
        assert_eq!(world.job().skip_next, want);
    }
    assert_eq!(world.written, 0, "what changes nothing is not written");
    let many = u128::try_from(TAKEN_KEPT).unwrap() + 10;
    (10..many).for_each(|action| skip(&mut world, action, 1));
    assert_eq!(world.job().taken.len(), TAKEN_KEPT);
}

#[test]
fn runs_that_were_made_ahead_are_the_next_that_are_passed_over() {
    let mut world = World::with(&definition());
    let runs = world.advance(3);
    // The first of them is due, and may have begun.
    world.now = world.run(&runs[0]).due_at;
    skip(&mut world, 1, 1);
    let at = |world: &World, number: usize| world.run(&runs[number]).scheduled_at;
    assert_eq!(world.job().skips, [at(&world, 1)]);
    skip(&mut world, 2, 3);
    assert_eq!(world.job().skips, [at(&world, 1), at(&world, 2)]);
    assert_eq!(world.job().skip_next, 2, "the rest are moments to come");
    assert!(world.job().skips(world.run(&runs[2])) && !world.job().skips(world.run(&runs[0])));
    let ended = update(UpdateKind::Ended, 0, RunState::Completed);
    world.update(&runs[1], RunUpdate { skipped: true, ..ended.clone() });
    assert_eq!((world.job().skips.len(), world.job().skip_next), (1, 2));
    // One had begun before it could be told.
    world.update(&runs[2], RunUpdate { started_at: Some(NOW), ..ended });
    assert_eq!((world.job().skips.len(), world.job().skip_next), (0, 3));
}

#[test]
fn a_figure_is_counted_once_for_each_action_and_set_as_it_was_set_last() {
    use MetricKind::{Counter, Gauge};
    let mut world = World::with(&definition());
    figure(&mut world, 1, "late", Counter, 1.0);
    figure(&mut world, 1, "late", Counter, 1.0);
    figure(&mut world, 2, "late", Counter, 1.5);
    figure(&mut world, 3, "depth", Gauge, 7.0);
    figure(&mut world, 4, "depth", Gauge, 9.0);
    // Whoever comes back from a crash does not undo what was set since.
    figure(&mut world, 3, "depth", Gauge, 7.0);
    let want = [("depth".to_owned(), 9.0), ("late".to_owned(), 2.5)];
    assert_eq!(shown(world.job()), BTreeMap::from(want));
}

#[test]
fn a_job_has_a_bounded_number_of_figures() {
    let mut world = World::with(&definition());
    for number in 0..MOST_FIGURES {
        let action = u128::try_from(number).unwrap();
        figure(&mut world, action, &format!("f{number}"), MetricKind::Gauge, 1.0);
    }
    let (action, metric) = (ActionId(9_999), "more".to_owned());
    let one = Figure { kind: MetricKind::Gauge, value: 1.0, at: NOW };
    let more = JobRequest::Figure { job_id: id(), action, metric, figure: one };
    assert!(matches!(world.ask(more), Err(Refusal::State { .. })));
    figure(&mut world, 9_999, "f0", MetricKind::Gauge, 2.0);
    assert!(shown(world.job())["f0"] > 1.5);
}

fn message(id: u128) -> Outgoing {
    Outgoing {
        job_id: super::world::id(),
        id: ActionId(id),
        run_id: RunId::parse("j:1").unwrap(),
        domain: "d".into(),
        what: "webhook of time_window".to_owned(),
        place: Place::Url("https://example.com/hook".to_owned()),
        method: Method::Post,
        headers: vec![("x-key".to_owned(), Header::Secret("key".into()))],
        secret: Some("sign".into()),
        timeout_ms: 10_000,
        max_attempts: 6,
        body: json!({"text": "late"}),
        secret_fields: vec![("routing_key".to_owned(), "pager".into())],
        asked_at: NOW,
    }
}

fn post(world: &mut World, message: Outgoing) -> Result<Reply, Refusal> {
    world.ask(JobRequest::Post { message: Box::new(message) })
}

#[test]
fn a_message_is_kept_once_until_it_was_sent() {
    let mut world = World::with(&definition());
    assert_eq!(post(&mut world, message(7)), Ok(Reply::Done));
    assert_eq!(world.written, 1);
    let other = Outgoing { what: "another".to_owned(), ..message(7) };
    assert_eq!(post(&mut world, other), Ok(Reply::Done));
    assert_eq!(world.written, 0, "the first one stands");
    let kept: Vec<&Outgoing> = world.records.messages.values().map(AsRef::as_ref).collect();
    assert_eq!(kept, [&message(7)]);
    // It outlives its job.
    world.ask(JobRequest::Remove { job_id: id(), cancel_runs: true }).unwrap();
    assert!(world.records.jobs.is_empty());
    for left in [1, 0] {
        assert_eq!(world.records.messages.len(), left);
        world.ask(JobRequest::Posted { job_id: id(), id: ActionId(7) }).unwrap();
    }
    assert_eq!(world.written, 0, "what is gone is not deleted again");
}

#[test]
fn messages_are_bounded_in_size_and_number() {
    let mut world = World::with(&definition());
    let long = Outgoing { body: json!("x".repeat(200_000)), ..message(1) };
    assert!(matches!(post(&mut world, long), Err(Refusal::Invalid { .. })));
    for number in 0..MOST_OF_A_JOB {
        post(&mut world, message(u128::try_from(number).unwrap())).unwrap();
    }
    assert!(matches!(post(&mut world, message(9_999)), Err(Refusal::State { .. })));
    world.ask(JobRequest::Posted { job_id: id(), id: ActionId(0) }).unwrap();
    post(&mut world, message(9_999)).unwrap();
    let of_another = Outgoing { job_id: "k".into(), ..message(1) };
    post(&mut world, of_another).unwrap();
}
