use kapell_api::v1::RecordsWanted;
use kapell_core::board::request::Report;
use kapell_core::board::{ActualState, CellPresence, Event, LrpKey, TaskState};

use super::theatre::{Show, Theatre, create, definition, desire, pass, presence, secs};
use crate::board::Next;
use crate::testing::{eventually, for_as_long};

/// A board that has one instance running on cell `c`, which is heard of no more.
async fn with_instance(theatre: &Theatre) -> Show {
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it is there", secs(1), async || show.instance("l", 0).is_some()).await;
    show.run("c", "l", 0).await;
    show
}

fn is_running(show: &Show) -> bool {
    show.instance("l", 0).unwrap().state == ActualState::Running
}

fn states(show: &Show) -> Vec<(String, String, u32, u32)> {
    let views = show.board.cells().into_iter();
    views.map(|it| (it.presence.cell_id.to_string(), it.state, it.lrps, it.tasks)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lost_cell_is_converged_at_once() {
    let theatre = Theatre::new();
    let show = with_instance(&theatre).await;
    show.board.ask(create(definition("t"))).await.unwrap();
    let (task_guid, instance_guid) = ("t".into(), "t-instance".into());
    let start = Report::StartTask { task_guid, instance_guid, reservation: None };
    show.report("c", start).await;
    assert_eq!(states(&show), [("c".to_owned(), "present".to_owned(), 1, 1)]);
    show.board.present(presence("c")).unwrap();
    let mut events = show.board.events(None);
    for_as_long("it runs", secs(14), async || is_running(&show)).await;
    eventually("it is rescued", secs(2), async || !is_running(&show)).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Completed);
    assert_eq!(states(&show), []);
    let Some(Next::Event(_, event)) = events.next().await else { panic!("no event") };
    assert_eq!(*event, Event::Cell { cell_id: "c".into(), present: false });
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_leaves_is_converged_at_once() {
    let theatre = Theatre::new();
    let show = with_instance(&theatre).await;
    show.board.leave(&"c".into());
    show.board.leave(&"c".into());
    eventually("it is rescued", secs(1), async || !is_running(&show)).await;
    assert!(show.board.cell(&"c".into()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_goes_on_saying_so_stays() {
    let theatre = Theatre::new();
    let show = with_instance(&theatre).await;
    let before = show.board.last_event();
    for _ in 0..20 {
        let welcome = show.board.present(presence("c")).unwrap();
        assert_eq!((welcome.epoch, welcome.ttl_ms), (show.board.epoch(), 15_000));
        pass(secs(10)).await;
    }
    assert!(is_running(&show));
    assert_eq!(show.board.last_event(), before, "saying the same again is no event");
}

/// A new leader counts on every cell that a record names, for one time to live.
#[tokio::test(start_paused = true)]
async fn a_new_leader_waits_for_cells_that_records_name() {
    let theatre = Theatre::new();
    with_instance(&theatre).await.close().await;
    let show = theatre.open().await;
    assert_eq!(states(&show), [("c".to_owned(), "awaited".to_owned(), 1, 0)]);
    for_as_long("it counts as running", secs(14), async || is_running(&show)).await;
    eventually("it is rescued", secs(2), async || !is_running(&show)).await;
    assert_eq!(states(&show), []);
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_comes_back_to_a_new_leader_keeps_its_work() {
    let theatre = Theatre::new();
    with_instance(&theatre).await.close().await;
    let show = theatre.open().await;
    pass(secs(10)).await;
    show.board.present(CellPresence { evacuating: true, ..presence("c") }).unwrap();
    assert_eq!(states(&show), [("c".to_owned(), "evacuating".to_owned(), 1, 0)]);
    pass(secs(10)).await;
    assert!(is_running(&show));
}

/// What the leader before us gave to a cell, the cell may take up before it says that it is there.
#[tokio::test(start_paused = true)]
async fn a_cell_that_reports_to_a_new_leader_counts_before_it_is_heard() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it is there", secs(1), async || show.instance("l", 0).is_some()).await;
    show.run("c", "l", 0).await;
    show.board.alarm().at_once();
    for_as_long("it counts as running", secs(10), async || is_running(&show)).await;
    show.board.leave(&"c".into());
    show.board.alarm().at_once();
    eventually("it is rescued", secs(1), async || !is_running(&show)).await;
}

/// A laptop that slept: the cells could not be heard, so they are not lost.
#[tokio::test(start_paused = true)]
async fn a_host_that_slept_waits_for_its_cells_once_more() {
    let theatre = Theatre::new();
    let show = with_instance(&theatre).await;
    theatre.clock.jump(secs(3600));
    for_as_long("it counts as running", secs(14), async || is_running(&show)).await;
    show.board.present(presence("c")).unwrap();
    pass(secs(10)).await;
    assert!(is_running(&show));
}

/// So busy is the machine that every look at the cells comes too late.
async fn always_late(theatre: &Theatre, seconds: u64) {
    for _ in 0..seconds {
        theatre.clock.jump(secs(3));
        pass(secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_always_late_loses_a_cell_all_the_same() {
    let theatre = Theatre::new();
    let show = with_instance(&theatre).await;
    for _ in 0..30 {
        show.board.present(presence("c")).unwrap();
        always_late(&theatre, 2).await;
    }
    assert!(is_running(&show), "it said that it is there");
    always_late(&theatre, 12).await;
    assert!(!is_running(&show), "it is silent for three times to live");
    assert_eq!(states(&show), []);
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_that_is_always_late_does_not_wait_for_ever() {
    let theatre = Theatre::new();
    with_instance(&theatre).await.close().await;
    let show = theatre.open().await;
    always_late(&theatre, 2).await;
    assert!(is_running(&show));
    always_late(&theatre, 10).await;
    assert!(!is_running(&show));
    assert_eq!(states(&show), []);
}

#[tokio::test(start_paused = true)]
async fn a_cell_is_shown_what_names_it_and_what_it_asks_for() {
    let theatre = Theatre::new();
    let show = with_instance(&theatre).await;
    show.board.ask(desire("other", 2)).await.unwrap();
    eventually("they are there", secs(1), async || show.instance("other", 1).is_some()).await;
    let nothing = RecordsWanted::default();
    let found = show.board.records(&"c".into(), &nothing);
    assert_eq!(found.epoch, show.board.epoch());
    assert_eq!(found.instances, [show.instance("l", 0).unwrap()]);
    let lrps = [("l", 0), ("other", 1), ("none", 0)];
    let lrps = lrps.map(|(guid, index)| LrpKey { process_guid: guid.into(), index }).to_vec();
    let found = show.board.records(&"c".into(), &RecordsWanted { lrps, tasks: vec!["t".into()] });
    let mut guids: Vec<_> = found.instances.iter().map(|it| it.process_guid.as_str()).collect();
    guids.sort_unstable();
    assert_eq!(guids, ["l", "other"]);
    assert_eq!(found.tasks, []);
    assert_eq!(show.board.records(&"b".into(), &nothing).instances, []);
}

fn at_home(home: &str) -> CellPresence {
    CellPresence { home: home.to_owned(), ..presence("c") }
}

#[tokio::test(start_paused = true)]
async fn a_second_cell_with_the_same_id_is_refused_while_the_first_is_there() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.present(at_home("one")).unwrap();
    let problem = show.board.present(at_home("other")).unwrap_err();
    assert_eq!(problem.code, "cell_id_in_use");
    assert!(problem.message.contains("give this one another id with --id"), "{problem:?}");
    assert_eq!(show.board.cell(&"c".into()).unwrap().home, "one");
    // A restarted agent, and one of before there were homes.
    show.board.present(CellPresence { url: "http://new".to_owned(), ..at_home("one") }).unwrap();
    show.board.present(presence("c")).unwrap();
    show.board.present(at_home("one")).unwrap();
    // Who is not heard of any more, or has left, has no id.
    pass(secs(16)).await;
    show.board.present(at_home("other")).unwrap();
    show.board.leave(&"c".into());
    show.board.present(at_home("one")).unwrap();
}
