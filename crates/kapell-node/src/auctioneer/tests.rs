use kapell_core::board::{ActualState, CellPresence, DesiredLrp, Request, Resources, TaskState};

use crate::board::tests::theatre::{
    Manner, Show, Theatre, Told, create, definition, desire, lrp, pass, presence, secs,
};
use crate::testing::{eventually, for_as_long};

/// Says again and again that these cells are there, for so long.
async fn keep(show: &Show, cells: &[&str], seconds: u64) {
    for _ in 0..seconds {
        for cell in cells {
            show.board.present(presence(cell)).unwrap();
        }
        pass(secs(1)).await;
    }
}

fn states(theatre: &Theatre) -> usize {
    theatre.cells.count(|told| *told == Told::State)
}

fn placement_error(show: &Show, guid: &str) -> Option<String> {
    show.instance(guid, 0)?.placement_error
}

/// Nothing more fits.
const FULL: Resources = Resources { memory_mb: 0, disk_mb: 0, containers: 0 };

#[tokio::test(start_paused = true)]
async fn work_is_handed_over_at_once_and_once() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.present(presence("a")).unwrap();
    show.board.present(presence("b")).unwrap();
    let begun = tokio::time::Instant::now();
    show.board.ask(desire("l", 40)).await.unwrap();
    show.board.ask(create(definition("t"))).await.unwrap();
    eventually("all are handed over", secs(1), async || theatre.cells.work().len() == 41).await;
    assert!(begun.elapsed() < secs(1) / 10);
    let on = |cell: &str| {
        let told = theatre.cells.told();
        told.iter().filter(|(id, _, it)| id.as_str() == cell && *it != Told::State).count()
    };
    assert!(on("a") >= 15 && on("b") >= 15, "{} and {}", on("a"), on("b"));
    keep(&show, &["a", "b"], 20).await;
    assert_eq!(theatre.cells.work().len(), 41);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_wanted_any_more_is_not_placed() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(desire("l", 3)).await.unwrap();
    show.board.ask(create(definition("t"))).await.unwrap();
    eventually("they are there", secs(1), async || show.instance("l", 2).is_some()).await;
    show.board.ask(Request::RemoveDesired { process_guid: "l".into() }).await.unwrap();
    show.board.ask(Request::CancelTask { task_guid: "t".into() }).await.unwrap();
    show.board.present(presence("c")).unwrap();
    keep(&show, &["c"], 20).await;
    assert_eq!(theatre.cells.work(), []);
}

#[tokio::test(start_paused = true)]
async fn evacuating_cells_are_not_asked() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.present(CellPresence { evacuating: true, ..presence("c") }).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    pass(secs(5)).await;
    assert_eq!(states(&theatre), 0);
    show.board.present(presence("c")).unwrap();
    eventually("it is placed", secs(1), async || theatre.cells.work().len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_cell_refuses_is_carried_over() {
    for manner in [Manner::Refuses, Manner::RefusesAll] {
        let theatre = Theatre::new();
        let show = theatre.open_and_settle().await;
        theatre.cells.behave("c", manner);
        show.board.present(presence("c")).unwrap();
        show.board.ask(desire("l", 1)).await.unwrap();
        show.board.ask(create(definition("t"))).await.unwrap();
        keep(&show, &["c"], 2).await;
        let tries = theatre.cells.work().len();
        assert!((4..20).contains(&tries), "{tries}");
        theatre.cells.behave("c", Manner::Good);
        keep(&show, &["c"], 10).await;
        let done = theatre.cells.work().len();
        keep(&show, &["c"], 10).await;
        assert_eq!(theatre.cells.work().len(), done, "what is taken is not carried over");
        assert_eq!(show.task("t").unwrap().state, TaskState::Pending);
    }
}

/// It says why it is not placed until it is.
#[tokio::test(start_paused = true)]
async fn what_a_cell_refuses_says_so() {
    for (manner, reason) in [(Manner::Refuses, "no"), (Manner::RefusesAll, "no more")] {
        let theatre = Theatre::new();
        let show = theatre.open_and_settle().await;
        theatre.cells.behave("c", manner);
        show.board.present(presence("c")).unwrap();
        show.board.ask(desire("l", 1)).await.unwrap();
        show.board.ask(create(definition("t"))).await.unwrap();
        let why = format!("found no compatible cells: {reason} (said by cell `c`)");
        let told = async || {
            let task = show.task("t").unwrap().placement_error;
            placement_error(&show, "l").as_ref() == Some(&why) && task.as_ref() == Some(&why)
        };
        eventually("both say why", secs(1), told).await;
        let task = show.task("t").unwrap();
        assert_eq!((task.state, task.failed), (TaskState::Pending, false));
        theatre.cells.behave("c", Manner::Good);
        keep(&show, &["c"], 10).await;
        show.run("c", "l", 0).await;
        assert_eq!(placement_error(&show, "l"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_cell_does_not_answer_is_left_to_convergence() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    theatre.cells.behave("c", Manner::SilentAtWork);
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    keep(&show, &["c"], 25).await;
    assert_eq!(theatre.cells.work().len(), 1);
    theatre.cells.behave("c", Manner::Good);
    keep(&show, &["c"], 60).await;
    assert!(theatre.cells.work().len() > 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_cell_does_not_hold_up_the_others_for_long() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    theatre.cells.behave("a", Manner::Silent);
    show.board.present(presence("a")).unwrap();
    show.board.present(presence("b")).unwrap();
    show.board.ask(desire("l", 2)).await.unwrap();
    eventually("both are on the other cell", secs(6), async || theatre.cells.work().len() == 2)
        .await;
    let begun = tokio::time::Instant::now();
    show.board.ask(desire("m", 1)).await.unwrap();
    eventually("it is placed", secs(6), async || theatre.cells.work().len() == 3).await;
    assert!(begun.elapsed() < secs(1), "the silent one is not asked again so soon");
}

/// A full cluster does not spin: the tries become rare, and say why.
#[tokio::test(start_paused = true)]
async fn a_full_cluster_does_not_spin() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    theatre.cells.has("c", FULL);
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 50)).await.unwrap();
    keep(&show, &["c"], 600).await;
    let tries = states(&theatre);
    assert!((10..100).contains(&tries), "{tries} tries in ten minutes");
    assert!(placement_error(&show, "l").unwrap().contains("insufficient resources"));
    let commits =
        show.board.look("l", |records| records.instances.values().all(|it| it.version == 2));
    assert!(commits, "the reason is written once");
    theatre.cells.has("c", presence("c").capacity);
    keep(&show, &["c"], 11).await;
    assert_eq!(theatre.cells.work().len(), 50);
}

#[tokio::test(start_paused = true)]
async fn new_room_is_used_at_once() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    theatre.cells.has("c", FULL);
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    keep(&show, &["c"], 120).await;
    assert_eq!(theatre.cells.work(), []);
    show.board.present(presence("d")).unwrap();
    eventually("it is on the new cell", secs(1) / 2, async || theatre.cells.work().len() == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn room_that_a_stop_leaves_is_used_at_once() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("old", 1)).await.unwrap();
    eventually("it is placed", secs(1), async || theatre.cells.work().len() == 1).await;
    show.run("c", "old", 0).await;
    theatre.cells.has("c", FULL);
    show.board.ask(desire("new", 1)).await.unwrap();
    keep(&show, &["c"], 120).await;
    assert_eq!(theatre.cells.work().len(), 1);
    show.board.ask(Request::RemoveDesired { process_guid: "old".into() }).await.unwrap();
    theatre.cells.has("c", presence("c").capacity);
    let key = show.instance("old", 0).unwrap().key();
    let instance_guid = "old-0-on-c".into();
    let report = kapell_core::board::request::Report::Remove { key, instance_guid };
    show.report("c", report).await;
    eventually("the other is placed", secs(1) / 2, async || theatre.cells.work().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn without_cells_an_instance_waits_and_says_so() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it says why", secs(1), async || placement_error(&show, "l").is_some()).await;
    let why = placement_error(&show, "l").unwrap();
    assert_eq!(why, "found no compatible cells: no cell is present");
    assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Unclaimed);
    show.board.present(presence("c")).unwrap();
    eventually("it is placed", secs(1), async || theatre.cells.work().len() == 1).await;
}

/// Right after a take-over cells are still coming: a task waits for them.
#[tokio::test(start_paused = true)]
async fn a_task_waits_for_cells_after_a_take_over_and_fails_later() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(create(definition("t"))).await.unwrap();
    for_as_long("it waits", secs(14), async || show.task("t").unwrap().state == TaskState::Pending)
        .await;
    let why = show.task("t").unwrap().placement_error;
    assert_eq!(why.as_deref(), Some("found no compatible cells: no cell is present"));
    eventually("it fails", secs(12), async || show.task("t").unwrap().failed).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_no_cell_can_take_fails_at_once() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    theatre.cells.has("c", FULL);
    show.board.present(presence("c")).unwrap();
    show.board.ask(create(definition("t"))).await.unwrap();
    eventually("it fails", secs(1), async || show.task("t").unwrap().failed).await;
    let task = show.task("t").unwrap();
    assert_eq!(task.state, TaskState::Completed);
    assert!(task.failure_reason.contains("insufficient resources"), "{}", task.failure_reason);
}

/// A cell that could not be asked might take it.
#[tokio::test(start_paused = true)]
async fn a_task_does_not_fail_while_a_cell_is_silent() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    theatre.cells.has("a", FULL);
    theatre.cells.behave("b", Manner::Silent);
    show.board.present(presence("a")).unwrap();
    show.board.present(presence("b")).unwrap();
    show.board.ask(create(definition("t"))).await.unwrap();
    keep(&show, &["a", "b"], 20).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Pending);
    theatre.cells.behave("b", Manner::Good);
    keep(&show, &["a", "b"], 30).await;
    assert!(theatre.cells.work().contains(&Told::Task("t".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_large_share_is_handed_over_in_several_requests() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(desire("l", 1200)).await.unwrap();
    eventually("they are there", secs(5), async || show.instance("l", 1199).is_some()).await;
    show.board.present(presence("c")).unwrap();
    eventually("all are handed over", secs(5), async || theatre.cells.work().len() == 1200).await;
    let parcels = theatre.cells.parcels();
    assert!(parcels.len() >= 3 && parcels.iter().all(|(units, _)| *units <= 500), "{parcels:?}");
}

#[tokio::test(start_paused = true)]
async fn no_request_is_longer_than_a_cell_reads() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let long = DesiredLrp { annotation: "a".repeat(10 * 1024), ..lrp("l", 450) };
    show.board.ask(Request::Desire(Box::new(long))).await.unwrap();
    eventually("they are there", secs(5), async || show.instance("l", 449).is_some()).await;
    show.board.present(presence("c")).unwrap();
    eventually("all are handed over", secs(5), async || theatre.cells.work().len() == 450).await;
    let parcels = theatre.cells.parcels();
    assert!(parcels.iter().any(|(_, bytes)| *bytes > 3 << 20), "{parcels:?}");
    assert!(parcels.iter().all(|(_, bytes)| *bytes <= 4 << 20), "{parcels:?}");
}

/// What was never sent is not in doubt.
#[tokio::test(start_paused = true)]
async fn what_a_silent_cell_was_not_sent_goes_to_another() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.cells.behave("a", Manner::SilentAtWork);
    show.board.ask(desire("l", 700)).await.unwrap();
    eventually("they are there", secs(5), async || show.instance("l", 699).is_some()).await;
    show.board.present(presence("a")).unwrap();
    eventually("some are sent", secs(5), async || !theatre.cells.parcels().is_empty()).await;
    let sent = theatre.cells.work().len();
    assert!(sent <= 500, "{sent}");
    show.board.present(presence("b")).unwrap();
    keep(&show, &["a", "b"], 7).await;
    let told = theatre.cells.told();
    let on_b = told.iter().filter(|(id, _, it)| id.as_str() == "b" && *it != Told::State).count();
    assert_eq!(on_b, 700 - sent);
}

#[tokio::test(start_paused = true)]
async fn what_the_in_flight_limit_holds_back_is_carried_over() {
    let mut theatre = Theatre::new();
    theatre.settings.in_flight_starts = Some(3);
    let show = theatre.open_and_settle().await;
    theatre.cells.starts("c", 3);
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    show.board.ask(create(definition("t"))).await.unwrap();
    keep(&show, &["c"], 20).await;
    assert_eq!(theatre.cells.work(), []);
    let why = "waiting to start instance: reached in-flight start limit";
    assert_eq!(placement_error(&show, "l").as_deref(), Some(why));
    let held = show.task("t").unwrap();
    assert_eq!((held.state, held.placement_error.as_deref()), (TaskState::Pending, Some(why)));
    theatre.cells.starts("c", 0);
    keep(&show, &["c"], 2).await;
    assert_eq!(theatre.cells.work().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reason_is_written_again_only_when_it_is_another() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    theatre.cells.has("c", FULL);
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    keep(&show, &["c"], 30).await;
    let version = || show.instance("l", 0).unwrap().version;
    let first = version();
    theatre.cells.has("c", Resources { disk_mb: 1, ..FULL });
    keep(&show, &["c"], 30).await;
    assert_eq!(version(), first, "only the figures are others");
    theatre.cells.has("c", Resources { containers: 1, ..FULL });
    keep(&show, &["c"], 30).await;
    assert_eq!(version(), first + 1);
    let why = placement_error(&show, "l").unwrap();
    assert!(why.starts_with("insufficient resources: memory ("), "{why}");
}

#[test]
fn a_plan_keeps_the_tasks_that_cells_hold_and_a_round_does_not() {
    use kapell_core::board::{CellState, Held, Resources};

    let room = Resources { memory_mb: 1, disk_mb: 1, containers: 1 };
    let held = Held { key: "t".into(), instance_guid: "i".into(), memory_mb: 1, disk_mb: 0 };
    let state =
        CellState { tasks: vec![held], ..CellState::empty("a".into(), String::new(), room) };
    let (mut planned, mut placed) = (state.clone(), state);
    super::round::Kept::All.of(&mut planned);
    super::round::Kept::SiblingsOf(&std::collections::BTreeSet::new()).of(&mut placed);
    assert_eq!((planned.tasks.len(), placed.tasks.len()), (1, 0));
}
